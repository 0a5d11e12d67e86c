"""What a round trains on, by hand: weights, samples and estimators that take no weights."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from fewlabel._core.arrays import RowView
from fewlabel.selection.learner import N_TREES, default_forest
from fewlabel.selection.training_set import TrainingSet, quotas, training_weights

X = np.arange(8.0).reshape(4, 2)


class Plain(BaseEstimator):
    """Takes no weights, and remembers what it is given."""

    def fit(self, X, y, **params):
        self.seen_ = X, y, params
        return self


class Weighted(Plain):
    def fit(self, X, y, sample_weight=None, **params):
        return super().fit(X, y, sample_weight=sample_weight, **params)


def test_the_forest_of_the_paper_has_200_trees():
    assert N_TREES == 200
    forest = default_forest(3, 2)
    assert (forest.n_estimators, forest.random_state, forest.n_jobs) == (40, 3, 2)  # in tests


def test_rows_of_no_weight_are_left_out_unless_their_class_would_be_unknown():
    """The last row is the only one of its class; the second is not."""
    weight = np.array([1.0, 0.0, 0.5, 0.0])
    training = TrainingSet(X, np.array([0, 0, 1, 2]), np.array(["a", "b", "c"]), weight)
    seen, labels, params = training.fit(Plain()).seen_
    np.testing.assert_array_equal(seen, X[[0, 2, 3]])
    assert labels.tolist() == ["a", "b", "c"]
    assert params == {}


def test_who_takes_weights_sees_every_row():
    weight = np.array([1.0, 0.0, 0.5, 0.0])
    training = TrainingSet(X, np.array([0, 0, 1, 2]), np.array(["a", "b", "c"]), weight)
    seen, labels, params = training.fit(Weighted()).seen_
    assert seen is X
    assert labels.tolist() == ["a", "a", "b", "c"]
    assert params["sample_weight"] is weight


def test_arguments_of_fit_are_cut_to_the_rows_of_a_view():
    view, each = RowView(X, np.array([3, 1, 0])), np.array([10.0, 11.0, 12.0, 13.0])
    classes = np.array([5, 7])
    training = TrainingSet(view, np.array([1, 0, 0]), classes, fit_params={"each": each})
    seen, labels, params = training.fit(Plain()).seen_
    np.testing.assert_array_equal(seen, X[[3, 1, 0]])
    assert (labels.tolist(), params["each"].tolist()) == ([7, 5, 5], [13.0, 11.0, 10.0])


@pytest.mark.parametrize(
    ("balanced", "expected"),
    [(True, [1.25, 1.25, 1.0, 1.0, 0.5]), (False, [5 / 7, 5 / 7, 10 / 7, 10 / 7, 5 / 7])],
)
def test_a_row_of_a_sample_stands_for_those_that_were_not_drawn(balanced, expected):
    """Two of four rows of class 0 were drawn and the only one of class 1; the mean weight is 1."""
    found = training_weights(
        None, None, np.array([0, 0, 1]), np.array([4, 1, 0]), 2, balanced=balanced
    )
    np.testing.assert_allclose(found, expected)


def test_rows_that_weigh_the_same_need_no_weights():
    codes, counts = np.array([0, 0, 1]), np.array([2, 1])
    assert training_weights(None, None, codes, counts, 2, balanced=False) is None
    np.testing.assert_allclose(
        training_weights(None, None, codes, counts, 1, balanced=True), [2, 2 / 3, 2 / 3, 2 / 3]
    )


def test_a_single_pseudo_label_weighs_as_much_as_all_labels():
    found = training_weights(None, None, np.array([0]), np.array([1, 0]), 2, balanced=True)
    np.testing.assert_allclose(found, [0.75, 0.75, 1.5])


def test_given_weights_keep_their_size():
    """5 and 4 in all, so 4.5 each where both parts are to weigh the same."""
    labeled, pseudo = np.array([2, 3]), np.array([0.5, 1.0])
    codes, counts = np.array([0, 1]), np.array([2, 3])
    for balanced, expected in ((False, [2, 3, 1, 3]), (True, [1.8, 2.7, 1.125, 3.375])):
        found = training_weights(labeled, pseudo, codes, counts, 2, balanced=balanced)
        np.testing.assert_allclose(found, expected)
    found = training_weights(None, pseudo, codes, counts, 2, balanced=False)
    np.testing.assert_allclose(found, [1, 1, 1, 3])
    found = training_weights(labeled, None, codes, np.array([1, 1]), 2, balanced=False)
    np.testing.assert_allclose(found, [2, 3, 1, 1])


@pytest.mark.parametrize(
    ("labeled", "pseudo"), [([0.0, 0.0], [1.0, 1.0]), ([1.0, 1.0], [0.0, 0.0])]
)
def test_a_part_of_no_weight_is_not_balanced(labeled, pseudo):
    found = training_weights(
        np.array(labeled), np.array(pseudo), np.array([0, 1]), np.array([1, 1]), 2, balanced=True
    )
    assert found.tolist() == [*labeled, *pseudo]


@pytest.mark.parametrize(
    ("max_train", "expected"),
    [(None, [90, 9, 1, 0]), (100, [90, 9, 1, 0]), (99, [89, 8, 1, 0]), (10, [9, 1, 1, 0])],
)
def test_samples_are_in_proportion_and_have_each_class(max_train, expected):
    assert quotas(np.array([90, 9, 1, 0]), max_train).tolist() == expected
