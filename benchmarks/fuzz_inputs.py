"""Odd tables, damaged and forged model files, broken reports, for :mod:`benchmarks.fuzz`."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import random
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Case:
    """Files, and the command that reads the first of them."""

    kind: str
    files: dict[str, bytes]
    args: list[str]
    out: str = ""
    written: tuple[str, ...] = ()
    """Files that the command may change."""


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


def audit_case(rng: random.Random, made: dict[str, bytes]) -> Case:
    """A labelled table, or the answers that a person gave to its checks, with odd cells."""
    labelled, checks = made["labelled"], made["checks"]
    kind = rng.choice(["answers", "answers", "table"])
    if kind == "table":
        labelled = _odd_cells(labelled, rng)
    else:
        checks = _odd_cells(_answered(checks, rng), rng)
    if rng.random() < 0.3:
        checks = changed_bytes(checks, rng)
    files = {"l.csv": labelled, "c.csv": checks}
    args = ["audit", "l.csv", *rng.choice([[], ["--json"], ["--sequential"], ["--goal", "5%"]])]
    if kind == "table" and rng.random() < 0.7:
        return Case("audit", {"l.csv": labelled}, [*args, "--draw", "7", "--out", "out.csv"])
    if rng.random() < 0.5:
        args += ["--out", "out.csv"]
    return Case("audit", files, [*args, "--checked", "c.csv"])


def _answered(checks: bytes, rng: random.Random) -> bytes:
    """The column that a person fills in, filled in, mostly."""
    rows = list(csv.DictReader(io.StringIO(checks.decode())))
    for row in rows:
        answers = [row["audit_label"]] * 8 + ["small", "large", "", _cell(rng)]
        row["audit_right_label"] = rng.choice(answers)
    if rng.random() < 0.2:
        rng.shuffle(rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _odd_cells(data: bytes, rng: random.Random) -> bytes:
    """A few cells, perhaps of the header, replaced; a row or a column doubled or left out."""
    rows = list(csv.reader(io.StringIO(data.decode())))
    for _ in range(rng.choice([0, 1, 1, 2, 5])):
        row = rng.choice(rows)
        row[rng.randrange(len(row))] = _cell(rng)
    match rng.randrange(8):
        case 0:
            rows.insert(rng.randrange(1, len(rows)), rng.choice(rows))
        case 1:
            del rows[rng.randrange(len(rows))]
        case 2:
            at = rng.randrange(len(rows[0]))
            rows = [row[:at] + row[at + 1 :] for row in rows]
        case 3:
            at = rng.randrange(len(rows[0]))
            rows = [[*row, row[at]] for row in rows]
        case _:
            pass
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def label_case(rng: random.Random, made: dict[str, bytes]) -> Case:
    """Answers of other people, or a file of stored answers, with odd cells or changed bytes."""
    files = {"t.csv": made["table"]}
    args = ["label", "t.csv", "--target", "y", "--store", "s.sqlite"]
    kind = rng.choice(["csv", "json", "store"])
    if kind == "store":
        files["s.sqlite"] = changed_bytes(made["store"], rng)
        return Case("label", files, [*args, "--export", "out.csv"], written=("s.sqlite",))
    data = made[f"answers.{kind}"]
    if kind == "csv":
        data = _odd_cells(data, rng)
    else:
        tasks = json.loads(data)
        for _ in range(rng.randint(0, 3)):
            tasks = changed_json(tasks, rng)
        data = json.dumps(tasks).encode()
    if rng.random() < 0.3:
        data = changed_bytes(data, rng)
    files[f"a.{kind}"] = data
    return Case("label", files, [*args, "--import", f"a.{kind}", "--export", "out.csv"])


def columns_case(rng: random.Random, made: dict[str, bytes]) -> Case:
    """What is said of the columns of an odd table, with a kind that a user names."""
    columns = _columns(rng)
    data = _written(columns, "csv", rng)
    if rng.random() < 0.3:
        data = changed_bytes(data, rng)
    args = ["columns", "t.csv", "--target", "y"]
    if rng.random() < 0.6:
        option = rng.choice(["--text", "--number", "--category", "--date", "--drop"])
        args += [f"{option}={rng.choice(list(columns))}"]
    return Case("columns", {"t.csv": data}, [*args, *rng.choice([[], ["--json"]])])


KINDS: list[tuple[float, Callable[[random.Random, dict[str, bytes]], Case]]] = [
    (0.35, table_case),
    (0.25, model_case),
    (0.12, audit_case),
    (0.08, columns_case),
    (0.05, label_case),
    (0.1, report_case),
    (0.05, votes_case),
]


def case_of(seed: int, k: int, made: dict[str, bytes]) -> Case:
    """Input number k of a seed: always the same."""
    rng = random.Random(f"{seed} {k}")
    make = rng.choices([make for _, make in KINDS], [weight for weight, _ in KINDS])[0]
    return make(rng, made)
