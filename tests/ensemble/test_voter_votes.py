"""What each voter says of the labelled rows, and what each row counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewlabel.ensemble.voter_votes import (
    VoterVotes,
    check_voters,
    check_weighting,
    has_votes,
    quadratic_losses,
)


@given(st.integers(1, 20), st.integers(2, 4), st.booleans(), st.integers(0, 10**6))
def test_rows_count_one_together_and_errors_are_their_weighted_mean(n, n_classes, balanced, seed):
    rng = np.random.default_rng(seed)
    votes = rng.dirichlet(np.ones(n_classes), size=(3, n))
    y = rng.integers(n_classes, size=n)
    evidence = VoterVotes(votes, y, balanced=balanced)
    weights = evidence.row_weights
    assert weights.sum() == pytest.approx(1.0)
    wrong = votes.argmax(axis=2) != y
    np.testing.assert_allclose(evidence.errors, wrong @ weights, atol=1e-12)
    if balanced:  # every class that occurs counts the same
        totals = np.bincount(y, weights)
        np.testing.assert_allclose(totals[totals > 0], 1 / len(np.unique(y)))


@given(st.integers(1, 20), st.integers(2, 4), st.integers(0, 10**6))
def test_quadratic_losses_are_half_the_brier_scores(n, n_classes, seed):
    rng = np.random.default_rng(seed)
    votes = rng.dirichlet(np.ones(n_classes), size=(3, n))
    y = rng.integers(n_classes, size=n)
    each = ((votes - np.eye(n_classes)[y]) ** 2).sum(axis=2) / 2
    np.testing.assert_allclose(quadratic_losses(votes, y), each.mean(axis=1), atol=1e-12)
    weights = VoterVotes(votes, y, balanced=True).row_weights
    np.testing.assert_allclose(quadratic_losses(votes, y, weights), each @ weights, atol=1e-12)


@pytest.mark.parametrize(
    ("balanced", "n_rows", "errors"), [(False, 4.0, [0.25, 0.75]), (True, 3.0, [0.5, 0.5])]
)
def test_balanced_errors_rest_on_as_many_rows_as_count_alike(balanced, n_rows, errors):
    """Three rows of one class weigh 1/6 each and the one of the other 1/2: (Σw)²/Σw² = 3."""
    votes = np.eye(2)[[[0, 0, 0, 0], [1, 1, 1, 1]]]
    evidence = VoterVotes(votes, [0, 0, 0, 1], balanced=balanced)
    assert evidence.n_rows == pytest.approx(n_rows)
    np.testing.assert_allclose(evidence.errors, errors)


def test_classes_without_a_row_do_not_count():
    weights = VoterVotes(np.full((1, 3, 4), 0.25), [0, 2, 2], balanced=True).row_weights
    assert weights.tolist() == [0.5, 0.25, 0.25]


def test_a_voter_without_a_vote_gives_every_class_the_same():
    votes = np.array([[[0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]])
    assert check_voters(votes, "votes").tolist() == [[[0.25] * 4, [1.0, 0.0, 0.0, 0.0]]]
    assert not votes[0, 0].any()  # what was given stays


def test_only_voters_with_weight_have_votes():
    votes = np.array([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]])
    assert has_votes(np.array([0.5, 0.5]), votes).tolist() == [True, True]
    assert has_votes(np.array([0.0, 1.0]), votes).tolist() == [False, True]


def test_weights_of_voters():
    assert check_weighting(None, 4, "q").tolist() == [0.25] * 4
    assert check_weighting([0, 1, 3], 3, "q").tolist() == [0.0, 0.25, 0.75]
    for wrong in ([-1, 2], [np.inf, 1], [0, 0]):
        with pytest.raises(ValueError, match="q must be finite, non-negative and not all zero"):
            check_weighting(wrong, 2, "q")
    for wrong in ([1, 1, 1], [[1, 1]]):
        with pytest.raises(ValueError, match=r"q must have shape \(2,\)"):
            check_weighting(wrong, 2, "q")
