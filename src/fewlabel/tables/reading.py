"""Read and write tables: CSV, TSV, JSON lines and Parquet, compressed too.

A table is a :class:`pyarrow.Table`. Text formats keep every cell as the text that stands in the
file, so that writing the table again does not change numbers or dates; what the cells *mean* is
decided in :mod:`fewlabel.tables.columns`.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from fewlabel._core.errors import UserError, listing, shorten
from fewlabel.tables.csv_writing import CHUNK_ROWS, python_cells, write_csv

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".txt": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
_ELSEWHERE = {
    ".xlsx": "Excel",
    ".xls": "Excel",
    ".ods": "LibreOffice",
    ".json": "plain JSON",
    ".feather": "Feather",
    ".sav": "SPSS",
    ".dta": "Stata",
    ".pkl": "pickle",
    ".zip": "zip",
}
_DELIMITERS = ",;\t|"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# A table remembers, among what it says about itself, how its text was written.
_DELIMITER = b"fewlabel:delimiter"
_MARK = b"fewlabel:byte-order-mark"
# One cell, or one row, may be as long as a block of the parser.
_BLOCK_BYTES = 64 * 2**20


def table_format(path: Path) -> tuple[str, str]:
    """Format and compression ("" for none) by the file's name."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = suffixes.pop() if suffixes and suffixes[-1] in COMPRESSIONS else ""
    suffix = suffixes[-1] if suffixes else ""
    if suffix in FORMATS:
        return FORMATS[suffix], compression
    kind = f"is a {_ELSEWHERE[suffix]} file" if suffix in _ELSEWHERE else "has no known ending"
    raise UserError(
        f"'{shorten(path)}' {kind}.",
        f"Save the table as CSV (.csv), or as one of {', '.join(sorted(set(FORMATS)))}, each also "
        f"compressed ({', '.join(COMPRESSIONS)}).",
    )


def read_table(path: Path, *, encoding: str = "utf-8") -> pa.Table:
    """Read a table; a :class:`UserError` says what is wrong with it.

    Parameters
    ----------
    path : Path
        The ending tells the format.
    encoding : str, default="utf-8"
        Of text formats.
    """
    path = Path(path)
    kind, compression = table_format(path)
    data = _read_bytes(path, compression)
    if not data:
        raise UserError(f"'{shorten(path)}' is empty.", "Check that it was saved completely.")
    reader = {"csv": _read_csv, "tsv": _read_csv, "jsonl": _read_jsonl, "parquet": _read_parquet}
    table = reader[kind](data, path, kind, encoding)
    _check_names(table.column_names, path)
    if table.num_rows == 0:
        raise UserError(f"'{shorten(path)}' has a header but no rows.", "Add the rows.")
    return table


def _read_bytes(path: Path, compression: str) -> bytes:
    import lzma
    import zlib

    name = shorten(path)
    if not path.exists():
        raise UserError(f"There is no file '{name}'.", "Check the name and the folder.")
    if path.is_dir():
        raise UserError(f"'{name}' is a folder.", "Name a file in it.")
    try:
        with _opener(compression)(path, "rb") as file:
            return file.read()
    except PermissionError as error:
        raise UserError(f"'{name}' may not be read.", "Ask for the right to read it.") from error
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        if not compression:
            raise
        raise UserError(
            f"'{name}' cannot be decompressed ({error}).",
            "It may be cut off, or not be what its ending says; decompress it by hand.",
        ) from error


def _opener(compression: str) -> Callable[..., IO[bytes]]:
    import bz2
    import gzip
    import lzma

    def zstandard(path: Path, mode: str) -> Any:
        import pyarrow as pa

        if mode == "rb":
            return pa.CompressedInputStream(pa.OSFile(str(path), "rb"), "zstd")
        return pa.CompressedOutputStream(pa.OSFile(str(path), "wb"), "zstd")

    openers: dict[str, Callable[..., Any]] = {
        "": open,
        ".gz": gzip.open,
        ".bz2": bz2.open,
        ".xz": lzma.open,
        ".zst": zstandard,
    }
    return openers[compression]


# --- text ------------------------------------------------------------------------------------


