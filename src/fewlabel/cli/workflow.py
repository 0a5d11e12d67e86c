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

from fewlabel._core.arrays import Floats, Ints
from fewlabel._core.errors import UserError, listing, shorten
from fewlabel.assess.calibration import Confidence
from fewlabel.assess.prevalence import check_priors
from fewlabel.bounds.votes import vote_matrix
from fewlabel.cli.table_columns import (
    check_free,
    columns_left_out,
    earlier_output,
    given_labels,
    table_encoder,
)
from fewlabel.encoding.encoder import ColumnWarning, TableEncoder
from fewlabel.encoding.plan import first_lines, left_out_lines
from fewlabel.ensemble.families import FAMILIES
from fewlabel.ensemble.few_label import FewLabelClassifier
from fewlabel.report.summarize import summarize, without_cells
from fewlabel.self_learning.base import SelfLearner
from fewlabel.self_learning.classifier import SelfLearningClassifier
from fewlabel.tables.csv_writing import python_cells
from fewlabel.tables.model_files import TableModel
from fewlabel.tables.reading import check_fits, read_table, with_notation
from fewlabel.tables.target_column import (
    folded,
    labels_like,
    type_of,
    typed_labels,
)

if TYPE_CHECKING:
    import pyarrow as pa

MAX_TRAIN = 100_000
"""Default training budget of the forest: so many pseudo-labelled rows it is trained on in a round.
The mixed vote has its own, see :class:`FewLabelClassifier`."""

ACCEPT_ERROR = 0.05
"""Share of wrong labels that is allowed, if nobody names another."""

_CELLS_SHOWN = 8


@dataclass(frozen=True)
class FitOptions:
    """How to read and learn from a table; see ``fewlabel fit --help``.

    None for ``learner`` is "mixed" where that is possible; for ``max_train`` it is the learner's
    own budget, and 0 is none. ``unlabeled`` marks unlabelled rows besides empty cells; None is
    nothing, but then labels that look like such a mark are refused. ``classes``: numbers of many
    values are classes; ``fold_labels``: see :func:`fewlabel.tables.target_column.fold_labels`.
    ``accept_error``: the share of wrong labels that is allowed; None is 5 %. ``per_class``:
    some rows of each class were labelled, not a random sample. ``scoring``, ``priors``: see
    :class:`FewLabelClassifier`. ``votes``: add the calibrated chance of each class.
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
    scoring: Literal["accuracy", "balanced"] = "accuracy"
    priors: dict[str, float] | None = None
    votes: bool = False
    encoding: str = "utf-8"
    progress: Callable[[str], None] = field(default=lambda text: None)
    on_round: Callable[[dict[str, Any]], None] | None = None

    @property
    def max_error(self) -> float:
        """The share of wrong labels that is allowed."""
        return ACCEPT_ERROR if self.accept_error is None else self.accept_error


class PredictOptions(NamedTuple):
    """How to label a new table; see ``fewlabel predict --help``.

    ``max_error``: the share of wrong labels that is allowed; None is that of the fit.
    ``votes``: add the calibrated chance of each class.
    """

    max_error: float | None = None
    votes: bool = False
    encoding: str = "utf-8"


@dataclass(frozen=True)
class FitResult:
    """What came of it; ``left_out`` tells which columns were left out without being asked for."""

    table: pa.Table
    model: TableModel
    summary: dict[str, Any]
    left_out: list[str]


class TableInput(NamedTuple):
    """A table, its labels, how to encode it, and what to tell about it."""

    table: pa.Table
    labels: NDArray[Any]
    truth: NDArray[Any] | None
    leave_out: dict[str, str]
    encoder: TableEncoder
    notes: list[str]
    priors: dict[str, float] | None = None


def fit_table(path: Path, options: FitOptions, out_kind: str = "") -> FitResult:
    """Learn the target column of a table from its filled cells, and fill the others.

    ``out_kind`` is the format in which the result is to be written.
    """
    start = time.perf_counter()
    given = _read(path, options, out_kind)
    clf, caught = _learn(given, options)
    options.progress("estimating the error")
    return fit_result(path.name, given, clf, options, caught, start)


def fit_result(
    name: str,
    given: TableInput,
    clf: SelfLearner,
    options: FitOptions,
    caught: list[str],
    start: float,
) -> FitResult:
    """Labelled table, model and summary of a classifier that was fitted on a table."""
    encoder: TableEncoder = clf.table_encoder_  # type: ignore[assignment]
    notes = [*given.notes, *encoder.warned_, *caught]
    summary = _summary(name, given, clf, options, notes)
    summary["data"]["columns"] = [column.to_dict() for column in encoder.plan_]
    summary["settings"]["learner"] = options.learner or "mixed"
    summary["settings"]["seconds"] = round(time.perf_counter() - start, 2)
    model = TableModel.of(
        clf,
        target=options.target,
        max_error=options.max_error,
        summary=without_cells(summary),
    )
    return FitResult(
        table=_with_labels(with_notation(given.table, encoder.plan_), clf, options),
        model=model,
        summary=summary,
        left_out=left_out_lines(encoder.plan_, given.leave_out),
    )


def _read(path: Path, options: FitOptions, out_kind: str) -> TableInput:
    options.progress(f"reading {path.name}")
    table = read_table(path, encoding=options.encoding)
    check_fits(table, out_kind)
    leave_out, notes = columns_left_out(table, options)
    labels, names = given_labels(table, options)
    priors = known_shares(labels, options, names)
    truth = _truth(table, labels, options, names)
    sparse = options.learner != "forest"
    encoder = table_encoder(table.column_names, leave_out, options, sparse=sparse)
    return TableInput(table, labels, truth, leave_out, encoder, notes, priors)


def _summary(
    name: str, given: TableInput, clf: SelfLearner, options: FitOptions, notes: list[str]
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
        },
        show_rows=lambda rows: cells_shown(given.table, rows, leave_out={target, options.truth}),
        notes=notes,
    )


# --- checks ----------------------------------------------------------------------------------


def _truth(
    table: pa.Table, labels: NDArray[Any], options: FitOptions, names: dict[str, str]
) -> NDArray[Any] | None:
    """The true labels; raise if they are written in another way than the given ones."""
    if options.truth is None:
        return None
    given = {label for label in labels if label is not None}
    truth = labels_like(table.column(options.truth), given, options.unlabeled)
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


def known_shares(
    labels: NDArray[Any], options: FitOptions, names: dict[str, str]
) -> dict[str, float] | None:
    """The shares that the user knows, by the classes' names; raise if they do not fit them."""
    if options.priors is None:
        return None
    classes = np.unique([label for label in labels if label is not None])
    priors = options.priors
    if options.fold_labels:
        ways = names | {str(label): str(label) for label in classes}
        priors = dict(zip(folded(np.array([*priors], dtype=object), ways), priors.values()))
    check_priors(priors, classes)
    return priors


