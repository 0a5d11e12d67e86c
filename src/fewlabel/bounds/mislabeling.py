r"""The mislabelling model (Section 5.2): what wrong labels do to the error, how often they occur.

An imperfect label Ŷ has the distribution :math:`p_{i,j}=P(\hat Y=i\mid Y=j)` given the true one,
and depends on x through Y only (:math:`P(X\mid Y,\hat Y)=P(X\mid Y)` is what the paper means).

The paper takes the matrix as given. Here it is estimated in four ways, each a function that returns
*counts* of (imperfect label, true label), possibly fractional; :func:`mislabeling_matrix` turns
counts into the matrix and smooths classes with few rows. Every such matrix is an estimate.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewlabel._core.arrays import Floats
from fewlabel._core.checks import (
    check_codes,
    check_mislabeling,
    check_proba,
    check_same_shape,
)

# Few enough for the cache, and for BLAS not to split such narrow products over threads at a loss.
_CHUNK_ROWS = 2048


def _chunks(n: int) -> Iterator[slice]:
    return (slice(start, start + _CHUNK_ROWS) for start in range(0, n, _CHUNK_ROWS))


# --- the model -------------------------------------------------------------------------------


def imperfect_proba(label_proba: ArrayLike, mislabeling: ArrayLike) -> Floats:
    r"""Distribution of the imperfect label (Section 5.2).

    .. math:: P(\hat Y=i\mid x) = \sum_j p_{i,j}\,P(Y=j\mid x)

    Parameters
    ----------
    label_proba : array-like of shape (n_samples, n_classes)
        :math:`P(Y=c\mid x)`.
    mislabeling : array-like of shape (n_classes, n_classes)

    Returns
    -------
    imperfect_proba : ndarray of shape (n_samples, n_classes)

    See Also
    --------
    mislabeling_matrix : The matrix, from counts.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 5.2.

    Examples
    --------
    >>> imperfect_proba([[1.0, 0.0]], [[0.75, 0.5], [0.25, 0.5]]).tolist()
    [[0.75, 0.25]]
    """
    proba = check_proba(label_proba, "label_proba")
    matrix = check_mislabeling(mislabeling)
    check_same_shape(matrix[0], proba[0], "a row of mislabeling", "a row of label_proba")
    imperfect = np.empty_like(proba)
    for rows in _chunks(len(proba)):
        np.matmul(proba[rows], matrix.T, out=imperfect[rows])
    return imperfect


# --- from counts to the matrix ---------------------------------------------------------------


def mislabeling_matrix(counts: ArrayLike, *, smoothing: float = 1.0) -> Floats:
    r"""Mislabelling matrix from counts of (imperfect label i, true label j).

    .. math:: \hat p_{i,j} = \frac{n_{i,j} + s\,t_{i,j}}{\sum_i n_{i,j} + s}

    The target :math:`t` is the matrix of one noise rate for all classes: the share of right labels
    over all rows on its diagonal, the rest spread evenly. A class with few rows leans on what is
    known of the others, a class without any is taken to be like them.

    Parameters
    ----------
    counts : array-like of shape (n_classes, n_classes)
        Non-negative, may be fractional.
    smoothing : float, default=1.0
        s, how many rows of each class the target is worth. 0: plain frequencies.

    Returns
    -------
    matrix : ndarray of shape (n_classes, n_classes)
        Columns sum to 1.

    See Also
    --------
    held_out_counts, confident_counts, expected_counts, anchor_counts : Ways to count.
    mislabeling_interval : Limits of the entries.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 5.2.

    Examples
    --------
    >>> mislabeling_matrix([[3, 0], [1, 4]], smoothing=0).tolist()
    [[0.75, 0.0], [0.25, 1.0]]
    >>> mislabeling_matrix([[3, 0], [1, 0]], smoothing=1.0).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    n = check_counts(counts)
    if not (np.isfinite(smoothing) and smoothing >= 0):
        raise ValueError(f"smoothing must be a finite number >= 0. Got {smoothing} instead.")
    rows = n.sum(axis=0)
    if not rows.any():
        raise ValueError("counts are all zero: there is nothing to estimate the matrix from.")
    if smoothing == 0 and not rows.all():
        raise ValueError(
            f"No row of class(es) {np.flatnonzero(rows == 0).tolist()} was counted, so their "
            f"columns are unknown. Use smoothing > 0 to take them to be like the others."
        )
    right = np.trace(n) / rows.sum()
    target = np.full(n.shape, (1.0 - right) / (len(n) - 1))
    np.fill_diagonal(target, right)
    return (n + smoothing * target) / (rows + smoothing)


