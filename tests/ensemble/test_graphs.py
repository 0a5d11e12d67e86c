"""Label spreading in learned metrics: metrics, anchors, neighbours, held-out votes."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from fewlabel import FewLabelClassifier, LabelSpreadingClassifier
from fewlabel.assess.held_out import folds_of
from fewlabel.baselines import _graph, _inverted_index, label_spreading
from fewlabel.baselines._graph import nearest
from fewlabel.ensemble.families import FAMILIES
from fewlabel.ensemble.family_trainer import FamilyTrainer
from fewlabel.ensemble.graphs import (
    Discriminants,
    LeafProximity,
    MetricSpreadingClassifier,
    local_spreading,
    right_singular_vectors,
)
from reference import local_spreading_limit, reach

X, Y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
LABELED = np.random.default_rng(1).permutation(len(Y))[:30]
CODES = np.full(len(Y), -1)
CODES[LABELED] = Y[LABELED]
GRAPHS = [family for family in FAMILIES.values() if family.graph]


@given(st.integers(0, 2**32 - 1))
def test_local_weights_and_balance_are_the_literal_ones(seed):
    rng = np.random.default_rng(seed)
    rows, y = rng.normal(size=(30, 2)), np.full(30, -1)
    y[:6] = [0, 0, 0, 1, 1, 2]
    clf = LabelSpreadingClassifier("local", n_neighbors=4, balanced=True, tol=1e-9, max_iter=5000)
    expected = local_spreading_limit(rows, y, 3, k=4, alpha=0.9)
    reached = expected.sum(axis=1) > 1e-12
    found = clf.fit(rows, y).label_distributions_[reached]
    shares = expected[reached] / expected[reached].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, shares, atol=1e-5)


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize(("tolerance", "far"), [(1e-7, 1e-5), (None, 2e-3)])
def test_held_out_votes_are_those_of_labels_hidden_one_fold_at_a_time(
    balanced, tolerance, far, monkeypatch
):
    if tolerance:
        monkeypatch.setattr(label_spreading, "_HELD_OUT_TOLERANCE", tolerance)
    monkeypatch.setattr(_graph, "_COLUMNS", 4)  # of 15: several blocks
    clf = LabelSpreadingClassifier("local", balanced=balanced, tol=1e-7, max_iter=1000)
    clf.fit(X, CODES)
    labeled = np.flatnonzero(CODES != -1)
    folds = folds_of(len(labeled), 5, 0)
    votes = clf.held_out_votes(folds)
    for train, test in folds:
        hidden = np.full(len(CODES), -1)
        hidden[labeled[train]] = CODES[labeled[train]]
        expected = clf.respread(hidden).label_distributions_[labeled[test]]
        np.testing.assert_allclose(votes[test], expected, rtol=0, atol=far)


def test_twins_have_no_scale_and_do_no_harm():
    rows = np.repeat([[0.0, 0.0], [1.0, 1.0]], 20, axis=0)
    y = np.full(40, -1)
    y[[0, 20]] = 0, 1
    clf = local_spreading().fit(rows, y)
    np.testing.assert_array_equal(clf.transduction_, np.repeat([0, 1], 20))
    np.testing.assert_allclose(clf.predict_proba([[1.0, 1.0]]), [[0.0, 1.0]])


def test_directions_without_spread_are_not_whitened():
    flat = np.c_[X, X[:, :2] @ [1.0, 2.0], np.ones(len(X))]
    clf = local_spreading(n_components=20, whiten=True).fit(flat, CODES)
    assert clf._projection.n_components_ == X.shape[1]
    np.testing.assert_allclose(clf._points.std(axis=0, ddof=1), 1.0)


# --- metrics -------------------------------------------------------------------------------------


def test_distances_of_class_means_are_mahalanobis():
    labeled = CODES != -1
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(X[labeled], Y[labeled])
    basis = Discriminants().fit(X, CODES).basis_
    assert basis.shape == (X.shape[1], 2)
    for a, b in ((0, 1), (0, 2), (1, 2)):
        between = lda.means_[a] - lda.means_[b]
        expected = between @ np.linalg.solve(lda.covariance_, between)
        assert ((between @ basis) ** 2).sum() == pytest.approx(expected, rel=1e-6)


def test_discriminants_of_two_classes_are_a_line():
    rows, labels = load_iris(return_X_y=True)
    codes = np.where(np.arange(150) % 5 == 0, labels, -1)
    codes[labels == 2] = -1
    basis = Discriminants().fit(rows, codes).basis_
    assert basis.shape == (4, 1)
    labeled = codes != -1
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    lda.fit(rows[labeled], codes[labeled])
    between = lda.means_[0] - lda.means_[1]
    expected = between @ np.linalg.solve(lda.covariance_, between)
    assert ((between @ basis) ** 2).sum() == pytest.approx(expected, rel=1e-6)


def test_discriminants_of_classes_that_overlap_and_of_equal_ones():
    rng = np.random.default_rng(0)
    codes = np.arange(60) % 2
    rows = rng.normal(size=(60, 2)) + 0.2 * codes[:, None]
    assert Discriminants().fit(rows, codes).basis_.shape == (2, 1)
    twins = np.repeat(rng.normal(size=(30, 2)), 2, axis=0)
    with pytest.raises(ValueError, match="no direction tells the classes apart"):
        Discriminants().fit(twins, codes)


def test_proximity_is_the_share_of_common_leaves():
    forest = ExtraTreesClassifier(20, random_state=0).fit(X[LABELED], Y[LABELED])
    metric = LeafProximity(forest, n_components=len(X)).fit(X, CODES)
    leaves = forest.apply(X)
    common = (leaves[:, None] == leaves[None]).sum(axis=2)
    Z = metric.transform(X)
    np.testing.assert_allclose(Z @ Z.T, common, atol=0.05)
    assert Z.shape[1] <= np.linalg.matrix_rank(common)  # twins have one coordinate
    # A new row is where it would have been.
    np.testing.assert_allclose(metric.transform(X[:3]), Z[:3], atol=1e-4)
    own = LeafProximity(n_trees=7).fit(X, CODES)
    assert 30 < own.transform(X).shape[1] <= 100


def test_a_new_row_in_leaves_that_no_row_was_in_is_near_nothing():
    forest = ExtraTreesClassifier(20, random_state=0).fit(X[LABELED], Y[LABELED])
    few = X[LABELED][:4]
    metric = LeafProximity(forest).fit(few, CODES[LABELED][:4])
    leaves = forest.apply(X)
    apart = ~(leaves[:, None] == forest.apply(few)[None]).any(axis=(1, 2))
    assert apart.any()
    np.testing.assert_array_equal(metric.transform(X)[apart], 0.0)


@given(st.integers(0, 2**32 - 1), st.integers(3, 40), st.integers(3, 40), st.integers(1, 8))
def test_singular_vectors_are_orthonormal_and_the_first_ones(seed, n, d, k):
    rng = np.random.default_rng(seed)
    # Singular values that halve: two steps suffice to find the first.
    left, right = (np.linalg.qr(rng.normal(size=(m, m)))[0] for m in (n, d))
    size = min(n, d)
    matrix = left[:, :size] * 0.5 ** np.arange(size) @ right[:size]
    vectors = right_singular_vectors(sparse.csr_array(matrix), k, random_state=0)
    assert vectors.shape == (d, min(k, size - 1))
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(vectors.shape[1]), atol=1e-6)
    np.testing.assert_allclose(np.abs(vectors[:, 0] @ right[0]), 1.0, atol=1e-2)
    caught = np.linalg.norm(matrix @ vectors) ** 2
    best = (0.25 ** np.arange(vectors.shape[1])).sum()
    assert 0.95 * best <= caught <= best + 1e-9


def proximity_votes(rows, codes):
    metric = LeafProximity(n_trees=20, random_state=0)
    return MetricSpreadingClassifier(metric, local_spreading()).fit(rows, codes)


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.integers(60, 120))
def test_the_order_of_rows_changes_votes_by_proximity_only_by_rounding(seed, n):
    rng = np.random.default_rng(seed)
    rows, order = rng.normal(size=(n, 4)), rng.permutation(n)
    classes = np.arange(n) % 3
    rows[:, 0] += 2 * classes
    codes = np.where(np.arange(n) < 20, classes, -1)
    one = proximity_votes(rows, codes)
    # Of rows in the same leaves, equally near to a third, any may be its last neighbour.
    assume(len(np.unique(one.metric_.forest_.apply(rows), axis=0)) == n)
    other = proximity_votes(rows[order], codes[order])
    np.testing.assert_allclose(
        other.label_distributions_, one.label_distributions_[order], rtol=0, atol=1e-8
    )
    np.testing.assert_allclose(
        other.predict_proba(rows[:9] + 0.1), one.predict_proba(rows[:9] + 0.1), rtol=0, atol=1e-8
    )


def test_the_forest_of_the_family_is_trained_once(monkeypatch):
    made = []
    fit = ExtraTreesClassifier.fit
    monkeypatch.setattr(
        ExtraTreesClassifier, "fit", lambda self, *a, **k: made.append(1) or fit(self, *a, **k)
    )
    for names in (["extra_trees", "spreading_forest"], ["spreading_forest"]):
        made.clear()
        FewLabelClassifier(names, random_state=0, max_iter=0).fit(X, CODES)
        assert len(made) == 1 + 5


def test_sparse_rows_spread_as_dense_ones_do():
    rows = np.where(X > 0.5, X, 0.0)
    voter = MetricSpreadingClassifier(LeafProximity(n_trees=20), local_spreading())
    dense = clone(voter).fit(rows, CODES).label_distributions_
    np.testing.assert_allclose(
        clone(voter).fit(sparse.csr_matrix(rows), CODES).label_distributions_, dense, atol=1e-9
    )
    assert get_tags(voter).input_tags.sparse


# --- reach ---------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(4, 25), st.floats(0.0, 1.0))
def test_reach_is_the_literal_one(seed, n, density):
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.random((n, n)) * (rng.random((n, n)) < density), 1)
    S = sparse.csr_matrix(weights + weights.T)
    codes = rng.permutation(np.concatenate([[0, 1, -1], rng.integers(-1, 2, n - 3)]))
    np.testing.assert_allclose(_graph.reach(S, codes), reach(S.toarray(), codes), atol=1e-12)


def test_reach_is_1_where_labels_are_random_and_0_where_they_stay_among_themselves():
    everyone = sparse.csr_matrix(1.0 - np.eye(12))
    np.testing.assert_allclose(_graph.reach(everyone, np.repeat([0, 1, -1], 4)), 1.0)
    apart = sparse.block_diag([1.0 - np.eye(5), 1.0 - np.eye(7)]).tocsr()
    np.testing.assert_array_equal(_graph.reach(apart, np.repeat([0, -1], [5, 7])), 0.0)
    np.testing.assert_array_equal(_graph.reach(sparse.csr_matrix((3, 3)), np.array([0, 1, -1])), 0)


@pytest.mark.parametrize(
    ("reach", "refused"),
    [
        ([0.0, 0.9], True),
        ([0.15, 0.8], True),
        ([0.2, 0.79], False),
        ([0.1, 0.1], False),
        ([0.15, 0.86], False),
        ([0.0, 0.0], True),
    ],
)
def test_classes_must_be_alike_where_labels_stay_among_themselves(reach, refused):
    clf = MetricSpreadingClassifier(Discriminants(), local_spreading())
    clf.reach_ = np.array(reach)
    with pytest.raises(ValueError, match="hardly reach") if refused else nullcontext():
        clf.require_reach()


def test_a_metric_that_knows_its_labelled_rows_by_heart_has_no_vote(monkeypatch):
    def by_heart(self, rows, codes):
        self.fit(rows, codes)
        return self.transform(rows) + 100.0 * np.isin(codes, [0, 1])[:, None]

    monkeypatch.setattr(Discriminants, "fit_transform", by_heart)
    clf = FewLabelClassifier(["spreading", "spreading_lda"], random_state=0)
    with pytest.warns(UserWarning, match="discriminants is left out: .* hardly reach"):
        clf.fit(X, CODES)
    given, learned = clf.voters_
    assert given.weight == 1.0
    assert "hardly reach" in learned.left_out
    # A trial of few rows tells the time, not whether the real graph will do.
    trainer = FamilyTrainer(X, CODES, 3, seed=0)
    assert trainer._expected_seconds(FAMILIES["spreading_lda"], 5_000) > 0
    clf.fit(X, np.where(np.arange(len(Y)) % 3 == 0, -1, Y))  # most rows are labelled
    assert not any(record.left_out for record in clf.voters_)


# --- anchors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", GRAPHS, ids=lambda f: f.name)
def test_a_sample_carries_the_graph_and_others_vote_by_their_neighbours(family):
    bench = FamilyTrainer(X, CODES, 3, seed=0)
    few = replace(family, learns_from=60, held_out_rows=40)
    voter = bench.train(few, bench.labeled, CODES[bench.labeled])
    assert len(voter.model.label_distributions_) == len(LABELED) + 60
    carriers = np.concatenate([bench.labeled, np.sort(bench.unlabeled_at_random[:60])])
    every = np.arange(len(X))
    votes = bench.vote(voter, few, every)
    np.testing.assert_allclose(votes[carriers], voter.model.label_distributions_)
    others = np.setdiff1d(every, carriers)
    np.testing.assert_allclose(votes[others], voter.predict_proba(X[others]))
    assert (votes[others].argmax(axis=1) == Y[others]).mean() > 0.7
    assert bench.accuracy(bench.held_out(few, voter)) > 0.5
    # A round: pseudo-labels of rows that carry the graph count, others cannot.
    taught = bench.train(few, every, Y, like=voter)
    assert len(taught.model.label_distributions_) == len(carriers)
    assert (bench.vote(taught, few, every).argmax(axis=1) == Y).mean() > 0.9


# --- neighbours ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_features", [8, 30])
def test_the_index_finds_nearly_all_neighbours(n_features, monkeypatch):
    pytest.importorskip("faiss")
    rows = load_digits().data[:, 10 : 10 + n_features] + np.linspace(0, 0.1, 1797)[:, None]
    exact_distances, exact = nearest(rows, 10)
    new_distances, new = nearest(rows, 10, rows[:50] + 0.05)
    monkeypatch.setattr(_graph, "MANY_POINTS", 1)
    distances, found = nearest(rows, 10)
    assert found.shape == (1797, 10)
    assert (found != np.arange(1797)[:, None]).all()
    same = np.mean([len(np.intersect1d(a, b)) / 10 for a, b in zip(found, exact)])
    assert same > 0.85
    assert (np.diff(distances, axis=1) >= 0).all()
    assert np.median(distances / exact_distances) == pytest.approx(1.0, abs=1e-3)
    again = nearest(rows, 10, rows[:50] + 0.05)
    assert np.mean([len(np.intersect1d(a, b)) / 10 for a, b in zip(again[1], new)]) > 0.85
    assert np.median(again[0] / new_distances) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("many_points", [_graph.MANY_POINTS, 50])
def test_results_do_not_depend_on_the_number_of_jobs(many_points, monkeypatch):
    monkeypatch.setattr(_graph, "MANY_POINTS", many_points)  # 50: neighbours by an index
    monkeypatch.setattr(_inverted_index, "_POINTS_OF_A_CELL", 20)
    one = FewLabelClassifier(random_state=0).fit(X, CODES)
    two = FewLabelClassifier(random_state=0, n_jobs=2).fit(X, CODES)
    np.testing.assert_array_equal(two.posterior_.weights, one.posterior_.weights)
    np.testing.assert_array_equal(two.transduction_proba_, one.transduction_proba_)
