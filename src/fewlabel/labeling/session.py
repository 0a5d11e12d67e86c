"""One table, its answers and its newest model: which row is shown next, and what is known so far.

Every method may be called from any thread. An answer is stored before the method returns; nothing
here waits for a fit.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from numpy.typing import NDArray

from fewlabel._core.errors import UserError, shorten
from fewlabel.labeling.answers import AnswerBook
from fewlabel.labeling.checking import Check, drawn
from fewlabel.labeling.choose import RANDOM_SHARE
from fewlabel.labeling.learning import Learned, Lesson
from fewlabel.labeling.questions import Questions
from fewlabel.labeling.store import Answer, AnswerStore, Kind, Why

FEWEST_RANDOM = 8
"""Random rows behind an estimate before it may end the labelling: fewer say next to nothing."""
LONGEST_LABEL, LONGEST_COMMENT, LONGEST_NAME = 200, 2_000, 100


class Refused(UserError):
    """A request that makes no sense at this moment."""


class LabelingSession:
    """The logic behind the page.

    Parameters
    ----------
    store : AnswerStore
    digests : sequence of str
        Of the table's rows, see :func:`fewlabel.labeling.row_identity.row_digests`.
    given : ndarray of object of shape (n_rows,)
        Labels that the table has, None elsewhere.
    classes : sequence of str
        Classes to choose from, besides those of the table and those that people add.
    goal : float
        The share of wrong labels that is allowed.
    given_random : bool, default=False
        Whether the rows that the table labels are a random sample of it.
    random_share : float, default=0.25
        Share of the rows that is drawn at random.
    on_change : callable, optional
        Called when there may be something to learn.
    folder : str, default=""
        Where results are written that the page offers.
    """

    def __init__(
        self,
        store: AnswerStore,
        digests: Sequence[str],
        given: NDArray[Any],
        classes: Sequence[str] = (),
        *,
        goal: float = 0.05,
        given_random: bool = False,
        random_share: float = RANDOM_SHARE,
        on_change: Callable[[], object] = lambda: None,
        folder: str = "",
    ) -> None:
        self.store, self.digests, self.goal = store, digests, goal
        self.given = {row: str(label) for row, label in enumerate(given) if label is not None}
        self.given_random, self.on_change, self.folder = given_random, on_change, folder
        self.lock = threading.RLock()
        self.book = AnswerBook(store.answers())
        self.learned: Learned | None = None
        self.trouble = ""
        self.may_check = store.last_audit() is None
        self.files: list[str] = []
        self.wants_files = False
        self.busy_since: float | None = None
        self.models = store.models()
        self._classes = [*classes, *store.classes(), *(a.label or "" for a in self.book.answers)]
        self._revealed: set[int] = set()
        self._needed: tuple[int, int | None] = (0, None)
        self._taught: tuple[Any, ...] | None = None
        if store.meta("seed") is None:
            store.set_meta("seed", secrets.randbelow(2**31))
        self.seed = int(store.meta("seed"))
        self.questions = Questions(
            len(digests), set(self.given), self.book, self.seed, random_share
        )
        found = store.last_audit()
        self.check = None if found is None or found.closed else Check(*found[:3])

    # --- what is known -------------------------------------------------------------------------

    def classes(self) -> list[str]:
        """Classes to choose from, in the order of their keys: it never changes for those there."""
        return list(dict.fromkeys(name for name in self._order_of_classes() if name))

    def _order_of_classes(self) -> list[str]:
        return [*sorted(set(self.given.values())), *self._classes]

    def labels(self) -> dict[int, str]:
        """The label of each labelled row: what people answered, else what the table says."""
        unsure = set(self.book.unsure())
        kept = {row: label for row, label in self.given.items() if row not in unsure}
        return kept | self.book.labels()

    def lesson(self, *, until: int | None = None) -> Lesson:
        """All that can be learned from now; with ``until`` from the first answers only."""
        book = self.book
        if until is not None:
            book = AnswerBook(self.store.answers(until=until))
        unsure = set(book.unsure())
        given = {row: label for row, label in self.given.items() if row not in unsure}
        random = book.random_rows() + (list(self.given) if self.given_random else [])
        return Lesson(
            version=self.models[-1]["version"] + 1 if self.models else 1,
            labels=given | book.labels(),
            random=sorted(set(random)),
            closed=sorted(unsure | set(book.skipped())),
            n_classes=len(self.classes()),
            goal=self.goal,
            seed=self.seed % 1_000,
            until=max((answer.id for answer in book.answers), default=0),
        )

    # --- rows to show --------------------------------------------------------------------------

    def next_row(self, tab: str) -> tuple[int, Why] | None:
        """The row that a tab shows next, and why; None if there is none left.

        A tab that asks again before it has answered gets the same row.
        """
        with self.lock:
            kept = self.questions.keep(tab)
            checked = self.checked()
            if kept is not None and not (kept.why == "check" and kept.row in checked):
                return kept.row, kept.why
            self.questions.tabs.pop(tab, None)
            found: tuple[int, Why] | None = None
            if self.check is None:
                queue = self.learned.queue if self.learned else []
                found = self.questions.next_to_label(tab, queue)
            elif self.outcome() == "open":
                row = self.questions.next_check(tab, self.check.rows, set(checked))
                found = None if row is None else (row, "check")
            if found is not None:
                self.questions.show(tab, *found, self.learned.version if self.learned else 0)
            return found

    def show_again(self, tab: str, row: int) -> tuple[int, Why]:
        """Show a row that has an answer once more, for a second look."""
        with self.lock:
            if self.check:
                raise Refused("A check is under way.", "End the check first.")
            if not self.questions.is_answered(row):
                raise Refused("This row has no answer yet.", "Choose a row that has one.")
            self.questions.show(tab, row, "second look")
            return row, "second look"

    # --- what people say -----------------------------------------------------------------------

    def answer(
        self,
        tab: str,
        row: int,
        kind: Kind,
        label: str | None = None,
        *,
        who: str = "",
        comment: str = "",
    ) -> Answer:
        """Store an answer. When this returns it is on the disk."""
        with self.lock:
            shown = self.questions.shown(tab, row)
            if shown is None:
                raise Refused(
                    f"Row {row + 1} is not the one that is shown here.",
                    "Answer the row that the page shows.",
                )
            if kind == "skip" and shown.why == "check":
                raise Refused("A row of the check cannot be skipped.", "Say that you cannot tell.")
            answer = Answer(
                position=row,
                content=self.digests[row],
                kind=kind,
                label=_checked_label(label) if kind == "label" else None,
                why=shown.why,
                who=who[:LONGEST_NAME],
                tab=tab,
                comment=comment[:LONGEST_COMMENT],
                belief=shown.belief,
                model=shown.model,
                audit=self.check.id if self.check and shown.why == "check" else None,
            )
            stored = self.store.add(answer)
            self.book.add(stored)
            del self.questions.tabs[tab]
            if stored.label is not None and stored.label not in self._classes:
                self._classes.append(stored.label)
        self.on_change()
        return stored

    def undo(self, tab: str, who: str = "") -> Answer | None:
        """Take back the last answer of a tab, and show its row again; None if there is none."""
        with self.lock:
            answer = self.book.last_of(tab, who)
            if answer is None or answer.position is None:
                return None
            if answer.why == "check" and (self.check is None or answer.audit != self.check.id):
                raise Refused(
                    "This answer belongs to a check that has ended.",
                    "Take a second look at the row instead.",
                )
            self.store.undo(answer.id)
            self.book.remove(answer)
            self.questions.reopened()
            seen = answer.belief or answer.id in self._revealed
            self.questions.show(tab, answer.position, answer.why, answer.model, belief=seen)
        self.on_change()
        return answer

    def add_class(self, name: str) -> str:
        """Add a class to choose from."""
        with self.lock:
            label = _checked_label(name)
            if label not in self.classes():
                self.store.add_class(label)
                self._classes.append(label)
            return label

    def belief(self, tab: str, row: int) -> tuple[str, float] | None:
        """What the model believes of the row that a tab shows, before the answer.

        The answer is marked: it no longer enters the estimate of the error.
        """
        with self.lock:
            shown = self.questions.shown(tab, row)
            if shown is None:
                raise Refused("This row is not shown here.", "Ask about the row that is shown.")
            if shown.why == "check":
                raise Refused("What the model believes is hidden during the check.")
            shown.belief = True
            return None if self.learned is None else self.learned.believes(row)

    def reveal(self, answer: Answer) -> tuple[str, float] | None:
        """What the model believes of a row that was just answered."""
        with self.lock:
            if self.learned is None or answer.position is None or answer.why == "check":
                return None
            self._revealed.add(answer.id)
            return self.learned.believes(answer.position)

    # --- the check -----------------------------------------------------------------------------

    def start_check(self) -> Check:
        """Freeze the labels of the newest model and draw the rows to check."""
        with self.lock:
            if self.check is not None:
                return self.check
            learned = self.learned
            if learned is None or not learned.accepted.any():
                raise Refused(
                    "No label is accepted yet, so there is nothing to check.",
                    "Label some more rows.",
                )
            # Rows that were answered since the model learned, or are shown now, are not drawn.
            busy = set(self.book.by_row) | {shown.row for shown in self.questions.tabs.values()}
            content = drawn(learned, self.goal, secrets.randbelow(2**63), leave_out=busy)
            if not content["rows"]:
                raise Refused("Every accepted row was labelled by hand.", "There is no more to do.")
            stored = self.store.open_audit(content, learned.until)
            self.check, self.files = Check(*stored[:3]), []
            return self.check

    def end_check(self) -> None:
        """Go back to labelling; what was checked has been learned."""
        with self.lock:
            if self.check is None:
                return
            self.store.close_audit(self.check.id)
            self.check, self.files = None, []
            self.may_check = False  # whoever ended a check begins the next one
            self.questions.forget("check")
        self.on_change()

    def checked(self) -> dict[int, str | None]:
        """Answers of the present check, None where nobody can tell."""
        if self.check is None:
            return {}
        mine = [a for a in self.book.answers if a.audit == self.check.id]
        return {a.position: a.label for a in mine if a.position is not None}

    def checks_needed(self) -> int | None:
        """Checks that will probably do; computed once for each check."""
        if self.check is None:
            return None
        if self._needed[0] != self.check.id:
            self._needed = self.check.id, self.check.probably_needed()
        return self._needed[1]

    def outcome(self) -> str:
        """Of the check: "open", "proved" or "refuted"; "" without one."""
        return "" if self.check is None else self.check.outcome(self.checked())

    # --- what is learned -----------------------------------------------------------------------

    def next_task(self) -> Lesson | dict[str, Any] | None:
        """Work for the learning process; None if there is nothing new."""
        with self.lock:
            if self.wants_files:
                self.busy_since = time.monotonic()
                return self._file_request()
            if self.check is not None and self.learned is not None:
                return None  # its labels are final until the check ends
            lesson = self.lesson(until=None if self.check is None else self.check.until)
            content = (lesson.labels, lesson.random, lesson.closed)
            if content == self._taught:
                return None
            self._taught, self.busy_since = content, time.monotonic()
            return lesson

    def _file_request(self) -> dict[str, Any]:
        checked = self.checked()
        request: dict[str, Any] = {"lesson": self.lesson(), "folder": self.folder, "fixed": None}
        if self.check is not None:
            statement = self.check.audit(checked)
            request["lesson"] = self.lesson(until=self.check.until)
            request["fixed"] = {
                "classes": self.check.content["classes"],
                "codes": self.check.content["codes"],
                "rows": self.check.rows,
                "audited": {row: label for row, label in checked.items() if label is not None},
                "audit": None if statement is None else statement.to_dict(),
                "statement": "" if statement is None else str(statement),
            }
        return request

    def take_learned(self, learned: Learned) -> None:
        """A model is ready."""
        with self.lock:
            self.learned, self.busy_since, self.trouble = learned, None, ""
            if learned.classes:
                summary = {
                    "n_labels": learned.n_labels,
                    "accepted": float(learned.accepted.mean()),
                    "seconds": learned.seconds,
                    **learned.error,
                }
                self.store.add_model(learned.version, summary)
                self.models.append({"version": learned.version, **summary})
            if self.may_check and self.check is None and self.goal_met():
                with suppress(Refused):  # every accepted row is on somebody's screen
                    self.start_check()

    def goal_met(self) -> bool:
        """Whether the estimate, taken with caution, allows to accept every label."""
        learned = self.learned
        if learned is None or learned.error.get("n", 0) < FEWEST_RANDOM:
            return False
        return bool(learned.error["cautious"] <= self.goal and learned.accepted.any())

    def take_files(self, names: list[str]) -> None:
        """The files that were asked for are written."""
        with self.lock:
            self.files, self.wants_files, self.busy_since = names, False, None

    def take_trouble(self, words: str) -> None:
        """Learning failed."""
        with self.lock:
            self.trouble, self.wants_files, self.busy_since = shorten(words, 300), False, None

    def ask_for_files(self) -> None:
        """Have table, model and report written."""
        with self.lock:
            if self.check is None and (self.learned is None or not self.learned.classes):
                raise Refused(
                    "Nothing is learned yet.", "Label rows of at least two classes first."
                )
            self.files, self.wants_files = [], True
        self.on_change()


def _checked_label(label: str | None) -> str:
    name = " ".join((label or "").split())
    if not name:
        raise Refused("A class needs a name.", "Type one.")
    if len(name) > LONGEST_LABEL or not name.isprintable():
        raise Refused(
            f"The class '{shorten(name)}' cannot be used.",
            f"Take a name of at most {LONGEST_LABEL} printable characters.",
        )
    return name
