"""A row as the page shows it: names and values, as text, and pictures from the table's folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewlabel.tables.csv_writing import python_cells

if TYPE_CHECKING:
    import pyarrow as pa

PICTURES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
"""Endings of pictures that are shown, and their types. SVG is a document that can hold scripts."""

LONGEST_CELL = 20_000
MOST_COLUMNS = 300
MOST_PICTURE_BYTES = 20 * 2**20


class Cards:
    """The rows of a table, one at a time.

    Parameters
    ----------
    table : pyarrow.Table
    hidden : set of str
        Columns that are not shown: the target, and what fewlabel added earlier.
    folder : Path
        The table's folder: pictures are read from here and from nowhere else.
    """

    def __init__(self, table: pa.Table, hidden: set[str], folder: Path) -> None:
        names = [name for name in table.column_names if name not in hidden]
        self.names, self.left_out = names[:MOST_COLUMNS], len(names[MOST_COLUMNS:])
        self.table = table.select(self.names)
        self.folder = folder.resolve()

    def card(self, row: int) -> dict[str, Any]:
        """Names and values of a row, of JSON types."""
        part = self.table.slice(row, 1)
        cells = []
        for name, column in zip(self.names, part.columns):
            text = _text(python_cells(column)[0])
            cell: dict[str, Any] = {"name": name, "text": text[:LONGEST_CELL]}
            if len(text) > LONGEST_CELL:
                cell["cut"] = len(text) - LONGEST_CELL
            if self.picture(text) is not None:
                cell["picture"] = True
            cells.append(cell)
        return {"row": row, "cells": cells, "left_out": self.left_out}

    def cell_picture(self, row: int, column: int) -> tuple[bytes, str] | None:
        """The picture that a cell names, and its type."""
        if not (0 <= row < self.table.num_rows and 0 <= column < len(self.names)):
            return None
        path = self.picture(_text(python_cells(self.table.column(column).slice(row, 1))[0]))
        return None if path is None else (path.read_bytes(), PICTURES[path.suffix.lower()])

    def picture(self, text: str) -> Path | None:
        """The file that a cell names, if it is a picture inside the table's folder."""
        if len(text) > 1_000 or Path(text).suffix.lower() not in PICTURES or "\x00" in text:
            return None
        try:
            path = (self.folder / text).resolve()  # follows links: they must not lead out either
            inside = path.is_relative_to(self.folder) and path.is_file()
            fits = inside and path.stat().st_size <= MOST_PICTURE_BYTES
        except (OSError, ValueError, RuntimeError):
            return None
        return path if fits and path.suffix.lower() in PICTURES else None


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell)
