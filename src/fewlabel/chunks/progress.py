"""How far a pass over rows in chunks is, for whoever waits."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

_EVERY = 0.5  # seconds between two reports of one pass

PASSES = {
    "survey_chunk": "reading the rows",
    "begin": "reading the rows",
    "vote": "voting",
    "draw": "drawing pseudo-labelled rows",
    "grow": "growing trees",
    "finish": "labelling",
    "label": "labelling",
    "assess": "summing up margins",
    "assess_imperfect": "summing up margins",
}


class Progress(NamedTuple):
    """How far a pass is.

    Attributes
    ----------
    what : str
        What is done with the rows.
    done, total : int
        Rows; ``total`` is 0 while the rows have not been counted.
    seconds : float
        Since the pass began.

    Examples
    --------
    >>> print(Progress("voting", 250_000, 1_000_000, 20.0))
    voting: 250,000 of 1,000,000 rows, about 1 min left
    """

    what: str
    done: int
    total: int
    seconds: float

    @property
    def seconds_left(self) -> float | None:
        """What the rest of the pass will take at the same pace; None if that is not known."""
        if not self.total or not self.done:
            return None
        return self.seconds * (self.total - self.done) / self.done

    def __str__(self) -> str:
        left = self.seconds_left
        if left is None:
            return f"{self.what}: {self.done:,} rows"
        how_long = f"{left:.0f} s" if left < 59.5 else f"{left / 60:.0f} min"
        return f"{self.what}: {self.done:,} of {self.total:,} rows, about {how_long} left"


Report = Callable[[Progress], Any]


class Pass:
    """Tells how far one pass over the rows is, not too often.

    Parameters
    ----------
    report : callable or None
    step : callable
        The step that runs over the chunks.
    total : int
        Rows of all chunks; 0 if they have not been counted.
    """

    def __init__(self, report: Report | None, step: Any, total: int) -> None:
        self._report, self._total = report, total
        self._what = PASSES.get(getattr(step, "__name__", ""), "")
        self._start = self._last = time.monotonic()

    def at(self, done: int) -> None:
        """So many rows are done."""
        now = time.monotonic()
        if self._report is None or not self._what or now - self._last < _EVERY:
            return
        self._last = now
        self._report(Progress(self._what, done, self._total, now - self._start))
