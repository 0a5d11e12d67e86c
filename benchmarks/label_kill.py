"""Kill the process that stores answers at any moment; count acknowledged answers that are lost.

A process stores answers as fast as it can and prints the number of each when it is acknowledged. It
is killed (SIGKILL) after a random time; then the file is opened again and must hold every answer
whose number was printed, and be sound. ``--sessions`` does the same to whole sessions of
``fewlabel label``, over HTTP, while they learn.

    python -m benchmarks.label_kill --kills 200 --sessions 20 --write docs/labeling.md
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import closing
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks._page import put

_WRITER = """
import sys
from pathlib import Path
from fewlabel.labeling.store import Answer, AnswerStore
store = AnswerStore(Path(sys.argv[1]))
for number in range(int(sys.argv[2]), 10**9):
    store.add(Answer(number, str(number), "label", "a", "random"))
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
"""


class Killed(NamedTuple):
    """What came of it."""

    kills: int
    acknowledged: int
    lost: int
    broken: int


def killed_writers(folder: Path, kills: int, seed: int) -> Killed:
    """Kill a process that does nothing but store answers."""
    rng, path = random.Random(seed), folder / "answers.sqlite"
    acknowledged: set[int] = set()
    lost = broken = 0
    for _ in range(kills):
        first = max(acknowledged, default=-1) + 1000
        process = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(path), str(first)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        seen = [process.stdout.readline()]  # it has begun
        time.sleep(rng.uniform(0.0, 0.15))
        process.send_signal(signal.SIGKILL)
        seen += process.communicate()[0].splitlines(keepends=True)
        # A line that was cut off was not acknowledged.
        acknowledged |= {int(line) for line in seen if line.endswith("\n")}
        lost, broken = lost + len(acknowledged - stored(path)), broken + (not sound(path))
    return Killed(kills, len(acknowledged), lost, broken)


def stored(path: Path) -> set[int]:
    """Rows with an answer in the file."""
    with closing(sqlite3.connect(path)) as db:
        return {row for (row,) in db.execute("SELECT position FROM answers WHERE undone IS NULL")}


def sound(path: Path) -> bool:
    """Whether SQLite finds nothing wrong."""
    with closing(sqlite3.connect(path)) as db:
        return db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


# --- whole sessions ------------------------------------------------------------------------------


class Client:
    """What the page does, without a browser."""

    def __init__(self, address: str) -> None:
        self.origin, self.tab = address.partition("/?")[0], "0123456789abcdef"
        cookies = urllib.request.HTTPCookieProcessor(CookieJar())
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), cookies)
        self.opener.open(address).read()

    def post(self, what: str, **sent: Any) -> dict[str, Any]:
        """Ask for something."""
        request = urllib.request.Request(
            f"{self.origin}/api/{what}",
            json.dumps({"tab": self.tab, **sent}).encode(),
            {"content-type": "application/json", "x-fewlabel": "1", "origin": self.origin},
        )
        with self.opener.open(request) as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    def state(self) -> dict[str, Any]:
        """What the side of the page shows."""
        with self.opener.open(f"{self.origin}/api/state") as answer:
            found: dict[str, Any] = json.load(answer)
            return found


def started(*args: str) -> tuple[subprocess.Popen[str], str]:
    """A running ``fewlabel label``, and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "fewlabel", "label", *args, "--no-open"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    if not re.match(r"https?://", address):
        process.kill()
        raise RuntimeError(f"no address: {address!r} {process.communicate()[1]}")
    return process, address


def killed_sessions(folder: Path, kills: int, seed: int) -> Killed:
    """Kill whole sessions while a client answers and the program learns."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)  # rows enough for the last session, too
    lines = [",".join(map(str, row)) + "," for row in X]
    head = ",".join(f"x{j}" for j in range(X.shape[1])) + ",y"
    table = folder / "digits.csv"
    table.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    path, rng = folder / "digits.csv.answers.sqlite", random.Random(seed)
    acknowledged: set[int] = set()
    lost = broken = 0
    for _ in range(kills):
        process, address = started(str(table), "--target", "y", "--class", "0", "--class", "1")
        client = Client(address)
        end = time.monotonic() + rng.uniform(0.2, 4.0)
        while time.monotonic() < end:
            card = client.post("next")["card"]
            if card is None:
                break
            client.post("answer", row=card["row"], kind="label", label=str(y[card["row"]]))
            acknowledged.add(card["row"])
        process.kill()
        process.communicate()
        lost, broken = lost + len(acknowledged - stored(path)), broken + (not sound(path))
    return Killed(kills, len(acknowledged), lost, broken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--sessions", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path, help="page with a place for the result")
    args = parser.parse_args()
    failed, lines = False, []
    for name, kill, n in [
        ("writers", killed_writers, args.kills),
        ("sessions", killed_sessions, args.sessions),
    ]:
        if n == 0:
            continue
        with tempfile.TemporaryDirectory() as folder:
            found = kill(Path(folder), n, args.seed)
        lines.append(
            f"{found.kills} {name} killed: {found.acknowledged:,} answers acknowledged, "
            f"{found.lost} lost, {found.broken} files broken"
        )
        print(lines[-1], flush=True)
        failed |= bool(found.lost or found.broken)
    if args.write:
        put(args.write, "kills", "\n".join(f"* {line}" for line in lines))
    raise SystemExit(int(failed))


if __name__ == "__main__":
    main()
