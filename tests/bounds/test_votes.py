from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from sklearn.datasets import load_iris
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import reference
from fewlabel import (
    bayes_confusion,
    bayes_risk,
    gibbs_confusion,
    gibbs_risk,
    majority_vote,
    margin,
    vote_matrix,
)
from fewlabel._core.arrays import RowView
from fewlabel.bounds import votes as votes_module
from support.strategies import votes_and_proba, votes_proba_theta

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]


@given(votes_and_proba())
def test_margin_equals_reference(case):
    votes, _ = case
    every = margin(votes)
    for c in range(votes.shape[1]):
        y = np.full(len(votes), c)
        np.testing.assert_allclose(margin(votes, y), reference.margin(votes, y), atol=1e-15)
        np.testing.assert_array_equal(every[:, c], margin(votes, y))


@given(votes_proba_theta())
def test_risks_equal_reference(case):
    votes, proba, theta = case
    K = votes.shape[1]
    confusion = bayes_confusion(votes, proba, thresholds=theta)
    gibbs = gibbs_confusion(votes, proba)
    for i in range(K):
        for j in range(K):
            expected = 0 if i == j else reference.joint_conditional_risk(votes, proba, theta, i, j)
            assert confusion[i, j] == pytest.approx(expected, abs=1e-12)
            expected = 0 if i == j else reference.gibbs_conditional_risk(votes, proba, i, j)
            assert gibbs[i, j] == pytest.approx(expected, abs=1e-12)
    risk = bayes_risk(votes, proba, thresholds=theta)
    assert risk == pytest.approx(reference.joint_error_rate(votes, proba, theta), abs=1e-12)
    # Proposition: the error rate is the confusion matrix weighted by the class shares.
    share = proba.sum(axis=0) / len(proba)
    assert risk == pytest.approx(float((share @ confusion).sum()), abs=1e-12)
    assert gibbs_risk(votes, proba) == pytest.approx(float((share @ gibbs).sum()), abs=1e-12)
    np.testing.assert_array_equal(majority_vote(votes), [reference.majority(v) for v in votes])


@given(votes_and_proba())
def test_majority_vote_errs_at_most_twice_as_often_as_gibbs(case):
    votes, proba = case
    assert bayes_risk(votes, proba) <= 2 * gibbs_risk(votes, proba) + 1e-12


@pytest.mark.parametrize("target", [Y, NAMES], ids=["codes", "names"])
@pytest.mark.parametrize(
    "ensemble",
    [
        RandomForestClassifier(15, max_depth=2, random_state=0),
        ExtraTreesClassifier(15, random_state=0),
        BaggingClassifier(DecisionTreeClassifier(), 15, max_features=0.5, random_state=0),
        VotingClassifier([("nb", GaussianNB()), ("tree", DecisionTreeClassifier(max_depth=1))]),
        AdaBoostClassifier(n_estimators=7, random_state=0),
    ],
    ids=lambda e: type(e).__name__,
)
def test_hard_votes_count_voters(ensemble, target):
    fitted = ensemble.fit(X, target)
    votes = vote_matrix(fitted, X, voters="hard")
    counted = votes * len(fitted.estimators_)
    np.testing.assert_allclose(counted, counted.round(), atol=1e-9)
    # Most voters of an ensemble that fits its training rows agree with the ensemble.
    agrees = fitted.classes_[votes.argmax(axis=1)] == fitted.predict(X)
    assert agrees.mean() > 0.85


@pytest.mark.parametrize("labels", [[0, 1, 3], [-1, 0, 1]], ids=str)
def test_numbers_as_labels_are_not_taken_for_codes(labels):
    """AdaBoost trains its voters on the labels themselves."""
    boosting = AdaBoostClassifier(n_estimators=7, random_state=0)
    expected = vote_matrix(boosting.fit(X, NAMES), X, voters="hard")
    found = vote_matrix(boosting.fit(X, np.array(labels)[Y]), X, voters="hard")
    np.testing.assert_array_equal(found, expected)


