"""Views: a table with any number of columns as the network wants it.

The network has a fixed number of slots for columns and none of them means anything. A view scales
the columns (or takes the ranks of their values), projects wide tables on principal components, and
puts columns and classes into slots at random. Votes are averaged over several views.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.decomposition import PCA

from fewlabel._core.arrays import Floats
from fewlabel.network.weights import Array

LARGEST = 5.0  # standard deviations at which values are clipped, as in training
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

    def transform(self, X: Floats) -> Array:
        """Rows of at most as many columns as the network has slots for."""
        z = self.scaler.transform(X)
        if self.components is not None:
            z = self.components.transform(z)
        z = (z - self.mean) * self.factor
        return np.clip(z, -LARGEST, LARGEST).astype(np.float32, copy=False)


def fit_projection(kind: Scaling, n_components: int, X: Floats) -> Projection:
    """Scale, and leading principal components unless ``n_components`` is 0, from rows."""
    scaler = Scaler(kind, X)
    z = scaler.transform(X)
    found: PCA | None = None
    if n_components:
        found = PCA(min(n_components, *z.shape), random_state=0).fit(z)
        z = found.transform(z)
    spread = z.std(axis=0)
    factor = np.where(spread > 1e-6, 1.0 / np.maximum(spread, 1e-6), 0.0)
    return Projection(scaler, found, z.mean(axis=0), factor.astype(np.float32))


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


NARROW: tuple[tuple[Scaling, int], ...] = (("standard", 0), ("ranks", 0), ("raw", 32))
# Few components are better where few matter, many where many do: half of the views has each.
WIDE: tuple[tuple[Scaling, int], ...] = (
    ("raw", 32),
    ("standard", 10),
    ("ranks", 32),
    ("raw", 10),
    ("standard", 32),
    ("ranks", 10),
)
"""Scaling and number of components of the views of narrow and of wide tables, in turn."""


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
            projections[which] = fit_projection(*kinds[which], X)
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
