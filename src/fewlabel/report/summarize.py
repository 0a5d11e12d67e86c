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
from fewlabel.assess.changes import gain_of_changes
from fewlabel.report.bounds_section import bounds_of
from fewlabel.report.fit_view import FitView
from fewlabel.report.promise_section import promise_of, share_entry
from fewlabel.report.truth import Truth
from fewlabel.report.voter_rows import voters_of
from fewlabel.report.words import FEW_LABELS, TERMINATION, broken_statements, headline, warnings_of

SCHEMA = 2
MAX_CLASSES = 60  # shown one by one
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
        The share of wrong labels that is allowed.
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
    view = FitView.of(clf, max_error, y_true)
    known = Truth.of(view)
    shown = _shown_classes(view)
    summary: dict[str, Any] = {
        "schema": SCHEMA,
        "title": title or "What was learned from few labels",
        "made_by": _made_by(),
        "data": {**_counts(view), **_columns(clf), **(data or {})},
        "settings": _settings(clf),
        "voters": voters_of(clf),
        "promise": promise_of(view) if view.n_unlabeled else None,
        "truth": known.summary() if known else None,
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
    n_labeled, n_unlabeled = len(view.given), view.n_unlabeled
    accepted = view.sums.n_accepted(view.rule.own)
    return {
        "n_rows": n_labeled + n_unlabeled,
        "n_labeled": n_labeled,
        "n_unlabeled": n_unlabeled,
        "n_classes": view.n_classes,
        "n_accepted": accepted,
        "accepted_share": accepted / n_unlabeled if n_unlabeled else math.nan,
        "max_error": view.rule.max_error,
        "n_changed": view.sums.n_changed,
        "gain": gain_of_changes(view.sums.n_changed)._asdict(),
    }


def _columns(clf: Any) -> dict[str, Any]:
    """How the columns of a frame were read, if the classifier encoded them."""
    plan = getattr(getattr(clf, "table_encoder_", None), "plan_", None)
    return {} if plan is None else {"columns": [column.to_dict() for column in plan]}


def _settings(clf: Any) -> dict[str, Any]:
    pseudo_labeled = sum(record["n_selected"] for record in clf.history_)
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
    counts = view.sums.counts.sum(axis=(1, 2))
    most = np.argsort(-counts, kind="stable")[:MAX_CLASSES]
    return np.sort(most)


def _classes(view: FitView, known: Truth | None, shown: Ints) -> list[dict[str, Any]]:
    clf, n_given = view.clf, np.bincount(view.given, minlength=view.n_classes)
    nothing = (None,) * view.n_classes
    errors = clf.error_.per_class or nothing
    shares = clf.error_.prevalence or nothing
    levels = range(len(view.rule.max_errors)) if view.n_unlabeled else ()
    recalls = clf.error_.recall or nothing
    entries = []
    for j in shown:
        mine = view.sums.counts[j]
        n = int(mine.sum())
        entry: dict[str, Any] = {
            "name": str(clf.classes_[j]),
            "n_given": int(n_given[j]),
            "n_labeled": n,
            "n_accepted": int(mine[: view.rule.own + 1].sum()),
            "error": share_entry(errors[j]) if n else None,
            "prevalence": share_entry(shares[j]),
            "recall": share_entry(recalls[j]) if n_given[j] >= FEW_LABELS else None,
            "histogram": mine.sum(axis=0).tolist(),
            # For each point of the promise's curve.
            "accepted_histograms": [mine[: level + 1].sum(axis=0).tolist() for level in levels],
        }
        if known is not None:
            entry["true_error"] = known.error(int(j))
            entry["true_accepted_error"] = known.error(int(j), accepted=True)
        entries.append(entry)
    return entries


def _rounds(view: FitView, known: Truth | None) -> list[dict[str, Any]]:
    shown = []
    for record, doubt in zip(view.clf.history_, view.sums.doubts.tolist()):
        iteration = record["iteration"]
        entry = {
            "round": iteration,
            "n_left": record["n_unlabeled"],
            "n_selected": record["n_selected"],
            "n_selected_per_class": record["n_selected_per_class"],
            "threshold_low": min(record["thresholds"]),
            "threshold_high": max(record["thresholds"]),
            "estimated_error": doubt / record["n_selected"],
            "seconds": sum(v for k, v in record.items() if k.startswith("seconds_")),
        }
        if known is not None:
            entry["true_error"] = known.error_of_round(iteration)
        shown.append(entry)
    return shown


def _label_next(view: FitView, show_rows: ShowRows | None) -> dict[str, Any]:
    classes = view.clf.classes_
    rows, votes, margins, _ = view.clf.next_rows(N_NEXT)
    best, second = np.argsort(-votes, axis=1, kind="stable")[:, :2].T
    cells = show_rows(rows) if show_rows is not None else [{} for _ in rows]
    entries = [
        {
            "row": int(row) + 1,
            "label": str(classes[best[k]]),
            "vote": float(votes[k, best[k]]),
            "runner_up": str(classes[second[k]]),
            "margin": float(margin),
            "cells": cell,
        }
        for k, (row, margin, cell) in enumerate(zip(rows, margins, cells))
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
