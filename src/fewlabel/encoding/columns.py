"""From the columns of a table to numbers, by a default that says what it does.

A *plan* names, for each column, what it is taken for and what happens to it. It is made once, from
all rows (labelled or not), shown in the report and kept in the model file, so that new tables are
treated in the same way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fewlabel._core.errors import UserError, listing, shorten
from fewlabel.encoding.cells import (
    READERS,
    categories,
    empty_cells,
    filled_cells,
    find_notation,
    missing_numbers,
    plain_column,
    timestamps,
    written_numbers,
)

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from sklearn.compose import ColumnTransformer

MAX_CATEGORIES = 20
_LINES = 5

# A column is one of numbers (dates) if at least this share of its filled cells are.
_MOSTLY = 0.9
MOSTLY_IN_PART = 0.5
"""The same for some rows of a table, which may have more odd cells than the whole."""

_MANY_ODD = 10

# Text with more different values than this share of its rows names rows rather than kinds of rows.
_IDENTIFIER_SHARE = 0.9
_IDENTIFIER_ROWS = 20
# A column was filled together with the target if unlabelled rows have at most this share of the
# filled cells that labelled ones let expect. Where few are expected they may be absent by chance.
_FILLED_BESIDES = 0.05
_FEWEST_EXPECTED = 5
# Values may become equal in single precision up to this share of them: chance does so in a million.
_MERGED = 0.01

_TREATMENT = {
    "number": "used as it is; a missing value becomes the median, and a flag marks it",
    "yes/no": "1 for yes, 0 for no; a missing value becomes the median, and a flag marks it",
    "date": "becomes days since 1970, month and weekday; a missing date becomes the median",
    "category": f"one indicator for each value; rare values beyond {MAX_CATEGORIES - 1} share one",
}


@dataclass(frozen=True)
class Column:
    """What one column is taken for.

    Attributes
    ----------
    name : str
    kind : {"number", "yes/no", "date", "category", "left out"}
    treatment : str
        What happens to it, in words for the report.
    notation, sign : str
        How its numbers are written, and the percent sign or currency beside them; empty for plain
        numbers. See :data:`fewlabel.encoding.cells.NOTATIONS`.
    shift : float
        Subtracted from its numbers (the days of its dates) before they lose digits.
    """

    name: str
    kind: str
    treatment: str
    notation: str = ""
    sign: str = ""
    shift: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Its attributes; those that are usual are left out."""
        usual = {field.name: field.default for field in fields(self)}
        return {key: value for key, value in asdict(self).items() if value != usual[key]}

    def read(self, cells: pa.ChunkedArray) -> NDArray[np.float64]:
        """The numbers in cells of this column, NaN where there is none."""
        if self.notation:
            return written_numbers(cells, self.notation, self.sign)
        return READERS[self.kind](cells)


def plan_columns(
    table: pa.Table, *, leave_out: dict[str, str], comma_separated: bool = False
) -> list[Column]:
    """Decide what each column is.

    Parameters
    ----------
    table : pyarrow.Table
    leave_out : dict
        Columns that are no features, and why.
    comma_separated : bool
        Whether commas part the cells of the file; then one in a number needs more proof.
    """
    plan = [
        Column(name, "left out", leave_out[name])
        if name in leave_out
        else _plan(name, column, _unit(column), comma_separated)
        for name, column in zip(table.column_names, table.columns)
    ]
    if all(column.kind == "left out" for column in plan):
        reasons = "; ".join(f"'{shorten(c.name)}': {c.treatment}" for c in plan[:5])
        raise UserError(
            f"No column is left to learn from ({reasons}).", "Add columns that describe the rows."
        )
    return plan


def filled_with_labels(
    table: pa.Table, labeled: NDArray[np.bool_], skip: Collection[str]
) -> dict[str, str]:
    """Columns that are filled beside a label and hardly anywhere else, and why to skip them.

    They look like perfect features, since they are known for the rows that teach, and say nothing
    about the rows that are to be labelled.
    """
    found = {}
    for name, column in zip(table.column_names, table.columns):
        if name in skip:
            continue
        filled = ~empty_cells(plain_column(column))
        expected = filled[labeled].mean() * (~labeled).sum()
        n_besides = filled[~labeled].sum()
        if expected >= _FEWEST_EXPECTED and n_besides <= _FILLED_BESIDES * expected:
            found[name] = (
                f"filled in {filled[labeled].sum():,} labelled rows and {n_besides:,} others: it "
                f"says nothing about the rows to label"
            )
    return found


