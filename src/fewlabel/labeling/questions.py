"""Which row each tab shows: never the same in two of them, random ones in their turn."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fewlabel.labeling.answers import AnswerBook
from fewlabel.labeling.choose import RANDOM_SHARE, Reason, random_turns
from fewlabel.labeling.store import Why

LEASE_SECONDS = 600.0
"""So long a row that a tab shows is not shown to others."""

# A random row that was skipped comes back after so many answers: the estimate needs it.
_SKIPPED_RETURNS = 10


@dataclass
class Shown:
    """A row that a tab shows.

    Attributes
    ----------
    row : int
    why : str
    model : int
        Version of the model that asked for it.
    since : float
    belief : bool
        Whether the tab has seen what the model believes of it.
    """

    row: int
    why: Why
    model: int
    since: float
    belief: bool = False


class Questions:
    """Rows that are shown, and those to show next.

    Parameters
    ----------
    n_rows : int
    given : set of int
        Rows that the table labels.
    book : AnswerBook
    seed : int
        Random rows are shown in an order that depends on it alone.
    random_share : float, default=0.25
    """

    def __init__(
        self,
        n_rows: int,
        given: set[int],
        book: AnswerBook,
        seed: int,
        random_share: float = RANDOM_SHARE,
    ) -> None:
        self.given, self.book, self.random_share = given, book, random_share
        self.tabs: dict[str, Shown] = {}
        self._order: list[int] = np.random.default_rng(seed).permutation(n_rows).tolist()
        self._first = 0  # rows of the order before this one are answered

    def shown(self, tab: str, row: int) -> Shown | None:
        """What a tab shows, if it is this row."""
        found = self.tabs.get(tab)
        return found if found is not None and found.row == row else None

    def show(self, tab: str, row: int, why: Why, model: int = 0, *, belief: bool = False) -> None:
        """Note that a tab shows a row."""
        self.tabs[tab] = Shown(row, why, model, time.monotonic(), belief)

    def keep(self, tab: str) -> Shown | None:
        """What a tab shows, if it has not been answered in the meantime."""
        found = self.tabs.get(tab)
        if found is None or self.is_leased(found.row, tab):
            return None
        if found.why not in ("second look", "check") and self.is_answered(found.row):
            return None
        found.since = time.monotonic()
        return found

    def is_answered(self, row: int) -> bool:
        """Whether a row has a label, or nobody can tell."""
        return row in self.given or self.book.settled(row) is not None

    def is_leased(self, row: int, tab: str) -> bool:
        """Whether another tab shows a row."""
        oldest = time.monotonic() - LEASE_SECONDS
        return any(
            shown.row == row and shown.since > oldest
            for other, shown in self.tabs.items()
            if other != tab
        )

    def next_to_label(
        self, tab: str, queue: Sequence[tuple[int, Reason]]
    ) -> tuple[int, Why] | None:
        """The next row while labelling: a random one in its turn, else the first of the queue."""
        n_asked, n_random = self.book.turns()
        # Rows that other tabs show count as asked, or two people would share the random turns.
        others = [s.why for t, s in self.tabs.items() if t != tab and s.why != "second look"]
        n_asked, n_random = n_asked + len(others), n_random + others.count("random")
        if not random_turns(1, self.random_share, n_asked, n_random)[0]:
            for row, why in queue:
                if self._is_new(row, tab):
                    return row, why
        return next(self._random(tab), None)

    def _is_new(self, row: int, tab: str) -> bool:
        return not (row in self.given or row in self.book.by_row or self.is_leased(row, tab))

    def _random(self, tab: str) -> Iterator[tuple[int, Why]]:
        for row in self._skipped_random():
            if not self.is_leased(row, tab):
                yield row, "random"
        while self._first < len(self._order) and self.is_answered(self._order[self._first]):
            self._first += 1
        for row in self._order[self._first :]:
            if self._is_new(row, tab):
                yield row, "random"
        for row in self.book.skipped():  # at last those that nobody wanted
            if not self.is_leased(row, tab):
                yield row, "uncertain"

    def _skipped_random(self) -> list[int]:
        """Random rows that were skipped some answers ago."""
        recent = {answer.position for answer in self.book.answers[-_SKIPPED_RETURNS:]}
        return [
            row
            for row in self.book.random_unknown()
            if self.book.settled(row) is None and row not in recent
        ]

    def next_check(self, tab: str, rows: Sequence[int], checked: set[int]) -> int | None:
        """The next row of a check, in the order of the draw."""
        free = (row for row in rows if row not in checked and not self.is_leased(row, tab))
        return next(free, None)

    def forget(self, why: Why) -> None:
        """Show rows no longer that were asked for a reason that is gone."""
        self.tabs = {tab: shown for tab, shown in self.tabs.items() if shown.why != why}

    def reopened(self) -> None:
        """An answer was undone: its row may be shown again."""
        self._first = 0