def check_counts(counts: ArrayLike) -> Floats:
    """Return counts of (imperfect, true) labels as a square, non-negative matrix.

    Parameters
    ----------
    counts : array-like of shape (n_classes, n_classes)

    Returns
    -------
    counts : ndarray of shape (n_classes, n_classes)
    """
    n = np.asarray(counts, dtype=np.float64)
    if n.ndim != 2 or n.shape[0] != n.shape[1] or len(n) < 2:
        raise ValueError(f"counts must be a square matrix, at least 2 x 2. Got shape {n.shape}.")
    if not (np.isfinite(n).all() and (n >= 0).all()):
        raise ValueError("counts must be finite and not negative.")
    return n


# --- four ways to count ----------------------------------------------------------------------


def held_out_counts(y_true: ArrayLike, y_imperfect: ArrayLike, n_classes: int) -> Floats:
    """Counts over rows whose true label is known.

    ``y_imperfect`` must come from voters that did not see these labels: out-of-bag
    (:func:`fewlabel.assess.held_out.out_of_bag_votes`) or cross-fitted
    (:func:`fewlabel.assess.held_out.cross_fitted_votes`). With the true labels of the
    pseudo-labelled rows it gives the true matrix of those rows.

    Parameters
    ----------
    y_true, y_imperfect : array-like of int of shape (n_samples,)
    n_classes : int

    Returns
    -------
    counts : ndarray of shape (n_classes, n_classes)
        Row: imperfect label; column: true label.

    See Also
    --------
    mislabeling_matrix : The matrix of these counts.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 5.2.

    Examples
    --------
    >>> held_out_counts([0, 0, 1], [0, 1, 1], 2).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    true = check_codes(y_true, n_classes)
    imperfect = check_codes(y_imperfect, n_classes, len(true))
    counts = np.bincount(imperfect * n_classes + true, minlength=n_classes**2)
    return counts.reshape(n_classes, n_classes).astype(np.float64)


def confident_counts(y_imperfect: ArrayLike, label_proba: ArrayLike) -> Floats:
    r"""Counts by the rule of confident learning (Northcutt, Jiang and Chuang, 2021).

    A row labelled i is counted as truly j if j is its most probable class among those with
    :math:`P(Y=j\mid x)\ge t_j`, where :math:`t_j` is the mean of :math:`P(Y=j\mid x)` over the rows
    labelled j; a row that reaches no threshold is left out. Counts are then scaled so that each
    imperfect label keeps its number of rows.

    Parameters
    ----------
    y_imperfect : array-like of int of shape (n_samples,)
    label_proba : array-like of shape (n_samples, n_classes)
        From a model that did not see these labels.

    Returns
    -------
    counts : ndarray of shape (n_classes, n_classes)

    See Also
    --------
    mislabeling_matrix : The matrix of these counts.

    References
    ----------
    .. [1] C. Northcutt, L. Jiang and I. Chuang, "Confident learning", 2021.

    Examples
    --------
    >>> confident_counts([0, 0, 1], [[0.9, 0.1], [0.2, 0.8], [0.2, 0.8]]).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    proba = check_proba(label_proba, "label_proba")
    n_classes = proba.shape[1]
    labels = check_codes(y_imperfect, n_classes, len(proba))
    n_labeled = np.bincount(labels, minlength=n_classes)
    own = np.bincount(labels, proba[np.arange(len(proba)), labels], n_classes)
    # A label that nobody carries has no threshold, so no row is counted as that class.
    threshold = np.divide(own, n_labeled, out=np.full(n_classes, np.inf), where=n_labeled > 0)
    counts = np.zeros((n_classes, n_classes))
    for rows in _chunks(len(proba)):
        # The mean of equal numbers may come out above them by a rounding error.
        reached = proba[rows] >= threshold * (1.0 - 1e-12)
        confident = np.where(reached, proba[rows], -1.0)
        likely = confident.argmax(axis=1)
        kept = confident[np.arange(len(likely)), likely] >= 0
        counts += held_out_counts(likely[kept], labels[rows][kept], n_classes)
    found = counts.sum(axis=1)
    return counts * np.divide(n_labeled, found, out=np.zeros(n_classes), where=found > 0)[:, None]


