from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.naive_bayes import GaussianNB

from fewlabel import LabeledKFold, SelfLearningClassifier, labeled_scorer

X, Y = load_iris(return_X_y=True)
HIDDEN = np.random.default_rng(0).random(len(Y)) < 0.7
TARGET = np.where(HIDDEN, -1, Y)
NAMES = np.array(["setosa", "versicolor", "virginica"], dtype=object)[Y]
NAMES[HIDDEN] = None


@pytest.mark.parametrize("y", [TARGET, NAMES], ids=["codes", "names"])
@pytest.mark.parametrize("stratify", [True, False])
def test_unlabelled_rows_train_in_every_fold_and_are_never_tested(y, stratify):
    splitter = LabeledKFold(4, stratify=stratify, random_state=0)
    tested = []
    for train, test in splitter.split(X, y):
        assert set(np.flatnonzero(HIDDEN)) <= set(train)
        assert not set(train) & set(test)
        assert not HIDDEN[test].any()
        assert len(train) + len(test) == len(y)
        tested += test.tolist()
    assert sorted(tested) == np.flatnonzero(~HIDDEN).tolist()
    assert splitter.get_n_splits() == 4


def test_stratified_folds_keep_class_shares():
    for _, test in LabeledKFold(3, random_state=0).split(X, TARGET):
        counts = np.bincount(TARGET[test], minlength=3)
        expected = np.bincount(TARGET[~HIDDEN]) / 3
        assert (np.abs(counts - expected) <= 1).all()


def test_classes_of_as_many_rows_as_folds_are_in_every_fold():
    y = np.array([0, 0, 0, 1, 1, 1, -1])
    for seed in range(5):
        for _, test in LabeledKFold(3, random_state=seed).split(np.zeros((7, 1)), y):
            assert sorted(y[test]) == [0, 1]


def test_classes_smaller_than_the_number_of_folds():
    y = np.array([0, 0, 1, 1, -1, -1, -1])
    folds = list(LabeledKFold(4, random_state=0).split(np.zeros((7, 1)), y))
    assert len(folds) == 4


def test_cross_validation_and_grid_search():
    clf = SelfLearningClassifier(LogisticRegression(max_iter=1000))
    scores = cross_val_score(clf, X, TARGET, cv=LabeledKFold(3, random_state=0))
    assert scores.min() > 0.7
    search = GridSearchCV(
        SelfLearningClassifier(LogisticRegression(max_iter=1000), policy="fixed"),
        {"estimator__C": [1e-4, 1.0], "max_iter": [1, 5]},
        cv=LabeledKFold(3, random_state=0),
    ).fit(X, TARGET)
    assert search.best_params_["estimator__C"] == 1.0


def test_scorer_with_a_splitter_that_tests_on_unlabelled_rows():
    clf = SelfLearningClassifier(LogisticRegression(max_iter=1000))
    folds = KFold(3, shuffle=True, random_state=0)
    for y in (TARGET, NAMES):
        scores = cross_val_score(clf, X, y, cv=folds, scoring=labeled_scorer("f1_macro"))
        assert scores.min() > 0.7
    plain = cross_val_score(clf, X, TARGET, cv=folds, scoring="accuracy")
    assert plain.max() < 0.6  # an unlabelled row counts as an error: what the scorer is for


def test_refusals():
    with pytest.raises(ValueError, match="only 2 labelled rows for 5 folds"):
        next(LabeledKFold(5).split(np.zeros((4, 1)), [0, 1, -1, -1]))
    with pytest.raises(ValueError, match="needs y"):
        next(LabeledKFold().split(X))
    model = LogisticRegression(max_iter=1000).fit(X, Y)
    with pytest.raises(ValueError, match="no labelled row to score"):
        labeled_scorer()(model, X[:2], [-1, -1])


def test_a_scorer_can_be_saved():
    model = DummyClassifier().fit([[0], [0], [0]], [1, 1, 0])
    again = pickle.loads(pickle.dumps(labeled_scorer("f1_macro")))
    rows, y = [[0]] * 4, [1, 0, -1, -1]
    assert again(model, rows, y) == labeled_scorer("f1_macro")(model, rows, y) != 0


@pytest.mark.parametrize("kind", [int, bool])
def test_labels_beside_none_are_scored(kind):
    """An object column of numbers, as None beside them makes it."""
    X, y = load_iris(return_X_y=True)
    labels = (y == 2).astype(kind)
    target = np.where(np.arange(len(y)) % 3 == 0, labels, None)
    model = SelfLearningClassifier(GaussianNB(), random_state=0)
    folds = LabeledKFold(2, random_state=0)
    scores = cross_val_score(model, X, target, cv=folds, error_score="raise")
    assert scores.min() > 0.7
    given = np.flatnonzero(np.arange(len(y)) % 3 == 0)
    assert model.fit(X, target).score(X[given], target[given]) > 0.8
