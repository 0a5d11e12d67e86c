"""What a model says of the labels of new rows: confidence and acceptance, in plain numbers.

A :class:`fewlabel.assess.assessment.FitAssessment` knows the rows of a fit. A model that travels in
a file does not; the promise is what it needs of them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from fewlabel._core.arrays import Bools, Floats, Ints
from fewlabel.assess.accept import accept_threshold
from fewlabel.assess.assessment import FitAssessment
from fewlabel.assess.calibration import Confidence
from fewlabel.assess.error_estimate import ErrorEstimate
from fewlabel.assess.limits import Share

_MOST_STEPS = 1_000


@dataclass(frozen=True)
class Promise:
    """Confidence in labels, and which of them to accept for an error that one can live with.

    Attributes
    ----------
    rule : Confidence
        The chance that a label is right.
    cautious : Confidence
        The rule by which labels are accepted.
    power : float
        To which initial votes are raised before they stand for P(Y|x) in the bounds.
    max_error : float
        The error that the fit was asked for.
    steps : tuple of (float, float)
        Rising: the error for which rows are accepted, and the cautious confidence that this takes.
        Between two steps the lower one counts, so that rather fewer rows are accepted.

    Examples
    --------
    >>> promise = Promise(Confidence(1.0), Confidence(1.0), 1.0, 0.05, ((0.0, 1.0), (0.05, 0.9)))
    >>> promise.threshold(), promise.threshold(0.02)
    (0.9, 1.0)
    """

    rule: Confidence
    cautious: Confidence
    power: float
    max_error: float
    steps: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, assessment: FitAssessment, power: float, max_error: float) -> Self:
        """The promise of a fit."""
        steps = _steps(assessment.cautious_confidence, max_error)
        return cls(assessment.rule, assessment.cautious, power, max_error, steps)

    def threshold(self, max_error: float | None = None) -> float:
        """The least cautious confidence of an accepted row; infinite if none can be accepted."""
        wanted = self.max_error if max_error is None else max_error
        fitting = [theta for error, theta in self.steps if error <= wanted + 1e-12]
        return fitting[-1] if fitting else float("inf")

    def confidence(self, votes: Floats, labels: Ints) -> Floats:
        """The chance that each label is right, from the votes of the initial classifier."""
        return self.rule.of(votes, labels)

    def accepted(self, votes: Floats, labels: Ints, max_error: float | None = None) -> Bools:
        """Which labels a person may take as they are."""
        reached: Bools = self.cautious.of(votes, labels) >= self.threshold(max_error) - 1e-12
        return reached

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """The promise from :meth:`to_dict`, which JSON may have carried.

        Raises
        ------
        ValueError, TypeError, KeyError
            If it is none.
        """
        steps = tuple((float(error), float(theta)) for error, theta in plain["steps"])
        power, max_error = float(plain["power"]), float(plain["max_error"])
        promise = cls(_rule(plain["rule"]), _rule(plain["cautious"]), power, max_error, steps)
        if not np.isfinite([power, max_error, *(value for step in steps for value in step)]).all():
            raise ValueError("promise")
        return promise


@dataclass(frozen=True, eq=False)
class StoredAssessment(FitAssessment):
    """The assessment of a fit whose rows are not here: its promise decides what is accepted."""

    promise: Promise | None = None

    @classmethod
    def of(cls, promise: Promise, error: ErrorEstimate) -> Self:
        """From what a model file keeps."""
        none = np.empty(0)
        return cls(error, promise.rule, none, promise.cautious, none, promise=promise)

    def accepted(
        self, max_error: float, votes: Floats | None = None, labels: Ints | None = None
    ) -> Bools:
        """Rows with these initial votes and labels that can be accepted."""
        if self.promise is None or votes is None or labels is None:
            raise ValueError("The rows of the fit are not known any more: pass rows.")
        return self.promise.accepted(votes, labels, max_error)


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
    shift = plain["shift"]
    rule = Confidence(
        float(plain["power"]),
        float(plain["seen"]),
        None if shift is None else tuple(float(share) for share in shift),
    )
    if not np.isfinite([rule.power, rule.seen, *(rule.shift or ())]).all():
        raise ValueError("confidence")
    return rule


def _steps(confidence: Floats, max_error: float) -> tuple[tuple[float, float], ...]:
    """Where the mean doubt of the accepted rows rises; thinned out, but exact at ``max_error``."""
    order = np.sort(confidence)[::-1]
    if len(order) == 0:
        return ()
    doubt = np.cumsum(1.0 - order) / np.arange(1, len(order) + 1)
    last = np.flatnonzero(np.append(order[1:] < order[:-1], True))
    kept = last[np.unique(np.linspace(0, len(last) - 1, _MOST_STEPS - 1).astype(int))]
    steps = {float(order[k]): max(0.0, float(doubt[k])) for k in kept}
    own = accept_threshold(confidence, max_error)
    if np.isfinite(own):
        steps[own] = max(0.0, float(doubt[np.flatnonzero(order >= own)[-1]]))
    # Equal errors are steps of rounding only; the lower threshold accepts the same error.
    return tuple((steps[theta], theta) for theta in sorted(steps, reverse=True))
