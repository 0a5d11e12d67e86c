"""How the command line speaks: results on stdout, progress and errors on stderr."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import sys
import unicodedata
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fewlabel._core.errors import UserError

INTERRUPTED = 130


# Seconds after which somebody who waits wants to hear that a family of voters is trained.
_LONG = 5.0


# Kinds of characters that a terminal obeys: controls, formats, halves of characters.
_OBEYED = ("Cc", "Cf", "Cs")
# Controls of 8-bit terminals, and what turns the direction of writing.
_LATER_CONTROLS = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def harmless(text: str) -> str:
    """Text without characters that a terminal obeys; names of classes may contain any."""
    return "".join(
        c if c in "\n\t" or unicodedata.category(c) not in _OBEYED else "·" for c in text
    )


class Console:
    """One command's voice.

    Parameters
    ----------
    as_json : bool
        Print one JSON object on stdout, also for errors.
    quiet : bool
        No progress and no summary; errors are still told.
    """

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json, self.quiet = as_json, quiet
        self.table_on_stdout = False
        self._status: Any = None

    def progress(self, text: str) -> None:
        """Tell what is going on; on a terminal the last line is replaced."""
        if self.quiet:
            return
        if self._status is None and sys.stderr.isatty():
            from rich.console import Console as RichConsole

            self._status = RichConsole(stderr=True).status("")
            self._status.start()
        if self._status is not None:
            from rich.markup import escape

            self._status.update(escape(harmless(f"{text} …")))
        else:
            self._tell(f"{text} …")

    def on_round(self, record: dict[str, Any]) -> None:
        """Tell of a round of self-learning, or of a family of voters, when it is complete."""
        if self.quiet:
            return
        if "training" in record:
            self._on_start(record)
            return
        if "iteration" not in record:
            self._on_voter(record)
            return
        seconds = sum(value for key, value in record.items() if key.startswith("seconds_"))
        line = (
            f"round {record['iteration']}: {record['n_selected']:,} of {record['n_unlabeled']:,} "
            f"rows pseudo-labelled, {seconds:.1f} s"
        )
        if self._status is not None:
            self._status.console.print(f"  {line}", markup=False, highlight=False)
            self._status.update(f"round {record['iteration'] + 1} …")
        else:
            self._tell(f"  {line}")

    def _on_start(self, record: dict[str, Any]) -> None:
        if self._status is None:
            return
        left = record["seconds_left"]
        about = f", about {left:.0f} s left" if left >= 1 else ""
        place = f"family {record['position']} of {record['n_families']}"
        self._status.update(f"training {record['training']} ({place}{about}) …")

    def _on_voter(self, record: dict[str, Any]) -> None:
        if self._status is None and record["seconds"] > _LONG:
            self._tell(f"  {record['title']}: done in {record['seconds']:.1f} s")

    def noting(self, action: Callable[[], Any]) -> Any:
        """The answer of an action; what it warned of is told."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            answer = action()
        for warning in caught:
            self.say(f"! {warning.message}")
        return answer

    def done(self) -> None:
        """End the line of progress."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    def say(self, text: str) -> None:
        """Print a line of the result, unless JSON was asked for."""
        if not (self.quiet or self.as_json):
            (sys.stderr if self.table_on_stdout else sys.stdout).write(f"{harmless(text)}\n")

    def result(self, value: dict[str, Any]) -> None:
        """Print the result for machines, if that was asked for."""
        if self.as_json:
            from fewlabel.report.summarize import plain  # not needed to show the help

            text = json.dumps(plain(value), ensure_ascii=False, indent=1)
            # JSON escapes the old control characters only.
            text = _LATER_CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
            sys.stdout.write(f"{text}\n")

    def table(self, head: list[str], rows: list[list[str]]) -> None:
        """Print aligned columns, the first one to the left."""
        if self.quiet or self.as_json:
            return
        from rich.console import Console as RichConsole
        from rich.table import Table

        grid = Table(box=None, padding=(0, 0, 0, 2), header_style="")
        for k, name in enumerate(head):
            grid.add_column(name, justify="right" if k else "left")
        for row in rows:
            grid.add_row(*row)
        text = io.StringIO()
        RichConsole(file=text, markup=False, emoji=False, highlight=False).print(grid)
        self.say(text.getvalue().rstrip("\n"))

    def fail(self, message: str, remedy: str = "") -> None:
        """Tell of an error and what to do about it."""
        self.done()
        if self.as_json:
            self.result({"error": {"message": message, "remedy": remedy}})
            return
        self._tell(f"fewlabel: {message}")
        if remedy:
            self._tell(f"  {remedy}")

    def _tell(self, text: str) -> None:
        sys.stderr.write(f"{harmless(text)}\n")
        sys.stderr.flush()

    @contextmanager
    def errors_explained(self) -> Iterator[None]:
        """Turn exceptions into a message and an exit code; no traceback for bad input.

        With ``FEWLABEL_TRACEBACK=1`` in the environment the traceback is shown.
        """
        try:
            yield
        except KeyboardInterrupt:
            self.done()
            self._tell("fewlabel: interrupted; what was not finished was not written.")
            raise SystemExit(INTERRUPTED) from None
        except Exception as error:
            if os.environ.get("FEWLABEL_TRACEBACK"):
                raise
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                raise  # the reader of a pipe went away: not our error
            self.fail(*explained(error))
            raise SystemExit(1) from None
        finally:
            self.done()


def explained(error: Exception) -> tuple[str, str]:
    """Message and remedy for an exception."""
    if isinstance(error, UserError):
        return error.message, error.remedy
    if isinstance(error, MemoryError):
        return (
            "There is not enough memory.",
            "Drop columns that are not needed (--drop), or take fewer rows.",
        )
    if isinstance(error, OSError):
        remedy = "Free some space." if error.errno == errno.ENOSPC else ""
        what = str(error.strerror or error).rstrip(".")
        return f"{what}: nothing was written.", remedy
    if isinstance(error, ImportError):
        message = str(error)
        all_of_it = "pip install 'fewlabel[cli]' installs all that the commands need."
        return message, "" if "pip install" in message else all_of_it
    return (
        f"{type(error).__name__}: {error}",
        "If this is not about your input it is a mistake of fewlabel: FEWLABEL_TRACEBACK=1 shows "
        "where it happens, for a report.",
    )
