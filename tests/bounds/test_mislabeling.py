"""Mislabelling: the model's identities, the estimators' counts, held-out votes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.datasets import make_blobs
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import reference
from fewlabel.assess.held_out import cross_fitted_votes, out_of_bag_votes
from fewlabel.bounds.mislabeled_error import chittineni_bound, mislabeling_report, one_example_bound
from fewlabel.bounds.mislabeling import (
    _latent_counts,
    anchor_counts,
    confident_counts,
    expected_counts,
    held_out_counts,
    imperfect_proba,
    mislabeling_matrix,
)
from support.strategies import distributions, mislabeled, mislabeling_matrices, votes_and_proba

ATOL = 1e-9
P3 = np.array([[0.8, 0.1, 0.1], [0.1, 0.7, 0.2], [0.1, 0.2, 0.7]])


# --- the model -------------------------------------------------------------------------------


@given(mislabeled(max_classes=5), st.floats(0.0, 1.0))
def test_model_equals_literal_formulas(case, lam):
    votes, proba, P = case
    imperfect = imperfect_proba(proba, P)
    np.testing.assert_allclose(imperfect, reference.transformed(proba, P), atol=ATOL)
    bounds = one_example_bound(votes, imperfect, P, relaxation=lam)
    theirs = chittineni_bound(votes, imperfect, P)
    for v, p, bound, chittineni in zip(votes, imperfect, bounds, theirs):
        assert chittineni == pytest.approx(reference.chittineni_bound(v, p, P), abs=ATOL)
        gap = lam + reference.delta_at(P, reference.majority(v))
        if gap > 1e-6:
            assert bound == pytest.approx(reference.one_example_bound(v, p, P, lam), rel=1e-6)
        elif gap <= 0:
            assert bound == np.inf


@given(votes_and_proba())
def test_without_mislabelling_the_one_example_bound_is_the_error(case):
    votes, proba = case
    true = 1 - proba[np.arange(len(votes)), votes.argmax(axis=1)]
    bound = one_example_bound(votes, proba, np.eye(votes.shape[1]))
    np.testing.assert_allclose(bound, true, atol=1e-12)


@given(mislabeled(max_classes=5))
def test_chittineni_bounds_the_optimal_classifier(case):
    votes, proba, P = case
    bound = chittineni_bound(votes, imperfect_proba(proba, P), P)
    assert (bound >= 1 - proba.max(axis=1) - ATOL).all()


def test_chittineni_says_nothing_about_another_classifier():
    votes, proba = [[1.0, 0.0]], [[0.0, 1.0]]  # wrong with certainty
    P = [[0.9, 0.5], [0.1, 0.5]]
    assert chittineni_bound(votes, imperfect_proba(proba, P), P)[0] < 1.0
    assert one_example_bound(votes, imperfect_proba(proba, P), P)[0] >= 1.0


@given(st.integers(2, 5).flatmap(mislabeling_matrices))
def test_report_names_exactly_the_broken_classes(P):
    report = mislabeling_report(P)
    broken = [c for c in range(len(P)) if reference.delta_at(P, c) <= 0]
    assert np.flatnonzero(report.broken).tolist() == broken
    for c in broken:
        assert f"class {c}:" in str(report)
        assert P[c, report.rival[c]] == max(P[c, j] for j in range(len(P)) if j != c)
    if not broken:
        assert "more often" in str(report)


def test_a_label_that_tells_nothing_of_its_class_is_broken():
    report = mislabeling_report([[0.5, 0.5, 0.2], [0.3, 0.4, 0.1], [0.2, 0.1, 0.7]])
    assert report.broken.tolist() == [True, False, False]


def test_a_label_that_tells_nothing_bounds_nothing():
    """λ + δ = 0 where labels are drawn by lot."""
    lot, votes = np.full((2, 2), 0.5), [[0.9, 0.1]]
    assert one_example_bound(votes, [[0.5, 0.5]], lot).tolist() == [np.inf]
    assert one_example_bound(votes, [[0.5, 0.5]], lot, relaxation=0.5).tolist() == [1.0]


# --- counts to matrix ------------------------------------------------------------------------


@given(
    st.integers(2, 5).flatmap(
        lambda k: st.lists(st.integers(0, 20), min_size=k * k, max_size=k * k)
    ),
    st.floats(0.01, 50),
)
def test_smoothed_matrix_is_a_mislabelling_matrix(values, smoothing):
    size = int(np.sqrt(len(values)))
    counts = np.reshape(values, (size, size))
    assume(counts.sum() > 0)
    P = mislabeling_matrix(counts, smoothing=smoothing)
    np.testing.assert_allclose(P.sum(axis=0), 1.0)
    assert (P >= 0).all()
    rows = counts.sum(axis=0)
    frequencies = counts[:, rows > 0] / rows[rows > 0]
    exact = mislabeling_matrix(counts, smoothing=1e-12)[:, rows > 0]
    np.testing.assert_allclose(exact, frequencies, atol=1e-9)


def test_smoothing_pulls_rare_classes_to_the_common_noise_rate():
    counts = np.array([[90, 1, 0], [5, 0, 0], [5, 0, 0]])
    P = mislabeling_matrix(counts, smoothing=2.0)
    right = 90 / 101
    np.testing.assert_allclose(P[:, 2], [(1 - right) / 2, (1 - right) / 2, right])
    assert 0 < P[1, 1] < right  # one row, wrong: between its frequency 0 and the common rate


def test_unseen_class_without_smoothing_is_an_error_that_names_it():
    with pytest.raises(ValueError, match=r"class\(es\) \[1\].*smoothing > 0"):
        mislabeling_matrix([[3, 0], [1, 0]], smoothing=0)


# --- counting --------------------------------------------------------------------------------


def sample(rng, n, P, spread=0.2):
    """True labels, Ŷ drawn by the matrix, and posteriors that are calibrated for Y."""
    proba = rng.dirichlet(np.full(len(P), spread), size=n)
    y = (rng.random((n, 1)) > proba.cumsum(axis=1)).sum(axis=1).clip(max=len(P) - 1)
    y_hat = (rng.random((n, 1)) > P.T[y].cumsum(axis=1)).sum(axis=1).clip(max=len(P) - 1)
    return y, y_hat, proba


@pytest.mark.parametrize(
    ("method", "tolerance"),
    [("held-out", 0.02), ("em", 0.02), ("confident", 0.12), ("anchor", 0.05)],
)
def test_every_estimator_finds_the_matrix_when_its_assumptions_hold(method, tolerance):
    rng = np.random.default_rng(0)
    y, y_hat, proba = sample(rng, 40_000, P3)
    counts = {
        "held-out": lambda: held_out_counts(y, y_hat, 3),
        "em": lambda: expected_counts(y_hat, proba),
        "confident": lambda: confident_counts(y_hat, proba),
        "anchor": lambda: anchor_counts(np.eye(3)[y_hat], proba),
    }[method]()
    error = np.abs(mislabeling_matrix(counts) - P3).max()
    assert error < tolerance
    # Taking the labels to be right would be far worse: the test can fail.
    assert np.abs(np.eye(3) - P3).max() > 2 * tolerance


@given(st.integers(2, 4), st.integers(1, 25), st.integers(0, 2**32 - 1))
def test_held_out_counts_count(n_classes, n, seed):
    rng = np.random.default_rng(seed)
    y, y_hat = rng.integers(0, n_classes, (2, n))
    counts = held_out_counts(y, y_hat, n_classes)
    for i in range(n_classes):
        for j in range(n_classes):
            assert counts[i, j] == sum(1 for a, b in zip(y_hat, y) if (a, b) == (i, j))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int64])
def test_codes_of_one_byte_do_not_overflow(dtype):
    codes = np.arange(20, dtype=dtype)
    np.testing.assert_array_equal(held_out_counts(codes, codes, 20), np.eye(20))
    sure = np.full((20, 20), 0.01 / 19)
    np.fill_diagonal(sure, 0.99)
    np.testing.assert_allclose(confident_counts(codes, sure), np.eye(20))


def test_no_rows_have_no_counts():
    assert held_out_counts([], [], 2).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_confident_counts_of_equal_probabilities():
    """The mean of three numbers 0.8 is 0.8000000000000002 in floating point."""
    counts = confident_counts([0, 0, 0, 1], [[0.8, 0.2]] * 3 + [[0.2, 0.8]])
    assert counts.tolist() == [[3.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    ("more", "expected"), [(1e-12, [[1, 1, 0], [0, 1, 0]]), (3e-12, [[0, 2, 0], [0, 1, 0]])]
)
def test_confident_counts_forgive_rounding_only(more, expected):
    """The first row is below the mean of class 0 by half of ``more``: 1e-12 is forgiven."""
    above = 0.4 * (1 + more)
    proba = [[0.4, 0.3, 0.3], [above, 1 - above, 0.0], [0.45, 0.55, 0.0]]
    assert confident_counts([0, 0, 1], proba).tolist() == [*expected, [0, 0, 0]]


def test_a_class_that_its_own_rows_hold_for_impossible_is_reached_by_them():
    """The threshold of class 0 is 0, and nothing else can be reached."""
    assert confident_counts([0], [[0.0, 1.0]]).tolist() == [[1.0, 0.0], [0.0, 0.0]]


@given(distributions(20, 3), st.integers(0, 2**32 - 1))
def test_confident_counts_equal_the_literal_rule(proba, seed):
    labels = np.random.default_rng(seed).integers(0, 3, 20)
    counts = confident_counts(labels, proba)
    literal = reference.confident_joint(labels, proba)
    for i in range(3):
        found = literal[i].sum()
        if found:
            np.testing.assert_allclose(counts[i], literal[i] * (labels == i).sum() / found)
        else:
            assert not counts[i].any()


@given(st.integers(0, 2**32 - 1))
def test_em_never_lowers_the_likelihood(seed):
    rng = np.random.default_rng(seed)
    _, y_hat, proba = sample(rng, 60, P3)
    known = held_out_counts(*rng.integers(0, 3, (2, 30)), 3) + 1
    likelihood = [
        reference.em_log_likelihood(
            y_hat,
            proba,
            known,
            mislabeling_matrix(
                expected_counts(y_hat, proba, known, smoothing=0, max_iter=steps), smoothing=0
            ),
        )
        for steps in range(6)
    ]
    assert (np.diff(likelihood) >= -1e-8).all()


def test_em_stops_when_the_matrix_moves_by_no_more_than_the_tolerance():
    _, y_hat, proba = sample(np.random.default_rng(2), 60, P3)
    one_step = expected_counts(y_hat, proba, max_iter=1)
    assert expected_counts(y_hat, proba, tol=1.0).tolist() == one_step.tolist()
    assert np.abs(expected_counts(y_hat, proba) - one_step).max() > 0.1


def test_a_label_that_is_held_for_impossible_says_nothing_about_its_row():
    proba = np.array([[1.0, 0.0], [0.25, 0.75]])
    counts = _latent_counts(np.array([1, 0]), proba, np.eye(2))
    np.testing.assert_array_equal(counts, [[1.0, 0.0], [1.0, 0.0]])


def test_em_uses_the_labelled_rows():
    rng = np.random.default_rng(1)
    y, y_hat, proba = sample(rng, 400, P3)
    useless = np.full_like(proba, 1 / 3)
    known = 1000 * P3
    P = mislabeling_matrix(expected_counts(y_hat, useless, known))
    assert np.abs(P - P3).max() < 0.05
    assert expected_counts(y_hat, proba, known).sum() == pytest.approx(len(y) + known.sum())


def test_anchor_counts_take_the_surest_rows_of_each_class():
    label = [[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.45, 0.55]]
    imperfect = [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.25, 0.75]]
    np.testing.assert_allclose(anchor_counts(imperfect, label, share=0.01), [[1, 0.25], [0, 0.75]])
    np.testing.assert_allclose(anchor_counts(imperfect, label, share=0.5), [[1, 0.25], [1, 0.75]])
    np.testing.assert_allclose(anchor_counts(imperfect, label, share=1.0), [[1, 0.25], [2, 0.75]])
    added = anchor_counts(imperfect, label, [[5, 0], [0, 5]], share=0.01)
    np.testing.assert_allclose(added, [[6, 0.25], [0, 5.75]])


def test_anchor_counts_know_nothing_of_a_class_that_is_never_likely():
    counts = anchor_counts([[0.5, 0.5]], [[0.9, 0.1]])
    assert not counts[:, 1].any()


# --- held-out votes --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(60, centers=3, cluster_std=4.0, random_state=0)


def test_out_of_bag_votes_equal_scikit_learns(blobs):
    X, y = blobs
    forest = RandomForestClassifier(60, oob_score=True, random_state=0).fit(X, y)
    np.testing.assert_allclose(out_of_bag_votes(forest, X), forest.oob_decision_function_)


def test_out_of_bag_votes_of_bagging_on_feature_subsets(blobs):
    X, y = blobs
    X = np.hstack([X, X[:, ::-1]])
    bag = BaggingClassifier(
        DecisionTreeClassifier(), 60, max_features=2, oob_score=True, random_state=0
    ).fit(X, y)
    np.testing.assert_allclose(out_of_bag_votes(bag, X), bag.oob_decision_function_)


def test_rows_without_an_out_of_bag_vote_raise(blobs):
    X, y = blobs
    few = RandomForestClassifier(2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="no out-of-bag vote"):
        out_of_bag_votes(few, X)
    whole = RandomForestClassifier(20, bootstrap=False, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="60 row"):
        out_of_bag_votes(whole, X)
    with pytest.raises(TypeError, match="cross_fitted_votes"):
        out_of_bag_votes(LogisticRegression().fit(X, y), X)


def test_cross_fitted_votes_do_not_see_the_label(blobs):
    X, y = blobs
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 3, len(y))
    memory = KNeighborsClassifier(1)
    seen = memory.fit(X, noise).predict_proba(X).argmax(axis=1)
    assert (seen == noise).all()
    held_out = cross_fitted_votes(memory, X, noise).argmax(axis=1)
    assert (held_out == noise).mean() < 0.6


def test_cross_fitted_votes_survive_a_class_with_one_row():
    X = np.arange(8.0)[:, None]
    y = np.array(["a"] * 4 + ["b"] * 3 + ["c"])
    votes = cross_fitted_votes(KNeighborsClassifier(1), X, y, n_splits=20)
    assert votes.shape == (8, 3)
    np.testing.assert_allclose(votes[:-1].sum(axis=1), 1.0)
    assert not votes[-1].any()  # its fold was fitted without class c: it says nothing


def test_a_class_whose_rows_fall_into_one_fold_has_no_votes():
    X = np.arange(40.0)[:, None]
    y = np.array([0] * 19 + [1] * 19 + [2] * 2)
    seeds = [seed for seed in range(40) if same_fold(seed, 38, 39, len(y))]
    assert seeds
    votes = cross_fitted_votes(KNeighborsClassifier(1), X, y, random_state=seeds[0])
    assert not votes[38:].any()
    np.testing.assert_allclose(votes[:38].sum(axis=1), 1.0)


def same_fold(seed, a, b, n):
    folds = KFold(5, shuffle=True, random_state=seed).split(np.zeros(n))
    return any({a, b} <= set(test.tolist()) for _, test in folds)


# --- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mislabeling_matrix([[0, 0], [0, 0]]), "all zero"),
        (lambda: mislabeling_matrix([[1, 2, 3]]), "square"),
        (lambda: mislabeling_matrix(np.ones((2, 3))), "square"),
        (lambda: mislabeling_matrix([[1]]), "at least 2 x 2"),
        (lambda: mislabeling_matrix([[1, -1], [0, 1]]), "not negative"),
        (lambda: mislabeling_matrix(np.eye(2), smoothing=-1), "smoothing"),
        (lambda: mislabeling_report([[0.9, 0.1], [0.2, 0.8]]), "must be a distribution"),
        (lambda: imperfect_proba([[0.5, 0.5]], np.eye(3)), "same shape"),
        (lambda: held_out_counts([0, 1], [0], 2), "shape"),
        (lambda: held_out_counts([0, 2], [0, 1], 2), "class codes"),
        (lambda: confident_counts([0, 1], [[0.5, 0.5]]), "shape"),
        (lambda: confident_counts([], np.empty((0, 2))), "no rows"),
        (lambda: expected_counts([0], [[0.5, 0.5]], np.eye(3)), "same shape"),
        (lambda: anchor_counts([[0.5, 0.5]], [[0.5, 0.5]], share=0.0), "share"),
        (lambda: anchor_counts([[0.5, 0.5]], [[0.5, 0.5]], share=1.01), "share"),
        (lambda: anchor_counts([[0.5, 0.5]], [[0.3, 0.3, 0.4]]), "same shape"),
        (lambda: one_example_bound([[1, 0]], [[1, 0]], np.eye(2), relaxation=-1), "relaxation"),
    ],
)
def test_bad_input_is_an_error_that_says_what(call, message):
    with pytest.raises(ValueError, match=message):
        call()
