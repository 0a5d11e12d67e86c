"""CSV text that a spreadsheet shows and does not run."""

from __future__ import annotations

import csv
import json
import math
from typing import IO, Any

from fewlabel._core.optional import pa, pc

CHUNK_ROWS = 50_000
"""Rows that are turned into Python objects at once."""

# One sign, digits and what parts them, a currency or percent sign.
_NUMBER = r"^ *[+-]? *([$€£¥]? *[.,]?\d[\d.,' ]*([eE][+-]?\d+)? *[%$€£¥]?)?$"

# Blanks, controls and format characters (no-break space, byte order mark), then what begins a
# formula, also in full width; or a tab or line break at once.
_RISKY = r"^([\s\pZ\pC]*[=@+\-＝＠＋－]|[\t\r\n])"


def write_csv(table: pa.Table, file: IO[str], delimiter: str = ",", decimal: str = ".") -> None:
    """Write formula-safe CSV text; ``decimal`` comes before the decimals of typed numbers."""
    style: dict[str, Any] = {"delimiter": delimiter, "lineterminator": _LineFeeds.BREAK}
    names = formula_safe(_without_zeros(pa.array(table.column_names, pa.string()))).to_pylist()
    # At the very start of a file, a byte order mark would not be read as part of the first name.
    quoting: Any = csv.QUOTE_ALL if names and names[0].startswith("\ufeff") else csv.QUOTE_MINIMAL
    csv.writer(_LineFeeds(file), quoting=quoting, **style).writerow(names)
    writer = csv.writer(_LineFeeds(file), **style)
    for batch in table.to_batches(max_chunksize=CHUNK_ROWS):
        columns = [_cells(column, decimal) for column in batch.columns]
        writer.writerows(zip(*columns))


class _LineFeeds:
    r"""Ends every row with ``\n``, though the writer believes that it is ``\r\n``.

    The writer quotes a cell if it holds the delimiter, a quotation mark or a character of the line
    end. With ``\n`` alone it would leave a cell with ``\r`` unquoted, and readers would see a new
    row there. It hands over one row at a time.
    """

    BREAK = "\r\n"

    def __init__(self, file: IO[str]) -> None:
        self.file = file

    def write(self, row: str) -> int:
        return self.file.write(row.removesuffix(self.BREAK) + "\n")


def _cells(column: pa.Array, decimal: str) -> list[Any]:
    column = one_kind_of_text(column)
    if pa.types.is_string(column.type):
        return list(formula_safe(_without_zeros(column)).to_pylist())
    if pa.types.is_boolean(column.type):
        return [None if v is None else ("true" if v else "false") for v in column.to_pylist()]
    if decimal != "." and pa.types.is_floating(column.type):
        return [None if v is None else str(v).replace(".", decimal) for v in column.to_pylist()]
    return python_cells(column)


def one_kind_of_text(column: pa.Array) -> pa.Array:
    """Texts of any type, bytes, lists and objects as plain text; other columns as they are."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        return column.cast(pa.string())
    if is_binary(column.type):
        return pa.array(python_cells(column), pa.string())
    if pa.types.is_nested(column.type):
        cells = column.to_pylist()
        return pa.array([None if c is None else json_text(c) for c in cells], pa.string())
    return column


def json_text(value: Any) -> str:
    """Strict JSON of a cell or row: null for numbers that JSON has no word for."""
    try:
        return _dumps(value)
    except ValueError:
        return _dumps(_without_infinities(value))


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=as_text)


def _without_infinities(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_infinities(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_infinities(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_text(value: Any) -> str:
    """What JSON has no type for; moments in ISO 8601, with their time zone."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)


def _without_zeros(column: pa.Array) -> pa.Array:
    """Text with the replacement character for zero bytes, with which a file is no text."""
    return pc.replace_substring(column, "\0", "\ufffd")


def is_binary(kind: pa.DataType) -> bool:
    """Whether cells of a type are bytes."""
    from pyarrow import types

    return bool(
        types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_binary_view(kind)
        or types.is_fixed_size_binary(kind)
    )


def python_cells(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Cells as Python objects; as text where Python has none: moments of far years, bytes."""
    if is_binary(column.type):
        return [
            None if cell is None else cell.decode(errors="replace") for cell in column.to_pylist()
        ]
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):
        if not pa.types.is_temporal(column.type):
            raise
    if pa.types.is_duration(column.type):
        return list(column.cast(pa.string()).to_pylist())
    return _far_moments(column)


def _far_moments(column: pa.Array | pa.ChunkedArray) -> list[str | None]:
    """Moments of any year in ISO 8601; Arrow's own text is wrong beyond the year 32767."""
    import numpy as np

    kind = column.type
    unit: Any = "D" if pa.types.is_date32(kind) else "ms"
    unit = kind.unit if pa.types.is_timestamp(kind) else unit
    numbers = column.cast(pa.int32() if unit == "D" else pa.int64()).to_pylist()
    zone = "Z" if pa.types.is_timestamp(kind) and kind.tz else ""
    moments = (None if n is None else np.datetime64(n, unit) for n in numbers)
    return [None if moment is None else str(moment) + zone for moment in moments]


def formula_safe(column: pa.Array) -> pa.Array:
    """Put an apostrophe before text that a spreadsheet would take for a formula.

    These are cells that begin with ``=``, ``@``, ``+``, ``-`` or a full-width form of them, perhaps
    behind blanks of any kind or characters that are not shown, and those that begin with a tab or a
    line break. A sign alone and numbers such as -1.5, -1.234,50 and -$5 stay as they are: there is
    nothing to run in them.
    """
    risky = pc.match_substring_regex(column, _RISKY)
    if not pc.any(risky).as_py():
        return column
    number = pc.match_substring_regex(column, _NUMBER)
    disarmed = pc.binary_join_element_wise("'", column, "")
    return pc.if_else(pc.and_(risky, pc.invert(number)), disarmed, column)