def left_out_lines(plan: Collection[Column], asked: Collection[str]) -> list[str]:
    """Tell which columns are left out though nobody asked for it."""
    return few_lines(
        f"column '{shorten(column.name)}' was left out: {column.treatment}"
        for column in plan
        if column.kind == "left out" and column.name not in asked
    )


def few_lines(about_columns: Iterable[str]) -> list[str]:
    """The first lines, and how many more there are: a table may have thousands of columns."""
    lines = list(about_columns)
    n_more = len(lines) - _LINES
    return lines if n_more <= 0 else [*lines[:_LINES], f"and {n_more:,} more columns"]


def _unit(column: pa.ChunkedArray) -> str:
    import pyarrow as pa

    timed = pa.types.is_duration(column.type) or pa.types.is_time(column.type)
    return "in seconds; " if timed else ""


def _plan(name: str, column: pa.ChunkedArray, unit: str, comma_separated: bool) -> Column:
    import pyarrow as pa
    from pyarrow import compute as pc

    column = plain_column(column)
    try:
        kind, n_odd, notation, sign = _kind(column, comma_separated)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        why = f"its type, {shorten(column.type)}, is neither number nor text"
        return Column(name, "left out", why)
    n_different = pc.count_distinct(filled_cells(column), mode="only_valid").as_py()
    if n_different == 0:
        return Column(name, "left out", "every cell is empty")
    if n_different == 1 and filled_cells(column).null_count == 0:
        return Column(name, "left out", "all rows have the same value")
    if kind == "category" and _names_rows(n_different, len(column)):
        return Column(name, "left out", "nearly every row has its own text: a name or free text")
    odd = f"; {n_odd} cells that are no {kind} count as missing" if n_odd else ""
    written = f"written like {notation} {sign}".strip() + "; " if notation else ""
    planned = Column(name, kind, unit + written + _TREATMENT[kind] + odd, notation, sign)
    if kind not in ("number", "date"):
        return planned
    values = planned.read(column)
    may_count = pa.types.is_integer(column.type) or pa.types.is_string(column.type)
    if kind == "number" and may_count and _is_counter(values, n_different):
        return Column(name, "left out", "counts the rows: a row number or identifier")
    return _shifted(planned, values[np.isfinite(values)])


def _shifted(planned: Column, values: NDArray[np.float64]) -> Column:
    """The plan of a column whose values stay apart in single precision, in which forests compute.

    Moments in seconds are the example: from 1970 on, two within a minute are the same there.
    """
    different = np.unique(values)
    n_merged = _n_merged(different)
    if n_merged <= _MERGED * len(different):
        return planned
    middle = float(np.median(values))
    if _n_merged(different - middle) > n_merged / 2:
        return planned
    why = f"; counted from {middle:.10g}, since forests do not tell such long numbers apart"
    return replace(planned, treatment=planned.treatment + why, shift=middle)


def _n_merged(different: NDArray[np.float64]) -> int:
    return len(different) - len(np.unique(different.astype(np.float32)))


def _names_rows(n_different: int, n_rows: int) -> bool:
    return n_rows >= _IDENTIFIER_ROWS and n_different > _IDENTIFIER_SHARE * n_rows


def _is_counter(values: np.ndarray, n_different: int) -> bool:
    n = len(values)
    return bool(
        n >= _IDENTIFIER_ROWS
        and n_different == n
        and np.nanmax(values) - np.nanmin(values) == n - 1
    )