def test_soft_votes_of_a_forest_are_its_predict_proba():
    forest = RandomForestClassifier(25, max_depth=3, random_state=0).fit(X, NAMES)
    uniform = vote_matrix(forest, X, weights=np.ones(25))
    np.testing.assert_allclose(uniform, forest.predict_proba(X), atol=1e-12)
    np.testing.assert_array_equal(vote_matrix(forest, X), forest.predict_proba(X))


def test_weights_pick_voters():
    forest = RandomForestClassifier(5, random_state=0).fit(X, Y)
    for weight in (0.5, 2):
        only_third = vote_matrix(forest, X, weights=[0, 0, weight, 0, 0])
        np.testing.assert_array_equal(only_third, forest.estimators_[2].predict_proba(X))


def test_full_trees_give_few_distinct_votes():
    forest = RandomForestClassifier(10, random_state=0).fit(X, Y)
    votes = vote_matrix(forest, X, voters="hard")
    assert set(np.unique(votes)) <= {t / 10 for t in range(11)}


def test_rows_and_chunks_change_nothing(monkeypatch):
    model = LogisticRegression(max_iter=500).fit(X, Y)
    rows = np.array([3, 140, 7, 7, 60])
    np.testing.assert_array_equal(
        vote_matrix(model, RowView(X, rows)), model.predict_proba(X[rows])
    )
    monkeypatch.setattr(votes_module, "_BLOCK_ROWS", 4)
    np.testing.assert_allclose(vote_matrix(model, X), model.predict_proba(X), atol=1e-15)


def test_voter_that_missed_a_class():
    bagging = BaggingClassifier(KNeighborsClassifier(1), 30, max_samples=3, random_state=0)
    bagging.fit(X, NAMES)
    assert any(len(voter.classes_) < 3 for voter in bagging.estimators_)
    soft = vote_matrix(bagging, X, weights=np.ones(30))
    np.testing.assert_allclose(soft, bagging.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: vote_matrix(RidgeClassifier().fit(X, Y), X), "no `predict_proba`"),
        (lambda: vote_matrix(GaussianNB().fit(X, Y), X, voters="hard"), "no `estimators_`"),
        (lambda: vote_matrix(GaussianNB().fit(X, Y), X, voters="loud"), "'soft' or 'hard'"),
    ],
)
def test_estimators_that_cannot_vote(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


@pytest.mark.parametrize("weights", [[1, 2], [-1, 1, 1], [0, 0, 0], [np.nan, 1, 1]])
def test_bad_weights(weights):
    forest = RandomForestClassifier(3, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="weights must"):
        vote_matrix(forest, X, weights=weights)


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        ([[np.nan, 1.0]], "are not finite"),
        ([[0.5, 0.5], [np.inf, 0.0]], "first is row 1"),
        ([[-0.5, 1.5]], "negative"),
        ([[0.5, 0.4]], "do not sum to 1"),
        ([0.5, 0.5], "shape"),
        ([[1.0]], "at least 2 columns"),
        (np.empty((0, 3)), "no rows"),
    ],
)
def test_votes_that_are_not_distributions(votes, message):
    for call in (lambda: bayes_risk(votes, votes), lambda: margin(votes)):
        with pytest.raises(ValueError, match=message):
            call()


def test_mismatched_shapes_and_codes():
    good = [[0.5, 0.5]]
    with pytest.raises(ValueError, match="same shape"):
        bayes_risk(good, [[0.2, 0.3, 0.5]])
    with pytest.raises(ValueError, match="shape"):
        margin(good, [0, 1])
    with pytest.raises(ValueError, match=r"codes 0\.\.1"):
        margin(good, [2])
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        bayes_risk(good, good, thresholds=1.5)
    with pytest.raises(ValueError, match="one for each of the 2 classes"):
        bayes_risk(good, good, thresholds=[0.5, 0.5, 0.5])
