"""Votes as probabilities: the power to which they are raised, from held-out labelled rows.

A forest that was grown on few rows is underconfident, and bounds that take its votes for
probabilities are loose. Raised to a power, the votes fit the held-out labels better. There are two
powers: the most likely one, with which voters of different kinds are made comparable, and the one
for bounds. A power that is fitted to a dozen rows may be far too large and bounds with it too
small; so theirs is as little calibration as the rows demand: the power nearest to 1 that they do
not contradict.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from fewlabel._core.arrays import Floats

# A vote of 0 only says that no voter of a finite number chose the class.
_LOWEST_VOTE = 1e-3

# Half the 95 % point of χ² with one degree of freedom: powers whose log-likelihood is further below
# the best are contradicted.
_DROP = 1.92
_POWERS = np.exp(np.linspace(np.log(0.1), np.log(20.0), 400))

FEWEST_ROWS = 10
"""With fewer held-out rows votes that stand for probabilities in a bound stay as they are."""


def calibrated(votes: Floats, power: float) -> Floats:
    """Votes raised to a power and normalised (temperature scaling with temperature 1/power)."""
    raised = np.maximum(votes, _LOWEST_VOTE) ** power
    return raised / raised.sum(axis=1, keepdims=True)


def calibration_power(held_out: Floats, y: NDArray[np.intp]) -> float:
    r"""The power with which held-out votes give the true labels the highest likelihood.

    .. math:: t^* = \arg\max_t \sum_x \ln \frac{v_Q(x,y)^t}{\sum_c v_Q(x,c)^t}

    A forest grown on few rows is underconfident: it votes for the right class more often than its
    votes say, and t is above 1.
    """
    logits = np.log(np.maximum(held_out, _LOWEST_VOTE))
    own = logits[np.arange(len(y)), y]

    def loss(log_power: float) -> float:
        power = np.exp(log_power)
        return float(np.mean(logsumexp(power * logits, axis=1) - power * own))

    # One bounded parameter: few labelled rows suffice, and rows that are all right cannot drive it
    # to infinity.
    best = minimize_scalar(loss, bounds=(np.log(0.1), np.log(20.0)), method="bounded")
    return float(np.exp(best.x))


def least_power(held_out: Floats, codes: NDArray[np.intp]) -> float:
    r"""The power nearest to 1 that the held-out labels do not contradict at the 95 % level.

    .. math:: \ell(t) = \sum_x \ln \frac{v_Q(x,y)^t}{\sum_c v_Q(x,c)^t}

    Powers with :math:`\ell(t) \ge \max\ell - 1.92` are not contradicted (likelihood ratio).

    Examples
    --------
    >>> votes = np.tile([0.7, 0.3], (100, 1))
    >>> round(least_power(votes, np.repeat([0, 1], [70, 30])), 2)  # calibrated as they are
    1.0
    >>> least_power(votes, np.repeat([0, 1], [95, 5])) > 1.5  # right more often than they say
    True
    """
    logits = np.log(np.maximum(held_out, _LOWEST_VOTE))
    own = logits[np.arange(len(codes)), codes]
    likelihood = np.array([float((t * own - logsumexp(t * logits, axis=1)).sum()) for t in _POWERS])
    fitting = _POWERS[likelihood >= likelihood.max() - _DROP]
    return float(np.clip(1.0, fitting[0], fitting[-1]))


def bounding_power(held_out: Floats, codes: NDArray[np.intp]) -> float:
    """The power for votes that stand for P(Y|x) in a bound; 1 with too few held-out rows."""
    return least_power(held_out, codes) if len(codes) >= FEWEST_ROWS else 1.0


def for_bounds(votes: Floats, power: float) -> Floats:
    """The votes as probabilities; those that need no calibration are left exactly as they are."""
    return votes if power == 1.0 else calibrated(votes, power)