def _kind(column: pa.ChunkedArray, comma_separated: bool) -> tuple[str, int, str, str]:
    """What a column is taken for, how many filled cells do not fit, notation and sign."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_boolean(kind):
        return "yes/no", 0, "", ""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number", 0, "", ""
    if pa.types.is_temporal(kind):
        return "date", 0, "", ""
    filled = int((~missing_numbers(column)).sum())
    for name, read in READERS.items():
        fitting = int(np.isfinite(read(column)).sum())
        if fitting == filled > 0:
            return name, 0, "", ""
        if name != "yes/no" and fitting >= _MOSTLY * filled > 0:
            # Thousands may be the only cells that no plain number explains.
            whole = name == "number" and _written(column, filled, filled, comma_separated)
            if whole and _agree(read(column), written_numbers(column, *whole[2:])):
                return whole
            return name, filled - fitting, "", ""
    return _written(column, filled, _MOSTLY * filled, comma_separated) or ("category", 0, "", "")


def _agree(plain: NDArray[np.float64], written: NDArray[np.float64]) -> bool:
    """Whether a notation leaves plain numbers what they are."""
    known = np.isfinite(plain)
    return bool((plain[known] == written[known]).all())


def _written(
    column: pa.ChunkedArray, filled: int, n_fewest: float, comma_separated: bool
) -> tuple[str, int, str, str] | None:
    found = find_notation(column, n_fewest=n_fewest, comma_separated=comma_separated)
    return found and ("number", filled - found[2], found[0], found[1])


# --- features --------------------------------------------------------------------------------


def to_frame(
    table: pa.Table,
    plan: Collection[Column],
    *,
    readable: float = _MOSTLY,
    notes: list[str] | None = None,
) -> pd.DataFrame:
    """The columns of a plan as numbers and categories, by name; other columns are ignored.

    Parameters
    ----------
    table : pyarrow.Table
    plan : collection of Column
    readable : float
        Share of the filled cells of a column that must be what the plan says; the others count as
        missing.
    notes : list of str, optional
        Gets a line for each column with such cells.
    """
    import pandas as pd

    used = [column for column in plan if column.kind != "left out"]
    absent = [column.name for column in used if column.name not in table.column_names]
    if absent:
        raise UserError(
            f"The table lacks columns that the model was trained with: {listing(absent)}.",
            "Add them (cells may be empty), or train a model without them (--drop).",
        )
    features: dict[str, Any] = {}
    for column in used:
        cells = plain_column(table.column(column.name))
        if column.kind == "category":
            features[column.name] = categories(cells)
            continue
        values = column.read(cells)
        note = _check_readable(column, cells, values, readable)
        if note and notes is not None:
            notes.append(note)
        names = _feature_names(column, plan)
        features[names[0]] = (values - column.shift).astype(np.float32)
        if column.kind == "date":
            moments = timestamps(cells)
            features[names[1]] = moments.dt.month.to_numpy(np.float32)
            features[names[2]] = moments.dt.day_of_week.to_numpy(np.float32)
    return pd.DataFrame(features, copy=False)


def _check_readable(
    column: Column, cells: pa.ChunkedArray, values: NDArray[np.float64], readable: float
) -> str:
    """Raise if too few cells are what they were in the plan; a note if some are not."""
    filled = ~empty_cells(cells)
    odd = np.flatnonzero(filled & np.isnan(values))
    if len(odd) == 0:
        return ""
    name, first = shorten(column.name), shorten(cells[int(odd[0])].as_py())
    n_filled = int(filled.sum())
    # Of a few cells many may be odd by chance, but not all.
    many = len(odd) >= _MANY_ODD or len(odd) == n_filled
    if many and n_filled - len(odd) < readable * n_filled:
        written = f", written like {column.notation} {column.sign}".rstrip()
        raise UserError(
            f"Column '{name}' held a {column.kind} when the model was trained"
            f"{written if column.notation else ''}; here {len(odd):,} of {n_filled:,} filled cells "
            f"cannot be read so (the first: '{first}').",
            "Write them as in the table of the training, or leave them empty.",
        )
    return (
        f"column '{name}': {len(odd):,} of {n_filled:,} filled cells hold no {column.kind} and "
        f"count as missing (the first: '{first}')"
    )


def _feature_names(column: Column, plan: Collection[Column]) -> list[str]:
    """Names of the numbers that a column becomes, unlike those of all other columns."""
    if column.kind != "date":
        return [column.name]
    taken = {other.name for other in plan}
    names = [f"{column.name} ({part})" for part in ("days", "month", "weekday")]
    while not taken.isdisjoint(names):
        names = [f"{name}*" for name in names]
    return names


def make_transformer(plan: Collection[Column]) -> ColumnTransformer:
    """The scikit-learn transformer for :func:`to_frame`'s result (not fitted)."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import OneHotEncoder

    numeric = [
        name for column in plan if column.kind in READERS for name in _feature_names(column, plan)
    ]
    categorical = [column.name for column in plan if column.kind == "category"]
    return ColumnTransformer(
        [
            ("numbers", SimpleImputer(strategy="median", add_indicator=True), numeric),
            (
                "categories",
                OneHotEncoder(
                    max_categories=MAX_CATEGORIES,
                    handle_unknown="infrequent_if_exist",
                    sparse_output=False,
                    dtype=np.float32,
                ),
                categorical,
            ),
        ],
        sparse_threshold=0,
        verbose_feature_names_out=False,
    )
