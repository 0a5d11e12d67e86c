r"""Limits of a share that was estimated from few rows.

A share p that is estimated as v from n rows has the limits of Clopper and Pearson,

.. math:: \text{low} = B^{-1}(\tfrac\alpha2;\; k,\; n-k+1), \qquad
    \text{high} = B^{-1}(1-\tfrac\alpha2;\; k+1,\; n-k), \qquad k = v n,

with the quantiles of the beta distribution. They need no integers: an estimate that is less (or
more) certain than a share of n rows has the limits of a smaller (or larger) *effective* n.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import beta

from fewlabel.bounds.statistics import Floats


class Share(NamedTuple):
    """An estimated share and its limits.

    Attributes
    ----------
    value, low, high : float
    """

    value: float
    low: float
    high: float


def share_limits(value: float, n: float, *, level: float = 0.95) -> tuple[float, float]:
    """Clopper-Pearson limits of a share that was estimated from ``n`` rows.

    Parameters
    ----------
    value : float in [0, 1]
    n : float
        Effective number of rows; 0: nothing is known.
    level : float, default=0.95
        Each limit fails with probability (1 − level)/2 or less if ``value`` is the share of
        ``n`` rows drawn at random.

    Returns
    -------
    low, high : float

    References
    ----------
    Clopper and Pearson (1934), The use of confidence or fiducial limits illustrated in the case of
    the binomial. Biometrika 26.

    Examples
    --------
    >>> low, high = share_limits(0.05, 100)
    >>> round(low, 3), round(high, 3)
    (0.016, 0.113)
    """
    if not np.isfinite(value):
        return 0.0, 1.0
    tail, k = (1.0 - level) / 2.0, value * n
    low = float(beta.ppf(tail, k, n - k + 1.0)) if k > 0 else 0.0
    high = float(beta.ppf(1.0 - tail, k + 1.0, n - k)) if k < n else 1.0
    return min(low, value), max(high, value)


def share(value: float, n: float, *, level: float = 0.95) -> Share:
    """A share with its limits, see :func:`share_limits`."""
    return Share(float(value), *share_limits(value, n, level=level))


def kish_size(weight: ArrayLike) -> float:
    r"""Rows of equal weight that tell as much, :math:`(\sum w)^2 / \sum w^2`.

    Examples
    --------
    >>> kish_size([1, 1, 1, 1]), round(kish_size([3, 1, 1, 1]), 2)
    (4.0, 3.0)
    """
    w: Floats = np.asarray(weight, dtype=np.float64)
    total = float(w.sum())
    return total * total / float(w @ w) if total > 0 else 0.0


def of_finite_population(n: float, population: int) -> float:
    r"""Effective rows if the share is that of a finite number of *other* rows.

    The share of N rows that were drawn at random varies about the probability, too:
    :math:`1/n' = 1/n + 1/N`.

    Examples
    --------
    >>> of_finite_population(100, 100)
    50.0
    """
    total = n + population
    return n * population / total if total else 0.0


def about_percent(value: float) -> str:
    """A share in percent with as many digits as an estimate deserves, without its sign.

    Examples
    --------
    >>> about_percent(0.0523), about_percent(0.0123), about_percent(0.0)
    ('5', '1.2', '0')
    """
    percent = 100.0 * value
    return f"{percent:.1f}" if 0.05 <= percent < 1.95 else f"{percent:.0f}"
