"""Formats whose cells have types: JSON, Parquet, Feather and Excel."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import IO, Any

from fewlabel._core.errors import UserError, shorten
from fewlabel._core.optional import pa, pc
from fewlabel.tables.csv_writing import (
    CHUNK_ROWS,
    as_text,
    formula_safe,
    json_text,
    one_kind_of_text,
    python_cells,
)

# One row may be as long as a block of the parser.
_BLOCK_BYTES = 64 * 2**20

# What a sheet of Excel can hold, and the characters that it cannot: those that XML has none for.
_EXCEL_ROWS, _EXCEL_COLUMNS, _EXCEL_LETTERS = 2**20, 2**14, 2**15 - 1
_NOT_IN_EXCEL = "[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]"

# --- reading ----------------------------------------------------------------------------------


def read_jsonl(data: bytes, name: str) -> pa.Table:
    """Objects, one in each line."""
    from pyarrow import json as pa_json

    try:
        table = pa_json.read_json(
            io.BytesIO(data),
            read_options=pa_json.ReadOptions(block_size=_BLOCK_BYTES, use_threads=False),
            parse_options=pa_json.ParseOptions(newlines_in_values=False),
        )
        data.decode()
        table.validate(full=True)  # half a surrogate pair is no character
    except UnicodeDecodeError as error:
        raise UserError(
            f"'{name}' is not UTF-8.", "Name its encoding, for example --encoding latin-1."
        ) from error
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UserError(
            f"'{name}' is not a table in JSON lines: {shorten(error, 160)}.",
            'Each line must be one object of plain values, such as {"age": 31, "segment": "a"}, '
            "and a key must have the same type in all lines.",
        ) from error
    return table


def read_json(data: bytes, name: str) -> pa.Table:
    """An array of objects; lines of objects are taken, too."""
    if not data.lstrip().startswith(b"["):
        return read_jsonl(data, name)
    try:
        rows = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"'{name}' is not JSON: {shorten(error, 120)}.", "Check that it was saved completely."
        ) from error
    if not all(isinstance(row, dict) for row in rows):
        raise UserError(
            f"'{name}' is a JSON array of something else than objects.",
            'Each row must be one object, such as {"age": 31, "segment": "a"}.',
        )
    if not rows:
        raise UserError(f"'{name}' is an empty JSON array.", "A table needs rows.")
    names = list(dict.fromkeys(key for row in rows for key in row))
    return _of_rows(names, [[row.get(key) for key in names] for row in rows])


# A thread of Arrow that still holds Python's bytes while the interpreter ends aborts the process:
# both formats are read by the thread that asks, and Parquet not through `read_table`, which hands
# the reading to others whatever it is told.


def read_parquet(data: bytes, name: str) -> pa.Table:
    """Parquet."""
    from pyarrow import parquet

    def read(source: pa.BufferReader) -> pa.Table:
        return parquet.ParquetFile(source).read(use_threads=False)

    return _of_arrow(read, "Parquet", data, name)


def read_feather(data: bytes, name: str) -> pa.Table:
    """Feather, which is Arrow's own file format."""
    from pyarrow import feather

    return _of_arrow(partial(feather.read_table, use_threads=False), "Feather", data, name)


def _of_arrow(
    read: Callable[[pa.BufferReader], pa.Table], kind: str, data: bytes, name: str
) -> pa.Table:
    try:
        table = read(pa.BufferReader(data))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UserError(
            f"'{name}' is not a readable {kind} file: {shorten(error, 120)}.",
            "Check that it was copied completely.",
        ) from error
    return table


