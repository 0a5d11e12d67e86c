"""What is kept and shown of a round of self-learning."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fewlabel._validation import check_proba
from fewlabel.policies import Selection
from fewlabel.statistics import Floats, Ints
from fewlabel.transductive import transductive_bound


def round_record(
    iteration: int, n_left: int, selection: Selection, pseudo: Ints, seconds: dict[str, float]
) -> dict[str, Any]:
    """The entry of ``history_`` for one round, in plain types that JSON knows."""
    n_classes = len(selection.thresholds)
    counts = np.bincount(pseudo, minlength=n_classes)
    errors = selection.errors
    return {
        "iteration": iteration,
        "n_unlabeled": n_left,
        "n_selected": len(pseudo),
        "n_selected_per_class": counts.tolist(),
        "thresholds": selection.thresholds.tolist(),
        "error_bounds": None if errors is None else errors.tolist(),
        # Each class's bound is on the error among its selected rows: their mean is on all.
        "error_bound": None if errors is None else float(np.nansum(errors * counts) / len(pseudo)),
        **{f"seconds_{what}": value for what, value in seconds.items()},
    }


def round_line(record: dict[str, Any]) -> str:
    """One line that tells a person about a round."""
    bound = record["error_bound"]
    return (
        f"round {record['iteration']}: trusted {record['n_selected']} of {record['n_unlabeled']} "
        f"rows" + ("" if bound is None else f", estimated error bound {bound:.3f}")
    )


def initial_label_proba(
    choice: str | ArrayLike, votes: Floats, unlabeled: Ints, n_samples: int
) -> Floats | None:
    """P(Y|x) of every unlabelled row, or None for "whatever the current votes are"."""
    n_classes = votes.shape[1]
    if isinstance(choice, str):
        if choice == "uniform":
            return np.full_like(votes, 1.0 / n_classes)
        return votes if choice == "supervised" else None
    given = np.asarray(choice, dtype=np.float64)
    if given.shape != (n_samples, n_classes):
        raise ValueError(
            f"label_proba must have shape (n_samples, n_classes) = {(n_samples, n_classes)}. "
            f"Got {given.shape} instead."
        )
    return check_proba(given[unlabeled], "label_proba") if len(unlabeled) else votes


def final_bound(votes: Floats, label_proba: Floats) -> tuple[float, Floats]:
    """Bounds of the error rate and of the conditional risks on these rows; NaN without rows.

    Thresholds of 1/K are reached by every winning vote, so this bounds the error of all rows, more
    tightly than thresholds of 0 do.
    """
    n_classes = votes.shape[1]
    if len(votes) == 0:
        return float("nan"), np.full((n_classes, n_classes), np.nan)
    lowest = min(1.0 / n_classes, float(votes.max(axis=1).min()))  # rounding may go below 1/K
    bound = transductive_bound(votes, label_proba, thresholds=lowest, tight=True)
    return bound.risk, bound.confusion
