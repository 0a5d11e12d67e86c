"""`python -m reproduction --all --quick`: every table and figure is made and holds what it must."""

from __future__ import annotations

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from reproduction.cli import reproduce
from reproduction.methods import METHODS
from reproduction.notation import number
from reproduction.page import evidence_trials
from reproduction.plan import ITEMS, QUICK, trials_of
from reproduction.records import RecordWriter, read_records

TABLES = [name for name in ITEMS if name.startswith("table")]
FIGURES = [name for name in ITEMS if name.startswith("figure")]


def invoke(*arguments):
    app = typer.Typer()
    app.command()(reproduce)
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("quick")
    page = out / "docs" / "reproduction.md"
    result = invoke("--all", "--quick", "--out", out, "--jobs", 2, "--page", page)
    assert result.exit_code == 0, result.output
    return out, result.output


def test_every_trial_of_the_plan_has_a_record(made):
    records = [json.loads(line) for line in (made[0] / "records.jsonl").read_text().splitlines()]
    planned = {t.key for item in ITEMS for t in trials_of(item, QUICK)}
    planned |= {t.key for t in evidence_trials(QUICK)}
    assert {r["key"] for r in records} == planned
    assert {r["status"] for r in records} == {"ok"}
    methods = {r["trial"]["method"] for r in records}
    assert methods == {*METHODS, "describe", "FSLA weighted"}


@pytest.mark.parametrize("name", TABLES)
def test_tables(made, name):
    for suffix in ("md", "tex"):
        text = (made[0] / f"{name}.{suffix}").read_text()
        assert "Iris" in text or "iris" in text
        assert "NaN" not in text
        assert "Quick run at tiny sizes" in text


def test_a_mean_in_a_table_is_that_of_the_records(made):
    records = [json.loads(line) for line in (made[0] / "records.jsonl").read_text().splitlines()]
    wanted = [{"dataset": "wine", "method": "MSLA", "seed": s, "n_trees": 10} for s in (0, 10)]
    scores = [r["scores"]["accuracy"] for r in records if r["trial"] in wanted]
    assert len(scores) == 2
    table = (made[0] / "table2.md").read_text()
    head, wine = (
        next(line for line in table.splitlines() if line.startswith(f"| {start} |")).split("|")
        for start in ("Data set", "Wine")
    )
    cell = wine[head.index(" MSLA ")].replace("*", "")
    assert cell.startswith(f" {number(np.mean(scores))}")
    assert " (2)" in cell


@pytest.mark.parametrize("name", FIGURES)
def test_figures(made, name):
    text = (made[0] / f"{name}.svg").read_text()
    assert "2 trials" in text
    assert "quick run" in text
    assert ITEMS[name].title in text
    assert "not run" not in text


def test_page(made):
    page = made[0] / "docs" / "reproduction.md"
    text = page.read_text()
    for name in FIGURES:
        assert f"(reproduction/{name}.svg)" in text
        assert (page.parent / "reproduction" / f"{name}.svg").is_file()
    assert "## Cells beyond two standard errors" in text
    assert text.count("## Table") == 4


def test_a_second_run_only_draws_again(made):
    before = (made[0] / "records.jsonl").read_bytes()
    svg = (made[0] / "figure2.svg").read_bytes()
    assert invoke("--all", "--quick", "--out", made[0]).exit_code == 0
    assert (made[0] / "records.jsonl").read_bytes() == before
    assert (made[0] / "figure2.svg").read_bytes() == svg


def test_the_command_has_help():
    result = invoke("--help")
    assert result.exit_code == 0
    assert "table1 ... table4" in result.output


def test_bad_requests_are_refused(tmp_path):
    for arguments in (
        [],
        ["table9"],
        ["table2", "--sets", "wovel"],
        ["table2", "--methods", "SVM"],
        ["table2", "--sets", ","],
    ):
        result = invoke(*arguments, "--out", tmp_path)
        assert result.exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_paths_are_looked_at_before_the_first_trial(tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    out = tmp_path / "out"
    for arguments, message in (
        (["--out", file], "is a file"),
        (["--out", out, "--page", tmp_path], "is a folder"),
        (["--out", out, "--page", file / "page.md"], "is a file"),
        (["--out", out, "--data", tmp_path / "nowhere"], "There is no folder"),
    ):
        result = invoke("table2", "--quick", "--methods", "RF", *arguments)
        assert result.exit_code == 1
        assert message in result.stderr
        assert isinstance(result.exception, SystemExit)  # no traceback
        assert not (out / "records.jsonl").exists()
    assert file.read_text() == "mine"


def test_a_folder_that_another_run_writes_to(tmp_path):
    with RecordWriter(tmp_path / "records.jsonl"):
        result = invoke("table2", "--quick", "--methods", "RF", "--out", tmp_path)
    assert result.exit_code == 1
    assert "Another run is writing" in result.stderr
    assert isinstance(result.exception, SystemExit)


def test_other_splits_and_a_test_part(tmp_path):
    result = invoke(
        "table2", "--quick", "--sets", "iris", "--methods", "RF", "--out", tmp_path, "--stratify",
        "--first-seed", 200, "--test-rows", 40,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    trials = [record["trial"] for record in read_records(tmp_path)]
    assert [(t["seed"], t["stratify"], t["n_test"]) for t in trials] == [
        (200, True, 40),
        (210, True, 40),
    ]
    text = (tmp_path / "table2.md").read_text()
    means = [np.mean([r["scores"][name] for r in read_records(tmp_path)])
             for name in ("accuracy", "test_accuracy")]  # fmt: skip
    assert f"| {number(means[0])} ±" in text
    assert f"test part {number(means[1])}" in text
    assert "Splits: stratified, seeds from 200 on, 40 unlabelled rows" in text


def test_without_data_the_command_stops_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("FEWLABEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FEWLABEL_DATA", raising=False)
    result = invoke("--all", "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "None of the data sets is there" in result.stderr
    assert "--data DIR or FEWLABEL_DATA" in result.stderr
    assert not (tmp_path / "out").exists()


def test_failed_trials_make_the_command_fail(tmp_path, monkeypatch):
    monkeypatch.setenv("FEWLABEL_CACHE", str(tmp_path / "cache"))
    np.savez(tmp_path / "vowel.npz", X=np.zeros((3, 2)), y=np.zeros(3))  # too small to be split
    result = invoke(
        "table2", "--sets", "vowel,dna", "--methods", "RF", "--trials", 1, "--data", tmp_path,
        "--out", tmp_path / "out",
    )  # fmt: skip
    assert result.exit_code == 1
    assert "their trials will fail: dna" in result.stderr
    assert "2 trial(s) failed" in result.output
    assert (tmp_path / "out" / "table2.md").read_text().count("| –<br>") == 2
