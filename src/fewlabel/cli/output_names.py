"""Names of the files that a command writes: checked before any work is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fewlabel._core.errors import UserError, shorten
from fewlabel.report import format_of
from fewlabel.tables.model_archive import skops_io
from fewlabel.tables.reading import STANDARD, table_format, writable_format

SUFFIX_MODEL = ".skops"


def output_format(out: Path, table: Path) -> tuple[str, str]:
    """Format and compression of an output; standard output has the format of the table."""
    if out != STANDARD:
        return writable_format(out)
    return ("csv" if table == STANDARD else table_format(table)[0]), ""


def checked_names(
    out: Path | None, model: Path | None, report: Path | None, table: Path
) -> dict[str, Any]:
    """Formats of the outputs, or an error if one cannot be written."""
    if model is not None and model.suffix != SUFFIX_MODEL:
        raise UserError(
            f"'{shorten(model)}' does not end in {SUFFIX_MODEL}.",
            f"Name the model {shorten(model.stem)}{SUFFIX_MODEL}.",
        )
    if model is not None:
        skops_io()
    return {
        "out": output_format(out, table) if out is not None else ("", ""),
        "report": format_of(report) if report is not None else None,
    }


def default_output(table: Path, word: str) -> Path:
    """Name of the output in the present folder, after the table's."""
    if table == STANDARD:
        return STANDARD
    table_format(table)  # an unknown ending is told of before anything else
    stem, dot, ending = table.name.partition(".")
    return Path(f"{stem}-{word}{dot}{ending}")
