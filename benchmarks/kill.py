"""Stop the commands that write at any moment, and see what they leave.

Every output must be what it was, or new and whole; inputs must be unchanged. A process that is
asked to stop (SIGINT, SIGTERM, SIGHUP) or meets a full disk leaves no temporary file; what SIGKILL
leaves is removed by the next run.

    python -m benchmarks.kill --kills 200 --seed 0
"""

from __future__ import annotations

import argparse
import csv
import errno
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.fuzz import in_process
from benchmarks.hardening import note
from tests.support.fork_server import become_command, load

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_ASKED = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


@dataclass(frozen=True)
class Command:
    """A command, its outputs, and how to see that one is whole."""

    name: str
    args: list[str]
    outputs: dict[str, Callable[[Path], bool]]


def whole_table(path: Path) -> bool:
    from fewlabel.tables.reading import read_table

    table = read_table(path)
    return table.num_rows == 60 and "y_label" in table.column_names


def whole_draw(path: Path) -> bool:
    from fewlabel.tables.reading import read_table

    return read_table(path).num_rows == 9


def whole_model(path: Path) -> bool:
    from fewlabel.tables.model_files import load_model

    return load_model(path).target == "y"


def whole_report(path: Path) -> bool:
    return "headline" in json.loads(path.read_text(encoding="utf-8"))


def whole_folder(path: Path) -> bool:
    from pyarrow import parquet

    return parquet.read_table(path).num_rows > 0


FIT = ["--target", "y", "--learner", "forest", "--jobs", "1"]
COMMANDS = [
    Command(
        "fit",
        ["fit", "t.csv", *FIT, "--out", "o.csv.gz", "--model", "m.skops", "--report", "r.json"],
        {"o.csv.gz": whole_table, "m.skops": whole_model, "r.json": whole_report},
    ),
    Command("predict", ["predict", "in.skops", "t.csv", "--out", "p.csv"], {"p.csv": whole_table}),
    Command(
        "draw",
        ["audit", "in.csv", "--draw", "9", "--all", "--out", "d.csv"],
        {"d.csv": whole_draw},
    ),
    Command(
        "checked",
        ["audit", "in.csv", "--checked", "checked.csv", "--out", "c.csv"],
        {"c.csv": whole_table},
    ),
    Command("report", ["report", "in.json", "--out", "r.json"], {"r.json": whole_report}),
    Command("folder", ["fit", "rows", *FIT, "--out", "labels"], {"labels": whole_folder}),
]


