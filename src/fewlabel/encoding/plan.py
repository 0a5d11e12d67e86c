"""The plan of a whole table: what was asked for, what repeats, what knows the labels."""

from __future__ import annotations

import difflib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fewlabel._core.errors import UserError, listing, shorten
from fewlabel._core.optional import pa
from fewlabel.encoding.cells import plain_column
from fewlabel.encoding.columns import Column, plan_column
from fewlabel.encoding.frames import is_comma_separated
from fewlabel.encoding.leakage import filled_with_labels, tell_labeled_apart

_LINES = 5
_FINGERPRINT_ROWS = 1_000


@dataclass(frozen=True)
class Asked:
    """What the user says that columns are.

    Attributes
    ----------
    kinds : dict
        From a column to "text", "category", "date" or "number".
    formats : dict
        From a column to the format of its dates.
    drop : dict
        From a column not to use to the reason.
    """

    kinds: dict[str, str]
    formats: dict[str, str]
    drop: dict[str, str]

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        *,
        drop: Iterable[str] | Mapping[str, str] | None,
        date: Iterable[str] | Mapping[str, str | None] | None,
        **others: Iterable[str] | None,
    ) -> Asked:
        """Checked against a table's names; dates may come with formats, drops with reasons."""
        reasons = {str(k): v for k, v in drop.items()} if isinstance(drop, Mapping) else {}
        leave_out = {str(name): reasons.get(str(name), "dropped on request") for name in drop or ()}
        formats = {str(k): v for k, v in date.items() if v} if isinstance(date, Mapping) else {}
        lists = {kind: tuple(map(str, given or ())) for kind, given in others.items()}
        lists |= {"date": tuple(map(str, date or ())), "drop": tuple(leave_out)}
        known = frozenset(names)
        for kind, given in lists.items():
            for name in given:
                if name not in known:
                    require_name(names, name, kind)
        kinds = {name: kind for kind, given in lists.items() if kind != "drop" for name in given}
        for name in kinds:
            if name in leave_out:
                raise UserError(
                    f"Column '{shorten(name)}' is named for a kind, and it is {leave_out[name]}.",
                    "Name each column once.",
                )
        named = [name for given in lists.values() for name in given]
        twice = sorted(name for name, n in Counter(named).items() if n > 1)
        if twice:
            raise UserError(
                f"Columns are named for two kinds: {listing(twice)}.", "Name each column once."
            )
        return cls(kinds, formats, leave_out)


def require_name(names: Sequence[str], wanted: str, option: str) -> None:
    """Raise unless a table has the column."""
    if wanted not in names:
        folded = {name.strip().lower(): name for name in names}
        near = difflib.get_close_matches(wanted.strip().lower(), list(folded), n=1, cutoff=0.6)
        hint = f"Did you mean '{shorten(folded[near[0]])}'? " if near else ""
        raise UserError(
            f"There is no column '{shorten(wanted)}' for {option}.",
            f"{hint}The columns are {listing(list(names), 12)}.",
        )


def make_plan(
    table: pa.Table, asked: Asked, labeled: NDArray[np.bool_] | None = None
) -> tuple[list[Column], list[str]]:
    """Decide what each column of a table is.

    Parameters
    ----------
    table : pyarrow.Table
    asked : Asked
    labeled : ndarray of bool, optional
        Which rows are labelled, to find columns that know it.

    Returns
    -------
    plan : list of Column
    warned : list of str
        Columns that differ between labelled and unlabelled rows, in words.
    """
    leave_out = dict(asked.drop)
    if labeled is not None:
        leave_out |= filled_with_labels(table, labeled, {*leave_out, *asked.kinds})
    plan = [
        Column(name, "left out", leave_out[name])
        if name in leave_out
        else plan_column(
            name,
            column,
            asked=asked.kinds.get(name),
            date_format=asked.formats.get(name),
            comma_separated=is_comma_separated(table),
        )
        for name, column in zip(table.column_names, table.columns)
    ]
    plan = _without_duplicates(table, plan, asked)
    warned: list[str] = []
    if labeled is not None:
        plan, warned = _without_leaks(table, plan, asked, labeled)
    check_something_left(plan)
    return plan, warned


