"""The runner: limits, crashes, kills. Children are real processes, the kill is a real SIGKILL."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from reproduction.datasets import load_dataset, paper_split
from reproduction.estimate import seconds_left
from reproduction.measure import label_proba_setting, measure
from reproduction.methods import METHODS, method_named, scaled
from reproduction.records import RecordWriter, read_records
from reproduction.run import Limits, run
from reproduction.show import progress_shown
from reproduction.spec import Trial

SLOW = "support.experiment_methods:SLOW"
FEW_TREES = 5


# Of processes that are to find the methods beside this file.
PYTHONPATH = os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), *sys.path]))


def forest(seed):
    return Trial("iris", "RF", seed, n_trees=FEW_TREES)


def test_a_record_holds_what_is_needed_to_judge_it(tmp_path):
    seen = []
    records = run([forest(0), forest(10)], tmp_path / "r.jsonl", jobs=2, report=seen.append)
    assert [r["status"] for r in records] == ["ok", "ok"]
    one = next(r for r in records if r["trial"]["seed"] == 10)
    assert one["key"] == forest(10).key
    assert one["peak_mib"] > 10
    assert one["seconds"]["fit"] > 0
    assert one["limits"] == {"seconds": 14400.0, "memory_mib": None}
    assert set(one["versions"]) == {"fewlabel", "python", "numpy", "scipy", "scikit-learn"}
    assert one["machine"]["cores"] == os.cpu_count()
    assert [p.done for p in seen] == [1, 2]
    assert seen[-1].seconds_left == 0


def test_the_score_is_that_of_the_paper_setting(tmp_path):
    iris = load_dataset("iris")
    split = paper_split(iris.y, 15, trial=3)
    model = RandomForestClassifier(FEW_TREES, random_state=30)
    model.fit(iris.X[split.labeled].astype(np.float32), iris.y[split.labeled])
    expected = model.score(iris.X[split.unlabeled].astype(np.float32), iris.y[split.unlabeled])
    (record,) = run([forest(30)], tmp_path / "r.jsonl")
    assert record["scores"]["accuracy"] == pytest.approx(expected, abs=1e-6)


def test_runs_are_deterministic_and_resume(tmp_path):
    file = tmp_path / "a" / "records.jsonl"
    first = run([forest(0)], file)
    again = run([forest(0)], tmp_path / "b" / "records.jsonl")
    assert first[0]["scores"] == again[0]["scores"]
    before = file.read_bytes()
    both = run([forest(0), forest(10)], file)
    assert len(both) == 2
    assert file.read_bytes().startswith(before)


def test_what_another_file_of_the_folder_holds_is_not_run_again(tmp_path):
    (first,) = run([forest(0)], tmp_path / "a.jsonl")
    both = run([forest(0), forest(10)], tmp_path / "b.jsonl")
    assert first in both
    assert len(both) == 2
    assert (tmp_path / "b.jsonl").read_text().count("\n") == 1


def test_time_limit_is_na(tmp_path):
    start = time.monotonic()
    (record,) = run([Trial("iris", SLOW)], tmp_path / "r.jsonl", limits=Limits(seconds=3.0))
    assert record["status"] == "time limit"
    assert "scores" not in record
    assert time.monotonic() - start < 30
    # Settled at this limit, but not at a higher one.
    size = (tmp_path / "r.jsonl").stat().st_size
    run([Trial("iris", SLOW)], tmp_path / "r.jsonl", limits=Limits(seconds=3.0))
    assert (tmp_path / "r.jsonl").stat().st_size == size


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits are kept on Linux only")
def test_memory_limit_is_na(tmp_path):
    trial = Trial("iris", "support.experiment_methods:HUNGRY")
    (record,) = run([trial], tmp_path / "r.jsonl", limits=Limits(memory_mib=500))
    assert record["status"] == "memory limit"
    (record,) = run([trial], tmp_path / "r.jsonl", limits=Limits(memory_mib=2000))
    assert record["status"] == "ok"
    assert record["peak_mib"] > 600


def test_a_crash_and_an_error_are_reported_and_tried_again(tmp_path, monkeypatch):
    monkeypatch.setenv("FAILING_UNTIL", str(tmp_path / "mended"))
    crash = Trial("iris", "support.experiment_methods:CRASHING")
    fail = Trial("iris", "support.experiment_methods:FAILING")
    records = {r["key"]: r for r in run([crash, fail, forest(0)], tmp_path / "r.jsonl")}
    assert records[crash.key]["status"] == "error"
    assert "code 7" in records[crash.key]["error"]
    assert records[fail.key]["error"] == "RuntimeError: not today"
    assert records[forest(0).key]["status"] == "ok"
    assert (tmp_path / "r.jsonl").read_text().count("\n") == 3
    (tmp_path / "mended").touch()
    again = {r["key"]: r["status"] for r in run([fail, forest(0)], tmp_path / "r.jsonl")}
    assert again == {fail.key: "ok", forest(0).key: "ok"}
    assert (tmp_path / "r.jsonl").read_text().count("\n") == 4


def test_unknown_data_is_an_error_of_the_trial(tmp_path, monkeypatch):
    (record,) = run([Trial("nonsense", "RF")], tmp_path / "r.jsonl")
    assert record["status"] == "error"
    assert "must be one of" in record["error"]


SCRIPT = """
import pathlib, sys
from reproduction.run import run
from reproduction.spec import Trial
if __name__ == "__main__":
    trials = [Trial("iris", "support.experiment_methods:SLOW", seed) for seed in range(6)]
    run(trials, pathlib.Path(sys.argv[1]), jobs=2)
