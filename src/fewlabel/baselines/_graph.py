"""Graphs of nearest neighbours, and how labels spread on them.

Among few points neighbours are found exactly; among many by an inverted index, that of faiss if it
is installed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import issparse
from scipy.sparse.linalg import ArpackError
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from fewlabel._core.arrays import Bools, Floats, Ints
from fewlabel._core.targets import UNLABELED
from fewlabel.baselines._inverted_index import InvertedIndex

MANY_POINTS = 5_000
"""Points from which on an approximate search pays."""
_MOST_FEATURES_OF_A_TREE = 6  # beyond, comparing all pairs is faster than a tree of boxes
_LEAST_SCALE = 1e-12
_COLUMNS = 64  # of sources that spread at once: memory stays that of few classes
_MOST_CELLS = 50_000_000  # of sparse rows that may be made dense
_PROBED = 0.08  # share of the lists of an inverted index that a search looks into


def fitted_pca(X: Any, n_components: int, whiten: bool, random_state: Any) -> PCA:
    """Principal components, also of sparse rows of which many are equally far from each other.

    ARPACK, the solver for sparse rows, may fail on components of equal variance. Then the rows are
    made dense, if there is room for them.
    """
    pca = PCA(n_components, whiten=whiten, random_state=random_state)
    try:
        return pca.fit(X)
    except ArpackError as error:
        if np.prod(X.shape) > _MOST_CELLS:
            raise ValueError("its principal components cannot be found") from error
        return pca.fit(X.toarray())


Search = Callable[[Any, int], tuple[Floats, Ints]]
"""From rows (None: the points themselves) and k to distances and positions of the nearest."""


def search_of(points: Any, *, n_jobs: int | None = None) -> Search:
    """How the nearest of these points are looked for; an index of many points is made here, once.

    Parameters
    ----------
    points : {ndarray, sparse matrix} of shape (n_points, n_features)
    n_jobs : int, optional

    Returns
    -------
    search : callable
        As :func:`nearest` without the points.
    """
    n = points.shape[0]
    dense, few_features = not issparse(points), points.shape[1] <= _MOST_FEATURES_OF_A_TREE
    if n >= MANY_POINTS and dense and not few_features:
        by_faiss = find_spec("faiss") is not None
        find = _faiss_search(points) if by_faiss else partial(InvertedIndex(points).search, points)
        return partial(_by_index, points, find)
    algorithm = "kd_tree" if dense and few_features else "brute"
    index = NearestNeighbors(algorithm=algorithm, n_jobs=n_jobs).fit(points)

    def search(queries: Any, k: int) -> tuple[Floats, Ints]:
        # None: a row is not its own neighbour.
        distances, positions = index.kneighbors(queries, _at_most(k, n, queries))
        return distances, positions

    return search


def _at_most(k: int, n_points: int, queries: Any) -> int:
    return max(min(k, n_points - (queries is None)), 1)


def nearest(
    points: Any, k: int, queries: Any = None, *, n_jobs: int | None = None
) -> tuple[Floats, Ints]:
    """Distances and positions of the k nearest points, nearest first.

    Parameters
    ----------
    points : {ndarray, sparse matrix} of shape (n_points, n_features)
    k : int
        At most as many as there are (other) points are returned.
    queries : {ndarray, sparse matrix} of shape (n_queries, n_features), optional
        By default the points themselves, none of which is its own neighbour.
    n_jobs : int, optional

    Returns
    -------
    distances, positions : ndarray of shape (n_queries, k)

    Notes
    -----
    Among ``MANY_POINTS`` dense points or more the search is approximate: it finds nearly all of the
    neighbours in a fraction of the time.
    """
    return search_of(points, n_jobs=n_jobs)(queries, k)


def _by_index(
    points: Any, find: Callable[[Any, int], tuple[Floats, Ints]], queries: Any, k: int
) -> tuple[Floats, Ints]:
    own, k = queries is None, _at_most(k, len(points), queries)
    distances, found = find(points if own else queries, k + own)
    if own:  # the row itself is found first, or a twin of it
        itself = (found == np.arange(len(found))[:, None]) & np.isfinite(distances)
        itself[~itself.any(axis=1), -1] = True
        shape = len(found), k
        distances, found = distances[~itself].reshape(shape), found[~itself].reshape(shape)
    missing = ~np.isfinite(distances)  # fewer rows in the cells looked into: the nearest once more
    found = np.where(missing, found[:, :1], found)
    return np.where(missing, distances[:, :1], distances), found


def _faiss_search(points: Any) -> Callable[[Any, int], tuple[Floats, Ints]]:
    import faiss

    rows = np.ascontiguousarray(points, dtype=np.float32)
    n, d = rows.shape
    n_lists = int(np.sqrt(n))
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(d), d, n_lists)
    index.cp.seed = 0
    index.train(rows[:: max(1, n // (40 * n_lists))])
    index.add(rows)
    index.nprobe = max(8, int(_PROBED * n_lists))

    def search(queries: Any, k: int) -> tuple[Floats, Ints]:
        squares, found = index.search(np.ascontiguousarray(queries, dtype=np.float32), k)
        distances = np.sqrt(np.maximum(squares, 0.0)).astype(np.float64)
        return np.where(found < 0, np.inf, distances), np.maximum(found, 0)

    return search


def local_edges(
    distances: Floats, positions: Ints, scales: Floats, scales_of_points: Floats
) -> Floats:
    """Weights of edges to neighbours: they fall with the distance in units of both ends' scales."""
    edges: Floats = np.exp(-(distances**2) / (scales[:, None] * scales_of_points[positions]))
    return edges


