"""What is kept and shown of a round of self-learning."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fewlabel._core.checks import check_proba
from fewlabel.bounds.statistics import Floats, Ints
from fewlabel.bounds.transductive import transductive_bound
from fewlabel.selection.policies import Selection

if TYPE_CHECKING:
    from fewlabel.self_learning import SelfLearningClassifier


def round_record(
    iteration: int, n_left: int, selection: Selection, pseudo: Ints, seconds: dict[str, float]
) -> dict[str, Any]:
    """The entry of ``history_`` for one round, in plain types that JSON knows."""
    counts = np.bincount(pseudo, minlength=len(selection.thresholds))
    return count_record(iteration, n_left, selection.thresholds, selection.errors, counts, seconds)


def count_record(
    iteration: int,
    n_left: int,
    thresholds: Floats,
    errors: Floats | None,
    counts: Ints,
    seconds: dict[str, float],
) -> dict[str, Any]:
    """The same from the number of rows selected of each class."""
    n_selected = int(counts.sum())
    return {
        "iteration": iteration,
        "n_unlabeled": n_left,
        "n_selected": n_selected,
        "n_selected_per_class": counts.tolist(),
        "thresholds": thresholds.tolist(),
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


def n_selected(selection: Selection, n_left: int) -> int:
    """How many of the rows that are left a policy selects; raise if its mask is not one of them."""
    if selection.mask.shape != (n_left,):
        raise ValueError(
            f"The policy's mask must have shape ({n_left},), one entry for each unlabelled row "
            f"that is left. Got {selection.mask.shape} instead."
        )
    return int(selection.mask.sum())


def keep_record(classifier: SelfLearningClassifier, record: dict[str, Any]) -> None:
    """Add the record of a complete round to ``history_``, and tell whoever wants to know."""
    classifier.history_.append(record)
    if classifier.verbose:
        sys.stdout.write(f"[{type(classifier).__name__}] {round_line(record)}\n")
    if classifier.callback is not None:
        classifier.callback(record)


def round_line(record: dict[str, Any]) -> str:
    """One line that tells a person about a round."""
    bound = record["error_bound"]
    return (
        f"round {record['iteration']}: trusted {record['n_selected']} of {record['n_unlabeled']} "
        f"rows" + ("" if bound is None else f", estimated error bound {bound:.3f}")
    )


def stand_in(choice: str, votes: Floats, initial: Floats) -> Floats:
    """What stands for P(Y|x) of rows: no knowledge, the current votes or the initial ones."""
    if choice == "uniform":
        return np.full_like(votes, 1.0 / votes.shape[1])
    return initial if choice == "supervised" else votes


def initial_label_proba(
    choice: str | ArrayLike, votes: Floats, unlabeled: Ints, n_samples: int
) -> Floats | None:
    """P(Y|x) of every unlabelled row, or None for "whatever the current votes are"."""
    n_classes = votes.shape[1]
    if isinstance(choice, str):
        return None if choice == "current" else stand_in(choice, votes, votes)
    given = np.asarray(choice, dtype=np.float64)
    if given.shape != (n_samples, n_classes):
        raise ValueError(
            f"label_proba must have shape (n_samples, n_classes) = {(n_samples, n_classes)}. "
            f"Got {given.shape} instead."
        )
    return check_proba(given[unlabeled], "label_proba") if len(unlabeled) else votes


def final_bound(votes: Floats, label_proba: Floats) -> tuple[float, Floats]:
    """Bounds of the error rate and of the conditional risks on these rows; NaN without rows."""
    n_classes = votes.shape[1]
    if len(votes) == 0:
        return float("nan"), np.full((n_classes, n_classes), np.nan)
    bound = transductive_bound(votes, label_proba, tight=True)
    return bound.risk, bound.confusion
