"""Which rows to label next: those whose label would teach most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fewlabel._core.arrays import Floats, Ints


class Suggestion(NamedTuple):
    """Rows worth labelling, the best first.

    Attributes
    ----------
    rows : ndarray of int
        Their positions.
    margins : ndarray of float
        How far the highest vote is ahead of the second.
    gains : ndarray of float
    """

    rows: Ints
    margins: Floats
    gains: Floats


class NextRows(NamedTuple):
    """Rows worth labelling with their votes, the best first; those of chunks can be merged.

    Attributes
    ----------
    rows : ndarray of int
        Their positions among all rows.
    votes : ndarray of shape (n_rows, n_classes)
    margins, gains : as in :class:`Suggestion`
    """

    rows: Ints
    votes: Floats
    margins: Floats
    gains: Floats

    @classmethod
    def of(cls, votes: Floats, rows: Ints, n: int) -> NextRows:
        """The best n of rows with these votes and positions."""
        found = next_to_label(votes, n)
        return cls(rows[found.rows], votes[found.rows], found.margins, found.gains)

    @classmethod
    def at(cls, rows: Ints, votes: Floats) -> NextRows:
        """Rows that were chosen by other means, in their order."""
        return cls(rows, votes, *_margins_and_gains(votes))

    @classmethod
    def merge(cls, parts: Sequence[NextRows], n: int) -> NextRows:
        """The best n of all parts; of equal ones the first in the order of rows."""
        rows, votes, margins, gains = (np.concatenate(piece) for piece in zip(*parts))
        order = np.lexsort((rows, -gains))[:n]
        return cls(rows[order], votes[order], margins[order], gains[order])


def margins_of(votes: Floats) -> Floats:
    """How far the highest vote of each row is ahead of the second.

    Examples
    --------
    >>> margins_of(np.array([[0.75, 0.25], [0.5, 0.5]])).tolist()
    [0.5, 0.0]
    """
    if votes.shape[1] < 2:
        return np.ones(len(votes))
    top = np.partition(votes, -2, axis=1)
    return np.asarray(top[:, -1] - top[:, -2])


def _margins_and_gains(votes: Floats) -> tuple[Floats, Floats]:
    margins = margins_of(votes)
    return margins, (1.0 - votes.max(axis=1)) * (1.0 - margins)


def next_to_label(votes: Floats, n: int) -> Suggestion:
    r"""Rows whose label would teach most.

    .. math:: \text{gain} = (1 - v_1)\,(1 - (v_1 - v_2))

    with the two highest votes of a row: the first factor says how likely its present label is
    wrong, the second how near it is to being decided differently.

    Parameters
    ----------
    votes : ndarray of shape (n_rows, n_classes)
    n : int
        At most this many rows.

    Returns
    -------
    suggestion : Suggestion

    Examples
    --------
    >>> next_to_label(np.array([[0.9, 0.1], [0.5, 0.5], [0.7, 0.3]]), 2).rows.tolist()
    [1, 2]
    """
    if len(votes) == 0:
        return Suggestion(np.empty(0, dtype=np.intp), np.empty(0), np.empty(0))
    margins, gains = _margins_and_gains(votes)
    order = np.argsort(-gains, kind="stable")[:n]
    return Suggestion(order, margins[order], gains[order])
