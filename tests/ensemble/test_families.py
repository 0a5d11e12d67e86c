"""Families of voters by name, and their scales."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from fewlabel.ensemble.families import FAMILIES, RangeScaler, families_of

# --- names ---------------------------------------------------------------------------------------


def test_default_is_every_family():
    assert [f.name for f in families_of("default")] == list(FAMILIES)


def test_names_estimators_and_pairs():
    found = families_of(["svm", GaussianNB(), ("ridge", RidgeClassifier())])
    assert [f.name for f in found] == ["svm", "gaussiannb", "ridge"]
    # Only scores that are no probabilities are calibrated.
    assert [f.calibrated for f in found] == [True, False, True]


@pytest.mark.parametrize(
    ("voters", "message"),
    [
        (["no such"], "no family 'no such'.*forest"),
        ([], "one or more families"),
        (["svm", "svm"], "different names"),
        ([GaussianNB(), GaussianNB()], "pair"),
        ([GaussianNB], "unfitted classifier"),
        ([3], "unfitted classifier"),
    ],
)
def test_bad_voters_are_named(voters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        families_of(voters)


# --- scales --------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1))
def test_range_scaler_is_min_max_without_zeros_and_ones(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(12, 4)) * 10.0 ** rng.integers(-3, 4, size=4)
    values[:, 3] = rng.integers(0, 2, size=12)
    scaled = RangeScaler().fit_transform(values)
    expected = MinMaxScaler((-1, 1)).fit_transform(values[:, :3])
    np.testing.assert_allclose(scaled[:, :3], expected, atol=1e-9)
    np.testing.assert_array_equal(scaled[:, 3], values[:, 3])


def test_range_scaler_on_odd_columns():
    values = np.array([[5.0, np.nan, 1.0], [5.0, np.nan, np.nan], [5.0, np.nan, 0.0]])
    scaled = RangeScaler().fit_transform(values)
    np.testing.assert_array_equal(scaled[:, 0], 0.0)  # constant
    assert np.isnan(scaled[:, 1]).all()
    np.testing.assert_array_equal(scaled[:, 2], values[:, 2])


def test_range_scaler_keeps_sparse_rows_sparse():
    values = sparse.csr_array(np.array([[0.0, -4.0], [3.0, 0.0], [0.0, 2.0]]))
    scaled = RangeScaler().fit_transform(values)
    assert sparse.issparse(scaled)
    np.testing.assert_allclose(scaled.toarray(), [[0, -1], [1, 0], [0, 0.5]])


def test_an_estimator_of_the_users_is_cloned():
    model = LogisticRegression()
    family = families_of([model])[0]
    made = family.make(0, None)
    assert made is not model
    assert isinstance(FAMILIES["svm"].make(0, None), SVC)
