"""Feed the commands with broken, odd and hostile files, and see that they cope.

A run is bad if a process dies, hangs, blames fewlabel, leaves temporary files, changes its input,
or ends well with a table that readers see differently. Inputs are made by generators of odd tables
and by changing bytes of good files; number k of a seed is always the same input. What once failed
lies in ``tests/corpus`` and comes first.

    python -m benchmarks.fuzz --inputs 10000 --seed 0

Forests have few trees: what is tried is what surrounds them, and 10,000 inputs take well under an
hour of one core. ``--minutes 5`` stops after so many; ``--first N`` goes on where it stopped.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import os
import random
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.fuzz_inputs import Case, case_of
from benchmarks.hardening import note
from tests.support.fork_server import become_command, load
from tests.support.small_forests import small_forests

CORPUS = Path(__file__).parents[1] / "tests" / "corpus"
SECONDS = 20
"""Of the processor; a busy machine is no hang."""
_WAITING = 10 * SECONDS
_MEMORY = 8 * 2**30
BLAME = ("mistake of fewlabel", "Traceback", "Fatal Python error")


@dataclass
class Answer:
    """What a command did."""

    code: int
    text: str
    seconds: float
    left: list[str] = field(default_factory=list)


# --- running ---------------------------------------------------------------------------------


def run(case: Case, folder: Path) -> tuple[Answer, str]:
    """Run a command on a case in an empty folder; what was wrong with that, or nothing."""
    for name, data in case.files.items():
        (folder / name).write_bytes(data)
    answer = in_process(case.args, folder)
    answer.left = sorted(p.name for p in folder.iterdir() if p.name.startswith("."))
    read = {name: data for name, data in case.files.items() if name not in case.written}
    changed = [name for name, data in read.items() if (folder / name).read_bytes() != data]
    if answer.code < 0 or answer.code >= 70:
        return answer, f"the process died ({answer.code})"
    if answer.seconds > SECONDS:
        return answer, f"it took {answer.seconds:.0f} s"
    if any(word in answer.text for word in BLAME):
        return answer, "it blames fewlabel"
    if changed or answer.left:
        return answer, f"it changed {changed} and left {answer.left}"
    if answer.code == 0 and case.out:
        try:
            return answer, _readers_disagree(folder / next(iter(case.files)), folder / case.out)
        except Exception as error:  # whatever a broken table provokes in its readers
            return answer, f"its output cannot be read: {error}"
    return answer, ""


def in_process(args: list[str], cwd: Path, before: Callable[[], None] | None = None) -> Answer:
    """Run the command in a child of this process, which has imported everything already."""
    with tempfile.TemporaryDirectory() as place:
        streams = Path(place, "out"), Path(place, "err")
        child = os.fork()
        if child == 0:
            _become(args, cwd, streams, before)
        ended = os.pidfd_open(child)
        if not select.select([ended], [], [], _WAITING)[0]:
            os.kill(child, signal.SIGKILL)
        os.close(ended)
        done = os.wait4(child, 0)
        seconds = done[2].ru_utime + done[2].ru_stime
        text = "".join(s.read_text(errors="replace") for s in streams if s.exists())
        return Answer(os.waitstatus_to_exitcode(done[1]), text, seconds)


def _become(
    args: list[str], cwd: Path, streams: tuple[Path, Path], before: Callable[[], None] | None
) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if before is not None:
        before()
    become_command({"args": args, "cwd": str(cwd)}, *streams)


def _readers_disagree(source: Path, out: Path) -> str:
    """What is wrong with an output: rows, cells, or what other readers make of it."""
    import pandas as pd

    from fewlabel.tables.csv_writing import python_cells
    from fewlabel.tables.reading import delimiter_of, read_table

    table, result = read_table(source), read_table(out)
    if table.num_rows != result.num_rows:
        return f"{table.num_rows} rows became {result.num_rows}"
    if out.suffix not in (".csv", ".tsv"):
        return ""
    delimiter = delimiter_of(result) or "\t"
    text = out.read_bytes().decode("utf-8-sig")
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    if {len(row) for row in rows} != {result.num_columns} or len(rows) != result.num_rows + 1:
        return "Python's csv reads another table"
    frame = pd.read_csv(
        io.StringIO(text, newline=""), sep=delimiter, dtype=str, keep_default_na=False, header=None
    )
    if frame.shape != (len(rows), result.num_columns):
        return "pandas reads another table"
    for name in table.column_names:
        if name not in result.column_names:
            continue  # an earlier output, replaced
        was, now = python_cells(table.column(name)), python_cells(result.column(name))
        was = [cell.replace("\0", "\ufffd") if isinstance(cell, str) else cell for cell in was]
        same = (a == b or b == f"'{a}" or (a is None and b == "") for a, b in zip(was, now))
        if source.suffix == out.suffix and not all(same):
            return f"cells of {name!r} changed"
    return ""


# --- what is tried ---------------------------------------------------------------------------


def corpus() -> list[Case]:
    """What once failed: a folder for each case, with a file ``args`` beside its files."""
    cases = []
    for folder in sorted(path for path in CORPUS.iterdir() if path.is_dir()):
        args = json.loads((folder / "args").read_text(encoding="utf-8"))
        names = [name for name in args if (folder / name).exists() and name != "args"]
        out = args[args.index("--out") + 1] if "--out" in args else ""
        files = {name: (folder / name).read_bytes() for name in names}
        cases.append(Case(f"corpus {folder.name}", files, args, out if args[0] == "fit" else ""))
    return cases


def good_files(folder: Path) -> dict[str, bytes]:
    """Files as the commands write them, to be changed."""
    rng = random.Random(0)
    lines = ["size,colour,y"]
    for i in range(60):
        y = ["small", "large"][i % 2] if i < 20 else ""
        lines.append(f"{3 * (i % 2) + rng.gauss(0, 1):.2f},{rng.choice(['red', 'blue'])},{y}")
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    for learner, name in (("forest", "model"), ("mixed", "mixed")):
        args = ["fit", "t.csv", "--target", "y", "--learner", learner, "--jobs", "1"]
        args += ["--model", f"{name}.skops", "--report", f"{name}.json", "--out", f"{name}.csv"]
        answer = in_process(args, folder)
        if answer.code != 0:
            raise SystemExit(f"The good table could not be fitted: {answer.text}")
    (folder / "tasks.json").write_text(json.dumps([_task(row) for row in range(20, 30)]))
    for args in (
        ["audit", "model.csv", "--draw", "12", "--all", "--seed", "1", "--out", "checks.csv"],
        ["label", "t.csv", "--target", "y", "--store", "s.sqlite", "--import", "tasks.json"],
        ["label", "t.csv", "--target", "y", "--store", "s.sqlite", "--export", "answers.csv"],
    ):
        answer = in_process(args, folder)
        if answer.code != 0:
            raise SystemExit(f"{args} failed: {answer.text}")
    read = {
        "table": "t.csv",
        "model": "model.skops",
        "mixed": "mixed.skops",
        "report": "model.json",
        "labelled": "model.csv",
        "checks": "checks.csv",
        "answers.json": "tasks.json",
        "answers.csv": "answers.csv",
        "store": "s.sqlite",
    }
    return {key: (folder / name).read_bytes() for key, name in read.items()}


def _task(row: int) -> dict[str, object]:
    """A labelled task as Label Studio exports it."""
    choice = {"choices": [["small", "large"][row % 2]]}
    result = {"from_name": "label", "to_name": "row", "type": "choices", "value": choice}
    annotation = {"completed_by": 1, "was_cancelled": False, "result": [result]}
    return {"id": row, "data": {"fewlabel_row": row}, "annotations": [annotation]}


# --- the run ---------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for what fails")
    parser.add_argument("--note", type=Path, help="records to add the figures to")
    options = parser.parse_args()
    load()
    numbers = range(options.first, options.first + options.inputs)
    with small_forests(n_trees=10, in_folds=5):
        found = fuzz(options.seed, numbers, options.keep, options.minutes)
    note(options.note, "fuzz", seed=options.seed, first=options.first, **found)
    sys.exit(int(found["bad"] > 0))


def fuzz(
    seed: int, numbers: range, keep: Path | None = None, minutes: float = math.inf
) -> dict[str, float]:
    """Try what once failed and these inputs, tell of the bad ones; return how many there were."""
    with tempfile.TemporaryDirectory() as place:
        made = good_files(Path(place))
    bad, start = 0, time.perf_counter()
    seen: dict[str, list[float]] = {}
    cases = corpus() if numbers.start == 0 else []
    for k in [*range(-len(cases), 0), *numbers]:
        if time.perf_counter() - start > 60 * minutes:
            print(f"stopped before input {k}")
            break
        case = cases[k] if k < 0 else case_of(seed, k, made)
        folder = Path(tempfile.mkdtemp())
        answer, problem = run(case, folder)
        kind = f"{case.kind.split()[0]}: {'read' if answer.code == 0 else 'refused'}"
        seen.setdefault(kind, []).append(answer.seconds)
        if problem:
            bad += 1
            print(f"input {k} ({case.kind}): {problem}\n  {answer.text[-300:]!r}", flush=True)
            if keep:
                _keep(case, keep / f"{seed}-{k}")
        shutil.rmtree(folder, ignore_errors=True)
    for kind, seconds in sorted(seen.items()):
        print(
            f"  {kind}: {len(seconds)}, {sum(seconds) / len(seconds):.2f} s of the processor each"
        )
    taken = [seconds for kind in seen.values() for seconds in kind]
    past = (time.perf_counter() - start) / 60
    print(
        f"{len(taken)} inputs in {past:.1f} minutes, {sum(taken) / 60:.1f} of the processor, ",
        end="",
    )
    print(f"the slowest {max(taken):.1f} s, {bad} bad")
    return {"inputs": len(taken), "bad": bad, "slowest": round(max(taken), 2)}


def _keep(case: Case, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in case.files.items():
        (folder / name).write_bytes(data)
    (folder / "args").write_text(json.dumps(case.args), encoding="utf-8")


if __name__ == "__main__":
    main()
