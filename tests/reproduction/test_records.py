"""Specs and the file of records: keys, appending, broken lines, what runs again."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from reproduction.records import RecordWriter, pending, read_records
from reproduction.spec import Trial, trial_from

UNLIMITED = {"seconds": None, "memory_mib": None}


def record(trial, status="ok", **more):
    return {"key": trial.key, "trial": trial.as_dict(), "status": status, **more}


def test_key_depends_on_what_is_said_and_on_nothing_else():
    a = Trial("iris", "RF", 10)
    assert a.key == Trial("iris", "RF", 10, n_trees=200, stratify=False).key
    others = {
        Trial("wine", "RF", 10).key,
        Trial("iris", "MSLA", 10).key,
        Trial("iris", "RF", 20).key,
        Trial("iris", "RF", 10, params=(("a", 1.0),)).key,
        Trial("iris", "RF", 10, stratify=True).key,
    }
    assert len(others | {a.key}) == 6
    # Written down: a change of the scheme would orphan every committed record.
    assert a.key == "67ef82c676d6abd7"


@pytest.mark.parametrize(
    "trial", [Trial("iris", "RF"), Trial("iris", "LS", 30, params=(("gamma", 0.5),), n_rows=99)]
)
def test_spec_survives_json(trial):
    assert trial_from(json.loads(json.dumps(trial.as_dict()))) == trial


def test_append_and_read(tmp_path):
    path = tmp_path / "new" / "records.jsonl"
    trials = [Trial("iris", "RF", seed) for seed in (0, 10)]
    with RecordWriter(path) as writer:
        for trial in trials:
            writer.append(record(trial, scores={"ü": 0.5}))
    assert [r["key"] for r in read_records(path)] == [t.key for t in trials]
    assert path.read_bytes().count(b"\n") == 2


@pytest.mark.parametrize("cut", [1, 2, 20, 60])
def test_a_cut_last_line_is_skipped_and_closed(tmp_path, cut):
    path = tmp_path / "records.jsonl"
    first, second, third = (Trial("iris", "RF", seed) for seed in (0, 10, 20))
    with RecordWriter(path) as writer:
        writer.append(record(first))
        writer.append(record(second, note="ü" * 40))
    path.write_bytes(path.read_bytes()[:-cut])
    # Without its newline a record is complete; with less it is not one.
    survivors = [first, second] if cut == 1 else [first]
    assert [r["key"] for r in read_records(path)] == [t.key for t in survivors]
    with RecordWriter(path) as writer:
        writer.append(record(third))
    assert [r["key"] for r in read_records(path)] == [t.key for t in [*survivors, third]]


def test_lines_that_are_no_records_are_skipped(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_bytes(b'[1]\n{"key": "x"}\n\xff\xfe\n\nnull\n')
    assert read_records(path) == []
    assert read_records(tmp_path / "nothing") == []


def test_two_writers_on_one_file_are_refused(tmp_path):
    path = tmp_path / "records.jsonl"
    other = (
        "import sys, pathlib\n"
        "from reproduction.records import RecordWriter\n"
        "RecordWriter(pathlib.Path(sys.argv[1]))\n"
    )
    command = [sys.executable, "-c", other, str(path)]
    with RecordWriter(path):
        run = subprocess.run(command, capture_output=True, text=True)
        assert run.returncode == 1
        assert "Another run is writing" in run.stderr
    assert subprocess.run(command, capture_output=True).returncode == 0


def test_a_finished_record_is_not_replaced_by_a_failure(tmp_path):
    path, trial = tmp_path / "records.jsonl", Trial("iris", "RF")
    with RecordWriter(path) as writer:
        writer.append(record(trial, "error"))
        assert read_records(path)[0]["status"] == "error"
        writer.append(record(trial, "ok"))
        writer.append(record(trial, "error"))
    assert [r["status"] for r in read_records(path)] == ["ok"]


def test_what_runs_again():
    trial = Trial("iris", "RF")
    slow = record(trial, "time limit", limits={"seconds": 10.0, "memory_mib": None})
    big = record(trial, "memory limit", limits={"seconds": None, "memory_mib": 100.0})

    def runs_again(found, **limits):
        return pending([trial, trial], [found], UNLIMITED | limits) == [trial]

    assert pending([trial, trial], [], UNLIMITED) == [trial]
    assert not runs_again(record(trial, "ok"))
    assert runs_again(record(trial, "error"))
    assert runs_again(slow)
    assert runs_again(slow, seconds=11.0)
    assert not runs_again(slow, seconds=10.0)
    assert runs_again(big, memory_mib=101.0)
    assert not runs_again(big, memory_mib=99.0)
