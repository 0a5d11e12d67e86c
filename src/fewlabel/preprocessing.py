"""From the columns of a table to numbers, by a default that says what it does.

A *plan* names, for each column, what it is taken for and what happens to it. It is made once, from
all rows (labelled or not), shown in the report and kept in the model file, so that new tables are
treated in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fewlabel._errors import UserError, listing, shorten

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from sklearn.compose import ColumnTransformer

MISSING_NUMBERS = ("", "na", "n/a", "#n/a", "nan", "null", "none", "?", "-")
"""Texts that mean "missing" in a column of numbers (whatever their case)."""

MISSING_CATEGORY = "(missing)"
MAX_CATEGORIES = 20

# A column is one of numbers (dates) if at least this share of its filled cells are.
_MOSTLY = 0.9
# Text with more different values than this share of its rows names rows rather than kinds of rows.
_IDENTIFIER_SHARE = 0.9
_IDENTIFIER_ROWS = 20
_ISO_DATE = r"^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?(Z|[+-]\d\d:?\d\d)?$"
_LARGEST = 1e38  # forests compute in single precision

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
    """

    name: str
    kind: str
    treatment: str

    def to_dict(self) -> dict[str, str]:
        return asdict(self)


def plan_columns(table: pa.Table, *, leave_out: dict[str, str]) -> list[Column]:
    """Decide what each column is.

    Parameters
    ----------
    table : pyarrow.Table
    leave_out : dict
        Columns that are no features, and why.
    """
    plan = [
        Column(name, "left out", leave_out[name])
        if name in leave_out
        else _plan(name, column, _unit(column))
        for name, column in zip(table.column_names, table.columns)
    ]
    if all(column.kind == "left out" for column in plan):
        reasons = "; ".join(f"'{shorten(c.name)}': {c.treatment}" for c in plan[:5])
        raise UserError(
            f"No column is left to learn from ({reasons}).", "Add columns that describe the rows."
        )
    return plan


def _unit(column: pa.ChunkedArray) -> str:
    import pyarrow as pa

    timed = pa.types.is_duration(column.type) or pa.types.is_time(column.type)
    return "in seconds; " if timed else ""


def _plan(name: str, column: pa.ChunkedArray, unit: str) -> Column:
    import pyarrow as pa
    from pyarrow import compute as pc

    column = plain_column(column)
    try:
        kind, n_odd = _kind(column)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        why = f"its type, {shorten(column.type)}, is neither number nor text"
        return Column(name, "left out", why)
    n_different = pc.count_distinct(_filled(column), mode="only_valid").as_py()
    if n_different == 0:
        return Column(name, "left out", "every cell is empty")
    if n_different == 1 and _filled(column).null_count == 0:
        return Column(name, "left out", "all rows have the same value")
    if kind == "category" and _names_rows(n_different, len(column)):
        return Column(name, "left out", "nearly every row has its own text: a name or free text")
    if kind == "number" and pa.types.is_integer(column.type) | (column.type == pa.string()):
        values = _numbers(column)
        if _is_counter(values, n_different):
            return Column(name, "left out", "counts the rows: a row number or identifier")
    odd = f"; {n_odd} cells that are no {kind} count as missing" if n_odd else ""
    return Column(name, kind, unit + _TREATMENT[kind] + odd)


def _names_rows(n_different: int, n_rows: int) -> bool:
    return n_rows >= _IDENTIFIER_ROWS and n_different > _IDENTIFIER_SHARE * n_rows


def _is_counter(values: np.ndarray, n_different: int) -> bool:
    n = len(values)
    return bool(
        n >= _IDENTIFIER_ROWS
        and n_different == n
        and np.nanmax(values) - np.nanmin(values) == n - 1
    )


def _kind(column: pa.ChunkedArray) -> tuple[str, int]:
    """What a column is taken for, and how many filled cells do not fit."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_boolean(kind):
        return "yes/no", 0
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number", 0
    if pa.types.is_temporal(kind):
        return "date", 0
    filled = int((~_missing_numbers(column)).sum())
    for name, read in _READERS.items():
        fitting = int(np.isfinite(read(column)).sum())
        if filled and fitting >= (1.0 if name == "yes/no" else _MOSTLY) * filled:
            return name, filled - fitting
    return "category", 0


# --- cells -----------------------------------------------------------------------------------


def plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column freed from how a file keeps it: any kind of text as text, times as seconds."""
    import pyarrow as pa
    from pyarrow import compute as pc

    if isinstance(column.type, pa.BaseExtensionType):
        kind = column.type.storage_type
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], kind)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind, types = column.type, pa.types
    if types.is_large_string(kind) or types.is_string_view(kind) or types.is_null(kind):
        return column.cast(pa.string())
    if types.is_duration(kind) or types.is_time(kind):
        make = pa.duration if types.is_duration(kind) else pa.time64
        microseconds = column.cast(make("us"), safe=False).cast(pa.int64())
        return pc.divide(microseconds.cast(pa.float64()), 1e6)
    return column


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa
    from pyarrow import compute as pc

    if not pa.types.is_string(column.type):
        column = column.cast(pa.string())
    return pc.utf8_trim_whitespace(column)


