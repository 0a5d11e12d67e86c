"""Who voted, with what weight, and how good each is by itself: for mixed votes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import binomtest

from fewlabel.assess.held_out import can_be_judged
from fewlabel.report.words import count

_HOW = {
    "gibbs": "the weight falls exponentially with the held-out loss (Brier score)",
    "uniform": "all families weigh the same",
    "second-order": "the weights minimise the second-order bound",
    "c-bound": "the weights minimise the C-bound",
}


def voters_of(clf: Any) -> dict[str, Any] | None:
    """The families of a mixed vote, the heaviest first; None for any other classifier.

    Parameters
    ----------
    clf : fitted SelfLearningClassifier
    """
    if not hasattr(clf, "voters_"):
        return None
    codes = clf._labeled_rows[1]
    votes = clf.initial_estimator_.held_out_votes_
    judged = can_be_judged(codes, clf.labeled_weight_) & votes.any(axis=1)
    n = int(judged.sum())
    families: list[dict[str, Any]] = [
        {
            "name": str(record.name),
            "title": str(record.title),
            "weight": float(record.weight),
            "accuracy": accuracy_estimate(record.accuracy, n),
            "left_out": record.left_out or None,
            "seconds": round(float(record.seconds), 2),
        }
        for record in clf.voters_
    ]
    right = votes.argmax(axis=1) == codes
    return {
        "families": sorted(families, key=_order),
        "n_voting": sum(family["weight"] > 0 for family in families),
        "together": accuracy_estimate(right[judged].sum() / n if n else float("nan"), n),
        "n_rows": n,
        "method": clf.posterior_.method,
        "how": _HOW[clf.posterior_.method],
        "kl": float(clf.posterior_.kl),
        "caveat": _caveat(n, len(codes)),
    }


def _order(family: dict[str, Any]) -> tuple[float, float]:
    accuracy = family["accuracy"]
    return -family["weight"], 1.0 if accuracy is None else -accuracy["value"]


def accuracy_estimate(accuracy: float, n: int) -> dict[str, Any] | None:
    """An accuracy on n rows with its 95 % interval (Wilson); None for NaN.

    Examples
    --------
    >>> estimate = accuracy_estimate(0.9, 20)
    >>> round(estimate["low"], 2), round(estimate["high"], 2)
    (0.7, 0.97)
    """
    if np.isnan(accuracy):
        return None
    interval = binomtest(round(accuracy * n), n).proportion_ci(method="wilson")
    low, high = float(interval.low), float(interval.high)
    return {"value": float(accuracy), "low": low, "high": high, "kind": "estimate"}


def _caveat(n: int, n_labeled: int) -> str:
    if n == 0:
        return "No class has two labelled rows, so accuracies cannot be estimated."
    which = "" if n == n_labeled else f" (of {n_labeled:,}; the others are alone in their class)"
    return (
        f"Accuracies are estimates from {count(n, 'labelled row')}{which}, by votes that did not "
        f"see the row's label (cross-fitted). The weights were chosen by the same rows, "
        f"so the best family, and the vote, look a little better than they are."
    )
