"""What a terminal shows: a bar with the time left (plain lines in a log), then the tables."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self, TextIO

from reproduction.notation import Table, row_title
from reproduction.records import OK
from reproduction.run import Progress


def describe(progress: Progress) -> str:
    """What has just ended and how long the rest will take."""
    trial, record = progress.record["trial"], progress.record
    score = record.get("scores", {}).get("accuracy")
    result = record["status"] if record["status"] != OK else ""
    if score is not None:
        result = f"{score:.3f}"
    what = f"{trial['method']} on {trial['dataset']}, seed {trial['seed']}"
    left = "?" if progress.seconds_left is None else clock(progress.seconds_left)
    return f"{what}: {result or 'done'}; {left} left"


def clock(seconds: float) -> str:
    """Seconds as h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


class Lines(AbstractContextManager[Any]):
    """One line for each trial."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def __call__(self, progress: Progress) -> None:
        self.stream.write(f"[{progress.done}/{progress.total}] {describe(progress)}\n")
        self.stream.flush()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None


class Bar(AbstractContextManager[Any]):
    """A bar on a terminal (rich)."""

    def __init__(self) -> None:
        try:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Display
        except ImportError as error:
            raise ImportError(
                "The progress bar needs rich: pip install 'fewlabel[cli]'."
            ) from error
        self._display = Display(
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
            console=Console(stderr=True),
        )
        self._task = self._display.add_task("starting", total=None)

    def __enter__(self) -> Self:
        self._display.start()
        return self

    def __call__(self, progress: Progress) -> None:
        self._display.update(
            self._task,
            total=progress.total,
            completed=progress.done,
            description=describe(progress),
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._display.tasks[0].total is None:
            self._display.update(self._task, visible=False)  # nothing had to be run
        self._display.stop()


def show_table(table: Table, console: Any) -> bool:
    """Print the table on a rich console if it is wide enough; tell whether it was."""
    from rich.table import Table as Grid

    grid = Grid("Data set", *(head or column for column, head in table.columns.items()))
    grid.title = table.title
    for row, fields in table.rows.items():
        cells = (_rich_text(fields[column].lines) for column in table.columns)
        grid.add_row(row_title(row), *cells)
    needed = console.measure(grid, options=console.options.update(width=10**4)).maximum
    if needed > console.width:
        return False
    console.print(grid)
    return True


def _rich_text(lines: tuple[str, ...]) -> Any:
    """The lines of a cell for rich, with the bold part."""
    from rich.text import Text

    shown = Text()
    for index, part in enumerate("\n".join(lines).split("**")):
        shown.append(part, style="bold" if index % 2 else "")
    return shown
