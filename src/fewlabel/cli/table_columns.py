"""Which columns of a table are features, how they are read, and which labels it has."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fewlabel._core.errors import UserError, listing, shorten
from fewlabel.encoding.columns import Column
from fewlabel.encoding.encoder import TableEncoder
from fewlabel.tables.reading import read_table
from fewlabel.tables.target_column import (
    check_labels,
    check_not_regression,
    fold_labels,
    require_column,
    target_labels,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from fewlabel.cli.workflow import FitOptions

ADDED = ("label", "origin", "confidence", "accepted")
"""Columns of the output, each behind the target's name and an underscore."""


def plan_table(path: Path, options: FitOptions) -> tuple[list[Column], list[str], int]:
    """What the columns of a table are taken for, remarks, and the number of features."""
    options.progress(f"reading {path.name}")
    table = read_table(path, encoding=options.encoding)
    leave_out, notes = columns_left_out(table, options)
    labels, _ = given_labels(table, options)
    labeled = np.array([label is not None for label in labels])
    encoder, X = encode_table(table, labeled, leave_out, options)
    return whole_plan(table, encoder, leave_out), [*notes, *encoder.warned_], X.shape[1]


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
    own = earlier_output(names, options.target)
    leave_out.update((name, "an earlier output of fewlabel") for name in own)
    notes = [f"Columns of an earlier output were replaced: {listing(own)}."] if own else []
    return leave_out, notes


def added_names(target: str) -> list[str]:
    """Names of the columns that the output adds."""
    return [f"{target}_{name}" for name in ADDED]


def earlier_output(names: Sequence[str], target: str) -> list[str]:
    """Columns of an earlier output, which are replaced; raise if a user's own is named so."""
    added = added_names(target)
    own = [name for name in added if name in names]
    if own and not set(added) - set(own) <= {f"{target}_origin"}:
        raise UserError(
            f"The table has columns of its own where the result is written: {listing(own)}.",
            "Rename them: columns of yours are never replaced.",
        )
    return own


def encode_table(
    table: pa.Table, labeled: NDArray[np.bool_], leave_out: dict[str, str], options: FitOptions
) -> tuple[TableEncoder, NDArray[Any]]:
    """The fitted encoder of a table without the columns that are no features, and the features.

    ``leave_out`` is what :func:`columns_left_out` gives, ``labeled`` which rows have a label.
    """
    names = [name for name in table.column_names if name not in leave_out]
    kinds = {"text": options.text, "category": options.category, "number": options.number}
    dates = dict(_date_format(name, table.column_names) for name in options.date)
    given = [*(name for named in kinds.values() for name in named), *dates]
    for option, named in [*kinds.items(), ("date", dates)]:
        for name in named:
            require_column(table.column_names, name, f"--{option}")
    reserved = [name for name in given if name in leave_out]
    if reserved:
        why = leave_out[reserved[0]]
        raise UserError(
            f"Column '{shorten(reserved[0])}' is named for a kind, and it is {why}.",
            "Name each column once.",
        )
    encoder = TableEncoder(
        text=options.text,
        category=options.category,
        number=options.number,
        date=dates,
        missing_label=None,
    )
    y = np.where(labeled, 1.0, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # told with the plan
        return encoder, encoder.fit_transform(table.select(names), y)


def table_encoder(
    names: Sequence[str], leave_out: dict[str, str], options: FitOptions
) -> TableEncoder:
    """The encoder that the options ask for.

    ``leave_out`` is what :func:`columns_left_out` gives, ``names`` those of the table's columns.
    """
    dates = dict(_date_format(name, names) for name in options.date)
    kinds = {"text": options.text, "category": options.category, "number": options.number}
    for option, named in [*kinds.items(), ("date", dates)]:
        for name in named:
            require_column(list(names), name, f"--{option}")
    return TableEncoder(date=dates, drop=list(leave_out), missing_label=None).set_params(**kinds)


def _date_format(given: str, names: Sequence[str]) -> tuple[str, str | None]:
    """Column and format of ``born`` or ``born=%d/%m/%Y``; a column's own name may have a =."""
    name, equals, form = given.rpartition("=")
    return (name, form) if equals and given not in names else (given, None)


def whole_plan(table: pa.Table, encoder: TableEncoder, leave_out: dict[str, str]) -> list[Column]:
    """The encoder's plan together with the columns that it did not see."""
    planned = {column.name: column for column in encoder.plan_}
    return [
        planned.get(name) or Column(name, "left out", leave_out[name])
        for name in table.column_names
    ]
