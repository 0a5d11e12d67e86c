r"""LS: label spreading on a graph of similar rows, at any size.

With W the weights of a graph over all rows, D the diagonal matrix of its degrees and Y the given
labels (one row for each sample, zero where unlabelled), the label scores are the limit of

.. math:: F \leftarrow \alpha S F + (1-\alpha) Y, \qquad S = D^{-1/2} W D^{-1/2}.

``kernel="knn"`` joins each row to its nearest neighbours: S is sparse, and memory and the time of a
product grow with n·k. ``kernel="rbf"`` is the method as scikit-learn has it, with all n² weights
:math:`e^{-\gamma\lVert x - z\rVert^2}`.

References
----------
.. [1] D. Zhou, O. Bousquet, T. N. Lal, J. Weston, B. Schölkopf, "Learning with local and global
   consistency", NIPS 2004.
"""

from __future__ import annotations

import copy
import os
import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import NearestNeighbors
from sklearn.semi_supervised import LabelSpreading
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from fewlabel._core.arrays import Floats
from fewlabel._core.scikit import Interval, StrOptions
from fewlabel._core.targets import UNLABELED, encode_target
from fewlabel.baselines._base import Codes, SemiSupervisedClassifier, class_prior

_DENSE_MATRICES = 3  # n × n matrices that scikit-learn's LabelSpreading holds at its peak
_BATCH = 1024  # new rows whose similarities to all training rows are held at once


