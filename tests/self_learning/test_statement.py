"""The one statement of error: about how many labels are wrong, which to accept, how to prove it."""

from __future__ import annotations

import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from fewlabel import FewLabelClassifier, SelfLearningClassifier, UnlabeledRows
from fewlabel.self_learning import cross_fit

X, Y = load_digits(return_X_y=True)
# Writers follow one another in this set: its first rows would be no random sample.
SHUFFLED = np.random.default_rng(0).permutation(len(Y))[:700]
X, Y = X[SHUFFLED], Y[SHUFFLED]
GIVEN = np.arange(len(Y)) < 120
TARGET = np.where(GIVEN, Y, -1)


@pytest.fixture(
    scope="module",
    params=[
        SelfLearningClassifier(GaussianNB(), random_state=0),
        FewLabelClassifier(["svm", "lda", "spreading"], random_state=0),
    ],
    ids=["naive Bayes", "mixed vote"],
)
def fitted(request):
    return clone(request.param).fit(X, TARGET)


def test_the_estimate_is_near_the_truth_and_says_what_it_rests_on(fitted):
    truth = (fitted.transduction_ != Y)[~GIVEN].mean()
    estimate = fitted.error_
    assert estimate.low <= truth <= estimate.high
    assert estimate.n == GIVEN.sum()
    assert "random sample" in estimate.assumes
    assert str(estimate).startswith("about ")
    assert len(estimate.per_class) == len(estimate.prevalence) == 10


def test_confidence_is_calibrated_to_the_estimate(fitted):
    confidence = fitted.confidence_
    assert (confidence[GIVEN] == 1).all()
    assert 1 - confidence[~GIVEN].mean() == pytest.approx(fitted.error_.value, abs=0.02)
    np.testing.assert_allclose(fitted.confidence(X[:5]).shape, (5,))


def test_accepted_rows_grow_with_the_error_one_can_live_with(fitted):
    masks = [fitted.accept(max_error) for max_error in (0.0, 0.02, 0.1, 0.5, 1.0)]
    for fewer, more in pairwise(masks):
        assert (more | ~fewer).all()
    assert (masks[0][GIVEN]).all()
    assert masks[-1].all()
    cautious = fitted.assessment_.promise.cautious.of(
        fitted.initial_votes_, fitted.transduction_proba_[~GIVEN].argmax(axis=1)
    )
    doubt = 1 - cautious[fitted.accept(0.2)[~GIVEN]]
    assert len(doubt) == 0 or doubt.mean() <= 0.2 + 1e-12
    assert fitted.accept(0.1, X[:7]).shape == (7,)
    with pytest.raises(ValueError, match="max_error must be"):
        fitted.accept(5)


def test_an_audit_guarantees(fitted):
    rows = fitted.audit_sample(40, random_state=1)
    assert len(set(rows.tolist())) == 40
    assert not GIVEN[rows].any()
    statement = fitted.audit(rows, Y[rows])
    truth = (fitted.transduction_ != Y)[~GIVEN].mean()
    assert statement.at_most >= truth
    assert str(statement).startswith("at most ")
    accepted = fitted.accept(0.3)
    drawn = fitted.audit_sample(10, max_error=0.3, random_state=0)
    assert accepted[drawn].all()
    assert "accepted labels" in str(fitted.audit(drawn, Y[drawn], max_error=0.3))


@pytest.mark.parametrize("mark", [-1, -1.0, "-1", None, float("nan")])
def test_an_audit_refuses_rows_without_a_right_label(fitted, mark):
    rows = fitted.audit_sample(3, random_state=1)
    with pytest.raises(ValueError, match="no label at position 2, but"):
        fitted.audit(rows, [*Y[rows[:2]].tolist(), mark])


def test_bounds_are_of_calibrated_votes(fitted):
    assert {b.name: b.value for b in fitted.bounds()}["TB"] == pytest.approx(fitted.risk_bound_)
    np.testing.assert_allclose(fitted.label_proba_.sum(axis=1), 1)
    assert fitted.confusion_bound_.shape == (10, 10)


