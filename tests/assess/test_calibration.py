"""Votes as probabilities: the two powers, and when votes stay as they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, brentq
from scipy.special import expit, logit
from scipy.stats import chi2
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

from fewlabel.assess.calibration import (
    Confidence,
    bounding_power,
    calibrated,
    calibrated_by,
    calibration_power,
    for_bounds,
    least_power,
    match_confidence,
)


@pytest.mark.parametrize("power", [0.5, 3.0])
def test_calibration_power_is_recovered(power):
    """Labels drawn from votes to the power t have their highest likelihood there."""
    rng = np.random.default_rng(0)
    votes = 0.98 * rng.dirichlet(np.ones(3), 20_000) + 0.02 / 3
    proba = calibrated(votes, power)
    y = (rng.random((len(votes), 1)) > proba.cumsum(axis=1)[:, :-1]).sum(axis=1)
    assert calibration_power(votes, y) == pytest.approx(power, rel=0.05)


def test_calibration_power_is_where_the_likelihood_is_flat():
    X, y = load_digits(return_X_y=True)
    forest = RandomForestClassifier(50, random_state=0, oob_score=True).fit(X[:100], y[:100])
    votes = forest.oob_decision_function_
    best = calibration_power(votes, y[:100])

    def loss(power):
        proba = calibrated(votes, power[0])
        return -np.log(proba[np.arange(100), y[:100]]).mean()

    assert abs(approx_fprime([best], loss)[0]) < 1e-2
    assert loss([best]) < loss([1.0])


@settings(max_examples=25)
@given(st.integers(5, 300), st.floats(0.5, 4), st.integers(0, 100))
def test_least_power_lies_between_one_and_the_best(n: int, power: float, seed: int):
    rng = np.random.default_rng(seed)
    votes = rng.dirichlet(np.ones(3), n)
    truth = calibrated(votes, power)
    codes = np.array([rng.choice(3, p=p) for p in truth])
    least, best = least_power(votes, codes), calibration_power(votes, codes)
    assert least <= max(1.0, best) + 0.02
    assert least >= min(1.0, best) - 0.02 or least < best < 1.0  # the cautious end


def limit_of_the_likelihood_ratio(low, high):
    """Of the share of right rows, for 40 of 50."""

    def ratio(share):
        return 2 * (40 * np.log(0.8 / share) + 10 * np.log(0.2 / (1 - share)))

    return brentq(lambda share: ratio(share) - chi2.ppf(0.95, 1), low, high)


def power_of_votes(vote):
    votes, codes = np.tile([vote, 1 - vote], (50, 1)), np.repeat([0, 1], [40, 10])
    return least_power(votes, codes)


@pytest.mark.parametrize(("highest", "stays"), [(0.98, False), (1.02, True)])
def test_votes_stay_as_they_are_up_to_the_limit_of_the_likelihood_ratio(highest, stays):
    """Votes of one size, right in 40 of 50 rows: limits of that share are limits of the power."""
    limit = limit_of_the_likelihood_ratio(0.8, 0.99)
    assert (power_of_votes(expit(logit(limit) / highest)) == 1.0) == stays


@pytest.mark.parametrize("lowest", [0.988, 1.01, 1.5, 3.0])
def test_underconfident_votes_get_the_lowest_power_that_is_not_contradicted(lowest):
    limit = limit_of_the_likelihood_ratio(0.5, 0.8)
    found = power_of_votes(expit(logit(limit) / lowest))
    step = 2000 ** (1 / 499)  # of the grid from 0.01 to 20
    assert found == 1.0 if lowest < 1 else lowest * 0.999 < found < lowest * step * 1.001


def test_many_rows_find_the_power():
    rng = np.random.default_rng(0)
    votes = rng.dirichlet(np.ones(3), 4_000)
    raised = votes**2
    proba = raised / raised.sum(axis=1, keepdims=True)
    codes = (rng.random((4_000, 1)) > proba.cumsum(axis=1)).sum(axis=1)
    power = least_power(votes, codes)
    assert power == pytest.approx(1.95, abs=0.1)  # a little below 2: the cautious side
    assert power <= 2.0


def test_too_few_rows_demand_nothing():
    votes, codes = np.tile([0.6, 0.4], (10, 1)), np.zeros(10, dtype=int)
    assert bounding_power(votes, codes) > 1.0  # always right: underconfident
    assert bounding_power(votes[1:], codes[1:]) == 1.0
    one_hot = np.eye(2)[codes]
    assert for_bounds(one_hot, 1.0) is one_hot
    assert for_bounds(one_hot, 2.0)[0, 1] > 0.0


def test_a_vote_of_zero_is_one_in_a_thousand():
    np.testing.assert_allclose(calibrated(np.array([[1.0, 0.0]]), 1.0), [[1 / 1.001, 1e-3 / 1.001]])


def test_powers_lie_between_a_hundredth_and_twenty():
    """Votes that are right half the time deserve none; ones that are always right, the highest."""
    one_hot, half = np.tile([1.0, 0.0], (400, 1)), np.repeat([0, 1], 200)
    assert least_power(one_hot, half) == pytest.approx(0.01)
    assert calibrated_by(one_hot, half) == pytest.approx(0.01, rel=1e-3)
    assert calibration_power(one_hot, half) == pytest.approx(0.1, rel=1e-3)
    weak, right = np.tile([0.51, 0.49], (1000, 1)), np.zeros(1000, dtype=int)
    assert calibration_power(weak, right) == pytest.approx(20.0, rel=1e-3)
    a = np.log(0.51 / 0.49)
    drop = 1000 * np.log(expit(20 * a) / expit(np.array([19.3, 20.0]) * a))
    assert drop[0] > 1.92 > drop[1]
    assert 19.3 < least_power(weak, right) <= 20.0


def test_overconfident_votes_get_the_cautious_end():
    """A tree that votes 0 or 1 and is right in 60 %: no confidence above that may be left."""
    votes = np.tile([1.0, 0.0], (50, 1))
    codes = np.repeat([0, 1], [30, 20])
    assert calibrated(votes, calibration_power(votes, codes, lowest=0.01))[0, 0] == pytest.approx(
        0.6, abs=0.01
    )
    assert calibrated(votes, least_power(votes, codes))[0, 0] < 0.55


@given(st.integers(1, 40), st.integers(2, 4), st.floats(0.05, 0.45), st.integers(0, 10**6))
def test_mean_doubt_is_matched(n, n_classes, error, seed):
    rng = np.random.default_rng(seed)
    votes = 0.9 * rng.dirichlet(np.ones(n_classes), n) + 0.1 / n_classes
    labels = votes.argmax(axis=1)
    found = match_confidence(votes, labels, error)
    doubt = 1 - found.of(votes, labels).mean()
    assert doubt == pytest.approx(error, abs=1e-6) or found.power > 50  # ties stay doubtful


@pytest.mark.parametrize("log_powers", [(-5.0, -4.71875), (3.71875, 4.0)])
def test_mean_doubt_is_matched_near_the_lowest_and_the_highest_power(log_powers):
    votes, labels = np.array([[0.9, 0.1], [0.51, 0.49]]), np.array([0, 0])
    between = Confidence(np.exp(np.mean(log_powers)))
    error = 1 - between.of(votes, labels).mean()
    assert match_confidence(votes, labels, error).power == pytest.approx(between.power)


def test_labels_against_the_votes_have_the_smallest_doubt_there_is():
    votes, labels = np.array([[0.9, 0.1], [0.8, 0.2]]), np.array([1, 1])
    assert match_confidence(votes, labels, 0.1).of(votes, labels) == pytest.approx(0.5, abs=0.01)
    assert match_confidence(votes, labels, 0.9).of(votes, labels) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("weaker", np.linspace(0.52, 0.7, 10))
def test_the_power_of_the_smallest_doubt_is_within_a_sixth_of_the_best(weaker):
    """Labels that contradict weak votes: the doubt falls, then rises."""
    votes = np.array([[0.95, 0.05]] * 2 + [[weaker, 1 - weaker]] * 3)
    labels = np.array([0, 0, 1, 1, 1])
    powers = np.exp(np.linspace(-5.0, 4.0, 2_000))
    doubts = [1 - Confidence(power).of(votes, labels).mean() for power in powers]
    best = powers[np.argmin(doubts)]
    assert match_confidence(votes, labels, 0.0).power == pytest.approx(best, rel=1 / 6)


def test_confidence_is_the_scaled_vote_for_the_label():
    votes = np.array([[0.8, 0.2], [0.5, 0.5]])
    confidence = Confidence(2.0, seen=0.9, shift=(3.0, 1.0))
    a, b = 3 * 0.64, 0.04
    expected = [0.9 * b / (a + b), 0.9 * 0.75]
    np.testing.assert_allclose(confidence.of(votes, np.array([1, 0])), expected)
    assert confidence.temperature == 0.5
    assert match_confidence(np.empty((0, 2)), np.empty(0, dtype=int), 0.1).power == 1.0


def test_votes_for_other_class_shares_are_changed_before_they_are_scaled():
    """0.8 · 0.5 to 0.2 · 3 is 2 to 3, squared 4 to 9; 0.5 · 0.5 to 0.5 · 3 is 1 to 6."""
    confidence = Confidence(2.0, own=(0.5, 3.0))
    votes = np.array([[0.8, 0.2], [0.5, 0.5]])
    np.testing.assert_allclose(confidence.of(votes, np.array([0, 1])), [4 / 13, 36 / 37])
    raised = confidence.label_proba(np.array([[1.0, 0.0]]))
    np.testing.assert_allclose(raised, [[1 / (1 + 1e-6), 1e-6 / (1 + 1e-6)]])


def test_smoothing_adds_rows_of_any_label():
    """As if each row were there once more for every label, with the weight of what is unknown."""
    rng = np.random.default_rng(6)
    votes = rng.dirichlet(np.ones(3), size=8)
    y = votes.argmax(axis=1)
    smoothed = calibration_power(votes, y, smoothing=2.0)
    # 8 rows and 2 of unknown label: each row 3 · 8 / 2 = 12 times with its label, once with each.
    repeated = np.repeat(votes, 15, axis=0)
    labels = np.concatenate([[code] * 12 + [0, 1, 2] for code in y])
    assert smoothed == pytest.approx(calibration_power(repeated, labels), rel=1e-3)
    assert smoothed < calibration_power(votes, y)
    assert calibrated_by(votes[:0], y[:0]) == 1.0
