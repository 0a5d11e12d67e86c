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
        edges, cell = bin_votes(vote, resolution) if resolution else _distinct(vote)
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
        edges, cell = bin_votes(self.edges, resolution)

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


def bin_votes(vote: Floats, resolution: int) -> tuple[Floats, Ints]:
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

    See Also
    --------
    transductive_bound, optimal_thresholds : Take it in place of votes.

    Notes
    -----
    Binned cells keep the *exact* sums of what falls into them, so everything is exact at the
    edges. Bounds that take θ and γ at edges only are valid and never smaller than the exact ones.

    Exact statistics of a forest of T fully grown trees have at most T + 1 cells a class. With
    continuous votes they have as many as there are rows: bin them if they are to be kept or sent.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 4.

    Examples
    --------
    >>> from fewlabel import VoteStatistics, risk_bound
    >>> votes = [[0.8, 0.2], [0.7, 0.3], [0.4, 0.6]]
    >>> chunks = [votes[:2], votes[2:]]
    >>> merged = VoteStatistics.merge(VoteStatistics.from_votes(v, v) for v in chunks)
    >>> merged.n_rows, round(risk_bound(merged), 6) == round(risk_bound(votes, votes), 6)
    (3, True)
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
        check_resolution(resolution)
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
        check_resolution(resolution)
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


def check_resolution(resolution: int | None) -> None:
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
