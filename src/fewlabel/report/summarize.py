"""From a fitted classifier to a summary: plain data that every format of the report shows.

The summary is a dictionary of JSON types. Whatever is a bound in it is a dictionary with its
``value``, its ``kind`` ("estimate" or "guarantee") and the ``assumption`` behind it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fewlabel._core.arrays import Floats, Ints
from fewlabel.bounds.thresholds import ThresholdCurve
from fewlabel.bounds.transductive import TransductiveBound, transductive_bound
from fewlabel.report.state import FinalState, next_to_label
from fewlabel.report.truth import Truth
from fewlabel.report.voter_rows import voters_of
from fewlabel.report.words import TERMINATION, assumption_of, headline, warnings_of

SCHEMA = 1
MAX_CLASSES = 60  # shown one by one
N_BINS = 40
N_NEXT = 50
_CURVE_POINTS = 20_000  # over all classes, to keep the file small

ShowRows = Callable[[Ints], list[dict[str, str]]]


def summarize(
    clf: Any,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    y_true: ArrayLike | None = None,
    title: str = "",
    state: FinalState | None = None,
    data: dict[str, Any] | None = None,
    show_rows: ShowRows | None = None,
    notes: Sequence[str] = (),
) -> dict[str, Any]:
    """Sum up what a fitted SelfLearningClassifier learned.

    Parameters
    ----------
    clf : fitted SelfLearningClassifier
    X, y : optional
        Those of its ``fit``: with them, votes that stand for P(Y|x) are calibrated.
    y_true : array-like of shape (n_samples,), optional
        True labels as far as known; None or NaN elsewhere.
    title : str, optional
    state : FinalState, optional
        If it has been computed already.
    data : dict, optional
        Where the rows came from: ``source``, ``target``, ``columns``.
    show_rows : callable, optional
        Cells to show beside the rows worth labelling, as texts by column.
    notes : sequence of str
        Further remarks for the reader.
    """
    state = state or FinalState.of(clf, X, y)
    known = Truth.of(clf, state, y_true) if y_true is not None else None
    assumption = assumption_of(clf.label_proba, state.calibration)
    summary: dict[str, Any] = {
        "schema": SCHEMA,
        "title": title or "What was learned from few labels",
        "made_by": _made_by(),
        "data": {**_counts(clf, state), **(data or {})},
        "settings": _settings(clf),
        "voters": voters_of(clf),
        "errors": _errors(clf, state, known, assumption),
        "classes": _classes(clf, state, known, assumption),
        "hidden": _hidden(clf, state),
        "rounds": _rounds(clf, known),
        "confusion": _confusion(clf, state, known, assumption),
        "calibration": None if state.calibration is None else asdict(state.calibration),
        "label_next": _label_next(clf, state, show_rows),
        "assumption": assumption,
        "unknown_classes": known.unknown if known else {},
        "notes": list(notes),
    }
    summary["warnings"] = warnings_of(summary)
    summary["headline"] = headline(summary)
    cleaned: dict[str, Any] = plain(summary)
    return cleaned


def _made_by() -> dict[str, str]:
    from fewlabel import __version__

    return {"fewlabel": __version__, "date": time.strftime("%Y-%m-%d")}


def _bound(value: float, assumption: str, kind: str = "estimate") -> dict[str, Any]:
    return {"value": float(value), "kind": kind, "assumption": assumption}


def _counts(clf: Any, state: FinalState) -> dict[str, Any]:
    n, n_unlabeled = len(clf.labeled_iter_), len(state.rows)
    trusted = int(state.trusted.sum())
    return {
        "n_rows": n,
        "n_labeled": n - n_unlabeled,
        "n_unlabeled": n_unlabeled,
        "n_classes": len(clf.classes_),
        "n_trusted": trusted,
        "trusted_share": trusted / n_unlabeled if n_unlabeled else math.nan,
        "n_changed": _n_changed(state),
    }


def _n_changed(state: FinalState) -> int:
    """Rows whose label self-learning changed."""
    return int((state.first_label != state.label).sum())


def _settings(clf: Any) -> dict[str, Any]:
    pseudo_labeled = int((clf.labeled_iter_ > 0).sum())
    budget = clf.max_train
    return {
        "policy": clf.policy if isinstance(clf.policy, str) else str(clf.policy),
        "classifier": type(clf.estimator_).__name__,
        "seed": clf.random_state if isinstance(clf.random_state, (int, np.integer)) else None,
        "max_train": None if budget is None else int(budget),
        "budget_used": budget is not None and pseudo_labeled > budget,
        "n_pseudo_labeled": pseudo_labeled,
        "stopped": TERMINATION[clf.termination_condition_],
    }


def _errors(
    clf: Any, state: FinalState, known: Truth | None, assumption: str
) -> list[dict[str, Any]]:
    """Bounds of error rates; the true error and the guarantee beside them where truth is given."""
    if not len(state.rows):
        return []
    first, labels = state.first_votes, state.label_votes
    entries = [
        (
            "supervised",
            "all rows, labels of the first classifier",
            _of_all(state, first).risk,
            first,
        ),
        ("all", "all rows, labels after self-learning", _of_all(state, labels).risk, labels),
        ("trusted", "trusted rows", state.trusted_error_bound, first),
    ]
    shown = []
    for key, what, value, votes in entries:
        entry: dict[str, Any] = {"key": key, "what": what, "bound": _bound(value, assumption)}
        if known is not None:
            entry.update(known.compare(votes, state.thresholds if key == "trusted" else None))
        shown.append(entry)
    return shown


def _of_all(state: FinalState, votes: Floats) -> TransductiveBound:
    return transductive_bound(votes, state.label_proba, tight=True)


def _shown_classes(clf: Any, state: FinalState) -> Ints:
    """All classes, or those with most predictions if there are too many to show."""
    counts = np.bincount(state.first_label, minlength=len(clf.classes_))
    most = np.argsort(-counts, kind="stable")[:MAX_CLASSES]
    return np.sort(most)


def _classes(
    clf: Any, state: FinalState, known: Truth | None, assumption: str
) -> list[dict[str, Any]]:
    given = np.searchsorted(clf.classes_, clf.transduction_[clf.labeled_iter_ == 0])
    n_given = np.bincount(given, minlength=len(clf.classes_))
    shown = _shown_classes(clf, state)
    points = max(30, min(240, _CURVE_POINTS // max(1, len(shown))))
    entries = []
    for j in shown:
        mine = state.first_label == j
        votes = state.first_vote[mine]
        best = state.chosen[j]
        curve = state.curves[j] if state.curves else None
        entry: dict[str, Any] = {
            "name": str(clf.classes_[j]),
            "n_given": int(n_given[j]),
            "n_labeled": int((state.label == j).sum()),
            "n_predicted": int(mine.sum()),
            "n_trusted": int((votes >= state.thresholds[j]).sum()),
            "threshold": float(state.thresholds[j]),
            "bound": None
            if best is None or curve is None
            else _bound(curve.bound[best], assumption),
            "histogram": np.histogram(votes, bins=N_BINS, range=(0, 1))[0].tolist(),
            "curve": _curve(curve, best, points),
        }
        if known is not None:
            entry.update(known.of_class(state, int(j)))
        entries.append(entry)
    return entries


def _hidden(clf: Any, state: FinalState) -> dict[str, float]:
    """Trusted rows of classes that are not shown, and how many of them the bound allows wrong."""
    shown = set(_shown_classes(clf, state).tolist())
    trusted, wrong = 0, 0.0
    for j, (curve, best) in enumerate(zip(state.curves, state.chosen)):
        if j not in shown and best is not None:
            trusted += int(curve.n_trusted[best])
            wrong += float(curve.bound[best] * curve.n_trusted[best])
    return {"n_trusted": trusted, "n_wrong": wrong}


def _curve(curve: ThresholdCurve | None, best: int | None, points: int) -> dict[str, Any] | None:
    """Points of a curve, thinned out if there are many; each is exact, the best is among them."""
    if curve is None or best is None:
        return None
    n = len(curve.thresholds)
    kept = np.unique(np.append(np.linspace(0, n - 1, min(n, points)).astype(int), best))
    return {
        "theta": curve.thresholds[kept].tolist(),
        "bound": curve.bound[kept].tolist(),
        "n_trusted": curve.n_trusted[kept].tolist(),
        "best": int(np.flatnonzero(kept == best)[0]),
    }


def _rounds(clf: Any, known: Truth | None) -> list[dict[str, Any]]:
    shown = []
    for record in clf.history_:
        iteration = record["iteration"]
        entry = {
            "round": iteration,
            "n_left": record["n_unlabeled"],
            "n_selected": record["n_selected"],
            "n_selected_per_class": record["n_selected_per_class"],
            "threshold_low": min(record["thresholds"]),
            "threshold_high": max(record["thresholds"]),
            "bound": None
            if record["error_bound"] is None
            else _bound(record["error_bound"], assumption_of(clf.label_proba)),
            "seconds": sum(v for k, v in record.items() if k.startswith("seconds_")),
        }
        if known is not None:
            entry["true_error"] = known.error_of_round(iteration)
        shown.append(entry)
    return shown


def _confusion(
    clf: Any, state: FinalState, known: Truth | None, assumption: str
) -> dict[str, Any] | None:
    if not len(state.rows):
        return None
    shown = _shown_classes(clf, state)
    cut = np.ix_(shown, shown)
    entry: dict[str, Any] = {
        "names": [str(name) for name in clf.classes_[shown]],
        "matrix": _of_all(state, state.label_votes).confusion[cut].tolist(),
        "kind": "estimate",
        "assumption": assumption,
    }
    if known is not None:
        entry["true"] = known.confusion(state.label_votes)[cut].tolist()
    return entry


def _label_next(clf: Any, state: FinalState, show_rows: ShowRows | None) -> dict[str, Any]:
    order, margins, gains = next_to_label(state.label_votes, N_NEXT)
    rows = state.rows[order]
    votes = state.label_votes[order]
    best, second = np.argsort(-votes, axis=1, kind="stable")[:, :2].T
    cells = show_rows(rows) if show_rows is not None else [{} for _ in rows]
    entries = [
        {
            "row": int(row) + 1,
            "label": str(clf.classes_[best[k]]),
            "vote": float(votes[k, best[k]]),
            "runner_up": str(clf.classes_[second[k]]),
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
