"""CSV text that a spreadsheet shows and does not run."""

from __future__ import annotations

import csv
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK_ROWS = 50_000
"""Rows that are turned into Python objects at once."""

# One sign, digits and what parts them, a currency or percent sign.
_NUMBER = r"^ *[+-]? *([$€£¥]? *[.,]?\d[\d.,' ]*([eE][+-]?\d+)? *[%$€£¥]?)?$"

# Blanks, controls and format characters (no-break space, byte order mark), then what begins a
# formula, also in full width; or a tab or line break at once.
_RISKY = r"^([\s\pZ\pC]*[=@+\-＝＠＋－]|[\t\r\n])"


def write_csv(table: pa.Table, file: IO[str], delimiter: str = ",") -> None:
    """Write formula-safe CSV text."""
    import pyarrow as pa

    style: dict[str, Any] = {"delimiter": delimiter, "lineterminator": _LineFeeds.BREAK}
    names = formula_safe(pa.array(table.column_names, pa.string())).to_pylist()
    # At the very start of a file, a byte order mark would not be read as part of the first name.
    quoting: Any = csv.QUOTE_ALL if names and names[0].startswith("\ufeff") else csv.QUOTE_MINIMAL
    csv.writer(_LineFeeds(file), quoting=quoting, **style).writerow(names)
    writer = csv.writer(_LineFeeds(file), **style)
    for batch in table.to_batches(max_chunksize=CHUNK_ROWS):
        columns = [_cells(column) for column in batch.columns]
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


def _cells(column: pa.Array) -> list[Any]:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    if pa.types.is_string(column.type):
        return list(formula_safe(column).to_pylist())
    if pa.types.is_boolean(column.type):
        return [None if v is None else ("true" if v else "false") for v in column.to_pylist()]
    return list(column.to_pylist())


def formula_safe(column: pa.Array) -> pa.Array:
    """Put an apostrophe before text that a spreadsheet would take for a formula.

    These are cells that begin with ``=``, ``@``, ``+``, ``-`` or a full-width form of them, perhaps
    behind blanks of any kind or characters that are not shown, and those that begin with a tab or a
    line break. A sign alone and numbers such as -1.5, -1.234,50 and -$5 stay as they are: there is
    nothing to run in them.
    """
    from pyarrow import compute as pc

    risky = pc.match_substring_regex(column, _RISKY)
    number = pc.match_substring_regex(column, _NUMBER)
    disarmed = pc.binary_join_element_wise("'", column, "")
    return pc.if_else(pc.and_(risky, pc.invert(number)), disarmed, column)
