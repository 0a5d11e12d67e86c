"""More columns than rows: what can be computed on the n × n side.

Rows of n samples span at most n directions. Methods whose penalty treats all directions alike (a
spherical prior, a ridge) put no weight on the others, so they can be solved in a basis of that
span, exactly, in time n² d instead of d³.
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import f_classif

from fewlabel._core.arrays import Floats
from fewlabel._core.scikit import validate_data


def row_basis(rows: Floats) -> Floats:
    """Orthonormal columns, shape (d, min(n, d)), whose span holds the rows."""
    return np.linalg.qr(rows.T)[0]


def spherical_shrinkage(rows: Floats, n_features: int | None = None) -> float:
    r"""Ledoit and Wolf's weight of the spherical covariance, from the n × n side.

    With :math:`S = \frac1n X^\top X`, :math:`\mu = \mathrm{tr}\,S/d` and
    :math:`\lVert S\rVert^2 = \lVert XX^\top\rVert^2/n^2`:

    .. math::
        \delta = \tfrac1d\lVert S\rVert^2 - \mu^2,\qquad
        \beta = \tfrac1{dn}\Bigl(\tfrac1n\sum_i \lVert x_i\rVert^4 - \lVert S\rVert^2\Bigr),\qquad
        s = \min(\beta, \delta)/\delta.

    Parameters
    ----------
    rows : ndarray of shape (n, d), centred
    n_features : int, optional
        d, if the rows are given in a basis of fewer directions.

    Returns
    -------
    float

    See Also
    --------
    sklearn.covariance.ledoit_wolf_shrinkage : The same from the d × d side.

    References
    ----------
    .. [1] O. Ledoit, M. Wolf, "A well-conditioned estimator for large-dimensional covariance
       matrices", Journal of Multivariate Analysis 88, 2004.
    """
    n = len(rows)
    d = rows.shape[1] if n_features is None else n_features
    squares = np.einsum("ij,ij->i", rows, rows)
    # The smaller of the two products has the same norm.
    gram = rows @ rows.T if n <= rows.shape[1] else rows.T @ rows
    norm = float((gram**2).sum()) / n**2
    mu = squares.sum() / (n * d)
    delta = norm / d - mu**2
    beta = min((float((squares**2).sum()) / n - norm) / (d * n), delta)
    return 0.0 if beta <= 0.0 else float(beta / delta)


class WideLDA(LinearDiscriminantAnalysis):
    r"""Linear discriminant analysis with shrinkage, for more columns than rows, too.

    The estimate is that of scikit-learn's ``LinearDiscriminantAnalysis("lsqr", shrinkage="auto")``.
    Its covariance is a diagonal and a term of rank at most n,
    :math:`\Sigma = \Delta + A^\top A`, and with more columns than rows

    .. math::
        \Sigma^{-1}M = \Delta^{-1}M - \Delta^{-1}A^\top(I + A\Delta^{-1}A^\top)^{-1}A\Delta^{-1}M

    (Woodbury) is solved in time n² d instead of d³.

    See Also
    --------
    sklearn.discriminant_analysis.LinearDiscriminantAnalysis : Used where columns are fewer.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(20, 300)), np.arange(20) % 2
    >>> X[y == 1, :30] += 2.0
    >>> WideLDA().fit(X, y).predict(X).tolist() == y.tolist()
    True
    """

    def __init__(self) -> None:
        super().__init__("lsqr", shrinkage="auto")

    def fit(self, X: Any, y: Any) -> Self:
        """Fit; X is dense, of shape (n_samples, n_features)."""
        X = np.asarray(X)
        if X.shape[1] <= X.shape[0]:
            return super().fit(X, y)
        X, y = validate_data(self, X, y, dtype=np.float64)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            return super().fit(X, y)  # it says what is wrong
        self.priors_ = np.bincount(codes) / len(codes)
        self.means_ = np.stack([X[codes == k].mean(axis=0) for k in range(len(self.classes_))])
        coef = self._solve(X, codes)
        intercept = np.log(self.priors_) - 0.5 * np.einsum("kd,kd->k", self.means_, coef)
        if len(self.classes_) == 2:  # as scikit-learn: one score, of the second class
            coef, intercept = np.diff(coef, axis=0), np.diff(intercept)
        self.coef_, self.intercept_ = coef, intercept
        return self

    def _solve(self, X: Floats, codes: NDArray[np.intp]) -> Floats:
        """Means times the inverse covariance, shape (n_classes, n_features)."""
        diagonal, parts = np.zeros(X.shape[1]), []
        for k, prior in enumerate(self.priors_):
            centred = X[codes == k] - self.means_[k]
            scale = centred.std(axis=0)
            scale[scale < 10 * np.finfo(float).eps * np.abs(self.means_[k])] = 1.0
            scale[scale == 0.0] = 1.0
            scaled = centred / scale
            n = len(scaled)
            shrinkage = spherical_shrinkage(scaled)
            diagonal += prior * shrinkage * (scaled**2).sum() / scaled.size * scale**2
            parts.append(np.sqrt(prior * (1.0 - shrinkage) / n) * centred)
        A = np.concatenate(parts)
        # A feature that never varies within a class, or no shrinkage, would divide by 0.
        least = 1e-4 * max(diagonal.max(), float((A**2).sum()) / A.shape[1])
        diagonal = np.maximum(diagonal, least if least > 0 else 1.0)
        weighted = A / diagonal
        inner = np.eye(len(A)) + weighted @ A.T
        M = self.means_ / diagonal
        return M - np.linalg.solve(inner, A @ M.T).T @ weighted


class ScreenedClassifier(ClassifierMixin, BaseEstimator):
    """A classifier on the columns whose means differ most between the classes.

    Among thousands of columns few may tell the classes apart, and a classifier that looks at all
    of them drowns in the others. The columns are chosen by the F statistic of the rows of ``fit``,
    so that cross-fitting chooses them anew without the held-out labels.

    Parameters
    ----------
    estimator : classifier
    n_columns : int, default=50

    See Also
    --------
    sklearn.feature_selection.SelectKBest : The choice alone.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(30, 500)), np.arange(30) % 2
    >>> X[y == 1, :5] += 2.0
    >>> clf = ScreenedClassifier(WideLDA(), n_columns=5).fit(X, y)
    >>> len(set(clf.columns_) & set(range(5))) >= 4
    True
    """

    def __init__(self, estimator: Any, n_columns: int = 50) -> None:
        self.estimator = estimator
        self.n_columns = n_columns

    def fit(self, X: Any, y: Any) -> Self:
        """Choose columns, and fit the classifier on them."""
        with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # columns that are constant
            scores = np.nan_to_num(f_classif(X, y)[0], nan=-1.0, posinf=np.finfo(float).max)
        self.columns_ = np.sort(np.argsort(-scores, kind="stable")[: self.n_columns])
        self.estimator_ = clone(self.estimator).fit(self._of(X), y)
        self.classes_, self.n_features_in_ = self.estimator_.classes_, X.shape[1]
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Votes of the classifier."""
        votes: Floats = self.estimator_.predict_proba(self._of(X))
        return votes

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels."""
        return np.asarray(self.estimator_.predict(self._of(X)))

    def _of(self, X: Any) -> Floats:
        chosen, sparse = X[:, self.columns_], issparse(X)
        return np.asarray(chosen.toarray() if sparse else chosen)
