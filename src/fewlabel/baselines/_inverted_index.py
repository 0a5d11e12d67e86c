"""Nearest neighbours among many points, looked for in the cells around a row only."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from fewlabel._core.arrays import Floats, Ints

_POINTS_OF_A_CELL = 250
_FEWEST_PROBED = 5
_PROBED = 0.6  # times the root of the number of cells: where a graph is made, misses add up
_POINTS_FOR_A_CENTRE = 20
_KMEANS_STEPS = 5  # cells need not be good clusters
_MOST_FOUND = 32_000_000  # distances that are held at once: half a GiB with their positions


class InvertedIndex:
    """An inverted index: k-means divides the points, a search looks into the nearest cells.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_features)
        They are not kept: every search is given them.

    Notes
    -----
    Nearly all of the nearest points are found; ``make bench`` measures how many.
    """

    def __init__(self, points: Any) -> None:
        n_cells = max(1, len(points) // _POINTS_OF_A_CELL)
        shuffled = np.random.default_rng(0).permutation(len(points))
        # Twins cannot be told apart by more cells.
        some = np.unique(points[shuffled[: n_cells * _POINTS_FOR_A_CENTRE]], axis=0)
        n_cells = min(n_cells, len(some))
        means = KMeans(n_cells, init="random", n_init=1, max_iter=_KMEANS_STEPS, random_state=0)
        with threadpool_limits(1, user_api="openmp"):  # their number changes the last digits
            means.fit(some)
        cells = _by_value(means.predict(points), n_cells)
        occupied = [c for c, members in enumerate(cells) if len(members)]
        self._cells = [cells[c] for c in occupied]
        self._centres = _among(means.cluster_centers_[occupied], _FEWEST_PROBED)

    def search(self, points: Any, queries: Any, k: int) -> tuple[Floats, Ints]:
        """Distances and positions of the k nearest of the points divided, nearest first.

        Where the cells around a row hold fewer than k points, the distance of the others is
        infinite. More cells are looked into for the points themselves.
        """
        n_probed = _FEWEST_PROBED
        if queries is points:
            n_probed = max(n_probed, round(_PROBED * len(self._cells) ** 0.5))
        n_probed = min(n_probed, len(self._cells))
        block = max(1, _MOST_FOUND // (n_probed * k))
        blocks = (queries[i : i + block] for i in range(0, max(len(queries), 1), block))
        found = [self._search_block(points, rows, k, n_probed) for rows in blocks]
        distances, positions = zip(*found, strict=True)
        return np.concatenate(distances), np.concatenate(positions)

    def _search_block(
        self, points: Any, queries: Any, k: int, n_probed: int
    ) -> tuple[Floats, Ints]:
        probed = self._centres.kneighbors(queries, n_probed, return_distance=False)
        shape = (*probed.shape, k)
        distances, positions = np.full(shape, np.inf), np.zeros(shape, dtype=np.intp)
        for members, asked in zip(self._cells, _by_value(probed.ravel(), len(self._cells))):
            if len(asked):
                rows, slots = np.divmod(asked, probed.shape[1])
                cell = _among(points[members], k)
                found, which = cell.kneighbors(queries[rows])
                n_found = found.shape[1]
                distances[rows, slots, :n_found] = found
                positions[rows, slots, :n_found] = members[which]
        return _smallest(distances.reshape(len(queries), -1), positions, k)


def _among(points: Any, k: int) -> NearestNeighbors:
    return NearestNeighbors(n_neighbors=min(k, len(points)), algorithm="brute").fit(points)


def _by_value(codes: Ints, n_values: int) -> list[Ints]:
    """Positions of each value."""
    ends = np.bincount(codes, minlength=n_values).cumsum()
    return np.split(np.argsort(codes, kind="stable"), ends[:-1])


def _smallest(distances: Floats, positions: Ints, k: int) -> tuple[Floats, Ints]:
    """The k smallest distances of each row in ascending order, and their positions."""
    kept = np.argpartition(distances, k - 1, axis=1)[:, :k]
    kept = np.take_along_axis(kept, np.take_along_axis(distances, kept, 1).argsort(axis=1), 1)
    positions = positions.reshape(distances.shape)
    return np.take_along_axis(distances, kept, 1), np.take_along_axis(positions, kept, 1)
