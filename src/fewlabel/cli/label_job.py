"""What the learning process of ``fewlabel label`` does with a table: features, and the result."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fewlabel.cli.labelled_table import corrected, labelled_table, with_column
from fewlabel.cli.table_columns import columns_left_out, table_encoder
from fewlabel.cli.workflow import FitOptions, FitResult, TableInput, fit_result
from fewlabel.labeling.learning import Lesson
from fewlabel.report import render
from fewlabel.tables.model_files import save_model
from fewlabel.tables.reading import table_format, write_table
from fewlabel.tables.target_column import type_of, typed_labels

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class TableJob:
    """A table to be labelled; it is pickled into the learning process.

    Parameters
    ----------
    table : pyarrow.Table
        With the target column.
    name : str
        Of the file.
    options : dict
        Arguments of :class:`fewlabel.cli.workflow.FitOptions`.
    labeled : ndarray of bool
        Rows that the table itself labels.
    n_jobs : int or None
    """

    table: pa.Table
    name: str
    options: dict[str, Any]
    labeled: NDArray[np.bool_]
    n_jobs: int | None = None
    _given: TableInput | None = field(default=None, init=False)

    def features(self) -> Any:
        """The rows as numbers."""
        given = self._input()
        labels = np.full(self.table.num_rows, None, dtype=object)
        labels[self.labeled] = "given"
        return given.encoder.fit_transform(given.table, labels)

    def _input(self) -> TableInput:
        """The table as it is learned from, without its labels."""
        if self._given is None:
            options = FitOptions(**self.options)
            leave_out, notes = columns_left_out(self.table, options)
            encoder = table_encoder(self.table.column_names, leave_out, options)
            none = np.full(self.table.num_rows, None, dtype=object)
            self._given = TableInput(self.table, none, None, leave_out, encoder, notes)
        return self._given

    def write(self, clf: Any, lesson: Lesson, request: dict[str, Any], folder: Path) -> list[str]:
        """Write table, model and report; names of the files."""
        options = FitOptions(**self.options)
        labels = np.full(self.table.num_rows, None, dtype=object)
        for row, label in lesson.labels.items():
            labels[row] = label
        filled = _with_target(self.table, options.target, labels)
        given = self._input()._replace(table=filled, labels=labels)
        # The classifier learned from the features: the encoder is fitted once, not in every round.
        clf.table_encoder_ = given.encoder
        result = fit_result(self.name, given, clf, options, [], time.perf_counter())
        result.summary["notes"].append(_basis(lesson))
        table = result.table
        if request.get("fixed"):
            table = _audited(result, request["fixed"], options.target)
            if request["fixed"]["statement"]:
                result.summary["notes"].append(f"Checked: {request['fixed']['statement']}.")
        return self._save(result, table, folder)

    def _save(self, result: FitResult, table: pa.Table, folder: Path) -> list[str]:
        stem, dot, ending = self.name.partition(".")
        names = [f"{stem}-labelled{dot}{ending}", f"{stem}.skops", f"{stem}-report.html"]
        write_table(table, folder / names[0], *table_format(folder / names[0]))
        save_model(result.model, folder / names[1])
        (folder / names[2]).write_text(render(result.summary, "html"), encoding="utf-8")
        return names


def _with_target(table: pa.Table, target: str, labels: NDArray[Any]) -> pa.Table:
    """The table with the labels so far in its target column."""
    return with_column(table, target, typed_labels(labels, type_of(table.column(target))))


def _basis(lesson: Lesson) -> str:
    n, random = len(lesson.labels), len(lesson.random)
    return (
        f"The estimate of the error rests on the {random:,} of {n:,} labelled rows that were drawn "
        f"at random; the others were chosen for what they teach."
    )


def _audited(result: FitResult, fixed: dict[str, Any], target: str) -> pa.Table:
    """The labels as they were when the check began, with those that it found corrected."""
    import pyarrow as pa

    table = result.table
    labels = np.array(fixed["classes"], dtype=object)[np.array(fixed["codes"])]
    origin = np.array(table.column(f"{target}_origin").to_pylist(), dtype=object)
    accepted = origin == "given"
    accepted[fixed["rows"]] = True
    columns = {
        f"{target}_label": typed_labels(labels, type_of(table.column(f"{target}_label"))),
        f"{target}_accepted": pa.array(accepted),
    }
    for name, column in columns.items():
        table = with_column(table, name, column)
    right = {int(row): str(label) for row, label in fixed["audited"].items()}
    if not right:
        return table
    labelled = labelled_table(table, target, "all")
    return corrected(labelled, list(right), list(right.values()))
