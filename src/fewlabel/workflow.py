"""What the commands do: from a table to labels, a model and a summary."""

from __future__ import annotations

import difflib
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from fewlabel._errors import UserError, listing, shorten
from fewlabel.families import FAMILIES
from fewlabel.mixed_vote import FewLabelClassifier
from fewlabel.model_files import TableModel
from fewlabel.preprocessing import (
    few_lines,
    filled_with_labels,
    left_out_lines,
    make_transformer,
    plan_columns,
    to_frame,
)
from fewlabel.report.state import FinalState, combine
from fewlabel.report.summarize import summarize, without_cells
from fewlabel.self_learning import SelfLearningClassifier
from fewlabel.statistics import Floats, Ints
from fewlabel.tables import delimiter_of, read_table
from fewlabel.votes import vote_matrix

if TYPE_CHECKING:
    import pyarrow as pa

MAX_TRAIN = 100_000
"""Default training budget of the forest: so many pseudo-labelled rows it is trained on in a round.
The mixed vote has its own, see :class:`FewLabelClassifier`."""

MAX_CLASSES = 1_000
ADDED = ("label", "origin", "vote", "first_vote", "threshold", "trusted")
"""Columns of the output, each behind the target's name and an underscore."""

_CELLS_SHOWN = 8
_MARKERS = ("-1", "?", "na", "n/a", "nan", "null", "none", "unknown", "unlabeled", "unlabelled")


@dataclass(frozen=True)
class FitOptions:
    """How to read and learn from a table; see ``fewlabel fit --help``.

    None for ``learner`` is "mixed" where that is possible; for ``max_train`` it is the learner's
    own budget, and 0 is none. ``unlabeled`` marks unlabelled rows besides empty cells; None is
    nothing, but then labels that look like such a mark are refused.
    """

    target: str
    drop: Sequence[str] = ()
    truth: str | None = None
    unlabeled: str | None = None
    learner: Literal["mixed", "forest"] | None = None
    policy: str = "bound"
    seed: int = 0
    jobs: int = -1
    max_train: int | None = None
    encoding: str = "utf-8"
    progress: Callable[[str], None] = field(default=lambda text: None)
    on_round: Callable[[dict[str, Any]], None] | None = None


@dataclass(frozen=True)
class FitResult:
    """What came of it; ``left_out`` tells which columns were left out without being asked for."""

    table: pa.Table
    model: TableModel
    summary: dict[str, Any]
    left_out: list[str]


def fit_table(path: Path, options: FitOptions) -> FitResult:
    """Learn the target column of a table from its filled cells, and fill the others."""
    start = time.perf_counter()
    options.progress(f"reading {path.name}")
    table = read_table(path, encoding=options.encoding)
    leave_out, notes = columns_left_out(table, options)
    labels = target_labels(table.column(options.target), options.unlabeled)
    check_labels(labels, options.target, options.unlabeled)
    truth = _truth(table, labels, options)
    labeled = np.array([label is not None for label in labels])
    silent = filled_with_labels(table, labeled, leave_out)
    plan = plan_columns(
        table, leave_out=leave_out | silent, comma_separated=delimiter_of(table) == ","
    )
    frame = to_frame(table, plan)
    transformer = make_transformer(plan)
    X = transformer.fit_transform(frame)
    clf, caught = _learn(X, labels, options)
    options.progress("computing bounds")
    state = FinalState.of(clf, X, labels)
    summary = summarize(
        clf,
        y_true=truth,
        title=f"{options.target}, learned from {path.name}",
        state=state,
        data={
            "source": path.name,
            "target": options.target,
            "columns": [column.to_dict() for column in plan],
        },
        show_rows=lambda rows: _cells(table, rows, leave_out={options.target, options.truth}),
        notes=[*notes, *caught],
    )
    summary["settings"]["learner"] = options.learner or "mixed"
    summary["settings"]["seconds"] = round(time.perf_counter() - start, 2)
    model = TableModel(
        plan=plan,
        transformer=transformer,
        first=clf.initial_estimator_,
        final=clf.estimator_,
        thresholds=state.thresholds.tolist(),
        target=options.target,
        summary=without_cells(summary),
    )
    return FitResult(
        table=_with_labels(table, clf, state, options.target),
        model=model,
        summary=summary,
        left_out=left_out_lines(plan, leave_out),
    )


# --- checks ----------------------------------------------------------------------------------


def columns_left_out(table: pa.Table, options: FitOptions) -> tuple[dict[str, str], list[str]]:
    """Columns that are no features and why; remarks for the report."""
    names = table.column_names
    require_column(names, options.target, "--target")
    leave_out = {options.target: "the target"}
    if options.truth is not None:
        require_column(names, options.truth, "--truth")
        if options.truth == options.target:
            raise UserError(
                "--truth and --target name the same column.",
                "The target has empty cells to fill; the truth is another column, used only to "
                "check the result.",
            )
        leave_out[options.truth] = "the truth: used to check the result only"
    for name in options.drop:
        require_column(names, name, "--drop")
        if name == options.target:
            raise UserError("--drop names the target.", "Drop other columns only.")
        leave_out.setdefault(name, "dropped on request")
    own = [name for name in added_names(options.target) if name in names]
    leave_out.update((name, "an earlier output of fewlabel") for name in own)
    notes = [f"Columns of an earlier output were replaced: {listing(own)}."] if own else []
    return leave_out, notes


