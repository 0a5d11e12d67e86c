"""The random draw of the rows that an audit checks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewlabel.bounds.statistics import Ints

# Up to here a whole permutation is drawn; it takes 80 MB.
_PERMUTED = 10_000_000
_BLOCK = 4096


def audit_sample(
    population: int | ArrayLike,
    size: int,
    random_state: int | np.random.Generator | None = None,
) -> Ints:
    """Draw the rows to check: at random, each with the same chance, without replacement.

    Draw after the labels are final. A longer draw from the same population and seed begins with
    the shorter one.

    Parameters
    ----------
    population : int or array-like of bool
        Number of rows, or a mask of the rows that the guarantee shall be about, such as
        ``clf.accept(max_error=0.05)``. Rows whose label was given do not belong to it.
    size : int
        Number of rows to draw.
    random_state : int, Generator or None, default=None
        None draws differently each time.

    Returns
    -------
    ndarray of int, shape (size,)
        Row numbers from 0, in the order in which a sequential audit has to check them.

    See Also
    --------
    audit : The guarantee that the checks of these rows give.
    checks_needed : How many rows to draw.

    References
    ----------
    .. [1] H. S. Konijn, "Statistical theory of sample survey design and analysis", 1973: limits for
           a hypergeometric count.

    Examples
    --------
    >>> audit_sample([False, True, True, True], 2, random_state=0)
    array([3, 1])
    """
    rows = _population_rows(population)
    n = len(rows) if isinstance(rows, np.ndarray) else rows
    if n == 0:
        raise ValueError("population has no rows: there is nothing to draw from.")
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or not 1 <= size <= n:
        raise ValueError(
            f"size must be a whole number between 1 and the number of rows of the population, "
            f"{n}. Got {size!r} instead."
        )
    drawn = _random_order(n, int(size), np.random.default_rng(random_state))
    return rows[drawn] if isinstance(rows, np.ndarray) else drawn


def _population_rows(population: int | ArrayLike) -> int | Ints:
    if isinstance(population, int | np.integer) and not isinstance(population, bool | np.bool_):
        return int(population)
    mask = np.asarray(population)
    if mask.ndim != 1 or mask.dtype != bool:
        raise ValueError(
            f"population must be a number of rows or a one-dimensional mask of booleans. Got shape "
            f"{mask.shape} of type {mask.dtype}."
        )
    return np.flatnonzero(mask)


def _random_order(n: int, size: int, rng: np.random.Generator) -> Ints:
    """The first ``size`` of ``n`` numbers in random order."""
    if n <= _PERMUTED:
        return rng.permutation(n)[:size]
    # Whoever draws with replacement and skips repetitions draws without.
    drawn = rng.integers(n, size=_BLOCK)
    while True:
        _, first = np.unique(drawn, return_index=True)
        if len(first) >= size:
            return drawn[np.sort(first)[:size]]
        more = [rng.integers(n, size=_BLOCK) for _ in range(len(drawn) // _BLOCK)]
        drawn = np.concatenate([drawn, *more])


def one_dimensional(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return a one-dimensional array, or raise."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional. Got shape {array.shape} instead.")
    return array


def check_drawn(rows: ArrayLike, inside: NDArray[np.bool_]) -> Ints:
    """Return the row numbers: whole numbers, each once, all of them in the population."""
    numbers = one_dimensional(rows, "rows")
    if len(numbers) == 0:
        raise ValueError("No row was checked: there is nothing to state.")
    if numbers.dtype.kind not in "iu":
        raise ValueError(f"rows must be row numbers, integers from 0. Got type {numbers.dtype}.")
    if numbers.min() < 0 or numbers.max() >= len(inside):
        raise ValueError(f"rows must lie between 0 and {len(inside) - 1}. Got {numbers}.")
    unique, counts = np.unique(numbers, return_counts=True)
    if (counts > 1).any():
        raise ValueError(f"rows must not be repeated: row {unique[counts > 1][0]} is.")
    outside = numbers[~inside[numbers]]
    if len(outside):
        raise ValueError(
            f"rows must be drawn from the population: row {outside[0]} does not belong to it."
        )
    return numbers.astype(np.intp, copy=False)
