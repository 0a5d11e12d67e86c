r"""Class votes, the majority vote and the Gibbs classifier (Section 3 of the paper).

Everything else in the library is a function of two matrices of shape ``(n_samples, n_classes)``:
``votes``, :math:`v_Q(x, c) = \mathbb{E}_{h\sim Q} 1\{h(x)=c\}`, and ``label_proba``,
:math:`P(Y=c\mid X=x)`. This module makes the first from an estimator and evaluates both.

The risks here are exact sums; their bounds are in :mod:`fewlabel.bounds.transductive`. They are the
*true* transductive risks only if ``label_proba`` is the true distribution of the labels, and
plug-in estimates otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewlabel._core.arrays import Floats, RowView
from fewlabel._core.checks import check_label_proba, check_thresholds, check_votes
from fewlabel._core.scikit import copied_rows, n_rows, take_columns, take_rows

# Rows handed to `predict_proba` at once: bounds the copies that base estimators make of X.
_BLOCK_ROWS = 32_768


def vote_matrix(
    estimator: Any,
    X: Any,
    *,
    voters: Literal["soft", "hard"] = "soft",
    weights: ArrayLike | None = None,
) -> Floats:
    r"""Class votes :math:`v_Q(x, c)` of a fitted classifier.

    Parameters
    ----------
    estimator : fitted classifier
        Any classifier with ``predict_proba``. For ``voters="hard"`` or given ``weights`` it must be
        an ensemble whose voters are in ``estimators_`` (forests, bagging, voting, AdaBoost).
    X : array-like of shape (n_samples, n_features), or RowView
        Rows of a view are copied in blocks, never all at once.
    voters : {"soft", "hard"}, default="soft"
        "soft": a voter distributes its vote (for a tree: the class fractions of a leaf, as in the
        paper's experiments). "hard": a voter gives its whole vote to the class it predicts.
    weights : array-like of shape (n_voters,), optional
        The distribution Q over the voters, normalised here to sum to 1. Uniform by default.

    Returns
    -------
    votes : ndarray of shape (n_samples, n_classes)
        Columns in the order of ``estimator.classes_``; each row sums to 1.

    See Also
    --------
    majority_vote : The class with the most votes.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    >>> vote_matrix(forest, X[:1], voters="hard").tolist()
    [[1.0, 0.0, 0.0]]
    """
    if voters not in ("soft", "hard"):
        raise ValueError(f"voters must be 'soft' or 'hard'. Got {voters!r} instead.")
    if voters == "soft" and weights is None:
        _require(estimator, "predict_proba", "class votes")
        return check_votes(_in_blocks(estimator.predict_proba, X))
    rows_X = copied_rows(X)
    q = _voter_weights(estimator, weights)
    votes = np.zeros((n_rows(rows_X), len(estimator.classes_)))
    for q_h, vote in zip(q, iter_voters(estimator, rows_X, voters=voters)):
        votes += q_h * vote
    # Divided at the end: T equal voters then give exactly the T + 1 votes t/T.
    votes /= q.sum()
    return check_votes(votes)


def _in_blocks(predict: Any, X: Any) -> Floats:
    view = X if isinstance(X, RowView) else RowView(X, np.arange(n_rows(X)))
    if len(view) <= _BLOCK_ROWS:
        return np.asarray(predict(copied_rows(X)))
    starts = range(0, len(view), _BLOCK_ROWS)
    blocks = (take_rows(view.table, view.rows[start : start + _BLOCK_ROWS]) for start in starts)
    return np.concatenate([predict(block) for block in blocks])


def _require(estimator: Any, attribute: str, purpose: str) -> None:
    if not hasattr(estimator, attribute):
        raise TypeError(
            f"{type(estimator).__name__} has no `{attribute}`, which is needed for {purpose}. "
            f"Use a classifier that has it, or wrap this one in "
            f"sklearn.calibration.CalibratedClassifierCV."
        )


def _voter_weights(estimator: Any, weights: ArrayLike | None) -> Floats:
    _require(estimator, "estimators_", "the votes of single voters")
    n_voters = len(estimator.estimators_)
    if weights is None:
        return np.ones(n_voters)
    q = np.asarray(weights, dtype=np.float64)
    if q.shape != (n_voters,):
        raise ValueError(
            f"weights must have shape ({n_voters},), one for each voter. Got {q.shape}."
        )
    if not (np.isfinite(q).all() and (q >= 0).all() and q.sum() > 0):
        raise ValueError("weights must be finite, non-negative and not all zero.")
    return q


def iter_voters(
    estimator: Any, X: Any, *, voters: Literal["soft", "hard"] = "hard"
) -> Iterator[Floats]:
    """Yield the votes of each voter of an ensemble, shape (n_samples, n_classes), one by one.

    Parameters
    ----------
    estimator : fitted ensemble with ``estimators_``
    X : array-like of shape (n_samples, n_features)
    voters : {"soft", "hard"}, default="hard"
        As in :func:`vote_matrix`.

    Yields
    ------
    votes : ndarray of shape (n_samples, n_classes)

    See Also
    --------
    vote_matrix : Their mean.
    """
    _require(estimator, "estimators_", "the votes of single voters")
    n_classes = len(estimator.classes_)
    to_codes = _label_decoder(estimator)
    features = getattr(estimator, "estimators_features_", None)
    if hasattr(estimator, "_validate_X_predict"):  # a forest: convert X once, not once a tree
        X = estimator._validate_X_predict(X)
    for position, voter in enumerate(estimator.estimators_):
        part = X if features is None else take_columns(X, features[position])
        if voters == "soft":
            soft = np.asarray(voter.predict_proba(part), dtype=np.float64)
            yield _align(soft, to_codes(voter.classes_), n_classes)
        else:
            yield np.eye(n_classes)[to_codes(voter.predict(part))]


def _label_decoder(estimator: Any) -> Callable[[NDArray[Any]], NDArray[np.intp]]:
    """How the voters' labels become class codes.

    Forests, bagging and voting train their voters on codes 0..K-1, AdaBoost on the labels.
    """
    classes = np.asarray(estimator.classes_)
    known = np.unique(np.concatenate([voter.classes_ for voter in estimator.estimators_]))
    if known.dtype.kind in "iuf" and known[0] >= 0 and known[-1] < len(classes):
        return lambda labels: np.asarray(labels).astype(np.intp)
    return lambda labels: np.searchsorted(classes, labels)


def _align(proba: Floats, columns: NDArray[np.intp], n_classes: int) -> Floats:
    if proba.shape[1] == n_classes:
        return proba
    full = np.zeros((len(proba), n_classes))  # a voter that has not seen every class
    full[:, columns] = proba
    return full


def majority_vote(votes: ArrayLike) -> NDArray[np.intp]:
    r"""Predictions of the Bayes classifier, :math:`B_Q(x) = \arg\max_c v_Q(x, c)`.

    Parameters
    ----------
    votes : array-like of shape (n_samples, n_classes)

    Returns
    -------
    codes : ndarray of int of shape (n_samples,)
        Ties go to the class that comes first.

    See Also
    --------
    margin : How clear the majority is.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), eq:Bayes-classifier-multi-again.

    Examples
    --------
    >>> majority_vote([[0.8, 0.2], [0.4, 0.6]]).tolist()
    [0, 1]
    """
    return check_votes(votes).argmax(axis=1)


def margin(votes: ArrayLike, y: ArrayLike | None = None) -> Floats:
    r"""Margin :math:`M_Q(x, y) = v_Q(x, y) - \max_{c\neq y} v_Q(x, c)`.

    Parameters
    ----------
    votes : array-like of shape (n_samples, n_classes)
    y : array-like of int of shape (n_samples,), optional
        Class codes. Without it, the margins of every class.

    Returns
    -------
    margins : ndarray of shape (n_samples,), or (n_samples, n_classes) without ``y``

    See Also
    --------
    margin_moments : Its moments over rows.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 3.

    Examples
    --------
    >>> margin([[0.5, 0.25, 0.25]], [1]).tolist()
    [-0.25]
    >>> margin([[0.5, 0.25, 0.25]]).tolist()
    [[0.25, -0.25, -0.25]]
    """
    v = check_votes(votes)
    rows = np.arange(len(v))
    best = v.argmax(axis=1)
    highest = v[rows, best]
    others = v.copy()
    others[rows, best] = -np.inf
    second = others.max(axis=1)
    if y is None:
        margins = v - highest[:, None]
        margins[rows, best] = highest - second
        return margins
    codes = np.asarray(y)
    if codes.shape != (len(v),):
        raise ValueError(
            f"y must have shape ({len(v)},) like the votes. Got {codes.shape} instead."
        )
    if codes.dtype.kind not in "iu" or codes.min() < 0 or codes.max() >= v.shape[1]:
        raise ValueError(f"y must hold class codes 0..{v.shape[1] - 1}, one for each row of votes.")
    return v[rows, codes] - np.where(codes == best, second, highest)


def _confusion_sums(weights: Floats, label_proba: Floats) -> Floats:
    # (1/u_i) Σ_x P(Y=i|x) w_j(x), zero diagonal; a class that never occurs has no risk.
    u = label_proba.sum(axis=0)
    sums = label_proba.T @ weights
    risk = np.divide(sums, u[:, None], out=np.zeros_like(sums), where=u[:, None] > 0)
    np.fill_diagonal(risk, 0.0)
    return risk


def gibbs_confusion(votes: ArrayLike, label_proba: ArrayLike) -> Floats:
    r"""Transductive Gibbs conditional risks :math:`R_U(G_Q, i, j)`.

    .. math:: R_U(G_Q,i,j) = \frac{1}{u_i}\sum_x P(Y=i\mid x)\, v_Q(x, j), \quad i \ne j

    Parameters
    ----------
    votes, label_proba : array-like of shape (n_samples, n_classes)

    Returns
    -------
    confusion : ndarray of shape (n_classes, n_classes)
        Row: true class i; column: predicted class j; zero diagonal.

    See Also
    --------
    gibbs_risk, bayes_confusion : One number; the same of the majority vote.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 3.

    Examples
    --------
    >>> gibbs_confusion([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0, 1]]).round(3).tolist()
    [[0.0, 0.2], [0.4, 0.0]]
    """
    v = check_votes(votes)
    return _confusion_sums(v, check_label_proba(label_proba, v))


def bayes_confusion(
    votes: ArrayLike, label_proba: ArrayLike, *, thresholds: ArrayLike | None = None
) -> Floats:
    r"""Transductive joint Bayes confusion matrix :math:`C^{U\wedge\theta}_{B_Q}`.

    .. math:: \frac{1}{u_i}\sum_x P(Y=i\mid x)\,1\{B_Q(x)=j\}\, 1\{v_Q(x,j)\ge\theta_j\}

    Parameters
    ----------
    votes, label_proba : array-like of shape (n_samples, n_classes)
    thresholds : float or array-like of shape (n_classes,), default=0

    Returns
    -------
    confusion : ndarray of shape (n_classes, n_classes)
        Row: true class i; column: predicted class j; zero diagonal.

    See Also
    --------
    confusion_bound, gibbs_confusion : A bound of it; the same of a random voter.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 4.1.

    Examples
    --------
    >>> bayes_confusion([[0.8, 0.2], [0.4, 0.6]], [[0.9, 0.1], [0.5, 0.5]]).round(3).tolist()
    [[0.0, 0.357], [0.167, 0.0]]
    """
    v = check_votes(votes)
    return _confusion_sums(_selected(v, thresholds), check_label_proba(label_proba, v))


def _selected(votes: Floats, thresholds: ArrayLike | None) -> Floats:
    # 1{B_Q(x)=j} 1{v_Q(x,j) ≥ θ_j} as a matrix with at most one 1 in a row.
    theta = check_thresholds(thresholds, votes.shape[1])
    rows, best = np.arange(len(votes)), votes.argmax(axis=1)
    selected = np.zeros_like(votes)
    selected[rows, best] = votes[rows, best] >= theta[best]
    return selected


def bayes_risk(
    votes: ArrayLike, label_proba: ArrayLike, *, thresholds: ArrayLike | None = None
) -> float:
    r"""Transductive (joint) error rate of the majority vote, :math:`R_{U\wedge\theta}(B_Q)`.

    .. math::
        R_{U\wedge\theta}(B_Q) = \frac1u \sum_x \sum_{c\ne B_Q(x)} P(Y=c\mid x)\,
        1\{v_Q(x,B_Q(x))\ge\theta_{B_Q(x)}\}

    Parameters
    ----------
    votes, label_proba : array-like of shape (n_samples, n_classes)
    thresholds : float or array-like of shape (n_classes,), optional
        θ. Zero by default: every prediction counts.

    Returns
    -------
    risk : float

    See Also
    --------
    risk_bound, gibbs_risk : A bound of it; the same of a random voter.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 4.2.

    Examples
    --------
    >>> round(bayes_risk([[0.8, 0.2], [0.4, 0.6]], [[0.9, 0.1], [0.5, 0.5]]), 12)
    0.3
    """
    v = check_votes(votes)
    proba = check_label_proba(label_proba, v)
    selected = _selected(v, thresholds)
    return float((selected * (proba.sum(axis=1, keepdims=True) - proba)).sum() / len(v))


def gibbs_risk(votes: ArrayLike, label_proba: ArrayLike) -> float:
    r"""Transductive error rate of the Gibbs classifier.

    .. math:: R_U(G_Q) = \frac1u \sum_x \sum_{c} P(Y=c\mid x)\,(1 - v_Q(x,c))

    Parameters
    ----------
    votes, label_proba : array-like of shape (n_samples, n_classes)

    Returns
    -------
    risk : float

    See Also
    --------
    gibbs_bound : The bound on the majority vote by it.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 3.

    Examples
    --------
    >>> round(gibbs_risk([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0, 1]]), 3)
    0.3
    """
    v = check_votes(votes)
    return float((check_label_proba(label_proba, v) * (1.0 - v)).sum() / len(v))
