r"""LS: label spreading on a graph of similar rows, at any size.

With W the weights of a graph over all rows, D the diagonal matrix of its degrees and Y the given
labels (one row for each sample, zero where unlabelled), the label scores are the limit of

.. math:: F \leftarrow \alpha S F + (1-\alpha) Y, \qquad S = D^{-1/2} W D^{-1/2}.

``kernel="knn"`` joins each row to its nearest neighbours: S is sparse, and memory and the time of a
product grow with n·k. ``kernel="local"`` gives these edges the weights
:math:`e^{-\lVert x-z\rVert^2/(s_x s_z)}` with s the distance of the k-th neighbour [2]_.
``kernel="rbf"`` is the method as scikit-learn has it, with all n² weights
:math:`e^{-\gamma\lVert x - z\rVert^2}`.

References
----------
.. [1] D. Zhou, O. Bousquet, T. N. Lal, J. Weston, B. Schölkopf, "Learning with local and global
   consistency", NIPS 2004.
.. [2] L. Zelnik-Manor, P. Perona, "Self-tuning spectral clustering", NIPS 2004.
"""

from __future__ import annotations

import copy
import os
import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.semi_supervised import LabelSpreading
from sklearn.utils import gen_batches
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from fewlabel._core.arrays import Floats
from fewlabel._core.scikit import Interval, StrOptions
from fewlabel._core.targets import UNLABELED, encode_target
from fewlabel.assess.held_out import Fold
from fewlabel.baselines._base import Codes, SemiSupervisedClassifier, class_prior
from fewlabel.baselines._graph import (
    Search,
    distributions,
    fitted_pca,
    local_edges,
    neighbour_graph,
    one_hot,
    reached_rows,
    scales_of,
    search_of,
    spread,
    spread_faster,
    spread_in_blocks,
)

_DENSE_MATRICES = 3  # n × n matrices that scikit-learn's LabelSpreading holds at its peak
_LEAST_VARIANCE = 1e-6  # of a whitened component, relative to the largest
_HELD_OUT_TOLERANCE = 1e-3
_BATCH = 1024  # new rows whose similarities to all training rows are held at once


def _has_graph(self: LabelSpreadingClassifier) -> bool:
    if self.kernel == "rbf":
        raise AttributeError("It needs the graph of 'knn' or 'local'. Got kernel='rbf'.")
    return True


