r"""What mislabelling does to the error of the majority vote at each row (Section 5.2).

The matrix comes from :mod:`fewlabel.bounds.mislabeling`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewlabel._core.arrays import Floats
from fewlabel._core.checks import (
    check_label_proba,
    check_mislabeling,
    check_relaxation,
    check_same_shape,
    check_votes,
)
from fewlabel.bounds.cbound import alpha_delta, off_diagonal


class MislabelingReport(NamedTuple):
    """What the bounds ask of a mislabelling matrix, class by class; arrays of shape (n_classes,).

    ``broken`` marks the classes whose diagonal entry is not the largest of its row; ``rival`` is
    the true class that is labelled so most often among the wrong ones.
    """

    alpha: Floats
    delta: Floats
    rival: NDArray[np.intp]
    broken: NDArray[np.bool_]

    def __str__(self) -> str:
        if not self.broken.any():
            return "Each class is labelled right more often than any other is mistaken for it."
        return "\n".join(
            f"class {c}: P(Ŷ={c}|Y={c}) = {self.alpha[c]:.4g} is not above "
            f"P(Ŷ={c}|Y={self.rival[c]}) = {self.alpha[c] - self.delta[c]:.4g}; "
            f"needs relaxation > {max(0.0, -self.delta[c]):.4g}"
            for c in np.flatnonzero(self.broken)
        )


def mislabeling_report(mislabeling: ArrayLike) -> MislabelingReport:
    r"""Check the assumption of Section 5.2, :math:`p_{i,i}>p_{i,j}` for each row.

    Raises ``ValueError`` if the columns are not distributions: then it is no mislabelling matrix.

    Parameters
    ----------
    mislabeling : array-like of shape (n_classes, n_classes)

    Returns
    -------
    report : MislabelingReport

    See Also
    --------
    smallest_relaxation : The λ that mends it.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 5.2.

    Examples
    --------
    >>> print(mislabeling_report([[0.5, 0.75], [0.5, 0.25]]))
    class 0: P(Ŷ=0|Y=0) = 0.5 is not above P(Ŷ=0|Y=1) = 0.75; needs relaxation > 0.25
    class 1: P(Ŷ=1|Y=1) = 0.25 is not above P(Ŷ=1|Y=0) = 0.5; needs relaxation > 0.25
    """
    matrix = check_mislabeling(mislabeling)
    alpha, delta = alpha_delta(matrix)
    return MislabelingReport(alpha, delta, off_diagonal(matrix).argmax(axis=1), ~(delta > 0))


def one_example_bound(
    votes: ArrayLike,
    imperfect_proba: ArrayLike,
    mislabeling: ArrayLike,
    *,
    relaxation: float = 0.0,
) -> Floats:
    r"""Bound on the error of the majority vote at each x (Section 5.2).

    .. math:: r(x) \le \frac{\hat r(x) - 1 + \lambda + \alpha(x)}{\lambda + \delta(x)}, \qquad
        \hat r(x) = 1 - P(\hat Y = B_Q(x)\mid x)

    Parameters
    ----------
    votes, imperfect_proba : array-like of shape (n_samples, n_classes)
    mislabeling : array-like of shape (n_classes, n_classes)
    relaxation : float, default=0.0
        λ ≥ 0 (Section 5.2). Rows with :math:`\lambda+\delta(x)\le 0`, where
        the theorem says nothing, get ``inf``.

    Returns
    -------
    bound : ndarray of shape (n_samples,)
        A guarantee if both distributions are the true ones and Ŷ depends on x through Y only.

    See Also
    --------
    chittineni_bound : An older bound, of the optimal classifier.
    c_bound_imperfect : A bound on the mean over rows.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 5.2.

    Examples
    --------
    >>> one_example_bound([[0.9, 0.1]], [[0.75, 0.25]], [[0.75, 0.25], [0.25, 0.75]]).tolist()
    [0.0]
    """
    v = check_votes(votes)
    proba = check_label_proba(imperfect_proba, v)
    lam = check_relaxation(relaxation)
    alpha, delta = alpha_delta(mislabeling)
    check_same_shape(delta, v[0], "a row of mislabeling", "a row of votes")
    best = v.argmax(axis=1)
    scale = np.full(len(delta), np.inf)
    np.divide(1.0, lam + delta, out=scale, where=lam + delta > 0)
    excess = (lam + alpha)[best] - proba[np.arange(len(v)), best]
    applies = np.isfinite(scale)[best]
    return np.multiply(excess, scale[best], out=np.full(len(v), np.inf), where=applies)


def chittineni_bound(
    votes: ArrayLike, imperfect_proba: ArrayLike, mislabeling: ArrayLike
) -> Floats:
    r"""Bound of Chittineni (1980, Eq. 3.14) at each x, to compare :func:`one_example_bound` with.

    .. math:: r^*(x) \le 1 - \frac{1-\hat r(x)}{\beta}, \qquad \beta = \max_i \sum_j p_{i,j}

    It bounds the error :math:`r^*(x) = 1-\max_c P(Y=c\mid x)` of the *optimal* classifier and says
    nothing about another one. Its correction β is the same for every predicted class.

    Parameters
    ----------
    votes, imperfect_proba : array-like of shape (n_samples, n_classes)
    mislabeling : array-like of shape (n_classes, n_classes)

    Returns
    -------
    bound : ndarray of shape (n_samples,)

    See Also
    --------
    one_example_bound : The bound of the paper.

    References
    ----------
    .. [1] C. Chittineni, "Learning with imperfectly labeled patterns", 1980, Eq. 3.14.

    Examples
    --------
    >>> chittineni_bound([[0.9, 0.1]], [[0.75, 0.25]], [[0.75, 0.25], [0.25, 0.75]]).tolist()
    [0.25]
    """
    v = check_votes(votes)
    proba = check_label_proba(imperfect_proba, v)
    beta = check_mislabeling(mislabeling).sum(axis=1)
    check_same_shape(beta, v[0], "a row of mislabeling", "a row of votes")
    return 1.0 - proba[np.arange(len(v)), v.argmax(axis=1)] / beta.max()
