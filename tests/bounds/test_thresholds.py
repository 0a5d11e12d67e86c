from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from fewlabel import (
    VoteStatistics,
    optimal_thresholds,
    search_thresholds,
    threshold_curves,
    transductive_bound,
)
from fewlabel.bounds.thresholds import ThresholdCurve
from support.strategies import votes_and_proba

OBJECTIVE = {"bound": reference.threshold_objective, "plug-in": reference.plug_in_objective}


@given(votes_and_proba(), st.sampled_from(["bound", "plug-in"]))
def test_search_finds_the_global_minimum_over_all_distinct_votes(case, criterion):
    votes, proba = case
    thresholds, values = search_thresholds(votes, proba, criterion=criterion)
    best = votes.argmax(axis=1)
    for j in range(votes.shape[1]):
        if not (best == j).any():
            assert thresholds[j] == 1.0
            assert np.isnan(values[j])
            continue
        every = sorted({float(v) for v in votes[:, j]})
        objective = [OBJECTIVE[criterion](votes, proba, j, theta) for theta in every]
        assert values[j] == pytest.approx(min(objective), abs=1e-9)
        # The smallest minimiser selects the rows that the smallest of all distinct votes would.
        smallest = next(t for t, o in zip(every, objective) if o <= min(objective) + 1e-10)
        np.testing.assert_array_equal(
            (best == j) & (votes[:, j] >= thresholds[j]), (best == j) & (votes[:, j] >= smallest)
        )


@given(votes_and_proba())
def test_curves_hold_the_objective(case):
    votes, proba = case
    for j, curve in enumerate(threshold_curves(votes, proba)):
        for t, theta in enumerate(curve.thresholds):
            bound = reference.threshold_objective(votes, proba, j, theta)
            assert curve.bound[t] == pytest.approx(bound, abs=1e-9)
            plug_in = reference.plug_in_objective(votes, proba, j, theta)
            assert curve.plug_in[t] == pytest.approx(plug_in, abs=1e-9)
            assert curve.plug_in[t] <= curve.bound[t] + 1e-9
            selected = (votes.argmax(axis=1) == j) & (votes[:, j] >= theta)
            assert curve.n_selected[t] == selected.sum()


@given(votes_and_proba(max_rows=30), st.integers(1, 60))
def test_binned_search_is_the_best_of_the_edges_and_never_below_exact(case, resolution):
    votes, proba = case
    thresholds, values = search_thresholds(votes, proba, resolution=resolution)
    _, exact = search_thresholds(votes, proba)
    edges = np.arange(resolution + 1) / resolution
    for j in np.flatnonzero(~np.isnan(values)):
        assert values[j] >= exact[j] - 1e-9
        assert thresholds[j] in edges
    statistics = VoteStatistics.from_votes(votes, proba, resolution=resolution)
    np.testing.assert_array_equal(optimal_thresholds(statistics), thresholds)


def test_criteria_agree_with_the_bounds_at_the_chosen_thresholds():
    rng = np.random.default_rng(3)
    votes = rng.dirichlet(np.full(4, 0.4), size=500)
    proba = 0.7 * votes + 0.3 * rng.dirichlet(np.ones(4), size=500)
    theta, values = search_thresholds(votes, proba)
    bound = transductive_bound(votes, proba, thresholds=theta)
    best = votes.argmax(axis=1)
    selected = np.bincount(best[votes.max(axis=1) >= theta[best]], minlength=4)
    assert bound.risk * len(votes) == pytest.approx(float(values @ selected))
    assert (optimal_thresholds(votes, proba, criterion="plug-in") >= theta - 1e-12).all()


@given(votes_and_proba(max_rows=20), st.integers(0, 1000))
def test_row_order_and_duplicates_change_nothing(case, seed):
    votes, proba = case
    theta = optimal_thresholds(votes, proba)
    order = np.random.default_rng(seed).permutation(len(votes))
    np.testing.assert_array_equal(optimal_thresholds(votes[order], proba[order]), theta)
    doubled = optimal_thresholds(np.r_[votes, votes], np.r_[proba, proba])
    np.testing.assert_array_equal(doubled, theta)


def test_one_row_two_classes_and_ties():
    assert optimal_thresholds([[0.5, 0.5]], [[0.5, 0.5]]).tolist() == [0.5, 1.0]
    assert optimal_thresholds([[0.2, 0.8]], [[0.2, 0.8]]).tolist() == [1.0, 0.8]


def test_unknown_criterion():
    with pytest.raises(ValueError, match="'bound' or 'plug-in'"):
        optimal_thresholds([[0.5, 0.5]], [[0.5, 0.5]], criterion="best")


def curve_of(*bounds: float) -> ThresholdCurve:
    values = np.array(bounds)
    return ThresholdCurve(
        np.linspace(0.1, 0.9, len(values)), values, values[::-1], values.astype(int)
    )


@pytest.mark.parametrize("lowest", [0.0, 1e-3, 0.5, 1.0, 20.0])
def test_values_that_differ_by_rounding_are_equal(lowest: float):
    """The first of them is chosen: within 1e-10, relative for values above 1."""
    scale = max(1.0, lowest)
    assert curve_of(lowest + 5e-11 * scale, lowest).best() == 0
    assert curve_of(lowest + 2e-10 * scale, lowest).best() == 1
    assert curve_of(lowest, lowest + 2e-10 * scale, lowest).best() == 0
    assert curve_of(lowest, lowest + 1.0).best("plug-in") == 1
    assert curve_of(1e-10, 0.0).best() == 0  # equal at the limit itself
    assert curve_of().best() is None
