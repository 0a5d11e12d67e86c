"""Numbers that say more than their value: row numbers, sentinels, too many digits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Numbers that stand for "missing" in many tables if they lie far from the others.
_SENTINELS = tuple(sign * float("9" * n) for n in range(2, 10) for sign in (-1, 1))
_SENTINEL_SHARE = 0.002
_COUNTER_ROWS = 20

# Values may become equal in single precision up to this share of them: chance does so in a million.
_MERGED = 0.01


def is_counter(values: NDArray[np.float64], n_different: int) -> bool:
    """Whether whole numbers count the rows, in any order."""
    n = len(values)
    return bool(
        n >= _COUNTER_ROWS
        and n_different == n
        and (values == np.floor(values)).all()
        and np.nanmax(values) - np.nanmin(values) == n - 1
    )


def find_sentinels(values: NDArray[np.float64]) -> tuple[float, ...]:
    """Numbers like -999 that repeat, at an end of the range and far from all others.

    Examples
    --------
    >>> find_sentinels(np.array([3.0, 5.0, 4.5, -999.0, 7.0, -999.0]))
    (-999.0,)
    >>> find_sentinels(np.array([95.0, 99.0, 99.0, 80.0, 60.0]))
    ()
    """
    finite = values[np.isfinite(values)]
    found: list[float] = []
    for end in (-1, 1):
        rest = finite[~np.isin(finite, found)]
        if len(rest) == 0:
            break
        value = float((end * rest).max() * end)
        others = rest[rest != value]
        n = len(rest) - len(others)
        if value not in _SENTINELS or n < max(2, _SENTINEL_SHARE * len(rest)) or not len(others):
            continue
        if np.abs(others - value).min() > max(np.ptp(others), 1.0):
            found.append(value)
    return tuple(found)


def find_shift(values: NDArray[np.float64]) -> float:
    """What to subtract so that values stay apart in single precision, in which forests compute.

    Moments in seconds are the example: from 1970 on, two within a minute are the same there. 0 if
    nothing is won.
    """
    different = np.unique(values)
    merged = _n_merged(different)
    if merged <= _MERGED * len(different):
        return 0.0
    middle = float(np.median(values))
    return middle if _n_merged(different - middle) <= merged / 2 else 0.0


def _n_merged(different: NDArray[np.float64]) -> int:
    """How many different values become equal to another in single precision."""
    return len(different) - len(np.unique(different.astype(np.float32)))