def test_it_survives_a_pickle(fitted):
    again = pickle.loads(pickle.dumps(fitted))
    assert again.error_ == fitted.error_
    np.testing.assert_array_equal(again.accept(0.1), fitted.accept(0.1))


def test_a_new_fit_makes_a_new_statement():
    clf = SelfLearningClassifier(GaussianNB(), random_state=0).fit(X, TARGET)
    first = clf.error_
    half = np.where(np.arange(len(Y)) < 60, Y, -1)
    assert clf.fit(X, half).error_.n == 60
    assert clf.fit(X, TARGET).error_ == first


@pytest.mark.parametrize(
    "base",
    [DecisionTreeClassifier(random_state=0), KNeighborsClassifier(1), GaussianNB()],
    ids=lambda base: type(base).__name__,
)
def test_votes_of_0_and_1_are_no_probabilities(base):
    """Overlapping classes: a tree votes as if it were never wrong."""
    rows, y = make_classification(
        700, 10, n_informative=4, n_classes=3, class_sep=0.6, flip_y=0.2, random_state=3
    )
    target = np.where(np.arange(len(y)) < 60, y, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nearest neighbours take no weights
        clf = SelfLearningClassifier(base, random_state=0).fit(rows, target)
    truth = (clf.transduction_ != y)[60:].mean()
    assert truth > 0.3
    assert clf.error_.high >= truth
    assert clf.risk_bound_ >= truth - 0.1
    assert clf.accept(0.05)[60:].mean() < 0.2


def test_rows_in_chunks_have_an_estimate_too():
    chunks = UnlabeledRows([X[120:300], X[300:]])
    clf = SelfLearningClassifier(GaussianNB(), random_state=0)
    clf.fit(X[:120], Y[:120], unlabeled=chunks)
    truth = (clf.predict(X[120:]) != Y[120:]).mean()
    assert clf.error_.low <= truth <= clf.error_.high
    assert np.isfinite(clf.risk_bound_)
    assert clf.accept(0.2, X[:3]).shape == (3,)
    with pytest.raises(ValueError, match="whose rows are not kept"):
        _ = clf.confidence_
    with pytest.raises(ValueError, match="in chunks and are not kept"):
        clf.accept(0.1)
    assert len(clf.audit_sample(5)) == 5  # drawn in the last pass


def test_per_class_labels_are_reweighted():
    """Ten labels of each class, of classes that are 9 : 1: plain errors would count them alike."""
    rng = np.random.default_rng(0)
    y = (rng.random(1500) < 0.1).astype(int)
    rows = rng.normal(size=(1500, 3)) + 1.2 * y[:, None]
    given = np.concatenate([np.flatnonzero(y == c)[:20] for c in (0, 1)])
    target = np.full(len(y), -1)
    target[given] = y[given]
    clf = SelfLearningClassifier(LogisticRegression(), labels="per class", max_iter=1)
    clf.fit(rows, target)
    shares = [share.value for share in clf.error_.prevalence]
    assert shares[1] < 0.3  # half of the labels are of class 1
    assert "class shares are estimated" in clf.error_.assumes


def test_nothing_is_said_before_a_fit():
    clf = SelfLearningClassifier()
    assert not hasattr(clf, "error_")
    with pytest.raises(NotFittedError):
        clf.accept(0.05)


def test_the_whole_procedure_is_held_out(monkeypatch):
    """Folds in which the estimator fails for want of a class count as wrong."""
    monkeypatch.setattr(cross_fit, "MOST_ROUNDS", 1)
    y = np.append(Y[:50], [10])  # the only row of its class
    target = np.append(y, np.full(200, -1))
    clf = SelfLearningClassifier(GaussianNB(), random_state=0)
    clf.fit(np.r_[X[:50], X[50:51], X[100:300]], target)
    errors, share = clf._self_learned()
    assert share == pytest.approx(0.9)
    assert errors[-1] == 1
    assert set(errors) <= {0.0, 1.0}
    assert 0.05 < errors.mean() < 0.7
