"""What a model says of the labels of rows, in plain numbers: confidence and acceptance.

It needs no row of the fit, so it travels in model files.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from fewlabel._core.arrays import Bools, Floats, Ints
from fewlabel.assess.accept import acceptance_steps, threshold_among
from fewlabel.assess.calibration import Confidence
from fewlabel.assess.error_estimate import ErrorEstimate
from fewlabel.assess.limits import Share
from fewlabel.assess.shifts import NO_SHIFTS, Shifts

_MOST_STEPS = 1_000
"""In a file. In memory there is one for each row."""


@dataclass(frozen=True, eq=False)
class Promise:
    """Confidence in labels, and which of them to accept for an error that is allowed.

    Attributes
    ----------
    rule : Confidence
        The chance that a label is right.
    cautious : Confidence
        The rule by which labels are accepted.
    steps : ndarray of shape (n_steps, 2)
        Rising: the error for which rows are accepted, and the cautious confidence that this takes.
        Between two steps the lower one counts, so that rather fewer rows are accepted.
    power : float, default=1.0
        To which initial votes are raised before they stand for P(Y|x) in the bounds.
    max_error : float, default=0.05
        The error that was asked for.
    shifts : Shifts, optional
        By which they are changed before and after.

    Examples
    --------
    >>> steps = np.array([[0.0, 1.0], [0.05, 0.9]])
    >>> promise = Promise(Confidence(1.0), Confidence(1.0), steps)
    >>> promise.threshold(), promise.threshold(0.02)
    (0.9, 1.0)
    """

    rule: Confidence
    cautious: Confidence
    steps: Floats
    power: float = 1.0
    max_error: float = 0.05
    shifts: Shifts = NO_SHIFTS

    @classmethod
    def of(
        cls,
        rule: Confidence,
        cautious: Confidence,
        votes: Floats,
        labels: Ints,
        power: float,
        shifts: Shifts = NO_SHIFTS,
    ) -> Self:
        """The promise of a fit, from the initial votes and the labels of its unlabelled rows."""
        steps = acceptance_steps(cautious.of(votes, labels))
        return cls(rule, cautious, steps, power, shifts=shifts)

    def label_proba(self, votes: Floats) -> Floats:
        """Votes of the initial classifier as they stand for P(Y|x) in the bounds."""
        return self.shifts.label_proba(votes, self.power)

    def threshold(self, max_error: float | None = None) -> float:
        """The least cautious confidence of an accepted row; infinite if none can be accepted."""
        return threshold_among(self.steps, self.max_error if max_error is None else max_error)

    def confidence(self, votes: Floats, labels: Ints) -> Floats:
        """The chance that each label is right, from the votes of the initial classifier."""
        return self.rule.of(votes, labels)

    def accepted(self, votes: Floats, labels: Ints, max_error: float | None = None) -> Bools:
        """Which labels a person may take as they are."""
        reached: Bools = self.cautious.of(votes, labels) >= self.least(max_error)
        return reached

    def least(self, max_error: float | None = None) -> float:
        """The threshold with the slack of a rounding error, to compare with."""
        return self.threshold(max_error) - 1e-12

    @property
    def mean_doubt(self) -> float:
        """Mean cautious doubt about all rows of the fit; NaN without any."""
        return float(self.steps[-1, 0]) if len(self.steps) else float("nan")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; steps are thinned out, but that of ``max_error`` stays."""
        kept = np.linspace(0, len(self.steps) - 1, min(_MOST_STEPS - 1, len(self.steps)))
        own = np.flatnonzero(self.steps[:, 1] == self.threshold())
        rows = np.union1d(kept.astype(np.intp), own)
        plain = {"steps": self.steps[rows].tolist(), "shifts": self.shifts.to_lists()}
        return {**asdict(self), **plain}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """The promise from :meth:`to_dict`, which JSON may have carried.

        Raises
        ------
        ValueError, TypeError, KeyError
            If it is none.
        """
        steps = np.array(plain["steps"], dtype=np.float64).reshape(-1, 2)
        power, max_error = float(plain["power"]), float(plain["max_error"])
        if not np.isfinite([power, max_error, *steps.ravel()]).all():
            raise ValueError("promise")
        shifts = Shifts.from_lists(plain["shifts"])
        rules = _rule(plain["rule"]), _rule(plain["cautious"])
        return cls(*rules, steps, power, max_error, shifts)


def error_from_dict(plain: dict[str, Any]) -> ErrorEstimate:
    """The estimate from ``dataclasses.asdict``, which JSON may have carried; unknown if empty."""
    if not plain:
        return ErrorEstimate(float("nan"), 0.0, 1.0, 0, "nothing is known of the fit")
    shares = {
        name: tuple(Share(*share) for share in found)
        for name, found in plain.items()
        if name in ("per_class", "prevalence", "recall")
    }
    return ErrorEstimate(**{**plain, **shares, "notes": tuple(plain["notes"])})


def _rule(plain: dict[str, Any]) -> Confidence:
    shift, own = (
        None if ratios is None else tuple(float(ratio) for ratio in ratios)
        for ratios in (plain["shift"], plain["own"])
    )
    rule = Confidence(float(plain["power"]), float(plain["seen"]), shift, own)
    if not np.isfinite([rule.power, rule.seen, *(shift or ()), *(own or ())]).all():
        raise ValueError("confidence")
    return rule
