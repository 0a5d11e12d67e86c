"""Read and write tables: CSV, TSV, JSON, Parquet, Feather and Excel, compressed too.

A table is a :class:`pyarrow.Table`. Text formats keep every cell as the text that stands in the
file, so that writing the table again does not change numbers or dates; what the cells *mean* is
decided in :mod:`fewlabel.encoding`.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from fewlabel._core.errors import UserError, shorten
from fewlabel._core.optional import pa
from fewlabel.encoding.cells import NOTATIONS
from fewlabel.encoding.frames import DECIMAL, DELIMITER
from fewlabel.tables.csv_reading import (
    BYTE_ORDER_MARK,
    MARK,
    as_utf8,
    check_names,
    header,
    read_csv,
)
from fewlabel.tables.csv_writing import write_csv
from fewlabel.tables.typed_formats import READERS, WRITERS, check_fits_excel, openpyxl

if TYPE_CHECKING:
    from fewlabel.encoding.columns import Column

FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".txt": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".feather": "feather",
    ".arrow": "feather",
    ".xlsx": "excel",
    ".parquet": "parquet",
    ".pq": "parquet",
}
STANDARD = Path("-")
"""Standard input, or output."""

COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
_ELSEWHERE = {
    ".xls": "an old Excel",
    ".ods": "a LibreOffice",
    ".sav": "an SPSS",
    ".dta": "a Stata",
    ".pkl": "a pickle",
    ".zip": "a zip",
}
_MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "feather",
    b"PK\x03\x04": "excel",
    b"[": "json",
    b"{": "jsonl",
}


def table_format(path: Path) -> tuple[str, str]:
    """Format and compression ("" for none) by the file's name."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = suffixes.pop() if suffixes and suffixes[-1] in COMPRESSIONS else ""
    suffix = suffixes[-1] if suffixes else ""
    if suffix in FORMATS:
        return FORMATS[suffix], compression
    known = _ELSEWHERE.get(suffix)
    kind = f"is {known} file" if known else "has no known ending"
    raise UserError(
        f"'{shorten(path)}' {kind}.",
        f"Save the table as CSV (.csv), or as one of {', '.join(sorted(set(FORMATS)))}, each also "
        f"compressed ({', '.join(COMPRESSIONS)}).",
    )


def read_table(path: Path, *, encoding: str = "utf-8", utf8_first: bool = False) -> pa.Table:
    """Read a table; a :class:`UserError` says what is wrong with it.

    Parameters
    ----------
    path : Path
        The ending tells the format.
    encoding : str, default="utf-8"
        Of text formats.
    utf8_first : bool, default=False
        Whether text that is UTF-8 is read as such, whatever ``encoding`` says.
    """
    path = Path(path)
    kind, data = _standard_input() if path == STANDARD else _file(path)
    if not data:
        raise UserError(f"'{shorten(path)}' is empty.", "Check that it was saved completely.")
    encoding = "utf-8" if utf8_first and _is_utf8(data) else encoding
    table = _read_as(kind, data, path, encoding)
    check_names(table.column_names, path)
    if table.num_rows == 0:
        raise UserError(f"'{shorten(path)}' has a header but no rows.", "Add the rows.")
    return table


def _read_as(kind: str, data: bytes, path: Path, encoding: str) -> pa.Table:
    if kind in ("csv", "tsv"):
        return read_csv(data, path, kind, encoding)
    if kind in ("json", "jsonl"):
        data = as_utf8(data, path, encoding)
    return READERS[kind](data, shorten(path))


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in data


def _file(path: Path) -> tuple[str, bytes]:
    if path.is_dir():
        raise UserError(f"'{shorten(path)}' is a folder.", "Name a file in it.")
    kind, compression = table_format(path)
    return kind, _read_bytes(path, compression)


def _standard_input() -> tuple[str, bytes]:
    """What is piped in, and its format by how it begins."""
    import gzip
    import sys
    import zlib

    data = sys.stdin.buffer.read()
    if data.startswith(b"\x1f\x8b"):
        try:
            data = gzip.decompress(data)
        except (EOFError, zlib.error, OSError) as error:
            raise _damaged("Standard input", error) from error
    start = data[:100].removeprefix(BYTE_ORDER_MARK).lstrip()
    kind = next((kind for mark, kind in _MAGIC.items() if start.startswith(mark)), "csv")
    return kind, data