def read_excel(data: bytes, name: str) -> pa.Table:
    """The first sheet of a workbook; its first row names the columns."""
    import zipfile

    workbook = openpyxl()
    try:
        book = workbook.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    except (zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
        raise UserError(
            f"'{name}' is not a readable Excel file: {shorten(error, 120)}.",
            "Save it as .xlsx anew, without a password.",
        ) from error
    sheet = [list(row) for row in book.worksheets[0].iter_rows(values_only=True)]
    sheet = [row for row in sheet if any(cell is not None for cell in row)]
    if not sheet:
        raise UserError(f"The first sheet of '{name}' is empty.", "Put the table there.")
    head = sheet[0]
    while head and head[-1] is None:
        head.pop()
    if any(cell is None for cell in head):
        raise UserError(
            f"A column of '{name}' has no name.", "Name every column in the first row of the sheet."
        )
    return _of_rows([str(cell) for cell in head], [row[: len(head)] for row in sheet[1:]])


def openpyxl() -> Any:
    """The package that reads and writes workbooks, or an error that says how to get it."""
    try:
        return import_module("openpyxl")
    except ImportError as error:
        raise UserError(
            "Excel files need the package openpyxl.", "pip install 'fewlabel[excel]'"
        ) from error


def _of_rows(names: list[str], rows: Sequence[Sequence[Any]]) -> pa.Table:
    """Cells of Python's types by column; where they differ, their texts."""
    columns = []
    for i in range(len(names)):
        cells = [row[i] if i < len(row) else None for row in rows]
        try:
            columns.append(pa.array(cells))
        except (pa.ArrowException, OverflowError):
            columns.append(pa.array([None if c is None else str(c) for c in cells], pa.string()))
    return pa.Table.from_arrays(columns, names=names)


# --- writing ----------------------------------------------------------------------------------


def _write_parquet(table: pa.Table, file: IO[bytes]) -> None:
    from pyarrow import parquet

    parquet.write_table(table, file)


def _write_feather(table: pa.Table, file: IO[bytes]) -> None:
    from pyarrow import feather

    feather.write_feather(table, file)


def write_jsonl(table: pa.Table, file: IO[bytes]) -> None:
    """Objects, one in each line."""
    for row in _rows(table):
        file.write(json_text(row).encode() + b"\n")


def write_json(table: pa.Table, file: IO[bytes]) -> None:
    """An array of objects."""
    for i, row in enumerate(_rows(table)):
        file.write((",\n" if i else "[\n").encode() + json_text(row).encode())
    file.write(b"\n]\n")


def write_excel(table: pa.Table, file: IO[bytes]) -> None:
    """A workbook of one sheet; texts that would be run are disarmed."""
    check_fits_excel(table)
    book = openpyxl().Workbook(write_only=True)
    sheet = book.create_sheet("table")
    sheet.append(_excel_cells(pa.array(table.column_names, pa.string())))
    for batch in table.to_batches(max_chunksize=CHUNK_ROWS):
        for row in zip(*map(_excel_cells, batch.columns)):
            sheet.append(row)
    book.save(file)


def check_fits_excel(table: pa.Table) -> None:
    """Raise if a table is more than a sheet holds: the writer would cut it off without a word."""
    if table.num_rows >= _EXCEL_ROWS or table.num_columns > _EXCEL_COLUMNS:
        raise UserError(
            f"The table has {table.num_rows:,} rows and {table.num_columns:,} columns, and a sheet "
            f"of Excel holds {_EXCEL_ROWS - 1:,} and {_EXCEL_COLUMNS:,}.",
            "Write another format, such as .csv or .parquet.",
        )
    for name, column in zip(table.column_names, table.columns):
        lengths = [_longest(_excel_text(chunk)) for chunk in column.chunks]
        if max(lengths, default=0) > _EXCEL_LETTERS:
            raise UserError(
                f"Column '{shorten(name)}' has a cell of {max(lengths):,} characters, and one of "
                f"Excel holds {_EXCEL_LETTERS:,}.",
                "Write another format, such as .csv or .parquet, or shorten the cells.",
            )


def _longest(column: pa.Array) -> int:
    is_text = pa.types.is_string(column.type)
    return pc.max(pc.utf8_length(column)).as_py() or 0 if is_text else 0


def _excel_cells(column: pa.Array) -> list[Any]:
    cells = python_cells(_excel_text(column))
    return [as_text(cell) if getattr(cell, "tzinfo", None) else cell for cell in cells]


def _excel_text(column: pa.Array) -> pa.Array:
    """Text as it is shown; other columns as they are."""
    column = one_kind_of_text(column)
    if not pa.types.is_string(column.type):
        return column
    return formula_safe(pc.replace_substring_regex(column, _NOT_IN_EXCEL, "\ufffd"))


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    names = table.column_names
    for batch in table.to_batches(max_chunksize=CHUNK_ROWS):
        for cells in zip(*map(python_cells, batch.columns)):
            yield dict(zip(names, cells))


READERS = {
    "json": read_json,
    "jsonl": read_jsonl,
    "parquet": read_parquet,
    "feather": read_feather,
    "excel": read_excel,
}
"""From the bytes of a file, and its name for messages, to a table."""

WRITERS = {
    "json": write_json,
    "jsonl": write_jsonl,
    "parquet": _write_parquet,
    "feather": _write_feather,
    "excel": write_excel,
}
"""Of a table to an open file."""
