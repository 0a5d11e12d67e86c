r"""Which unlabelled rows to pseudo-label next (step 2 of Algorithm 1, and Section 6's rivals).

A policy is a pure function from the statistics of the votes and the round to thresholds: a row
whose winning vote reaches the threshold of its class gets that class as pseudo-label. Any object
with a method ``select(statistics, iteration)`` that returns a :class:`Selection` is one. It works
for rows in memory and for rows in chunks alike. If it wants votes in bins, its attribute
``resolution`` is their number.
The policies here are scikit-learn estimators only in that their parameters can be searched
(``policy__threshold``) and cloned; they learn nothing and remember nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.base import BaseEstimator

from fewlabel._core.arrays import Bools, Floats
from fewlabel.bounds.cells import Statistics
from fewlabel.bounds.thresholds import Criterion, search_thresholds


@dataclass(frozen=True, eq=False)
class Selection:
    """What a policy decides in one round.

    Attributes
    ----------
    thresholds : ndarray of shape (n_classes,)
        A row is selected if its winning vote reaches the threshold of its class.
    errors : ndarray of shape (n_classes,) or None
        For each class, what the policy's criterion says of the error among the selected rows.

    See Also
    --------
    BoundPolicy : A policy that makes one.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Algorithm 1.

    Examples
    --------
    >>> selection = Selection(np.array([0.6, 0.5]))
    >>> selection.mask(np.array([[0.55, 0.45], [0.3, 0.7]])).tolist()
    [False, True]
    """

    thresholds: Floats
    errors: Floats | None = None

    def mask(self, votes: Floats) -> Bools:
        """Rows whose winning vote reaches the threshold of its class."""
        reached: Bools = votes.max(axis=1) >= self.thresholds[votes.argmax(axis=1)]
        return reached


class Policy(Protocol):
    """What the self-learning loop asks of a policy."""

    def select(self, statistics: Statistics, iteration: int) -> Selection: ...


class BoundPolicy(BaseEstimator):
    r"""Thresholds that minimise the bound on the conditional error (MSLA, the paper's method).

    Parameters
    ----------
    criterion : {"bound", "plug-in"}, default="bound"
        See :func:`fewlabel.optimal_thresholds`.
    resolution : int, optional
        Search over this many bins of votes; over all distinct votes by default.

    See Also
    --------
    FixedThreshold, Curriculum : The other policies.
    fewlabel.optimal_thresholds : The search itself.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from fewlabel import VoteStatistics
    >>> votes = np.array([[0.95, 0.05], [0.9, 0.1], [0.55, 0.45], [0.1, 0.9]])
    >>> selection = BoundPolicy().select(VoteStatistics.from_votes(votes, votes), 1)
    >>> selection.mask(votes).tolist()
    [True, True, False, True]
    """

    def __init__(self, criterion: Criterion = "bound", resolution: int | None = None) -> None:
        self.criterion = criterion
        self.resolution = resolution

    def select(self, statistics: Statistics, iteration: int) -> Selection:
        """Thresholds with the smallest value of the criterion, class by class."""
        if self.resolution is not None:
            statistics = statistics.binned(self.resolution)
        return Selection(*search_thresholds(statistics, criterion=self.criterion))


class FixedThreshold(BaseEstimator):
    """One threshold for every class and round (FSLA).

    The paper's FSLA is this with ``pseudo_weight="uniform"``; with the weights of Algorithm 1, the
    default, it is mostly better (docs/reproduction.md).

    Parameters
    ----------
    threshold : float in [0, 1], default=0.7
        The paper's choice for a random forest.

    See Also
    --------
    BoundPolicy : Thresholds from a bound on the error, which need no choice.

    References
    ----------
    .. [1] G. Tür, D. Hakkani-Tür and R. E. Schapire, "Combining active and semi-supervised
           learning for spoken language understanding", 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from fewlabel import FixedThreshold, VoteStatistics
    >>> votes = np.array([[0.95, 0.05], [0.6, 0.4]])
    >>> FixedThreshold(0.7).select(VoteStatistics.from_votes(votes, votes), 1).mask(votes).tolist()
    [True, False]
    """

    def __init__(self, threshold: float = 0.7) -> None:
        self.threshold = threshold

    def select(self, statistics: Statistics, iteration: int) -> Selection:
        """The same threshold for each class."""
        if not 0 <= self.threshold <= 1:
            raise ValueError(f"threshold must lie in [0, 1]. Got {self.threshold!r} instead.")
        return Selection(np.full(statistics.n_classes, float(self.threshold)))


class Curriculum(BaseEstimator):
    r"""In round t, select votes above their :math:`(1 - t\Delta)`-quantile (CSLA).

    Parameters
    ----------
    step : float in (0, 1], default=1/3
        Δ; with one third, three rounds take all rows.

    See Also
    --------
    BoundPolicy : Thresholds from a bound on the error.

    References
    ----------
    .. [1] P. Cascante-Bonilla, F. Tan, Y. Qi and V. Ordonez, "Curriculum labeling: revisiting
           pseudo-labeling for semi-supervised learning", 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from fewlabel import Curriculum, VoteStatistics
    >>> votes = np.array([[0.95, 0.05], [0.9, 0.1], [0.55, 0.45], [0.1, 0.9]])
    >>> Curriculum(0.5).select(VoteStatistics.from_votes(votes, votes), 1).mask(votes).tolist()
    [True, True, False, True]
    """

    def __init__(self, step: float = 1 / 3) -> None:
        self.step = step

    def select(self, statistics: Statistics, iteration: int) -> Selection:
        """The quantile of the winning votes, the same for each class."""
        if not 0 < self.step <= 1:
            raise ValueError(f"step must lie in (0, 1]. Got {self.step!r} instead.")
        K = statistics.n_classes
        votes, counts = map(np.concatenate, zip(*map(statistics.predicted_votes, range(K))))
        order = np.argsort(votes)
        rank = int(max(0.0, 1.0 - iteration * self.step) * (statistics.n_rows - 1))
        at = np.searchsorted(np.cumsum(counts[order]), rank, side="right")
        return Selection(np.full(K, votes[order][at]))


POLICIES: dict[str, type[BaseEstimator]] = {
    "bound": BoundPolicy,
    "fixed": FixedThreshold,
    "curriculum": Curriculum,
}


def make_policy(policy: str | Policy) -> Policy:
    """A policy by its name, or the given object if it can select."""
    if isinstance(policy, str) and policy in POLICIES:
        made: Any = POLICIES[policy]()
        return made
    if not isinstance(policy, str) and hasattr(policy, "select"):
        return policy
    raise ValueError(
        f"The 'policy' parameter must be one of {sorted(POLICIES)} or an object with a method "
        f"select(statistics, iteration). Got {policy!r} instead."
    )
