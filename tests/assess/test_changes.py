"""What the labels that self-learning changed are worth."""

from __future__ import annotations

import numpy as np
import pytest

from fewlabel.assess.changes import gain_of_changes


def test_no_change_is_worth_nothing():
    assert tuple(gain_of_changes(0)) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("n_changed", [1, 7, 400])
def test_limits_are_possible_numbers_of_labels(n_changed):
    gain = gain_of_changes(n_changed)
    assert -n_changed <= gain.low < 0 < gain.value < gain.high <= n_changed


def test_the_limits_are_those_of_the_formula():
    """A share of mean 0.64 that varies as Beta(1.92, 1.08) does, of 58 labels out of 100."""
    variance = 4 * 0.64 * 0.36 * (58 + 58**2 / 4)
    far = 1.96 * np.sqrt(variance)
    expected = 58 * 0.28, 58 * 0.28 - far, 58 * 0.28 + far
    assert tuple(gain_of_changes(100)) == pytest.approx(expected)
    assert gain_of_changes(1)[1:] == (-1, 1)  # no more labels than were changed


def test_limits_hold_and_the_mean_is_right_where_changes_are_like_elsewhere():
    rng = np.random.default_rng(0)
    right = rng.beta(3 * 0.64, 3 * 0.36, 5_000)
    n_one = rng.binomial(60, 0.58, 5_000)
    truth = 2 * rng.binomial(n_one, right) - n_one
    gain = gain_of_changes(60)
    assert 0.93 <= ((gain.low <= truth) & (truth <= gain.high)).mean() <= 0.99
    assert abs(truth.mean() - gain.value) <= 4 * truth.std() / np.sqrt(len(truth))
