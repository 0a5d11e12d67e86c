"""How much the label of a row would tell about all others: a field on a graph of like rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_solve, cholesky

from fewlabel._core.arrays import Bools, Floats, Ints
from fewlabel.assess.suggest import margins_of
from fewlabel.baselines._graph import local_edges, nearest, neighbour_graph, scales_of
from fewlabel.labeling.space import usual_distance

SPREAD = 0.98
"""How far a label reaches: the share of a row's value that its neighbours determine."""

NEIGHBOURS = 10
"""Like rows to which a row is joined."""

# Rows that are looked at where a table has many: the covariances of all would not fit in memory.
_LOOKED_AT = 2_000
# Two rows nearer than this share of the usual distance to neighbours are near-duplicates.
_DUPLICATE = 0.3
# Weight of a row that the vote is quite sure of: such rows come last.
_LEAST_WEIGHT = 1e-6


def informative_rows(
    points: Floats,
    n: int,
    *,
    known: ArrayLike,
    votes: Floats | None = None,
    closed: ArrayLike | None = None,
    random_state: int = 0,
) -> Ints:
    r"""Rows whose labels would tell most about all rows that the vote is unsure of.

    Labels are seen as a Gaussian random field on a graph of like rows with the covariance
    :math:`G=(I-\alpha S)_{UU}^{-1}` of the rows U without a label. The label of row x would
    lower the variance of row z by :math:`G_{xz}^2/G_{xx}`. With the margins m of the vote and
    :math:`u=1-m`, rows are taken one after the other with the largest

    .. math:: u(x) \sum_{z\in U} u(z)\, G_{xz}^2 / G_{xx}

    and each of them counts as labelled for the next ones. Without votes all :math:`u=1`: then these
    are the most typical rows of the largest regions without a label.

    Parameters
    ----------
    points : ndarray of shape (n_rows, n_dimensions)
        See :func:`fewlabel.labeling.space.row_space`.
    n : int
        At most this many rows.
    known : array-like of bool of shape (n_rows,)
        Rows that have a label.
    votes : ndarray of shape (n_rows, n_classes), optional
        Of the newest model.
    closed : array-like of bool of shape (n_rows,), optional
        Rows that must not be asked for, those in ``known`` aside: skipped or being asked.
    random_state : int, default=0

    Returns
    -------
    rows : ndarray of int
        The best one first, no two of them near-duplicates.

    See Also
    --------
    next_rows : These rows, with random ones mixed in for the estimate of the error.

    References
    ----------
    M. Ji and J. Han (2012), A variance minimization criterion to active learning on graphs,
    AISTATS. There all rows count alike; here the vote says which of them need it.

    Examples
    --------
    >>> heaps = np.random.default_rng(0).normal([[0.0]] * 20 + [[50.0]] * 30)
    >>> rows = informative_rows(heaps, 2, known=np.zeros(50, dtype=bool))
    >>> sorted(heaps[rows].round(-1).astype(int).ravel().tolist())  # one of each
    [0, 50]
    """
    has_label = np.asarray(known, dtype=bool)
    shut = has_label if closed is None else has_label | np.asarray(closed, dtype=bool)
    if n < 1 or shut.all():
        return np.empty(0, dtype=np.intp)
    rows = _looked_at(has_label, shut, random_state)
    unknown = ~has_label[rows]
    weight = np.ones(len(rows)) if votes is None else 1.0 - margins_of(votes[rows])
    limit = _DUPLICATE * usual_distance(points, random_state=random_state)
    found = _greedy(
        field_covariance(points[rows], unknown),
        np.maximum(weight[unknown], _LEAST_WEIGHT),
        np.flatnonzero(~shut[rows][unknown]),
        n,
        points[rows[unknown]],
        limit,
    )
    return rows[unknown][found]


def _looked_at(known: Bools, shut: Bools, random_state: int) -> Ints:
    """All rows of a small table; of a large one a random sample with and without a label."""
    if len(known) <= _LOOKED_AT:
        return np.arange(len(known))
    rng = np.random.default_rng(random_state)
    parts = [rng.permutation(np.flatnonzero(part))[:_LOOKED_AT] for part in (known, ~shut)]
    return np.sort(np.concatenate(parts))


def field_covariance(points: Floats, unknown: Bools) -> Floats:
    r"""Covariances :math:`(I-\alpha S)_{UU}^{-1}` of the rows without a label, given the others.

    Parameters
    ----------
    points : ndarray of shape (n_rows, n_dimensions)
    unknown : ndarray of bool of shape (n_rows,)
        The rows U.

    Returns
    -------
    covariance : ndarray of shape (n_unknown, n_unknown)

    Examples
    --------
    >>> points = np.array([[0.0], [1.0], [2.0]])
    >>> bool(np.all(field_covariance(points, np.array([True, True, False])) > 0))
    True
    """
    if len(points) < 2:
        return np.ones((int(unknown.sum()),) * 2)
    distances, positions = nearest(points, NEIGHBOURS)
    scales = scales_of(distances)
    S = neighbour_graph(local_edges(distances, positions, scales, scales), positions)
    inside = np.flatnonzero(unknown)
    precision = np.eye(len(inside)) - SPREAD * S[inside][:, inside].toarray()
    # Symmetric, its eigenvalues at least 1 − α.
    covariance: Floats = cho_solve((cholesky(precision, lower=True), True), np.eye(len(inside)))
    return covariance


def _greedy(
    covariance: Floats, weight: Floats, candidates: Ints, n: int, points: Floats, limit: float
) -> Ints:
    """Candidates by their gain, each conditioned on those before it."""
    with_candidates = covariance[:, candidates]
    free = np.ones(len(candidates), dtype=bool)
    chosen: list[int] = []
    while len(chosen) < n and free.any():
        variance = np.maximum(with_candidates[candidates, np.arange(len(candidates))], 1e-12)
        lowered = np.einsum("i,ij,ij->j", weight, with_candidates, with_candidates) / variance
        best = int(np.where(free, weight[candidates] * lowered, -1.0).argmax())
        row = int(candidates[best])
        chosen.append(row)
        free &= np.linalg.norm(points[candidates] - points[row], axis=1) > limit
        free[best] = False
        shares = with_candidates[row] / variance[best]
        with_candidates = with_candidates - np.outer(with_candidates[:, best], shares)
    return np.array(chosen, dtype=np.intp)
