"""Feed the commands with broken, odd and hostile files, and see that they cope.

A run is bad if a process dies, hangs, blames fewlabel, leaves temporary files, changes its input,
or ends well with a table that readers see differently. Inputs are made by generators of odd tables
and by changing bytes of good files; number k of a seed is always the same input. What once failed
lies in ``tests/corpus`` and comes first.

    python -m benchmarks.fuzz --inputs 10000 --seed 0
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import importlib
import io
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parents[1] / "tests" / "corpus"
SECONDS = 20
"""Of the processor; a busy machine is no hang."""
_WAITING = 10 * SECONDS
_MEMORY = 8 * 2**30
BLAME = ("mistake of fewlabel", "Traceback", "Fatal Python error")


@dataclass(frozen=True)
class Case:
    """Files, and the command that reads the first of them."""

    kind: str
    files: dict[str, bytes]
    args: list[str]
    out: str = ""


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
    changed = [n for n, data in case.files.items() if (folder / n).read_bytes() != data]
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
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        streams = Path(place, "out"), Path(place, "err")
        child = os.fork()
        if child == 0:
            _become(args, cwd, streams, before)
        while not (done := os.wait4(child, os.WNOHANG))[0]:
            if time.perf_counter() - start > _WAITING:
                os.kill(child, signal.SIGKILL)
                done = os.wait4(child, 0)
                break
            time.sleep(0.005)
        seconds = done[2].ru_utime + done[2].ru_stime
        text = "".join(s.read_text(errors="replace") for s in streams if s.exists())
        return Answer(os.waitstatus_to_exitcode(done[1]), text, seconds)


def _become(
    args: list[str], cwd: Path, streams: tuple[Path, Path], before: Callable[[], None] | None
) -> None:
    from tests.support.fork_server import become_command

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


# --- inputs ----------------------------------------------------------------------------------

_ODD = [
    "", " ", "\r", "\n", "\r\n", '"', "'", ",", ";", "\t", "|", "=1+1", "@x", "+1", "-1", "\\",
    "\ufeff", "\u00a0=1", "＝1", "é", "日本", "🙂", "\u202e", "\x1b[31m", "NaN", "null", "inf",
    "-inf", "1e309", "1e-320", "1,5", "1.234,5", "007", "0x1F", "9999-12-31", "0000-00-00",
    "2024-02-31", "24:00", "true", "FALSE", "?", "-999", "a" * 300, "\x00", "<script>", "{{x}}",
]  # fmt: skip


def _cell(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.45:
        return f"{rng.gauss(0, 3):.3f}"
    if kind < 0.7:
        return rng.choice(["red", "green", "blue"])
    if kind < 0.9:
        return "".join(rng.choice(_ODD) for _ in range(rng.randint(1, 2)))
    return rng.choice(_ODD)


def _columns(rng: random.Random) -> dict[str, list[str]]:
    n, odd = rng.randint(12, 40), rng.random() < 0.5
    names = [f"c{k}" for k in range(rng.randint(1, 5))]
    if odd:
        names[0] = rng.choice([name for name in _ODD if name])
    table = {name: [_cell(rng) for _ in range(n)] for name in names}
    table["size"] = [f"{3 * (i % 2) + rng.gauss(0, 1):.2f}" for i in range(n)]
    classes = [_cell(rng), _cell(rng)] if odd else ["small", "large"]
    table["y"] = [classes[i % 2] if i < n // 2 else "" for i in range(n)]
    return table


def table_case(rng: random.Random, made: dict[str, bytes]) -> Case:
    """A table of odd cells in some format, perhaps with changed bytes."""
    columns = _columns(rng)
    columns.setdefault("colour", [_cell(rng) for _ in columns["y"]])  # the model wants it
    ending = rng.choice(["csv", "csv", "csv", "tsv", "jsonl", "parquet"])
    data = _written(columns, ending, rng)
    if rng.random() < 0.4:
        data = changed_bytes(data, rng)
    out = f"out.{ending if rng.random() < 0.8 else 'csv'}"
    if rng.random() < 0.2:
        files = {f"t.{ending}": data, "m.skops": made["model"]}
        return Case("predict", files, ["predict", "m.skops", f"t.{ending}", "--out", out], out)
    learner = "mixed" if rng.random() < 0.1 else "forest"
    args = ["fit", f"t.{ending}", "--target", "y", "--out", out, "--jobs", "1"]
    args += ["--learner", learner, "--report", rng.choice(["r.html", "r.json", "r.md"])]
    return Case(f"fit {ending} {learner}", {f"t.{ending}": data}, args, out)


def _written(columns: dict[str, list[str]], ending: str, rng: random.Random) -> bytes:
    rows = list(zip(*columns.values()))
    if ending == "jsonl":
        return b"".join(json.dumps(dict(zip(columns, row))).encode() + b"\n" for row in rows)
    if ending == "parquet":
        import pyarrow as pa
        from pyarrow import parquet

        file = io.BytesIO()
        parquet.write_table(pa.table({k: [c or None for c in v] for k, v in columns.items()}), file)
        return file.getvalue()
    text = io.StringIO()
    end = rng.choice(["\n", "\n", "\r\n", "\r"])
    delimiter = "\t" if ending == "tsv" else rng.choice(",,;|")
    quoting = rng.choice([csv.QUOTE_ALL, csv.QUOTE_ALL, csv.QUOTE_MINIMAL])
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writerows([list(columns), *rows])
    mark = "\ufeff" if rng.random() < 0.1 else ""
    return (mark + text.getvalue()).encode()


def changed_bytes(data: bytes, rng: random.Random) -> bytes:
    """Flip bits, cut off, repeat, insert or remove a few bytes."""
    new = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        if not new:
            break
        at, n = rng.randrange(len(new)), rng.randint(1, 8)
        match rng.randrange(5):
            case 0:
                new[at] ^= 1 << rng.randrange(8)
            case 1:
                del new[at:]
            case 2:
                new[at:at] = new[at : at + 8 * n]
            case 3:
                new[at:at] = rng.choice(
                    [b'"', b"\r", b"\n", b"\x00", b"\xff", b",", rng.randbytes(n)]
                )
            case _:
                del new[at : at + n]
    return bytes(new)


def model_case(rng: random.Random, made: dict[str, bytes]) -> Case:
    """A model file that was damaged, or forged with sums that fit."""
    source = made["model"] if rng.random() < 0.7 else made["mixed"]
    data = changed_bytes(source, rng) if rng.random() < 0.3 else _forged(source, rng)
    files = {"t.csv": made["table"], "m.skops": data}
    return Case("model", files, ["predict", "m.skops", "t.csv", "--out", "out.csv"])


def _forged(source: bytes, rng: random.Random) -> bytes:
    with zipfile.ZipFile(io.BytesIO(source)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members.pop("fewlabel.json"))
    for _ in range(rng.randint(1, 3)):
        name = rng.choice(list(members))
        if name == "schema.json" and rng.random() < 0.8:
            schema = json.loads(members[name])
            members[name] = json.dumps(changed_json(schema, rng)).encode()
        elif rng.random() < 0.7 and len(members[name]) > 130:
            # Behind the header of an array: other numbers in it.
            body = bytearray(members[name])
            for _ in range(rng.randint(1, 8)):
                at = rng.randrange(128, len(body))
                body[at : at + 8] = rng.choice([b"\xff" * 8, b"\x00" * 8, rng.randbytes(8)])
            members[name] = bytes(body[: len(members[name])])
        else:
            members[name] = changed_bytes(members[name], rng)
    manifest["members"] = {n: hashlib.sha256(d).hexdigest() for n, d in members.items()}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        archive.writestr("fewlabel.json", json.dumps(manifest))
    return file.getvalue()


def changed_json(value: Any, rng: random.Random) -> Any:
    """One value somewhere in a structure replaced, removed or moved."""
    path, node = [], value
    while isinstance(node, (dict, list)) and node and (not path or rng.random() < 0.85):
        key = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
        path.append((node, key))
        node = node[key]
    if not path:
        return value
    holder, key = path[-1]
    if isinstance(holder, dict) and rng.random() < 0.3:
        del holder[key]
    else:
        odd = [None, True, -1, 10**30, 1.5, "x", "\x1b[2J<script>", [], {}, [[]], value is None]
        holder[key] = rng.choice(odd)
    return value


def report_case(rng: random.Random, made: dict[str, bytes]) -> Case:
    """A report in JSON with changed values or bytes."""
    if rng.random() < 0.3:
        data = changed_bytes(made["report"], rng)
    else:
        summary = json.loads(made["report"])
        for _ in range(rng.randint(1, 3)):
            summary = changed_json(summary, rng)
        data = json.dumps(summary).encode()
    kind = rng.choice(["html", "json", "md"])
    args = ["report", "r.json", "--format", kind, "--out", f"out.{kind}"]
    return Case(f"report {kind}", {"r.json": data}, args)


def votes_case(rng: random.Random, made: dict[str, bytes]) -> Case:
    """A table of votes with odd numbers among them."""
    rows = []
    for _ in range(rng.randint(2, 20)):
        first = rng.random()
        row = [f"{first:.4f}", f"{1 - first:.4f}", rng.choice("ab")]
        if rng.random() < 0.1:
            row[rng.randrange(3)] = _cell(rng)
        rows.append(row)
    data = _written(dict(zip(("a", "b", "truth"), map(list, zip(*rows)))), "csv", rng)
    if rng.random() < 0.3:
        data = changed_bytes(data, rng)
    args = ["bounds", "v.csv", *(["--truth", "truth"] if rng.random() < 0.7 else [])]
    return Case("bounds", {"v.csv": data}, args)


KINDS: list[tuple[float, Callable[[random.Random, dict[str, bytes]], Case]]] = [
    (0.45, table_case),
    (0.3, model_case),
    (0.15, report_case),
    (0.1, votes_case),
]


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
        args += ["--model", f"{name}.skops", "--report", f"{name}.json"]
        answer = in_process(args, folder)
        if answer.code != 0:
            raise SystemExit(f"The good table could not be fitted: {answer.text}")
    read = {
        "table": "t.csv",
        "model": "model.skops",
        "mixed": "mixed.skops",
        "report": "model.json",
    }
    return {key: (folder / name).read_bytes() for key, name in read.items()}


# --- the run ---------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for what fails")
    options = parser.parse_args()
    for name in ("fewlabel.cli.commands", "skops.io"):  # once, for all children
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as place:
        made = good_files(Path(place))
    bad, seen, start = 0, Counter[str](), time.perf_counter()
    cases = corpus()
    for k in range(-len(cases), options.inputs):
        case = cases[k] if k < 0 else _case(options.seed, k, made)
        folder = Path(tempfile.mkdtemp())
        answer, problem = run(case, folder)
        seen[f"{case.kind.split()[0]}: {'read' if answer.code == 0 else 'refused'}"] += 1
        if problem:
            bad += 1
            print(f"input {k} ({case.kind}): {problem}\n  {answer.text[-300:]!r}", flush=True)
            if options.keep:
                _keep(case, options.keep / f"{options.seed}-{k}")
        shutil.rmtree(folder, ignore_errors=True)
    for kind, n in sorted(seen.items()):
        print(f"  {kind}: {n}")
    minutes = (time.perf_counter() - start) / 60
    print(f"{sum(seen.values())} inputs in {minutes:.1f} minutes, {bad} bad")
    sys.exit(int(bad > 0))


def _case(seed: int, k: int, made: dict[str, bytes]) -> Case:
    rng = random.Random(f"{seed} {k}")
    make = rng.choices([make for _, make in KINDS], [weight for weight, _ in KINDS])[0]
    return make(rng, made)


def _keep(case: Case, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in case.files.items():
        (folder / name).write_bytes(data)
    (folder / "args").write_text(json.dumps(case.args), encoding="utf-8")


if __name__ == "__main__":
    main()
