"""What is kept and shown of a round of self-learning, and when to stop."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewlabel._core.arrays import Ints
from fewlabel.selection.policies import Selection


def round_record(
    iteration: int, n_left: int, selection: Selection, counts: Ints, seconds: dict[str, float]
) -> dict[str, Any]:
    """The entry of ``history_`` for one round, in plain types that JSON knows.

    ``counts``: how many rows were selected of each class.
    """
    errors, n_selected = selection.errors, int(counts.sum())
    return {
        "iteration": iteration,
        "n_unlabeled": n_left,
        "n_selected": n_selected,
        "n_selected_per_class": counts.tolist(),
        "thresholds": selection.thresholds.tolist(),
        "error_bounds": None if errors is None else errors.tolist(),
        # Each class's bound is on the error among its selected rows: their mean is on all.
        "error_bound": None if errors is None else float(np.nansum(errors * counts) / n_selected),
        **{f"seconds_{what}": value for what, value in seconds.items()},
    }


def reason_to_stop(
    n_selected: int, n_unlabeled: int, n_rounds: int, max_iter: int | None, min_gain: float
) -> str | None:
    """Why no further round is worth its refit, or None."""
    if max_iter is not None and n_rounds >= max_iter:
        return "max_iter"
    if n_selected == 0:
        return "no_selection"
    # The first round is always taken: without it there is no self-learning.
    if n_selected < min_gain * n_unlabeled and n_rounds:
        return "min_gain"
    return None


def round_line(record: dict[str, Any]) -> str:
    """One line that tells a person about a round."""
    return (
        f"round {record['iteration']}: pseudo-labelled {record['n_selected']} of "
        f"{record['n_unlabeled']} rows"
    )
