"""Label spreading on graphs in learned metrics: families of voters that look at all rows.

Neighbours in the given features are poor guides where many features say nothing. A metric that was
learned from the few labels knows which of them matter, the graph over all rows does the rest. In a
round of self-learning the metric is learned again, from pseudo-labels, too.

A graph may be carried by a sample of the rows, its anchors: fit on these; all others vote by their
neighbours among them (``predict_proba``).
"""

from __future__ import annotations

import copy
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import ExtraTreesClassifier

from fewlabel._core.arrays import Floats, Ints
from fewlabel._core.scikit import take_rows, validate_data
from fewlabel._core.targets import UNLABELED
from fewlabel.baselines import LabelSpreadingClassifier
from fewlabel.baselines._base import Codes, SemiSupervisedClassifier
from fewlabel.baselines._graph import reach
from fewlabel.baselines._wide import WideLDA

_MANY_ROWS = 4_000
_OVERSAMPLED = 10  # random vectors beside those that are wanted
_LEAST_REACH, _LEAST_RATIO = 0.5, 0.2  # chosen on texts and on DNA, seeds from 1000 on
_LEAST_EIGENVALUE = 1e-9  # relative to the largest: directions that say nothing

# --- metrics ---------------------------------------------------------------------------------


class LeafProximity(TransformerMixin, BaseEstimator):
    """Rows are near if they fall into the same leaves of trees that were trained on the labels.

    Leaves as 0 and 1, for each tree one 1, projected on the first right singular vectors.

    Parameters
    ----------
    teacher : fitted forest or None
        Trees that know the labels. None: ``n_trees`` extra trees are trained.
    n_trees : int
    n_components : int
    random_state : int
    n_jobs : int or None

    Attributes
    ----------
    forest_ : fitted forest
    components_ : ndarray of shape (n_leaves of all trees + 1, n_components)
        The last row, of zeros, is that of leaves in which no row of ``fit`` is.

    References
    ----------
    .. [1] L. Breiman, "Random forests", Machine Learning 45, 2001 (proximities).
    """

    def __init__(
        self,
        teacher: Any = None,
        *,
        n_trees: int = 100,
        n_components: int = 100,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.teacher = teacher
        self.n_trees = n_trees
        self.n_components = n_components
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, codes: Codes) -> Self:
        """Train the trees on the labelled rows, find the singular vectors of all rows."""
        self.fit_transform(X, codes)
        return self

    def fit_transform(self, X: Any, codes: Codes) -> Any:
        """The same, and the coordinates of these rows."""
        self.forest_ = self.teacher
        if self.forest_ is None:
            labeled = np.flatnonzero(codes != UNLABELED)
            trees = ExtraTreesClassifier(
                self.n_trees, random_state=self.random_state, n_jobs=self.n_jobs
            )
            self.forest_ = trees.fit(take_rows(X, labeled), codes[labeled])
        sizes = [tree.tree_.node_count for tree in self.forest_.estimators_]
        self._starts = np.cumsum([0, *sizes])
        nodes = self._nodes(X)
        occupied = np.flatnonzero(np.bincount(nodes.ravel(), minlength=self._starts[-1]))
        # The last place is that of the leaves in which no row of these is.
        self._place = np.full(self._starts[-1], len(occupied), dtype=np.int32)
        self._place[occupied] = np.arange(len(occupied))
        leaves = self._indicators(nodes, len(occupied))
        vectors = right_singular_vectors(leaves, self.n_components, random_state=self.random_state)
        # What other rows are projected on: most of a model file.
        self.components_ = np.pad(vectors, [(0, 1), (0, 0)]).astype(np.float32)
        return leaves @ vectors

    def transform(self, X: Any) -> Floats:
        """Coordinates of rows."""
        leaves = self._indicators(self._nodes(X), len(self.components_))
        coordinates: Floats = leaves @ self.components_
        return coordinates

    def _nodes(self, X: Any) -> Ints:
        """The leaf of each row in each tree, numbered through all nodes of all trees."""
        nodes: Ints = self.forest_.apply(X) + self._starts[:-1]
        return nodes

    def _indicators(self, nodes: Ints, n_places: int) -> sparse.csr_array:
        n, k = nodes.shape
        starts = np.arange(0, n * k + 1, k)
        ones = np.ones(n * k, dtype=np.float32)
        columns = self._place[nodes.ravel()]
        return sparse.csr_array((ones, columns, starts), shape=(n, n_places))


def right_singular_vectors(
    matrix: sparse.csr_array, n_components: int, *, random_state: int
) -> Floats:
    """The first right singular vectors, by two steps of subspace iteration.

    The last of them are not exact; label spreading needs distances only. It starts from random
    numbers for each column, not for each row: the order of the rows changes nothing.

    Returns
    -------
    vectors : ndarray of shape (n_columns, n_components)
        Fewer if the matrix has fewer rows or columns.

    References
    ----------
    .. [1] N. Halko, P. G. Martinsson, J. A. Tropp, "Finding structure with randomness", SIAM
       Review 53, 2011.
    """
    # Of many rows the last digits cost too much time.
    dtype = np.float32 if matrix.shape[0] > _MANY_ROWS else np.float64
    matrix = matrix.astype(dtype, copy=False)
    most = min(matrix.shape) - 1
    n_random = min(n_components + _OVERSAMPLED, most + 1)
    rng = np.random.default_rng(random_state)
    start = rng.standard_normal((matrix.shape[1], n_random), dtype=dtype)
    basis = np.linalg.qr(matrix @ (matrix.T @ (matrix @ start)))[0]
    vectors = matrix.T @ basis
    values, rotation = np.linalg.eigh(vectors.T @ vectors)
    first = np.argsort(values)[::-1][: min(n_components, most)]
    first = first[values[first] > _LEAST_EIGENVALUE * values[first[:1]]]
    return vectors @ (rotation[:, first] / np.sqrt(values[first]))


