"""What a fitted classifier says about its own error."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_array
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from fewlabel import (
    SelfLearningClassifier,
    UnlabeledRows,
    bayes_risk,
    bounds_of_rows,
    out_of_bag_votes,
)
from fewlabel.assess.assessment import HeldOut, PaperBounds, Transduction
from fewlabel.assess.calibration import FEWEST_ROWS, calibrated
from fewlabel.assess.held_out import can_be_judged, cross_fitted_votes, held_out_votes
from fewlabel.assess.pseudo_label_errors import (
    METHODS,
    Evidence,
    estimate_mislabeling,
    supervised_estimate,
)
from fewlabel.bounds.table import bounds_table
from fewlabel.self_learning.bounds_of_fit import gather


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    X, y = X[:600], y[:600]
    given = np.random.default_rng(0).random(len(y)) < 0.15
    return X, y, np.where(given, y, -1)


@pytest.fixture(scope="module")
def fitted(digits):
    X, _, masked = digits
    forest = RandomForestClassifier(50, random_state=0)
    return SelfLearningClassifier(forest, random_state=0).fit(X, masked)


def test_table_has_every_bound_and_its_distance_to_the_truth(fitted, digits):
    X, y, masked = digits
    table = fitted.bounds(X, masked, y_true=y)
    names = [bound.name for bound in table]
    assert names[:4] == ["supervised estimate", "plug-in error", "TB", "CB"]
    assert {"CBIL", "second-order", "first-order", "second-order, corrected"} <= set(names)
    assert {bound.kind for bound in table} == {"estimate"}
    unlabeled = masked == -1
    error = np.mean(fitted.transduction_[unlabeled] != y[unlabeled])
    for bound in table:
        assert bound.excess == pytest.approx(bound.value - error)


def test_numbers_are_those_of_the_functions(fitted, digits):
    X, y, masked = digits
    assert {b.name: b for b in fitted.bounds()}["TB"].value == pytest.approx(fitted.risk_bound_)
    raw = {b.name: b for b in fitted.bounds(X, masked, calibrate=False)}
    assert raw["TB"].excess is None
    unlabeled, labeled = masked == -1, masked != -1
    initial = fitted.initial_estimator_.predict_proba(X[unlabeled])
    votes = fitted.transduction_proba_[unlabeled]
    assert raw["plug-in error"].value == pytest.approx(bayes_risk(votes, initial))
    oob = out_of_bag_votes(fitted.initial_estimator_, X[labeled]).argmax(axis=1)
    assert raw["supervised estimate"].value == np.mean(oob != y[labeled])


def test_distance_to_a_test_set(fitted, digits):
    X, y, masked = digits
    table = fitted.bounds(X, masked, X_test=X[:100], y_test=y[:100])
    assert table[2].value - table[2].excess == pytest.approx(1 - fitted.score(X[:100], y[:100]))


def test_labels_may_be_strings(digits):
    X, y, masked = digits
    names = np.array([f"digit {k}" for k in range(10)])
    given = np.where(masked == -1, None, names[masked])
    classifier = SelfLearningClassifier(GaussianNB(), max_iter=1, random_state=0).fit(X, given)
    table = classifier.bounds(X, given, y_true=names[y])
    error = np.mean(classifier.transduction_[masked == -1] != names[y][masked == -1])
    assert table[0].value - table[0].excess == pytest.approx(error)


def test_calibration_brings_the_plug_in_error_nearer(fitted, digits):
    X, y, masked = digits
    raw, fixed = (
        {b.name: b for b in fitted.bounds(X, masked, y_true=y, calibrate=calibrate)}
        for calibrate in (False, True)
    )
    assert abs(fixed["plug-in error"].excess) < abs(raw["plug-in error"].excess)


def test_bounds_take_the_calibration_of_the_assessment(fitted, digits):
    """One number for one question: the most likely power would make bounds too small."""
    X, _, masked = digits
    first = {b.name: b.value for b in fitted.bounds(X, masked)}
    power = fitted.paper_bounds_.power
    again = bounds_table(
        fitted.transduction_proba_[masked == -1], calibrated(fitted.initial_votes_, power)
    )
    assert power != 1.0
    for bound in again:
        if bound.name in ("TB", "plug-in error", "CB"):
            assert first[bound.name] == pytest.approx(bound.value)


def test_few_labelled_rows_leave_votes_as_they_are(digits):
    X, y, _ = digits
    y = (y < 5).astype(int)
    few = np.where(np.arange(len(y)) < FEWEST_ROWS - 1, y, -1)
    model = SelfLearningClassifier(GaussianNB()).fit(X[:, :5] + 0.0, few)
    np.testing.assert_array_equal(gather(model).label_proba, model.initial_votes_)


@pytest.mark.parametrize("label_proba", ["supervised", "current"])
def test_evidence_is_calibrated_if_asked_for(label_proba):
    """One unlabelled row is enough; only initial votes are ever calibrated."""
    initial, calibrated_, votes = (np.array([[p, 1 - p]]) for p in (0.6, 0.8, 0.9))
    held_out = HeldOut(np.array([[[0.7, 0.3], [0.0, 0.0]]]), np.array([1, 0]))
    fit = SimpleNamespace(
        _transduction=Transduction(initial, votes, label_proba),
        paper_bounds_=PaperBounds(held_out, 2.0, calibrated_, None),
    )
    assert gather(fit).label_proba is calibrated_
    raw = gather(fit, calibrate=False)
    assert raw.label_proba is (initial if label_proba == "supervised" else calibrated_)
    assert raw.votes is votes
    assert raw.y.tolist() == [1]  # nobody votes on the other row
    assert raw.counts.tolist() == [[0, 1], [0, 0]]


def test_soft_counts_are_held_out_ones_and_expected_ones():
    proba = np.array([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.25, 0.5, 0.25]])
    votes = np.eye(3)[[0, 1, 0]]
    found = METHODS["soft"](Evidence(np.array([2, 0]), np.eye(3)[[1, 0]], proba, votes))
    expected = [[0.75 + 1, 0.75, 0.5], [0.125, 0.75, 0.125 + 1], [0, 0, 0]]
    np.testing.assert_allclose(found, expected)


def test_the_supervised_estimate_by_hand():
    held_out = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    found = supervised_estimate(held_out, np.array([0, 0, 1]), 0.25)
    assert (found.value, found.applies) == (2 / 3, True)
    assert found.excess == pytest.approx(2 / 3 - 0.25)
    one = supervised_estimate(held_out[:1], np.array([0]), None)
    assert (one.value, one.applies, one.excess) == (0.0, True, None)
    assert not supervised_estimate(held_out[:0], np.empty(0, dtype=int), None).applies


@pytest.mark.parametrize("method", list(METHODS))
def test_every_method_gives_a_mislabelling_matrix(fitted, digits, method):
    X, _, masked = digits
    matrix = estimate_mislabeling(gather(fitted), method)
    assert matrix.shape == (10, 10)
    np.testing.assert_allclose(matrix.sum(axis=0), 1.0)
    assert {b.name for b in fitted.bounds(X, masked, method=method)} >= {"CBIL"}


@pytest.mark.parametrize("label_proba", ["current", "uniform", "array"])
def test_follows_the_label_proba_of_the_classifier(digits, label_proba):
    X, y, masked = digits
    given = np.eye(10)[y] if label_proba == "array" else label_proba
    classifier = SelfLearningClassifier(
        RandomForestClassifier(20, random_state=0), label_proba=given, max_iter=1, random_state=0
    ).fit(X, masked)
    evidence = gather(classifier)
    unlabeled = masked == -1
    expected = {
        "current": classifier.transduction_proba_[unlabeled],
        "uniform": np.full((unlabeled.sum(), 10), 0.1),
        "array": np.eye(10)[y][unlabeled],
    }[label_proba]
    np.testing.assert_array_equal(evidence.label_proba, expected)
    assert {b.name: b for b in classifier.bounds(X, masked)}["TB"].value == pytest.approx(
        classifier.risk_bound_
    )


def test_sparse_rows_give_the_same_table(digits):
    X, _, masked = digits
    # Before scikit-learn 1.9 the last bit of a weight decides between equal splits: no weights.
    learner = SelfLearningClassifier(
        RandomForestClassifier(20, random_state=0), max_iter=1, pseudo_weight="uniform"
    )
    tables = []
    for rows in (X, coo_array(X)):
        classifier = clone(learner).fit(rows, masked)
        tables.append([bound.value for bound in classifier.bounds(rows, masked)])
    np.testing.assert_allclose(*tables)


def test_held_out_votes_fall_back_to_cross_fitting(digits):
    X, y, _ = digits
    X, y = X[:80], y[:80]
    few = RandomForestClassifier(2, random_state=0).fit(X, y)
    np.testing.assert_array_equal(
        held_out_votes(few, X, y)[0], cross_fitted_votes(clone(few), X, y)
    )
    bayes = GaussianNB().fit(X, y)
    np.testing.assert_array_equal(held_out_votes(bayes, X, y)[0], cross_fitted_votes(bayes, X, y))
    forest = RandomForestClassifier(50, random_state=0).fit(X, y)
    np.testing.assert_array_equal(held_out_votes(forest, X, y)[0], out_of_bag_votes(forest, X))


@pytest.mark.parametrize("unknown", [-1, np.nan, None])
def test_true_labels_may_be_known_for_some_rows(fitted, digits, unknown):
    X, y, masked = digits
    truth = y.astype(object)
    truth[::3] = unknown
    rows = np.flatnonzero((masked == -1) & (np.arange(len(y)) % 3 != 0))
    error = np.mean(fitted.transduction_[rows] != y[rows])
    assert 0 < error < 1
    bound = fitted.bounds(X, masked, y_true=truth)[0]
    assert bound.value - bound.excess == pytest.approx(error)


@pytest.mark.parametrize("marker", [pd.NA, None, np.nan])
def test_true_labels_where_a_missing_value_marks_unlabelled_rows(digits, marker):
    X, y, masked = digits
    target = np.array([marker if code == -1 else code for code in masked], dtype=object)
    forest = RandomForestClassifier(10, random_state=0)
    clf = SelfLearningClassifier(forest, missing_label=marker, random_state=0).fit(X, target)
    hidden = masked == -1
    error = np.mean(clf.transduction_[hidden] != y[hidden])
    bound = clf.bounds(X, target, y_true=y)[0]
    assert bound.value - bound.excess == pytest.approx(error)


def test_one_true_label_is_enough(fitted, digits):
    X, y, masked = digits
    truth = np.full(len(y), -1)
    row = np.flatnonzero((masked == -1) & (fitted.transduction_ != y))[0]
    truth[row] = y[row]
    bound = fitted.bounds(X, masked, y_true=truth)[0]
    assert bound.value - bound.excess == 1.0


def test_a_true_class_that_fit_has_not_seen_is_an_error_of_the_vote(fitted, digits):
    X, y, masked = digits
    truth, row = y.copy(), np.flatnonzero((masked == -1) & (fitted.transduction_ == y))[0]
    truth[row] = 99
    right, wrong = (fitted.bounds(X, masked, y_true=t)[0].excess for t in (y, truth))
    assert right - wrong == pytest.approx(1 / (masked == -1).sum())


def test_a_fold_without_a_class_has_no_vote_if_it_cannot_be_learned():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(21, 2)), np.array(["a"] + ["b"] * 20)
    votes = cross_fitted_votes(LogisticRegression(), X, y)
    silent = ~votes.any(axis=1)
    assert silent[0]
    assert 0 < silent.sum() < len(y)
    np.testing.assert_allclose(votes[~silent].sum(axis=1), 1)
    with pytest.raises(ValueError, match="max_iter"):  # its own mistake is told
        cross_fitted_votes(LogisticRegression(max_iter=-1), X, np.tile(["a", "b", "c"], 7))


def test_parameters_of_the_base_may_name_classes(digits):
    X, _, masked = digits
    names = np.array([f"digit {c}" for c in range(10)] + [None], dtype=object)
    base = RandomForestClassifier(3, class_weight=dict.fromkeys(names[:10], 1.0))
    clf = SelfLearningClassifier(base, random_state=0).fit(X, names[masked])
    assert clf.bounds(X, names[masked])[0].applies


def test_without_two_labels_of_a_class_nothing_is_judged(digits):
    X, y, _ = digits
    masked = np.full(len(y), -1)
    masked[[np.flatnonzero(y == c)[0] for c in range(10)]] = range(10)
    clf = SelfLearningClassifier(random_state=0).fit(X, masked)
    table = {bound.name: bound for bound in clf.bounds(X, masked)}
    assert not table["supervised estimate"].applies
    assert np.isnan(table["supervised estimate"].value)
    # The votes stand as they are: nothing says how to calibrate them.
    assert table["plug-in error"] == clf.bounds(X, masked, calibrate=False)[1]


@pytest.mark.parametrize("base", [GaussianNB(), RandomForestClassifier(50, random_state=0)])
def test_a_labelled_row_of_weight_zero_does_not_count(digits, base):
    """The labels of such rows are wrong; whether they are there makes no difference."""
    X, y, masked = digits
    given, hidden = np.flatnonzero(masked != -1), np.flatnonzero(masked == -1)
    twice = np.r_[X[given], X[given], X[hidden]]
    target = np.r_[y[given], (y[given] + 1) % 10, masked[hidden]]
    weight = np.repeat([1.0, 0.0, 1.0], [len(given), len(given), len(hidden)])
    clf = SelfLearningClassifier(base, max_iter=0).fit(twice, target, weight)
    evidence = gather(clf)
    assert evidence.y.tolist() == y[given].tolist()
    assert evidence.counts.sum() == len(given)
    right = (evidence.held_out.argmax(axis=1) == y[given]).mean()
    assert clf.bounds(twice, target)[0].value == pytest.approx(1 - right)
    assert right > 0.6
    if isinstance(base, GaussianNB):
        rows, y_rows = X[np.r_[given, hidden]], masked[np.r_[given, hidden]]
        alone = SelfLearningClassifier(base, max_iter=0).fit(rows, y_rows)
        for a, b in zip(clf.bounds(twice, target), alone.bounds(rows, y_rows), strict=True):
            assert a.value == pytest.approx(b.value)


@pytest.mark.filterwarnings("ignore:The estimate of the error is unsafe")  # false alarms happen
def test_weights_count_for_rows_in_chunks_too(digits):
    X, y, masked = digits
    given, hidden = np.flatnonzero(masked != -1), np.flatnonzero(masked == -1)
    twice, labels = np.r_[X[given], X[given]], np.r_[y[given], (y[given] + 1) % 10]
    weight = np.repeat([1.0, 0.0], len(given))
    chunks = UnlabeledRows([X[hidden[:200]], X[hidden[200:]]])
    clf = SelfLearningClassifier(GaussianNB(), max_iter=0)
    clf.fit(twice, labels, weight, unlabeled=chunks)
    with_zeros = bounds_of_rows(clf, chunks, twice, labels)
    clf.fit(X[given], y[given], unlabeled=chunks)
    without = bounds_of_rows(clf, chunks, X[given], y[given])
    assert with_zeros[0].value == without[0].value
    clf.fit(twice, labels, weight, unlabeled=chunks)


def test_a_class_whose_other_rows_weigh_nothing_has_one_row():
    codes, weight = np.array([0, 0, 0, 1, 1, 1]), np.array([1.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    assert can_be_judged(codes, weight).tolist() == [True] * 3 + [False] * 3
    assert can_be_judged(codes).all()
    assert not can_be_judged(codes, np.zeros(6)).any()


def test_cross_fitting_heeds_weights():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.tile([0, 1], 15)
    weight = rng.random(30)
    weight[:10] = 0.0
    votes = cross_fitted_votes(GaussianNB(), X, y, sample_weight=weight)
    expected = cross_fitted_votes(GaussianNB(), X[10:], y[10:], sample_weight=weight[10:])
    assert not votes[:10].any()
    np.testing.assert_array_equal(votes[10:], expected)
    assert np.abs(expected - cross_fitted_votes(GaussianNB(), X[10:], y[10:])).max() > 1e-6
    # Who takes no weights still does without the rows that have none.
    near = cross_fitted_votes(KNeighborsClassifier(3), X, y, sample_weight=weight)
    alone = cross_fitted_votes(KNeighborsClassifier(3), X[10:], y[10:])
    np.testing.assert_array_equal(near[10:], alone)


def test_bad_input_is_an_error_that_says_what(fitted, digits):
    X, y, masked = digits
    for truth, message in (
        (y.astype(str), "no class of fit"),
        (masked, "no label for any unlabelled row"),
        (np.tile(y, 2), "one entry for each of the 600 rows"),
        (y[:5], "one entry for each of the 600 rows"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted.bounds(X, masked, y_true=truth)
    for rows in ((X[:50], masked[:50]), (X[:50], None), (None, masked[:50]), (None, masked % 9)):
        with pytest.raises(ValueError, match="fitted on"):
            fitted.bounds(*rows)
    with pytest.warns(UserWarning, match="no unlabelled row"):
        everything = SelfLearningClassifier(GaussianNB()).fit(X, y)
    assert np.isnan(everything.error_.value)
    with pytest.raises(ValueError, match="no unlabelled row"):
        everything.bounds()
    with pytest.raises(ValueError, match="method must be one of"):
        fitted.bounds(X, masked, method="magic")
    with pytest.raises(Exception, match="not fitted"):
        SelfLearningClassifier().bounds(X, masked)
