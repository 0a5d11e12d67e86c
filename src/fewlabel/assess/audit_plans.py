"""How many rows an audit has to check: for a goal, for an error that is expected, for a plan."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fewlabel.assess.audit_limits import (
    PRIOR,
    ROUNDING,
    audit_confidence_sequence,
    check_confidence,
    check_counts,
    excludes,
    hypergeometric_limits,
    hypergeometric_log_cdf,
    log_prior_posterior_ratio,
)
from fewlabel.bounds.statistics import Floats, Ints

Plan = Literal["fixed", "sequential"]

# Paths of an audit that are less likely than this are left out of its distribution.
_UNLIKELY = 1e-13


def check_plan(plan: str) -> None:
    """Raise unless the plan is one of the two."""
    if plan not in ("fixed", "sequential"):
        raise ValueError(f"plan must be 'fixed' or 'sequential'. Got {plan!r} instead.")


def allowed_wrong(rows: int, max_error: float) -> int:
    """The largest number of wrong labels whose share does not exceed ``max_error``."""
    if not 0.0 <= max_error < 1.0:
        raise ValueError(f"max_error must lie in [0, 1), as 0.05 does. Got {max_error} instead.")
    near = int(max_error * rows)  # the product may be off by its last digit
    return max(m for m in (near - 1, near, near + 1) if m / rows <= max_error)


def checks_needed(
    rows: int,
    max_error: float,
    expected_error: float = 0.0,
    *,
    confidence: float = 0.95,
    plan: Plan = "fixed",
    power: float = 0.8,
) -> int:
    """Number of checks that will probably show that at most ``max_error`` of the labels are wrong.

    Parameters
    ----------
    rows : int
        Number of labels.
    max_error : float
        The goal: the share of wrong labels that is allowed.
    expected_error : float, default=0.0
        The share that is expected to be wrong, below the goal. With 0 the answer is the smallest
        number of checks that can reach the goal at all.
    confidence : float, default=0.95
        Of the guarantee.
    plan : {"fixed", "sequential"}, default="fixed"
        Whether the number of checks is fixed in advance, or a person checks row after row and stops
        when the goal is reached.
    power : float, default=0.8
        The probability with which so many checks are enough, if the expected error is the true one.

    Returns
    -------
    int
        At most ``rows``: whoever checks every row knows. If the answer is close to that there are
        too few rows for a guarantee from a sample.

    See Also
    --------
    audit : The guarantee itself.

    Notes
    -----
    Both answers are computed from the exact distribution of the errors found, not simulated. With a
    fixed number the smallest number of checks that tolerates k = 0, 1, … wrong ones is tried until
    its power suffices.

    References
    ----------
    .. [1] H. S. Konijn, "Statistical theory of sample survey design and analysis", 1973: limits for
           a hypergeometric count.

    Examples
    --------
    >>> checks_needed(2000, 0.05)
    57
    >>> checks_needed(2000, 0.05, 0.01), checks_needed(2000, 0.05, 0.01, plan="sequential")
    (120, 167)
    >>> checks_needed(30, 0.05)  # too few rows: nearly all must be checked
    23
    """
    check_counts(rows, 0, 0)
    check_plan(plan)
    delta = check_confidence(confidence)
    if not 0.0 < power < 1.0:
        raise ValueError(f"power must lie strictly between 0 and 1. Got {power} instead.")
    allowed = allowed_wrong(rows, max_error)
    if not 0.0 <= expected_error <= 1.0:
        raise ValueError(f"expected_error must be a share in [0, 1]. Got {expected_error} instead.")
    wrong = round(expected_error * rows)
    if wrong > allowed:
        raise ValueError(
            f"expected_error must not exceed max_error: no number of checks shows at most "
            f"{max_error:g} where {expected_error:g} of the labels are wrong."
        )
    needed = _fixed if plan == "fixed" else _sequential
    return needed(rows, allowed + 1, wrong, delta, power)


def _fixed(rows: int, too_many: int, wrong: int, delta: float, power: float) -> int:
    def enough(tolerated: int) -> bool:
        checks = smallest_sample(rows, too_many, tolerated, delta)
        return hypergeometric_log_cdf(tolerated, rows, wrong, checks) >= math.log(power)

    # One after the other as long as that is quick; later the power rises steadily: bisection.
    for tolerated in range(min(wrong, 50) + 1):
        if enough(tolerated):
            return smallest_sample(rows, too_many, tolerated, delta)
    low, high = 50, 100
    while high < wrong and not enough(high):
        low, high = high, 2 * high
    high = min(high, wrong)  # a sample that tolerates all wrong labels is always enough
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return smallest_sample(rows, too_many, high, delta)


def smallest_sample(rows: int, too_many: int, tolerated: int, delta: float) -> int:
    """Fewest checks that exclude ``too_many`` wrong labels when ``tolerated`` wrong are found."""
    low, high = tolerated, rows
    while low < high:
        middle = (low + high) // 2
        if excludes(rows, middle, tolerated, too_many, delta):
            high = middle
        else:
            low = middle + 1
    return low


def _sequential(rows: int, too_many: int, wrong: int, delta: float, power: float) -> int:
    size = 64
    while True:
        stops = stopping_times(rows, too_many, min(size, too_many), delta)
        reached = stopping_distribution(rows, wrong, stops)
        enough = np.flatnonzero(reached >= power)
        if enough.size:
            return int(enough[0])
        size *= 4


def stopping_times(
    rows: int,
    too_many: int,
    size: int,
    delta: float,
    prior: tuple[float, float] = PRIOR,
) -> Ints:
    """When the sequential audit excludes ``too_many`` if 0, 1, …, size−1 wrong ones were found.

    The first number of checks t at which the confidence sequence does; it rises with the number
    of wrong ones. Never later than ``rows``, since ``size`` is at most ``too_many``.
    """
    k = np.arange(size)
    # Start where the share of wrong ones is that of the hypothesis, and its ratio about 1. A right
    # row changes the ratio by (b+t−k)/(a+b+t) · (N−t)/(N−M−t+k): the predicted share of right rows
    # rises with t, the one that M implies falls, so the ratio falls at most at first, then rises.
    low, high = np.maximum(k, -(-k * rows // too_many)), np.full(size, rows)

    def excluded(t: Ints) -> NDArray[np.bool_]:
        ratio = log_prior_posterior_ratio(rows, t, k, too_many, prior)
        return ratio >= -np.log(delta) + ROUNDING

    while np.any(low < high):
        middle = (low + high) // 2
        done = excluded(middle)
        low, high = np.where(done, low, middle + 1), np.where(done, middle, high)
    return low


def stopping_distribution(rows: int, wrong: int, stops: Ints) -> Floats:
    """P(the goal is reached within t checks), t = 0, 1, …, when ``wrong`` labels are wrong.

    Exact: the number of wrong ones found is a Markov chain, and ends where it meets ``stops``.
    """
    last = int(stops[-1])
    reached = np.zeros(last + 1)
    tolerated = np.searchsorted(stops, np.arange(len(reached)), side="right") - 1
    alive, first = np.ones(1), 0  # probabilities of `first`, `first` + 1, … wrong ones so far
    for t in range(1, last + 1):
        found = first + np.arange(len(alive))
        chance = (wrong - found) / (rows - t + 1)  # beyond [0, 1] only where `alive` is 0
        step = np.append(alive * (1.0 - chance), 0.0)
        step[1:] += alive * chance
        done = max(0, int(tolerated[t]) - first + 1)
        reached[t] = reached[t - 1] + step[:done].sum()
        alive, first = step[done:], first + done
        likely = np.flatnonzero(alive > _UNLIKELY)
        if likely.size == 0:
            reached[t:] = reached[t]
            break
        alive, first = alive[likely.min() : likely.max() + 1], first + int(likely.min())
    return reached


def limit_if_none_wrong(
    rows: int, checked: int, *, confidence: float = 0.95, plan: Plan = "fixed"
) -> float:
    """The smallest share that so many checks can promise: their limit when none is wrong.

    Examples
    --------
    >>> round(limit_if_none_wrong(2000, 40), 3)  # 0 wrong of 40 is still up to 7 %
    0.071
    """
    check_plan(plan)
    if plan == "fixed":
        return hypergeometric_limits(rows, checked, 0, confidence=confidence).high / rows
    none = np.zeros(checked, dtype=bool)
    high = audit_confidence_sequence(rows, none, confidence=confidence)[1]
    return int(high[-1]) / rows if checked else 1.0
