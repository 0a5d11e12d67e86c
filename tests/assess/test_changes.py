"""What the labels that self-learning changed are worth."""

from __future__ import annotations

import numpy as np
import pytest

from fewlabel import SelfLearningClassifier
from fewlabel.assess.changes import Changes


def test_no_change_is_worth_nothing():
    assert tuple(Changes().gain(0)) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("n_changed", [1, 7, 400])
def test_held_out_rows_move_the_estimate(n_changed):
    nothing, better, worse = (Changes(n, k).gain(n_changed) for n, k in ((0, 0), (30, 28), (30, 2)))
    assert worse.value < 0 < nothing.value < better.value
    for gain in (nothing, better, worse):
        assert -n_changed <= gain.low <= gain.value <= gain.high <= n_changed
    assert better.high - better.low < nothing.high - nothing.low + 1e-9


def test_rows_are_counted_that_one_of_both_gets_right():
    first = np.array([True, True, False, False, True])
    last = np.array([True, False, True, False, False])
    assert Changes.of(first, last) == Changes(n=3, n_better=2)


@pytest.mark.parametrize("n", [0, 12])
def test_limits_hold_and_the_mean_is_right_where_changes_are_like_elsewhere(n):
    rng = np.random.default_rng(0)
    within, off = [], []
    for _ in range(2_000):
        right = rng.beta(4 * 0.62, 4 * 0.38)
        gain = Changes(n, int(rng.binomial(n, right))).gain(60)
        n_one = rng.binomial(60, 0.58)
        truth = 2 * rng.binomial(n_one, right) - n_one
        within.append(gain.low <= truth <= gain.high)
        off.append(truth - gain.value)
    assert 0.92 <= np.mean(within) <= 0.99
    assert abs(np.mean(off)) <= 4 * np.std(off) / np.sqrt(len(off))


def test_a_fit_of_a_forest_knows_held_out_rows():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=120)
    X = rng.normal(size=(120, 3)) + y[:, None]
    clf = SelfLearningClassifier(random_state=0).fit(X, np.where(np.arange(120) < 40, y, -1))
    held_out, whole = clf.paper_bounds_.held_out, clf.assessment_.self_learned
    first = held_out.votes[0].argmax(axis=1) != held_out.y
    assert clf.assessment_.changes.n == (first != (whole.errors > 0.5)).sum()
    assert 0 <= clf.assessment_.changes.n_better <= clf.assessment_.changes.n
