r"""Which unlabelled rows to pseudo-label next (step 2 of Algorithm 1, and Section 6's rivals).

A policy is a pure function from votes, label probabilities and the round to a selection. Any object
with a method ``select(votes, label_proba, iteration)`` that returns a :class:`Selection` is one.
Rows that do not fit in memory are known by their statistics only: a policy for them has a method
``from_statistics(statistics, iteration)`` that returns the thresholds and, for each class, what the
policy's criterion says of the error (or None). If it works on bins of votes, its attribute
``resolution`` is their number.
The policies here are scikit-learn estimators only in that their parameters can be searched
(``policy__threshold``) and cloned; they learn nothing and remember nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from fewlabel.bounds.statistics import Floats, VoteStatistics
from fewlabel.bounds.thresholds import Criterion, search_thresholds

Decision = tuple[Floats, Floats | None]
"""Thresholds, and what the criterion says of the error of each class."""


@dataclass(frozen=True)
class Selection:
    """What a policy decides in one round.

    Attributes
    ----------
    mask : ndarray of bool of shape (n_samples,)
        The rows to pseudo-label by their majority vote.
    thresholds : ndarray of shape (n_classes,)
        The thresholds that made the mask.
    errors : ndarray of shape (n_classes,) or None
        For each class, what the policy's criterion says of the error among the selected rows.
    """

    mask: NDArray[np.bool_]
    thresholds: Floats
    errors: Floats | None = None

    @classmethod
    def by_thresholds(cls, votes: Floats, thresholds: Floats, errors: Floats | None = None) -> Self:
        """Select the rows whose winning vote reaches the threshold of its class."""
        return cls(votes.max(axis=1) >= thresholds[votes.argmax(axis=1)], thresholds, errors)


class Policy(Protocol):
    """What the self-learning loop asks of a policy."""

    def select(self, votes: Floats, label_proba: Floats, iteration: int) -> Selection: ...


class BoundPolicy(BaseEstimator):
    r"""Thresholds that minimise the bound on the conditional error (MSLA, the paper's method).

    Parameters
    ----------
    criterion : {"bound", "plug-in"}, default="bound"
        See :func:`fewlabel.optimal_thresholds`.
    resolution : int, optional
        Search over this many bins of votes; over all distinct votes by default.

    Examples
    --------
    >>> import numpy as np
    >>> votes = np.array([[0.95, 0.05], [0.9, 0.1], [0.55, 0.45], [0.1, 0.9]])
    >>> BoundPolicy().select(votes, votes, 1).mask.tolist()
    [True, True, False, True]
    """

    def __init__(self, criterion: Criterion = "bound", resolution: int | None = None) -> None:
        self.criterion = criterion
        self.resolution = resolution

    def select(self, votes: Floats, label_proba: Floats, iteration: int) -> Selection:
        thresholds, errors = search_thresholds(
            votes, label_proba, resolution=self.resolution, criterion=self.criterion
        )
        return Selection.by_thresholds(votes, thresholds, errors)

    def from_statistics(self, statistics: VoteStatistics, iteration: int) -> Decision:
        if self.resolution is not None:
            statistics = statistics.binned(self.resolution)
        return search_thresholds(statistics, criterion=self.criterion)


class FixedThreshold(BaseEstimator):
    """One threshold for every class and round (FSLA).

    The paper's FSLA is this with ``pseudo_weight="uniform"``; with the weights of Algorithm 1, the
    default, it is mostly better (docs/reproduction.md).

    Parameters
    ----------
    threshold : float in [0, 1], default=0.7
        The paper's choice for a random forest.
    """

    def __init__(self, threshold: float = 0.7) -> None:
        self.threshold = threshold

    def select(self, votes: Floats, label_proba: Floats, iteration: int) -> Selection:
        return Selection.by_thresholds(votes, self._thresholds(votes.shape[1]))

    def from_statistics(self, statistics: VoteStatistics, iteration: int) -> Decision:
        return self._thresholds(statistics.n_classes), None

    def _thresholds(self, n_classes: int) -> Floats:
        if not 0 <= self.threshold <= 1:
            raise ValueError(f"threshold must lie in [0, 1]. Got {self.threshold!r} instead.")
        return np.full(n_classes, float(self.threshold))


class Curriculum(BaseEstimator):
    r"""In round t, trust votes above their :math:`(1 - t\Delta)`-quantile (CSLA).

    Parameters
    ----------
    step : float in (0, 1], default=1/3
        Δ; with one third, three rounds take all rows.
    """

    def __init__(self, step: float = 1 / 3) -> None:
        self.step = step

    def select(self, votes: Floats, label_proba: Floats, iteration: int) -> Selection:
        threshold = np.quantile(votes.max(axis=1), self._quantile(iteration), method="lower")
        return Selection.by_thresholds(votes, np.full(votes.shape[1], threshold))

    def from_statistics(self, statistics: VoteStatistics, iteration: int) -> Decision:
        edges = np.concatenate([cells.edges for cells in statistics.cells])
        order = np.argsort(edges)
        counts = np.concatenate([cells.n_predicted for cells in statistics.cells])[order]
        # The quantile as in `select`; of binned votes, the lower end of the bin that holds it.
        rank = int(self._quantile(iteration) * (statistics.n_rows - 1))
        threshold = edges[order][np.searchsorted(np.cumsum(counts), rank, side="right")]
        return np.full(statistics.n_classes, threshold), None

    def _quantile(self, iteration: int) -> float:
        if not 0 < self.step <= 1:
            raise ValueError(f"step must lie in (0, 1]. Got {self.step!r} instead.")
        return max(0.0, 1.0 - iteration * self.step)


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
        f"select(votes, label_proba, iteration). Got {policy!r} instead."
    )