def require_column(names: list[str], wanted: str, option: str) -> None:
    """Raise unless a table has the column."""
    if wanted not in names:
        near = difflib.get_close_matches(wanted, names, n=1, cutoff=0.6)
        hint = f"Did you mean '{shorten(near[0])}'? " if near else ""
        raise UserError(
            f"There is no column '{shorten(wanted)}' for {option}.",
            f"{hint}The columns are {listing(names, 12)}.",
        )


def target_labels(
    column: pa.ChunkedArray, unlabeled: str | None, *, whole: bool = True
) -> NDArray[Any]:
    """Labels as texts, None where there is none.

    ``whole``: whether texts that are all like 1.0 become 1.
    """
    import pyarrow as pa
    from pyarrow import compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        # A table with empty cells often turned whole-number labels into 1.0, 2.0, …
        finite = pc.if_else(pc.is_finite(column), column, None)
        whole = pc.and_(pc.equal(finite, pc.floor(finite)), pc.less(pc.abs(finite), 2.0**53))
        column = finite.cast(pa.int64()) if pc.all(whole).as_py() else finite
    text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    filled = _without(text, ("", (unlabeled or "").strip()))
    if whole and pc.all(pc.match_substring_regex(filled, r"^-?\d+\.0$")).as_py():
        # The same in a file of text; the mark may be written either way.
        filled = pc.replace_substring_regex(filled, r"\.0$", "")
        filled = _without(filled, ((unlabeled or "").strip(),))
    return np.array(filled.to_pylist(), dtype=object)


def _without(text: pa.ChunkedArray, marks: Sequence[str]) -> pa.ChunkedArray:
    """The texts with null for those that mark an unlabelled row."""
    import pyarrow as pa
    from pyarrow import compute as pc

    marked = pc.is_in(text, value_set=pa.array([*marks, None], pa.string()))
    return pc.if_else(marked, None, text)


def check_labels(labels: NDArray[Any], target: str, unlabeled: str | None = None) -> None:
    """Raise unless some rows are labelled, some are not, and the classes make sense.

    ``unlabeled`` is what the user says that marks unlabelled rows, None for nothing.
    """
    given = [label for label in labels if label is not None]
    name = shorten(target)
    if not given:
        raise UserError(
            f"Every cell of the target '{name}' is empty.",
            "Fill in the labels of some rows, at least one of each class.",
        )
    classes = sorted(set(given))
    if len(given) == len(labels):
        marker = _marker(classes)
        raise UserError(
            f"Every row has a label in '{name}', so there is nothing to fill.",
            f"If '{marker}' marks unlabelled rows, add --unlabeled '{marker}'."
            if marker
            else "Leave the target's cell empty in rows that shall be labelled.",
        )
    if unlabeled is None:
        _check_marker(classes, name)
    if len(classes) < 2:
        raise UserError(
            f"All labelled rows of '{name}' have the same label, '{shorten(classes[0])}'.",
            "Label at least one row of another class.",
        )
    if len(classes) > MAX_CLASSES:
        raise UserError(
            f"The target '{name}' has {len(classes):,} different labels.",
            "It seems to hold names or numbers, not classes; choose another column, or group its "
            f"values into at most {MAX_CLASSES:,} classes.",
        )
    if len(classes) == len(given) > 20:
        raise UserError(
            f"Each of the {len(given):,} labelled rows of '{name}' has a label of its own.",
            "It seems to hold names or numbers, not classes; choose another column.",
        )


def _truth(table: pa.Table, labels: NDArray[Any], options: FitOptions) -> NDArray[Any] | None:
    """The true labels; raise if they are written in another way than the given ones."""
    if options.truth is None:
        return None
    given = {label for label in labels if label is not None}
    readings = (
        target_labels(table.column(options.truth), options.unlabeled, whole=whole)
        for whole in (True, False)
    )
    truth = max(readings, key=lambda column: len(given & set(column)))
    true = {label for label in truth if label is not None}
    if true and not given & true:
        raise UserError(
            f"No label of '{shorten(options.target)}' stands in '{shorten(options.truth)}': the "
            f"labels are {listing(sorted(given))}, the truth has {listing(sorted(true))}.",
            "Write both alike, or leave --truth out.",
        )
    return truth


def _marker(classes: list[str]) -> str | None:
    """The first label that looks like a mark of unlabelled rows."""
    return next((c for c in classes if c.lower() in _MARKERS), None)


def _check_marker(classes: list[str], name: str) -> None:
    """Raise if some of the unlabelled rows may have a mark, while the others are empty."""
    if classes == ["-1", "1"]:  # without -1 there would be one class: it is no mark
        return
    marker = _marker(classes)
    if marker is not None:
        raise UserError(
            f"The target '{name}' has empty cells and cells with '{marker}': is that a class?",
            f"If '{marker}' marks unlabelled rows, add --unlabeled '{marker}'; if it is a class, "
            f"add --unlabeled ''.",
        )


