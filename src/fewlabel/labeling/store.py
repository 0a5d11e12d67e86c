"""Answers on disk: an answer is acknowledged when SQLite has written it, not before.

The file is a log. Nothing in it is ever changed but the mark that an answer was undone, and where
in the table its row stands.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from fewlabel._core.errors import UserError, shorten

Kind = Literal["label", "skip", "unsure"]
Why = Literal["typical", "uncertain", "random", "check", "second look", "imported"]

KINDS, WHYS = get_args(Kind), get_args(Why)
VERSION = 1

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS classes (name TEXT PRIMARY KEY, at TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS answers (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  position INTEGER,           -- row from 0; NULL if the table no longer has the row
  content TEXT NOT NULL,      -- digest of its cells
  kind TEXT NOT NULL CHECK (kind IN ('label', 'skip', 'unsure')),
  label TEXT,
  comment TEXT NOT NULL,
  who TEXT NOT NULL,
  tab TEXT NOT NULL,
  why TEXT NOT NULL,
  belief INTEGER NOT NULL,    -- 1 if the model's belief was shown before the answer
  model INTEGER NOT NULL,     -- version of the model that asked; 0 for none
  audit INTEGER,              -- the check it belongs to
  at TEXT NOT NULL,
  undone TEXT,
  CHECK ((label IS NOT NULL) = (kind = 'label'))
) STRICT;
CREATE TABLE IF NOT EXISTS models (
  version INTEGER PRIMARY KEY, at TEXT NOT NULL, summary TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS audits (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  content TEXT NOT NULL,      -- goal, rows in the order of the draw, their labels
  until INTEGER NOT NULL,     -- the last answer that the labels were learned from
  at TEXT NOT NULL,
  closed TEXT                 -- when it ended
) STRICT;
"""


class Answer(NamedTuple):
    """What a person said about a row.

    Attributes
    ----------
    position : int or None
        The row, from 0; None if the table has it no longer.
    content : str
        Digest of the row's cells.
    kind : {"label", "skip", "unsure"}
    label : str or None
    why : {"typical", "uncertain", "random", "check", "second look", "imported"}
        Why the row was asked.
    belief : bool
        Whether the model's belief was shown before the answer.
    model : int
        Version of the model that asked for the row; 0 for none.
    audit : int or None
        The check that it belongs to.
    at : str
        When, in UTC.
    id : int
        Its number in the store; 0 before it is stored.
    """

    position: int | None
    content: str
    kind: Kind
    label: str | None
    why: Why
    who: str = ""
    tab: str = ""
    comment: str = ""
    belief: bool = False
    model: int = 0
    audit: int | None = None
    at: str = ""
    id: int = 0


class StoredAudit(NamedTuple):
    """A check of finished labels: what was drawn, and from which labels."""

    id: int
    content: dict[str, Any]
    until: int
    closed: str | None


_COLUMNS = [name for name in Answer._fields if name != "id"]