def inputs(folder: Path) -> None:
    """A table, a folder of rows, and what the commands make of them, to read."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = random.Random(0)
    size = [3 * (i % 2) + rng.gauss(0, 1) for i in range(60)]
    label = [("small", "large")[i % 2] if i < 20 else None for i in range(60)]
    lines = [f"{s:.2f},{y or ''}" for s, y in zip(size, label)]
    (folder / "t.csv").write_text("\n".join(["size,y", *lines]) + "\n")
    (folder / "rows").mkdir()
    for k in range(3):
        part = slice(20 * k, 20 * k + 20)
        table = pa.table({"size": size[part], "y": pa.array(label[part], pa.string())})
        parquet.write_table(table, folder / "rows" / f"{k}.parquet")
    made = ["--model", "in.skops", "--report", "in.json", "--out", "in.csv"]
    draw = ["audit", "in.csv", "--draw", "9", "--all", "--out", "draw.csv"]
    for args in (["fit", "t.csv", *FIT, *made], draw):
        answer = in_process(args, folder)
        if answer.code != 0:
            raise SystemExit(f"The inputs could not be made: {answer.text}")
    with (folder / "draw.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    with (folder / "checked.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(row | {"audit_right_label": row["audit_label"]} for row in rows)


def stopped(command: Command, source: Path, rng: random.Random, seconds: float) -> str:
    """Run a command, stop it at some moment; what was wrong with what it left, or nothing."""
    folder = Path(tempfile.mkdtemp())
    shutil.copytree(source, folder, dirs_exist_ok=True)
    before = _content(folder)
    old = rng.random() < 0.5 and command.name != "folder"
    if old:
        for name in command.outputs:
            (folder / name).write_text("old")
    args = [*command.args, *(["--force"] if old else [])]
    number = rng.choice(SIGNALS)
    at = rng.uniform(0, 1.1 * seconds) if rng.random() < 0.5 else None
    # No signal may find the child outside of the try: it would unwind what belongs to the parent.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ASKED)
    child = os.fork()
    if child == 0:
        leave = os._exit
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _ASKED)
            _become(args, folder)
        finally:
            leave(70)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ASKED)
    _wait(child, folder, at, rng)
    os.kill(child, number)
    os.waitpid(child, 0)
    problem = _wrong(command, folder, before, old, may_leave=number not in _ASKED)
    if not problem and number == signal.SIGKILL:
        problem = _again(command, folder)
    shutil.rmtree(folder, ignore_errors=True)
    return problem and f"{command.name}, {number.name} at {at or 'writing'}: {problem}"


def _become(args: list[str], folder: Path) -> None:
    from fewlabel._core.atomic import _close_all

    leave = os._exit

    def exit_as_python_does(code: int) -> None:
        _close_all()  # of what Python does at its end, this alone is ours and not the parent's
        leave(code)

    os._exit = exit_as_python_does  # type: ignore[assignment]
    null = Path(os.devnull)
    become_command({"args": args, "cwd": str(folder)}, null, null)


def _wait(child: int, folder: Path, at: float | None, rng: random.Random) -> None:
    """Until a moment has come, or until the first temporary file is there and a little longer."""
    start = time.monotonic()
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if at is not None and time.monotonic() - start > at:
            return
        if at is None and any(name.startswith(".") for name in os.listdir(folder)):
            time.sleep(rng.choice([0, 0, 0.001, 0.01, 0.1]))
            return
        if time.monotonic() - start > 300:
            return
        time.sleep(0.0005)


def _again(command: Command, folder: Path) -> str:
    """The next run ends well and removes what the killed one left."""
    if command.name == "folder":  # a folder is never replaced
        shutil.rmtree(folder / "labels", ignore_errors=True)
    answer = in_process([*command.args, "--force"], folder)
    left = [name for name in os.listdir(folder) if name.startswith(".")]
    if answer.code != 0:
        return f"the next run failed: {answer.text[-200:]}"
    return f"the next run left {left}" if left else ""


def full_disk(command: Command, source: Path, rng: random.Random) -> str:
    """Run a command that may write so many bytes to a file and no more."""
    folder = Path(tempfile.mkdtemp())
    shutil.copytree(source, folder, dirs_exist_ok=True)
    before = _content(folder)
    limit = int(2 ** rng.uniform(6, 16))

    def small() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    answer = in_process(command.args, folder, small)
    problem = _wrong(command, folder, before, False, may_leave=False)
    blames = "mistake of fewlabel" in answer.text and os.strerror(errno.EFBIG) not in answer.text
    if not problem and (answer.code < 0 or blames):
        problem = f"code {answer.code}: {answer.text[-200:]}"
    shutil.rmtree(folder, ignore_errors=True)
    return problem and f"{command.name}, files of {limit} bytes: {problem}"


def _content(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def _wrong(
    command: Command, folder: Path, before: dict[str, bytes], old: bool, *, may_leave: bool
) -> str:
    for name, data in before.items():
        if (folder / name).read_bytes() != data:
            return f"input {name} changed"
    for name, whole in command.outputs.items():
        path = folder / name
        if not path.exists():
            if old:
                return f"{name} is gone"
            continue
        if old and path.is_file() and path.read_bytes() == b"old":
            continue
        try:
            complete = whole(path)
        except Exception as error:  # whatever half a file provokes
            return f"{name} is broken: {error}"
        if not complete:
            return f"{name} is not complete"
    left = [name for name in os.listdir(folder) if name.startswith(".")]
    return f"left {left}" if left and not may_leave else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--disks", type=int, help="full disks; a quarter of the kills by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--note", type=Path, help="records to add the figures to")
    options = parser.parse_args()
    load()
    disks = options.kills // 4 if options.disks is None else options.disks
    rng, bad, done = random.Random(options.seed), [], Counter[str]()
    # Not a TemporaryDirectory: a forked child that is asked to end would remove it, too.
    source = Path(tempfile.mkdtemp())
    inputs(source)
    seconds = {command.name: _seconds(command, source) for command in COMMANDS}
    for k in range(options.kills + disks):
        command = COMMANDS[k % len(COMMANDS)]
        if k < options.kills:
            problem = stopped(command, source, rng, seconds[command.name])
        else:
            problem = full_disk(command, source, rng)
        done[command.name] += 1
        if problem:
            bad.append(problem)
            print(problem, flush=True)
    shutil.rmtree(source, ignore_errors=True)
    print(f"{options.kills} kills and {disks} full disks ({dict(done)}), {len(bad)} bad")
    figures = {"kills": options.kills, "disks": disks, "bad": len(bad)}
    note(options.note, "kill", seed=options.seed, **figures)
    sys.exit(int(bool(bad)))


def _seconds(command: Command, source: Path) -> float:
    folder = Path(tempfile.mkdtemp())
    shutil.copytree(source, folder, dirs_exist_ok=True)
    start = time.monotonic()
    answer = in_process(command.args, folder)
    shutil.rmtree(folder, ignore_errors=True)
    if answer.code != 0:
        raise SystemExit(f"{command.name} does not run: {answer.text}")
    return time.monotonic() - start


if __name__ == "__main__":
    main()
