"""Semi-LDA against its likelihood, its guarantee and scikit-learn's discriminant analysis."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.datasets import make_blobs
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning

from fewlabel import SemiLDAClassifier
from fewlabel.baselines.semi_lda import _Contrast, project_to_simplex, weighted_lda
from reference import lda_likelihood

seeds = st.integers(0, 2**32 - 1)


def problem(seed, *, n=80, d=3, n_classes=3, per_class=6, spread=2.0):
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n) % n_classes)
    X = rng.normal(size=(n, d)) + spread * rng.normal(size=(n_classes, d))[truth]
    y = np.full(n, -1)
    for c in range(n_classes):
        y[np.flatnonzero(truth == c)[:per_class]] = c
    return X, y, truth


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def likelihood(model, X, q):
    return lda_likelihood(standardised(X), q, model.priors, model.means, model.covariance)


@given(seeds)
def test_likelihood_on_the_true_labels_is_never_below_the_supervised_one(seed):
    # Without shrinkage the guarantee is about the likelihood itself. It holds at the optimum, and
    # the certificate `worst_case_gain_` says when the optimum is near enough.
    X, y, truth = problem(seed)
    clf = SemiLDAClassifier(shrinkage=0.0, max_iter=5000).fit(X, y)
    q = np.eye(3)[truth]
    gain = likelihood(clf.model_, X, q) - likelihood(clf.supervised_model_, X, q)
    assert clf.worst_case_gain_ >= -1e-8
    assert gain >= clf.worst_case_gain_ - 1e-6


@given(seeds)
def test_guarantee_with_shrinkage_is_about_the_penalised_likelihood(seed):
    X, y, truth = problem(seed, d=8, per_class=2)
    clf = SemiLDAClassifier(max_iter=5000).fit(X, y)
    strength = 6 * clf.shrinkage_ / (1 - clf.shrinkage_)
    labeled, codes = standardised(X)[y >= 0], y[y >= 0]
    means = np.array([labeled[codes == c].mean(axis=0) for c in range(3)])
    variance = ((labeled - means[codes]) ** 2).mean()
    values = [
        lda_likelihood(
            standardised(X), np.eye(3)[truth], m.priors, m.means, m.covariance, strength, variance
        )
        for m in (clf.model_, clf.supervised_model_)
    ]
    assert clf.worst_case_gain_ >= -1e-8
    assert values[0] - values[1] >= clf.worst_case_gain_ - 1e-6


@given(seeds)
def test_worst_case_gain_is_the_minimum_over_all_labellings(seed):
    X, y, _ = problem(seed, n=24, per_class=4)
    clf = SemiLDAClassifier(shrinkage=0.0, max_iter=3).set_params(tol=1e9).fit(X, y)
    rng = np.random.default_rng(seed)
    for _ in range(10):
        q = np.eye(3)[np.where(y >= 0, y, rng.integers(3, size=len(y)))]
        gain = likelihood(clf.model_, X, q) - likelihood(clf.supervised_model_, X, q)
        assert gain >= clf.worst_case_gain_ - 1e-7


@given(seeds)
def test_weighted_lda_maximises_the_likelihood(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 2))
    q = rng.dirichlet(np.ones(3), size=30)
    best = weighted_lda(q.sum(axis=0), q.T @ X, X.T @ X, strength=4.0, variance=0.7)
    top = lda_likelihood(X, q, best.priors, best.means, best.covariance, 4.0, 0.7)
    for _ in range(10):
        priors = rng.dirichlet(300 * best.priors)
        means = best.means + 0.05 * rng.normal(size=best.means.shape)
        root = np.linalg.cholesky(best.covariance) @ (np.eye(2) + 0.05 * rng.normal(size=(2, 2)))
        assert lda_likelihood(X, q, priors, means, root @ root.T, 4.0, 0.7) < top


@given(seeds)
def test_gradient_is_that_of_the_contrast(seed):
    # Moving mass from class a to class b in one row changes L(θ|q) − L(θ_sup|q) by g_b − g_a.
    X, y, _ = problem(seed, n=20, per_class=4)
    Z = standardised(X)
    clf = SemiLDAClassifier(shrinkage=0.0).set_params(tol=1e9).fit(X, y)
    contrast = _Contrast(Z, y, clf.supervised_model_, 0.0, 1.0)
    q = contrast.initial_labels()
    model, gradient, _ = contrast.evaluate(q)

    def value(labels):
        full = contrast.full_labels(labels)
        return likelihood(model, X, full) - likelihood(clf.supervised_model_, X, full)

    moved = q.copy()
    moved[0] += [-0.01, 0.01, 0.0]
    expected = 0.01 * (gradient[0, 1] - gradient[0, 0])
    assert value(moved) - value(q) == pytest.approx(expected, abs=1e-7)


@given(seeds, st.integers(2, 5))
def test_projection_is_the_nearest_distribution(seed, n_classes):
    rng = np.random.default_rng(seed)
    rows = 2 * rng.normal(size=(3, n_classes))
    found = project_to_simplex(rows)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert (found >= 0).all()
    others = rng.dirichlet(np.ones(n_classes), size=200)
    for row, nearest in zip(rows, found):
        # A point is the projection iff ⟨row − nearest, p − nearest⟩ ≤ 0 for every distribution p.
        assert ((others - nearest) @ (row - nearest)).max() <= 1e-9


def test_one_optimum_by_any_route():
    X, y, _ = problem(1)
    adaptive = SemiLDAClassifier(tol=1e-6, max_iter=20_000).fit(X, y)
    fixed = SemiLDAClassifier(0.3, tol=1e-5, max_iter=50_000).fit(X, y)
    assert adaptive.worst_case_gain_ == pytest.approx(fixed.worst_case_gain_, abs=1e-2)
    np.testing.assert_allclose(adaptive.model_.means, fixed.model_.means, atol=1e-2)


def test_optimum_equals_that_of_a_general_optimiser():
    X, y, _ = problem(2, n=14, per_class=3, d=2, n_classes=2)
    clf = SemiLDAClassifier(shrinkage=0.0, tol=1e-9, max_iter=50_000).fit(X, y)
    contrast = _Contrast(standardised(X), y, clf.supervised_model_, 0.0, 1.0)
    free = np.flatnonzero(y == -1)

    def largest_over_theta(p):  # convex in p: its minimum is the value of the game
        q = np.c_[p, 1 - p]
        model = contrast.evaluate(q)[0]
        full = contrast.full_labels(q)
        return likelihood(model, X, full) - likelihood(clf.supervised_model_, X, full)

    start = np.full(len(free), 0.5)
    found = minimize(largest_over_theta, start, bounds=[(0, 1)] * len(free), tol=1e-12)
    assert clf.worst_case_gain_ == pytest.approx(found.fun, abs=1e-4)


def test_supervised_model_is_scikit_learns():
    X, y, _ = problem(0)
    clf = SemiLDAClassifier(shrinkage=0.0).fit(X, y)
    lda = LinearDiscriminantAnalysis("lsqr").fit(standardised(X)[y >= 0], y[y >= 0])
    coef, intercept = clf.supervised_model_.discriminants()
    ours = standardised(X) @ coef + intercept
    np.testing.assert_allclose(ours, lda.decision_function(standardised(X)), atol=1e-8)


@pytest.mark.parametrize("constant", [0.1, 0.7, 1 / 3, 1e-3, 1e6])
def test_a_constant_feature_plays_no_part(constant):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(-2, 1, (500, 2)), rng.normal(2, 1, (500, 2))])
    y = np.full(1000, -1)
    y[:5], y[500:505] = 0, 1
    without = SemiLDAClassifier(max_iter=20).fit(X, y)
    wide = np.hstack([X, np.full((1000, 1), constant)])
    model = SemiLDAClassifier(max_iter=20).fit(wide, y)
    assert np.abs(model.coef_).max() < 100
    assert (model.predict(wide) == without.predict(X)).mean() > 0.99


def test_units_of_the_features_do_not_matter():
    X, y, _ = problem(0, d=8, per_class=2)
    rescaled = SemiLDAClassifier().fit(X * 10.0 ** np.arange(8) + 5, y)
    np.testing.assert_allclose(
        rescaled.predict_proba(X * 10.0 ** np.arange(8) + 5),
        SemiLDAClassifier().fit(X, y).predict_proba(X),
        atol=1e-4,
    )


def test_unlabelled_rows_help_where_the_covariance_is_hard_to_see():
    # Long thin classes in 10 dimensions: 11 labels a class do not show the covariance.
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(10, 10)) * np.geomspace(1, 30, 10)
    X, truth = make_blobs(2000, centers=4 * np.eye(2, 10), cluster_std=1.0, random_state=0)
    X = X @ mixing
    y = np.full(2000, -1)
    for c in (0, 1):
        y[np.flatnonzero(truth == c)[:11]] = c
    clf = SemiLDAClassifier(shrinkage=0.0, max_iter=5000).fit(X, y)
    lda = LinearDiscriminantAnalysis("lsqr").fit(X[y >= 0], y[y >= 0])
    best = (LinearDiscriminantAnalysis().fit(X, truth).predict(X) == truth).mean()
    supervised = (lda.predict(X) == truth).mean()
    semi = (clf.predict(X) == truth).mean()
    assert supervised < semi <= best + 0.005


def test_labelled_rows_only_is_supervised_analysis():
    X, _, truth = problem(0)
    clf = SemiLDAClassifier(shrinkage=0.0).fit(X, truth)
    np.testing.assert_allclose(clf.model_.means, clf.supervised_model_.means)
    assert clf.gap_ == 0.0


def test_more_features_than_labels_needs_shrinkage():
    X, y, _ = problem(0, d=30, per_class=2)
    with pytest.raises(ValueError, match=r"singular with shrinkage=0\.0\. Use shrinkage='auto'"):
        SemiLDAClassifier(shrinkage=0.0).fit(X, y)
    assert SemiLDAClassifier().fit(X, y).shrinkage_ > 0.1


def test_warns_when_it_stops_early():
    X, y, _ = problem(0)
    with pytest.warns(ConvergenceWarning, match="with a gap of"):
        SemiLDAClassifier(1e-6, max_iter=2).fit(X, y)
