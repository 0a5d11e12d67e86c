r"""Additive statistics of the class votes (Section 4.1): accumulate, merge, bound.

Every transductive quantity of a class j is a sum over rows, so all of them follow from the sums
within *cells* of equal (or, binned, of similar) votes for j. Cells of different chunks of rows add
up, which makes exact, chunked, out-of-core and distributed computation one algorithm:

>>> import numpy as np
>>> from fewlabel.bounds.transductive import risk_bound
>>> votes = np.array([[0.75, 0.25], [0.25, 0.75], [0.5, 0.5], [1.0, 0.0]])
>>> whole = VoteStatistics.from_votes(votes, votes)
>>> parts = VoteStatistics.from_votes(votes[:1], votes[:1]) + VoteStatistics.from_votes(
...     votes[1:], votes[1:]
... )
>>> risk_bound(parts) == risk_bound(whole) == risk_bound(votes, votes)
True
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csc_array

from fewlabel._core.arrays import Floats, Ints
from fewlabel._core.checks import check_votes_and_proba

_BUCKETS = 4096


# Rows of a block: its votes and label probabilities stay in the processor's cache.
_BLOCK_ROWS = 16_384

# Rows that tell whether votes are few.
_SAMPLE_ROWS = 2_048


@dataclass(frozen=True)
class ClassCells:
    r"""Sums over the rows whose vote for one class j falls into each cell.

    Attributes
    ----------
    edges : ndarray of shape (n_cells,)
        Lower end of each cell, ascending. In exact statistics a cell is one distinct vote
        :math:`\gamma_j^{(t)}` and the edge is that vote.
    mass : ndarray of shape (n_cells, n_classes)
        :math:`\sum_x P(Y=i\mid x)`; divided by :math:`u_i` it is the paper's :math:`B_{i,j}^{(t)}`.
    vote_mass : ndarray of shape (n_cells, n_classes)
        :math:`\sum_x P(Y=i\mid x)\,v_Q(x,j)`, the increments of :math:`u_i M_{i,j}^{<}`.
    predicted_mass : ndarray of shape (n_cells, n_classes)
        As ``mass``, over rows predicted j only: :math:`u_i b_{i,j}^{(t)}`.
    n_predicted : ndarray of int of shape (n_cells,)
        How many rows were predicted j.
    gibbs : ndarray of shape (n_classes,)
        :math:`u_i K_{i,j} = \sum_x P(Y=i\mid x)\,v_Q(x,j)\,1\{B_Q(x)=j\}`.
    """

    edges: Floats
    mass: Floats
    vote_mass: Floats
    predicted_mass: Floats
    n_predicted: Ints
    gibbs: Floats

    @classmethod
    def from_rows(
        cls, vote: Floats, predicted: NDArray[np.bool_], proba: Floats, resolution: int | None
    ) -> Self:
        """Cells of rows with these votes for the class. A kernel: trusts its input."""
        edges, cell = _bin(vote, resolution) if resolution else _distinct(vote)
        n_cells = len(edges)
        mass = _sum_by_cell(proba, cell, n_cells)
        # In exact statistics every row of a cell has the same vote: its edge.
        vote_mass = (
            _sum_by_cell(proba, cell, n_cells, vote) if resolution else mass * edges[:, None]
        )
        chosen = np.flatnonzero(predicted)
        proba_chosen, cell_chosen = proba[chosen], cell[chosen]
        return cls(
            edges=edges,
            mass=mass,
            vote_mass=vote_mass,
            predicted_mass=_sum_by_cell(proba_chosen, cell_chosen, n_cells),
            n_predicted=np.bincount(cell_chosen, minlength=n_cells),
            gibbs=vote[chosen] @ proba_chosen,
        )

    @classmethod
    def merge(cls, parts: Sequence[Self]) -> Self:
        """Sums over the rows of all parts; cells with one edge become one cell."""
        edges, cell = np.unique(np.concatenate([part.edges for part in parts]), return_inverse=True)

        def add(name: str) -> NDArray[np.float64]:
            return _sum_by_cell(
                np.concatenate([getattr(part, name) for part in parts]), cell, len(edges)
            )

        counts = np.concatenate([part.n_predicted for part in parts])
        return cls(
            edges=edges,
            mass=add("mass"),
            vote_mass=add("vote_mass"),
            predicted_mass=add("predicted_mass"),
            n_predicted=np.bincount(cell, weights=counts, minlength=len(edges)).astype(np.intp),
            gibbs=np.sum([part.gibbs for part in parts], axis=0),
        )

    def binned(self, resolution: int) -> Self:
        """The same sums in cells that are bins."""
        edges, cell = _bin(self.edges, resolution)

        def add(values: Floats) -> Floats:
            return _sum_by_cell(values, cell, len(edges))

        counts = np.bincount(cell, weights=self.n_predicted, minlength=len(edges))
        return replace(
            self,
            edges=edges,
            mass=add(self.mass),
            vote_mass=add(self.vote_mass),
            predicted_mass=add(self.predicted_mass),
            n_predicted=counts.astype(np.intp),
        )


def _distinct(vote: Floats) -> tuple[Floats, Ints]:
    """Distinct votes in ascending order and, for each row, the position of its vote in them."""
    if len(vote) > _BUCKETS:
        # The votes of a forest are few and apart: one in a bucket at most. Then no sort is needed.
        bucket = (vote * _BUCKETS).astype(np.intp)
        held = np.full(_BUCKETS + 2, np.nan)
        held[bucket] = vote
        if np.array_equal(held[bucket], vote):
            is_used = ~np.isnan(held)
            return held[is_used], (np.cumsum(is_used) - 1)[bucket]
    order = np.argsort(vote)
    ascending = vote[order]
    is_new = np.empty(len(vote), dtype=bool)
    is_new[:1] = True
    np.not_equal(ascending[1:], ascending[:-1], out=is_new[1:])
    cell = np.empty(len(vote), dtype=np.intp)
    cell[order] = np.cumsum(is_new) - 1
    return ascending[is_new], cell


def _bin(vote: Floats, resolution: int) -> tuple[Floats, Ints]:
    """Cells [t/R, (t+1)/R), with the vote 1 in a cell of its own."""
    edges = np.arange(resolution + 1) / resolution
    cell = np.minimum(vote * resolution, resolution).astype(np.intp)
    # Rounding in the product must not put a vote on the wrong side of an edge: the sums at an edge
    # have to be exact, or the bound would not be one.
    cell -= vote < edges[cell]
    cell += vote >= np.append(edges, np.inf)[cell + 1]
    return edges, cell


def _sum_by_cell(rows: Floats, cell: Ints, n_cells: int, weight: Floats | None = None) -> Floats:
    # A cells × rows matrix with one entry in a column adds up rows in one pass over them.
    entries = np.ones(len(cell)) if weight is None else weight
    pointers = np.arange(len(cell) + 1)
    return np.asarray(csc_array((entries, cell, pointers), shape=(n_cells, len(cell))) @ rows)


@dataclass(frozen=True)
class VoteStatistics:
    r"""All that the transductive bounds need to know of a set of rows.

    Parameters
    ----------
    cells : tuple of ClassCells
        One for each class j.
    u : ndarray of shape (n_classes,)
        Expected number of rows of each class, :math:`u_i = \sum_x P(Y=i\mid x)`.
    n_rows : int
    resolution : int or None
        Bins for each class, or None for exact statistics (a cell for each distinct vote).

    Notes
    -----
    Binned cells keep the *exact* sums of what falls into them, so everything is exact at the
    edges. Bounds that take θ and γ at edges only are valid and never smaller than the exact ones.

    Exact statistics of a forest of T fully grown trees have at most T + 1 cells a class. With
    continuous votes they have as many as there are rows: bin them if they are to be kept or sent.
    """

    cells: tuple[ClassCells, ...]
    u: Floats
    n_rows: int
    resolution: int | None = None

    @classmethod
    def from_votes(
        cls, votes: ArrayLike, label_proba: ArrayLike, *, resolution: int | None = None
    ) -> Self:
        """Accumulate the statistics of one chunk of rows.

        Parameters
        ----------
        votes, label_proba : array-like of shape (n_samples, n_classes)
        resolution : int, optional
            Number of bins for the votes of a class; exact without it.
        """
        v, proba = check_votes_and_proba(votes, label_proba)
        _check_resolution(resolution)
        return cls(
            cells=tuple(iter_class_cells(v, proba, resolution=resolution)),
            u=proba.sum(axis=0),
            n_rows=len(v),
            resolution=resolution,
        )

    @classmethod
    def merge(cls, parts: Iterable[Self]) -> Self:
        """Statistics of all rows from those of chunks of them, in any order."""
        parts = list(parts)
        if not parts:
            raise ValueError("There are no statistics to merge; at least one chunk is needed.")
        kinds = {(part.resolution, len(part.u)) for part in parts}
        if len(kinds) > 1:
            raise ValueError(
                "Statistics can only be merged if they have the same resolution and classes. Got "
                f"(resolution, n_classes) in {sorted(kinds, key=str)}."
            )
        return cls(
            cells=tuple(type(same[0]).merge(same) for same in zip(*(p.cells for p in parts))),
            u=np.sum([part.u for part in parts], axis=0),
            n_rows=sum(part.n_rows for part in parts),
            resolution=parts[0].resolution,
        )

    def __add__(self, other: Self) -> Self:
        return self.merge([self, other])

    def binned(self, resolution: int) -> Self:
        """The same sums in bins: what ``from_votes(..., resolution=resolution)`` gives.

        What is binned already can only be put into bins that consist of whole ones.
        """
        _check_resolution(resolution)
        if self.resolution is not None and self.resolution % resolution:
            raise ValueError(
                f"These statistics have {self.resolution} bins a class, which cannot be put into "
                f"{resolution}; accumulate them with resolution={resolution}."
            )
        cells = tuple(same.binned(resolution) for same in self.cells)
        return replace(self, cells=cells, resolution=resolution)

    def predicted_votes(self, j: int) -> tuple[Floats, Ints]:
        """Votes with which class j was predicted, ascending, and how many rows have each.

        Of binned votes, the lower end of the bin.
        """
        used = self.cells[j].n_predicted > 0
        return self.cells[j].edges[used], self.cells[j].n_predicted[used]

    @property
    def n_cells(self) -> int:
        """Cells of the class that has most of them."""
        return max(len(cells.edges) for cells in self.cells)

    @property
    def n_classes(self) -> int:
        return len(self.u)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays: what travels when statistics are sent to be merged."""
        arrays = [getattr(c, f.name) for c in self.cells for f in fields(ClassCells)]
        return int(sum(array.nbytes for array in arrays) + self.u.nbytes)


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
            edges, cell = _bin(vote, self.resolution)
            vote = edges[cell]
        return np.unique(vote, return_counts=True)

    def binned(self, resolution: int) -> RowStatistics:
        """The same votes in bins."""
        _check_resolution(resolution)
        return replace(self, resolution=resolution)


