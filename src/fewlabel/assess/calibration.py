"""Votes as probabilities: the power to which they are raised, from held-out labelled rows.

A forest that was grown on few rows is underconfident, and bounds that take its votes for
probabilities are loose. Raised to a power, the votes fit the held-out labels better. There are two
powers: the most likely one, with which voters of different kinds are made comparable, and the one
for bounds. A power that is fitted to a dozen rows may be far too large and bounds with it too
small; so theirs is as little calibration as the rows demand: the power nearest to 1 that they do
not contradict.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import logsumexp

from fewlabel._core.arrays import Floats

# A vote of 0 only says that no voter of a finite number chose the class.
_LOWEST_VOTE = 1e-3

# Half the 95 % point of χ² with one degree of freedom: powers whose log-likelihood is further below
# the best are contradicted.
_DROP = 1.92
LOWEST_POWER = 0.01
"""A single tree votes 0 or 1: if it is hardly better than chance, only a tiny power says so."""
# Chosen with the constants of fewlabel.assess.error_estimate.
_SMOOTHING = 0.5
_POWERS = np.exp(np.linspace(np.log(LOWEST_POWER), np.log(20.0), 500))

FEWEST_ROWS = 10
"""With fewer held-out rows votes that stand for probabilities in a bound stay as they are."""


def calibrated(votes: Floats, power: float) -> Floats:
    """Votes raised to a power and normalised (temperature scaling with temperature 1/power)."""
    raised = np.maximum(votes, _LOWEST_VOTE) ** power
    return raised / raised.sum(axis=1, keepdims=True)


def calibration_power(
    held_out: Floats,
    y: NDArray[np.intp],
    *,
    lowest: float = 0.1,
    highest: float = 20.0,
    smoothing: float = 0.0,
) -> float:
    r"""The power with which held-out votes give the true labels the highest likelihood.

    .. math:: t^* = \arg\max_t \sum_x \ln \frac{v_Q(x,y)^t}{\sum_c v_Q(x,c)^t}

    A forest grown on few rows is underconfident: it votes for the right class more often than its
    votes say, and t is above 1.

    Parameters
    ----------
    held_out : ndarray of shape (n_rows, n_classes)
    y : ndarray of int of shape (n_rows,)
    lowest, highest : float
        Limits of t.
    smoothing : float, default=0.0
        Rows of unknown label that are added (label smoothing). A few rows that are all right would
        have the largest power, whose probabilities are nearly 0 and 1.

    Returns
    -------
    power : float
    """
    logits = np.log(np.maximum(held_out, _LOWEST_VOTE))
    unknown = smoothing / (len(y) + smoothing)
    own = (1.0 - unknown) * logits[np.arange(len(y)), y] + unknown * logits.mean(axis=1)

    def loss(log_power: float) -> float:
        power = np.exp(log_power)
        return float(np.mean(logsumexp(power * logits, axis=1) - power * own))

    # One bounded parameter: few labelled rows suffice, and rows that are all right cannot drive it
    # to infinity.
    best = minimize_scalar(loss, bounds=(np.log(lowest), np.log(highest)), method="bounded")
    return float(np.exp(best.x))


def calibrated_by(held_out: Floats, y: NDArray[np.intp]) -> float:
    """The calibration power that a few held-out rows speak for; 1 without any row."""
    if len(y) == 0:
        return 1.0
    return calibration_power(held_out, y, lowest=LOWEST_POWER, smoothing=_SMOOTHING)


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
    # Wholly below 1 the votes are overconfident: of these powers the smallest is the cautious one.
    return 1.0 if fitting[0] <= 1.0 <= fitting[-1] else float(fitting[0])


def bounding_power(held_out: Floats, codes: NDArray[np.intp]) -> float:
    """The power for votes that stand for P(Y|x) in a bound; 1 with too few held-out rows."""
    return least_power(held_out, codes) if len(codes) >= FEWEST_ROWS else 1.0


def for_bounds(votes: Floats, power: float) -> Floats:
    """The votes as probabilities; those that need no calibration are left exactly as they are."""
    return votes if power == 1.0 else calibrated(votes, power)


# --- confidence in a label --------------------------------------------------------------------

_LOG_POWERS = (-5.0, 4.0)


@dataclass(frozen=True)
class Confidence:
    r"""The chance that a label is right, from the votes of the first classifier.

    .. math:: \text{seen}\cdot\frac{r_y\,v(x,y)^{1/t}}{\sum_c r_c\,v(x,c)^{1/t}}

    for a row x with label y, which may be another classifier's, and temperature t.

    Attributes
    ----------
    power : float
        1/t, to which votes are raised.
    seen : float, default=1.0
        Estimated share of rows whose class has a label at all.
    shift : tuple of float, optional
        r, class shares of the table over those of the labelled rows, if these differ.
    own : tuple of float, optional
        Class shares of the labelled rows over those that the votes are for, if these differ:
        votes are multiplied with it before they are raised.

    See Also
    --------
    fewlabel.assess.error_estimate.estimate_error : finds it.

    Examples
    --------
    >>> votes = np.array([[0.9, 0.1], [0.6, 0.4]])
    >>> Confidence(2.0).of(votes, np.array([0, 1])).round(3).tolist()
    [0.988, 0.308]
    """

    power: float
    seen: float = 1.0
    shift: tuple[float, ...] | None = None
    own: tuple[float, ...] | None = None

    @property
    def temperature(self) -> float:
        """The temperature of the scaling."""
        return 1.0 / self.power

    def label_proba(self, votes: Floats) -> Floats:
        """Label probabilities, given that the class is one of those with a label."""
        if self.own is not None:
            votes = votes * np.asarray(self.own)
            votes = votes / votes.sum(axis=1, keepdims=True)
        proba = calibrated(votes, self.power)
        if self.shift is None:
            return proba
        proba = proba * np.asarray(self.shift)
        return proba / proba.sum(axis=1, keepdims=True)

    def of(self, votes: Floats, labels: NDArray[np.intp]) -> Floats:
        """Confidence in one label for each row.

        Parameters
        ----------
        votes : ndarray of shape (n_rows, n_classes)
            Votes of the classifier that learned from the given labels only.
        labels : ndarray of int of shape (n_rows,)
            Codes of the labels that the rows got.
        """
        return self.seen * self.label_proba(votes)[np.arange(len(labels)), labels]


def match_confidence(
    votes: Floats,
    labels: NDArray[np.intp],
    error: float,
    *,
    seen: float = 1.0,
    shift: tuple[float, ...] | None = None,
) -> Confidence:
    r"""The temperature with which the mean doubt about the labels is the estimated error.

    .. math:: \frac1N \sum_x \bigl(1 - \text{confidence}(x)\bigr) = \hat e

    Parameters
    ----------
    votes : ndarray of shape (n_rows, n_classes)
    labels : ndarray of int of shape (n_rows,)
    error : float
        The estimated share of wrong labels.
    seen, shift : as in :class:`Confidence`

    Returns
    -------
    confidence : Confidence
        With the smallest power whose mean doubt is not above the error; the power of the smallest
        mean doubt if none is.

    Examples
    --------
    >>> votes = np.array([[0.9, 0.1], [0.6, 0.4]])
    >>> confidence = match_confidence(votes, np.array([0, 0]), 0.05)
    >>> float((1 - confidence.of(votes, np.array([0, 0]))).mean().round(3))
    0.05
    """

    def excess(log_power: float) -> float:
        confidence = Confidence(float(np.exp(log_power)), seen, shift)
        return float(1.0 - confidence.of(votes, labels).mean()) - error

    low, high = _LOG_POWERS
    if len(labels) == 0:
        return Confidence(1.0, seen, shift)
    # Where labels differ from the votes the mean doubt need not fall all the way: the lowest point.
    grid = np.linspace(low, high, 33)
    doubt = np.array([excess(g) for g in grid])
    below = np.flatnonzero(doubt <= 0)
    if len(below) == 0:
        best = float(grid[doubt.argmin()])
    elif below[0] == 0:
        best = low
    else:
        best = float(brentq(excess, grid[below[0] - 1], grid[below[0]]))
    return Confidence(float(np.exp(best)), seen, shift)
