from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import reference
from fewlabel import (
    VoteStatistics,
    bayes_confusion,
    bayes_risk,
    conditional_error_bound,
    confusion_bound,
    risk_bound,
    tightness,
    transductive_bound,
)
from fewlabel.bounds.transductive import class_bound
from support.strategies import N_INSTANCES, votes_and_proba, votes_proba_theta

ATOL = 1e-9


@given(votes_proba_theta())
def test_bound_equals_literal_formula(case):
    votes, proba, theta = case
    fast = confusion_bound(votes, proba, thresholds=theta)
    np.testing.assert_allclose(fast, reference.confusion_bound(votes, proba, theta), atol=ATOL)


@given(votes_proba_theta(max_rows=6, max_classes=3), st.floats(0.0, 1.0))
def test_no_gamma_gives_less(case, at):
    """The infimum over the votes and 1 is the infimum over the whole interval."""
    votes, proba, theta = case
    gamma = theta[1] + at * (1 - theta[1])
    u = proba.sum(axis=0)
    if u[0] > 0:
        bound = confusion_bound(votes, proba, thresholds=theta)[0, 1] * u[0]
        assert bound <= reference.u_U_at(votes, proba, 0, 1, theta[1], gamma) + ATOL


@given(votes_proba_theta(max_rows=8, max_classes=3))
def test_bound_is_the_linear_program(case):
    votes, proba, theta = case
    # The solver takes coefficients below 1e-9 for zeros, and allows errors of 1e-10 beside them.
    votes = np.round(votes, 2)
    votes /= votes.sum(axis=1, keepdims=True)
    u = proba.sum(axis=0)
    printed = confusion_bound(votes, proba, thresholds=theta) * u[:, None]
    tight = confusion_bound(votes, proba, thresholds=theta, tight=True) * u[:, None]
    for i in range(votes.shape[1]):
        for j in range(votes.shape[1]):
            if i == j or u[i] == 0:
                continue
            optimum = reference.linear_program(votes, proba, i, j, theta[j])
            above = votes[:, j] >= theta[j]
            has_zero = bool((votes[above, j] == 0).any())
            if has_zero and reference.u_K(votes, proba, i, j) == 0:
                continue  # votes of 0 are free in the program; the risk is 0 and so is the bound
            assert tight[i, j] == pytest.approx(optimum, abs=1e-7)
            saturated = reference.u_K(votes, proba, i, j) > (proba[above, i] @ votes[above, j])
            if saturated:
                assert printed[i, j] >= optimum - 1e-7
            else:
                assert printed[i, j] == pytest.approx(optimum, abs=1e-7)


def test_bound_is_valid_on_thousands_of_instances():
    rng = np.random.default_rng(20)
    violations = 0
    for _ in range(N_INSTANCES):
        n, K = rng.integers(1, 30), rng.integers(2, 6)
        concentration = rng.choice([0.05, 0.3, 1.0, 4.0])
        votes = rng.dirichlet(np.full(K, concentration), size=n)
        if rng.random() < 0.5:
            trees = int(rng.integers(1, 20))
            votes = np.array([rng.multinomial(trees, v / v.sum()) for v in votes]) / trees
        proba = rng.dirichlet(np.full(K, rng.choice([0.05, 0.5, 2.0])), size=n)
        theta = rng.choice(votes.ravel(), size=K) if rng.random() < 0.5 else rng.random(K)
        tight = bool(rng.random() < 0.5)
        resolution = None if rng.random() < 0.7 else int(rng.integers(1, 40))
        bound = transductive_bound(
            votes, proba, thresholds=theta, tight=tight, resolution=resolution
        )
        truth = bayes_confusion(votes, proba, thresholds=theta)
        violations += bool((truth > bound.confusion + ATOL).any())
        violations += bayes_risk(votes, proba, thresholds=theta) > bound.risk + ATOL
        violations += np.linalg.norm(truth, 2) > bound.norm + ATOL
    assert violations == 0


@given(votes_proba_theta())
def test_error_rate_and_conditional_error(case):
    votes, proba, theta = case
    bound = transductive_bound(votes, proba, thresholds=theta)
    U, p = bound.confusion, proba.sum(axis=0) / len(proba)
    assert bound.risk == pytest.approx(float(np.abs(U.T @ p).sum()), abs=ATOL)
    best = votes.argmax(axis=1)
    selected = float((votes.max(axis=1) >= theta[best]).mean())
    assert bound.selected_share == pytest.approx(selected)
    error = conditional_error_bound(votes, proba, thresholds=theta)
    assert np.isnan(error) if selected == 0 else error == pytest.approx(bound.risk / selected)


