r"""C-bounds on the error of the majority vote, with true and with imperfect labels (Section 5).

CB is Section 5.1, CBIL Section 5.3; beside them stand the first-order and the second-order bound
that the paper compares with. All are functions of the sums of :mod:`fewlabel.bounds.margins`.

Each holds for the distribution whose expectation is taken. If ``label_proba`` is the true
:math:`P(Y=c\mid x)` of the given rows, the bound on the error *on these rows* is a theorem; with
estimated probabilities, or as a statement about new rows, the number is an estimate
(:mod:`fewlabel.bounds.pac_bayes` pays for the sampling).
"""

from __future__ import annotations

import warnings
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewlabel._core.arrays import Floats
from fewlabel._core.checks import check_mislabeling, check_relaxation, check_same_shape, check_votes
from fewlabel.bounds.margins import MarginSums, margin_sums


class TrivialBoundWarning(UserWarning):
    """A bound does not apply to this input, and the trivial bound 1.0 was returned.

    See Also
    --------
    c_bound : Warns so.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 5.1.

    Examples
    --------
    >>> import warnings
    >>> from fewlabel import TrivialBoundWarning, c_bound
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", TrivialBoundWarning)
    ...     print(c_bound([[0.4, 0.6]], [0]))
    1.0
    """


# --- what mislabelling does to a bound -------------------------------------------------------


class Correction(NamedTuple):
    r"""How a bound on the error with imperfect labels becomes one on the true error.

    For rows predicted c, :math:`r(x) \le w_c\,\hat r(x) + \psi_c - w_c` with
    :math:`w_c = 1/(\lambda+\delta_c)` and :math:`\psi_c = (\lambda+\alpha_c)/(\lambda+\delta_c)`.
    """

    weight: Floats
    psi: Floats


def alpha_delta(mislabeling: ArrayLike) -> tuple[Floats, Floats]:
    r"""The two numbers for each predicted class through which mislabelling enters every bound.

    .. math:: \alpha_c = p_{c,c}, \qquad \delta_c = p_{c,c} - \max_{j\ne c} p_{c,j}

    with :math:`p_{i,j}=P(\hat Y=i\mid Y=j)` (Section 5.2). The maximum runs over
    the **row** of c; the text of the paper says column, its formulas say row.

    Parameters
    ----------
    mislabeling : array-like of shape (n_classes, n_classes)
        :math:`p_{i,j}`; columns sum to 1.

    Returns
    -------
    alpha, delta : ndarray of shape (n_classes,)

    See Also
    --------
    mislabeling_report : The same for people to read.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 5.2.

    Examples
    --------
    >>> alpha, delta = alpha_delta([[0.75, 0.5], [0.25, 0.5]])
    >>> alpha.tolist(), delta.tolist()
    ([0.75, 0.5], [0.25, 0.25])
    """
    matrix = check_mislabeling(mislabeling)
    alpha = np.diag(matrix).copy()
    return alpha, alpha - off_diagonal(matrix).max(axis=1)


def off_diagonal(matrix: Floats) -> Floats:
    """The matrix with a diagonal that is never the maximum."""
    rivals = matrix.copy()
    np.fill_diagonal(rivals, -np.inf)
    return rivals


def class_correction(
    sums: MarginSums, mislabeling: ArrayLike | None, relaxation: float
) -> Correction:
    r"""The correction for each class that is predicted; zero for the others.

    Parameters
    ----------
    sums : MarginSums
    mislabeling : array-like of shape (n_classes, n_classes), or None
    relaxation : float
        λ; it must make :math:`\lambda+\delta_c>0` for each predicted class.

    Returns
    -------
    correction : Correction
    """
    n_classes = len(sums.rows)
    if mislabeling is None:
        return Correction(np.ones(n_classes), np.ones(n_classes))
    alpha, delta = alpha_delta(mislabeling)
    check_same_shape(delta, sums.rows, "a row of mislabeling", "a row of votes")
    check_relaxation(relaxation)
    predicted = sums.rows > 0
    broken = np.flatnonzero(predicted & ~(relaxation + delta > 0))
    if broken.size:
        raise ValueError(
            f"relaxation + delta must be positive for every predicted class: for class(es) "
            f"{broken.tolist()} the mislabelling matrix has delta = "
            f"{np.round(delta[broken], 6).tolist()} (another true class is labelled so at least as "
            f"often) and relaxation is {relaxation}. Use relaxation >= "
            f"{_relaxation_for(delta[predicted]):.6g}."
        )
    weight = np.divide(1.0, relaxation + delta, out=np.zeros(n_classes), where=predicted)
    return Correction(weight, weight * (relaxation + alpha))


def _relaxation_for(delta: Floats, gap: float = 1e-6) -> float:
    return max(0.0, gap - float(delta.min())) if delta.min() <= 0 else 0.0