def neighbour_graph(weights: Floats, positions: Ints) -> sparse.csr_matrix:
    """The normalised graph of rows with edges of these weights to their neighbours."""
    n, k = positions.shape
    starts = np.arange(0, n * k + 1, k)
    graph = sparse.csr_matrix((weights.ravel(), positions.ravel(), starts), shape=(n, n))
    return normalised_graph(graph)


def normalised_graph(graph: sparse.csr_matrix) -> sparse.csr_matrix:
    """S = D^(-1/2) W D^(-1/2), where W joins two rows if either is a neighbour of the other."""
    weights = graph.maximum(graph.T).tocsr()
    degree = np.asarray(weights.sum(axis=1)).ravel()
    scale = np.zeros_like(degree)
    np.divide(1.0, np.sqrt(degree), out=scale, where=degree > 0)
    diagonal = sparse.diags_array(scale)
    return (diagonal @ weights @ diagonal).tocsr()


def reach(S: sparse.csr_matrix, codes: Ints) -> Floats:
    r"""How far the labels of each class get: edges of its rows that lead to unlabelled ones.

    .. math:: \frac{n - 1}{u} \cdot \frac{1}{l_c} \sum_{i:\,y_i = c}
              \frac{\sum_{j \in U} S_{ij}}{\sum_j S_{ij}}

    About 1 if labelled rows are neighbours of others as any row is, 0 if only of each other. Rows
    without an edge count as 0.

    Parameters
    ----------
    S : sparse matrix of shape (n, n)
    codes : ndarray of int of shape (n,)
        0 to K − 1, each of which some row has; ``UNLABELED`` for the u unlabelled rows.

    Returns
    -------
    reach : ndarray of shape (K,)
    """
    labeled = np.flatnonzero(codes != UNLABELED)
    edges, unlabeled = S[labeled], codes == UNLABELED
    total = np.asarray(edges.sum(axis=1)).ravel()
    outward = edges @ unlabeled.astype(np.float64)
    shares = np.divide(outward, total, out=np.zeros_like(total), where=total > 0)
    own = codes[labeled]
    means: Floats = np.bincount(own, weights=shares) / np.bincount(own)
    return means * (len(codes) - 1) / max(unlabeled.sum(), 1)


def spread(
    S: sparse.csr_matrix, Y: Floats, *, alpha: float, max_iter: int, tol: float
) -> tuple[Floats, int, bool]:
    """Iterate F ← αSF + (1−α)Y; the scores, the iterations, and whether the change is below tol.

    The error of F shrinks by α at every product, so the change does too: it bounds the distance to
    the limit by α/(1−α) times itself.
    """
    source = (1.0 - alpha) * Y
    F = source
    for iteration in range(1, max_iter + 1):
        last, F = F, alpha * (S @ F) + source
        if np.abs(F - last).sum() <= tol * source.sum():
            return F, iteration, True
    return F, max_iter, False


def spread_faster(
    S: sparse.csr_matrix, Y: Floats, *, alpha: float, max_iter: int, tol: float
) -> tuple[Floats, int, bool]:
    """The limit that :func:`spread` has, by Chebyshev's iteration: a quarter of the products.

    The eigenvalues of I − αS are between 1 − α and 1 + α. It stops when the residual, which is the
    change of a plain step, is below tol.

    References
    ----------
    .. [1] G. H. Golub, R. S. Varga, "Chebyshev semi-iterative methods", Numerische Mathematik 3,
       1961.
    """
    residual = (1.0 - alpha) * Y
    limit = tol * residual.sum()
    F, step, ratio = np.zeros_like(residual), residual.copy(), alpha
    for iteration in range(1, max_iter + 1):
        F += step
        residual -= step
        change = S @ step
        change *= alpha
        residual += change
        if np.abs(residual, out=change).sum() <= limit:
            return np.maximum(F, 0.0), iteration, True
        following = 1.0 / (2.0 / alpha - ratio)
        step *= following * ratio
        step += np.multiply(residual, 2.0 * following / alpha, out=change)
        ratio = following
    return np.maximum(F, 0.0), max_iter, False


def one_hot(codes: Ints, n_classes: int) -> Floats:
    """A row of zeros for unlabelled rows."""
    Y = np.zeros((len(codes), n_classes))
    labeled = codes != UNLABELED
    Y[labeled, codes[labeled]] = 1.0
    return Y


def spread_in_blocks(
    solve: Callable[[Any], Any], n: int, rows: Ints, columns: Ints, n_columns: int
) -> Floats:
    """Scores at rows that are sources themselves, a few columns at a time.

    Parameters
    ----------
    solve : callable
        From sources, in single precision, to scores.
    n : int
        Rows of the graph.
    rows, columns : ndarray of int of shape (n_sources,)
        Each source is 1 in its column; columns without any are left 0.
    n_columns : int

    Returns
    -------
    scores : ndarray of shape (n_sources, n_columns)
    """
    scores = np.zeros((len(rows), n_columns))
    present = np.unique(columns)
    for block in np.split(present, range(_COLUMNS, len(present), _COLUMNS)):
        own = np.isin(columns, block)
        sources = np.zeros((n, len(block)), dtype=np.float32)
        sources[rows[own], np.searchsorted(block, columns[own])] = 1.0
        scores[:, block] = solve(sources)[rows]
    return scores


def scales_of(distances: Floats) -> Floats:
    """Distance of the last neighbour; a row among twins has none, and only they count for it."""
    return np.maximum(distances[:, -1], _LEAST_SCALE)


def distributions(scores: Floats, prior: Floats) -> Floats:
    reached = reached_rows(scores)
    out = np.tile(prior, (len(scores), 1))
    out[reached] = scores[reached] / scores[reached].sum(axis=1, keepdims=True)
    return out


def reached_rows(scores: Floats) -> Bools:
    total = scores.sum(axis=1)
    return np.isfinite(total) & (total > 0)
