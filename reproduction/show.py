"""What a terminal shows: a bar with the time left (plain lines in a log), then the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from reproduction.notation import Lines, Table, row_title
from reproduction.records import OK
from reproduction.run import Progress


def describe(progress: Progress) -> str:
    """What has just ended and how long the rest will take."""
    trial, record = progress.record["trial"], progress.record
    score = record.get("scores", {}).get("accuracy")
    result = record["status"] if record["status"] != OK else "done"
    if score is not None:
        result = f"{score:.3f}"
    left = progress.seconds_left
    rest = "?" if left is None else timedelta(seconds=round(left))
    return f"{trial['method']} on {trial['dataset']}, seed {trial['seed']}: {result}; {rest} left"


@contextmanager
def progress_shown() -> Iterator[Callable[[Progress], None]]:
    """A callable that shows progress: a bar on a terminal, a line for each trial elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Display

    console = Console(stderr=True, soft_wrap=True)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    display = Display(*columns, TextColumn("{task.description}"), console=console, transient=True)
    task = display.add_task("starting", total=None)

    def show(progress: Progress) -> None:
        text = describe(progress)
        display.update(task, total=progress.total, completed=progress.done, description=text)
        if not console.is_terminal:
            line = f"[{progress.done}/{progress.total}] {text}"
            console.print(line, markup=False, highlight=False)

    if not console.is_terminal:
        yield show
        return
    with display:
        yield show


def show_table(table: Table, console: Any) -> bool:
    """Print the table on a rich console if it is wide enough; tell whether it was."""
    from rich.table import Table as Grid

    grid = Grid("Data set", *(head or column for column, head in table.columns.items()))
    grid.title = table.title
    for name, row in table.rows.items():
        grid.add_row(row_title(name), *(_rich_text(row[column]) for column in table.columns))
    needed = console.measure(grid, options=console.options.update(width=10**4)).maximum
    if needed > console.width:
        return False
    console.print(grid)
    return True


def _rich_text(lines: Lines) -> Any:
    """The lines of a cell for rich, with what is bold or in italics."""
    from rich.text import Text

    shown = Text()
    for index, part in enumerate("\n".join(lines).split("**")):
        for nested, piece in enumerate(part.split("*")):
            shown.append(piece, style="bold" if index % 2 else "italic" if nested % 2 else "")
    return shown
