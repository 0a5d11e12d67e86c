"""What the commands do: from a table to labels, a model and a summary."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from fewlabel._core.arrays import Ints
from fewlabel._core.errors import UserError, listing, shorten
from fewlabel.assess.promise import Promise
from fewlabel.bounds.votes import vote_matrix
from fewlabel.cli.table_columns import (
    columns_left_out,
    earlier_output,
    encode_table,
    given_labels,
    whole_plan,
)
from fewlabel.encoding.columns import Column
from fewlabel.encoding.encoder import TableEncoder
from fewlabel.encoding.plan import first_lines, left_out_lines
from fewlabel.ensemble.families import FAMILIES
from fewlabel.ensemble.few_label import FewLabelClassifier
from fewlabel.report.summarize import summarize, without_cells
from fewlabel.self_learning.base import SelfLearner
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

ACCEPT_ERROR = 0.05
"""Share of wrong labels to live with, if nobody names another."""

_CELLS_SHOWN = 8


@dataclass(frozen=True)
class FitOptions:
    """How to read and learn from a table; see ``fewlabel fit --help``.

    None for ``learner`` is "mixed" where that is possible; for ``max_train`` it is the learner's
    own budget, and 0 is none. ``unlabeled`` marks unlabelled rows besides empty cells; None is
    nothing, but then labels that look like such a mark are refused. ``classes``: numbers of many
    values are classes; ``fold_labels``: see :func:`fewlabel.tables.target_column.fold_labels`.
    ``accept_error``: the share of wrong labels that one can live with; None is 5 %. ``per_class``:
    some rows of each class were labelled, not a random sample.
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
    accept_error: float | None = None
    per_class: bool = False
    encoding: str = "utf-8"
    progress: Callable[[str], None] = field(default=lambda text: None)
    on_round: Callable[[dict[str, Any]], None] | None = None

    @property
    def max_error(self) -> float:
        """The share of wrong labels that one can live with."""
        return ACCEPT_ERROR if self.accept_error is None else self.accept_error


@dataclass(frozen=True)
class FitResult:
    """What came of it; ``left_out`` tells which columns were left out without being asked for."""

    table: pa.Table
    model: TableModel
    summary: dict[str, Any]
    left_out: list[str]


class _Input(NamedTuple):
    """A table, its labels and features, and what to tell about them."""

    table: pa.Table
    labels: NDArray[Any]
    truth: NDArray[Any] | None
    encoder: TableEncoder
    X: NDArray[Any]
    plan: list[Column]
    leave_out: dict[str, str]
    notes: list[str]


def fit_table(path: Path, options: FitOptions) -> FitResult:
    """Learn the target column of a table from its filled cells, and fill the others."""
    start = time.perf_counter()
    given = _read(path, options)
    clf, caught = _learn(given.X, given.labels, options)
    clf.name_features(given.encoder.get_feature_names_out().tolist())
    options.progress("estimating the error")
    summary = _summary(path.name, given, clf, options, caught)
    summary["settings"]["learner"] = options.learner or "mixed"
    summary["settings"]["seconds"] = round(time.perf_counter() - start, 2)
    model = TableModel(
        encoder=given.encoder,
        first=clf.initial_estimator_,
        final=clf.estimator_,
        promise=Promise.of(clf.assessment_, clf.paper_bounds_.power, options.max_error),
        target=options.target,
        summary=without_cells(summary),
    )
    return FitResult(
        table=_with_labels(with_notation(given.table, given.plan), clf, options),
        model=model,
        summary=summary,
        left_out=left_out_lines(given.plan, given.leave_out),
    )


def _read(path: Path, options: FitOptions) -> _Input:
    options.progress(f"reading {path.name}")
    table = read_table(path, encoding=options.encoding)
    leave_out, notes = columns_left_out(table, options)
    labels, names = given_labels(table, options)
    truth = _truth(table, labels, options, names)
    labeled = np.array([label is not None for label in labels])
    encoder, X = encode_table(table, labeled, leave_out, options)
    plan = whole_plan(table, encoder, leave_out)
    return _Input(table, labels, truth, encoder, X, plan, leave_out, [*notes, *encoder.warned_])


def _summary(
    name: str, given: _Input, clf: SelfLearner, options: FitOptions, caught: list[str]
) -> dict[str, Any]:
    target = options.target
    return summarize(
        clf,
        y_true=given.truth,
        max_error=options.max_error,
        title=f"{target}, learned from {name}",
        data={
            "source": name,
            "target": target,
            "target_type": type_of(given.table.column(target)),
            "columns": [column.to_dict() for column in given.plan],
        },
        show_rows=lambda rows: cells_shown(given.table, rows, leave_out={target, options.truth}),
        notes=[*given.notes, *caught],
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
) -> tuple[SelfLearner, list[str]]:
    """A fitted classifier, and what it warned of."""
    clf = learner_of(options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf.fit(X, labels)
    return clf, for_users(caught)


def learner_of(options: FitOptions) -> SelfLearner:
    """The classifier that the options ask for, unfitted."""
    return _paper_learner(options) if options.learner == "forest" else _mixed_learner(options)


def _paper_learner(options: FitOptions) -> SelfLearningClassifier:
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
        "labels": "per class" if options.per_class else "random",
        "missing_label": None,
        "n_jobs": options.jobs,
        "random_state": options.seed,
        "callback": options.on_round,
    }


def for_users(caught: Sequence[warnings.WarningMessage]) -> list[str]:
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


def predict_table(
    model: TableModel, table: pa.Table, max_error: float | None = None
) -> tuple[pa.Table, list[str]]:
    """Label the rows of a new table; also what to tell about its cells.

    ``max_error``: the share of wrong labels that one can live with; that of the fit by default.
    """
    X, notes = model.encoder.encode(table)
    label = vote_matrix(model.final, X).argmax(axis=1)
    first = vote_matrix(model.first, X)
    columns = {
        "label": model.final.classes_[label],
        "confidence": np.round(model.promise.confidence(first, label), 6),
        "accepted": model.promise.accepted(first, label, max_error),
    }
    kind = model.summary.get("data", {}).get("target_type", "string")
    table = append_columns(with_notation(table, model.plan), columns, model.target, kind)
    return table, first_lines(notes)


# --- output ----------------------------------------------------------------------------------


def _with_labels(table: pa.Table, clf: SelfLearner, options: FitOptions) -> pa.Table:
    """The table with labels, where they came from, and whether they can be taken as they are."""
    rounds = clf.labeled_iter_
    # 0 is given; -1, never pseudo-labelled, is the last name.
    names = ["given", *(f"round {n}" for n in range(1, clf.n_iter_ + 1)), "predicted"]
    columns = {
        "label": clf.transduction_.astype(object),
        "origin": np.array(names, dtype=object)[rounds],
        "confidence": np.where(rounds == 0, np.nan, np.round(clf.confidence_, 6)),
        "accepted": clf.accept(options.max_error),
    }
    return append_columns(table, columns, options.target, type_of(table.column(options.target)))


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


def cells_shown(table: pa.Table, rows: Ints, leave_out: set[str | None]) -> list[dict[str, str]]:
    """The first cells of rows, as short texts by column."""
    names = [name for name in table.column_names if name not in leave_out][:_CELLS_SHOWN]
    part = table.select(names).take(rows.tolist())
    return [
        {name: "" if cell is None else shorten(cell, 80) for name, cell in zip(names, row)}
        for row in zip(*map(python_cells, part.columns))
    ]
