"""Which rows to ask a person about: pure functions of features, votes and what was asked before."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fewlabel._core.arrays import Bools, Floats, Ints
from fewlabel.labeling.influence import informative_rows
from fewlabel.labeling.space import row_space

Reason = Literal["typical", "uncertain", "random"]

COLD_LABELS = 1
"""Labels a class from which on the vote counts: before that it knows too little of some class."""

RANDOM_SHARE = 0.25
"""Share of the rows asked for that is drawn at random, for the estimate of the error."""


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

    Those that teach most are typical of regions without a label while there are fewer labels than
    classes or no votes; then they are those that tell most about rows that the vote is unsure of.

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
    informative_rows : The rows that teach most.
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
    labelled_soon = has_label.copy()
    labelled_soon[drawn] = True  # what random rows will tell need not be asked for
    cold = votes is None or has_label.sum() < COLD_LABELS * n_classes
    others = informative_rows(
        points,
        n - len(drawn),
        known=labelled_soon,
        votes=None if cold else votes,
        closed=shut,
        random_state=random_state,
    )
    return _woven(turns, drawn, others, "typical" if cold else "uncertain")


def teaching_rows(X: Any, votes: Floats, n: int, *, known: Bools) -> Ints:
    """The rows of a table that teach most, by the votes of a classifier that was fitted to it."""
    asked = next_rows(
        row_space(X), votes, n, known=known, n_classes=votes.shape[1], random_share=0.0
    )
    return asked.rows


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
