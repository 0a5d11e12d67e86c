"""What the answers say of the rows: the label of each, which are random, where people disagree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from fewlabel.labeling.store import Answer

CHOSEN = ("typical", "uncertain")
"""Reasons to ask for a row that say nothing about the table: it was chosen."""


@dataclass
class AnswerBook:
    """Answers by row.

    Parameters
    ----------
    answers : iterable of Answer
        Those that were not undone, the oldest first; answers without a position are left out.

    Examples
    --------
    >>> book = AnswerBook([Answer(4, "", "label", "a", "random", id=1)])
    >>> book.add(Answer(4, "", "label", "b", "second look", id=2))
    >>> book.labels(), book.random_rows()
    ({4: 'b'}, [4])
    """

    answers: list[Answer] = field(default_factory=list)

    def __post_init__(self) -> None:
        given, self.answers = self.answers, []
        self.by_row: dict[int, list[Answer]] = defaultdict(list)
        for answer in given:
            self.add(answer)

    def add(self, answer: Answer) -> None:
        """Note an answer."""
        if answer.position is None:
            return
        self.answers.append(answer)
        self.by_row[answer.position].append(answer)

    def remove(self, answer: Answer) -> None:
        """Forget an answer that was undone."""
        if answer.position is None:
            return
        self.answers.remove(answer)
        self.by_row[answer.position].remove(answer)
        if not self.by_row[answer.position]:
            del self.by_row[answer.position]

    def settled(self, row: int) -> Answer | None:
        """The answer that counts for a row: the last one that is no skip."""
        found = (a for a in reversed(self.by_row.get(row, [])) if a.kind != "skip")
        return next(found, None)

    def label(self, row: int) -> str | None:
        """The label of a row; None if it has none, or nobody can tell."""
        answer = self.settled(row)
        return None if answer is None else answer.label

    def labels(self) -> dict[int, str]:
        """Rows that have a label."""
        found = {row: self.label(row) for row in self.by_row}
        return {row: label for row, label in found.items() if label is not None}

    def unsure(self) -> list[int]:
        """Rows of which a person said that they cannot tell."""
        settled = {row: self.settled(row) for row in self.by_row}
        return [row for row, a in settled.items() if a is not None and a.kind == "unsure"]

    def skipped(self) -> list[int]:
        """Rows that were skipped and not answered."""
        return [row for row in self.by_row if self.settled(row) is None]

    def random_rows(self) -> list[int]:
        """Labelled rows that may enter an estimate of the error.

        They were drawn at random, and whoever answered did not know what the model believes.
        """
        return [
            row
            for row, answers in self.by_row.items()
            if self.label(row) is not None and _is_random(answers)
        ]

    def random_unknown(self) -> list[int]:
        """Random rows that the estimate has to leave out: skipped, or nobody can tell."""
        return [
            row
            for row, answers in self.by_row.items()
            if self.label(row) is None and _is_random(answers)
        ]

    def turns(self) -> tuple[int, int]:
        """How many rows were asked for while labelling, and how many of them at random."""
        asked = [answers[0].why for answers in self.by_row.values()]
        n_random = asked.count("random")
        return n_random + sum(why in CHOSEN for why in asked), n_random

    def disputed(self) -> list[int]:
        """Rows with different labels by different answers, of which no second look was taken."""
        return [
            row
            for row, answers in self.by_row.items()
            if len({a.label for a in answers if a.kind == "label"}) > 1
            and answers[-1].why != "second look"
        ]

    def last_of(self, tab: str, who: str) -> Answer | None:
        """The last answer from a tab, or if it gave none, of a person: what to undo."""
        for matches in (lambda a: a.tab == tab, lambda a: a.who == who):
            found = next((a for a in reversed(self.answers) if matches(a)), None)
            if found is not None:
                return found
        return None


def _is_random(answers: Iterable[Answer]) -> bool:
    first, *others = answers
    return first.why == "random" and not any(a.belief for a in (first, *others))
