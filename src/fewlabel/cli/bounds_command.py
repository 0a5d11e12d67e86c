"""Bounds of given votes: the ``fewlabel bounds`` command."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fewlabel._core.arrays import Floats
from fewlabel._core.errors import UserError, listing, shorten
from fewlabel.bounds.realised import realised_error_quantile
from fewlabel.bounds.thresholds import search_thresholds
from fewlabel.bounds.transductive import TransductiveBound, transductive_bound
from fewlabel.bounds.votes import bayes_risk, vote_matrix
from fewlabel.cli.console import Console
from fewlabel.encoding.cells import empty_cells, numbers, plain_column, written_numbers
from fewlabel.encoding.plan import first_lines, require_name
from fewlabel.report.words import bound, count, percent
from fewlabel.tables.model_files import load_model
from fewlabel.tables.reading import read_table
from fewlabel.tables.target_column import labels_like

if TYPE_CHECKING:
    import pyarrow as pa

TRUTH = (
    "A guarantee for the realised error of these rows: Theorem 1 with the known true labels in "
    "place of the label probabilities."
)
EXACT = (
    "A guarantee for the expected error of these rows if the given label probabilities are the "
    "true ones, as stated. The share that is wrong in the end may be larger by chance."
)
GIVEN = (
    "An estimate: it would bound the expected error if the given label probabilities were the true "
    "ones."
)
MODEL = (
    "An estimate: the votes of the model's first classifier{power} stand for the unknown label "
    "probabilities P(Y|x). It would bound the expected error if they were the true ones."
)
VOTES = (
    "An estimate: the votes themselves stand for the unknown label probabilities P(Y|x). It would "
    "bound the expected error if they were the true ones."
)
CONFIDENCE = 0.95


def bounds_command(console: Console, table: Path, **options: Any) -> None:
    """Compute and print bounds."""
    answer = bounds_of_table(table, **options)
    error, selected = answer["error"], answer["selected_error"]
    kind, of = error["kind"], answer["of"]
    most = "at most " if kind == "guarantee" else ""
    console.say(f"{count(answer['n_rows'], 'row')}.")
    for note in answer["notes"]:
        console.say(f"! {note}")
    console.say(f"Bound TB of the {of}: {most}{bound(error)} wrong ({kind}).")
    if "true_error" in answer:
        console.say(f"In truth {percent(answer['true_error'])} are.")
    if "realised_error" in answer:
        realised = answer["realised_error"]
        console.say(
            f"With {percent(realised['confidence'], 0)} confidence at most "
            f"{bound(realised)} of these rows are wrong in the end."
        )
    console.say(
        f"With the thresholds below {percent(answer['selected_share'], 0)} of the rows are "
        f"selected; the bound among them: {most}{bound(selected)} wrong ({kind})."
    )
    console.table(
        ["class", "threshold", f"bound of the {of} ({kind})"],
        [
            [shorten(c["name"], 40), f"{c['threshold']:.3f}", bound(c["error"])]
            for c in answer["classes"]
        ],
    )
    console.say(error["assumption"])
    console.result(answer)


def bounds_of_table(
    path: Path,
    *,
    model: Path | None = None,
    truth: str | None = None,
    proba: Path | None = None,
    exact: bool = False,
    encoding: str = "utf-8",
) -> dict[str, Any]:
    """Bounds of the votes in a table, or of a model's votes for the rows of a table.

    Parameters
    ----------
    path : Path
        A column of votes for each class; with ``model``, a table like the one it was trained on.
    model : Path, optional
    truth : str, optional
        Column with the true labels.
    proba : Path, optional
        Table with a column of label probabilities for each class.
    exact : bool, default=False
        Whether the probabilities are known to be the true ones.
    """
    if truth is not None and proba is not None:
        raise UserError("--truth and --proba exclude each other.", "Give the one that is known.")
    if exact and proba is None:
        raise UserError("--exact speaks of the probabilities of --proba.", "Add --proba FILE.")
    table = read_table(path, encoding=encoding)
    if truth is not None:
        require_name(table.column_names, truth, "--truth")
    subject = _of_table(table, truth, path) if model is None else _of_model(table, model)
    if truth is not None:
        subject = _with_truth(table, truth, subject)
    elif proba is not None:
        given = _proba(read_table(proba, encoding=encoding), subject, proba)
        subject = replace(subject, label_proba=given, assumption=EXACT if exact else GIVEN)
    return _bounds(subject, truth is not None)


@dataclass(frozen=True)
class Subject:
    """Votes whose error is bounded.

    Attributes
    ----------
    votes : ndarray of shape (n_samples, n_classes)
        The votes that give each row its label.
    first : ndarray of shape (n_samples, n_classes)
        The votes that are compared with the thresholds.
    label_proba : ndarray of shape (n_samples, n_classes)
    classes : list of str
    assumption : str
    notes : tuple of str
        What to tell about the cells.
    """

    votes: Floats
    first: Floats
    label_proba: Floats
    classes: list[str]
    assumption: str
    notes: tuple[str, ...] = ()


def _bounds(subject: Subject, is_truth: bool) -> dict[str, Any]:
    kind = "guarantee" if subject.assumption in (TRUTH, EXACT) else "estimate"
    first, proba = subject.first, subject.label_proba
    thresholds = search_thresholds(first, proba)[0]
    everything = transductive_bound(subject.votes, proba, tight=True)
    selected = transductive_bound(first, proba, thresholds=thresholds)
    # The sums of a bound may end a rounding error below the error that they bound.
    exact = bayes_risk(subject.votes, proba)
    of_selected = bayes_risk(first, proba, thresholds=thresholds)

    def stated(value: float) -> dict[str, Any]:
        number = float(value) if np.isfinite(value) else None
        return {"value": number, "kind": kind, "assumption": subject.assumption}

    answer: dict[str, Any] = {
        "n_rows": len(first),
        "notes": list(subject.notes),
        "of": "realised error" if is_truth else "expected error",
        "error": stated(max(everything.risk, exact)),
        "selected_error": stated(
            max(selected.conditional_error, of_selected / (selected.selected_share or 1.0))
        ),
        "selected_share": selected.selected_share,
        "classes": [
            {"name": name, "threshold": float(theta), "error": stated(error)}
            for name, theta, error in zip(
                subject.classes, thresholds, _class_errors(selected, first, thresholds)
            )
        ],
        "confusion": {
            "names": subject.classes,
            "matrix": everything.confusion.tolist(),
            "kind": kind,
            "assumption": subject.assumption,
        },
    }
    if is_truth:
        answer["true_error"] = exact
    elif kind == "guarantee":
        labels = subject.votes.argmax(axis=1)
        value = realised_error_quantile(proba, labels, CONFIDENCE)
        answer["realised_error"] = {**stated(value), "confidence": CONFIDENCE}
    return answer


def _class_errors(bound: TransductiveBound, votes: Floats, thresholds: Floats) -> Floats:
    """Bound of the error among the selected rows of each predicted class; NaN where there is none.

    The bound's column of a class is on the rows that are wrongly predicted to be of it.
    """
    predicted = votes.argmax(axis=1)
    reached = votes.max(axis=1, initial=0.0) >= thresholds[predicted]
    share = np.bincount(predicted[reached], minlength=len(thresholds)) / len(votes)
    wrong = bound.class_share @ bound.confusion
    return np.divide(wrong, share, out=np.full(len(share), np.nan), where=share > 0)


def _of_model(table: pa.Table, path: Path) -> Subject:
    """The labels that ``predict`` would give.

    The final votes do not stand for P(Y|x): they were trained on their own guesses and confirm
    them. The first classifier's do, with the calibration of the fit.
    """
    model = load_model(path)
    X, notes = model.features(table)
    first, power = vote_matrix(model.first, X), model.promise.power
    told = f", calibrated on held-out labelled rows (power {power:.2f})," if power != 1.0 else ""
    return Subject(
        vote_matrix(model.final, X),
        first,
        model.promise.label_proba(first),
        [str(name) for name in model.final.classes_],
        MODEL.format(power=told),
        tuple(first_lines(notes)),
    )


def _of_table(table: pa.Table, truth: str | None, path: Path) -> Subject:
    names = [name for name in table.column_names if name != truth]
    if len(names) < 2:
        raise UserError(
            f"'{shorten(path)}' has a single column of votes.",
            "Votes need a column for each class.",
        )
    votes = _distributions(table, names, path, "votes")
    return Subject(votes, votes, votes, names, VOTES)


def _distributions(table: pa.Table, names: list[str], path: Path, what: str) -> Floats:
    columns = []
    for name in names:
        values = _shares(table.column(name))
        if values is None:
            raise UserError(
                f"Column '{shorten(name)}' of '{shorten(path)}' holds something else than numbers.",
                f"A table of {what} has a column of numbers for each class (and --truth names the "
                f"column of true labels).",
            )
        columns.append(values)
    matrix = np.column_stack(columns)
    sums = matrix.sum(axis=1)
    wrong = ~((matrix >= 0).all(axis=1) & (np.abs(sums - 1) < 1e-4))
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        raise UserError(
            f"The {what} of {count(int(wrong.sum()), 'row')} of '{shorten(path)}' are not shares "
            f"that sum to 1 (first: row {first + 1}, sum {sums[first]:g}).",
            "Each row needs one number from 0 to 1 for each class.",
        )
    return np.minimum(matrix, 1.0)  # rounding may go beyond


def _shares(column: pa.ChunkedArray) -> Floats | None:
    """Numbers with a decimal point or comma, NaN in empty cells; None if a cell is no number."""
    import pyarrow as pa

    cells = plain_column(column)
    try:
        values = numbers(cells)
        # A share is at most 1: a comma in it can part no thousands.
        values = np.where(np.isnan(values), written_numbers(cells, "1.234,5", ""), values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return None if (np.isnan(values) & ~empty_cells(cells)).any() else values


def _with_truth(table: pa.Table, truth: str, subject: Subject) -> Subject:
    classes = subject.classes
    labels = labels_like(table.column(truth), classes)
    known = np.array([label is not None for label in labels])
    unknown = sorted({label for label in labels if label is not None} - set(classes))
    if unknown:
        raise UserError(
            f"The true labels {listing(unknown)} are no classes of the votes.",
            f"The classes are {listing(classes, 12)}.",
        )
    if not known.any():
        raise UserError(f"Column '{shorten(truth)}' holds no label.", "Fill in true labels.")
    codes = [classes.index(label) for label in labels[known]]
    return replace(
        subject,
        votes=subject.votes[known],
        first=subject.first[known],
        label_proba=np.eye(len(classes))[codes],
        assumption=TRUTH,
    )


def _proba(table: pa.Table, subject: Subject, path: Path) -> Floats:
    classes, n = subject.classes, len(subject.votes)
    absent = [name for name in classes if name not in table.column_names]
    if absent:
        raise UserError(
            f"'{shorten(path)}' lacks the classes {listing(absent)}.",
            "It needs a column for each class of the votes, with the same name.",
        )
    if table.num_rows != n:
        raise UserError(
            f"'{shorten(path)}' has {count(table.num_rows, 'row')} and the votes have {n:,}.",
            "Rows must correspond.",
        )
    return _distributions(table, classes, path, "probabilities")