def _filled(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with blank text as null."""
    import pyarrow as pa
    from pyarrow import compute as pc

    if not pa.types.is_string(column.type):
        return column
    text = pc.utf8_trim_whitespace(column)
    return pc.if_else(pc.equal(text, ""), None, text)


def _missing_numbers(column: pa.ChunkedArray) -> np.ndarray:
    import pyarrow as pa
    from pyarrow import compute as pc

    text = pc.utf8_lower(_text(column))
    missing = pc.is_in(text, value_set=pa.array([*MISSING_NUMBERS, None], pa.string()))
    return np.asarray(missing)


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    """Numbers, NaN where there is none."""
    import pyarrow as pa
    from pyarrow import compute as pc

    if not pa.types.is_string(column.type):
        values = np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    else:
        text = _text(column)
        number = pc.match_substring_regex(
            text, r"^[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[iI]nf(inity)?)$"
        )
        plain = pc.utf8_ltrim(pc.if_else(number, text, None), "+")
        values = np.asarray(plain.cast(pa.float64()).to_numpy(), dtype=np.float64)
    return np.clip(values, -_LARGEST, _LARGEST)  # keeps NaN


def _booleans(column: pa.ChunkedArray) -> np.ndarray:
    import pyarrow as pa
    from pyarrow import compute as pc

    if pa.types.is_boolean(column.type):
        return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
    text = pc.utf8_lower(_text(column))
    yes = np.asarray(pc.is_in(text, value_set=pa.array(["true", "yes", "t", "y"])))
    no = np.asarray(pc.is_in(text, value_set=pa.array(["false", "no", "f", "n"])))
    return np.where(yes, 1.0, np.where(no, 0.0, np.nan))


def _timestamps(column: pa.ChunkedArray) -> pd.Series:
    import pandas as pd
    import pyarrow as pa
    from pyarrow import compute as pc

    if pa.types.is_temporal(column.type):
        series = pd.Series(np.asarray(column.cast(pa.timestamp("ms"), safe=False).to_numpy()))
        return pd.to_datetime(series, utc=True)
    text = _text(column)
    iso = pc.if_else(pc.match_substring_regex(text, _ISO_DATE), text, None)
    return pd.to_datetime(
        pd.Series(iso.to_pylist(), dtype=object), format="ISO8601", utc=True, errors="coerce"
    )


def _dates(column: pa.ChunkedArray) -> np.ndarray:
    """Days since 1970, NaN where there is no date."""
    # Milliseconds hold the year 9999, which stands for "no end"; nanoseconds stop in 2262.
    moments = _timestamps(column).dt.tz_convert(None).to_numpy().astype("datetime64[ms]")
    return np.where(np.isnat(moments), np.nan, moments.astype(np.int64) / 86_400_000.0)


_READERS: dict[str, Callable[[pa.ChunkedArray], np.ndarray]] = {
    "yes/no": _booleans,
    "number": _numbers,
    "date": _dates,
}
"""Kinds of columns that become numbers."""


def _categories(column: pa.ChunkedArray) -> np.ndarray:
    from pyarrow import compute as pc

    filled = pc.fill_null(_filled(_text(column)), MISSING_CATEGORY)
    return np.asarray(filled.to_pylist(), dtype=object)


# --- features --------------------------------------------------------------------------------


def to_frame(table: pa.Table, plan: Collection[Column]) -> pd.DataFrame:
    """The columns of a plan as numbers and categories, by name; other columns are ignored."""
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
            features[column.name] = _categories(cells)
            continue
        values = _READERS[column.kind](cells)
        if np.isnan(values).all() and _filled(cells).null_count < len(cells):
            raise UserError(
                f"Column '{shorten(column.name)}' held a {column.kind} when the model was "
                f"trained; here no cell does.",
                "Check that the columns of the table are the same.",
            )
        names = _feature_names(column, plan)
        features[names[0]] = values.astype(np.float32)
        if column.kind == "date":
            moments = _timestamps(cells)
            features[names[1]] = moments.dt.month.to_numpy(np.float32)
            features[names[2]] = moments.dt.day_of_week.to_numpy(np.float32)
    return pd.DataFrame(features, copy=False)


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

    numbers = [
        name for column in plan if column.kind in _READERS for name in _feature_names(column, plan)
    ]
    categories = [column.name for column in plan if column.kind == "category"]
    return ColumnTransformer(
        [
            ("numbers", SimpleImputer(strategy="median", add_indicator=True), numbers),
            (
                "categories",
                OneHotEncoder(
                    max_categories=MAX_CATEGORIES,
                    handle_unknown="infrequent_if_exist",
                    sparse_output=False,
                    dtype=np.float32,
                ),
                categories,
            ),
        ],
        sparse_threshold=0,
        verbose_feature_names_out=False,
    )