def expected_counts(
    y_imperfect: ArrayLike,
    label_proba: ArrayLike,
    known_counts: ArrayLike | None = None,
    *,
    smoothing: float = 1.0,
    max_iter: int = 200,
    tol: float = 1e-8,
) -> Floats:
    r"""Counts expected under the model, by EM on labelled and pseudo-labelled rows.

    The true label of a pseudo-labelled row is latent with prior :math:`P(Y=j\mid x)`:

    .. math:: q_j(x) \propto P(Y=j\mid x)\,p_{\hat y,j}, \qquad
        n_{i,j} = n^{known}_{i,j} + \sum_{x:\,\hat y=i} q_j(x)

    and the matrix of the next step is :func:`mislabeling_matrix` of the counts. Neither the
    target of the smoothing nor ``label_proba`` is fitted.

    Parameters
    ----------
    y_imperfect : array-like of int of shape (n_samples,)
        Pseudo-labels of rows without a true label.
    label_proba : array-like of shape (n_samples, n_classes)
        From a model that did not see these labels.
    known_counts : array-like of shape (n_classes, n_classes), optional
        Counts over labelled rows, of :func:`held_out_counts`.
    smoothing : float, default=1.0
    max_iter, tol
        Stop after so many steps or when no entry of the matrix moves by more than ``tol``.

    Returns
    -------
    counts : ndarray of shape (n_classes, n_classes)

    See Also
    --------
    mislabeling_matrix : The matrix of these counts.

    References
    ----------
    .. [1] A. P. Dawid and A. M. Skene, "Maximum likelihood estimation of observer error-rates
           using the EM algorithm", 1979.

    Examples
    --------
    >>> expected_counts([0, 1], [[1.0, 0.0], [0.0, 1.0]]).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    proba = check_proba(label_proba, "label_proba")
    n_classes = proba.shape[1]
    labels = check_codes(y_imperfect, n_classes, len(proba))
    known = np.zeros((n_classes, n_classes)) if known_counts is None else check_counts(known_counts)
    check_same_shape(known[0], proba[0], "a row of known_counts", "a row of label_proba")
    # A flat matrix: as if the labels carried no information.
    counts = known + _latent_counts(labels, proba, np.ones((n_classes, n_classes)))
    matrix = mislabeling_matrix(counts, smoothing=smoothing)
    for _ in range(max_iter):
        counts = known + _latent_counts(labels, proba, matrix)
        previous, matrix = matrix, mislabeling_matrix(counts, smoothing=smoothing)
        if np.abs(matrix - previous).max() <= tol:
            break
    return counts


def _latent_counts(labels: NDArray[Any], proba: Floats, matrix: Floats) -> Floats:
    one_hot = np.eye(len(matrix))
    counts = np.zeros_like(matrix)
    for rows in _chunks(len(labels)):
        label = labels[rows]
        latent = proba[rows] * matrix[label]
        total = latent.sum(axis=1, keepdims=True)
        # A label that the model holds for impossible says nothing about its row.
        np.divide(latent, total, out=latent, where=total > 0)
        np.copyto(latent, proba[rows], where=total <= 0)
        counts += one_hot[label].T @ latent
    return counts


def anchor_counts(
    imperfect_proba: ArrayLike,
    label_proba: ArrayLike,
    known_counts: ArrayLike | None = None,
    *,
    share: float = 0.05,
) -> Floats:
    r"""Counts from anchor points: rows that surely belong to one class (Scott, 2015).

    Where :math:`P(Y=j\mid x)=1`, :math:`P(\hat Y=i\mid x)=p_{i,j}`. The anchors of class j are the
    rows with the highest :math:`P(Y=j\mid x)`, as many as ``share`` of the rows that are most
    probably j (at least one, and only rows that are most probably j); each counts as one row of
    class j with the distribution of its imperfect label.

    Parameters
    ----------
    imperfect_proba, label_proba : array-like of shape (n_samples, n_classes)
    known_counts : array-like of shape (n_classes, n_classes), optional
        Counts over labelled rows to add, of :func:`held_out_counts`.
    share : float in (0, 1], default=0.05

    Returns
    -------
    counts : ndarray of shape (n_classes, n_classes)

    See Also
    --------
    mislabeling_matrix : The matrix of these counts.

    References
    ----------
    .. [1] C. Scott, "A rate of convergence for mixture proportion estimation", 2015.

    Examples
    --------
    >>> anchor_counts([[0.8, 0.2], [0.5, 0.5], [0.1, 0.9]], [[1, 0], [0.6, 0.4], [0, 1]]).tolist()
    [[0.8, 0.1], [0.2, 0.9]]
    """
    proba = check_proba(label_proba, "label_proba")
    imperfect = check_proba(imperfect_proba, "imperfect_proba")
    check_same_shape(imperfect, proba, "imperfect_proba", "label_proba")
    if not 0 < share <= 1:
        raise ValueError(f"share must lie in (0, 1]. Got {share} instead.")
    n_classes = proba.shape[1]
    known = np.zeros((n_classes, n_classes)) if known_counts is None else check_counts(known_counts)
    check_same_shape(known[0], proba[0], "a row of known_counts", "a row of label_proba")
    counts = known.copy()
    likely = proba.argmax(axis=1)
    for j in range(n_classes):
        candidates = np.flatnonzero(likely == j)
        n_anchors = int(np.ceil(share * len(candidates)))
        surest = candidates[np.argsort(-proba[candidates, j], kind="stable")[:n_anchors]]
        counts[:, j] += imperfect[surest].sum(axis=0)
    return counts