"""


def _start(tmp_path, seconds):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    pids = tmp_path / "pids"
    pids.mkdir(exist_ok=True)
    environment = os.environ | {
        "PYTHONPATH": PYTHONPATH,
        "SLOW_SECONDS": str(seconds),
        "SLOW_PIDS": str(pids),
    }
    return subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "r.jsonl")], env=environment
    )


def _wait_for(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


def _alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A zombie, whose parent has not looked yet, has ended too.
    state = Path(f"/proc/{pid}/stat")
    return not (state.exists() and state.read_text().rsplit(")", 1)[1].split()[0] == "Z")


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_sigkill_loses_at_most_the_trials_in_flight(tmp_path):
    path = tmp_path / "r.jsonl"
    process = _start(tmp_path, 1.0)
    _wait_for(lambda: path.exists() and path.read_bytes().count(b"\n") >= 2)
    pids = tmp_path / "pids"
    _wait_for(lambda: len(list(pids.iterdir())) > path.read_bytes().count(b"\n"))
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    kept = path.read_bytes()
    # The children end themselves, and what they were doing is not written by anybody.
    _wait_for(lambda: not any(_alive(int(p.name)) for p in pids.iterdir()))
    assert path.read_bytes() == kept
    finished = [json.loads(line)["key"] for line in kept.splitlines()]
    assert 2 <= len(finished) < 6
    started = len(list(pids.iterdir()))
    assert started - len(finished) <= 2  # two jobs

    # As if the kill had come in the middle of a write:
    path.write_bytes(kept + b'{"key": "half')
    assert _start(tmp_path, 0.0).wait() == 0
    lines = path.read_bytes()
    assert lines.startswith(kept)
    keys = [record["key"] for record in read_records(path)]
    assert sorted(keys) == sorted(Trial("iris", SLOW, seed).key for seed in range(6))
    # Nothing ran twice: six records and the broken line.
    assert lines.count(b"\n") == 7


# --- inside a trial --------------------------------------------------------------------------


def test_training_sees_neither_the_test_part_nor_hidden_labels():
    name = "support.experiment_methods:SEEN"
    answer = measure(Trial("iris", name, n_test=40, n_labeled=30))
    assert answer["scores"]["n_iter"] == 110  # rows that fit got
    assert "test_accuracy" in answer["scores"]
    assert "test_accuracy" not in measure(Trial("iris", name, n_labeled=30))["scores"]


def test_subsample_and_missing_classes():
    answer = measure(Trial("digits", "RF", n_rows=100, n_labeled=5, n_trees=FEW_TREES))
    assert answer["scores"]["missing_classes"] >= 5
    assert answer["scores"]["accuracy"] < 0.7
    described = measure(Trial("iris", "describe"))["scores"]
    assert described == {"l": 15, "u": 135, "d": 4, "K": 3, "class_counts": [50, 50, 50]}


def test_oracle_probabilities_follow_the_order_of_the_rows():
    y = np.array([0, 1, 2, 1, 0])
    split = paper_split(y, 2, seed=1)
    truth = label_proba_setting(Trial("iris", "MSLA", label_proba="oracle"), y, split)
    rows = [*split.labeled, *split.unlabeled]
    known = np.unique(y[split.labeled])
    np.testing.assert_allclose(truth.sum(axis=1), 1)
    for row, proba in zip(rows, truth):
        if y[row] in known:
            assert known[proba.argmax()] == y[row]
            assert proba.max() == 1
        else:
            np.testing.assert_allclose(proba, 1 / len(known))
    assert label_proba_setting(Trial("iris", "MSLA"), y, split) == "supervised"


def test_scaling():
    X = np.array([[0.0, 5, 1], [10, 5, 0], [5, 5, 1]])
    assert scaled(X, "minmax").tolist() == [[-1, -1, 1], [1, -1, 0], [0, -1, 1]]
    assert scaled(X, "none").tolist() == X.tolist()
    np.testing.assert_allclose(scaled(X, "standard").mean(axis=0), 0, atol=1e-6)


def test_scaling_learns_nothing_from_the_test_part():
    X = np.array([[0.0, 0], [9, 7], [4, 1]])
    assert scaled(X, "minmax", [1]).tolist() == [[-1, 0], [3.5, 7], [1, 1]]
    assert scaled(X, "standard", [1]).tolist() == [[-1, -1], [3.5, 13], [1, 1]]
    answer = measure(Trial("iris", "support.experiment_methods:SPANNED", n_test=40, n_labeled=30))
    assert "test_accuracy" in answer["scores"]


@pytest.mark.parametrize("scaling", ["minmax", "standard"])
def test_scaling_without_a_test_part_is_by_all_rows(scaling):
    X = load_dataset("digits").X
    split = paper_split(np.zeros(len(X)), 50)
    np.testing.assert_array_equal(scaled(X, scaling, split.test), scaled(X, scaling))


def test_methods_by_name():
    assert method_named("RF") is METHODS["RF"]
    assert method_named(SLOW).symbol == "slow"
    with pytest.raises(TypeError, match="must be a Method"):
        method_named("os:path")


def timed(trial, seconds, status="ok"):
    return {
        "key": trial.key,
        "trial": trial.as_dict(),
        "status": status,
        "total_seconds": seconds,
    }


def test_time_left():
    done = [timed(forest(0), 4.0), timed(Trial("wine", "RF"), 8.0)]
    assert seconds_left([forest(10)], done, 1) == 4
    assert seconds_left([Trial("wine", "MSLA")], done, 2) == 4
    assert seconds_left([Trial("digits", "MSLA")], done, 1) == 6
    assert seconds_left([forest(0)], [], 1) is None
    done.append(timed(Trial("wine", "MSLA", n_rows=50), 1.0))
    assert seconds_left([Trial("wine", "MSLA", 10, n_rows=50)], done, 1) == 1
    assert seconds_left([Trial("wine", "RF", n_rows=50)], done, 1) == 1
    assert seconds_left([Trial("wine", "MSLA", 10)], done, 1) == 8


def test_trials_that_failed_do_not_shorten_the_time_left():
    failed = [timed(forest(seed), 1.0, "error") for seed in (0, 10)]
    assert seconds_left([forest(0), forest(10)], [*failed, timed(forest(20), 100.0)], 1) == 200
    assert seconds_left([forest(0), forest(10)], failed, 1) is None
    assert seconds_left([], failed, 1) == 0


def test_a_trial_that_failed_in_an_earlier_run_is_ahead(tmp_path):
    with RecordWriter(tmp_path / "r.jsonl") as writer:
        writer.append(timed(Trial("iris", "describe"), 100.0))
        for seed in (0, 10):
            writer.append(timed(forest(seed), 1.0, "error"))
    seen = []
    run([forest(0), forest(10)], tmp_path / "r.jsonl", report=seen.append)
    assert [progress.done for progress in seen] == [1, 2]
    assert seen[0].seconds_left == seen[0].record["total_seconds"]
    assert seen[1].seconds_left == 0


def test_lines_tell_what_ended(tmp_path, capsys):
    with progress_shown() as report:
        run([forest(0)], tmp_path / "r.jsonl", report=report)
    line = capsys.readouterr().err
    assert line.startswith("[1/1] RF on iris, seed 0: 0.")
    assert line.endswith("; 0:00:00 left\n")
