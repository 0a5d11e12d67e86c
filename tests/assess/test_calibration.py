"""Votes as probabilities: the two powers, and when votes stay as they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

from fewlabel.assess.calibration import (
    FEWEST_ROWS,
    bounding_power,
    calibrated,
    calibration_power,
    for_bounds,
    least_power,
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


@given(st.integers(5, 300), st.floats(0.5, 4), st.integers(0, 100))
def test_least_power_lies_between_one_and_the_best(n: int, power: float, seed: int):
    rng = np.random.default_rng(seed)
    votes = rng.dirichlet(np.ones(3), n)
    truth = calibrated(votes, power)
    codes = np.array([rng.choice(3, p=p) for p in truth])
    least, best = least_power(votes, codes), calibration_power(votes, codes)
    assert least <= max(1.0, best) + 0.02
    assert least >= min(1.0, best) - 0.02 or least < best < 1.0  # the cautious end


def test_many_rows_find_the_power():
    rng = np.random.default_rng(0)
    votes = rng.dirichlet(np.ones(3), 20_000)
    raised = votes**2
    proba = raised / raised.sum(axis=1, keepdims=True)
    codes = (rng.random((20_000, 1)) > proba.cumsum(axis=1)).sum(axis=1)
    assert least_power(votes, codes) == pytest.approx(2.0, abs=0.1)
    assert least_power(votes, codes) <= 2.05


def test_too_few_rows_demand_nothing():
    votes, codes = np.tile([0.6, 0.4], (FEWEST_ROWS, 1)), np.zeros(FEWEST_ROWS, dtype=int)
    assert bounding_power(votes, codes) > 1.0  # always right: underconfident
    assert bounding_power(votes[1:], codes[1:]) == 1.0
    one_hot = np.eye(2)[codes]
    assert for_bounds(one_hot, 1.0) is one_hot
    assert for_bounds(one_hot, 2.0)[0, 1] > 0.0
