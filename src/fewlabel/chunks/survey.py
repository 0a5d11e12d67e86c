"""The first pass over rows in chunks: how many there are, their scales, and a sample of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis

from fewlabel._core.arrays import Bools, Floats, Ints
from fewlabel._core.scikit import n_rows, take_rows
from fewlabel.chunks import steps
from fewlabel.chunks.executor import Executor, join
from fewlabel.chunks.source import check_markers, join_rows

SAMPLE_ROWS = 20_000
"""Rows of the sample, at most: the error is estimated on it, graphs are built on it."""
SAMPLE_CELLS = 4_000_000
"""Cells of the sample, at most, unless that were less than 1,000 rows: it travels."""


class ColumnSums(NamedTuple):
    """Statistics of columns that add up over chunks: scales follow from them.

    Attributes
    ----------
    n : ndarray of shape (n_features,)
        Cells that are not missing.
    mean, squares : ndarray of shape (n_features,)
        Their mean, and the sum of squared deviations from it.
    low, high : ndarray of shape (n_features,)
        The smallest and the largest; NaN for a column without any.
    binary : ndarray of bool of shape (n_features,)
        Whether all of them are 0 or 1.
    """

    n: Floats
    mean: Floats
    squares: Floats
    low: Floats
    high: Floats
    binary: Bools

    @classmethod
    def of(cls, X: Any) -> ColumnSums:
        """Sums over the rows of a matrix, dense or sparse; NaN is missing."""
        if issparse(X):
            mean, variance, n = mean_variance_axis(X, axis=0, return_sum_weights=True)
            low, high = min_max_axis(X, axis=0, ignore_nan=True)
            zeros = np.zeros(len(mean), dtype=bool)
            return cls(n, mean, variance * n, low, high, zeros)
        X = np.asarray(X, dtype=np.float64)
        missing = np.isnan(X)
        n = (~missing).sum(axis=0).astype(np.float64)
        if not missing.any():
            mean = X.mean(axis=0)
            squares = np.square(X - mean).sum(axis=0)
            low, high = X.min(axis=0), X.max(axis=0)
            return cls(n, mean, squares, low, high, ((X == 0) | (X == 1)).all(axis=0))
        known = np.maximum(n, 1)
        mean = np.where(missing, 0.0, X).sum(axis=0) / known
        squares = np.square(np.where(missing, 0.0, X - mean)).sum(axis=0)
        low, high = np.where(missing, np.inf, X).min(axis=0), np.where(missing, -np.inf, X).max(0)
        empty = n == 0
        low, high = np.where(empty, np.nan, low), np.where(empty, np.nan, high)
        return cls(n, mean, squares, low, high, ((X == 0) | (X == 1) | missing).all(axis=0))

    def __add__(self, other: Any) -> ColumnSums:
        r"""Sums over both parts, by the formulas of Chan, Golub and LeVeque.

        .. math:: M = M_a + M_b + \frac{n_a n_b}{n_a + n_b}\,(\bar x_b - \bar x_a)^2
        """
        n = self.n + other.n
        share = np.divide(other.n, n, out=np.zeros_like(n), where=n > 0)
        apart = other.mean - self.mean
        return ColumnSums(
            n,
            self.mean + apart * share,
            self.squares + other.squares + np.square(apart) * self.n * share,
            np.fmin(self.low, other.low),
            np.fmax(self.high, other.high),
            self.binary & other.binary,
        )

    @property
    def variance(self) -> Floats:
        """Of the cells that are not missing; 0 where there are none."""
        return self.squares / np.maximum(self.n, 1)


class DrawnRows(NamedTuple):
    """Rows drawn at random from all chunks: those with the smallest keys, in their order.

    Attributes
    ----------
    keys : ndarray of shape (n_rows,)
    places : ndarray of int of shape (n_rows, 2)
        The chunk of each row, and its position in there.
    X : rows
    """

    keys: Floats
    places: Ints
    X: Any


class Look(NamedTuple):
    """What the first pass tells of some chunks."""

    of_chunks: dict[int, steps.FirstLook]
    drawn: DrawnRows | None
    columns: ColumnSums | None


class Survey(NamedTuple):
    """What the first pass tells of all rows.

    Attributes
    ----------
    looks : list of FirstLook
        One for each chunk, in order.
    sample : rows in the form of the labelled ones, or None if there is no row
        At most ``SAMPLE_ROWS``, drawn at random, in random order.
    in_order : ndarray of int
        Positions in the sample, as its rows follow each other in the chunks.
    columns : ColumnSums or None
    """

    looks: list[steps.FirstLook]
    sample: Any
    in_order: Ints
    columns: ColumnSums | None

    @property
    def n_unlabeled(self) -> int:
        """Unlabelled rows of all chunks."""
        return sum(look.n_unlabeled for look in self.looks)


def survey_chunk(
    chunk: steps.Chunk, *, size: int, seed: int, columns: bool
) -> tuple[steps.Made, Look]:
    """Look at a chunk, draw rows from it, and sum up its columns."""
    made, looks = steps.begin(chunk)
    X = chunk["X"]
    n = n_rows(X)
    if n == 0:
        return made, Look(looks, None, None)
    keys = np.random.default_rng([seed, chunk["position"]]).random(n)
    rows = np.argsort(keys, kind="stable")[:size]
    places = np.column_stack([np.full(len(rows), chunk["position"]), rows])
    drawn = DrawnRows(keys[rows], places, take_rows(X, rows))
    return made, Look(looks, drawn, ColumnSums.of(X) if columns else None)


@dataclass(frozen=True)
class MergeLooks:
    """Merges what the first pass tells; ``size`` is that of the sample."""

    size: int

    def __call__(self, parts: Sequence[Look]) -> Look:
        """What they tell together."""
        looks = join([part.of_chunks for part in parts])
        sums = [part.columns for part in parts if part.columns is not None]
        columns = sums[0] if sums else None
        for other in sums[1:]:
            columns = other if columns is None else columns + other
        return Look(looks, self._drawn([p.drawn for p in parts if p.drawn is not None]), columns)

    def _drawn(self, parts: list[DrawnRows]) -> DrawnRows | None:
        if len(parts) < 2:
            return parts[0] if parts else None
        keys = np.concatenate([part.keys for part in parts])
        kept = np.argsort(keys, kind="stable")[: self.size]
        places = np.concatenate([part.places for part in parts])[kept]
        return DrawnRows(keys[kept], places, take_rows(join_rows([p.X for p in parts]), kept))


def survey_rows(
    executor: Executor,
    missing_label: Any,
    *,
    seed: int,
    n_features: int | None,
    columns: bool = False,
) -> Survey:
    """Pass over all rows once; raise if their marks of unlabelled rows disagree.

    Parameters
    ----------
    executor : Executor
    missing_label : what marks unlabelled rows
    seed : int
        Of the sample.
    n_features : int or None
        Columns of a row, if that is known: wide rows make a smaller sample.
    columns : bool, default=False
        Whether to sum up the columns, which must be numbers then.
    """
    wide = SAMPLE_CELLS // (n_features or 1)
    size = min(SAMPLE_ROWS, max(1_000, wide))
    found: Look = executor.run(
        survey_chunk,
        MergeLooks(size),
        ("X",),
        ("marks",),
        size=size,
        seed=seed,
        columns=columns,
    )
    looks = [found.of_chunks[position] for position in range(len(found.of_chunks))]
    check_markers([mark for look in looks for mark in look.markers], missing_label)
    if found.drawn is None:
        return Survey(looks, None, np.empty(0, dtype=np.intp), found.columns)
    in_order = np.lexsort(found.drawn.places.T[::-1])
    return Survey(looks, found.drawn.X, in_order, found.columns)


def sample_votes(
    sample: Any, initial: Any, final: Any, *, task: steps.Task
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Votes of the first and of the final model for the rows of the sample."""
    return task.learner.votes(initial, sample), task.learner.votes(final, sample)


def offsets_of(looks: Sequence[steps.FirstLook]) -> list[int]:
    """Position of the first row of each chunk among all rows that were read."""
    before: Ints = np.cumsum([0, *(look.n_read for look in looks)])[:-1]
    return before.tolist()
