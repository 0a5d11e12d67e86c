"""Bad input and bad luck: one clear message, a telling exit code, nothing half-written."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from fewlabel._core.atomic import Outputs
from fewlabel._core.errors import UserError
from fewlabel.cli.commands import Wanted, fit_command
from fewlabel.cli.console import Console
from fewlabel.cli.workflow import FitOptions
from support.cli_tools import COMMAND, Runner, columns, csv_text, environment, write_table

pytest.importorskip("typer")
pa = pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def model(fewlabel: Runner, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    write_table(folder)
    options = ["--target", "segment", "--learner", "forest", "--model", "model.skops"]
    assert fewlabel(folder, "fit", "table.csv", *options).code == 0
    return folder / "model.skops"


class Bad(NamedTuple):
    """Files to make, the command to run, and what the message must say."""

    files: dict[str, bytes]
    args: str
    says: str
    code: int = 1


GOOD = csv_text(columns()).encode()
FIT = "fit t.csv --target segment --learner forest --jobs 1 --out out.csv"


def table(**changes: list[Any]) -> bytes:
    return csv_text({**columns(), **changes}).encode()


def parquet_of(values: dict[str, Any]) -> bytes:
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table(values), sink)
    return bytes(sink.getvalue())


def fit(content: bytes, says: str, name: str = "t.csv", options: str = "", code: int = 1) -> Bad:
    return Bad({name: content}, FIT.replace("t.csv", name, 1) + " " + options, says, code)


VOTES = b"a,b\n0.8,0.2\n0.3,0.7\n"

BAD = {
    # files
    "missing file": Bad({}, FIT, "no file 't.csv'"),
    "directory": Bad({"t.csv/x": b""}, FIT, "has no Parquet or text files"),
    "empty": fit(b"", "is empty"),
    "header only": fit(b"size,segment\n", "no rows"),
    "blank header": fit(b"\n1,2\n", "must name the columns"),
    "binary": fit(bytes(range(256)) * 40, "not"),
    "zero bytes": fit(GOOD.replace(b"red", b"r\x00d"), "zero bytes"),
    "wrong encoding": fit(GOOD.replace(b"red", b"r\xe9d"), "not UTF-8"),
    "wrong encoding in the header": fit(GOOD.replace(b"colour", b"couleur \xe9"), "not UTF-8"),
    "utf-16": fit(GOOD.decode().encode("utf-16"), "--encoding utf-16"),
    "unknown encoding": fit(GOOD, "not an encoding", options="--encoding klingon"),
    "other encoding than said": fit(
        GOOD.replace(b"red", b"r\xe9d"), "not ascii text", options="--encoding ascii"
    ),
    "row too short": fit(GOOD + b"1,2\n", "Expected 4 columns, got 2"),
    "row too long": fit(GOOD + b"1,2,red,,5\n", "Expected 4 columns, got 5"),
    "quote never closed": fit(GOOD.replace(b"red", b'"red', 1), "never closed"),
    "duplicate columns": fit(GOOD.replace(b"weight", b"size", 1), "same name: 'size'"),
    "one column": fit(b"segment\na\nb\n", "one column only"),
    "unknown ending": fit(GOOD, "no known ending", name="t.data"),
    "no ending": fit(GOOD, "no known ending", name="table"),
    "excel": fit(b"PK\x03\x04", "Excel", name="t.xlsx"),
    "plain json": fit(b"[]", "empty JSON array", name="t.json"),
    "truncated gzip": fit(gzip.compress(GOOD)[:-20], "cut off", name="t.csv.gz"),
    "not gzip": fit(GOOD, "cannot be decompressed", name="t.csv.gz"),
    "not zstandard": fit(GOOD, "cannot be decompressed", name="t.csv.zst"),
    "not parquet": fit(GOOD, "not a readable Parquet", name="t.parquet"),
    "nothing but lists": fit(
        parquet_of({"a": [[1], [2], [3]], "segment": ["x", "y", None]}),
        "No column is left to learn from ('a': its cells are lists or objects;",
        name="t.parquet",
    ),
    "a target of lists": fit(
        parquet_of({"a": [1, 2, 3], "segment": [["x"], ["y"], None]}),
        "cannot be read as text",
        name="t.parquet",
    ),
    "broken json lines": fit(b'{"a": 1}\n{"a": \n', "not a table in JSON lines", name="t.jsonl"),
    "nothing but objects": fit(
        b'{"a": {"b": 1}, "segment": "x"}\n{"a": {"b": 2}, "segment": "y"}\n'
        b'{"a": {"b": 3}, "segment": null}\n',
        "lists or objects",
        name="t.jsonl",
    ),
    "a cell that Excel cannot hold": Bad(
        {"t.csv": table(colour=["red", "x" * 40_000, "blue"] * 20)},
        FIT.replace("out.csv", "out.xlsx"),
        "one of Excel holds 32,767",
    ),
    "json lines of two types": fit(
        b'{"a": 1, "s": "x"}\n{"a": "one", "s": "x"}\n', "same type", name="t.jsonl"
    ),
    # the target
    "no such target": Bad({"t.csv": GOOD}, "fit t.csv --target segmnet", "mean 'segment'"),
    "no processors": Bad(
        {"t.csv": GOOD}, "fit t.csv --target segment --jobs 0", "name 1 or more, or -1 for all", 2
    ),
    "no processors to label with": Bad(
        {"t.csv": GOOD}, "label t.csv --target segment --jobs 0", "name 1 or more", 2
    ),
    "a seed that is too large": Bad(
        {"t.csv": GOOD}, "fit t.csv --target segment --seed 4294967296", "4294967295", 2
    ),
    "target not named": Bad({"t.csv": GOOD}, "fit t.csv", "--target", 2),
    "none labelled": fit(table(segment=[""] * 60), "is empty"),
    "all labelled": fit(table(segment=["a", "b"] * 30), "nothing to fill"),
    "all labelled, -1 among them": fit(table(segment=["a", "-1", "b"] * 20), "--unlabeled '-1'"),
    "a mark besides empty cells": fit(
        table(segment=["a", "b", "", "NA"] * 15), "If 'NA' marks unlabelled rows"
    ),
    "one class": fit(table(segment=["a"] * 5 + [""] * 55), "the same label, 'a'"),
    "each label once": fit(
        table(segment=[f"n{i}" for i in range(59)] + [""]), "a label of its own"
    ),
    "10,000 classes": fit(
        b"x,segment\n"
        + b"".join(b"%d,c%d\n" % (i % 7, i % 10_000) for i in range(20_000))
        + b"1,\n",
        "10,000 different labels",
    ),
    # the other columns
    "constant columns": fit(
        table(size=[1] * 60, weight=[2] * 60, colour=["x"] * 60), "No column is left"
    ),
    "NaN-only columns": fit(
        table(size=[""] * 60, weight=["NaN"] * 60, colour=[""] * 60), "No column is left"
    ),
    "identifiers only": fit(
        table(size=list(range(60)), weight=[f"w{i}" for i in range(60)], colour=["x"] * 60),
        "No column is left",
    ),
    "all dropped": fit(
        GOOD, "No column is left", options="--drop size --drop weight --drop colour"
    ),
    "no such column to drop": fit(GOOD, "no column 'sise'", options="--drop sise"),
    "target dropped": fit(GOOD, "--drop names the target", options="--drop segment"),
    "no such truth": fit(GOOD, "no column 'really' for --truth", options="--truth really"),
    "truth written otherwise": fit(GOOD, "Write both alike", options="--truth colour"),
    "truth is the target": fit(GOOD, "the same column", options="--truth segment"),
    # options
    "unknown policy": fit(GOOD, "policy", options="--policy brave", code=2),
    "negative budget": fit(GOOD, "max-train", options="--max-train -5", code=2),
    "seed is no number": fit(GOOD, "seed", options="--seed x", code=2),
    "unknown option": fit(GOOD, "No such option", options="--tagret x", code=2),
    "unknown command": Bad({}, "fti t.csv", "No such command", 2),
    # outputs
    "output exists": Bad({"t.csv": GOOD, "out.csv": b"precious"}, FIT, "--force"),
    "output is the input": fit(GOOD, "never changed", options="--out t.csv --force"),
    "output by another way": fit(GOOD, "never changed", options="--out ./x/../t.csv --force"),
    "output is a folder": Bad({"t.csv": GOOD, "out.csv/x": b""}, FIT, "is a folder"),
    "no such folder": fit(GOOD, "does not exist", options="--out nowhere/out.csv"),
    "output of unknown format": fit(GOOD, "no known ending", options="--out out.data"),
    "model is no .skops": fit(GOOD, "does not end in .skops", options="--model m.pkl"),
    "report of unknown format": fit(GOOD, "format of the report", options="--report r.pdf"),
    # models
    "no such model": Bad({"t.csv": GOOD}, "predict m.skops t.csv", "no file 'm.skops'"),
    "foreign model": Bad({"t.csv": GOOD, "m.skops": GOOD}, "predict m.skops t.csv", "refused"),
    "columns absent": Bad({"t.csv": b"size,segment\n1,\n"}, "predict MODEL t.csv", "lacks columns"),
    "another type of column": Bad(
        {"t.csv": table(size=["tall"] * 60)}, "predict MODEL t.csv", "held a number"
    ),
    "another notation": Bad(
        {"t.csv": table(size=["1"] + ["0,5"] * 59).replace(b"0,5", b'"0,5"')},
        "predict MODEL t.csv",
        "59 of 60 filled cells",
    ),
    # bounds and reports
    "votes do not sum to 1": Bad(
        {"v.csv": VOTES + b"0.5,0.6\n"}, "bounds v.csv", "not shares that sum to 1 (first: row 3"
    ),
    "votes are text": Bad({"v.csv": b"a,b\nx,y\n"}, "bounds v.csv", "something else than numbers"),
    "exact without probabilities": Bad({"v.csv": VOTES}, "bounds v.csv --exact", "--proba"),
    "truth and probabilities": Bad(
        {"v.csv": VOTES, "p.csv": VOTES}, "bounds v.csv --truth a --proba p.csv", "exclude"
    ),
    "truth of another class": Bad(
        {"v.csv": b"a,b,t\n0.8,0.2,a\n0.3,0.7,z\n"}, "bounds v.csv --truth t", "'z'"
    ),
    "probabilities of fewer rows": Bad(
        {"v.csv": VOTES, "p.csv": b"a,b\n1,0\n"},
        "bounds v.csv --proba p.csv",
        "has 1 row and the votes have 2",
    ),
    "report of something else": Bad(
        {"r.json": b'{"headline": 1, "classes": 2, "errors": 3, "label_next": 4}'},
        "report r.json",
        "not a report in JSON",
    ),
    "report of odd parts": Bad(
        {"r.json": b'{"headline": [], "classes": [{}], "errors": [[]], "label_next": {}}'},
        "report r.json --format html",
        "not a report in JSON",
    ),
    "report of nothing": Bad({"r.json": b"{}"}, "report r.json", "not a report in JSON"),
    "report of a table": Bad({"t.csv": GOOD}, "report t.csv", "refused"),
}


def make(files: dict[str, bytes], folder: Path) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_there_are_many_bad_inputs():
    assert len(BAD) >= 40


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str, fewlabel: Runner, model: Path, tmp_path: Path):
    case = BAD[name]
    make(case.files, tmp_path)
    before = snapshot(tmp_path)
    args = [str(model) if arg == "MODEL" else arg for arg in case.args.split()]
    answer = fewlabel(tmp_path, *args)
    assert answer.code == case.code, answer.err
    assert case.says in answer.err, answer.err
    assert "Traceback" not in answer.err
    assert answer.out == ""
    if case.code == 1:
        message, remedy = answer.err.splitlines()[-2:]
        assert message.startswith("fewlabel: ")
        assert remedy.startswith("  ")
        assert remedy.strip()
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    ("package", "wanted"),
    [
        ("openpyxl", Wanted(Path("out.xlsx"), None, None, False)),
        ("skops.io", Wanted(None, Path("m.skops"), None, False)),
    ],
)
def test_a_missing_package_is_told_before_the_work(
    package: str, wanted: Wanted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def work(*given: Any) -> None:
        pytest.fail("it learned first")

    path = write_table(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fewlabel.cli.commands.fit_table", work)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises((UserError, ImportError), match=package.partition(".")[0]):
        fit_command(Console(), path, FitOptions(target="segment"), wanted)


def test_errors_for_machines(fewlabel: Runner, tmp_path: Path):
    answer = fewlabel(tmp_path, "fit", "t.csv", "--target", "y", "--json")
    error = json.loads(answer.out)["error"]
    assert answer.code == 1
    assert "no file" in error["message"]
    assert error["remedy"]
    assert answer.err.count("\n") <= 1  # progress only


def test_errors_of_the_system_end_in_one_full_stop():
    from fewlabel.cli.console import explained

    message, _ = explained(FileExistsError("There it is. Name another one."))
    assert message == "There it is. Name another one: nothing was written."


def test_messages_show_untrusted_text_on_one_line(fewlabel: Runner, tmp_path: Path):
    make({"t.csv": b'"a\x1b[31m\nb",y\n1,2\n'}, tmp_path)
    answer = fewlabel(tmp_path, "fit", "t.csv", "--target", "nothing")
    assert answer.code == 1
    assert "\x1b" not in answer.err


# --- bad luck --------------------------------------------------------------------------------


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def slow_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table that takes seconds to learn and a second to write."""
    rng = np.random.default_rng(0)
    n = 12_000
    X = rng.normal(size=(n, 8)).round(6)
    label = np.where(X[:, 0] + X[:, 1] > 0, "up", "down")
    lines = [",".join(map(str, row)) for row in X]
    path = tmp_path_factory.mktemp("slow") / "slow.csv"
    rows = [f"{line},{label[i] if i < 200 else ''}" for i, line in enumerate(lines)]
    path.write_text("a,b,c,d,e,f,g,h,y\n" + "\n".join(rows) + "\n")
    return path