@given(votes_and_proba())
def test_the_lowest_winning_vote_bounds_the_same_error_more_tightly(case):
    votes, proba = case
    best = votes.argmax(axis=1)
    floor = [votes[best == c, c].min(initial=1.0) for c in range(votes.shape[1])]
    np.testing.assert_allclose(
        confusion_bound(votes, proba),
        reference.confusion_bound(votes, proba, floor),
        atol=ATOL,
    )
    assert bayes_risk(votes, proba, thresholds=floor) == bayes_risk(votes, proba)
    error = bayes_risk(votes, proba)
    for resolution in (None, 7):
        tight = risk_bound(votes, proba, resolution=resolution, tight=True)
        assert error <= tight + ATOL
        assert tight <= risk_bound(votes, proba, resolution=resolution) + ATOL
    assert risk_bound(votes, proba) <= risk_bound(votes, proba, thresholds=0.0) + ATOL


@given(votes_proba_theta(), st.permutations(range(4)), st.integers(0, 1000))
def test_symmetries(case, permutation, seed):
    votes, proba, theta = case
    top = np.sort(votes, axis=1)
    # A tie is broken by the order of the classes, so renaming them may matter.
    assume((top[:, -1] > top[:, -2]).all())
    K = votes.shape[1]
    bound = confusion_bound(votes, proba, thresholds=theta)
    order = np.random.default_rng(seed).permutation(len(votes))
    np.testing.assert_allclose(
        confusion_bound(votes[order], proba[order], thresholds=theta), bound, atol=ATOL
    )
    twice = confusion_bound(np.r_[votes, votes], np.r_[proba, proba], thresholds=theta)
    np.testing.assert_allclose(twice, bound, atol=ATOL)
    rename = [c for c in permutation if c < K]
    renamed = confusion_bound(votes[:, rename], proba[:, rename], thresholds=theta[rename])
    np.testing.assert_allclose(renamed, bound[np.ix_(rename, rename)], atol=ATOL)


@given(votes_proba_theta(max_rows=30), st.integers(1, 50))
def test_binned_bound_is_never_below_the_exact_one(case, resolution):
    votes, proba, theta = case
    exact = transductive_bound(votes, proba, thresholds=theta)
    binned = transductive_bound(votes, proba, thresholds=theta, resolution=resolution)
    assert (binned.confusion >= exact.confusion - ATOL).all()
    assert binned.selected_share <= exact.selected_share
    assert bayes_risk(votes, proba, thresholds=theta) <= binned.risk + ATOL


@given(votes_and_proba(max_rows=10, max_classes=3), st.integers(1, 6))
def test_binned_bound_is_the_smallest_at_an_edge(case, resolution):
    """U(γ) for every edge γ at or above the threshold, and for 1, from the sums in the bins."""
    for cells in VoteStatistics.from_votes(*case, resolution=resolution).cells:
        starts, gammas = range(len(cells.edges) + 1), [*cells.edges, 1.0]
        found = class_bound(cells, np.array(starts))
        for i, gibbs in enumerate(cells.gibbs):
            mass, vote_mass = cells.mass[:, i], cells.vote_mass[:, i]
            for start in starts:
                at = []
                for t in starts[start:]:
                    bracket = max(0.0, gibbs - vote_mass[start:t].sum())
                    over = bracket / (gammas[t] or 1e-300) if bracket else 0.0
                    at.append(mass[start:t].sum() + over)
                assert found[i, start] == pytest.approx(min(at), abs=ATOL)


def test_binned_meets_exact_as_the_resolution_grows():
    rng = np.random.default_rng(0)
    votes = rng.dirichlet(np.ones(3), size=200)
    proba = rng.dirichlet(np.ones(3), size=200)
    exact = risk_bound(votes, proba, thresholds=0.4)
    gaps = [risk_bound(votes, proba, thresholds=0.4, resolution=R) - exact for R in (5, 50, 5000)]
    assert gaps[0] > gaps[1] > gaps[2] >= -ATOL
    assert gaps[2] < 1e-3


@given(votes_proba_theta(max_rows=10, max_classes=3), st.floats(0.0, 0.5))
def test_tightness_statement(case, tau):
    votes, proba, _ = case
    u = proba.sum(axis=0)
    given_tau, best_tau = tightness(votes, proba, tau=tau), tightness(votes, proba)
    risk = bayes_confusion(votes, proba)
    for i in range(votes.shape[1]):
        for j in range(votes.shape[1]):
            if i == j or u[i] == 0:
                continue
            actual = reference.u_U(votes, proba, i, j, 0.0) / u[i] - risk[i, j]
            assert best_tau.actual_gap[i, j] == pytest.approx(actual, abs=ATOL)
            assert actual <= best_tau.gap[i, j] + ATOL
            assert best_tau.gap[i, j] <= given_tau.gap[i, j] + ATOL
            expected = reference.tightness_gap(votes, proba, i, j, tau)
            if expected is None:
                assert given_tau.gap[i, j] == (0 if risk[i, j] == 0 else np.inf)
            else:
                found = [getattr(given_tau, name)[i, j] for name in ("C", "gamma_star", "r", "gap")]
                np.testing.assert_allclose(found, expected, atol=1e-7)


