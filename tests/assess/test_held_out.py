"""Held-out votes: which rows take part, with which weights, and in which folds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier

from fewlabel.assess.held_out import cross_fitted_votes, folds_of, rows_with_weight, unequal


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
