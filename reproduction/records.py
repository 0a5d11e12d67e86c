"""Records: one line of JSON for each trial, appended so that a kill loses nothing.

A record is written by one ``write`` to a file opened for appending and then flushed to the disk. A
line that a kill or a full disk cut short is not valid JSON; readers skip it and the next writer
starts a new line after it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from fewlabel._core.errors import UserError
from reproduction.spec import Trial

Record = dict[str, Any]

OK = "ok"
TIME_LIMIT = "time limit"
MEMORY_LIMIT = "memory limit"
ERROR = "error"

FILE_NAME = "records.jsonl"


class RecordWriter:
    """Appends records to a file that no other process is appending to.

    Parameters
    ----------
    path : Path
        Created, with its folder, if it is not there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            _lock(self._file, path)
            self._mend_last_line()
        except BaseException:
            os.close(self._file)
            raise

    def append(self, record: Record) -> None:
        """Write one record; when this returns it is on the disk."""
        self._write(json.dumps(record, sort_keys=True, allow_nan=False).encode() + b"\n")

    def _write(self, data: bytes) -> None:
        written = os.write(self._file, data)
        if written != len(data):
            raise OSError(f"only {written} of {len(data)} bytes were written to {self.path}")
        os.fsync(self._file)

    def _mend_last_line(self) -> None:
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            self._write(b"\n")

    def __enter__(self) -> RecordWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._file)


def _lock(file: int, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows: two runs on one file stay the user's affair
        return
    try:
        # Falls away with the process, however that ends.
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UserError(
            f"Another run is writing to {path}.", "Wait for it, or choose another output folder."
        ) from None


def read_records(*sources: Path) -> list[Record]:
    """Read the records in files, or in the ``*.jsonl`` of folders, without broken lines.

    Of several records of one trial the last finished one counts.
    """
    newest: dict[str, Record] = {}
    for path in _files(sources):
        for record in _lines(path):
            held = newest.get(record["key"])
            if held is None or record["status"] == OK or held["status"] != OK:
                newest[record["key"]] = record
    return list(newest.values())


def _files(sources: Iterable[Path]) -> Iterator[Path]:
    for source in sources:
        if source.is_dir():
            yield from sorted(source.glob("*.jsonl"))
        elif source.exists():
            yield source


def _lines(path: Path) -> Iterator[Record]:
    with path.open("rb") as file:
        for line in file:
            with suppress(ValueError):  # also UnicodeDecodeError: a line cut inside a character
                record = json.loads(line)
                if isinstance(record, dict) and {"key", "trial", "status"} <= record.keys():
                    yield record


def is_settled(record: Record, limits: dict[str, float | None]) -> bool:
    """Whether a trial need not run again: it finished, or it hit a limit no lower than today's.

    A trial that failed by an error runs again: errors are never results.
    """
    if record["status"] == OK:
        return True
    name = {TIME_LIMIT: "seconds", MEMORY_LIMIT: "memory_mib"}.get(record["status"])
    if name is None:
        return False
    then, now = record["limits"][name], limits[name]
    return now is not None and then >= now


def pending(
    trials: Iterable[Trial], records: Iterable[Record], limits: dict[str, float | None]
) -> list[Trial]:
    """The trials, each once and in order, that the records do not settle."""
    settled = {record["key"] for record in records if is_settled(record, limits)}
    return [trial for trial in dict.fromkeys(trials) if trial.key not in settled]