# --- the bounds as functions of the sums -----------------------------------------------------


def cantelli_bound(psi: float, first: float, second: float) -> tuple[float, bool]:
    """ψ − μ1²/μ2 and True, or the trivial 1.0 and False where it says nothing (μ1 ≤ 0).

    Parameters
    ----------
    psi, first, second : float
        ψ and the margin moments μ1, μ2.

    Returns
    -------
    bound : float
    applies : bool

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Appendix B.
    """
    if not (first > 0.0 and second > 0.0):
        return 1.0, False
    return psi - first**2 / second, True


def c_bound_of(sums: MarginSums, correction: Correction) -> tuple[float, bool]:
    """CBIL, or CB if the correction is one, and whether it applies."""
    return cantelli_bound(float(correction.psi @ sums.share), *sums.moments(correction.weight))


def markov_bound_of(sums: MarginSums, correction: Correction, order: Literal[1, 2]) -> float:
    """First-order (factor two) or second-order (tandem) bound: 1{B_Q ≠ y} ≤ (2 (1 − v_y))^order."""
    loss = 2.0 * sums.loss if order == 1 else 4.0 * sums.tandem
    offset = float((correction.psi - correction.weight) @ sums.share)
    return offset + float(correction.weight @ loss / sums.rows.sum())


# --- public functions ------------------------------------------------------------------------


def c_bound(votes: ArrayLike, label_proba: ArrayLike) -> float:
    r"""C-bound on the error of the majority vote in the probabilistic setting (CB).

    .. math:: R(B_Q) \le 1 - \frac{\mu_1^2}{\mu_2} \quad\text{if } \mu_1 > 0

    Parameters
    ----------
    votes : array-like of shape (n_samples, n_classes)
    label_proba : array-like of shape (n_samples, n_classes), or class codes of shape (n_samples,)
        The true labels (codes) give the oracle C-bound.

    Returns
    -------
    bound : float
        1.0, with a :class:`TrivialBoundWarning`, where the bound does not apply
        (:math:`\mu_1\le 0`, which :math:`\mu_2=0` implies).

    See Also
    --------
    c_bound_imperfect : With imperfect labels.
    pac_bayes_c_bound : For new rows, with probability 1 − ε.
    margin_moments : The moments in the formula.

    Notes
    -----
    A guarantee for the given rows if ``label_proba`` is their true label distribution; an estimate
    otherwise. A tie of the two highest votes has margin 0 and counts as an error.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 5.1, (CB).

    Examples
    --------
    >>> round(c_bound([[0.75, 0.25], [0.5, 0.5]], [0, 0]), 12)
    0.5
    """
    return _c_bound(votes, label_proba, None, 0.0)


def c_bound_imperfect(
    votes: ArrayLike,
    imperfect_proba: ArrayLike,
    mislabeling: ArrayLike | None,
    *,
    relaxation: float = 0.0,
) -> float:
    r"""C-bound with imperfect labels (CBIL, Section 5.3).

    .. math::
        R(B_Q) \le \psi - \frac{\mu_1^2}{\mu_2}, \qquad
        \psi = \mathbb{E}\,\frac{\lambda+\alpha(X)}{\lambda+\delta(X)}, \qquad
        \mu_k = \mathbb{E}\,\frac{\hat M^k}{\lambda+\delta(X)}

    Parameters
    ----------
    votes : array-like of shape (n_samples, n_classes)
    imperfect_proba : array-like of shape (n_samples, n_classes), or codes of shape (n_samples,)
        :math:`P(\hat Y=c\mid x)`, or the imperfect labels themselves.
    mislabeling : array-like of shape (n_classes, n_classes), or None
        :math:`p_{i,j}=P(\hat Y=i\mid Y=j)`; columns sum to 1. None: the labels are right.
    relaxation : float, default=0.0
        λ. It must make :math:`\lambda+\delta_c>0` for each predicted class, see
        :func:`smallest_relaxation`. The paper prints the one-example bound with λ; CBIL follows.

    Returns
    -------
    bound : float
        1.0, with a :class:`TrivialBoundWarning`, where :math:`\mu_1\le 0`. It may exceed 1.

    See Also
    --------
    c_bound : With true labels.
    relaxation_trace : For several λ at once.
    mislabeling_matrix : The matrix, from counts.

    Notes
    -----
    A guarantee for the given rows if ``imperfect_proba`` and ``mislabeling`` are the true ones and
    Ŷ depends on x through Y only; an estimate otherwise, as with labels that were drawn (codes).
    That assumption implies
    :math:`P(\hat Y=B_Q(x)\mid x)\le\alpha(x)`; labels that agree with the vote more often than α
    contradict it, and the number can then fall below the error, even below 0. Pseudo-labels that
    the same voters made do so by their nature.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 5.3, (CBIL).

    Examples
    --------
    >>> votes, imperfect = [[0.9, 0.1], [0.8, 0.2]], [[0.9, 0.1], [0.8, 0.2]]
    >>> round(c_bound_imperfect(votes, imperfect, [[0.9, 0.1], [0.1, 0.9]]), 3)
    0.5
    """
    return _c_bound(votes, imperfect_proba, mislabeling, relaxation)


