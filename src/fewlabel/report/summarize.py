"""From a fitted classifier to a summary: plain data that every format of the report shows.

The summary is a dictionary of JSON types. What it says of errors is read from the classifier, which
owns the one statement of error; ``promise`` holds it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fewlabel._core.arrays import Ints
from fewlabel.assess.suggest import next_to_label
from fewlabel.report.bounds_section import bounds_of
from fewlabel.report.fit_view import FitView, pseudo_label_doubts
from fewlabel.report.promise_section import accepted_for, max_errors, promise_of, share_entry
from fewlabel.report.truth import Truth
from fewlabel.report.voter_rows import voters_of
from fewlabel.report.words import FEW_LABELS, TERMINATION, broken_statements, headline, warnings_of

SCHEMA = 2
MAX_CLASSES = 60  # shown one by one
N_BINS = 20
N_NEXT = 50

ShowRows = Callable[[Ints], list[dict[str, str]]]


def summarize(
    clf: Any,
    *,
    y_true: ArrayLike | None = None,
    max_error: float = 0.05,
    title: str = "",
    data: dict[str, Any] | None = None,
    show_rows: ShowRows | None = None,
    notes: Sequence[str] = (),
) -> dict[str, Any]:
    """Sum up what a fitted classifier learned.

    Parameters
    ----------
    clf : fitted SelfLearner
    y_true : array-like of shape (n_samples,), optional
        True labels as far as known; None or NaN elsewhere.
    max_error : float, default=0.05
        The share of wrong labels that one can live with.
    title : str, optional
    data : dict, optional
        Where the rows came from: ``source``, ``target``, ``columns``.
    show_rows : callable, optional
        Cells to show beside the rows worth labelling, as texts by column.
    notes : sequence of str
        Further remarks for the reader.

    Returns
    -------
    summary : dict
    """
    view = FitView.of(clf, max_error)
    known = Truth.of(view, y_true) if y_true is not None else None
    shown = _shown_classes(view)
    summary: dict[str, Any] = {
        "schema": SCHEMA,
        "title": title or "What was learned from few labels",
        "made_by": _made_by(),
        "data": {**_counts(view), **_columns(clf), **(data or {})},
        "settings": _settings(clf),
        "voters": voters_of(clf),
        "promise": promise_of(view) if len(view.rows) else None,
        "truth": known.summary(view) if known else None,
        "classes": _classes(view, known, shown),
        "rounds": _rounds(view, known),
        "bounds": bounds_of(view, known, shown),
        "label_next": _label_next(view, show_rows),
        "notes": list(notes),
    }
    summary = plain(summary)
    summary["broken"] = broken_statements(summary)
    summary["warnings"] = warnings_of(summary)
    summary["headline"] = headline(summary)
    return summary


def _made_by() -> dict[str, str]:
    from fewlabel import __version__

    return {"fewlabel": __version__, "date": time.strftime("%Y-%m-%d")}


def _counts(view: FitView) -> dict[str, Any]:
    n, n_unlabeled = len(view.clf.labeled_iter_), len(view.rows)
    accepted = int(view.accepted.sum())
    return {
        "n_rows": n,
        "n_labeled": n - n_unlabeled,
        "n_unlabeled": n_unlabeled,
        "n_classes": view.n_classes,
        "n_accepted": accepted,
        "accepted_share": accepted / n_unlabeled if n_unlabeled else math.nan,
        "max_error": view.max_error,
        "n_changed": int((view.initial_label != view.label).sum()),
    }


def _columns(clf: Any) -> dict[str, Any]:
    """How the columns of a frame were read, if the classifier encoded them."""
    plan = getattr(getattr(clf, "table_encoder_", None), "plan_", None)
    return {} if plan is None else {"columns": [column.to_dict() for column in plan]}


def _settings(clf: Any) -> dict[str, Any]:
    pseudo_labeled = int((clf.labeled_iter_ > 0).sum())
    budget = clf.max_train
    return {
        "policy": clf.policy if isinstance(clf.policy, str) else str(clf.policy),
        "classifier": type(clf.estimator_).__name__,
        "labels": clf.labels,
        "scoring": getattr(clf, "scoring", "accuracy"),
        "seed": clf.random_state if isinstance(clf.random_state, (int, np.integer)) else None,
        "max_train": None if budget is None else int(budget),
        "budget_used": budget is not None and pseudo_labeled > budget,
        "n_pseudo_labeled": pseudo_labeled,
        "stopped": TERMINATION[clf.termination_condition_],
    }


def _shown_classes(view: FitView) -> Ints:
    """All classes, or those with most labels if there are too many to show."""
    counts = np.bincount(view.label, minlength=view.n_classes)
    most = np.argsort(-counts, kind="stable")[:MAX_CLASSES]
    return np.sort(most)


def _classes(view: FitView, known: Truth | None, shown: Ints) -> list[dict[str, Any]]:
    clf = view.clf
    given = np.searchsorted(clf.classes_, clf.transduction_[clf.labeled_iter_ == 0])
    n_given = np.bincount(given, minlength=view.n_classes)
    masks = [accepted_for(view, error) for error in max_errors(view)] if len(view.rows) else []
    nothing = (None,) * view.n_classes
    errors = clf.error_.per_class or nothing
    shares = clf.error_.prevalence or nothing
    recalls = clf.error_.recall or nothing
    entries = []
    for j in shown:
        mine = view.label == j

        def histogram(chosen: Any) -> list[int]:
            bins = np.histogram(view.confidence[chosen], bins=N_BINS, range=(0, 1))[0]
            return [int(n) for n in bins]

        entry: dict[str, Any] = {
            "name": str(clf.classes_[j]),
            "n_given": int(n_given[j]),
            "n_labeled": int(mine.sum()),
            "n_accepted": int((mine & view.accepted).sum()),
            "error": share_entry(errors[j]) if mine.any() else None,
            "prevalence": share_entry(shares[j]),
            "recall": share_entry(recalls[j]) if n_given[j] >= FEW_LABELS else None,
            "histogram": histogram(mine),
            # For each point of the promise's curve.
            "accepted_histograms": [histogram(mine & mask) for mask in masks],
        }
        if known is not None:
            entry["true_error"] = known.error(view.label, mine)
            entry["true_accepted_error"] = known.error(view.label, mine & view.accepted)
        entries.append(entry)
    return entries


def _rounds(view: FitView, known: Truth | None) -> list[dict[str, Any]]:
    shown = []
    for record, doubt in zip(view.clf.history_, pseudo_label_doubts(view.clf)):
        iteration = record["iteration"]
        entry = {
            "round": iteration,
            "n_left": record["n_unlabeled"],
            "n_selected": record["n_selected"],
            "n_selected_per_class": record["n_selected_per_class"],
            "threshold_low": min(record["thresholds"]),
            "threshold_high": max(record["thresholds"]),
            "estimated_error": doubt,
            "seconds": sum(v for k, v in record.items() if k.startswith("seconds_")),
        }
        if known is not None:
            entry["true_error"] = known.error_of_round(view, iteration)
        shown.append(entry)
    return shown


def _label_next(view: FitView, show_rows: ShowRows | None) -> dict[str, Any]:
    classes = view.clf.classes_
    order, margins, gains = next_to_label(view.votes, N_NEXT)
    rows, votes = view.rows[order], view.votes[order]
    best, second = np.argsort(-votes, axis=1, kind="stable")[:, :2].T
    cells = show_rows(rows) if show_rows is not None else [{} for _ in rows]
    entries = [
        {
            "row": int(row) + 1,
            "label": str(classes[best[k]]),
            "vote": float(votes[k, best[k]]),
            "runner_up": str(classes[second[k]]),
            "margin": float(margin),
            "gain": float(gain),
            "cells": cell,
        }
        for k, (row, margin, gain, cell) in enumerate(zip(rows, margins, gains, cells))
    ]
    return {"rows": entries, "columns": list(cells[0]) if cells else []}


def plain(value: Any) -> Any:
    """JSON types only: no NumPy scalars, null for what is not a finite number."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def without_cells(summary: dict[str, Any]) -> dict[str, Any]:
    """The summary without cells of the table, for model files that travel."""
    label_next = summary["label_next"]
    rows = [{**row, "cells": {}} for row in label_next["rows"]]
    return {**summary, "label_next": {"rows": rows, "columns": []}}