# A background job of a shell ignores Ctrl-C, and so would its children: these must not.
AS_FOREGROUND_JOB = (
    "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "runpy.run_module('fewlabel', run_name='__main__', alter_sys=True)"
)


def start(folder: Path, *args: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [COMMAND[0], "-c", AS_FOREGROUND_JOB, *map(str, args)],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_line(process: subprocess.Popen[str], word: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if word in line:
            return
    raise AssertionError(f"the command ended without saying {word!r}")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_interrupted_while_learning(
    number: signal.Signals, code: int, slow_table: Path, tmp_path: Path
):
    if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
        pytest.skip("SIGHUP is ignored under nohup, by commands, too")
    before = digest(slow_table)
    options = ["--target", "y", "--jobs", 1, "--out", "out.csv", "--model", "m.skops"]
    process = start(tmp_path, "fit", slow_table, *options)
    wait_for_line(process, "training")
    time.sleep(0.3)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []
    assert digest(slow_table) == before


@pytest.fixture(scope="module")
def quick_model(fewlabel: Runner, slow_table: Path) -> Path:
    """A model that learned from the first rows of the slow table."""
    rows = slow_table.read_text().splitlines()[:300]
    (slow_table.parent / "few.csv").write_text("\n".join(rows) + "\n")
    options = ["--target", "y", "--learner", "forest", "--jobs", 1, "--model", "few.skops"]
    assert fewlabel(slow_table.parent, "fit", "few.csv", *options).code == 0
    return slow_table.parent / "few.skops"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_stopped_while_writing(
    number: signal.Signals, slow_table: Path, quick_model: Path, tmp_path: Path
):
    before = digest(slow_table)
    out = tmp_path / "out.csv.xz"  # slow to compress: there is time to stop it
    process = start(tmp_path, "predict", quick_model, slow_table, "--out", out)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("*.part")) and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGINT else -signal.SIGKILL)
    assert not out.exists()  # what SIGKILL leaves has another name
    left = {path.suffix for path in tmp_path.iterdir()}
    assert left == (set() if number == signal.SIGINT else {".part"})
    assert digest(slow_table) == before
    Outputs([out])  # the next run removes what is left
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 256 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(options, capture_output=True).returncode != 0:
        pytest.skip("no right to mount a small disk here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_disk_full(small_disk: Path, fewlabel: Runner, tmp_path: Path):
    path = write_table(tmp_path)
    options = ["--target", "segment", "--learner", "forest", "--jobs", "1"]
    outputs = ["--out", small_disk / "out.csv", "--model", small_disk / "model.skops"]
    (small_disk / "filler").write_bytes(b"x" * 250_000)
    answer = fewlabel(tmp_path, "fit", path, *options, *outputs)
    assert answer.code == 1
    assert "No space left" in answer.err
    assert "Traceback" not in answer.err
    assert [p.name for p in small_disk.iterdir()] == ["filler"]


def test_read_only_folder(small_disk: Path, fewlabel: Runner, tmp_path: Path):
    path = write_table(tmp_path)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    options = ["--target", "segment", "--out", small_disk / "out.csv"]
    answer = fewlabel(tmp_path, "fit", path, *options)
    assert answer.code == 1
    assert "Cannot write" in answer.err
    assert "training" not in answer.err  # found out before the work, not after


def test_a_reader_that_goes_away(model: Path):
    command = " ".join([*COMMAND, "report", str(model), "--format", "html", "| head -c 10"])
    answer = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in answer.stderr
