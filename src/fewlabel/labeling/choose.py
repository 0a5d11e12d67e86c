"""Which rows to ask a person about: pure functions of features, votes and what was asked before."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fewlabel._core.arrays import Bools, Floats, Ints
from fewlabel.assess.suggest import margins_of
from fewlabel.labeling.space import clusters_of, typicality, usual_distance

Reason = Literal["typical", "uncertain", "random"]

COLD_LABELS = 3
"""Labels a class up to which typical rows are asked for; after that, those with small margins."""

RANDOM_SHARE = 0.25
"""Share of the rows asked for that is drawn at random, for the estimate of the error."""

# Rows that are looked at where a table has many: clusters and neighbours of all would take minutes.
_LOOKED_AT = 5_000
# Two rows nearer than this share of the usual distance to neighbours are near-duplicates.
_DUPLICATE = 0.3
# Candidates for each row of a batch, by their margins.
_CANDIDATES = 2


class Asked(NamedTuple):
    """Rows to ask for, the first one first.

    Attributes
    ----------
    rows : ndarray of int
        Their positions.
    reasons : list of {"typical", "uncertain", "random"}
        Why each is asked. Only "random" ones may enter an estimate of the error.
    """

    rows: Ints
    reasons: list[Reason]


def typical_rows(
    points: Floats,
    n: int,
    *,
    known: ArrayLike,
    closed: ArrayLike | None = None,
    random_state: int = 0,
) -> Ints:
    """Rows for a cold start: typical of dense regions that have no label, spread out.

    The rows are cut into as many k-means clusters as there will be labels. The largest clusters
    without a label give their most typical row.

    Parameters
    ----------
    points : ndarray of shape (n_rows, n_dimensions)
        See :func:`fewlabel.labeling.space.row_space`.
    n : int
        At most this many rows.
    known : array-like of bool of shape (n_rows,)
        Rows that have a label.
    closed : array-like of bool of shape (n_rows,), optional
        Rows that must not be asked for, those in ``known`` aside: skipped or being asked.
    random_state : int, default=0

    Returns
    -------
    rows : ndarray of int

    See Also
    --------
    uncertain_rows : Once there are a few labels of each class.

    References
    ----------
    In the spirit of TypiClust (Hacohen, Dekel and Weinshall, ICML 2022).

    Examples
    --------
    >>> points = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2], [5.3]])
    >>> typical_rows(points, 2, known=np.zeros(7, dtype=bool)).tolist()
    [4, 1]
    """
    has_label = np.asarray(known, dtype=bool)
    shut = has_label if closed is None else has_label | np.asarray(closed, dtype=bool)
    rows = _looked_at(has_label, shut, random_state)
    if n < 1 or shut[rows].all():
        return np.empty(0, dtype=np.intp)
    near, label_here, shut_here = points[rows], has_label[rows], shut[rows]
    cluster = clusters_of(near, int(label_here.sum()) + n, random_state)
    sizes = np.bincount(cluster)
    labels = np.bincount(cluster, label_here, len(sizes))
    order = np.lexsort((-sizes, labels))  # fewest labels first, then the largest
    chosen: list[int] = []
    for c in order:
        members = np.flatnonzero(cluster == c)
        open_members = members[~shut_here[members]]
        if len(open_members) == 0:
            continue
        typical = typicality(near[members])[np.isin(members, open_members)]
        chosen.append(int(rows[open_members[typical.argmax()]]))
        if len(chosen) == n:
            break
    return np.array(chosen, dtype=np.intp)


def _looked_at(known: Bools, shut: Bools, random_state: int) -> Ints:
    """All rows of a small table; of a large one those with a label and a random sample."""
    if len(known) <= _LOOKED_AT:
        return np.arange(len(known))
    order = np.random.default_rng(random_state).permutation(np.flatnonzero(~shut))
    return np.sort(np.r_[np.flatnonzero(known)[-_LOOKED_AT:], order[:_LOOKED_AT]])


def uncertain_rows(
    points: Floats,
    votes: Floats,
    n: int,
    *,
    closed: ArrayLike,
    batch: int | None = None,
    random_state: int = 0,
) -> Ints:
    r"""Rows that the vote is least sure of, spread out, no two of them near-duplicates.

    Batch after batch: among the rows with the smallest margins m, twice as many as the batch
    takes, one row after the other with the largest

    .. math:: (1 - m(x)) \min_{x' \text{ chosen}} \lVert x - x' \rVert

    Parameters
    ----------
    points : ndarray of shape (n_rows, n_dimensions)
        See :func:`fewlabel.labeling.space.row_space`.
    votes : ndarray of shape (n_rows, n_classes)
        Of the newest model.
    n : int
        At most this many rows.
    closed : array-like of bool of shape (n_rows,)
        Rows that must not be asked for: labelled, skipped or being asked.
    batch : int, optional
        Rows that are chosen together; as many as there are classes by default.
    random_state : int, default=0

    Returns
    -------
    rows : ndarray of int
        The smallest margin first.

    References
    ----------
    Margins with diversity as in Zhdanov (2019), Diverse mini-batch active learning, with the greedy
    k-centre step of Sener and Savarese (ICLR 2018) in place of k-means.

    Examples
    --------
    >>> points = np.array([[0.0], [0.0], [1.0], [2.0]])
    >>> votes = np.array([[0.5, 0.5], [0.5, 0.5], [0.6, 0.4], [0.9, 0.1]])
    >>> uncertain_rows(points, votes, 2, closed=np.zeros(4, dtype=bool)).tolist()
    [0, 2]
    """
    rows = np.flatnonzero(~np.asarray(closed, dtype=bool))
    if n < 1 or len(rows) == 0:
        return np.empty(0, dtype=np.intp)
    margins = margins_of(votes[rows])
    order = np.argsort(margins, kind="stable")
    rows, weight = rows[order], 1.0 - margins[order]
    limit = _DUPLICATE * usual_distance(points, random_state=random_state)
    size = min(batch or votes.shape[1], n)
    chosen: list[int] = []
    gap = np.full(len(rows), np.inf)  # to the nearest row that was chosen
    while len(chosen) < n:
        open_rows = np.flatnonzero(gap > limit)[: _CANDIDATES * size]
        if len(open_rows) == 0:
            break
        for _ in range(min(size, n - len(chosen))):
            # The first of all is the one with the smallest margin.
            gain = weight[open_rows] * (gap[open_rows] if chosen else 1.0) + 1e-12
            best = open_rows[np.where(gap[open_rows] > limit, gain, 0.0).argmax()]
            if gap[best] <= limit:
                break
            chosen.append(int(rows[best]))
            gap = np.minimum(gap, np.linalg.norm(points[rows] - points[rows[best]], axis=1))
    return np.array(chosen, dtype=np.intp)


def next_rows(
    points: Floats,
    votes: Floats | None,
    n: int,
    *,
    known: ArrayLike,
    n_classes: int,
    closed: ArrayLike | None = None,
    random_share: float = RANDOM_SHARE,
    n_asked: int = 0,
    n_random: int = 0,
    random_state: int = 0,
) -> Asked:
    """The rows to ask for next: those that teach most, and random ones at a known share.

    Typical rows while there are fewer than three labels a class or no votes, then the rows that
    the vote is least sure of.

    Parameters
    ----------
    points : ndarray of shape (n_rows, n_dimensions)
        See :func:`fewlabel.labeling.space.row_space`.
    votes : ndarray of shape (n_rows, n_classes) or None
        Of the newest model; None before there is one.
    n : int
        At most this many rows.
    known : array-like of bool of shape (n_rows,)
        Rows that have a label.
    n_classes : int
        Classes that are known to exist.
    closed : array-like of bool of shape (n_rows,), optional
        Other rows that must not be asked for.
    random_share : float in [0, 1], default=0.25
        Share of random rows among all that are ever asked for.
    n_asked, n_random : int, default=0
        How many rows were asked for before, and how many of them at random.
    random_state : int, default=0
        Random rows are drawn in an order that depends on it alone: neither answers nor votes change
        which rows are drawn.

    Returns
    -------
    asked : Asked

    See Also
    --------
    typical_rows, uncertain_rows : The two ways to choose.
    random_rows : The rows for the estimate.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(40, 2))
    >>> asked = next_rows(points, None, 4, known=np.zeros(40, dtype=bool), n_classes=2)
    >>> asked.reasons
    ['random', 'typical', 'typical', 'typical']
    """
    has_label = np.asarray(known, dtype=bool)
    shut = has_label.copy() if closed is None else has_label | np.asarray(closed, dtype=bool)
    turns = random_turns(n, random_share, n_asked, n_random)
    drawn = random_rows(shut, sum(turns), random_state=random_state)
    shut[drawn] = True
    n_chosen = n - len(drawn)
    reason: Reason = "uncertain"
    if votes is None or has_label.sum() < COLD_LABELS * n_classes:
        reason = "typical"
        others = typical_rows(
            points, n_chosen, known=has_label, closed=shut, random_state=random_state
        )
    else:
        others = uncertain_rows(points, votes, n_chosen, closed=shut, random_state=random_state)
    return _woven(turns, drawn, others, reason)


def random_turns(n: int, share: float, n_asked: int = 0, n_random: int = 0) -> list[bool]:
    """Which of the next ``n`` questions are random ones, so that their share stays what it is.

    Examples
    --------
    >>> random_turns(6, 0.25)
    [True, False, False, False, True, False]
    """
    turns = []
    for asked in range(n_asked, n_asked + n):
        turns.append(share > 0 and n_random <= share * asked)
        n_random += turns[-1]
    return turns


def random_rows(closed: ArrayLike, n: int, *, random_state: int = 0) -> Ints:
    """The first ``n`` open rows of an order that depends on the seed alone.

    Parameters
    ----------
    closed : array-like of bool of shape (n_rows,)
        Rows that must not be asked for.
    n : int
    random_state : int, default=0

    Returns
    -------
    rows : ndarray of int
        A random sample of the rows that nobody chose, whatever was answered before.

    Examples
    --------
    >>> random_rows(np.zeros(5, dtype=bool), 2), random_rows(np.arange(5) == 4, 2)
    (array([2, 4]), array([2, 3]))
    """
    shut = np.asarray(closed, dtype=bool)
    order = np.random.default_rng(random_state).permutation(len(shut))
    return order[~shut[order]][:n].astype(np.intp)


def _woven(turns: list[bool], drawn: Ints, others: Ints, reason: Reason) -> Asked:
    """Random and chosen rows in their turns; what is left of one kind at the end."""
    queues: dict[bool, list[int]] = {True: drawn.tolist(), False: others.tolist()}
    rows, reasons = [], []
    for turn in [*turns, *(True for _ in drawn), *(False for _ in others)]:
        if queues[turn]:
            rows.append(queues[turn].pop(0))
            reasons.append("random" if turn else reason)
    return Asked(np.array(rows, dtype=np.intp), reasons)