def _without_leaks(
    table: pa.Table, plan: list[Column], asked: Asked, labeled: NDArray[np.bool_]
) -> tuple[list[Column], list[str]]:
    apart, shifted = tell_labeled_apart(table, plan, labeled)
    shifted |= {name: why for name, why in apart.items() if name in asked.kinds}
    plan = [
        Column(c.name, "left out", apart[c.name])
        if c.name in apart and c.name not in asked.kinds
        else c
        for c in plan
    ]
    return plan, [f"column '{shorten(name)}': {why}" for name, why in shifted.items()]


def _fingerprint(cells: pa.ChunkedArray) -> str:
    """The first cells as text; Python has no moments of far years, numbers they have."""
    first = cells.slice(0, _FINGERPRINT_ROWS)
    if pa.types.is_temporal(first.type):
        first = first.cast(pa.int32() if first.type.bit_width == 32 else pa.int64())
    return str(first.to_pylist())


def _without_duplicates(table: pa.Table, plan: list[Column], asked: Asked) -> list[Column]:
    seen: dict[str, str] = {}
    for i, column in enumerate(plan):
        if not column.used or column.name in asked.kinds:
            continue
        cells = plain_column(table.column(column.name))
        key = f"{column.kind} {_fingerprint(cells)}"
        if key in seen and _are_equal(cells, plain_column(table.column(seen[key]))):
            why = f"the same as column '{shorten(seen[key])}'"
            plan[i] = Column(column.name, "left out", why)
        else:
            seen.setdefault(key, column.name)
    return plan


def _are_equal(a: pa.ChunkedArray, b: pa.ChunkedArray) -> bool:
    if pa.types.is_floating(a.type) and pa.types.is_floating(b.type):
        return np.array_equal(a.to_numpy(), b.to_numpy(), equal_nan=True)
    return bool(a.equals(b))


def check_something_left(plan: Sequence[Column]) -> None:
    """Raise if no column is a feature."""
    if any(column.used for column in plan):
        return
    reasons = "; ".join(f"'{shorten(c.name)}': {c.treatment}" for c in plan[:5])
    raise UserError(
        f"No column is left to learn from ({reasons}).", "Add columns that describe the rows."
    )


def date_pairs(plan: Sequence[Column]) -> list[tuple[str, str]]:
    """Pairs of date columns whose difference is a feature: all of a few, each with the next."""
    dates = [column.name for column in plan if column.kind == "date"]
    if len(dates) <= 4:
        return [(a, b) for i, a in enumerate(dates) for b in dates[i + 1 :]]
    return list(pairwise(dates))


def with_pairs(plan: Sequence[Column], pairs: Sequence[tuple[str, str]]) -> list[Column]:
    """The plan that tells of differences between dates."""
    others: dict[str, list[str]] = defaultdict(list)
    for a, b in pairs:
        others[a].append(b)
    return [
        replace(
            column,
            treatment=f"{column.treatment}; the days from it to {listing(others[column.name])} are "
            f"features, too",
        )
        if column.name in others
        else column
        for column in plan
    ]


def left_out_lines(plan: Iterable[Column], asked: Collection[str]) -> list[str]:
    """Tell which columns are left out though nobody asked for it; those that leak come first."""
    columns = [column for column in plan if not column.used and column.name not in asked]
    columns.sort(key=lambda column: not leaks(column))
    return first_lines(map(left_out_line, columns))


def left_out_line(column: Column) -> str:
    """Tell why a column is left out."""
    return f"column '{shorten(column.name)}' was left out: {column.treatment}"


def leaks(column: Column) -> bool:
    """Whether a column is left out because it knows which rows are labelled."""
    return not column.used and "labelled rows" in column.treatment


def first_lines(about_columns: Iterable[str]) -> list[str]:
    """The first lines, and how many more there are: a table may have thousands of columns."""
    lines = list(about_columns)
    n_more = len(lines) - _LINES
    return lines if n_more <= 0 else [*lines[:_LINES], f"and {n_more:,} more columns"]