def test_tightness_by_hand():
    """Three votes for class 1; class-0 rows that lose at .6 and .8, one that wins at .3."""
    votes = np.array([[0.7, 0.3], [0.4, 0.6], [0.2, 0.8]])
    proba = np.array([[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]])
    u, risk = 1.75, 0.75 / 1.75
    for tau, C, gamma_star, r in (
        (0.2, 0.0, 0.6, 0.25 / u * 0.8),  # only the vote of .6; below it nothing is predicted 1
        (0.1, 0.0, 0.8, 0.0),
    ):
        found = tightness(votes, proba, tau=tau)
        assert found.tau[0, 1] == tau
        assert found.C[0, 1] == C
        assert found.gamma_star[0, 1] == gamma_star
        assert found.r[0, 1] == pytest.approx(r)
        assert found.gap[0, 1] == np.inf
    nothing = tightness(votes, proba, tau=0.9)
    assert np.isnan(nothing.C[0, 1])
    assert nothing.gap[0, 1] == np.inf
    # Without the row that wins, all mass below a vote is predicted 1: C is 1.
    lost = tightness(votes[1:], proba[1:], tau=0.4)
    share = 0.25 / 0.75
    assert (lost.C[0, 1], lost.gamma_star[0, 1]) == (1.0, 0.6)
    assert lost.r[0, 1] == pytest.approx(share * 0.8)
    assert lost.gap[0, 1] == pytest.approx(share * 0.8 * (1 / 0.6 - 1))
    best = tightness(votes[1:], proba[1:])
    assert (best.tau[0, 1], best.gamma_star[0, 1], best.gap[0, 1]) == (0.0, 0.8, 0.0)
    # A class that no row is predicted to be: bound and risk are 0, and so is the gap.
    never = tightness(votes[:1], np.array([[0.5, 0.5]]), tau=0.3)
    assert (never.C[0, 1], never.tau[0, 1], never.r[0, 1], never.gap[0, 1]) == (1.0, 0.3, 0.0, 0.0)
    assert np.isnan(never.gamma_star[0, 1])
    assert tightness(votes[:1], np.array([[0.5, 0.5]])).tau[0, 1] == 0.0
    assert risk == pytest.approx(bayes_confusion(votes, proba)[0, 1])


def test_votes_with_the_same_risk_join_together():
    """b is 1/4 at votes of .4 and .5; half of class 0 has .45 and is predicted to be of it."""
    votes = np.array([[0.3, 0.4, 0.3], [0.5, 0.45, 0.05], [0.3, 0.5, 0.2]])
    proba = np.array([[0.5, 0.0, 0.5], [1.0, 0.0, 0.0], [0.5, 0.0, 0.5]])
    both = tightness(votes, proba)
    assert (both.tau[0, 1], both.gamma_star[0, 1]) == (0.0, 0.5)
    assert both.C[0, 1] == pytest.approx(1 / 3)  # 1/4 of the 3/4 below .5
    assert both.gap[0, 1] == pytest.approx(2 * 0.5)
    at = tightness(votes, proba, tau=0.25)  # none is above
    assert np.isnan(at.C[0, 1])
    assert at.gap[0, 1] == np.inf


@pytest.mark.parametrize("tau", [-0.1, 1.1, np.nan])
def test_tau_out_of_range(tau):
    with pytest.raises(ValueError, match="tau must lie"):
        tightness(np.array([[0.6, 0.4]]), np.array([[0.5, 0.5]]), tau=tau)
    for allowed in (0.0, 1.0):
        tightness(np.array([[0.6, 0.4]]), np.array([[0.5, 0.5]]), tau=allowed)


def test_tight_when_errors_have_the_lowest_votes():
    """Deterministic labels, every error below every correct vote: the bound is the risk."""
    high = np.c_[np.linspace(0.8, 1.0, 20), np.linspace(0.2, 0.0, 20)]
    low = np.c_[np.linspace(0.55, 0.6, 5), np.linspace(0.45, 0.4, 5)]
    votes = np.r_[high, low]
    proba = np.r_[np.tile([1.0, 0.0], (20, 1)), np.tile([0.0, 1.0], (5, 1))]
    result = tightness(votes, proba)
    assert result.gap[1, 0] == pytest.approx(0.0, abs=ATOL)
    assert result.actual_gap[1, 0] == pytest.approx(0.0, abs=ATOL)
    assert bayes_confusion(votes, proba)[1, 0] == 1.0


def test_statistics_and_votes_are_exclusive():
    votes = np.array([[0.6, 0.4], [0.3, 0.7]])
    statistics = VoteStatistics.from_votes(votes, votes)
    with pytest.raises(ValueError, match="already contain"):
        risk_bound(statistics, votes)
    with pytest.raises(ValueError, match="label_proba is needed"):
        risk_bound(votes)
    with pytest.raises(ValueError, match="make the statistics exact"):
        tightness(VoteStatistics.from_votes(votes, votes, resolution=4))
    with pytest.raises(ValueError, match="tau must lie"):
        tightness(votes, votes, tau=2)


@pytest.mark.parametrize("resolution", [0, -3, 2.5, "many"])
def test_bad_resolution(resolution):
    with pytest.raises(ValueError, match="positive whole number of bins"):
        risk_bound([[0.5, 0.5]], [[0.5, 0.5]], resolution=resolution)
