"""Label spreading: its limit, rows that no label reaches, size, and scikit-learn's version."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors
from sklearn.semi_supervised import LabelSpreading

from fewlabel import LabelSpreadingClassifier
from fewlabel.baselines._graph import normalised_graph
from fewlabel.baselines.label_spreading import _DENSE_MATRICES, spread
from reference import label_spreading_limit

seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.sampled_from([0.2, 0.9]))
def test_spreading_reaches_the_literal_limit(seed, alpha):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 2))
    y = np.full(30, -1)
    y[:6] = np.arange(6) % 3
    clf = LabelSpreadingClassifier(n_neighbors=4, alpha=alpha, tol=1e-9, max_iter=5000).fit(X, y)
    neighbors = NearestNeighbors(n_neighbors=4).fit(X).kneighbors(return_distance=False)
    F = label_spreading_limit(neighbors, y, 3, alpha)
    reached = F.sum(axis=1) > 1e-12
    expected = F[reached] / F[reached].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(clf.label_distributions_[reached], expected, atol=1e-5)


def test_graph_is_symmetric_and_does_not_expand():
    rng = np.random.default_rng(0)
    graph = NearestNeighbors(n_neighbors=3).fit(rng.normal(size=(50, 2))).kneighbors_graph()
    S = normalised_graph(graph).toarray()
    np.testing.assert_allclose(S, S.T)
    assert np.abs(np.linalg.eigvalsh(S)).max() <= 1 + 1e-12


def test_isolated_rows_do_no_harm():
    S = normalised_graph(sparse.csr_matrix((3, 3)))
    F, _, converged = spread(S, np.eye(3)[:, :2], alpha=0.9, max_iter=5, tol=1e-3)
    assert converged
    assert np.isfinite(F).all()


@pytest.mark.parametrize("kernel", ["knn", "rbf"])
def test_unreached_rows_get_the_class_prior(kernel):
    # A far cluster without any label, and a new row infinitely far in floating point.
    X, _ = make_blobs([20, 20, 20], centers=[[0, 0], [9, 0], [1e4, 1e4]], random_state=0)
    truth = np.repeat([0, 1, 2], 20)
    order = np.argsort(np.hypot(*X.T) > 1e3, kind="stable")
    X = X[order]
    y = np.full(60, -1)
    near = X[:, 0] < 5
    y[np.flatnonzero(near & (np.arange(60) < 40))[:3]] = 0
    y[np.flatnonzero(~near & (np.arange(60) < 40))[:1]] = 1
    clf = LabelSpreadingClassifier(kernel, n_neighbors=5, gamma=1.0).fit(X, y)
    assert truth.size == 60
    assert clf.n_unreached_ == 20
    np.testing.assert_allclose(clf.label_distributions_[40:], [[0.75, 0.25]] * 20)
    new = clf.predict_proba([[1e4, 1e4], [-1e8, 3.0], [0.0, 0.0]])
    assert np.isfinite(new).all()
    np.testing.assert_allclose(new[0], [0.75, 0.25])
    assert new[2, 0] > 0.9


@pytest.mark.parametrize("kernel", ["knn", "rbf"])
def test_two_moons_with_one_label_each(kernel):
    X, truth = make_moons(300, noise=0.05, random_state=0)
    y = np.full(300, -1)
    y[[np.flatnonzero(truth == 0)[0], np.flatnonzero(truth == 1)[0]]] = 0, 1
    clf = LabelSpreadingClassifier(kernel, alpha=0.99, gamma=50.0, max_iter=3000).fit(X, y)
    assert (clf.transduction_ == truth).mean() == 1.0
    new, new_truth = make_moons(300, noise=0.05, random_state=1)
    assert (clf.predict(new) == new_truth).mean() > 0.99


def test_rbf_is_scikit_learns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = np.where(np.arange(80) < 10, np.arange(80) % 2, -1)
    ours = LabelSpreadingClassifier("rbf", gamma=0.7, alpha=0.2).fit(X, y)
    theirs = LabelSpreading("rbf", gamma=0.7, alpha=0.2, max_iter=200).fit(X, y)
    np.testing.assert_allclose(ours.label_distributions_, theirs.label_distributions_)
    new = rng.normal(size=(20, 3))
    np.testing.assert_allclose(ours.predict_proba(new), theirs.predict_proba(new))


def test_dense_version_is_refused_before_it_allocates():
    X = np.zeros((70_000, 2), dtype=np.float32)
    X[::2] = 1
    y = np.full(70_000, -1)
    y[:2] = 0, 1
    clf = LabelSpreadingClassifier("rbf", memory_limit=24)
    with pytest.raises(MemoryError, match=r"about 110 GiB for 3 .* 70000 × .* Use kernel='knn'"):
        clf.fit(X, y)
    # The same limit lets what fits pass.
    clf.fit(X[:100], y[:100])


def peak_bytes(model, n):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 5)), np.full(n, -1)
    y[:10] = np.arange(10) % 2
    tracemalloc.start()
    try:
        model.fit(X, y)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_estimate_of_the_dense_version_is_what_it_takes():
    n = 1500
    needed = peak_bytes(LabelSpreadingClassifier("rbf", gamma=0.5, alpha=0.2), n)
    assert needed / (8 * n**2) == pytest.approx(_DENSE_MATRICES, rel=0.1)


def test_memory_of_the_graph_is_linear():
    small, large = (peak_bytes(LabelSpreadingClassifier(), n) for n in (2000, 16_000))
    assert large < 8 * 1.5 * small
    assert large < 0.05 * 8 * 16_000**2


def test_wide_data_is_projected_and_sparse_data_stays_sparse():
    rng = np.random.default_rng(0)
    centers = 3 * rng.normal(size=(3, 200))
    truth = np.arange(300) % 3
    X = rng.normal(size=(300, 200)) + centers[truth]
    y = np.where(np.arange(300) < 9, truth, -1)
    dense = LabelSpreadingClassifier(random_state=0).fit(X, y)
    assert dense._projection.n_components_ == 50
    assert (dense.transduction_ == truth).all()
    from_sparse = LabelSpreadingClassifier(random_state=0).fit(sparse.csr_array(X), y)
    assert (from_sparse.transduction_ == truth).all()
    everything = LabelSpreadingClassifier(n_components=None).fit(X, y)
    assert everything._projection is None


def test_warns_when_it_stops_early():
    X, truth = make_moons(200, noise=0.05, random_state=0)
    y = np.where(np.arange(200) < 4, truth, -1)
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        LabelSpreadingClassifier(alpha=0.99, max_iter=3).fit(X, y)


def test_respread_is_a_fit_on_the_same_rows():
    X, truth = make_moons(120, noise=0.1, random_state=0)
    first, second = np.full(120, -1), np.full(120, -1)
    first[:10], second[40:60] = truth[:10], truth[40:60]
    fitted = LabelSpreadingClassifier().fit(X, first)
    before = fitted.label_distributions_.copy()
    again, anew = fitted.respread(second), LabelSpreadingClassifier().fit(X, second)
    np.testing.assert_array_equal(again.label_distributions_, anew.label_distributions_)
    np.testing.assert_array_equal(again.transduction_, anew.transduction_)
    np.testing.assert_array_equal(again.predict_proba(X[:5]), anew.predict_proba(X[:5]))
    np.testing.assert_array_equal(fitted.label_distributions_, before)


def test_respread_needs_the_rows_of_fit():
    X, truth = make_moons(40, random_state=0)
    with pytest.raises(ValueError, match="the 40 rows of fit"):
        LabelSpreadingClassifier().fit(X, truth).respread(truth[:7])
    dense = LabelSpreadingClassifier("rbf", gamma=1.0).fit(X, truth)
    with pytest.raises(AttributeError, match="no attribute 'respread'") as told:
        dense.respread(truth)
    assert "graph of 'knn' or 'local'" in str(told.value.__cause__)
    assert not hasattr(dense, "held_out_votes")
