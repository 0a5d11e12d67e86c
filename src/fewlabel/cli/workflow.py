"""What the commands do: from a table to labels, a model and a summary."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from fewlabel._core.errors import UserError, listing, shorten
from fewlabel.bounds.statistics import Floats, Ints
from fewlabel.bounds.votes import vote_matrix
from fewlabel.cli.table_columns import (
    columns_left_out,
    earlier_output,
    encode_table,
    given_labels,
    whole_plan,
)
from fewlabel.encoding.plan import few_lines, left_out_lines
from fewlabel.ensemble.families import FAMILIES
from fewlabel.ensemble.few_label import FewLabelClassifier
from fewlabel.report.state import FinalState, combine
from fewlabel.report.summarize import summarize, without_cells
from fewlabel.self_learning.classifier import SelfLearningClassifier
from fewlabel.tables.csv_writing import python_cells
from fewlabel.tables.model_files import TableModel
from fewlabel.tables.reading import read_table, with_notation
from fewlabel.tables.target_column import (
    folded,
    target_labels,
    type_of,
    typed_labels,
)

if TYPE_CHECKING:
    import pyarrow as pa

MAX_TRAIN = 100_000
"""Default training budget of the forest: so many pseudo-labelled rows it is trained on in a round.
The mixed vote has its own, see :class:`FewLabelClassifier`."""

_CELLS_SHOWN = 8


@dataclass(frozen=True)
class FitOptions:
    """How to read and learn from a table; see ``fewlabel fit --help``.

    None for ``learner`` is "mixed" where that is possible; for ``max_train`` it is the learner's
    own budget, and 0 is none. ``unlabeled`` marks unlabelled rows besides empty cells; None is
    nothing, but then labels that look like such a mark are refused. ``classes``: numbers of many
    values are classes; ``fold_labels``: see :func:`fewlabel.tables.target_column.fold_labels`.
    """

    target: str
    drop: Sequence[str] = ()
    text: Sequence[str] = ()
    category: Sequence[str] = ()
    date: Sequence[str] = ()
    number: Sequence[str] = ()
    truth: str | None = None
    unlabeled: str | None = None
    classes: bool = False
    fold_labels: bool | None = None
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
    labels, names = given_labels(table, options)
    truth = _truth(table, labels, options, names)
    labeled = np.array([label is not None for label in labels])
    encoder, X = encode_table(table, labeled, leave_out, options)
    plan = whole_plan(table, encoder, leave_out)
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
            "target_type": type_of(table.column(options.target)),
            "columns": [column.to_dict() for column in plan],
        },
        show_rows=lambda rows: _cells(table, rows, leave_out={options.target, options.truth}),
        notes=[*notes, *encoder.warned_, *caught],
    )
    summary["settings"]["learner"] = options.learner or "mixed"
    summary["settings"]["seconds"] = round(time.perf_counter() - start, 2)
    model = TableModel(
        encoder=encoder,
        first=clf.initial_estimator_,
        final=clf.estimator_,
        thresholds=state.thresholds.tolist(),
        target=options.target,
        summary=without_cells(summary),
    )
    return FitResult(
        table=_with_labels(with_notation(table, plan), clf, state, options.target),
        model=model,
        summary=summary,
        left_out=left_out_lines(plan, leave_out),
    )


# --- checks ----------------------------------------------------------------------------------


def _truth(
    table: pa.Table, labels: NDArray[Any], options: FitOptions, names: dict[str, str]
) -> NDArray[Any] | None:
    """The true labels; raise if they are written in another way than the given ones."""
    if options.truth is None:
        return None
    given = {label for label in labels if label is not None}
    readings = (
        target_labels(table.column(options.truth), options.unlabeled, whole=whole)
        for whole in (True, False)
    )
    truth = max(readings, key=lambda column: len(given & set(column)))
    if options.fold_labels:
        truth = folded(truth, names | {label: label for label in given})
    true = {label for label in truth if label is not None}
    if true and not given & true:
        raise UserError(
            f"No label of '{shorten(options.target)}' stands in '{shorten(options.truth)}': the "
            f"labels are {listing(sorted(given))}, the truth has {listing(sorted(true))}.",
            "Write both alike, or leave --truth out.",
        )
    return truth


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
    X, notes = model.encoder.encode(table)
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
    kind = model.summary.get("data", {}).get("target_type", "string")
    table = append_columns(with_notation(table, model.plan), columns, model.target, kind)
    return table, few_lines(notes)


# --- output ----------------------------------------------------------------------------------


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
    return append_columns(table, columns, target, type_of(table.column(target)))


def _scatter(n: int, rows: Ints, values: Floats) -> Floats:
    column = np.full(n, np.nan)
    column[rows] = np.round(values, 6)
    return column


def append_columns(
    table: pa.Table, columns: dict[str, NDArray[Any]], target: str, kind: str = "string"
) -> pa.Table:
    """Add columns named after the target; those of an earlier output are replaced.

    ``kind`` is the type of the target, which its labels get.
    """
    import pyarrow as pa

    own = earlier_output(table.column_names, target)
    table = table.drop_columns(own) if own else table
    for name, values in columns.items():
        # NaN becomes an empty cell.
        is_label = name == "label"
        column = typed_labels(values, kind) if is_label else pa.array(values, from_pandas=True)
        table = table.append_column(f"{target}_{name}", column)
    return table


def _cells(table: pa.Table, rows: Ints, leave_out: set[str | None]) -> list[dict[str, str]]:
    names = [name for name in table.column_names if name not in leave_out][:_CELLS_SHOWN]
    part = table.select(names).take(rows.tolist())
    return [
        {name: "" if cell is None else shorten(cell, 80) for name, cell in zip(names, row)}
        for row in zip(*map(python_cells, part.columns))
    ]
