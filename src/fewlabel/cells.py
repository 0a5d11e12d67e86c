"""What stands in the cells of a column: numbers, dates, yes or no, categories, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

MISSING_NUMBERS = ("", "na", "n/a", "#n/a", "nan", "null", "none", "?", "-")
"""Texts that mean "missing" in a column of numbers (whatever their case)."""

MISSING_CATEGORY = "(missing)"

_ISO_DATE = r"^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?(Z|[+-]\d\d:?\d\d)?$"
_LARGEST = 1e38  # forests compute in single precision


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


def text_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The cells as text without blanks around it."""
    import pyarrow as pa
    from pyarrow import compute as pc

    if not pa.types.is_string(column.type):
        column = column.cast(pa.string())
    return pc.utf8_trim_whitespace(column)


def filled_cells(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with blank text as null."""
    import pyarrow as pa
    from pyarrow import compute as pc

    if not pa.types.is_string(column.type):
        return column
    text = pc.utf8_trim_whitespace(column)
    return pc.if_else(pc.equal(text, ""), None, text)


def missing_numbers(column: pa.ChunkedArray) -> np.ndarray:
    """Cells that are empty or say in words that there is no number."""
    import pyarrow as pa
    from pyarrow import compute as pc

    text = pc.utf8_lower(text_of(column))
    missing = pc.is_in(text, value_set=pa.array([*MISSING_NUMBERS, None], pa.string()))
    return np.asarray(missing)


def empty_cells(column: pa.ChunkedArray) -> np.ndarray:
    """Cells without a value, or with a text that means so."""
    import pyarrow as pa
    from pyarrow import compute as pc

    if pa.types.is_string(column.type):
        return missing_numbers(column)
    return np.asarray(pc.is_null(column, nan_is_null=True))


def numbers(column: pa.ChunkedArray) -> np.ndarray:
    """Numbers, NaN where there is none."""
    import pyarrow as pa
    from pyarrow import compute as pc

    if not pa.types.is_string(column.type):
        values = np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    else:
        text = text_of(column)
        number = pc.match_substring_regex(
            text, r"^[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[iI]nf(inity)?)$"
        )
        plain = pc.utf8_ltrim(pc.if_else(number, text, None), "+")
        values = np.asarray(plain.cast(pa.float64()).to_numpy(), dtype=np.float64)
    return np.clip(values, -_LARGEST, _LARGEST)  # keeps NaN


def booleans(column: pa.ChunkedArray) -> np.ndarray:
    """1 for yes, 0 for no, NaN where there is neither."""
    import pyarrow as pa
    from pyarrow import compute as pc

    if pa.types.is_boolean(column.type):
        return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
    text = pc.utf8_lower(text_of(column))
    yes = np.asarray(pc.is_in(text, value_set=pa.array(["true", "yes", "t", "y"])))
    no = np.asarray(pc.is_in(text, value_set=pa.array(["false", "no", "f", "n"])))
    return np.where(yes, 1.0, np.where(no, 0.0, np.nan))


def timestamps(column: pa.ChunkedArray) -> pd.Series:
    """Moments, NaT where there is none."""
    import pandas as pd
    import pyarrow as pa
    from pyarrow import compute as pc

    if pa.types.is_temporal(column.type):
        series = pd.Series(np.asarray(column.cast(pa.timestamp("ms"), safe=False).to_numpy()))
        return pd.to_datetime(series, utc=True)
    text = text_of(column)
    iso = pc.if_else(pc.match_substring_regex(text, _ISO_DATE), text, None)
    return pd.to_datetime(
        pd.Series(iso.to_pylist(), dtype=object), format="ISO8601", utc=True, errors="coerce"
    )


def dates(column: pa.ChunkedArray) -> np.ndarray:
    """Days since 1970, NaN where there is no date."""
    # Milliseconds hold the year 9999, which stands for "no end"; nanoseconds stop in 2262.
    moments = timestamps(column).dt.tz_convert(None).to_numpy().astype("datetime64[ms]")
    return np.where(np.isnat(moments), np.nan, moments.astype(np.int64) / 86_400_000.0)


READERS: dict[str, Callable[[pa.ChunkedArray], np.ndarray]] = {
    "yes/no": booleans,
    "number": numbers,
    "date": dates,
}
"""Kinds of columns that become numbers."""


def categories(column: pa.ChunkedArray) -> np.ndarray:
    """Texts, with one of its own for an empty cell."""
    from pyarrow import compute as pc

    filled = pc.fill_null(filled_cells(text_of(column)), MISSING_CATEGORY)
    return np.asarray(filled.to_pylist(), dtype=object)
