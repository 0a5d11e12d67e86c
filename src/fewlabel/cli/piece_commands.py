"""``fewlabel fit`` and ``predict`` of tables that are read in pieces, with results in a folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fewlabel._core.atomic import Outputs, check_new_folder
from fewlabel._core.errors import UserError, shorten
from fewlabel.chunks.files import is_address
from fewlabel.cli.big_tables import fit_files, predict_files
from fewlabel.cli.commands import (
    Wanted,
    tell_fit,
    tell_predicted,
    write_model_and_report,
)
from fewlabel.cli.console import Console
from fewlabel.cli.output_names import checked_names
from fewlabel.cli.workflow import FitOptions, PredictOptions
from fewlabel.tables.model_files import TableModel, load_model
from fewlabel.tables.reading import STANDARD, table_format
from fewlabel.tables.streaming import TableFiles, address_of


def fit_files_command(
    console: Console, table: Path, options: FitOptions, wanted: Wanted, scheduler: str | None
) -> None:
    """Fit on a table in pieces, and write a folder with the labelled table."""
    files = TableFiles.of(address_of(table), encoding=options.encoding)
    out = _result_folder(wanted.out, table, "labelled", files, force=wanted.force)
    checked_names(None, wanted.model, wanted.report, table)
    others = [path for path in (wanted.model, wanted.report) if path is not None]
    with Outputs(others, force=wanted.force, inputs=map(Path, files.local_names())) as outputs:
        result = fit_files(files, options, out=out, scheduler=scheduler)
        with _removed_if_failed(out):
            console.progress("writing")
            write_model_and_report(result, wanted, outputs)
    console.done()
    tell_fit(console, result, wanted._replace(out=out))


def _result_folder(
    out: Path | None, table: Path, word: str, files: TableFiles, *, force: bool
) -> Path:
    """The folder of the results, which must be new."""
    stem = files.title.partition(".")[0].strip("*?[]") or "table"
    out = out or Path(f"{stem}-{word}")
    if is_address(address_of(out)):
        raise UserError(
            f"'{shorten(address_of(out))}' is no folder of this machine.",
            "Write to a folder here, and copy it.",
        )
    if out == STANDARD or _is_named_like_a_file(out):
        what = "standard output" if out == STANDARD else f"'{shorten(out)}', a file's name"
        raise UserError(
            f"A table that is read in pieces gets a folder of results, and --out is {what}.",
            "Name a new folder, such as --out labels, or read a single file with --no-stream.",
        )
    check_new_folder(out, force=force, source=table)
    return out


def _is_named_like_a_file(out: Path) -> bool:
    try:
        table_format(out)
    except UserError:
        return False
    return True


@contextmanager
def _removed_if_failed(folder: Path) -> Iterator[None]:
    """Labels without their model and report are half of what was asked for."""
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def predict_files_command(
    console: Console,
    model: Path,
    table: Path,
    options: PredictOptions,
    *,
    out: Path | None,
    force: bool,
) -> None:
    """Predict a table in pieces, and write a folder with the labelled table."""
    files = TableFiles.of(address_of(table), encoding=options.encoding)
    out = _result_folder(out, table, "predicted", files, force=force)
    console.progress("reading")
    loaded: TableModel = console.noting(lambda: load_model(model))
    found = predict_files(loaded, files, options, out=out, progress=console.progress)
    console.done()
    tell_predicted(console, found.counts, found.notes, out)
