"""Which columns of a table are features, how they are read, and which labels it has."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fewlabel._core.errors import UserError, listing
from fewlabel._core.optional import pa
from fewlabel.encoding.cells import numbers, plain_column
from fewlabel.encoding.columns import Column
from fewlabel.encoding.encoder import ColumnWarning, TableEncoder
from fewlabel.encoding.plan import require_name
from fewlabel.tables.reading import read_table
from fewlabel.tables.target_column import (
    check_labels,
    check_not_regression,
    fold_labels,
    target_labels,
)

if TYPE_CHECKING:
    from fewlabel.cli.workflow import FitOptions

ADDED = ("label", "origin", "confidence", "accepted")
"""Columns of the output, each behind the target's name and an underscore."""


def plan_table(path: Path, options: FitOptions) -> tuple[list[Column], list[str], int]:
    """What the columns of a table are taken for, remarks, and the number of features."""
    options.progress(f"reading {path.name}")
    table = read_table(path, encoding=options.encoding)
    leave_out, notes = columns_left_out(table, options)
    labels, _ = given_labels(table, options)
    sparse = options.learner != "forest"
    encoder = table_encoder(table.column_names, leave_out, options, sparse=sparse)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnWarning)  # told with the plan
        n_features = encoder.fit_transform(table, labels).shape[1]
    return encoder.plan_, [*notes, *encoder.warned_], n_features


def given_labels(table: pa.Table, options: FitOptions) -> tuple[NDArray[Any], dict[str, str]]:
    """Checked labels of a table, and the names of classes that are written in several ways."""
    labels = target_labels(table.column(options.target), options.unlabeled)
    return checked_labels(labels, options)


def checked_labels(
    labels: NDArray[Any], options: FitOptions
) -> tuple[NDArray[Any], dict[str, str]]:
    """Labels that can be learned, one way to write each class, and the names of those ways."""
    if not options.classes:
        check_not_regression(labels, options.target)
    check_labels(labels, options.target, options.unlabeled)
    labels, names = fold_labels(labels, options.target, options.fold_labels)
    if names:
        check_labels(labels, options.target, options.unlabeled)
    return labels, names


def columns_left_out(table: pa.Table, options: FitOptions) -> tuple[dict[str, str], list[str]]:
    """Columns that are no features and why; remarks for the report."""
    names = table.column_names
    require_name(names, options.target, "--target")
    leave_out = {options.target: "the target"}
    if options.truth is not None:
        require_name(names, options.truth, "--truth")
        if options.truth == options.target:
            raise UserError(
                "--truth and --target name the same column.",
                "The target has empty cells to fill; the truth is another column, used only to "
                "check the result.",
            )
        leave_out[options.truth] = "the truth: used to check the result only"
    for name in options.drop:
        require_name(names, name, "--drop")
        if name == options.target:
            raise UserError("--drop names the target.", "Drop other columns only.")
        leave_out.setdefault(name, "dropped on request")
    classes = sorted({x for x in target_labels(table.column(options.target), None) if x})
    own = earlier_output(names, options.target, classes)
    if options.votes:
        check_free([f"{options.target}_vote_{name}" for name in classes], names, own)
    leave_out.update((name, "an earlier output of fewlabel") for name in own)
    notes = [f"Columns of an earlier output were replaced: {listing(own)}."] if own else []
    index = [name for name in index_columns(table) if name not in {*leave_out, *_asked(options)}]
    leave_out.update((name, "the index of a data frame") for name in index)
    notes += [f"The index of a data frame was left out: {listing(index)}."] if index else []
    return leave_out, notes


def _asked(options: FitOptions) -> list[str]:
    """Columns whose kind the user names; of a date also with its format behind it."""
    dates = [part for given in options.date for part in (given, given.rpartition("=")[0])]
    return [*options.text, *options.category, *options.number, *dates]


def index_columns(table: pa.Table) -> list[str]:
    """Columns that pandas made of a data frame's index: they number or name its rows."""
    try:
        stored = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}"))
        named = [name for name in stored["index_columns"] if isinstance(name, str)]
    except (ValueError, TypeError, KeyError):
        named = []
    return [
        name
        for name in table.column_names
        if name in named
        or re.fullmatch(r"__index_level_\d+__", name)
        or (name == "" and _are_whole(table.column(name)))
    ]


def _are_whole(column: pa.ChunkedArray) -> bool:
    try:
        values = numbers(plain_column(column))
    except pa.ArrowException:
        return False
    return bool((values == np.floor(values)).all())  # never true of NaN


def added_names(target: str) -> list[str]:
    """Names of the columns that the output adds."""
    return [f"{target}_{name}" for name in ADDED]


def earlier_output(names: Sequence[str], target: str, classes: Sequence[str] = ()) -> list[str]:
    """Columns of an earlier output, which are replaced; raise if a user's own is named so."""
    added = added_names(target)
    own = [name for name in added if name in names]
    if not own:
        return []
    if not set(added) - set(own) <= {f"{target}_origin"}:
        check_free(added, names, ())
    return own + [name for name in (f"{target}_vote_{c}" for c in classes) if name in names]


def check_free(added: Sequence[str], names: Sequence[str], replaced: Sequence[str]) -> None:
    """Raise if a column of the user's own is named like one that is added."""
    taken = [name for name in added if name in names and name not in replaced]
    if taken:
        raise UserError(
            f"The table has columns of its own where the result is written: {listing(taken)}.",
            "Rename them: columns of yours are never replaced.",
        )


def table_encoder(
    names: Sequence[str], leave_out: dict[str, str], options: FitOptions, *, sparse: bool = False
) -> TableEncoder:
    """The encoder that the options ask for.

    ``leave_out`` is what :func:`columns_left_out` gives, ``names`` those of the table's columns;
    ``sparse``: whether the learner takes sparse rows.
    """
    dates = dict(_date_format(name, names) for name in options.date)
    kinds = {"text": options.text, "category": options.category, "number": options.number}
    for option, named in [*kinds.items(), ("date", dates)]:
        for name in named:
            require_name(names, name, f"--{option}")
    encoder = TableEncoder(date=dates, drop=leave_out, sparse=sparse, missing_label=None)
    return encoder.set_params(**kinds)


def _date_format(given: str, names: Sequence[str]) -> tuple[str, str | None]:
    """Column and format of ``born`` or ``born=%d/%m/%Y``; a column's own name may have a =."""
    name, equals, form = given.rpartition("=")
    return (name, form) if equals and given not in names else (given, None)
