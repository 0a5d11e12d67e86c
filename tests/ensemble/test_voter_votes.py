"""What each voter says of the labelled rows, and what each row counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewlabel.ensemble.voter_votes import VoterVotes, quadratic_losses


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
