from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from fewlabel import BoundPolicy, Curriculum, FixedThreshold, Selection, optimal_thresholds
from fewlabel.bounds.cells import RowStatistics
from fewlabel.bounds.statistics import VoteStatistics
from fewlabel.selection.policies import make_policy
from support.strategies import votes_and_proba


@given(votes_and_proba(max_rows=25))
def test_bound_policy_selects_what_reaches_the_optimal_thresholds(case):
    votes, proba = case
    selection = BoundPolicy().select(RowStatistics(votes, proba), 1)
    theta = optimal_thresholds(votes, proba)
    np.testing.assert_array_equal(selection.thresholds, theta)
    expected = [v.max() >= theta[v.argmax()] for v in votes]
    np.testing.assert_array_equal(selection.mask(votes), expected)
    assert selection.mask(votes).any()  # the minimum is over thresholds that select something


@given(votes_and_proba(max_rows=25), st.floats(0, 1))
def test_fixed_threshold(case, threshold):
    votes, proba = case
    selection = FixedThreshold(threshold).select(RowStatistics(votes, proba), 3)
    np.testing.assert_array_equal(selection.mask(votes), votes.max(axis=1) >= threshold)
    assert selection.errors is None


@pytest.mark.parametrize(("iteration", "share"), [(1, 1 / 3), (2, 2 / 3), (3, 1.0), (4, 1.0)])
def test_curriculum_takes_a_growing_share(iteration, share):
    rng = np.random.default_rng(0)
    votes = rng.dirichlet(np.ones(3), size=3000)
    selection = Curriculum(1 / 3).select(RowStatistics(votes, votes), iteration)
    assert selection.mask(votes).mean() == pytest.approx(share, abs=0.001)
    assert votes[selection.mask(votes)].max(axis=1).min() >= votes[~selection.mask(votes)].max(
        initial=0
    )


def test_policies_are_pure():
    """The same input gives the same selection whatever was asked before."""
    rng = np.random.default_rng(1)
    votes, other = rng.dirichlet(np.ones(3), size=50), rng.dirichlet(np.ones(3), size=30)
    for policy in (BoundPolicy(), BoundPolicy(resolution=20), FixedThreshold(), Curriculum()):
        first = policy.select(RowStatistics(votes, votes), 1)
        policy.select(RowStatistics(other, other), 2)
        again = clone(policy).select(RowStatistics(votes, votes), 1)
        np.testing.assert_array_equal(first.thresholds, again.thresholds)
        np.testing.assert_array_equal(
            policy.select(RowStatistics(votes, votes), 1).thresholds, first.thresholds
        )


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (FixedThreshold(1.2), "threshold must lie in"),
        (Curriculum(0.0), "step must lie in"),
        (Curriculum(1.01), "step must lie in"),
        (BoundPolicy(criterion="x"), "criterion must be"),
        (BoundPolicy(resolution=0), "resolution must be"),
    ],
)
def test_bad_parameters(policy, message):
    with pytest.raises(ValueError, match=message):
        policy.select(RowStatistics(np.array([[0.5, 0.5]]), np.array([[0.5, 0.5]])), 1)


def test_make_policy():
    assert isinstance(make_policy("bound"), BoundPolicy)
    mine = FixedThreshold(0.9)
    assert make_policy(mine) is mine
    for wrong in ("best", 0.7, None):
        with pytest.raises(ValueError, match="'policy' parameter"):
            make_policy(wrong)


def test_selection_by_thresholds_breaks_ties_like_the_majority_vote():
    votes = np.array([[0.5, 0.5], [0.4, 0.6]])
    assert Selection(np.array([0.6, 0.5])).mask(votes).tolist() == [False, True]


@given(votes_and_proba(max_rows=25), st.sampled_from([None, 10]))
def test_votes_in_memory_and_their_sums_are_the_same_to_a_policy(case, resolution):
    in_memory, sums = RowStatistics(*case), VoteStatistics.from_votes(*case)
    if resolution:
        in_memory, sums = in_memory.binned(resolution), sums.binned(resolution)
    for policy in (BoundPolicy(), FixedThreshold(), Curriculum(0.4)):
        for iteration in (1, 2):
            mine, theirs = policy.select(in_memory, iteration), policy.select(sums, iteration)
            np.testing.assert_allclose(mine.thresholds, theirs.thresholds, atol=1e-12)


def test_curriculum_takes_the_vote_at_its_rank():
    """Of five winning votes the one at rank 0.5 * 4, so three rows reach it."""
    top = np.array([0.6, 1.0, 0.8, 0.7, 0.9])
    votes = np.column_stack([top, 1 - top])[:, ::-1]
    selection = Curriculum(0.5).select(RowStatistics(votes, votes), 1)
    assert selection.thresholds.tolist() == [0.8, 0.8]
