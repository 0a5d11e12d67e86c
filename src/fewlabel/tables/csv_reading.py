"""Text tables: CSV and TSV as users have them, and what to say of those that cannot be read."""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from pathlib import Path
from typing import Any

from fewlabel._core.errors import UserError, listing, shorten
from fewlabel._core.optional import pa
from fewlabel.encoding.frames import DELIMITER

_DELIMITERS = ",;\t|"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# A table remembers, among what it says about itself, how its text was written.
MARK = b"fewlabel:byte-order-mark"
# One cell, or one row, may be as long as a block of the parser.
_BLOCK_BYTES = 64 * 2**20


def read_csv(data: bytes, path: Path, kind: str, encoding: str) -> pa.Table:
    """A text table, every cell as it stands there."""
    from pyarrow import csv as pa_csv

    style: dict[bytes, str] = {MARK: "yes"} if data.startswith(BYTE_ORDER_MARK) else {}
    data = as_utf8(data, path, encoding)
    names, delimiter = header(data, path, kind)
    check_names(names, path)
    try:
        table = pa_csv.read_csv(
            io.BytesIO(data), **csv_options(names, delimiter, "utf-8", _BLOCK_BYTES)
        )
    except pa.ArrowInvalid as error:
        raise explained_csv(str(error), path, open_quote=bool(data.count(b'"') % 2)) from error
    _check_quotes(data, table, path)
    return table.replace_schema_metadata(style | ({DELIMITER: delimiter} if kind == "csv" else {}))


def csv_options(
    names: list[str], delimiter: str, encoding: str, block_bytes: int
) -> dict[str, Any]:
    """How pyarrow shall read text: every cell as it stands there."""
    from pyarrow import csv as pa_csv

    return {
        "read_options": pa_csv.ReadOptions(
            column_names=names,
            skip_rows_after_names=1,
            block_size=block_bytes,
            use_threads=False,  # only then does an error name the row
            encoding=encoding,
        ),
        "parse_options": pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        "convert_options": pa_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
        ),
    }


def table_header(start: bytes, path: Path, kind: str, encoding: str) -> tuple[list[str], str]:
    """Column names and delimiter of a text table, from its first bytes."""
    try:  # the last character may be cut
        text = codecs.getincrementaldecoder(encoding)().decode(start)
    except (LookupError, UnicodeError):
        return header(as_utf8(start, path, encoding), path, kind)
    return header(as_utf8(text.encode(), path, "utf-8"), path, kind)


def as_utf8(data: bytes, path: Path, encoding: str) -> bytes:
    """Text in UTF-8 without a byte order mark, or an error that names what it is instead."""
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
    return data.removeprefix(BYTE_ORDER_MARK)


def _not_utf8(path: Path) -> UserError:
    return UserError(
        f"'{shorten(path)}' is not UTF-8 text.",
        "Save it as UTF-8, or add --encoding latin-1 (or cp1252, …) for what it is.",
    )


def header(data: bytes, path: Path, kind: str) -> tuple[list[str], str]:
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


def explained_csv(message: str, path: Path, *, open_quote: bool) -> UserError:
    """What pyarrow says of text that is no table, for people."""
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


def check_names(names: list[str], path: Path) -> None:
    """Raise unless the columns have different names, and there are two or more."""
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