def _read_csv(data: bytes, path: Path, kind: str, encoding: str) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv as pa_csv

    style: dict[bytes, str] = {_MARK: "yes"} if data.startswith(_BYTE_ORDER_MARK) else {}
    data = _as_utf8(data, path, encoding)
    names, delimiter = _header(data, path, kind)
    _check_names(names, path)
    try:
        table = pa_csv.read_csv(
            io.BytesIO(data),
            read_options=pa_csv.ReadOptions(
                column_names=names,
                skip_rows_after_names=1,
                block_size=_BLOCK_BYTES,
                use_threads=False,  # only then does an error name the row
            ),
            parse_options=pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        raise _explained(str(error), path, open_quote=bool(data.count(b'"') % 2)) from error
    _check_quotes(data, table, path)
    return table.replace_schema_metadata(style | ({_DELIMITER: delimiter} if kind == "csv" else {}))


def delimiter_of(table: pa.Table) -> str:
    """What parted the cells of the CSV file that a table was read from; empty for other formats."""
    return str((table.schema.metadata or {}).get(_DELIMITER, b"").decode())


def _as_utf8(data: bytes, path: Path, encoding: str) -> bytes:
    name = shorten(path)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") and encoding == "utf-8":
        raise UserError(f"'{name}' is UTF-16 text.", "Add --encoding utf-16.")
    try:
        if encoding.lower() not in ("utf-8", "utf8"):
            data = data.decode(encoding).encode()
    except LookupError as error:
        raise UserError(
            f"'{shorten(encoding)}' is not an encoding that Python knows.",
            "Try latin-1, cp1252 or utf-16.",
        ) from error
    except UnicodeError as error:
        raise UserError(
            f"'{name}' is not {encoding} text ({error}).", "Try another --encoding."
        ) from error
    if b"\x00" in data:
        raise UserError(
            f"'{name}' holds zero bytes: it is not a text table.",
            "Save the table as UTF-8 CSV, or check the file's ending.",
        )
    return data.removeprefix(_BYTE_ORDER_MARK)


def _not_utf8(path: Path) -> UserError:
    return UserError(
        f"'{shorten(path)}' is not UTF-8 text.",
        "Save it as UTF-8, or add --encoding latin-1 (or cp1252, …) for what it is.",
    )


def _header(data: bytes, path: Path, kind: str) -> tuple[list[str], str]:
    """Column names, and the delimiter that splits the first line into most of them."""
    # A view of the first lines; the header may contain quoted line breaks.
    start = data[: 2**20]
    try:
        text = start[: max(start.rfind(b"\n"), start.rfind(b"\r")) + 1 or None].decode()
    except UnicodeDecodeError as error:
        raise _not_utf8(path) from error
    candidates = "\t" if kind == "tsv" else _DELIMITERS
    limit = csv.field_size_limit(2**31 - 1)  # a setting of the whole process: put back at once
    try:
        # newline="": old files end their lines with a carriage return alone.
        headers = {
            d: next(csv.reader(io.StringIO(text, newline=""), delimiter=d), []) for d in candidates
        }
    finally:
        csv.field_size_limit(limit)
    delimiter = max(candidates, key=lambda d: len(headers[d]))
    names = headers[delimiter]
    if not any(name.strip() for name in names):
        raise UserError(
            f"The first line of '{shorten(path)}' is blank; it must name the columns.",
            "Put the column names into the first line.",
        )
    return names, delimiter


def _explained(message: str, path: Path, *, open_quote: bool) -> UserError:
    name = shorten(path)
    if "invalid UTF8" in message:
        return _not_utf8(path)
    if "straddl" in message:
        return UserError(
            f"'{name}' has a row longer than {_BLOCK_BYTES // 2**20} MiB.",
            "Look for a quotation mark that is never closed, or drop the long column.",
        )
    what = shorten(message.removeprefix("CSV parse error: "), 160)
    if open_quote:
        return UserError(
            f"'{name}' has a quotation mark that is never closed: {what}",
            "Close the quotation mark, or double it if it is part of the text.",
        )
    return UserError(
        f"'{name}' is not a regular table: {what}",
        "Every row needs as many cells as the first line; put cells that contain the separator "
        'into quotes ("like, this").',
    )


def _check_quotes(data: bytes, table: pa.Table, path: Path) -> None:
    # In a well-formed file quotes come in pairs. One left open swallows all that follows into one
    # cell of the last row, which would otherwise be lost without a word.
    if data.count(b'"') % 2 and table.num_rows:
        last = [column[-1].as_py() or "" for column in table.columns]
        if any("\n" in cell or "\r" in cell for cell in last):
            raise UserError(
                f"'{shorten(path)}' has a quotation mark that is never closed: row "
                f"{table.num_rows} swallows the rest of the file.",
                "Close the quotation mark.",
            )


def _read_jsonl(data: bytes, path: Path, kind: str, encoding: str) -> pa.Table:
    import pyarrow as pa
    from pyarrow import json as pa_json

    data = _as_utf8(data, path, encoding)
    name = shorten(path)
    try:
        table = pa_json.read_json(
            io.BytesIO(data),
            read_options=pa_json.ReadOptions(block_size=_BLOCK_BYTES, use_threads=False),
            parse_options=pa_json.ParseOptions(newlines_in_values=False),
        )
        data.decode()
        table.validate(full=True)  # half a surrogate pair is no character
    except UnicodeDecodeError as error:
        raise _not_utf8(path) from error
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UserError(
            f"'{name}' is not a table in JSON lines: {shorten(error, 160)}.",
            'Each line must be one object of plain values, such as {"age": 31, "segment": "a"}, '
            "and a key must have the same type in all lines.",
        ) from error
    return _flat(table, path)


def _read_parquet(data: bytes, path: Path, kind: str, encoding: str) -> pa.Table:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(pa.BufferReader(data))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UserError(
            f"'{shorten(path)}' is not a readable Parquet file: {shorten(error, 120)}.",
            "Check that it was copied completely.",
        ) from error
    return _flat(table, path)


def _flat(table: pa.Table, path: Path) -> pa.Table:
    import pyarrow as pa

    nested = [field.name for field in table.schema if pa.types.is_nested(field.type)]
    if nested:
        raise UserError(
            f"Columns of '{shorten(path)}' hold lists or objects: {listing(nested)}.",
            "Flatten them into plain columns first.",
        )
    return table


def _check_names(names: list[str], path: Path) -> None:
    repeated = sorted(name for name, times in Counter(names).items() if times > 1)
    if repeated:
        raise UserError(
            f"Columns of '{shorten(path)}' have the same name: {listing(repeated)}.",
            "Give every column a name of its own in the first line.",
        )
    if len(names) < 2:
        raise UserError(
            f"'{shorten(path)}' has one column only ({listing(names)}).",
            "A table needs the target and at least one other column; check the separator "
            "(comma, semicolon, tab or |).",
        )


def column_names(path: Path) -> list[str]:
    """Names of the columns of a text table, for shell completion: nothing if they are not clear."""
    try:
        kind, compression = table_format(path)
        with _opener(compression)(path, "rb") as file:
            return _header(file.read(2**16), path, kind)[0] if kind in ("csv", "tsv") else []
    except (UserError, OSError, EOFError):
        return []


# --- writing ---------------------------------------------------------------------------------


def write_table(table: pa.Table, path: Path, kind: str, compression: str = "") -> None:
    """Write a table. CSV and TSV cells that a spreadsheet would run are disarmed.

    A table that was read from CSV is written with its delimiter and byte order mark.
    """
    with _opener(compression)(path, "wb") as file:
        if kind == "parquet":
            from pyarrow import parquet

            parquet.write_table(_without_style(table), file)
            return
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        if kind == "jsonl":
            for row in _rows(table):
                text.write(json.dumps(row, ensure_ascii=False, default=_as_text) + "\n")
        else:
            if _MARK in (table.schema.metadata or {}):
                text.write(_BYTE_ORDER_MARK.decode())
            write_csv(table, text, "\t" if kind == "tsv" else delimiter_of(table) or ",")
        text.flush()
        text.detach()  # the `with` closes the file


def _without_style(table: pa.Table) -> pa.Table:
    """How text was written is nothing that other formats should keep."""
    kept = {
        key: value
        for key, value in (table.schema.metadata or {}).items()
        if key not in (_DELIMITER, _MARK)
    }
    return table.replace_schema_metadata(kept or None)


def _as_text(value: Any) -> str:
    """What JSON has no type for; moments in ISO 8601, with their time zone."""
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    names = table.column_names
    for batch in table.to_batches(max_chunksize=CHUNK_ROWS):
        for cells in zip(*map(python_cells, batch.columns)):
            yield dict(zip(names, cells))
