"""How far the first classifier's votes are from probabilities, by held-out labelled rows.

A forest that was grown on few rows is underconfident, and bounds that take its votes for
probabilities are loose. Raised to a power, the votes fit the held-out labels better; but a power
that is fitted to a dozen rows may be far too large, and then the bounds would be too small. So the
report takes as little calibration as the rows demand: the power nearest to 1 that they do not
contradict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from fewlabel._scikit import indexable_rows, take_rows
from fewlabel._targets import UNLABELED, encode_target
from fewlabel.assessment import calibrated, judged_votes
from fewlabel.statistics import Floats

# Half the 95 % point of χ² with one degree of freedom: powers whose log-likelihood is further below
# the best are contradicted.
_DROP = 1.92
_POWERS = np.exp(np.linspace(np.log(0.1), np.log(20.0), 400))
_LOWEST_VOTE = 1e-3
FEWEST_ROWS = 10


@dataclass(frozen=True)
class Calibration:
    """What held-out votes for the labelled rows say.

    Attributes
    ----------
    n : int
        Labelled rows that can be judged.
    confidence : float
        Mean winning vote.
    accuracy : float
        How often it is right.
    power : float
        The least calibration that the rows demand; 1 is none.
    """

    n: int
    confidence: float
    accuracy: float
    power: float

    def apply(self, votes: Floats) -> Floats:
        """Votes as calibrated probabilities."""
        return votes if self.power == 1.0 else calibrated(votes, self.power)


def calibration_of(clf: Any, X: Any, y: ArrayLike) -> Calibration | None:
    """Calibration of a fitted classifier's initial votes; None with too few labelled rows."""
    codes, _ = encode_target(y, clf.missing_label)
    labeled = np.flatnonzero(codes != UNLABELED)
    if len(codes) != len(clf.labeled_iter_) or (clf.labeled_iter_[labeled] != 0).any():
        raise ValueError("X and y must be those that the classifier was fitted on.")
    if len(labeled) < FEWEST_ROWS:
        return None
    y_judged, held_out = judged_votes(clf, take_rows(indexable_rows(X), labeled), codes[labeled])
    if len(y_judged) < FEWEST_ROWS:
        return None
    return Calibration(
        n=len(y_judged),
        confidence=float(held_out.max(axis=1).mean()),
        accuracy=float((held_out.argmax(axis=1) == y_judged).mean()),
        power=least_power(held_out, y_judged),
    )


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
