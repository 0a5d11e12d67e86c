"""More columns than rows: the n × n side gives what the d × d side gives."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from fewlabel import QNS3VMClassifier, SemiLDAClassifier
from fewlabel.baselines import qns3vm, semi_lda
from fewlabel.baselines._wide import (
    ScreenedClassifier,
    WideLDA,
    row_basis,
    spherical_shrinkage,
)
from fewlabel.ensemble.families import families_of


def wide(n=40, d=120, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % classes
    X = rng.normal(size=(n, d)) * rng.uniform(0.5, 3.0, d)
    X[:, :20] += rng.normal(scale=2.0, size=(classes, 20))[codes]
    return X, codes


@settings(max_examples=30, deadline=None)
@given(st.integers(3, 20), st.integers(2, 30), st.integers(0, 10**6))
def test_shrinkage_of_ledoit_and_wolf(n, d, seed):
    rows = np.random.default_rng(seed).normal(size=(n, d))
    expected = ledoit_wolf_shrinkage(rows, assume_centered=True)
    assert spherical_shrinkage(rows) == pytest.approx(expected, abs=1e-10)
    if d > n:
        inside = rows @ row_basis(rows)
        assert spherical_shrinkage(inside, d) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("d", [30, 120])
def test_lda_is_that_of_scikit_learn(classes, d):
    X, codes = wide(d=d, classes=classes)
    X[:, 5] = 1.0  # constant
    X[codes == 0, 6] = 2.0  # constant within a class
    ours, theirs = WideLDA().fit(X, codes), LinearDiscriminantAnalysis("lsqr", shrinkage="auto")
    theirs.fit(X, codes)
    new, _ = wide(d=d, seed=1)
    np.testing.assert_allclose(ours.predict_proba(new), theirs.predict_proba(new), atol=1e-6)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-4)


@pytest.mark.parametrize("shrinkage", ["auto", 0.3])
def test_semi_lda_is_the_same_on_both_sides(shrinkage, monkeypatch):
    X, codes = wide()
    y = np.where(np.arange(40) < 18, codes, -1)
    small = SemiLDAClassifier(shrinkage=shrinkage).fit(X, y)
    assert small.model_.covariance.shape == (40, 40)
    monkeypatch.setattr(semi_lda, "row_basis", lambda rows: np.eye(rows.shape[1]))
    full = SemiLDAClassifier(shrinkage=shrinkage).fit(X, y)
    assert full.model_.covariance.shape == (120, 120)
    assert small.shrinkage_ == pytest.approx(full.shrinkage_)
    assert small.worst_case_gain_ == pytest.approx(full.worst_case_gain_, rel=1e-3)
    np.testing.assert_allclose(small.predict_proba(X), full.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("classes", [2, 3])
def test_s3vm_is_the_same_on_both_sides(classes, monkeypatch):
    X, codes = wide(classes=classes)
    X /= np.abs(X).max(axis=0)
    y = np.where(np.arange(40) < 15, codes, -1)
    small = QNS3VMClassifier(random_state=0, tol=1e-6).fit(X, y)
    monkeypatch.setattr(qns3vm, "row_basis", lambda rows: np.eye(rows.shape[1]))
    full = QNS3VMClassifier(random_state=0, tol=1e-6).fit(X, y)
    assert small.coef_.shape == full.coef_.shape
    assert small.objective_ == pytest.approx(full.objective_, rel=1e-4)
    np.testing.assert_allclose(
        small.decision_function(X), full.decision_function(X), atol=1e-2, rtol=1e-2
    )


def test_many_columns_take_seconds():
    X, codes = wide(200, 5000, 4)
    y = np.where(np.arange(200) < 60, codes, -1)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    start = time.process_time()
    WideLDA().fit(X[:60], y[:60])
    SemiLDAClassifier(max_iter=100, tol=1e-2).fit(X, y)
    QNS3VMClassifier(tol=1e-3, random_state=0).fit(X / np.abs(X).max(axis=0), y)
    assert time.process_time() - start < 30.0  # hundreds with the d × d side


def test_screening_finds_the_columns_that_tell_the_classes_apart():
    rng = np.random.default_rng(0)
    codes = np.arange(120) % 3
    X = rng.normal(size=(120, 2_000))
    X[:, :15] += rng.normal(scale=1.5, size=(3, 15))[codes]
    X[:, 500] = 1.0  # a constant column has no F statistic
    train, test = np.arange(120) < 60, np.arange(120) >= 60
    screened = ScreenedClassifier(WideLDA(), 30).fit(X[train], codes[train])
    assert len(screened.columns_) == 30
    assert 500 not in screened.columns_
    assert len(set(screened.columns_) & set(range(15))) >= 10
    whole = WideLDA().fit(X[train], codes[train])
    assert screened.score(X[test], codes[test]) > whole.score(X[test], codes[test]) + 0.1
    sparse = ScreenedClassifier(WideLDA(), 30).fit(csr_array(X[train]), codes[train])
    np.testing.assert_allclose(
        sparse.predict_proba(csr_array(X[test])), screened.predict_proba(X[test])
    )


def test_wide_tables_get_a_family_that_screens():
    names = [family.name for family in families_of("default", n_columns=601, n_labeled=60)]
    assert names[-1] == "screened_lda"
    assert families_of("default", n_columns=600, n_labeled=60) == families_of("default")
