"""``fewlabel fit FOLDER``: a table in Parquet files that need not fit in memory."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewlabel._core.errors import UserError, shorten
from fewlabel.chunks.dask_rows import DaskRows, NoWorkersError, open_client
from fewlabel.chunks.local import UnlabeledRows
from fewlabel.chunks.rows import Rows
from fewlabel.chunks.source import open_chunks
from fewlabel.cli.table_columns import (
    checked_labels,
    columns_left_out,
    table_encoder,
)
from fewlabel.cli.workflow import FitOptions, paper_learner
from fewlabel.encoding.cells import plain_column
from fewlabel.encoding.columns import MOSTLY_IN_PART
from fewlabel.encoding.encoder import ColumnWarning, TableEncoder
from fewlabel.encoding.plan import left_out_lines, require_name
from fewlabel.report.promise_section import error_entry
from fewlabel.tables.target_column import target_labels

if TYPE_CHECKING:
    import pyarrow as pa

PLAN_ROWS = 50_000
"""What a column is taken for is decided by so many rows, the first ones, and the labelled ones."""


FOREST_ONLY = (
    "A folder is learned by a random forest: the mixed vote would need all its rows in memory."
)


@dataclass(frozen=True)
class TableLayout:
    """Brings the unlabelled rows of an Arrow table into the form the classifier learns from."""

    encoder: TableEncoder
    target: str
    unlabeled: str | None
    width: int

    def conform(self, raw: Any) -> tuple[Any, NDArray[np.intp]]:
        table = _as_table(raw)
        if self.target not in table.column_names:
            raise ValueError(f"there is no column '{shorten(self.target)}' (the target).")
        labels = target_labels(table.column(self.target), self.unlabeled)
        rows = np.flatnonzero([label is None for label in labels])
        if len(rows) == 0:  # transformers refuse to transform nothing
            return np.empty((0, self.width), dtype=np.float32), rows
        return self.encoder.encode(table.take(rows), readable=MOSTLY_IN_PART)[0], rows


def fit_folder(
    folder: Path, options: FitOptions, *, out: Path, scheduler: str | None = None
) -> dict[str, Any]:
    """Learn the target column of all Parquet files of a folder, and write labels for the rest.

    Parameters
    ----------
    folder : Path
    options : FitOptions
        ``truth`` is not used.
    out : Path
        New folder for the labels, see :class:`fewlabel.UnlabeledRows`.
    scheduler : str, optional
        "local" or the address of a Dask scheduler; without it this process does all the work.

    Returns
    -------
    summary : dict, in plain types
    """
    start = time.perf_counter()
    _check_folder(folder, options)
    options.progress(f"reading {folder.name}")
    given = _read(folder, options)
    layout = TableLayout(given.encoder, options.target, options.unlabeled, given.X.shape[1])
    clf = paper_learner(options)
    with _rows(folder, scheduler, layout, out) as rows:
        clf.fit(given.X, given.labels, unlabeled=rows)
    return {
        "source": folder.name,
        "target": options.target,
        "learner": "forest",
        "columns": [column.to_dict() for column in given.encoder.plan_],
        "n_labeled": len(given.labels),
        "rounds": clf.history_,
        "n_pseudo_labeled": sum(record["n_selected"] for record in clf.history_),
        "n_unlabeled": rows.n_unlabeled,
        "error": error_entry(clf.error_),
        "notes": given.notes,
        "seconds": round(time.perf_counter() - start, 2),
    }


class _Labelled(NamedTuple):
    """The labelled rows of a folder as features, and how columns are read."""

    X: NDArray[Any]
    labels: NDArray[Any]
    encoder: TableEncoder
    notes: list[str]


def _check_folder(folder: Path, options: FitOptions) -> None:
    if options.learner == "mixed":
        raise UserError(
            "--learner mixed cannot be used with a folder: its families need all rows in memory.",
            "Add --learner forest, or join the files to one table that fits in memory.",
        )
    if not any(folder.rglob("*.parquet")):
        raise UserError(
            f"'{folder.name}' is a folder without Parquet files.",
            "Name a table in it, or a folder of *.parquet files.",
        )


def _read(folder: Path, options: FitOptions) -> _Labelled:
    head, labeled, n_rows = _first_look(folder, options)
    labels = target_labels(labeled.column(options.target), options.unlabeled)
    all_labels = labels if len(labels) == n_rows else np.append(labels, [None])
    labels = checked_labels(all_labels, options)[0][: len(labels)]
    leave_out, notes = columns_left_out(head, options)
    rows_seen = _labeled_and_first(head, labeled, options)
    has_label = np.arange(rows_seen.num_rows) < labeled.num_rows
    encoder = table_encoder(rows_seen.column_names, leave_out, options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnWarning)  # told with the plan
        X = encoder.fit_transform(rows_seen, np.where(has_label, 1.0, np.nan))
    notes = [*left_out_lines(encoder.plan_, leave_out), *encoder.warned_, *notes]
    if options.learner is None:
        notes.append(FOREST_ONLY)
    return _Labelled(X[has_label], labels, encoder, notes)


@contextmanager
def _rows(folder: Path, scheduler: str | None, layout: TableLayout, out: Path) -> Iterator[Rows]:
    if scheduler is None:
        yield UnlabeledRows(folder, layout=layout, out=out)
        return
    try:
        with open_client(scheduler) as client:
            yield DaskRows(folder, client, layout=layout, out=out)
    except (
        ConnectionError,
        MemoryError,
        NoWorkersError,
    ) as error:  # they say themselves what to do
        raise UserError(str(error)) from error


def _first_look(folder: Path, options: FitOptions) -> tuple[pa.Table, pa.Table, int]:
    """The first rows, all labelled rows, and the number of all rows."""
    import pyarrow as pa

    head: list[Any] = []
    labeled: list[Any] = []
    n_head = n_rows = 0
    for name, raw in open_chunks(folder)():
        table = _as_table(raw)
        if not labeled:
            require_name(table.column_names, options.target, "--target")
        if options.target not in table.column_names:
            raise UserError(
                f"'{shorten(name)}' has no column '{shorten(options.target)}', which the files "
                f"before it have.",
                "Add it, with empty cells.",
            )
        if n_head < PLAN_ROWS:
            head.append(table.slice(0, PLAN_ROWS - n_head))
            n_head += head[-1].num_rows
        n_rows += table.num_rows
        labels = target_labels(table.column(options.target), options.unlabeled)
        labeled.append(table.take(np.flatnonzero([label is not None for label in labels])))
    if n_rows == 0:
        raise UserError(f"The files of '{shorten(folder)}' have no rows.", "Name another folder.")
    try:
        # By name, and numbers of different width together.
        together = [pa.concat_tables(t, promote_options="permissive") for t in (head, labeled)]
    except pa.ArrowException as error:
        raise UserError(
            f"A column of '{shorten(folder)}' has different types in its files "
            f"({shorten(error, 200)}).",
            "Write the files anew with one type for each column.",
        ) from error
    return together[0], together[1], n_rows


def _labeled_and_first(head: pa.Table, labeled: pa.Table, options: FitOptions) -> pa.Table:
    """All labelled rows, and then the unlabelled ones among the first."""
    import pyarrow as pa

    labels = target_labels(head.column(options.target), options.unlabeled)
    others = head.filter(pa.array([label is None for label in labels]))
    return pa.concat_tables([labeled, others], promote_options="permissive")


def _as_table(raw: Any) -> pa.Table:
    import pyarrow as pa

    table = pa.Table.from_batches([raw]) if isinstance(raw, pa.RecordBatch) else raw
    # Files of one folder may keep the same column in different ways.
    columns = [c if pa.types.is_null(c.type) else plain_column(c) for c in table.columns]
    return pa.Table.from_arrays(columns, table.column_names)
