"""The promise in the summary: how wrong the labels are, which can be taken, what would prove it."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewlabel.assess.assessment import FitAssessment
from fewlabel.assess.audit_plans import allowed_wrong, checks_needed
from fewlabel.assess.error_estimate import ErrorEstimate
from fewlabel.assess.limits import Share
from fewlabel.report.fit_view import FitView


def promise_of(view: FitView) -> dict[str, Any]:
    """The error estimate, the accepted labels, and the same for other errors."""
    assessment: FitAssessment = view.clf.assessment_
    curve = [_point(view, level) for level in range(len(view.rule.max_errors))]
    return {
        "error": error_entry(assessment.error),
        "held_out": _held_out(view, assessment),
        "accepted": curve[view.rule.own],
        "curve": curve,
    }


def error_entry(error: ErrorEstimate) -> dict[str, Any]:
    """An error estimate for the summary; its value is None where nothing is known."""
    return {
        "value": error.value if np.isfinite(error.value) else None,
        "low": error.low,
        "high": error.high,
        "n": error.n,
        "assumes": error.assumes,
        "safe": error.safe,
        "notes": list(error.notes),
    }


def _point(view: FitView, level: int) -> dict[str, Any]:
    sums, max_error = view.sums, view.rule.max_errors[level]
    n = sums.n_accepted(level)
    expected = float(1.0 - sums.confidence[: level + 1].sum() / n) if n else float("nan")
    # Accepted are the surest labels: no worse than all of them, where the mean doubt cannot be
    # matched with a very small error.
    if np.isfinite(view.clf.error_.value):
        expected = min(expected, view.clf.error_.value)
    return {
        "max_error": max_error,
        "n": n,
        "share": n / view.n_unlabeled if view.n_unlabeled else float("nan"),
        "expected_error": expected,
        "expected_wrong": n * expected if n else 0.0,
        "lowest_confidence": float(sums.lowest[: level + 1].min()) if n else float("nan"),
        **audit_checks(n, max_error, expected),
    }


# Of more rows than this the number of checks hardly depends on their number.
_MANY_ROWS = 20_000


def audit_checks(n: int, max_error: float, expected: float) -> dict[str, int | None]:
    """Random checks that would prove it: probably, and if none of them is wrong.

    None where no number of checks can be named.
    """
    if n == 0 or not 0.0 <= max_error < 1.0:
        return {"checks": None, "checks_if_none_wrong": None}
    n = min(n, _MANY_ROWS)
    fewest = checks_needed(n, max_error)
    likely = None
    if np.isfinite(expected) and round(expected * n) <= allowed_wrong(n, max_error):
        likely = checks_needed(n, max_error, expected)
    return {"checks": likely, "checks_if_none_wrong": fewest}


def _held_out(view: FitView, assessment: FitAssessment) -> dict[str, Any] | None:
    """Errors on labelled rows whose labels were held out: of the first vote, of self-learning."""
    held_out, self_learned = view.clf.paper_bounds_.held_out, assessment.self_learned
    codes, votes = held_out.judged
    if len(codes) == 0:
        return None
    found: dict[str, Any] = {
        "initial": float((votes.argmax(axis=1) != codes).mean()),
        "n": len(codes),
        "trained_share": held_out.trained_share,
        "self_learning": None,
        "per_class": view.clf.labels == "per class",
        "mixed": held_out.weights is not None,
    }
    if self_learned is not None:
        found["self_learning"] = float(self_learned.errors[held_out.votes[0].any(axis=1)].mean())
    return found


def share_entry(share: Share | None) -> dict[str, float] | None:
    """An estimated share for the summary; None where nothing is known of it."""
    if share is None or not np.isfinite(share.value):
        return None
    return {"value": share.value, "low": share.low, "high": share.high}