class Discriminants(TransformerMixin, BaseEstimator):
    r"""The space of the linear discriminants, in which every class has the unit covariance.

    With class means M and shrunk covariance :math:`\Sigma` within classes, rows x become
    :math:`x^\top A\,(A^\top\Sigma A)^{-1/2}`, :math:`A=\Sigma^{-1}M^\top`, so that
    :math:`A^\top\Sigma A = M\Sigma^{-1}M^\top`; means and A are centred.

    Parameters
    ----------
    teacher : fitted WideLDA or None
        It knows the labels. None: one is trained.

    Attributes
    ----------
    basis_ : ndarray of shape (n_features, at most n_classes - 1)
    """

    def __init__(self, teacher: Any = None) -> None:
        self.teacher = teacher

    def fit(self, X: Any, codes: Codes) -> Self:
        """Learn from the labelled rows."""
        lda, labeled = self.teacher, codes != UNLABELED
        if lda is None:
            lda = WideLDA().fit(X[labeled], codes[labeled])
        coef = np.vstack([-lda.coef_, lda.coef_]) / 2 if len(lda.coef_) == 1 else lda.coef_
        coef, means = coef - coef.mean(axis=0), lda.means_ - lda.means_.mean(axis=0)
        between = coef @ means.T
        values, vectors = np.linalg.eigh((between + between.T) / 2)
        kept = values > _LEAST_EIGENVALUE * values.max()
        if not values.max() > 0:
            raise ValueError(
                "no direction tells the classes apart: their means do not differ, or "
                "no class varies"
            )
        self.basis_ = coef.T @ (vectors[:, kept] / np.sqrt(values[kept]))
        return self

    def transform(self, X: Any) -> Floats:
        """Coordinates of rows."""
        coordinates: Floats = X @ self.basis_
        return coordinates


# --- the voter -------------------------------------------------------------------------------


class MetricSpreadingClassifier(SemiSupervisedClassifier):
    """Label spreading among neighbours in a metric that was learned from the labels.

    Parameters
    ----------
    metric : transformer
        Its ``fit_transform`` gets all rows and class codes, ``UNLABELED`` where there is none.
    spreading : LabelSpreadingClassifier
        How labels spread; ``fit`` uses a copy.
    missing_label : object, default="auto"
    verbose : int, default=0

    Attributes
    ----------
    metric_ : fitted transformer
    spreading_ : LabelSpreadingClassifier
        Fitted on what the metric makes of the rows.
    reach_ : ndarray of shape (n_classes,)
        How far the labels of each class get, see :func:`fewlabel.baselines._graph.reach`.
    classes_ : ndarray of shape (n_classes,)
    label_distributions_ : ndarray of shape (n_samples, n_classes)

    See Also
    --------
    fewlabel.LabelSpreadingClassifier : spreads among neighbours in the given features.
    """

    _sparse = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {}

    def __init__(
        self, metric: Any, spreading: Any, *, missing_label: object = "auto", verbose: int = 0
    ) -> None:
        self.metric = metric
        self.spreading = spreading
        self.missing_label = missing_label
        self.verbose = verbose

    @property
    def label_distributions_(self) -> Floats:
        """Votes for the rows of ``fit``."""
        distributions: Floats = self.spreading_.label_distributions_
        return distributions

    def _check_X(self, X: Any, *, reset: bool) -> Any:
        # Trees take missing values; other metrics are given rows without.
        return validate_data(
            self, X, accept_sparse="csr", ensure_all_finite="allow-nan", reset=reset
        )

    def _fit(self, X: Any, codes: Codes) -> Floats:
        self.metric_ = copy.copy(self.metric)
        points = self.metric_.fit_transform(X, codes)
        self.spreading_ = copy.copy(self.spreading).fit(points, codes)
        self.reach_ = reach(self.spreading_.graph_, codes)
        return self.label_distributions_

    def require_reach(self) -> None:
        """Refuse a graph on which the few labels of one class decide for all rows.

        A metric that has learned the labelled rows by heart puts them near each other only. That
        does no harm while the classes are alike in this; if labels of one class alone lead out,
        all other rows get that class, and surely.
        """
        least, most = self.reach_.min(), self.reach_.max()
        if self.reach_.mean() < _LEAST_REACH and least <= _LEAST_RATIO * most:
            raise ValueError("in its metric the labels of some classes hardly reach other rows")

    def _scores(self, X: Any) -> Floats:
        scores: Floats = self.spreading_.predict_proba(self.metric_.transform(X))
        return scores

    def predict_proba(self, X: Any) -> Floats:
        """Label distributions of new rows, from those of their neighbours in the metric."""
        return self._checked_scores(X)


def local_spreading(
    n_neighbors: int = 10, n_components: int | None = None, **params: Any
) -> LabelSpreadingClassifier:
    """Label spreading as the families do it: local weights, classes alike."""
    given = {"tol": 1e-4, **params}
    return LabelSpreadingClassifier(
        "local", n_neighbors=n_neighbors, n_components=n_components, balanced=True, **given
    )
