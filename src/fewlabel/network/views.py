"""Views: a table with any number of columns as the network wants it.

The network has a fixed number of slots for columns and none of them means anything. A view scales
the columns (or takes the ranks of their values), projects wide tables on principal components, and
puts columns and classes into slots at random. Votes are averaged over several views.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.decomposition import PCA

from fewlabel._core.arrays import Floats
from fewlabel.network.weights import Array

LARGEST = 5.0  # standard deviations at which values are clipped, as in training
LARGEST_FACTOR = 2.5  # of a component whose standard deviation is kept in part, as in training
SMALLEST_SHARE = 0.01  # of the largest standard deviation, as in training
SAMPLE = 4_000  # rows from which scales, ranks and components are taken
_SMALLEST_SCALE = 1e-9

Scaling = Literal["standard", "ranks", "raw"]


class Scaler:
    """Columns with mean 0: standardised, as normal quantiles of their ranks, or only centred.

    Parameters
    ----------
    kind : {"standard", "ranks", "raw"}
    X : ndarray of shape (n_samples, n_features)
        Rows from which the scale is taken.
    """

    def __init__(self, kind: Scaling, X: Floats) -> None:
        self.kind = kind
        self.mean = X.mean(axis=0)
        spread = X.std(axis=0)
        constant = spread <= _SMALLEST_SCALE * np.maximum(np.abs(self.mean), 1.0)
        self.factor = np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, spread))
        if kind == "raw":  # one factor for all columns, so that their sizes keep their meaning
            total = np.sqrt(np.mean(spread[~constant] ** 2)) if (~constant).any() else 1.0
            self.factor = np.where(constant, 0.0, 1.0 / total)
        self.order = np.sort(X, axis=0) if kind == "ranks" else None

    def transform(self, X: Floats) -> Array:
        """Scale rows."""
        if self.order is None:
            return np.asarray((X - self.mean) * self.factor, dtype=np.float32)
        n = len(self.order)
        out = np.empty(X.shape, dtype=np.float32)
        for j in range(X.shape[1]):
            column = self.order[:, j]
            low = np.searchsorted(column, X[:, j], side="left")
            high = np.searchsorted(column, X[:, j], side="right")
            out[:, j] = ndtri((0.5 * (low + high) + 0.5) / (n + 1))
        out[:, self.factor == 0.0] = 0.0
        return out


@dataclass(frozen=True, eq=False)
class Projection:
    """Scaled columns, or their principal components, standardised and clipped."""

    scaler: Scaler
    components: PCA | None
    mean: Array
    factor: Array
    importance: Array

    def transform(self, X: Floats) -> Array:
        """Rows of at most as many columns as the network has slots for."""
        z = self.scaler.transform(X)
        if self.components is not None:
            z = self.components.transform(z)
        z = (z - self.mean) * self.factor
        return (np.clip(z, -LARGEST, LARGEST) * self.importance).astype(np.float32, copy=False)


class Kind(NamedTuple):
    """How a view shows a table.

    Attributes
    ----------
    scaling : {"standard", "ranks", "raw"}
    n_components : int
        Most principal components; 0: the columns themselves.
    power : float
        How much of their standard deviations components keep: 0 makes all alike.
    """

    scaling: Scaling
    n_components: int = 0
    power: float = 0.0


def fit_projection(kind: Kind, X: Floats) -> Projection:
    """Scale, and leading principal components if the kind has them, from rows."""
    scaler = Scaler(kind.scaling, X)
    z = scaler.transform(X)
    found: PCA | None = None
    if kind.n_components:
        found = PCA(min(kind.n_components, *z.shape), random_state=0).fit(z)
        z = found.transform(z)
    spread = z.std(axis=0)
    factor = np.where(spread > 1e-6, 1.0 / np.maximum(spread, 1e-6), 0.0)
    kept = importance(spread, kind.power)
    return Projection(scaler, found, z.mean(axis=0), factor.astype(np.float32), kept)


def importance(spread: Array, power: float) -> Array:
    """Factors of standardised components that keep a part of their standard deviations.

    Powers of the standard deviation, mean square 1, as in training.
    """
    share = np.maximum(spread / max(float(spread.max()), 1e-12), SMALLEST_SHARE)
    factor = share**power
    factor /= np.sqrt(np.mean(factor**2))
    return np.minimum(factor, LARGEST_FACTOR).astype(np.float32)


@dataclass(frozen=True, eq=False)
class View:
    """One way to show a table to the network.

    Attributes
    ----------
    projection : Projection
    columns : ndarray of int
        The slot of every column that the projection makes.
    classes : ndarray of int of shape (n_classes,)
        The slot of every class.
    seed : int
        For what else is drawn: which rows are in the context.
    """

    projection: Projection
    columns: NDArray[np.intp]
    classes: NDArray[np.intp]
    seed: int

    def present(self, n_slots: int) -> Array:
        """1 for slots that have a column."""
        present = np.zeros(n_slots, dtype=np.float32)
        present[self.columns] = 1.0
        return present

    def rows(self, X: Floats, n_slots: int) -> Array:
        """Rows with their columns in slots."""
        out = np.zeros((len(X), n_slots), dtype=np.float32)
        out[:, self.columns] = self.projection.transform(X)
        return out


NARROW = (Kind("ranks"), Kind("standard", 64, 0.5), Kind("raw", 64, 0.5), Kind("standard"))
# Few components are better where few matter, many where many do.
WIDE = (Kind("raw", 32, 0.5), Kind("raw", 10), Kind("ranks", 10), Kind("raw", 64))
"""The views of tables with no more columns than slots, and of wider ones, in turn."""


def make_views(
    X: Floats, n_views: int, n_classes: int, slots: tuple[int, int], rng: Any
) -> list[View]:
    """Views of a table; those with the same scaling share it and differ in their slots.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    n_views : int
    n_classes : int
    slots : tuple of int
        How many columns and classes the network has slots for.
    rng : RandomState
    """
    for_columns, for_classes = slots
    kinds = NARROW if X.shape[1] <= for_columns else WIDE
    if len(X) > SAMPLE:
        X = X[rng.choice(len(X), SAMPLE, replace=False)]
    projections: dict[int, Projection] = {}
    views = []
    for i in range(n_views):
        which = i % len(kinds)
        if which not in projections:
            kind = kinds[which]
            kind = kind._replace(n_components=min(kind.n_components, for_columns))
            projections[which] = fit_projection(kind, X)
        projection = projections[which]
        views.append(
            View(
                projection,
                rng.permutation(for_columns)[: len(projection.factor)],
                rng.permutation(for_classes)[:n_classes],
                int(rng.randint(2**31)),
            )
        )
    return views