def _read_bytes(path: Path, compression: str) -> bytes:
    import lzma
    import zlib

    name = shorten(path)
    if not path.exists():
        raise UserError(f"There is no file '{name}'.", "Check the name and the folder.")
    try:
        with _opener(compression)(path, "rb") as file:
            return file.read()
    except PermissionError as error:
        raise UserError(f"'{name}' may not be read.", "Ask for the right to read it.") from error
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        if not compression:
            raise
        raise _damaged(f"'{name}'", error) from error


def _damaged(what: str, error: Exception) -> UserError:
    return UserError(
        f"{what} cannot be decompressed ({error}).",
        "It may be cut off, or not be what its ending says; decompress it by hand.",
    )


def _opener(compression: str) -> Callable[..., IO[bytes]]:
    import bz2
    import gzip
    import lzma

    def zstandard(path: Path, mode: str) -> Any:
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


def decompressed(file: Any, path: Path) -> IO[bytes]:
    """An open file, or the name of a local one, that gives what was compressed."""
    compression = path.suffix.lower() if path.suffix.lower() in COMPRESSIONS else ""
    if compression == ".zst" and not isinstance(file, str):
        return pa.CompressedInputStream(pa.PythonFile(file), "zstd")
    if not compression and not isinstance(file, str):
        opened: IO[bytes] = file
        return opened
    return _opener(compression)(file, "rb")


def delimiter_of(table: pa.Table) -> str:
    """What parted the cells of the CSV file that a table was read from; empty for other formats."""
    return str((table.schema.metadata or {}).get(DELIMITER, b"").decode())


def with_notation(table: pa.Table, plan: Iterable[Column]) -> pa.Table:
    """The table that remembers decimal commas of its file: numbers that are added get them, too."""
    commas = any(column.notation and NOTATIONS[column.notation][1] == "," for column in plan)
    if not commas:
        return table
    return table.replace_schema_metadata({**(table.schema.metadata or {}), DECIMAL: ","})


def column_names(path: Path) -> list[str]:
    """Names of the columns of a text table, for shell completion: nothing if they are not clear."""
    try:
        kind, compression = table_format(path)
        with _opener(compression)(path, "rb") as file:
            return header(file.read(2**16), path, kind)[0] if kind in ("csv", "tsv") else []
    except (UserError, OSError, EOFError):
        return []


# --- writing ---------------------------------------------------------------------------------


def writable_format(path: Path) -> tuple[str, str]:
    """See :func:`table_format`; raise if a package for writing it is missing."""
    kind, compression = table_format(path)
    if kind == "excel":
        openpyxl()
    return kind, compression


def check_fits(table: pa.Table, kind: str) -> None:
    """Raise if a format cannot hold a table: better before it is labelled than after."""
    if kind == "excel":
        check_fits_excel(table)


def write_table(table: pa.Table, path: Path, kind: str, compression: str = "") -> None:
    """Write a table. CSV and TSV cells that a spreadsheet would run are disarmed.

    A table that was read from CSV is written with its delimiter and byte order mark.
    """
    with _opener(compression)(path, "wb") as file:
        write_to(table, file, kind)


def write_to(table: pa.Table, file: IO[bytes], kind: str) -> None:
    """Write a table to an open file, see :func:`write_table`."""
    if kind in WRITERS:
        WRITERS[kind](_without_style(table), file)
        return
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    if MARK in (table.schema.metadata or {}):
        text.write(BYTE_ORDER_MARK.decode())
    decimal = (table.schema.metadata or {}).get(DECIMAL, b".").decode()
    write_csv(table, text, "\t" if kind == "tsv" else delimiter_of(table) or ",", decimal)
    text.flush()
    text.detach()  # whoever opened the file closes it


def _without_style(table: pa.Table) -> pa.Table:
    """How text was written is nothing that other formats should keep."""
    kept = {
        key: value
        for key, value in (table.schema.metadata or {}).items()
        if key not in (DECIMAL, DELIMITER, MARK)
    }
    return table.replace_schema_metadata(kept or None)
