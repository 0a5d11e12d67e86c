"""QN-S3VM against its objective, its gradient and problems whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import check_grad, minimize
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel

from fewlabel import QNS3VMClassifier
from fewlabel.baselines.qns3vm import _Machine
from reference import s3vm_kernel_objective, s3vm_objective

seeds = st.integers(0, 2**32 - 1)


def machine(rng, *, n_labeled=6, n_unlabeled=9, d=3, n_machines=2, lam=0.05):
    labeled, unlabeled = rng.normal(size=(n_labeled, d)), rng.normal(size=(n_unlabeled, d))
    signs = rng.choice([-1.0, 1.0], size=(n_labeled, n_machines))
    return _Machine(labeled, unlabeled, signs, unlabeled.mean(axis=0), lam)


@given(seeds)
def test_objective_is_the_sum_over_the_machines(seed):
    rng = np.random.default_rng(seed)
    problem = machine(rng)
    W = rng.normal(size=(3, 2))
    value, _ = problem.objective(W.ravel(), 0.3)
    expected = sum(
        s3vm_objective(W[:, k], problem.labeled, problem.signs[:, k], problem.unlabeled, 0.05, 0.3)
        for k in range(2)
    )
    assert value == pytest.approx(expected, rel=1e-10)


@given(seeds, st.sampled_from([0.0, 0.3, 10.0]))
def test_gradient_against_finite_differences(seed, lam_u):
    rng = np.random.default_rng(seed)
    problem = machine(rng)
    w = rng.normal(size=6)
    error = check_grad(
        lambda v: problem.objective(v, lam_u)[0], lambda v: problem.objective(v, lam_u)[1], w
    )
    assert error < 1e-5 * (1 + np.linalg.norm(problem.objective(w, lam_u)[1]))


def test_sparse_rows_have_the_same_objective_and_gradient():
    problem = machine(np.random.default_rng(0))
    same = _Machine(
        sparse.csr_array(problem.labeled),
        sparse.csr_array(problem.unlabeled),
        problem.signs,
        problem.center,
        problem.lam,
    )
    w = np.random.default_rng(1).normal(size=6)
    for dense, from_sparse in zip(problem.objective(w, 0.3), same.objective(w, 0.3)):
        np.testing.assert_allclose(from_sparse, dense, rtol=1e-12)


def test_no_overflow_far_from_the_optimum():
    problem = machine(np.random.default_rng(0))
    value, gradient = problem.objective(np.full(6, 1e6), 0.3)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


def one_dimensional(seed=0, n=100):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) + np.repeat([[-1.0], [1.0]], n // 2, axis=0)
    y = np.full(n, -1)
    y[[0, 1, n - 2, n - 1]] = 0, 0, 1, 1
    return X, y


def test_balancing_constraint():
    X, y = one_dimensional()
    y[2] = 0  # three labels against two
    clf = QNS3VMClassifier().fit(X, y)
    assert clf.decision_function(X[y == -1]).mean() == pytest.approx(-0.2, abs=1e-9)


def test_supervised_machine_is_the_global_optimum():
    # Without unlabelled term the problem is convex: a general optimiser must agree.
    X, y = one_dimensional()
    clf = QNS3VMClassifier(lam=0.05, lam_u=0.0, tol=1e-8).fit(X, y)
    signs = 2.0 * y[y >= 0] - 1
    best = minimize(
        s3vm_objective, np.zeros(4), args=(X[y >= 0], signs, X[y == -1], 0.05, 0.0), tol=1e-10
    )
    assert clf.objective_ == pytest.approx(best.fun, rel=1e-6)
    np.testing.assert_allclose(clf.coef_.ravel(), best.x, atol=1e-3)


def test_classes_do_not_influence_each_other():
    # The joint optimisation of a convex problem must find each machine's own optimum.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), np.arange(60) % 3
    X[:, 0] += 2 * y
    together = QNS3VMClassifier(lam_u=0.0, tol=1e-8).fit(X, y)
    for c in range(3):
        alone = QNS3VMClassifier(lam_u=0.0, tol=1e-8).fit(X, np.where(y == c, 1, 0))
        np.testing.assert_allclose(together.coef_[c], alone.coef_[0], atol=1e-4)


def test_result_is_a_stationary_point_of_the_literal_objective():
    X, y = one_dimensional()
    clf = QNS3VMClassifier(lam=0.05, lam_u=0.2, tol=1e-7).fit(X, y)
    args = (X[y >= 0], 2.0 * y[y >= 0] - 1, X[y == -1], 0.05, 0.2)
    here = s3vm_objective(clf.coef_[0], *args)
    assert here == pytest.approx(clf.objective_, rel=1e-9)
    for step in np.vstack([np.eye(4), -np.eye(4)]) * 1e-3:
        assert s3vm_objective(clf.coef_[0] + step, *args) > here


def test_rbf_with_all_rows_is_the_kernel_expansion():
    X, y = one_dimensional(n=40)
    clf = QNS3VMClassifier("rbf", gamma=0.5, lam=0.05, lam_u=0.2, tol=1e-8, random_state=0)
    clf.fit(X, y)
    # The weights w of the features k(x, ·) K^(-1/2) are those of the expansion c = K^(-1/2) w.
    nystroem = clf._nystroem
    c = np.empty(40)
    c[nystroem.component_indices_] = nystroem.normalization_.T @ clf.coef_[0]
    labeled, unlabeled = np.flatnonzero(y >= 0), np.flatnonzero(y == -1)
    args = (rbf_kernel(X, gamma=0.5), labeled, 2.0 * y[labeled] - 1, unlabeled, 0.05, 0.2)
    here = s3vm_kernel_objective(c, *args)
    assert here == pytest.approx(clf.objective_, rel=1e-8)
    rng = np.random.default_rng(0)
    for _ in range(5):
        assert s3vm_kernel_objective(c + 1e-3 * rng.normal(size=40), *args) > here


def test_unlabelled_rows_move_the_boundary_to_the_gap():
    # Two clusters stretched along the second axis; the labels alone suggest a tilted boundary.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)) * [0.2, 1.0]
    X[:200, 0] -= 1
    X[200:, 0] += 1
    truth = np.repeat([0, 1], 200)
    X[0], X[200] = (-1, -1.5), (1, 1.5)
    y = np.full(400, -1)
    y[[0, 200]] = 0, 1
    supervised = QNS3VMClassifier(lam_u=0.0, random_state=0).fit(X, y)
    semi = QNS3VMClassifier(lam_u=1.0, random_state=0).fit(X, y)
    assert (supervised.transduction_ == truth).mean() < 0.85
    assert (semi.transduction_ == truth).mean() > 0.99


def test_two_moons_with_the_rbf_kernel():
    X, truth = make_moons(300, noise=0.05, random_state=0)
    y = np.full(300, -1)
    for c in (0, 1):
        y[np.flatnonzero(truth == c)[:6]] = c
    clf = QNS3VMClassifier("rbf", gamma=5.0, lam=1e-4, lam_u=0.1, random_state=0).fit(X, y)
    linear = QNS3VMClassifier(random_state=0).fit(X, y)
    assert (clf.transduction_ == truth).mean() > 0.97
    assert (linear.transduction_ == truth).mean() < 0.95


def test_votes_are_better_than_an_arbitrary_temperature():
    X, y = one_dimensional(n=400)
    truth = np.repeat([0, 1], 200)
    y[::10] = truth[::10]
    clf = QNS3VMClassifier(random_state=0).fit(X, y)
    calibrated = log_loss(truth, clf.predict_proba(X))
    for factor in (0.2, 5.0):
        f = clf.decision_function(X) / (clf.temperature_ * factor)
        other = log_loss(truth, 1 / (1 + np.exp(-2 * f)))
        assert calibrated < other


def test_one_label_of_a_class_does_not_flatten_the_votes():
    """Its fold knows nothing of the class: that is no reason to doubt all votes."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(-2, 0.5, (50, 2)), rng.normal(2, 0.5, (50, 2))])
    y = np.full(100, -1)
    y[0], y[50] = 0, 1
    model = QNS3VMClassifier(random_state=0).fit(X, y)
    assert model.temperature_ == 1.0
    assert model.predict_proba(X).max(axis=1).mean() > 0.6


def test_nystroem_with_fewer_rows_comes_close():
    X, truth = make_moons(300, noise=0.05, random_state=0)
    y = np.where(np.arange(300) < 30, truth, -1)
    few, full = (
        QNS3VMClassifier("rbf", gamma=5.0, n_components=k, random_state=0).fit(X, y)
        for k in (80, 300)
    )
    assert few.coef_.shape == (1, 80)
    assert (few.transduction_ == full.transduction_).mean() > 0.97


def test_warns_when_it_stops_early():
    X, y = one_dimensional()
    with pytest.warns(ConvergenceWarning, match="Scale the features"):
        QNS3VMClassifier(max_iter=1).fit(X, y)