def _c_bound(
    votes: ArrayLike, proba: ArrayLike, mislabeling: ArrayLike | None, relaxation: float
) -> float:
    sums = margin_sums(votes, proba)
    bound, applies = c_bound_of(sums, class_correction(sums, mislabeling, relaxation))
    if not applies:
        warnings.warn(
            "The C-bound does not apply: the first margin moment is not positive, so the voters "
            "are wrong more than they are right. Returning the trivial bound 1.0.",
            TrivialBoundWarning,
            stacklevel=3,
        )
    return bound


def smallest_relaxation(votes: ArrayLike, mislabeling: ArrayLike, *, gap: float = 1e-6) -> float:
    r"""The smallest λ with which the corrections for mislabelling apply to these votes.

    .. math:: \lambda = \max\bigl(0,\; \text{gap} - \min_{c\text{ predicted}} \delta_c\bigr)
        \text{ if some } \delta_c \le 0, \text{ else } 0

    λ + δ must be positive, not only non-negative, so ``gap`` is left above the infimum. The
    smallest λ is rarely the best one: see :func:`relaxation_trace`.

    Parameters
    ----------
    votes : array-like of shape (n_samples, n_classes)
    mislabeling : array-like of shape (n_classes, n_classes)
    gap : float, default=1e-6
        What λ + δ is at least.

    Returns
    -------
    relaxation : float

    See Also
    --------
    relaxation_trace : CBIL for several λ.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 5.2.

    Examples
    --------
    >>> smallest_relaxation([[0.9, 0.1]], [[0.9, 0.2], [0.1, 0.8]])
    0.0
    >>> round(smallest_relaxation([[0.1, 0.9]], [[0.7, 0.8], [0.3, 0.2]], gap=0.01), 6)
    0.11
    """
    v = check_votes(votes)
    if not 0.0 < gap < np.inf:
        raise ValueError(f"gap must be a positive number. Got {gap} instead.")
    _, delta = alpha_delta(mislabeling)
    check_same_shape(delta, v[0], "a row of mislabeling", "a row of votes")
    return _relaxation_for(delta[np.unique(v.argmax(axis=1))], gap)


class RelaxationTrace(NamedTuple):
    """CBIL for several λ: arrays of shape (n_relaxations,)."""

    relaxation: Floats
    bound: Floats
    applies: NDArray[np.bool_]


def relaxation_trace(
    votes: ArrayLike,
    imperfect_proba: ArrayLike,
    mislabeling: ArrayLike,
    relaxations: ArrayLike | None = None,
) -> RelaxationTrace:
    r"""CBIL as a function of λ (the paper's Figure 3), from one pass over the rows.

    Parameters
    ----------
    votes, imperfect_proba, mislabeling
        As in :func:`c_bound_imperfect`.
    relaxations : float or array-like of shape (n_relaxations,), optional
        0, 0.1, …, 1 by default.

    Returns
    -------
    trace : RelaxationTrace
        ``applies`` is False, and ``bound`` the trivial 1.0, where λ is too small for a predicted
        class or :math:`\mu_1\le 0`.

    See Also
    --------
    c_bound_imperfect : CBIL for one λ.
    smallest_relaxation : The smallest λ that applies.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 6.3, the study of λ.

    Examples
    --------
    >>> trace = relaxation_trace([[0.9, 0.1]], [0], [[0.5, 0.5], [0.5, 0.5]], [0.0, 0.5])
    >>> trace.applies.tolist(), trace.bound.tolist()
    ([False, True], [1.0, 0.0])
    """
    sums = margin_sums(votes, imperfect_proba)
    grid = (
        np.linspace(0, 1, 11) if relaxations is None else np.atleast_1d(relaxations).astype(float)
    )
    _, delta = alpha_delta(mislabeling)
    check_same_shape(delta, sums.rows, "a row of mislabeling", "a row of votes")
    lowest = delta[sums.rows > 0].min()
    points = [
        c_bound_of(sums, class_correction(sums, mislabeling, lam))
        if check_relaxation(lam) + lowest > 0
        else (1.0, False)
        for lam in grid.tolist()
    ]
    return RelaxationTrace(
        grid, np.array([value for value, _ in points]), np.array([ok for _, ok in points])
    )
