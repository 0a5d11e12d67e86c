r"""How far a sample mean can be from its expectation: the kl inequality and its inverse."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fewlabel._core.arrays import Floats
from fewlabel._core.checks import check_same_shape

Inequality = Literal["kl", "pinsker"]

_ROUNDING = 1e-4  # as much as a row of votes may miss the sum of one

_BISECTIONS = 60  # halves [0, 1] below the spacing of float64


def kl_divergence(posterior: ArrayLike, prior: ArrayLike | None = None) -> float:
    r"""KL(Q‖P) of weighted voters.

    .. math:: \mathrm{KL}(Q\|P) = \sum_h Q(h)\ln\frac{Q(h)}{P(h)}

    Parameters
    ----------
    posterior : array-like of shape (n_voters,)
        Weights Q, normalised here.
    prior : array-like of shape (n_voters,), optional
        Weights P, chosen before the sample was seen. Uniform by default.

    Returns
    -------
    kl : float
        Infinite if Q weighs a voter that P does not.

    See Also
    --------
    pac_bayes_c_bound : What charges for it.
    gibbs_posterior : A Q that keeps it small.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 5.4.

    Examples
    --------
    >>> kl_divergence([1, 1, 1, 1])
    0.0
    >>> round(kl_divergence([1, 0, 0, 0]), 6)  # ln 4
    1.386294
    """
    q = _distribution(posterior, "posterior")
    p = np.full(len(q), 1.0 / len(q)) if prior is None else _distribution(prior, "prior")
    check_same_shape(q, p, "posterior", "prior")
    used = q > 0
    if (p[used] == 0).any():
        return float("inf")
    return max(0.0, float(q[used] @ np.log(q[used] / p[used])))


def _distribution(weights: ArrayLike, name: str) -> Floats:
    w = np.asarray(weights, dtype=np.float64)
    if w.ndim != 1 or not (np.isfinite(w).all() and (w >= 0).all() and w.sum() > 0):
        raise ValueError(f"{name} must be a vector of finite, non-negative weights, not all zero.")
    return w / w.sum()


def kl_interval(
    mean: ArrayLike, budget: ArrayLike, *, inequality: Inequality = "kl"
) -> tuple[Floats, Floats]:
    r"""All values p of an expectation that a sample mean of [0, 1] variables allows.

    .. math:: \mathrm{kl}(\hat p\,\|\,p) = \hat p\ln\frac{\hat p}{p}
        + (1-\hat p)\ln\frac{1-\hat p}{1-p} \le b

    Parameters
    ----------
    mean, budget : array-like, broadcast
        :math:`\hat p` and b, for n rows :math:`b=(\mathrm{KL}(Q\|P)+\ln(2\sqrt n/\epsilon))/n`.
    inequality : {"kl", "pinsker"}
        "kl" inverts kl exactly; "pinsker" is the paper's radius :math:`\sqrt{b/2}`, never shorter.

    Returns
    -------
    lower, upper : ndarray

    See Also
    --------
    mislabeling_interval : For the entries of a matrix.

    References
    ----------
    .. [1] A. Maurer, "A note on the PAC-Bayesian theorem", 2004.

    Examples
    --------
    >>> lower, upper = kl_interval(0.0, np.log(2))
    >>> float(lower), round(float(upper), 12)
    (0.0, 0.5)
    """
    if inequality not in ("kl", "pinsker"):
        raise ValueError(f"inequality must be 'kl' or 'pinsker'. Got {inequality!r} instead.")
    p, b = np.broadcast_arrays(
        np.asarray(mean, dtype=np.float64), np.asarray(budget, dtype=np.float64)
    )
    if not ((p >= -_ROUNDING).all() and (p <= 1.0 + _ROUNDING).all()):
        raise ValueError(f"mean must lie in [0, 1]. Got {mean!r} instead.")
    if not (b >= 0.0).all():
        raise ValueError(f"budget must be >= 0. Got {budget!r} instead.")
    p = np.clip(p, 0.0, 1.0)
    if inequality == "pinsker":
        radius = np.sqrt(b / 2.0)
        return np.maximum(p - radius, 0.0), np.minimum(p + radius, 1.0)
    return 1.0 - _kl_upper(1.0 - p, b), _kl_upper(p, b)


def _kl_upper(p: Floats, budget: Floats) -> Floats:
    low, high = p.astype(float), np.ones_like(p, dtype=float)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        inside = _binary_kl(p, middle) <= budget
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return high  # the end that is never too small


def _binary_kl(p: Floats, q: Floats) -> Floats:
    def term(a: Floats, b: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(a > 0, a * np.log(a / b), 0.0)

    return term(p, q) + term(1.0 - p, 1.0 - q)


def kl_budget(n: Floats | float, epsilon: float, kl: float = 0.0) -> Floats:
    """What kl(p̂‖p) may be with probability 1 − ε, for every Q at once.

    Parameters
    ----------
    n : float or ndarray
        Number of rows; 0 allows everything.
    epsilon : float in (0, 1)
    kl : float, default=0.0
        KL(Q‖P).

    Returns
    -------
    budget : ndarray

    References
    ----------
    .. [1] A. Maurer, "A note on the PAC-Bayesian theorem", 2004.
    """
    # Maurer's lemma: E exp(n kl(p̂‖p)) ≤ 2√n; nothing is known without a row.
    rows = np.asarray(n, dtype=np.float64)
    safe = np.maximum(rows, 1.0)
    return np.where(rows > 0, (kl + np.log(2.0 * np.sqrt(safe) / epsilon)) / safe, np.inf)
