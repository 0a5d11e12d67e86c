"""Tables in files that need not fit in memory: Parquet and text, one file or many, by chunks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from fewlabel._core.errors import UserError, listing, shorten
from fewlabel._core.optional import pa
from fewlabel.chunks.files import PARQUET, find_files, is_address, is_pattern, open_file
from fewlabel.chunks.source import CHUNK_ROWS, unreadable
from fewlabel.encoding.cells import plain_column
from fewlabel.tables.csv_reading import check_names, csv_options, explained_csv, table_header
from fewlabel.tables.reading import COMPRESSIONS, decompressed, table_format

TEXT = (".csv", ".tsv", ".tab", ".txt")
ENDINGS = (*PARQUET, *TEXT, *(text + packed for text in TEXT for packed in COMPRESSIONS))
_BLOCK_BYTES = 16 * 2**20  # of text that is parsed at once: a few hundred thousand cells
_START_BYTES = 2**20  # in which the header must stand

# How many times its file a table in memory is, about, with what learning from it takes.
_TIMES = {"text": 12, "packed text": 40, "parquet": 30}


@dataclass(frozen=True)
class TableFiles:
    """A table in files with the same columns, read chunk by chunk, as often as needed.

    Attributes
    ----------
    title : str
        What the table is called.
    names : tuple of str
        The files, in the order of their rows: local ones, or addresses such as ``s3://…``.
    encoding : str
        Of text files.
    chunk_rows : int
        Rows of a chunk of Parquet.
    """

    title: str
    names: tuple[str, ...]
    encoding: str = "utf-8"
    chunk_rows: int = CHUNK_ROWS

    @classmethod
    def of(cls, source: str, *, encoding: str = "utf-8") -> TableFiles:
        """The files that a path, a pattern or an address stands for, or a :class:`UserError`."""
        try:
            names = find_files(source, ENDINGS)
        except OSError as error:
            raise UserError(
                f"'{shorten(source)}' cannot be read ({error}).", "Check it."
            ) from error
        strange = [name for name in names if not name.lower().endswith(ENDINGS)]
        if strange:
            raise UserError(
                f"'{shorten(strange[0])}' cannot be read in pieces.",
                f"Use files that end in {', '.join((*PARQUET, *TEXT))}, text also compressed.",
            )
        kinds = {name.lower().endswith(PARQUET) for name in names}
        title = Path(source).name or str(source)
        if not names:
            raise UserError(
                f"'{shorten(title)}' has no Parquet or text files.",
                "Name a table, or a folder of *.parquet or *.csv files.",
            )
        if len(kinds) > 1:
            raise UserError(
                f"'{shorten(title)}' has Parquet files and text files.",
                "Name those of one kind by a pattern, such as 'folder/*.parquet'.",
            )
        return cls(title, tuple(names), encoding)

    @property
    def is_parquet(self) -> bool:
        """Whether the files are Parquet, not text."""
        return self.names[0].lower().endswith(PARQUET)

    def named_chunks(self) -> Iterator[tuple[str, pa.Table]]:
        """A fresh pass over the chunks, each with the name of its file."""
        for name in self.names:
            chunks = self._parquet(name) if self.is_parquet else self._text(name)
            for chunk in chunks:
                if chunk.num_rows:
                    yield name, as_table(chunk)

    def metadata(self) -> dict[bytes, bytes] | None:
        """What the first file keeps beside its columns, such as which of them pandas made."""
        from pyarrow import parquet

        if not self.is_parquet:
            return None
        with open_file(self.names[0]) as file:
            found: dict[bytes, bytes] | None = parquet.read_schema(file).metadata
        return found

    def _parquet(self, name: str) -> Iterator[pa.RecordBatch]:
        from pyarrow import parquet

        try:
            with open_file(name) as file, parquet.ParquetFile(file, pre_buffer=False) as opened:
                yield from opened.iter_batches(self.chunk_rows, use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise unreadable(name, error) from error

    def _text(self, name: str) -> Iterator[pa.RecordBatch]:
        from pyarrow import csv as pa_csv

        kind, _ = table_format(Path(name))
        with self._opened(name) as file:
            start = file.read(_START_BYTES)
        if not start:
            return
        names, delimiter = table_header(start, Path(name), kind, self.encoding)
        check_names(names, Path(name))
        options = csv_options(names, delimiter, self.encoding, _BLOCK_BYTES)
        with self._opened(name) as file:
            try:
                yield from pa_csv.open_csv(file, **options)
            except pa.ArrowInvalid as error:
                raise explained_csv(str(error), Path(name), open_quote=False) from error

    @contextmanager
    def _opened(self, name: str) -> Iterator[IO[bytes]]:
        with ExitStack() as stack:
            file: Any = stack.enter_context(open_file(name))
            yield stack.enter_context(decompressed(file, Path(name)))

    def local_names(self) -> list[str]:
        """The files of this machine."""
        return [name for name in self.names if not is_address(name)]


def as_table(raw: Any) -> pa.Table:
    """A chunk as a table whose columns are kept in one way, whatever its file does."""
    table = pa.Table.from_batches([raw]) if isinstance(raw, pa.RecordBatch) else raw
    columns = [c if pa.types.is_null(c.type) else plain_column(c) for c in table.columns]
    return pa.Table.from_arrays(columns, table.column_names)


def joined(tables: list[pa.Table], title: str) -> pa.Table:
    """Tables with the same columns, one after the other: by name, numbers of any width."""
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise UserError(
            f"A column of '{shorten(title)}' has different types in its files "
            f"({shorten(error, 200)}).",
            "Write the files anew with one type for each column.",
        ) from error


def in_pieces(source: Path, wanted: bool | None) -> bool:
    """Whether a table is read in pieces: folders, patterns, addresses, and large files.

    Parameters
    ----------
    source : Path
    wanted : bool or None
        What the user says of a file; None decides by its size and the memory of the machine.
    """
    if source.is_dir() or is_address(address_of(source)) or is_pattern(source):
        if wanted is False:
            raise UserError(
                f"'{shorten(source)}' is no single file, and is read in pieces.",
                "Leave --no-stream out.",
            )
        return True
    streams = source.name.lower().endswith(ENDINGS)
    if wanted and not streams:
        raise UserError(
            f"'{shorten(source)}' cannot be read in pieces.",
            f"--stream takes files that end in {listing([*PARQUET, *TEXT])}.",
        )
    if wanted is not None or not streams or not source.is_file():
        return bool(wanted)
    return not fit_in_memory([str(source)])


def fit_in_memory(names: Iterable[str]) -> bool:
    """Whether the rows of these local files can be read all at once."""
    return sum(Path(name).stat().st_size * _times(name.lower()) for name in names) <= _memory()


def _times(name: str) -> int:
    if name.endswith(COMPRESSIONS):
        return _TIMES["packed text"]
    return _TIMES["parquet" if name.endswith(PARQUET) else "text"]


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def address_of(source: Path) -> str:
    """The name as it was typed: a path has lost one of the slashes of ``s3://…``."""
    scheme, colon, rest = str(source).partition(":/")
    if colon and len(scheme) > 1 and scheme.replace("+", "").isalnum() and "/" not in scheme:
        return f"{scheme}://{rest.lstrip('/')}"
    return str(source)
