"""Held-out votes: which rows take part, with which weights, and in which folds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

from fewlabel.assess.held_out import (
    cross_fitted_votes,
    folds_of,
    held_out_votes,
    out_of_bag_votes,
    rows_with_weight,
    trained_share,
    unequal,
)


@pytest.mark.parametrize("weight", [[1.0, 2.0], [2.0, 1.0, 1.0], [1.0, 1.0, 3.0]])
def test_weights_count_only_where_they_differ(weight):
    np.testing.assert_array_equal(unequal(np.array(weight)), weight)
    assert unequal(np.full(len(weight), 2.0)) is None
    assert unequal(None) is None


def test_rows_of_weight_zero_take_no_part():
    rows, weight = rows_with_weight(4, np.array([0.0, 3.0, 3.0, 0.0]))
    assert rows.tolist() == [1, 2]
    assert weight is None  # those that do weigh the same
    rows, weight = rows_with_weight(3, np.array([2.0, 0.0, 1.0]))
    assert rows.tolist() == [0, 2]
    np.testing.assert_array_equal(weight, [2.0, 1.0])


@given(st.integers(0, 12), st.integers(2, 6))
def test_every_row_is_held_out_once_and_trains_in_all_other_folds(n, n_splits):
    folds = folds_of(n, n_splits, 0)
    assert len(folds) == (min(n, n_splits) if n > 1 else 0)  # one row has nothing to learn from
    tested = [row for _, test in folds for row in test.tolist()]
    assert sorted(tested) == list(range(n if n > 1 else 0))
    for train, test in folds:
        np.testing.assert_array_equal(np.sort(np.r_[train, test]), np.arange(n))


def test_two_rows_of_a_class_vote_for_each_other():
    votes = cross_fitted_votes(DummyClassifier(), np.zeros((2, 1)), ["a", "a"])
    np.testing.assert_array_equal(votes, [[1.0], [1.0]])


@pytest.mark.parametrize(
    ("n", "n_splits", "share"), [(100, 5, 0.8), (100, 10, 0.9), (3, 5, 2 / 3), (2, 5, 0.5)]
)
def test_the_share_of_the_rows_that_voters_learned_from(n, n_splits, share):
    assert trained_share(n, n_splits) == pytest.approx(share)
    learned = [len(train) / n for train, _ in folds_of(n, n_splits, 0)]
    assert learned == pytest.approx([share] * len(learned))
    assert trained_share(1) == 0.5  # no folds, but a share above 0


class Bootstrapped(GaussianNB):
    """Has the parameter, but no samples."""

    bootstrap = True


class Sampled(GaussianNB):
    """Has samples, but says nothing of a bootstrap."""

    estimators_samples_ = ()


def test_only_a_bootstrap_has_out_of_bag_votes():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    X = rng.normal(size=(40, 2)) + y[:, None]
    forest = RandomForestClassifier(20, random_state=0).fit(X, y)
    votes, share = held_out_votes(forest, X, y)
    assert share == 1.0
    np.testing.assert_array_equal(votes, out_of_bag_votes(forest, X))
    # Voters on halves of the rows would have such votes, but learned from much less.
    halves = BaggingClassifier(GaussianNB(), 10, max_samples=0.5, bootstrap=False, random_state=0)
    for other in (halves, Bootstrapped(), Sampled()):
        votes, share = held_out_votes(other.fit(X, y), X, y)
        assert share == 0.8
        np.testing.assert_array_equal(votes, cross_fitted_votes(other, X, y))