def now() -> str:
    """The present moment in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class AnswerStore:
    """The file with the answers to one table's rows.

    Parameters
    ----------
    path : Path
        Created if missing.

    Examples
    --------
    >>> store = AnswerStore(Path(":memory:"))
    >>> stored = store.add(Answer(3, "5f1c", "label", "spam", "random"))
    >>> [answer.label for answer in store.answers()]
    ['spam']
    >>> store.undo(stored.id), store.answers()
    (True, [])
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            # WAL: readers do not wait. FULL: a commit is on the disk before it returns.
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.execute("PRAGMA busy_timeout=5000")
            self._db.executescript(_SCHEMA)
            found = self.meta("version")
            self.answers()  # a damaged file is found out now, not in the middle of the work
        except (sqlite3.Error, ValueError) as error:
            raise UserError(
                f"'{shorten(path)}' cannot be used for the answers ({shorten(error, 120)}).",
                "Name another file with --store; its folder must exist and be writable.",
            ) from error
        if found is None:
            self.set_meta("version", VERSION)
        elif found != VERSION:
            raise UserError(
                f"'{shorten(path)}' was written by another version of fewlabel.",
                "Name another file with --store, or use the version that wrote it.",
            )

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    # --- facts about the table ---------------------------------------------------------------

    def meta(self, key: str) -> Any:
        """What is noted under a key; None for nothing."""
        with self._lock:
            row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else json.loads(row[0])

    def set_meta(self, key: str, value: Any) -> None:
        """Note a value of JSON types."""
        self._write("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, json.dumps(value)))

    def add_class(self, name: str) -> None:
        """Note a class that a person added."""
        self._write("INSERT OR IGNORE INTO classes VALUES (?, ?)", (name, now()))

    def classes(self) -> list[str]:
        """Classes that were added, in their order."""
        with self._lock:
            rows = self._db.execute("SELECT name FROM classes ORDER BY rowid").fetchall()
        return [name for (name,) in rows]

    # --- answers -----------------------------------------------------------------------------

    def add(self, answer: Answer) -> Answer:
        """Store an answer. When this returns it is on the disk."""
        return self.add_all([answer])[0]

    def add_all(self, answers: Sequence[Answer]) -> list[Answer]:
        """Store answers, all or none."""
        marks = ", ".join("?" for _ in _COLUMNS)
        command = f"INSERT INTO answers ({', '.join(_COLUMNS)}) VALUES ({marks})"
        stored = []
        with self._lock, self._db:
            self._db.execute("BEGIN IMMEDIATE")
            for given in answers:
                answer = given if given.at else given._replace(at=now())
                values = [getattr(answer, name) for name in _COLUMNS]
                stored.append(answer._replace(id=self._db.execute(command, values).lastrowid or 0))
        return stored

    def undo(self, answer_id: int) -> bool:
        """Mark an answer as undone; False if it was already."""
        command = "UPDATE answers SET undone = ? WHERE id = ? AND undone IS NULL"
        return self._write(command, (now(), answer_id)) == 1

    def answers(self, *, until: int | None = None) -> list[Answer]:
        """Answers that were not undone, the oldest first; up to a number if it is given."""
        command = f"SELECT {', '.join(_COLUMNS)}, id FROM answers WHERE undone IS NULL"
        values: tuple[int, ...] = ()
        if until is not None:
            command, values = command + " AND id <= ?", (until,)
        with self._lock:
            rows = self._db.execute(command + " ORDER BY id", values).fetchall()
        found = [Answer(*row) for row in rows]
        return [answer._replace(belief=bool(answer.belief)) for answer in found]

    def move(self, places: Iterable[tuple[int, int | None]]) -> None:
        """Note where the rows of answers stand now: pairs of an answer's number and a position."""
        with self._lock, self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(
                "UPDATE answers SET position = ? WHERE id = ?", [(at, n) for n, at in places]
            )

    # --- models and checks -------------------------------------------------------------------

    def add_model(self, version: int, summary: dict[str, Any]) -> None:
        """Note what a model said of its errors, for the curve."""
        command = "INSERT OR REPLACE INTO models VALUES (?, ?, ?)"
        self._write(command, (version, now(), json.dumps(summary)))

    def models(self) -> list[dict[str, Any]]:
        """What the models said, the oldest first."""
        with self._lock:
            rows = self._db.execute("SELECT version, summary FROM models ORDER BY version")
            return [{"version": version, **json.loads(text)} for version, text in rows]

    def open_audit(self, content: dict[str, Any], until: int) -> StoredAudit:
        """Note what a check has drawn, before the first row is shown."""
        command = "INSERT INTO audits (content, until, at) VALUES (?, ?, ?)"
        with self._lock, self._db:
            self._db.execute("BEGIN IMMEDIATE")
            done = self._db.execute(command, (json.dumps(content), until, now()))
        return StoredAudit(done.lastrowid or 0, content, until, None)

    def close_audit(self, audit_id: int) -> None:
        """Note that a check has ended."""
        self._write("UPDATE audits SET closed = ? WHERE id = ?", (now(), audit_id))

    def last_audit(self) -> StoredAudit | None:
        """The check that was opened last."""
        command = "SELECT id, content, until, closed FROM audits ORDER BY id DESC LIMIT 1"
        with self._lock:
            row = self._db.execute(command).fetchone()
        return None if row is None else StoredAudit(row[0], json.loads(row[1]), row[2], row[3])

    def _write(self, command: str, values: tuple[Any, ...]) -> int:
        with self._lock:  # each command is a transaction of its own
            return self._db.execute(command, values).rowcount
