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


def write_csv(table: pa.Table, file: IO[str], delimiter: str = ",", decimal: str = ".") -> None:
    """Write formula-safe CSV text; ``decimal`` comes before the decimals of typed numbers."""
    import pyarrow as pa

    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow(formula_safe(pa.array(table.column_names, pa.string())).to_pylist())
    for batch in table.to_batches(max_chunksize=CHUNK_ROWS):
        columns = [_cells(column, decimal) for column in batch.columns]
        writer.writerows(zip(*columns))


def _cells(column: pa.Array, decimal: str) -> list[Any]:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    if pa.types.is_string(column.type):
        return list(formula_safe(column).to_pylist())
    if pa.types.is_boolean(column.type):
        return [None if v is None else ("true" if v else "false") for v in column.to_pylist()]
    if decimal != "." and pa.types.is_floating(column.type):
        return [None if v is None else str(v).replace(".", decimal) for v in column.to_pylist()]
    return list(column.to_pylist())


def formula_safe(column: pa.Array) -> pa.Array:
    """Put an apostrophe before text that a spreadsheet would take for a formula.

    These are cells that begin with ``=``, ``@``, ``+``, ``-``, a tab or a line break. A sign alone
    and numbers such as -1.5, -1.234,50 and -$5 stay as they are: there is nothing to run in them.
    """
    from pyarrow import compute as pc

    risky = pc.match_substring_regex(column, r"^\s*[=@+\-\t\r\n]")
    number = pc.match_substring_regex(column, _NUMBER)
    disarmed = pc.binary_join_element_wise("'", column, "")
    return pc.if_else(pc.and_(risky, pc.invert(number)), disarmed, column)
