"""The space in which rows are near or far: standardised features, or their main components."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from fewlabel._core.arrays import Floats

COMPONENTS = 32
"""Distances in more dimensions than this are all alike."""

NEIGHBOURS = 20
"""Nearest rows that say how typical a row is."""

# Distances to rows further than this many deviations away say nothing more.
_FAR = 6.0


def row_space(X: Any, *, n_components: int = COMPONENTS, random_state: int = 0) -> Floats:
    """Points for the rows of a table, near each other where rows are alike.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
        Numbers; NaN counts as the mean of its feature.
    n_components : int, default=32
        At most this many dimensions.
    random_state : int, default=0

    Returns
    -------
    points : ndarray of float32 of shape (n_rows, n_dimensions)

    Examples
    --------
    >>> row_space(np.array([[1.0, 5.0], [3.0, np.nan], [2.0, 5.0]])).shape
    (3, 2)
    """
    if issparse(X):
        scaled: Any = MaxAbsScaler().fit_transform(X)
        width = min(n_components, min(scaled.shape) - 1)
        if width < 1:
            return np.asarray(scaled.toarray(), dtype=np.float32)
        points = TruncatedSVD(width, random_state=random_state).fit_transform(scaled)
        return np.asarray(points, dtype=np.float32)
    rows = np.array(X, dtype=np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a feature without any value
        scaled = StandardScaler().fit_transform(rows)
    scaled = np.clip(np.nan_to_num(scaled, nan=0.0, posinf=_FAR, neginf=-_FAR), -_FAR, _FAR)
    width = min(n_components, *scaled.shape)
    if scaled.shape[1] > n_components and width >= 1:
        scaled = PCA(width, random_state=random_state).fit_transform(scaled)
    return np.asarray(scaled, dtype=np.float32)


def typicality(points: Floats, n_neighbors: int = NEIGHBOURS) -> Floats:
    r"""How typical each row is of the place where it lies.

    .. math:: t(x) = \Bigl(\frac1k \sum_{x' \in N_k(x)} \lVert x - x' \rVert\Bigr)^{-1}

    Parameters
    ----------
    points : ndarray of shape (n_rows, n_dimensions)
    n_neighbors : int, default=20

    Returns
    -------
    typicality : ndarray of shape (n_rows,)

    References
    ----------
    Hacohen, Dekel and Weinshall (2022), Active learning on a budget: opposite strategies suit high
    and low budgets. ICML.

    Examples
    --------
    >>> int(typicality(np.array([[0.0], [1.0], [2.0], [9.0]]), 2).argmax())
    1
    """
    k = min(n_neighbors, len(points) - 1)
    if k < 1:
        return np.ones(len(points))
    distances, _ = NearestNeighbors(n_neighbors=k).fit(points).kneighbors()
    return np.asarray(1.0 / (distances.mean(axis=1) + 1e-9), dtype=np.float64)


def usual_distance(points: Floats, sample: int = 2_000, random_state: int = 0) -> float:
    """Median over the rows of the mean distance to their nearest neighbours, by a sample of rows.

    Unlike the distance to the nearest row it does not shrink where every row has a copy.

    Examples
    --------
    >>> round(usual_distance(np.array([[0.0], [1.0], [2.0]])), 3)
    1.5
    """
    rows = np.random.default_rng(random_state).permutation(len(points))[:sample]
    return float(np.median(1.0 / typicality(points[rows])))
