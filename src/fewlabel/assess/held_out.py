"""Votes for labelled rows from voters that did not see their labels.

The mislabelling matrix must be counted on such votes: a forest votes for the labels it was trained
on nearly always rightly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold

from fewlabel._core.arrays import Floats, Ints
from fewlabel._core.checks import check_weights
from fewlabel._core.scikit import fit_weight_name, n_rows, take_rows
from fewlabel.bounds.votes import iter_voters

Fold = tuple[Ints, Ints]

CANNOT_LEARN = (ValueError, IndexError, np.linalg.LinAlgError)
"""What classifiers raise that are given too few classes or rows, in training or when they vote."""


class NoOutOfBagVoteError(ValueError):
    """Some row is in the bootstrap sample of every voter."""


def out_of_bag_votes(ensemble: Any, X: Any) -> Floats:
    """Votes for each training row, from the voters whose bootstrap sample did not contain it.

    Parameters
    ----------
    ensemble : fitted forest or bagging classifier
        With ``estimators_samples_``. In self-learning use the *initial* one: when row weights are
        draw probabilities (scikit-learn 1.9), labelled rows are in nearly every sample of the
        final forest.
    X : array-like of shape (n_samples, n_features)
        The rows the ensemble was fitted on, in that order.

    Returns
    -------
    votes : ndarray of shape (n_samples, n_classes)

    Raises
    ------
    NoOutOfBagVoteError
        A ``ValueError``, if a row is in the sample of every voter: use
        :func:`cross_fitted_votes` then.

    See Also
    --------
    cross_fitted_votes : For any classifier.

    References
    ----------
    .. [1] L. Breiman, "Out-of-bag estimation", 1996.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(50, random_state=0).fit(X, y)
    >>> float((out_of_bag_votes(forest, X).argmax(axis=1) == y).mean()) > 0.9
    True
    """
    if not hasattr(ensemble, "estimators_samples_"):
        raise TypeError(
            f"{type(ensemble).__name__} has no out-of-bag rows (`estimators_samples_`). "
            f"Use cross_fitted_votes instead."
        )
    votes = np.zeros((n_rows(X), len(ensemble.classes_)))
    for vote, sample in zip(iter_voters(ensemble, X, voters="soft"), ensemble.estimators_samples_):
        held_out = np.ones(len(votes), dtype=bool)
        held_out[sample] = False
        votes[held_out] += vote[held_out]
    total = votes.sum(axis=1, keepdims=True)
    if not total.all():
        raise NoOutOfBagVoteError(
            f"{int((total == 0).sum())} row(s) are in the sample of every voter and have no "
            f"out-of-bag vote. Use more voters, bootstrap=True, or cross_fitted_votes."
        )
    return votes / total


def cross_fitted_votes(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    n_splits: int = 5,
    random_state: int | None = 0,
    sample_weight: ArrayLike | None = None,
) -> Floats:
    """Votes for each row from a clone of the estimator that was fitted without its fold.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``
        Cloned, not changed.
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    n_splits : int, default=5
        Never more than there are rows.
    random_state : int or None, default=0
        Of the shuffle. The folds are not stratified, so classes with one row do no harm.
    sample_weight : array-like of shape (n_samples,), optional
        For an estimator that takes weights. A row of weight 0 is in no fold and has no vote.

    Returns
    -------
    votes : ndarray of shape (n_samples, n_classes)
        Columns in the order of the sorted classes of ``y``. Zero for rows whose class no other
        fold has, and for the rows of a fold whose training part lacks a class, if the estimator
        cannot learn without it.

    See Also
    --------
    out_of_bag_votes : Without training again, for forests.

    References
    ----------
    .. [1] M. Stone, "Cross-validatory choice and assessment of statistical predictions", 1974.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> votes = cross_fitted_votes(LogisticRegression(max_iter=1000), X, y)
    >>> float((votes.argmax(axis=1) == y).mean()) > 0.9
    True
    """
    labels = np.asarray(y)
    classes, codes = np.unique(labels, return_inverse=True)
    weight = None if sample_weight is None else check_weights(sample_weight, len(labels))
    rows, weight = rows_with_weight(len(labels), weight)
    n_known = len(np.unique(codes[rows]))

    def vote(train: Ints, test: Ints) -> Floats:
        votes = np.zeros((len(test), len(classes)))
        params = weight_params(estimator, None if weight is None else weight[train])
        train, test = rows[train], rows[test]
        try:
            fitted = clone(estimator).fit(take_rows(X, train), labels[train], **params)
            found = fitted.predict_proba(take_rows(X, test))
        except CANNOT_LEARN:
            if len(np.unique(codes[train])) == n_known:
                raise  # not for want of a class: it is the estimator's own error
        else:
            votes[:, np.searchsorted(classes, fitted.classes_)] = found
        return votes

    votes = np.zeros((len(labels), len(classes)))
    folds = folds_of(len(rows), n_splits, random_state)
    votes[rows] = cross_fit(vote, codes[rows], len(classes), folds)
    return votes


def unequal(weight: Floats | None) -> Floats | None:
    """Weights of rows if they differ: that all rows weigh the same is as good as no weights."""
    return None if weight is None or (weight == weight[:1]).all() else weight


def rows_with_weight(n: int, weight: Floats | None) -> tuple[Ints, Floats | None]:
    """Which of n rows have any weight, and their weights if these differ."""
    if weight is None:
        return np.arange(n), None
    rows = np.flatnonzero(weight > 0)
    return rows, unequal(weight[rows])


def weight_params(estimator: Any, weight: Floats | None) -> dict[str, Any]:
    """Arguments with which ``fit`` gets weights, if there are any and the estimator takes them."""
    name = None if weight is None else fit_weight_name(estimator)
    return {name: weight} if name else {}


def folds_of(n: int, n_splits: int, random_state: int | None) -> list[Fold]:
    """Training and test part of each fold of n rows; no folds if there are not two rows."""
    if n < 2:
        return []
    folds = KFold(min(n_splits, n), shuffle=True, random_state=random_state)
    return list(folds.split(np.arange(n)))


def cross_fit(
    vote: Callable[[Ints, Ints], Floats], codes: Ints, n_classes: int, folds: list[Fold]
) -> Floats:
    """Votes for each row by ``vote(train, test)``, which is not shown the labels of its fold.

    Rows whose class the training part lacks have no vote: zeros.
    """
    votes = np.zeros((len(codes), n_classes))
    for train, test in folds:
        votes[test] = vote(train, test)
    votes[~seen_in_training(codes, folds)] = 0.0
    return votes


def seen_in_training(codes: Ints, folds: list[Fold]) -> NDArray[np.bool_]:
    """Rows whose class the training part of their fold has: of others no vote could be right."""
    seen = np.zeros(len(codes), dtype=bool)
    for train, test in folds:
        seen[test] = np.isin(codes[test], codes[train])
    return seen


def can_be_judged(codes: Ints, weight: Floats | None = None) -> NDArray[np.bool_]:
    """Labelled rows whose class has another one; rows of weight 0 are as if they were not there.

    Without them nobody who votes has seen the class: that the vote is wrong says nothing.
    """
    judged = np.zeros(len(codes), dtype=bool)
    rows, _ = rows_with_weight(len(codes), weight)
    if len(rows):
        judged[rows] = np.bincount(codes[rows])[codes[rows]] > 1
    return judged


N_FOLDS = 5


def held_out_votes(
    fitted: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> tuple[Floats, float]:
    """Out-of-bag votes if the fitted classifier has them for every row, else cross-fitted ones.

    Parameters
    ----------
    fitted : classifier that was fitted on X and y
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Labels, not codes: parameters of the classifier may name them.
    sample_weight : array-like of shape (n_samples,), optional
        Those of the fit.

    Returns
    -------
    votes : ndarray of shape (n_samples, n_classes)
    trained_share : float
        Share of the rows that a voter learned from: 0.8 for 5 folds. Out-of-bag voters are as many
        as they are for new rows only in part, but each saw a sample of all rows: 1.
    """
    if getattr(fitted, "bootstrap", False) and hasattr(fitted, "estimators_samples_"):
        try:
            return out_of_bag_votes(fitted, X), 1.0
        except NoOutOfBagVoteError:
            pass
    votes = cross_fitted_votes(fitted, X, y, n_splits=N_FOLDS, sample_weight=sample_weight)
    return votes, trained_share(len(votes))


def trained_share(n: int, n_splits: int = N_FOLDS) -> float:
    """Share of n rows that a cross-fitted voter learned from."""
    return 1.0 - 1.0 / max(2, min(n_splits, n))