class LabelSpreadingClassifier(SemiSupervisedClassifier):
    r"""Label spreading (Zhou et al., 2004), with a graph whose size is linear in the rows.

    Rows that no label reaches, in the graph or beyond the range of floating point, get the share of
    each class among the labels: the result is always a distribution. The method depends on
    distances: scale the features so that distances mean something.

    Parameters
    ----------
    kernel : {"knn", "rbf"}, default="knn"
        "knn": symmetric graph of nearest neighbours, for any number of rows. "rbf": all pairs, by
        scikit-learn's :class:`~sklearn.semi_supervised.LabelSpreading`; it is refused if its three
        n × n matrices would not fit in ``memory_limit``.
    n_neighbors : int, default=10
        Neighbours k of a row, for "knn" also those that vote on a new row.
    gamma : float, default=0.001
        RBF parameter of :math:`e^{-\gamma\lVert x-z\rVert^2}`, for "rbf". The paper writes
        :math:`\sigma` for it.
    alpha : float in (0, 1), default=0.9
        Weight of the neighbours against the given label. scikit-learn's default is 0.2.
    n_components : int or None, default=50
        For "knn": wider data is projected on this many principal components before neighbours are
        looked for. None looks for them in all features.
    max_iter : int, default=200
    tol : float, default=1e-3
        Stop when the scores change by less in total (relative to the labels' total of 1 − α for
        "knn", as in scikit-learn for "rbf").
    memory_limit : float or None, default=None
        GiB that "rbf" may use. None is the memory of the machine.
    random_state : int, RandomState instance or None, default=None
        For the principal components of large or sparse data.
    n_jobs : int, default=None
        Threads of the neighbour search.
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
        S, for "knn".
    transduction_ : ndarray of shape (n_samples,)
        Given labels of the labelled rows, predicted ones of the others.
    n_iter_ : int

    See Also
    --------
    FewLabelClassifier : Label spreading and other families vote together.
    sklearn.semi_supervised.LabelSpreading : With a dense graph.

    Notes
    -----
    A new row gets the mean of its neighbours' distributions ("knn"), or the mean over all training
    rows weighted by similarity ("rbf"); the graph is not extended.

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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [StrOptions({"knn", "rbf"})],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "gamma": [Interval(Real, 0, None, closed="left")],
        "alpha": [Interval(Real, 0, 1, closed="neither")],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
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
        n_components: int | None = 50,
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
        self.n_components = n_components
        self.max_iter = max_iter
        self.tol = tol
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.missing_label = missing_label
        self.verbose = verbose

    def _fit(self, X: Any, codes: Codes) -> Floats:
        scores = self._spread_knn(X, codes) if self.kernel == "knn" else self._spread_rbf(X, codes)
        return self._distribute(scores, codes)

    def _distribute(self, scores: Floats, codes: Codes) -> Floats:
        self.class_prior_ = class_prior(codes, len(self.classes_))
        self.n_unreached_ = int((~_reached(scores)).sum())
        self._log(f"{self.n_iter_} iterations; no label reached {self.n_unreached_} rows")
        self.label_distributions_ = self._to_distributions(scores)
        return self.label_distributions_

    def respread(self, y: Any) -> Self:
        """A classifier for other labels of the same rows, on the graph of this one (``"knn"``).

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
        if self.kernel != "knn":
            raise ValueError("respread needs the graph of kernel='knn'. Use fit for other kernels.")
        other = copy.copy(self)
        codes, other.classes_ = encode_target(y, self.missing_label)
        if len(codes) != len(self.label_distributions_):
            raise ValueError(
                f"y must label the {len(self.label_distributions_)} rows of fit. Got {len(codes)}."
            )
        scores = other._spread_over(self.graph_, codes)
        other._label_rows(codes, other._distribute(scores, codes))
        return other

    def _spread_knn(self, X: Any, codes: Codes) -> Floats:
        self._projection = self._fit_projection(X)
        self._points = self._project(X)
        # Without an argument, a row is not its own neighbour.
        graph = self._nearest(self._points.shape[0] - 1).kneighbors_graph(mode="connectivity")
        self.graph_ = normalised_graph(graph)
        return self._spread_over(self.graph_, codes)

    def _nearest(self, n_others: int) -> NearestNeighbors:
        n_neighbors = max(min(self.n_neighbors, n_others), 1)
        return NearestNeighbors(n_neighbors=n_neighbors, n_jobs=self.n_jobs).fit(self._points)

    def _spread_over(self, graph: sparse.csr_matrix, codes: Codes) -> Floats:
        scores, self.n_iter_, converged = spread(
            graph,
            _one_hot(codes, len(self.classes_)),
            alpha=self.alpha,
            max_iter=self.max_iter,
            tol=self.tol,
        )
        if not converged:
            warnings.warn(
                f"Label spreading stopped at max_iter={self.max_iter} before the scores changed by "
                f"less than tol={self.tol}. Increase max_iter or tol, or decrease alpha.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return scores

    def _fit_projection(self, X: Any) -> PCA | None:
        # Fewer components than rows and features: what every solver of PCA can do.
        if self.n_components is None or self.n_components >= min(X.shape):
            return None
        return PCA(self.n_components, random_state=self.random_state).fit(X)

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
                f"kernel='rbf' needs about {needed:.3g} GiB for {n_rows} rows "
                f"({_DENSE_MATRICES} dense matrices of {n_rows} × {n_rows}), more than the "
                f"{limit:.3g} GiB allowed. Use kernel='knn', whose memory is proportional to "
                f"n_samples · n_neighbors, fewer rows, or a larger memory_limit."
            )

    def _to_distributions(self, scores: Floats) -> Floats:
        reached = _reached(scores)
        out = np.tile(self.class_prior_, (len(scores), 1))
        out[reached] = scores[reached] / scores[reached].sum(axis=1, keepdims=True)
        return out

    def _scores(self, X: Any) -> Floats:
        if self.kernel == "knn":
            n_rows = self._points.shape[0]
            nearest = self._nearest(n_rows - 1).kneighbors(self._project(X), return_distance=False)
            return self.label_distributions_[nearest].mean(axis=1)
        scores = np.empty((X.shape[0], len(self.classes_)))
        for batch in gen_batches(len(scores), _BATCH):
            similarity = rbf_kernel(X[batch], self._rows, gamma=self.gamma)
            scores[batch] = similarity @ self.label_distributions_
        return self._to_distributions(scores)

    def predict_proba(self, X: Any) -> Floats:
        """Label distributions of new rows, from those of similar training rows.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
        """
        return self._checked_scores(X)


def normalised_graph(graph: sparse.csr_matrix) -> sparse.csr_matrix:
    """S = D^(-1/2) W D^(-1/2), where W joins two rows if either is a neighbour of the other."""
    weights = graph.maximum(graph.T).tocsr()
    degree = np.asarray(weights.sum(axis=1)).ravel()
    scale = np.zeros_like(degree)
    np.divide(1.0, np.sqrt(degree), out=scale, where=degree > 0)
    diagonal = sparse.diags_array(scale)
    return (diagonal @ weights @ diagonal).tocsr()


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


def _one_hot(codes: Codes, n_classes: int) -> Floats:
    Y = np.zeros((len(codes), n_classes))
    labeled = codes != UNLABELED
    Y[labeled, codes[labeled]] = 1.0
    return Y


def _reached(scores: Floats) -> np.ndarray[Any, np.dtype[np.bool_]]:
    total = scores.sum(axis=1)
    return np.isfinite(total) & (total > 0)


def _machine_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
