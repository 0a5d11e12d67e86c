"""How many labels of a finite table can be wrong, given how many of some checked rows are.

A table has N labels, M of them wrong. Rows are drawn at random without replacement and checked.
Nothing else is random and nothing is assumed of the labels, so the limits are exact: they hold for
every table, every classifier and every way in which the errors are spread over the rows.

All limits are counts of wrong labels. Where rounding cannot tell whether a count is excluded it is
kept: an upper limit is never too small, a lower one never too large.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, gammaln, logsumexp

from fewlabel.bounds.statistics import Floats, Ints

PRIOR = (1.0, 30.0)
"""Parameters of the beta-binomial prior of the confidence sequence.

Any prior gives valid limits. This one was chosen because it needs few checks: by the exact
distribution of their number in eight situations (goals of 2 to 20 %, none to half as many wrong),
among 24 priors; ``docs/audit.md`` has the table."""

ROUNDING = 1e-8
"""Tolerance of log-probabilities: far above their rounding errors, and too small to cost checks."""

# From here on the terms of Stirling's series that are left out are below 3e-12.
_STIRLING_FROM = 1e3


class Limits(NamedTuple):
    """Smallest and largest number of wrong labels that the checks leave possible."""

    low: int
    high: int


def check_counts(rows: int, checked: int, wrong: int) -> None:
    """Raise unless 0 ≤ wrong ≤ checked ≤ rows and there are rows."""
    if rows < 1:
        raise ValueError(f"rows must be at least 1. Got {rows} instead.")
    if not 0 <= checked <= rows:
        raise ValueError(
            f"checked must lie between 0 and the number of rows, {rows}. Got {checked} instead."
        )
    if not 0 <= wrong <= checked:
        raise ValueError(
            f"wrong must lie between 0 and the number of checked rows, {checked}. Got {wrong}."
        )


def check_confidence(confidence: float) -> float:
    """Return δ = 1 − confidence, for a confidence strictly between 0 and 1."""
    if not 0.0 < confidence < 1.0:
        raise ValueError(
            f"confidence must lie strictly between 0 and 1, as 0.95 does. Got {confidence} instead."
        )
    return 1.0 - confidence


# --- kernels ---------------------------------------------------------------------------------


def log_falling(x: ArrayLike, k: ArrayLike) -> Floats:
    r"""Logarithm of the falling factorial, :math:`\ln x(x-1)\cdots(x-k+1)`; −∞ if k > x.

    The difference of two log-gammas of 10⁹ would have lost its last ten digits: for large x it is
    taken term by term of Stirling's series instead.
    """
    x_, k_ = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(k, dtype=np.float64))
    upper, lower = x_ + 1.0, np.maximum(x_ - k_, 0.0) + 1.0
    far = np.maximum(lower, _STIRLING_FROM)  # keeps the branch that is not used finite
    series = (
        (far - 0.5) * np.log1p(k_ / far)
        + k_ * (np.log(upper) - 1.0)
        + 1.0 / (12.0 * (far + k_))
        - 1.0 / (12.0 * far)
    )
    plain = gammaln(upper) - gammaln(lower)
    value = np.where(lower < _STIRLING_FROM, plain, series)
    return np.where(k_ > x_, -np.inf, value)


def hypergeometric_log_cdf(wrong: int, rows: int, all_wrong: int, checked: int) -> float:
    r"""ln P(X ≤ wrong) where X of ``checked`` rows are wrong if ``all_wrong`` of ``rows`` are.

    .. math:: P(X = j) = \binom{s}{j} \frac{(M)_j (N-M)_{s-j}}{(N)_s}

    with the falling factorial :math:`(x)_k`.
    """
    most = min(wrong, all_wrong, checked)
    # The probabilities are log-concave in j: by Hoeffding's inequality those further than 6√s from
    # the mean, or below ``wrong``, add less than e⁻⁷² (s+1) of the largest one that is summed.
    mean, width = checked * all_wrong // rows, 6 * math.isqrt(checked) + 6
    first, last = max(0, min(most, mean) - width), min(most, mean + width)
    j = np.arange(first, last + 1, dtype=np.float64)
    log_pmf = (
        log_falling(checked, j)
        - gammaln(j + 1.0)
        + log_falling(all_wrong, j)
        + log_falling(rows - all_wrong, checked - j)
        - log_falling(rows, checked)
    )
    return min(0.0, float(logsumexp(log_pmf)))


@lru_cache(maxsize=2**15)  # searches for limits, and audits of one table, ask again and again
def excludes(rows: int, checked: int, wrong: int, all_wrong: int, delta: float) -> bool:
    """Whether ``wrong`` of ``checked`` rows exclude that as many as ``all_wrong`` are wrong."""
    log_p = hypergeometric_log_cdf(wrong, rows, all_wrong, checked)
    return log_p <= math.log(delta) - ROUNDING


def log_prior_posterior_ratio(
    rows: int,
    checked: ArrayLike,
    wrong: ArrayLike,
    all_wrong: ArrayLike,
    prior: tuple[float, float] = PRIOR,
) -> Floats:
    r"""Logarithm of prior over posterior of M, after t checks of which k were wrong.

    .. math::
        R_t(M) = \frac{\pi(M)}{\pi(M \mid k, t)}
               = \frac{B(a+k,\, b+t-k)}{B(a, b)} \cdot \frac{(N)_t}{(M)_k (N-M)_{t-k}}
    """
    a, b = prior
    t, k = np.asarray(checked, dtype=np.float64), np.asarray(wrong, dtype=np.float64)
    M = np.asarray(all_wrong, dtype=np.float64)
    marginal = betaln(a + k, b + t - k) - betaln(a, b)
    likelihood = log_falling(M, k) + log_falling(rows - M, t - k) - log_falling(rows, t)
    return np.asarray(marginal - likelihood)


# --- limits ----------------------------------------------------------------------------------


def hypergeometric_limits(
    rows: int, checked: int, wrong: int, *, confidence: float = 0.95
) -> Limits:
    r"""Exact limits for the number of wrong labels, for a number of checks fixed in advance.

    .. math::
        M^+ = \max\{M : P(\mathrm{Hyp}(N, M, s) \le k) > \delta\}, \qquad
        M^- = \min\{M : P(\mathrm{Hyp}(N, M, s) \ge k) > \delta\}

    Each of the two holds with the given confidence 1 − δ; both together hold with 1 − 2δ.

    Parameters
    ----------
    rows : int
        N, the number of labels. Up to 10⁹ takes milliseconds.
    checked : int
        s, the rows that were drawn at random without replacement, and all checked.
    wrong : int
        k, the rows among them whose label is wrong.
    confidence : float, default=0.95
        1 − δ.

    Returns
    -------
    Limits
        ``low`` and ``high``: counts of wrong labels, those that were found included.

    See Also
    --------
    audit_confidence_sequence : Limits for a person who checks row after row and may stop any time.
    audit : The statement about a labelled table.

    References
    ----------
    H. S. Konijn, Statistical Theory of Sample Survey Design and Analysis, 1973; the analogue of
    Clopper and Pearson (1934) for sampling without replacement.

    Examples
    --------
    >>> hypergeometric_limits(1581, 60, 0)
    Limits(low=0, high=75)
    >>> hypergeometric_limits(100, 100, 3)  # every row was checked
    Limits(low=3, high=3)
    """
    check_counts(rows, checked, wrong)
    delta = check_confidence(confidence)
    high = _upper(rows, checked, wrong, delta)
    # M wrong labels are N − M right ones.
    return Limits(rows - _upper(rows, checked, checked - wrong, delta), high)


def _upper(rows: int, checked: int, wrong: int, delta: float) -> int:
    # P(Hyp(N, M, s) ≤ k) falls with M; it is 1 at M = k.
    low, high = wrong, rows
    while low < high:
        middle = (low + high + 1) // 2
        if excludes(rows, checked, wrong, middle, delta):
            high = middle - 1
        else:
            low = middle
    return low


def audit_confidence_sequence(
    rows: int,
    wrong: ArrayLike,
    *,
    confidence: float = 0.95,
    prior: tuple[float, float] = PRIOR,
) -> tuple[Ints, Ints]:
    r"""Limits after every check that all hold at once, for rows checked in random order.

    After t checks those M are left whose prior is less than 1/δ times their posterior, at this and
    at all earlier moments. For the true M the ratio :math:`R_t(M)` is a non-negative martingale
    that starts at 1, so by Ville's inequality it ever reaches 1/δ with probability at most δ,
    whatever the prior. One may look after every row and stop for any reason.

    Parameters
    ----------
    rows : int
        N, the number of labels.
    wrong : array-like of bool, shape (t,)
        Whether the label of each checked row was wrong, in the order in which they were drawn.
    confidence : float, default=0.95
        1 − δ, for both limits and all moments together.
    prior : (float, float), default=PRIOR
        Parameters a, b of the beta-binomial prior; to be fixed before the first check.

    Returns
    -------
    low, high : ndarray of int, shape (t,)
        Limits for the number of wrong labels after each check. They only get closer, except in a
        case that has probability δ at most: if the limits of different moments contradict each
        other, those of the present moment are given.

    See Also
    --------
    hypergeometric_limits : Closer limits if the number of checks is fixed in advance.

    References
    ----------
    I. Waudby-Smith and A. Ramdas, Confidence sequences for sampling without replacement, NeurIPS
    2020, Theorem 2.1 (prior-posterior-ratio martingale).

    Examples
    --------
    >>> low, high = audit_confidence_sequence(1000, [False] * 100)
    >>> high[[0, 49, 99]]
    array([951,  74,  41])
    """
    flags = np.asarray(wrong)
    if flags.ndim != 1 or flags.dtype != bool:
        raise ValueError(
            f"wrong must be one-dimensional and of booleans, one for each check. Got shape "
            f"{flags.shape} of type {flags.dtype}."
        )
    check_counts(rows, len(flags), int(flags.sum()))
    check_prior(prior)
    t, k = np.arange(1, len(flags) + 1), np.cumsum(flags)
    return intersected(*ratio_limits(rows, t, k, check_confidence(confidence), prior))


def ratio_limits(
    rows: int, checked: Ints, wrong: Ints, delta: float, prior: tuple[float, float] = PRIOR
) -> tuple[Ints, Ints]:
    """Ends of the set of M whose ratio is below 1/δ, for each number of checks by itself."""
    bar = -np.log(delta) + ROUNDING

    def keeps(M: Ints) -> NDArray[np.bool_]:
        return log_prior_posterior_ratio(rows, checked, wrong, M, prior) < bar

    # The ratio is smallest, and at most 1, where the likelihood is largest; from there it rises to
    # both sides, since ln (M)_k (N−M)_{t−k} is concave in M.
    mode = np.minimum(wrong * (rows + 1) // checked, rows)
    return _last(keeps, mode, wrong), _last(keeps, mode, np.full_like(mode, rows))


def intersected(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Limits that hold at this and all earlier moments; those of this one if they contradict."""
    so_far = np.maximum.accumulate(low), np.minimum.accumulate(high)
    agree = so_far[0] <= so_far[1]
    return np.where(agree, so_far[0], low), np.where(agree, so_far[1], high)


def check_prior(prior: tuple[float, float]) -> None:
    """Raise unless both parameters of the beta-binomial prior are positive numbers."""
    if len(prior) != 2 or not all(np.isfinite(p) and p > 0 for p in prior):
        raise ValueError(f"prior must be two positive numbers (a, b). Got {prior} instead.")


def _last(keeps: Callable[[Ints], NDArray[np.bool_]], start: Ints, end: Ints) -> Ints:
    """On the way from ``start``, which is kept, to ``end``: the last number that is kept."""
    near, far = start.copy(), end.copy()
    while np.any(near != far):
        step = far - near
        middle = near + np.sign(step) * ((np.abs(step) + 1) // 2)
        kept = keeps(middle)
        near = np.where(kept, middle, near)
        far = np.where(kept, far, middle - np.sign(step))
    return near