Statistics = VoteStatistics | RowStatistics
"""What a policy or a bound knows of rows."""


def _check_resolution(resolution: int | None) -> None:
    """Raise unless the number of bins makes sense."""
    if resolution is not None and (not isinstance(resolution, (int, np.integer)) or resolution < 1):
        raise ValueError(
            f"resolution must be a positive whole number of bins, or None for the exact "
            f"computation. Got {resolution!r} instead."
        )


def iter_class_cells(
    votes: Floats,
    label_proba: Floats,
    *,
    resolution: int | None = None,
    lowest: Floats | None = None,
) -> Iterator[ClassCells]:
    """Yield the cells of class 0, 1, …, one at a time: only one class is in memory.

    Rows whose vote for j is below ``lowest[j]`` are left out.
    """
    best = votes.argmax(axis=1)
    # One pass over the rows finds those of every class; a column of booleans is then an eighth of
    # a column of votes to read.
    reaches = None if lowest is None else votes >= lowest
    for j in range(votes.shape[1]):
        if reaches is None:
            vote, predicted, proba = np.ascontiguousarray(votes[:, j]), best == j, label_proba
        else:
            rows = np.flatnonzero(reaches[:, j])
            vote, predicted, proba = votes[rows, j], best[rows] == j, label_proba[rows]
        yield ClassCells.from_rows(vote, predicted, proba, resolution)


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
        edges, cell = _bin(lowest, resolution)
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
    are left out: no threshold that selects a different set of rows reaches down to them.
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
    _check_resolution(resolution)
    lowest = _lowest_predictions(v, resolution) if above_lowest_prediction else None
    if resolution or _few_distinct(v):
        cells = _iter_few_cells(v, proba, resolution, lowest)
    else:
        cells = iter_class_cells(v, proba, lowest=lowest)
    return CellSource(cells, proba.sum(axis=0), len(v), resolution)
