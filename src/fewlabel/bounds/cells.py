"""Cells of each class in turn, from votes in memory or from accumulated statistics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from fewlabel._core.arrays import Floats, Ints
from fewlabel._core.checks import check_votes_and_proba
from fewlabel.bounds.statistics import (
    ClassCells,
    VoteStatistics,
    bin_votes,
    check_resolution,
    iter_class_cells,
)

# Rows of a block: its votes and label probabilities stay in the processor's cache.
_BLOCK_ROWS = 16_384

# Rows that tell whether votes are few.
_SAMPLE_ROWS = 2_048


@dataclass(frozen=True, eq=False)
class RowStatistics:
    """The statistics of rows whose votes are in memory: sums are made when they are asked for.

    Exact statistics of continuous votes take :math:`K^2` numbers a row. Those of one class at a
    time take K, which is what a search for thresholds needs.

    Attributes
    ----------
    votes, label_proba : ndarray of shape (n_rows, n_classes)
    resolution : int or None
        Bins of the votes, as in :class:`VoteStatistics`.
    """

    votes: Floats
    label_proba: Floats
    resolution: int | None = None

    @property
    def n_rows(self) -> int:
        return len(self.votes)

    @property
    def n_classes(self) -> int:
        return self.votes.shape[1]

    def predicted_votes(self, j: int) -> tuple[Floats, Ints]:
        """As :meth:`VoteStatistics.predicted_votes`."""
        vote = self.votes[self.votes.argmax(axis=1) == j, j]
        if self.resolution:
            edges, cell = bin_votes(vote, self.resolution)
            vote = edges[cell]
        return np.unique(vote, return_counts=True)

    def binned(self, resolution: int) -> RowStatistics:
        """The same votes in bins."""
        check_resolution(resolution)
        return replace(self, resolution=resolution)


Statistics = VoteStatistics | RowStatistics
"""What a policy or a bound knows of rows."""


def _iter_few_cells(
    votes: Floats, label_proba: Floats, resolution: int | None, lowest: Floats | None
) -> Iterator[ClassCells]:
    # Where cells are few, blocks of rows that stay in the processor's cache are summed, and merged
    # as they come: no more than the cells of one block and those of all rows so far is in memory.
    total: dict[int, ClassCells] = {}
    for start in range(0, len(votes), _BLOCK_ROWS):
        block = iter_class_cells(
            votes[start : start + _BLOCK_ROWS],
            label_proba[start : start + _BLOCK_ROWS],
            resolution=resolution,
            lowest=lowest,
        )
        for j, cells in enumerate(block):
            total[j] = ClassCells.merge([total[j], cells]) if j in total else cells
    return iter(total.values())


def _few_distinct(votes: Floats) -> bool:
    """Whether a sample of rows has few distinct votes, as those of a forest are."""
    # From all over the array: rows that come sorted may begin with equal votes.
    step = -(-len(votes) // _SAMPLE_ROWS)
    return all(len(np.unique(column)) <= 512 for column in votes[::step].T)


def _lowest_predictions(votes: Floats, resolution: int | None) -> Floats:
    """The lowest vote with which each class was predicted; 1 for one that never was."""
    lowest = np.ones(votes.shape[1])
    for start in range(0, len(votes), _BLOCK_ROWS):
        block = votes[start : start + _BLOCK_ROWS]
        best = block.argmax(axis=1)
        np.minimum.at(lowest, best, block[np.arange(len(block)), best])
    if resolution:  # a bin is kept whole
        edges, cell = bin_votes(lowest, resolution)
        return edges[cell]
    return lowest


@dataclass(frozen=True)
class CellSource:
    """The cells of each class in turn, from wherever they come."""

    cells: Iterator[ClassCells]
    u: Floats
    n_rows: int
    resolution: int | None


def open_cells(
    votes: ArrayLike | Statistics,
    label_proba: ArrayLike | None,
    resolution: int | None,
    *,
    above_lowest_prediction: bool = False,
) -> CellSource:
    """Cells from votes (made class by class, on the fly) or from accumulated statistics.

    With ``above_lowest_prediction`` rows whose vote for j is below that of every row predicted j
    are left out: no threshold that trusts a different set of rows reaches down to them.
    """
    is_statistics = isinstance(votes, (VoteStatistics, RowStatistics))
    if is_statistics and (label_proba is not None or resolution is not None):
        raise ValueError(
            "VoteStatistics already contain label_proba and resolution; pass them alone."
        )
    if isinstance(votes, RowStatistics):
        rows = votes
        votes, label_proba, resolution = rows.votes, rows.label_proba, rows.resolution
    if isinstance(votes, VoteStatistics):
        return CellSource(iter(votes.cells), votes.u, votes.n_rows, votes.resolution)
    v, proba = check_votes_and_proba(votes, label_proba)
    check_resolution(resolution)
    lowest = _lowest_predictions(v, resolution) if above_lowest_prediction else None
    if resolution or _few_distinct(v):
        cells = _iter_few_cells(v, proba, resolution, lowest)
    else:
        cells = iter_class_cells(v, proba, lowest=lowest)
    return CellSource(cells, proba.sum(axis=0), len(v), resolution)