# --- learning --------------------------------------------------------------------------------


def _learn(given: TableInput, options: FitOptions) -> tuple[SelfLearner, list[str]]:
    """A fitted classifier, and what it warned of."""
    clf = learner_of(options)
    if given.priors is not None:
        clf.set_params(priors=given.priors)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf.set_params(table=given.encoder).fit(given.table, given.labels)
    return clf, for_users(caught)


def learner_of(options: FitOptions) -> SelfLearner:
    """The classifier that the options ask for, unfitted."""
    return _paper_learner(options) if options.learner == "forest" else _mixed_learner(options)


def _paper_learner(options: FitOptions) -> SelfLearningClassifier:
    """The paper's: one forest."""
    if options.scoring == "balanced" or options.priors is not None:
        raise UserError(
            "--scoring and --priors are for the mixed vote, not for the forest.",
            "Leave them out, or use --learner mixed.",
        )
    options.progress("training the first forest")
    budget = MAX_TRAIN if options.max_train is None else options.max_train
    return SelfLearningClassifier(max_train=budget or None, **_common(options))


def _mixed_learner(options: FitOptions) -> FewLabelClassifier:
    options.progress(f"training {len(FAMILIES)} families of voters")
    clf = FewLabelClassifier(scoring=options.scoring, **_common(options))
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
    its held-out accuracy, and so its weight, is that of the voter as it is. What the encoder found
    is told with the plan.
    """
    silent = (ConvergenceWarning, ColumnWarning)
    told = [
        str(w.message)
        for w in caught
        if issubclass(w.category, UserWarning) and not issubclass(w.category, silent)
    ]
    return list(dict.fromkeys(told))


def predict_table(
    model: TableModel, table: pa.Table, options: PredictOptions
) -> tuple[pa.Table, list[str]]:
    """Label the rows of a new table; also what to tell about its cells."""
    X, notes = model.features(table)
    label = vote_matrix(model.final, X).argmax(axis=1)
    first = vote_matrix(model.first, X)
    columns = {
        "label": model.final.classes_[label],
        "confidence": np.round(model.promise.confidence(first, label), 6),
        "accepted": model.promise.accepted(first, label, options.max_error),
    }
    classes = [str(name) for name in model.classes]
    if options.votes:
        columns |= vote_columns(model.promise.rule, first, classes)
    kind = model.summary.get("data", {}).get("target_type", "string")
    table = with_notation(table, model.plan)
    table = append_columns(table, columns, model.target, kind, classes)
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
    classes = [str(name) for name in clf.classes_]
    if options.votes:
        votes = vote_columns(clf.assessment_.promise.rule, clf.initial_votes_, classes)
        for name, of_unlabeled in votes.items():
            columns[name] = np.full(len(rounds), np.nan)
            columns[name][rounds != 0] = of_unlabeled
    kind = type_of(table.column(options.target))
    return append_columns(table, columns, options.target, kind, classes)


def vote_columns(rule: Confidence, votes: Floats, classes: Sequence[str]) -> dict[str, Floats]:
    """The calibrated chance of each class, by column; that of a row's label is its confidence."""
    chances = np.round(rule.seen * rule.label_proba(votes), 6)
    return {f"vote_{name}": column for name, column in zip(classes, chances.T)}


def append_columns(
    table: pa.Table,
    columns: dict[str, NDArray[Any]],
    target: str,
    kind: str = "string",
    classes: Sequence[str] = (),
) -> pa.Table:
    """Add columns named after the target; those of an earlier output are replaced.

    ``kind`` is the type of the target, which its labels get; ``classes``, whose columns of votes
    may be there from an earlier output.
    """
    import pyarrow as pa

    own = earlier_output(table.column_names, target, classes)
    check_free([f"{target}_{name}" for name in columns], table.column_names, own)
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