# --- learning --------------------------------------------------------------------------------


def _learn(
    X: NDArray[Any], labels: NDArray[Any], options: FitOptions
) -> tuple[SelfLearningClassifier, list[str]]:
    """A fitted classifier, and what it warned of."""
    clf = paper_learner(options) if options.learner == "forest" else _mixed_learner(options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf.fit(X, labels)
    return clf, _for_users(caught)


def paper_learner(options: FitOptions) -> SelfLearningClassifier:
    """The paper's: one forest."""
    options.progress("training the first forest")
    budget = MAX_TRAIN if options.max_train is None else options.max_train
    return SelfLearningClassifier(max_train=budget or None, **_common(options))


def _mixed_learner(options: FitOptions) -> FewLabelClassifier:
    options.progress(f"training {len(FAMILIES)} families of voters")
    clf = FewLabelClassifier(**_common(options))
    if options.max_train is not None:
        clf.set_params(max_train=options.max_train or None)
    if options.policy == "curriculum":
        clf.set_params(max_iter=None)  # it ends by itself, in its third round
    return clf


def _common(options: FitOptions) -> dict[str, Any]:
    return {
        "policy": options.policy,
        "missing_label": None,
        "n_jobs": options.jobs,
        "random_state": options.seed,
        "callback": options.on_round,
    }


def _for_users(caught: Sequence[warnings.WarningMessage]) -> list[str]:
    """Warnings to tell, each once; those of libraries to programmers are not among them.

    That a family stopped before its last digit settled is no news to a user, who cannot change it:
    its held-out accuracy, and so its weight, is that of the voter as it is.
    """
    told = [
        str(w.message)
        for w in caught
        if issubclass(w.category, UserWarning) and not issubclass(w.category, ConvergenceWarning)
    ]
    return list(dict.fromkeys(told))


def predict_table(model: TableModel, table: pa.Table) -> tuple[pa.Table, list[str]]:
    """Label the rows of a new table; also what to tell about its cells."""
    notes: list[str] = []
    X = model.transformer.transform(to_frame(table, model.plan, notes=notes))
    first, votes = vote_matrix(model.first, X), vote_matrix(model.final, X)
    thresholds = np.array(model.thresholds)
    label, trusted = combine(first, votes, thresholds)
    row = np.arange(len(label))
    columns = {
        "label": model.final.classes_[label],
        "vote": votes[row, label],
        "first_vote": first[row, label],
        "threshold": thresholds[label],
        "trusted": trusted,
    }
    return append_columns(table, columns, model.target), few_lines(notes)


# --- output ----------------------------------------------------------------------------------


def added_names(target: str) -> list[str]:
    """Names of the columns that the output adds."""
    return [f"{target}_{name}" for name in ADDED]


def _with_labels(
    table: pa.Table, clf: SelfLearningClassifier, state: FinalState, target: str
) -> pa.Table:
    """The table with labels, where they came from, and what speaks for them."""
    label, trusted = state.label, state.trusted
    row = np.arange(len(label))
    rounds = clf.labeled_iter_[state.rows]
    columns = {
        "label": clf.transduction_.astype(object).copy(),
        "origin": np.full(table.num_rows, "given", dtype=object),
        "vote": _scatter(table.num_rows, state.rows, state.votes[row, label]),
        "first_vote": _scatter(table.num_rows, state.rows, state.first_votes[row, label]),
        "threshold": _scatter(table.num_rows, state.rows, state.thresholds[label]),
        "trusted": np.ones(table.num_rows, dtype=bool),
    }
    columns["label"][state.rows] = clf.classes_[label]
    names = np.array(["", *(f"round {n}" for n in range(1, clf.n_iter_ + 1)), "predicted"], object)
    columns["origin"][state.rows] = names[rounds]  # -1, never pseudo-labelled, is the last name
    columns["trusted"][state.rows] = trusted
    return append_columns(table, columns, target)


def _scatter(n: int, rows: Ints, values: Floats) -> Floats:
    column = np.full(n, np.nan)
    column[rows] = np.round(values, 6)
    return column


def append_columns(table: pa.Table, columns: dict[str, NDArray[Any]], target: str) -> pa.Table:
    """Add columns named after the target; those of an earlier output are replaced."""
    import pyarrow as pa

    own = [name for name in added_names(target) if name in table.column_names]
    table = table.drop_columns(own) if own else table
    for name, values in columns.items():
        column = pa.array(values, from_pandas=True)  # NaN becomes an empty cell
        table = table.append_column(f"{target}_{name}", column)
    return table


def _cells(table: pa.Table, rows: Ints, leave_out: set[str | None]) -> list[dict[str, str]]:
    names = [name for name in table.column_names if name not in leave_out][:_CELLS_SHOWN]
    part = table.select(names).take(rows.tolist())
    return [
        {name: "" if cell is None else shorten(cell, 80) for name, cell in row.items()}
        for row in part.to_pylist()
    ]
