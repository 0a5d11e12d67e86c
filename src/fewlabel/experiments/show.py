"""Progress of a run: a bar with the time left on a terminal, plain lines in a log."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self, TextIO

from fewlabel.experiments.records import OK
from fewlabel.experiments.run import Progress


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
        self._display.stop()