class LabelSpreadingClassifier(SemiSupervisedClassifier):
    r"""Label spreading (Zhou et al., 2004), with a graph whose size is linear in the rows.

    Rows that no label reaches, in the graph or beyond the range of floating point, get the share of
    each class among the labels: the result is always a distribution. The method depends on
    distances: scale the features so that distances mean something.

    Parameters
    ----------
    kernel : {"knn", "local", "rbf"}, default="knn"
        "knn": symmetric graph of nearest neighbours, for any number of rows. "local": the same
        graph with weights that fall with the distance, measured in that of the k-th neighbours.
        "rbf": all pairs, by scikit-learn's :class:`~sklearn.semi_supervised.LabelSpreading`; it is
        refused if its three n × n matrices would not fit in ``memory_limit``.
    n_neighbors : int, default=10
        Neighbours k of a row, for "knn" and "local" also those that vote on a new row.
    gamma : float, default=0.001
        RBF parameter of :math:`e^{-\gamma\lVert x-z\rVert^2}`, for "rbf". The paper writes
        :math:`\sigma` for it.
    alpha : float in (0, 1), default=0.9
        Weight of the neighbours against the given label. scikit-learn's default is 0.2.
    balanced : bool, default=False
        Whether the labels of a class share a weight of 1, so that a class with many labels does not
        reach further than one with few. For "knn" and "local".
    n_components : int or None, default=50
        For "knn" and "local": wider data is projected on this many principal components before
        neighbours are looked for. None looks for them in all features.
    whiten : bool, default=False
        Whether the principal components are divided by their standard deviations; then rows of any
        width are projected.
    max_iter : int, default=200
    tol : float, default=1e-3
        Stop when the scores change by less in total (relative to the labels' total of 1 − α; as in
        scikit-learn for "rbf").
    memory_limit : float or None, default=None
        GiB that "rbf" may use. None is the memory of the machine.
    random_state : int, RandomState instance or None, default=None
        For the principal components of large or sparse data.
    n_jobs : int, default=None
        Threads of the neighbour search among up to six features; beyond, it has OpenMP's threads.
    missing_label : object, default="auto"
        What marks an unlabelled row; "auto" takes -1, NaN, None and pd.NA.
    verbose : int, default=0

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    label_distributions_ : ndarray of shape (n_samples, n_classes)
    class_prior_ : ndarray of shape (n_classes,)
    n_unreached_ : int
        Training rows that no label reached.
    graph_ : sparse matrix of shape (n_samples, n_samples)
        S, for "knn" and "local".
    transduction_ : ndarray of shape (n_samples,)
        Given labels of the labelled rows, predicted ones of the others.
    n_iter_ : int

    See Also
    --------
    FewLabelClassifier : Label spreading and other families vote together.
    sklearn.semi_supervised.LabelSpreading : With a dense graph.

    Notes
    -----
    A new row gets the mean of its neighbours' distributions ("knn"; weighted as edges for "local"),
    or the mean over all training rows weighted by similarity ("rbf"); the graph is not extended.

    References
    ----------
    .. [1] D. Zhou, O. Bousquet, T. N. Lal, J. Weston and B. Schölkopf, "Learning with local and
           global consistency", 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from fewlabel import LabelSpreadingClassifier
    >>> X, y_true = make_moons(200, noise=0.05, random_state=0)
    >>> y = np.full(200, -1)
    >>> y[[0, 1]] = y_true[[0, 1]]
    >>> clf = LabelSpreadingClassifier(alpha=0.99, max_iter=2000).fit(X, y)
    >>> float((clf.transduction_ == y_true).mean())
    1.0
    """

    _sparse = True
    _search: Search | None = None  # made in fit, and again where a file brought the classifier

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [StrOptions({"knn", "local", "rbf"})],
        "balanced": ["boolean"],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "gamma": [Interval(Real, 0, None, closed="left")],
        "alpha": [Interval(Real, 0, 1, closed="neither")],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "whiten": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "memory_limit": [Interval(Real, 0, None, closed="neither"), None],
        "random_state": ["random_state"],
        "n_jobs": [None, Integral],
        "missing_label": "no_validation",
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        kernel: str = "knn",
        *,
        n_neighbors: int = 10,
        gamma: float = 0.001,
        alpha: float = 0.9,
        balanced: bool = False,
        n_components: int | None = 50,
        whiten: bool = False,
        max_iter: int = 200,
        tol: float = 1e-3,
        memory_limit: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        missing_label: object = "auto",
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.n_neighbors = n_neighbors
        self.gamma = gamma
        self.alpha = alpha
        self.balanced = balanced
        self.n_components = n_components
        self.whiten = whiten
        self.max_iter = max_iter
        self.tol = tol
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.missing_label = missing_label
        self.verbose = verbose

    def _fit(self, X: Any, codes: Codes) -> Floats:
        if self.kernel == "rbf":
            return self._distribute(self._spread_rbf(X, codes), codes)
        return self._distribute(self._spread_graph(X, codes), codes)

    def _distribute(self, scores: Floats, codes: Codes) -> Floats:
        self._codes = codes
        self.class_prior_ = class_prior(codes, len(self.classes_))
        self.n_unreached_ = int((~reached_rows(scores)).sum())
        self._log(f"{self.n_iter_} iterations; no label reached {self.n_unreached_} rows")
        self.label_distributions_ = distributions(scores, self.class_prior_)
        return self.label_distributions_

    @available_if(_has_graph)
    def respread(self, y: Any) -> Self:
        """A classifier for other labels of the same rows, on the graph of this one.

        Looking for neighbours is most of the work of ``fit``, and it needs no label.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Labels of the rows of ``fit``, with unlabelled ones marked.

        Returns
        -------
        classifier : LabelSpreadingClassifier
            A new one, fitted; this one stays as it is.
        """
        check_is_fitted(self)
        other = copy.copy(self)
        other._search = self._search
        codes, other.classes_ = encode_target(y, self.missing_label)
        if len(codes) != len(self.label_distributions_):
            raise ValueError(
                f"y must label the {len(self.label_distributions_)} rows of fit. Got {len(codes)}."
            )
        scores = other._spread_over(self.graph_, codes)
        other._label_rows(codes, other._distribute(scores, codes))
        return other

    @available_if(_has_graph)
    def held_out_votes(self, folds: list[Fold]) -> Floats:
        """Votes for the labelled rows of ``fit``, each without the labels of its fold.

        Spreading is linear in the labels: those of each fold spread once, side by side, and what a
        fold's labels contribute is taken away from its rows.

        Parameters
        ----------
        folds : list of pairs of ndarray of int
            Training and test part of each fold, as positions among the labelled rows.

        Returns
        -------
        votes : ndarray of shape (n_labeled, n_classes)
            Zero for rows that are in no fold.
        """
        check_is_fitted(self)
        labeled = np.flatnonzero(self._codes != UNLABELED)
        codes, n_classes = self._codes[labeled], len(self.classes_)
        fold_of = np.full(len(labeled), len(folds))
        for fold, (_, test) in enumerate(folds):
            fold_of[test] = fold
        # A column for each class in each fold. Few digits will do: these votes only judge.
        graph, tol = self.graph_.astype(np.float32), max(self.tol, _HELD_OUT_TOLERANCE)
        scores_at_sources = spread_in_blocks(
            lambda sources: self._spread(graph, sources, tol)[0],
            len(self._codes),
            labeled,
            fold_of * n_classes + codes,
            (len(folds) + 1) * n_classes,
        )
        of_fold = scores_at_sources.reshape(len(labeled), len(folds) + 1, n_classes)
        total = of_fold.sum(axis=1)
        votes = np.zeros((len(labeled), n_classes))
        for fold, (train, test) in enumerate(folds):
            known = class_prior(codes[train], n_classes)
            scores = total[test] - of_fold[test, fold]
            votes[test] = distributions(self._weigh(scores, known * len(train)), known)
        return votes

    def _weigh(self, scores: Floats, counts: Floats) -> Floats:
        """Scores of labels that share a weight of 1 in each class, if they shall."""
        return scores / np.maximum(counts, 1.0) if self.balanced else scores

    def _spread_graph(self, X: Any, codes: Codes) -> Floats:
        self._projection = self._fit_projection(X)
        self._points = self._project(X)
        self._search = search_of(self._points, n_jobs=self.n_jobs)
        distances, positions = self._search(None, self.n_neighbors)
        self._scales = scales_of(distances) if self.kernel == "local" else None
        weights = self._edges(distances, positions, self._scales)
        self.graph_ = neighbour_graph(weights, positions)
        return self._spread_over(self.graph_, codes)

    def _edges(self, distances: Floats, positions: Any, scales: Floats | None) -> Floats:
        """Weights of the edges from rows, whose own scales are given, to their neighbours."""
        if scales is None or self._scales is None:
            return np.ones_like(distances)
        return local_edges(distances, positions, scales, self._scales)

    def _spread_over(self, graph: sparse.csr_matrix, codes: Codes) -> Floats:
        n_classes = len(self.classes_)
        counts = np.bincount(codes[codes != UNLABELED], minlength=n_classes).astype(np.float64)
        scores, self.n_iter_ = self._spread(graph, one_hot(codes, n_classes), self.tol)
        return self._weigh(scores, counts)

    def _spread(
        self, graph: sparse.csr_matrix, sources: NDArray[Any], tol: float
    ) -> tuple[NDArray[Any], int]:
        """Scores, and the iterations that they took."""
        solve = spread_faster if self.kernel == "local" else spread
        scores, n_iter, converged = solve(
            graph, sources, alpha=self.alpha, max_iter=self.max_iter, tol=tol
        )
        if not converged:
            warnings.warn(
                f"Label spreading stopped at max_iter={self.max_iter} before the scores changed by "
                f"less than tol={tol}. Increase max_iter or tol, or decrease alpha.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return scores, n_iter

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in super().__getstate__().items() if k != "_search"}

    def _fit_projection(self, X: Any) -> PCA | None:
        # Fewer components than rows and features: what every solver of PCA can do.
        most = min(X.shape) - 1
        if self.n_components is None or (self.n_components > most and not (self.whiten and most)):
            return None
        n = min(self.n_components, most)
        found = fitted_pca(X, n, self.whiten, self.random_state)
        if self.whiten:  # a direction without any spread is rounding noise
            spread_out = found.explained_variance_ > _LEAST_VARIANCE * found.explained_variance_[0]
            if 0 < (kept := int(spread_out.sum())) < n:
                found = fitted_pca(X, kept, True, self.random_state)
        return found

    def _project(self, X: Any) -> Any:
        return X if self._projection is None else self._projection.transform(X)

    def _spread_rbf(self, X: Any, codes: Codes) -> Floats:
        self._refuse_if_too_large(X.shape[0])
        model = LabelSpreading(
            "rbf", gamma=self.gamma, alpha=self.alpha, max_iter=self.max_iter, tol=self.tol
        )
        # Far rows have similarity 0; scikit-learn divides by it, here it means "not reached".
        with np.errstate(invalid="ignore", divide="ignore"):
            model.fit(X, codes)
        self.n_iter_ = model.n_iter_
        self._rows = X
        return model.label_distributions_

    def _refuse_if_too_large(self, n_rows: int) -> None:
        needed = _DENSE_MATRICES * 8 * n_rows**2 / 2**30
        limit = _machine_gib() if self.memory_limit is None else self.memory_limit
        self._log(f"about {needed:.2g} GiB for {_DENSE_MATRICES} matrices of {n_rows}²")
        if needed > limit:
            raise MemoryError(
                f"kernel='rbf' needs about {needed:.3g} GiB for {_DENSE_MATRICES} dense matrices "
                f"of {n_rows} × {n_rows}, more than the {limit:.3g} GiB allowed. Use kernel='knn' "
                f"(a sparse graph), fewer rows, or a larger memory_limit."
            )

    def _scores(self, X: Any) -> Floats:
        if self.kernel != "rbf":
            k = min(self.n_neighbors, max(self._points.shape[0] - 1, 1))
            if self._search is None:
                self._search = search_of(self._points, n_jobs=self.n_jobs)
            distances, positions = self._search(self._project(X), k)
            scales = None if self._scales is None else scales_of(distances)
            edges = self._edges(distances, positions, scales)
            votes = np.einsum("nk,nkc->nc", edges, self.label_distributions_[positions])
            return distributions(votes, self.class_prior_)
        scores = np.empty((X.shape[0], len(self.classes_)))
        for batch in gen_batches(len(scores), _BATCH):
            similarity = rbf_kernel(X[batch], self._rows, gamma=self.gamma)
            scores[batch] = similarity @ self.label_distributions_
        return distributions(scores, self.class_prior_)

    def predict_proba(self, X: Any) -> Floats:
        """Label distributions of new rows, from those of similar training rows."""
        return self._checked_scores(X)


def _machine_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
