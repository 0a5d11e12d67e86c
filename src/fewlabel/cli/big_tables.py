"""``fewlabel fit`` and ``predict`` for tables in files that need not fit in memory."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewlabel._core.errors import UserError, listing, shorten
from fewlabel.chunks.dask_errors import NoWorkersError, VersionError
from fewlabel.chunks.dask_rows import DaskRows, open_client
from fewlabel.chunks.finish import Part
from fewlabel.chunks.local import UnlabeledRows
from fewlabel.chunks.progress import Progress
from fewlabel.chunks.results import result_folder, write_part
from fewlabel.chunks.rows import Rows
from fewlabel.cli.table_columns import checked_labels, columns_left_out, table_encoder
from fewlabel.cli.workflow import (
    FitOptions,
    PredictOptions,
    append_columns,
    cells_shown,
    for_users,
    known_shares,
    learner_of,
    predict_table,
    vote_columns,
)
from fewlabel.encoding.columns import Column
from fewlabel.encoding.encoder import TableEncoder
from fewlabel.encoding.plan import left_out_lines, require_name
from fewlabel.report.summarize import summarize, without_cells
from fewlabel.tables.model_files import TableModel
from fewlabel.tables.streaming import TableFiles, as_table, joined
from fewlabel.tables.target_column import folded, labels_like, target_labels, type_of

if TYPE_CHECKING:
    import pyarrow as pa

    from fewlabel.self_learning.base import SelfLearner

BY_A_SAMPLE = "What the columns are was decided by the labelled rows and {n:,} random ones."
_MOST_VALUES = 10_000  # of the truth's column that are compared with the labels
_SLOW_LINES = 30.0  # seconds between two lines of progress where lines are not replaced


# --- one chunk -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class TargetColumn:
    """Where the labels of a table stand, and how they are written.

    Attributes
    ----------
    name : str
    unlabeled : str or None
        What marks unlabelled rows besides empty cells.
    names : dict
        Ways to write a class that are joined, to the one that stays.
    kind : str
        Type of the column.
    """

    name: str
    unlabeled: str | None
    names: dict[str, str]
    kind: str

    def labels(self, table: pa.Table) -> NDArray[Any]:
        """Labels of a chunk, None where there is none."""
        if self.name not in table.column_names:
            raise ValueError(f"there is no column '{shorten(self.name)}' (the target).")
        found = target_labels(table.column(self.name), self.unlabeled)
        return folded(found, self.names) if self.names else found


@dataclass(frozen=True)
class TableLayout:
    """The unlabelled rows of a chunk, as a table."""

    column: TargetColumn
    truth: str | None
    classes: frozenset[str]

    def conform(self, raw: Any) -> tuple[Any, NDArray[np.intp]]:
        """The unlabelled rows of a chunk, and their positions in it."""
        table = as_table(raw)
        rows = np.flatnonzero([label is None for label in self.column.labels(table)])
        return table.take(rows), rows

    def truth_of(self, raw: Any, rows: NDArray[np.intp]) -> NDArray[Any] | None:
        """True labels of these rows, None where they are not known."""
        if self.truth is None:
            return None
        return true_labels(as_table(raw), self.truth, self.column, self.classes)[rows]


def true_labels(
    table: pa.Table, name: str, column: TargetColumn, classes: frozenset[str]
) -> NDArray[Any]:
    """The truth in the way that labels are written."""
    found = labels_like(table.column(name), classes, column.unlabeled)
    if not column.names:
        return found
    return folded(found, column.names | {label: label for label in classes})


@dataclass(frozen=True)
class TableWriter:
    """Writes chunks of a table with the columns that ``fewlabel fit`` adds to a file."""

    column: TargetColumn
    votes: bool = False

    def write(self, folder: Path, part: Part, classes: NDArray[Any]) -> None:
        """See :class:`fewlabel.chunks.finish.PartWriter`."""
        table, rows = as_table(part.raw), part.rows
        n = table.num_rows
        label, origin = self.column.labels(table), np.full(n, "given", dtype=object)
        confidence, accepted = np.full(n, np.nan), np.ones(n, dtype=bool)
        label[rows] = classes[part.labels]
        origin[rows] = ["predicted" if r < 1 else f"round {r}" for r in part.rounds.tolist()]
        confidence[rows] = np.round(part.verdicts.confidence, 6)
        accepted[rows] = part.accepted
        columns = {"label": label, "origin": origin, "confidence": confidence, "accepted": accepted}
        names = [str(name) for name in classes]
        if self.votes:
            for name, values in vote_columns(part.rule.rule, part.first, names).items():
                columns[name] = np.full(n, np.nan)
                columns[name][rows] = values
        labelled = append_columns(table, columns, self.column.name, self.column.kind, names)
        write_part(folder, part.position, labelled)


# --- fitting -------------------------------------------------------------------------------------


class BigFit(NamedTuple):
    """What came of it; the labels are in their folder already."""

    model: TableModel
    summary: dict[str, Any]
    left_out: list[str]


class _Given(NamedTuple):
    """What the first look tells: the labelled rows, and how labels are written."""

    labeled: pa.Table
    labels: NDArray[Any]
    column: TargetColumn
    n_rows: int


def fit_files(
    files: TableFiles, options: FitOptions, *, out: Path, scheduler: str | None = None
) -> BigFit:
    """Learn the target column of a table in files, and write the table with labels to a folder.

    Parameters
    ----------
    files : TableFiles
    options : FitOptions
    out : Path
        New folder for the labelled table, a Parquet file for each chunk.
    scheduler : str, optional
        "local" or the address of a Dask scheduler; without it this process does all the work.
    """
    start = time.perf_counter()
    options.progress(f"reading {files.title}")
    given = _first_look(files, options)
    labeled = given.labeled.replace_schema_metadata(files.metadata())
    leave_out, notes = columns_left_out(labeled, options)
    names, sparse = given.labeled.column_names, options.learner != "forest"
    encoder = table_encoder(names, leave_out, options, sparse=sparse)
    clf, caught = _learn(files, given, options, encoder, out, scheduler)
    fitted: TableEncoder = clf.table_encoder_  # type: ignore[assignment]
    plan, told = fitted.plan_, fitted.warned_
    n_sample = len(clf._transduction.votes)
    notes = [*notes, *told, *caught, BY_A_SAMPLE.format(n=n_sample)]
    options.progress("summing up")
    summary = _summary(files, given, clf, options, plan, notes)
    summary["settings"]["learner"] = options.learner or "mixed"
    summary["settings"]["seconds"] = round(time.perf_counter() - start, 2)
    model = TableModel.of(
        clf, target=options.target, max_error=options.max_error, summary=without_cells(summary)
    )
    return BigFit(model, summary, left_out_lines(plan, leave_out))


def _learn(
    files: TableFiles,
    given: _Given,
    options: FitOptions,
    encoder: Any,
    out: Path,
    scheduler: str | None,
) -> tuple[SelfLearner, list[str]]:
    classes = frozenset(given.labels)
    settings = {
        "layout": TableLayout(given.column, options.truth, classes),
        "writer": TableWriter(given.column, votes=options.votes),
        "out": out,
        "max_error": options.max_error,
        "progress": _teller(options.progress),
    }
    clf = learner_of(options).set_params(table=encoder)
    priors = known_shares(given.labels, options, given.column.names)
    if priors is not None:
        clf.set_params(priors=priors)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with _rows(files, scheduler, settings) as rows:
            clf.fit(given.labeled, given.labels, unlabeled=rows)
    return clf, for_users(caught)


@contextmanager
def _rows(files: TableFiles, scheduler: str | None, settings: dict[str, Any]) -> Iterator[Rows]:
    if scheduler is None:
        yield UnlabeledRows(files, **settings)
        return
    if not files.is_parquet:
        raise UserError(
            "--scheduler is for Parquet files: text cannot be parted among workers.",
            "Leave --scheduler out, or write the table as Parquet files.",
        )
    try:
        with open_client(scheduler) as client:
            yield DaskRows(list(files.names), client, **settings)
    except (ConnectionError, MemoryError, NoWorkersError, VersionError) as error:
        raise UserError(str(error)) from error  # they say themselves what to do


def _teller(progress: Callable[[str], None]) -> Callable[[Progress], None]:
    """Tell how far a pass is; where lines are not replaced, only now and then."""
    last = [time.monotonic()]
    every = 0.0 if sys.stderr.isatty() else _SLOW_LINES

    def tell(at: Progress) -> None:
        if time.monotonic() - last[0] >= every:
            last[0] = time.monotonic()
            progress(str(at))

    return tell


def _first_look(files: TableFiles, options: FitOptions) -> _Given:
    """One pass over all rows: the labelled ones, in the order of the files."""
    labeled: list[pa.Table] = []
    true: set[Any] = set()
    n_rows = 0
    for name, table in files.named_chunks():
        if not labeled:
            require_name(table.column_names, options.target, "--target")
        for wanted in (options.target, *([options.truth] if options.truth and labeled else [])):
            if wanted not in table.column_names:
                raise UserError(
                    f"'{shorten(name)}' has no column '{shorten(wanted)}', which the files before "
                    f"it have.",
                    "Add it, with empty cells.",
                )
        n_rows += table.num_rows
        found = target_labels(table.column(options.target), options.unlabeled)
        labeled.append(table.take(np.flatnonzero([label is not None for label in found])))
        if options.truth in table.column_names and len(true) < _MOST_VALUES:
            true |= set(target_labels(table.column(options.truth), options.unlabeled))
    if n_rows == 0:
        raise UserError(f"The files of '{shorten(files.title)}' have no rows.", "Name others.")
    together = joined(labeled, files.title)
    raw = target_labels(together.column(options.target), options.unlabeled)
    whole = raw if len(raw) == n_rows else np.append(raw, [None])
    labels, names = checked_labels(whole, options)
    kind = type_of(together.column(options.target))
    column = TargetColumn(options.target, options.unlabeled, names, kind)
    _check_truth(set(labels[: len(raw)]), true - {None}, options)
    return _Given(together, labels[: len(raw)], column, n_rows)


def _check_truth(given: set[Any], true: set[Any], options: FitOptions) -> None:
    plain = {str(label).removesuffix(".0").casefold() for label in true}
    if true and not {str(label).removesuffix(".0").casefold() for label in given} & plain:
        raise UserError(
            f"No label of '{shorten(options.target)}' stands in '{shorten(options.truth)}': the "
            f"labels are {listing(sorted(given))}, the truth has {listing(sorted(true))}.",
            "Write both alike, or leave --truth out.",
        )


def _summary(
    files: TableFiles,
    given: _Given,
    clf: SelfLearner,
    options: FitOptions,
    plan: list[Column],
    notes: list[str],
) -> dict[str, Any]:
    target = options.target

    def show_rows(rows: NDArray[np.intp]) -> list[dict[str, str]]:
        table = rows_at(files, rows)
        return cells_shown(table, np.arange(len(rows)), leave_out={target, options.truth})

    return summarize(
        clf,
        max_error=options.max_error,
        title=f"{target}, learned from {files.title}",
        data={
            "source": files.title,
            "target": target,
            "target_type": given.column.kind,
            "columns": [column.to_dict() for column in plan],
        },
        show_rows=show_rows,
        notes=notes,
    )


def rows_at(files: TableFiles, rows: NDArray[np.intp]) -> pa.Table:
    """Rows of a table by their positions among all rows, in the order asked for."""
    order = np.argsort(rows, kind="stable")
    wanted, found, start = rows[order], [], 0
    for _, table in files.named_chunks():
        inside = wanted[(wanted >= start) & (wanted < start + table.num_rows)]
        if len(inside):
            found.append(table.take(inside - start))
        start += table.num_rows
        if start > wanted[-1:].max(initial=-1):
            break
    together = joined(found, files.title)
    return together.take(np.argsort(order, kind="stable"))


# --- prediction ----------------------------------------------------------------------------------


class Predicted(NamedTuple):
    """How many labels new rows got, and what is said of them."""

    counts: dict[str, Any]
    notes: list[str]


def predict_files(
    model: TableModel,
    files: TableFiles,
    options: PredictOptions,
    *,
    out: Path,
    progress: Callable[[str], None],
) -> Predicted:
    """Label the rows of a table in files, chunk by chunk, and write it to a new folder."""
    sums = {"n_rows": 0, "n_accepted": 0, "doubt": 0.0, "accepted_doubt": 0.0}
    notes: dict[str, None] = {}
    tell, start = _teller(progress), time.monotonic()
    with result_folder(out) as folder:
        assert folder is not None
        for position, (_, table) in enumerate(files.named_chunks()):
            labelled, told = predict_table(model, table, options)
            confidence = labelled.column(f"{model.target}_confidence").to_numpy()
            accepted = labelled.column(f"{model.target}_accepted").to_numpy()
            sums["n_rows"] += table.num_rows
            sums["n_accepted"] += int(accepted.sum())
            sums["doubt"] += float((1 - confidence).sum())
            sums["accepted_doubt"] += float((1 - confidence[accepted]).sum())
            notes |= dict.fromkeys(told)
            write_part(folder, position, labelled)
            tell(Progress("labelling", int(sums["n_rows"]), 0, time.monotonic() - start))
        if not sums["n_rows"]:
            raise UserError(f"The files of '{shorten(files.title)}' have no rows.", "Name others.")
    n, n_accepted, most = int(sums["n_rows"]), int(sums["n_accepted"]), options.max_error
    counts = {
        "n_rows": n,
        "n_accepted": n_accepted,
        "max_error": model.promise.max_error if most is None else most,
        "expected_error": sums["doubt"] / n,
        "accepted_error": sums["accepted_doubt"] / n_accepted if n_accepted else None,
    }
    return Predicted(counts, list(notes))
