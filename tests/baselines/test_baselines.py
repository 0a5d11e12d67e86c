"""What holds for every competitor: scikit-learn's contract, unlabelled rows, bad input."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_classifiers_classes, parametrize_with_checks

from fewlabel import (
    DASForestClassifier,
    LabelSpreadingClassifier,
    QNS3VMClassifier,
    SelfLearningClassifier,
    SemiLDAClassifier,
    risk_bound,
    vote_matrix,
)

ALL = [
    QNS3VMClassifier(random_state=0),
    QNS3VMClassifier("rbf", random_state=0),
    SemiLDAClassifier(),
    DASForestClassifier(20, n_iter=3, random_state=0),
    LabelSpreadingClassifier(),
    LabelSpreadingClassifier("rbf", gamma=1.0),
]
every = pytest.mark.parametrize("model", ALL, ids=repr)


# One of its targets is {-1, 1}: by default -1 means "unlabelled". The test after it shows that the
# check passes as soon as -1 is declared to be a class.
MINUS_ONE_IS_A_CLASS = {"check_classifiers_classes": "-1 marks unlabelled rows by default"}


@parametrize_with_checks(ALL, expected_failed_checks=lambda _: MINUS_ONE_IS_A_CLASS)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@every
def test_minus_one_may_be_a_class(model):
    check_classifiers_classes(type(model).__name__, clone(model).set_params(missing_label=None))


def few_labels(n_classes=3, per_class=4, *, seed=0, std=1.0):
    """Separated Gaussians: the best accuracy is 1, and few labels are enough to reach it."""
    centers = 8.0 * np.eye(n_classes, max(n_classes, 2))
    X, truth = make_blobs(60 * n_classes, centers=centers, cluster_std=std, random_state=seed)
    y = np.full(len(truth), -1)
    for c in range(n_classes):
        y[np.flatnonzero(truth == c)[:per_class]] = c
    return X, y, truth


@every
@pytest.mark.parametrize("n_classes", [2, 3])
def test_separated_gaussians(model, n_classes):
    X, y, truth = few_labels(n_classes)
    fitted = clone(model).fit(X, y)
    assert (fitted.transduction_ == truth).mean() > 0.99
    assert (fitted.predict(X) == truth).mean() > 0.99


@every
def test_votes_are_distributions_that_agree_with_predict(model):
    X, y, _ = few_labels(std=4.0)
    fitted = clone(model).fit(X, y)
    votes = vote_matrix(fitted, X)
    assert votes.shape == (len(X), 3)
    assert (fitted.classes_[votes.argmax(axis=1)] == fitted.predict(X)).all()


@every
def test_base_of_self_learning_and_of_the_bounds(model):
    X, y, truth = few_labels(per_class=12)
    learner = SelfLearningClassifier(clone(model), pseudo_weight="uniform").fit(X, y)
    assert (learner.transduction_ == truth).mean() > 0.95
    votes = vote_matrix(clone(model).fit(X, y), X[y == -1])
    assert 0 <= risk_bound(votes, votes) < np.inf


@every
def test_transduction_keeps_given_labels(model):
    X, y, _ = few_labels(std=4.0)
    # Wrong labels on purpose: what is given is not changed.
    y[y >= 0] = np.roll(y[y >= 0], 1)
    fitted = clone(model).fit(X, y)
    assert (fitted.transduction_[y >= 0] == y[y >= 0]).all()
    assert set(fitted.transduction_) <= {0, 1, 2}


@every
@pytest.mark.parametrize("marker", [-1, np.nan, None, "pd.NA"])
def test_markers_of_unlabelled_rows(model, marker):
    X, y, _ = few_labels()
    expected = clone(model).fit(X, y).transduction_
    if marker == "pd.NA":
        marked = pd.Series(y, dtype="Int64").mask(y == -1)
    else:
        marked = np.where(y == -1, marker, y.astype(object if marker is None else float))
    assert (clone(model).fit(X, marked).transduction_ == expected).all()


@every
def test_string_labels_in_a_data_frame(model):
    X, y, _ = few_labels()
    names = np.array(["ash", "birch", "cedar", None], dtype=object)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    fitted = clone(model).fit(frame, pd.Series(names[y]))
    assert list(fitted.feature_names_in_) == ["a", "b", "c"]
    assert (fitted.predict(frame) == names[clone(model).fit(X, y).predict(X)]).all()


@every
def test_labels_only(model):
    X, _, truth = few_labels()
    fitted = clone(model).fit(X, truth)
    assert (fitted.transduction_ == truth).all()
    assert (fitted.predict(X) == truth).mean() > 0.99


@every
def test_one_label_of_each_class(model):
    X, y, _ = few_labels(per_class=1)
    proba = clone(model).fit(X, y).predict_proba(X)
    assert np.isfinite(proba).all()


@every
def test_constant_feature(model):
    X, y, truth = few_labels()
    fitted = clone(model).fit(np.c_[X, np.full(len(X), 7.0)], y)
    assert (fitted.transduction_ == truth).mean() > 0.99


@every
def test_sparse_equals_dense_or_is_refused(model):
    X, y, _ = few_labels(std=4.0)
    X[np.abs(X) < 1] = 0.0
    dense = clone(model).fit(X, y)
    if isinstance(model, SemiLDAClassifier):
        with pytest.raises(TypeError, match="dense data is required"):
            clone(model).fit(sparse.csr_array(X), y)
        return
    rows = sparse.csr_array(X)
    fitted = clone(model).fit(rows, y)
    tolerance = 0.15 if isinstance(model, DASForestClassifier) else 1e-4
    np.testing.assert_allclose(fitted.predict_proba(rows), dense.predict_proba(X), atol=tolerance)


@every
def test_pickle_and_pipeline(model):
    X, y, truth = few_labels()
    pipeline = make_pipeline(StandardScaler(), clone(model)).fit(X, y)
    again = pickle.loads(pickle.dumps(pipeline))
    assert (again.predict(X) == pipeline.predict(X)).all()
    assert (again.predict(X) == truth).mean() > 0.99


@every
def test_same_seed_same_result(model):
    X, y, _ = few_labels(std=4.0)
    first, second = (clone(model).fit(X, y).predict_proba(X) for _ in range(2))
    assert (first == second).all()


@every
def test_verbose_speaks_and_silence_is_the_default(model, capsys):
    X, y, _ = few_labels()
    clone(model).fit(X, y)
    assert capsys.readouterr().out == ""
    clone(model).set_params(verbose=1).fit(X, y)
    assert capsys.readouterr().out.startswith(f"[{type(model).__name__}] ")


@every
def test_bad_targets(model):
    X, y, _ = few_labels()
    with pytest.raises(ValueError, match="no labelled row"):
        clone(model).fit(X, np.full(len(X), -1))
    with pytest.raises(ValueError, match="one class only"):
        clone(model).fit(X, np.where(y == 0, 0, -1))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        clone(model).fit(X, y[:-1])
    with pytest.raises(ValueError, match="requires y to be passed"):
        clone(model).fit(X, None)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (QNS3VMClassifier("poly"), "The 'kernel' parameter of QNS3VMClassifier must be"),
        (QNS3VMClassifier(lam=0.0), "The 'lam' parameter of QNS3VMClassifier must be"),
        (SemiLDAClassifier(0.0), "The 'learning_rate' parameter of SemiLDAClassifier must be"),
        (SemiLDAClassifier(shrinkage=1.0), "The 'shrinkage' parameter of SemiLDAClassifier must"),
        (DASForestClassifier(0), "The 'n_estimators' parameter of DASForestClassifier must be"),
        (DASForestClassifier(cooling=2.0), "The 'cooling' parameter of DASForestClassifier must"),
        (LabelSpreadingClassifier(alpha=1.0), "The 'alpha' parameter of LabelSpreadingClassifier"),
    ],
)
def test_bad_parameters(model, message):
    X, y, _ = few_labels()
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
