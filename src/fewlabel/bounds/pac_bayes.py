r"""PAC-Bayes: C-bounds that hold for new rows with probability 1 − ε (Section 5.4, Appendix B).

The expectations of CBIL are replaced by sample means, and each mean by the end of an interval that
holds for every Q at once:

.. math:: R(B_Q) \le \tilde\psi - \tilde\mu_1^2 / \tilde\mu_2

Three departures from the printed theorem make it provable; each is explained where it is made.

1. ε is divided over the events that must hold together: half over the K² entries of the
   mislabelling matrix, half over the sample means.
2. The default margin is :math:`2v_Q(x,y)-1`. The printed one is not an expectation over Q for
   K > 2, and the proof needs that it is.
3. The default weight of a row is one number for all rows. The printed :math:`1/\tilde\delta(x)`
   depends on Q through :math:`B_Q(x)`, so the change of measure from P to Q does not apply to it.

With Q = P (``kl=0``) nothing is learned from the sample, every mean is one of fixed functions, and
the printed margin and weights are covered as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fewlabel._core.arrays import Floats
from fewlabel._core.checks import check_relaxation, check_same_shape
from fewlabel.bounds.cbound import Correction, cantelli_bound, off_diagonal
from fewlabel.bounds.concentration import Inequality, kl_budget, kl_interval
from fewlabel.bounds.margins import MarginSums, margin_sums
from fewlabel.bounds.mislabeling import check_counts

# --- the mislabelling matrix -----------------------------------------------------------------


def mislabeling_radius(class_counts: ArrayLike, epsilon: float) -> Floats:
    r"""Radius of the entries of a class's column (Appendix B).

    .. math:: r(l_j) = \sqrt{\frac{1}{2l_j}\ln\frac{2\sqrt{l_j}}{\epsilon}}

    :math:`l_j` is the **number** of labelled rows of class j (the paper says proportion, with which
    the formula is meaningless). ``epsilon`` is the failure probability of *one* entry: for all
    K² entries at once pass ε/K². Infinite for a class without rows.

    Parameters
    ----------
    class_counts : array-like of shape (n_classes,)
        Labelled rows of each class.
    epsilon : float in (0, 1)

    Returns
    -------
    radius : ndarray of shape (n_classes,)

    See Also
    --------
    mislabeling_interval : The exact interval, never wider.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Appendix B.

    Examples
    --------
    >>> mislabeling_radius([100, 400, 0], 0.05).round(4).tolist()
    [0.1731, 0.0914, inf]
    """
    _check_epsilon(epsilon)
    return np.sqrt(kl_budget(np.asarray(class_counts, dtype=np.float64), epsilon) / 2.0)


def mislabeling_interval(
    counts: ArrayLike, epsilon: float, *, inequality: Inequality = "kl"
) -> tuple[Floats, Floats]:
    r"""Bounds on all entries of the mislabelling matrix at once, with probability 1 − ε.

    Parameters
    ----------
    counts : array-like of shape (n_classes, n_classes)
        :func:`fewlabel.held_out_counts`: rows i (imperfect label), columns j (true label), over
        rows that were not used to make the imperfect labels.
    epsilon : float in (0, 1)
        Divided over the K² entries.
    inequality : {"kl", "pinsker"}, default="kl"
        The exact inverse of kl, or the printed radii, which are never smaller.

    Returns
    -------
    lower, upper : ndarray of shape (n_classes, n_classes)
        [0, 1] in the column of a class without rows.

    See Also
    --------
    mislabeling_radius : The paper's radius.
    mislabeling_matrix : An estimate instead of limits.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Appendix B.
    .. [2] A. Maurer, "A note on the PAC-Bayesian theorem", 2004.

    Examples
    --------
    >>> lower, upper = mislabeling_interval([[90, 5], [10, 95]], 0.05)
    >>> bool(lower[0, 0] < 0.9 < upper[0, 0])
    True
    """
    n = check_counts(counts)
    if (n != np.round(n)).any():
        raise ValueError(
            "counts must be whole numbers of rows: smoothed counts carry no guarantee."
        )
    _check_epsilon(epsilon)
    rows = n.sum(axis=0)
    frequency = n / np.maximum(rows, 1.0)
    budget = np.broadcast_to(kl_budget(rows, epsilon / n.size), n.shape)
    return kl_interval(frequency, budget, inequality=inequality)


def _check_epsilon(epsilon: float) -> float:
    if not 0.0 < epsilon < 1.0:
        raise ValueError(f"epsilon must lie strictly between 0 and 1. Got {epsilon} instead.")
    return float(epsilon)


# --- the theorem -----------------------------------------------------------------------------


@dataclass(frozen=True)
class PacBayesBound:
    """A PAC-Bayes C-bound with its parts.

    Attributes
    ----------
    value : the bound; 1.0 if it does not apply. It may exceed 1.
    applies : False if :math:`\\tilde\\mu_1 \\le 0` or :math:`\\lambda+\\tilde\\delta_c \\le 0`
    kind : "guarantee" or "estimate"
    assumption : under which the value is what ``kind`` says
    psi, first, second : :math:`\\tilde\\psi, \\tilde\\mu_1, \\tilde\\mu_2`; NaN if δ̃ is too small
    alpha, delta : :math:`\\tilde\\alpha_c, \\tilde\\delta_c`, ndarrays of shape (n_classes,)
    """

    value: float
    applies: bool
    kind: Literal["guarantee", "estimate"]
    assumption: str
    psi: float
    first: float
    second: float
    alpha: Floats
    delta: Floats


def pac_bayes_c_bound(
    votes: ArrayLike,
    imperfect_proba: ArrayLike,
    counts: ArrayLike | None,
    *,
    kl: float = 0.0,
    epsilon: float = 0.05,
    margin: Literal["binary", "multiclass"] = "binary",
    weighting: Literal["uniform", "predicted"] = "uniform",
    inequality: Inequality = "kl",
    relaxation: float = 0.0,
    drawn_labels: bool = False,
) -> PacBayesBound:
    r"""PAC-Bayes C-bound with imperfect labels (Section 5.4).

    .. math::
        \tilde\psi - \frac{\tilde\mu_1^2}{\tilde\mu_2}, \qquad
        \tilde\mu_1 = \bar\mu_1 - B_1\sqrt{\tfrac2n\bigl[\mathrm{KL}(Q\|P)
            + \ln\tfrac{2\sqrt n}{\epsilon'}\bigr]}, \qquad
        \tilde\mu_2 = \bar\mu_2 + B_2\sqrt{\tfrac2n\bigl[2\,\mathrm{KL}(Q\|P)
            + \ln\tfrac{2\sqrt n}{\epsilon'}\bigr]}

    with :math:`\bar\mu_k = \frac1n\sum_x w(x)\sum_c P(\hat Y=c\mid x)M_Q(x,c)^k` and
    :math:`B_1=B_2=\max_c w_c`. ``inequality="kl"`` replaces the square roots by the exact inverse
    of kl, which gives a bound that is never larger where both apply.

    Parameters
    ----------
    votes : array-like of shape (n_samples, n_classes)
        On rows drawn independently of the voters and of the prior P.
    imperfect_proba : array-like of shape (n_samples, n_classes), or codes of shape (n_samples,)
        The labels Ŷ drawn for these rows, or their distribution.
    counts : array-like of shape (n_classes, n_classes), or None
        Of held-out labelled rows, see :func:`mislabeling_interval`. None: the labels are right.
    kl : float, default=0.0
        KL(Q‖P), see :func:`kl_divergence`. 0 says that Q was fixed before the sample was seen.
    epsilon : float, default=0.05
    margin : {"binary", "multiclass"}
        :math:`2v_c-1`, or the printed :math:`v_c-\max_{k\ne c}v_k`.
    weighting : {"uniform", "predicted"}
        "uniform": :math:`\tilde\psi=\max_c\tilde\alpha_c/\tilde\delta_c` and the weight
        :math:`w=\tilde\psi/\max_c\tilde\alpha_c` of every row: the smallest line above all the
        corrections of the classes. "predicted": the printed :math:`w(x)=1/\tilde\delta(x)`, and
        :math:`\tilde\psi` by concentration.
    inequality : {"kl", "pinsker"}
    relaxation : float, default=0.0
        λ, added to :math:`\tilde\alpha` and :math:`\tilde\delta`.
    drawn_labels : bool, default=False
        True states what only the caller can know: the rows were drawn at random, independently of
        the voters, and their labels are true, or drawn with the mislabelling matrix that the counts
        are about. Labels that the voters made themselves, such as pseudo-labels, are neither.

    Returns
    -------
    bound : PacBayesBound
        Its ``kind`` is "estimate" unless ``drawn_labels`` is stated and the proof covers the rest.

    See Also
    --------
    c_bound_imperfect : The bound on the given rows.
    kl_divergence : The price of a learned Q.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 5.4.
    .. [2] A. Maurer, "A note on the PAC-Bayesian theorem", 2004.

    Examples
    --------
    >>> votes = np.tile([[0.95, 0.05], [0.05, 0.95]], (2000, 1))
    >>> imperfect = np.tile([0, 1], 2000)
    >>> imperfect[::91] = 1 - imperfect[::91]  # labels of their own, not copies of the vote
    >>> counts = [[900, 10], [10, 900]]
    >>> bound = pac_bayes_c_bound(votes, imperfect, counts, drawn_labels=True)
    >>> bound.kind, bound.applies, round(bound.value, 2)
    ('guarantee', True, 0.17)
    >>> pac_bayes_c_bound(votes, imperfect, counts).kind  # perhaps they are pseudo-labels
    'estimate'
    """
    lam = check_relaxation(relaxation)
    kind, assumption = _standing(kl, margin, weighting, drawn_labels)
    sums = margin_sums(votes, imperfect_proba)
    # Half of ε goes to the matrix; without one, all of it to the means.
    share = _check_epsilon(epsilon) / (1 if counts is None else 2)
    alpha, delta = _alpha_delta(counts, len(sums.rows), share, inequality)
    check_same_shape(delta, sums.rows, "a row of counts", "a row of votes")
    # The maxima B run over all x, so each class must allow its correction, predicted here or not.
    if not (lam + delta > 0).all():
        nan = float("nan")
        return PacBayesBound(1.0, False, kind, assumption, nan, nan, nan, alpha, delta)
    correction = _correction(alpha + lam, delta + lam, weighting)
    share /= 2 if weighting == "uniform" else 3
    psi = _psi_upper(sums, correction, share, inequality)
    first, second = _moment_bounds(sums, correction.weight, kl, share, margin, inequality)
    value, applies = cantelli_bound(psi, first, second)
    if value < 0.0:
        # No error is negative: the labels agree with the vote more often than the matrix allows.
        kind, assumption = "estimate", f"{assumption}; contradicted: the bound is negative"
    return PacBayesBound(value, applies, kind, assumption, psi, first, second, alpha, delta)


def _standing(
    kl: float, margin: str, weighting: str, drawn_labels: bool
) -> tuple[Literal["guarantee", "estimate"], str]:
    if margin not in ("binary", "multiclass"):
        raise ValueError(f"margin must be 'binary' or 'multiclass'. Got {margin!r} instead.")
    if weighting not in ("uniform", "predicted"):
        raise ValueError(f"weighting must be 'uniform' or 'predicted'. Got {weighting!r} instead.")
    if not kl >= 0.0:
        raise ValueError(f"kl must be a number >= 0. Got {kl} instead.")
    basis = (
        "rows independent of the voters and of P, counts of independent held-out rows, "
        "Ŷ depends on x through Y only"
    )
    if not drawn_labels:
        return "estimate", f"{basis}; nobody stated that (drawn_labels), pseudo-labels are not so"
    if kl == 0.0:
        return "guarantee", f"{basis}; Q = P"
    if margin == "binary" and weighting == "uniform":
        return "guarantee", f"{basis}; for every Q at once"
    return "estimate", f"{basis}; the proof for a learned Q does not cover this margin or weighting"


def _alpha_delta(
    counts: ArrayLike | None, n_classes: int, epsilon: float, inequality: Inequality
) -> tuple[Floats, Floats]:
    # α̃_c ≥ α_c and δ̃_c ≤ δ_c. Each rival j has its own radius, so δ̃ is never below the printed
    # one, which takes the radius of the rarest class for all of them.
    if counts is None:
        return np.ones(n_classes), np.ones(n_classes)
    lower, upper = mislabeling_interval(counts, epsilon, inequality=inequality)
    return np.diag(upper).copy(), np.diag(lower) - off_diagonal(upper).max(axis=1)


def _correction(alpha: Floats, delta: Floats, weighting: str) -> Correction:
    if weighting == "predicted":
        return Correction(1.0 / delta, alpha / delta)
    # The line ψ − w (1 − r̂) is above (r̂ − 1 + α_c)/δ_c for each c and r̂ ∈ [1 − α_c, 1]:
    # at r̂ = 1 because ψ is the largest α_c/δ_c, at r̂ = 1 − α_c because w α_c ≤ ψ.
    psi = float((alpha / delta).max())
    return Correction(np.full(len(alpha), psi / alpha.max()), np.full(len(alpha), psi))


def _psi_upper(
    sums: MarginSums, correction: Correction, epsilon: float, inequality: Inequality
) -> float:
    # A constant has mean 1 here, and no interval reaches beyond 1.
    largest = float(correction.psi.max())
    mean = float(correction.psi @ sums.share) / largest
    _, upper = kl_interval(mean, kl_budget(sums.rows.sum(), epsilon), inequality=inequality)
    return largest * float(upper)


def _moment_bounds(
    sums: MarginSums,
    weight: Floats,
    kl: float,
    epsilon: float,
    margin: str,
    inequality: Inequality,
) -> tuple[float, float]:
    n, largest = sums.rows.sum(), float(weight.max())
    # (1 − z/B)/2 maps margins z in [−B, B], and products of two, to [0, 1].
    first, second = ((1.0 - moment / largest) / 2.0 for moment in sums.moments(weight, margin))
    _, high = kl_interval(first, kl_budget(n, epsilon, kl), inequality=inequality)
    low, _ = kl_interval(second, kl_budget(n, epsilon, 2.0 * kl), inequality=inequality)
    return largest * (1.0 - 2.0 * float(high)), largest * (1.0 - 2.0 * float(low))
