"""From a fit to a guarantee: the audit reads what ``fit`` and ``predict`` write."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from support.cli_tools import Runner, write_table

pytest.importorskip("typer")
pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def labelled(fewlabel: Runner, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labelled")
    write_table(folder)
    options = ["--target", "segment", "--learner", "forest", "--jobs", "1", "--accept-error", "20%"]
    outputs = ["--out", "labelled.csv", "--model", "model.skops"]
    answer = fewlabel(folder, "fit", "table.csv", *options, *outputs, "--json")
    assert answer.code == 0, answer.err
    (folder / "answer.json").write_text(answer.out)
    command = ["predict", "model.skops", "table.csv", "--out", "predicted.csv"]
    assert fewlabel(folder, *command).code == 0
    return folder


def checked(path: Path, wrong: int) -> None:
    """Fill in the right labels; the first ones differ."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for i, row in enumerate(rows):
        other = "small" if row["audit_label"] == "large" else "large"
        row["audit_right_label"] = other if i < wrong else row["audit_label"]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_the_goal_is_planned_with_the_confidences(fewlabel: Runner, labelled: Path):
    accepted = json.loads((labelled / "answer.json").read_text())["promise"]["accepted"]
    answer = fewlabel(labelled, "audit", "labelled.csv", "--goal", "20%", "--json")
    told = json.loads(answer.out)
    assert told["target"] == "segment"
    assert told["rows"] == accepted["n"]
    assert told["goal"]["checks_if_none_wrong"] == accepted["checks_if_none_wrong"]
    with (labelled / "labelled.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["segment_origin"] != "given"]
    doubts = [1 - float(r["segment_confidence"]) for r in rows if r["segment_accepted"] == "true"]
    assert told["goal"]["expected_error"] == pytest.approx(sum(doubts) / len(doubts))


@pytest.mark.parametrize("wrong", [0, 2])
def test_checks_become_a_guarantee(wrong: int, fewlabel: Runner, labelled: Path, tmp_path: Path):
    check = tmp_path / "check.csv"
    table = labelled / "labelled.csv"
    draw = ["audit", table, "--draw", "25", "--seed", "1", "--out", check]
    assert fewlabel(tmp_path, *draw).code == 0
    assert "segment_confidence" not in check.read_text().splitlines()[0]  # it would suggest
    checked(check, wrong)
    answer = fewlabel(tmp_path, "audit", table, "--checked", check, "--out", "done.csv", "--json")
    assert answer.code == 0, answer.err
    told = json.loads(answer.out)
    assert (told["checked"], told["wrong"]) == (25, wrong)
    assert wrong / told["rows"] < told["at_most"] < 1
    assert told["statement"].startswith("at most ")
    with (tmp_path / "done.csv").open(newline="") as file:
        audited = [row for row in csv.DictReader(file) if row["segment_origin"] == "audited"]
    assert len(audited) == 25
    assert all(row["segment_confidence"] == "" for row in audited)


def test_a_predicted_table_can_be_audited(fewlabel: Runner, labelled: Path, tmp_path: Path):
    command = ["audit", labelled / "predicted.csv", "--target", "segment", "--draw", "10"]
    answer = fewlabel(tmp_path, *command, "--out", "check.csv", "--json")
    assert answer.code == 0, answer.err
    assert "no column 'segment_origin'" in json.loads(answer.out)["notes"][0]
