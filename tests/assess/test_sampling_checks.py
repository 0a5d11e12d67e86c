"""Whether labelled rows look like the others."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.stats import mannwhitneyu, norm
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict, cross_val_score

from fewlabel.assess import sampling_checks
from fewlabel.assess.sampling_checks import (
    check_sampling,
    class_notes,
    mann_whitney_z,
    told_apart,
)
from tests import reference


@given(st.lists(st.integers(0, 5), min_size=2, max_size=15), st.data())
def test_z_is_the_rank_sums(values, data):
    first = data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    if 0 < sum(first) < len(first):
        found = mann_whitney_z(np.array(values, dtype=float)[:, None], np.array(first))
        assert found[0] == pytest.approx(reference.mann_whitney(values, first))


def test_z_agrees_with_scipy():
    rng = np.random.default_rng(0)
    values, first = rng.integers(5, size=(60, 1)).astype(float), rng.random(60) < 0.4
    p_value = mannwhitneyu(
        values[first, 0], values[~first, 0], method="asymptotic", use_continuity=False
    ).pvalue
    assert 2 * norm.sf(abs(mann_whitney_z(values, first)[0])) == pytest.approx(p_value)


@given(st.integers(1, 40), st.integers(1, 3), st.integers(0, 10**6))
def test_columns_need_five_rows_besides_their_commonest_value(n, n_columns, seed):
    """In a group with these shares of values; exactly five are up to rounding."""
    rows = np.random.default_rng(seed).integers(4, size=(n, n_columns)).astype(float)
    for c, column in enumerate(rows.T):
        odd = n - Counter(column).most_common(1)[0][1]
        if odd == 0:
            assert not sampling_checks._varied(rows, 10**6)[c]
            continue
        assert not sampling_checks._varied(rows, -(-5 * n // odd) - 1)[c]
        assert sampling_checks._varied(rows, 5 * n // odd + 1)[c]


def test_five_odd_rows_are_enough():
    half = np.tile([[0.0], [1.0]], (20, 1))
    assert sampling_checks._varied(half, 10).all()
    assert not sampling_checks._varied(half, 9).any()


@pytest.mark.parametrize("load", [load_digits, load_breast_cancer])
def test_random_labels_raise_no_alarm(load):
    """Digits have nearly constant columns, where a normal approximation would fail."""
    X = load().data
    for seed in (0, 3, 7):
        rng = np.random.default_rng(seed)
        labeled = np.isin(np.arange(len(X)), rng.choice(len(X), 15 + 10 * seed, replace=False))
        assert check_sampling(X, labeled, random_state=seed).safe


def test_a_shifted_column_is_named():
    X = load_breast_cancer().data
    names = list(load_breast_cancer().feature_names)
    weight = np.exp(2 * (X[:, 4] - X[:, 4].mean()) / X[:, 4].std())
    chosen = np.random.default_rng(0).choice(len(X), 50, replace=False, p=weight / weight.sum())
    labeled = np.isin(np.arange(len(X)), chosen)
    found = check_sampling(X, labeled, feature_names=names)
    assert not found.safe
    assert names[4] in found.columns
    assert names[4] in found.notes[0]


def test_the_p_value_is_corrected_for_the_columns_and_for_two_signs():
    rng = np.random.default_rng(0)
    X, labeled = rng.normal(size=(200, 4)), np.arange(200) < 60
    X[labeled, 2] += 1.0  # clearer in one column than to a small forest
    one = mannwhitneyu(
        X[labeled, 2], X[~labeled, 2], method="asymptotic", use_continuity=False
    ).pvalue
    assert check_sampling(X, labeled).p_value == pytest.approx(2 * 4 * one, abs=0)


def test_rows_that_are_alike_have_a_p_value_of_at_most_one():
    for seed in range(5):
        X = np.random.default_rng(seed).normal(size=(120, 3))
        assert 0.005 < check_sampling(X, np.arange(120) < 40).p_value <= 1.0


def test_an_alarm_needs_a_p_value_below_the_level(monkeypatch):
    rng = np.random.default_rng(0)
    X, labeled = rng.normal(size=(120, 3)), np.arange(120) < 40
    X[labeled, 0] += 1.0
    found = check_sampling(X, labeled)
    assert not found.safe
    monkeypatch.setattr(sampling_checks, "LEVEL", found.p_value)
    assert check_sampling(X, labeled).safe


def test_the_area_is_that_of_five_fold_cross_validation():
    rng = np.random.default_rng(1)
    rows, is_labeled = rng.integers(4, size=(150, 3)).astype(float), rng.random(150) < 0.3
    rows[is_labeled, 0] += 1.0
    forest = ExtraTreesClassifier(25, max_depth=6, class_weight="balanced", random_state=0)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    areas = cross_val_score(forest, rows, is_labeled, cv=folds, scoring="roc_auc")
    area, z = told_apart(rows, is_labeled, 0)
    assert area == pytest.approx(areas.mean())
    scores = cross_val_predict(forest, rows, is_labeled, cv=folds, method="predict_proba")[:, 1]
    of_folds = [
        reference.mann_whitney(scores[test], is_labeled[test])
        for _, test in folds.split(rows, is_labeled)
    ]
    assert z == pytest.approx(sum(of_folds) / np.sqrt(5))  # of variance 1 if they are independent


class Forest:
    """Stands for told_apart: says what it is told to say, and keeps the rows that it is shown."""

    def __init__(self, monkeypatch, p_value):
        self.z = norm.isf(p_value)
        monkeypatch.setattr(sampling_checks, "told_apart", self)

    def __call__(self, rows, is_labeled, random_state):
        self.rows, self.is_labeled = rows, is_labeled
        return 0.7, self.z


@pytest.mark.parametrize(("p_value", "safe"), [(0.6, True), (0.003, True), (0.0024, False)])
def test_an_alarm_of_the_forest_alone(monkeypatch, p_value, safe):
    """Columns that say nothing: its p-value counts twice, for two signs, and 0.5 % is the level."""
    Forest(monkeypatch, p_value)
    found = check_sampling(np.zeros((40, 2)), np.arange(40) < 20)
    assert found.safe == safe
    assert found.p_value == pytest.approx(min(1.0, 2 * p_value))
    assert found.auc == 0.7
    assert found.columns == (() if safe else ("x0", "x1"))


def test_ten_rows_of_each_kind_are_enough():
    for n_labeled in (9, 31):
        found = check_sampling(np.zeros((40, 2)), np.arange(40) < n_labeled)
        assert np.isnan(found.auc)
        assert found == (True, found.auc, 1.0, (), ())
    for n_labeled in (10, 30):
        assert check_sampling(np.zeros((40, 2)), np.arange(40) < n_labeled).auc == 0.5


def test_so_many_rows_and_columns_are_looked_at(monkeypatch):
    forest = Forest(monkeypatch, 0.5)
    X = np.arange(60.0)[:, None] + 100.0 * np.arange(1002)
    labeled = np.arange(60) < 25
    check_sampling(X, labeled, max_rows=20)
    assert forest.rows.shape == (40, 1000)
    assert forest.is_labeled.tolist() == [True] * 20 + [False] * 20
    assert (forest.rows[forest.is_labeled] % 100 < 25).all()
    assert (forest.rows[~forest.is_labeled] % 100 >= 25).all()
    assert len(np.unique(forest.rows[:, 0])) == 40  # no row twice
    assert (np.diff(forest.rows, axis=1) >= 100).all()  # and no column
    check_sampling(X[:, :1000], labeled)
    assert forest.rows.shape == (60, 1000)
    assert (np.diff(forest.rows, axis=1) == 100).all()  # all of them, in their order
    check_sampling(X[:, :3], labeled, max_rows=30, unlabeled_weight=np.arange(35) == 4)
    assert (
        forest.rows[25:, 0].tolist() == [29.0] * 30
    )  # the only row with a weight, again and again


def test_the_three_columns_that_differ_most_are_named_and_no_others():
    rng = np.random.default_rng(0)
    X, labeled = rng.normal(size=(300, 6)), np.arange(300) < 100
    X[labeled] += [0.0, 1.2, 3.0, 0.0, 2.0, 0.9]
    assert check_sampling(X, labeled).columns == ("x2", "x4", "x1")
    assert check_sampling(X[:, [0, 2, 3]], labeled, feature_names="abc").columns == ("b",)
    at_the_level = sampling_checks._names(
        np.arange(2), np.array([3, 4]), np.array([0, 0.005]), None
    )
    assert at_the_level == ("x0",)


def test_a_missing_value_is_lower_than_all_others():
    X = np.array([[5.0, np.nan], [6.0, -2.0], [np.nan, 7.0]])
    found = sampling_checks._dense(X, np.array([0, 2, 1]), np.array([1, 0]))
    assert found.tolist() == [[-3.0, 5.0], [7.0, -3.0], [-2.0, 6.0]]


def test_a_shift_that_no_single_column_shows_is_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2))
    labeled = (X[:, 0] * X[:, 1] > 0) & (rng.random(1000) < 0.3)
    found = check_sampling(X, labeled)
    assert not found.safe
    assert found.auc > 0.6


def test_missing_values_and_sparse_rows_are_compared_too():
    rng = np.random.default_rng(0)
    X, labeled = rng.normal(size=(400, 4)), np.arange(400) < 80
    sparse = X.copy()
    X[labeled & (rng.random(400) < 0.7), 2] = np.nan
    assert check_sampling(X, labeled).columns == ("x2",)
    sparse[labeled, 3] = 0.0
    assert not check_sampling(csr_array(sparse), labeled).safe


def test_class_shares_can_be_made_alike():
    """Ten of each class where one class has 90 %: a shift, but not within the classes."""
    rng = np.random.default_rng(0)
    truth = (rng.random(1000) < 0.1).astype(int)
    X = rng.normal(size=(1000, 3)) + 2.0 * truth[:, None]
    labeled = np.zeros(1000, dtype=bool)
    for c in (0, 1):
        labeled[rng.choice(np.flatnonzero(truth == c), 25, replace=False)] = True
    assert not check_sampling(X, labeled).safe
    weight = np.where(truth[~labeled] == 0, 0.5 / 0.9, 0.5 / 0.1)
    assert check_sampling(X, labeled, unlabeled_weight=weight).safe


def test_too_few_rows_say_nothing():
    found = check_sampling(np.zeros((20, 2)), np.arange(20) < 5)
    assert found.safe
    assert np.isnan(found.auc)


def test_constant_columns_say_nothing():
    assert check_sampling(np.zeros((100, 3)), np.arange(100) < 30).safe


def test_classes_with_one_label_are_told():
    assert "2 of 5" in class_notes(np.array([0, 0, 0, 1, 2]))[0]
    assert class_notes(np.array([], dtype=int)) == ()
    assert class_notes(np.r_[np.zeros(99, dtype=int), 1]) == ()
    assert class_notes(np.array([0, 0, 0, 1])) == ()  # one may be by chance
    three = np.arange(1, 4)  # classes with one row: 5 % of the labels are enough, 4.9 % are not
    assert class_notes(np.r_[np.zeros(57, dtype=int), three])
    assert class_notes(np.r_[np.zeros(58, dtype=int), three]) == ()
