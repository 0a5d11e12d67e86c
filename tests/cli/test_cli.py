"""The commands, as a shell sees them: answers, exit codes, files."""

from __future__ import annotations

import bz2
import csv
import gzip
import inspect
import json
import lzma
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.cli_tools import COMMAND, Runner, columns, csv_text, environment, write_table
from support.small_forests import small_forests

pytest.importorskip("typer")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def trained(fewlabel: Runner, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, its labelled version, a forest's model and reports."""
    folder = tmp_path_factory.mktemp("trained")
    truth = ["small" if i % 2 == 0 else "large" for i in range(60)]
    write_table(folder, truth=truth)
    outputs = ["--out", "labelled.csv", "--model", "model.skops", "--report", "report.html"]
    options = ["--target", "segment", "--truth", "truth", "--jobs", "1", "--json"]
    answer = fewlabel(folder, "fit", "table.csv", "--learner", "forest", *options, *outputs)
    assert answer.code == 0, answer.err
    (folder / "answer.json").write_text(answer.out)
    (folder / "progress.txt").write_text(answer.err)
    return folder


def rows_of(path: Path) -> list[dict[str, str]]:
    csv.field_size_limit(10**8)
    with path.open(newline="", encoding="utf-8-sig") as file:
        delimiter = ";" if ";" in file.readline() else ","
        file.seek(0)
        return list(csv.DictReader(file, delimiter=delimiter))


# --- good input ------------------------------------------------------------------------------


def test_the_installed_command_answers_without_loading_anything_heavy():
    answer = subprocess.run(
        [*COMMAND, "--version"], capture_output=True, text=True, env=environment(), check=True
    )
    assert answer.stdout.startswith("fewlabel ")


def test_the_stated_budgets_are_those_used():
    from fewlabel import FewLabelClassifier
    from fewlabel.cli import app, workflow

    option = inspect.signature(app.fit, eval_str=True).parameters["max_train"].annotation
    stated = option.__metadata__[0].show_default
    assert stated == f"{FewLabelClassifier().max_train:,}; forest: {workflow.MAX_TRAIN:,}"


def test_output_keeps_the_input_and_adds_labels(trained: Path):
    before, after = rows_of(trained / "table.csv"), rows_of(trained / "labelled.csv")
    names = list(before[0])
    added = ["label", "origin", "confidence", "accepted"]
    assert list(after[0]) == names + [f"segment_{name}" for name in added]
    assert [{name: row[name] for name in names} for row in after] == before
    for old, new in zip(before, after):
        if old["segment"]:
            assert (new["segment_label"], new["segment_origin"]) == (old["segment"], "given")
            assert (new["segment_confidence"], new["segment_accepted"]) == ("", "true")
        else:
            assert new["segment_label"] in ("small", "large")
            assert new["segment_origin"].startswith(("round ", "predicted"))
            assert 0 <= float(new["segment_confidence"]) <= 1
            assert new["segment_accepted"] in ("true", "false")
    right = [row["segment_label"] == row["truth"] for row in after]
    assert np.mean(right) > 0.85


def test_json_answer_and_progress(trained: Path):
    answer = json.loads((trained / "answer.json").read_text())
    after = rows_of(trained / "labelled.csv")
    filled = [row for row in after if row["segment_origin"] != "given"]
    assert answer["data"]["n_unlabeled"] == len(filled) == 46
    accepted = [row for row in filled if row["segment_accepted"] == "true"]
    promise = answer["promise"]
    assert answer["data"]["n_accepted"] == promise["accepted"]["n"] == len(accepted) > 0
    # The CSV, the estimate and the truth are about the same labels.
    doubt = np.mean([1 - float(row["segment_confidence"]) for row in accepted])
    expected = min(doubt, promise["error"]["value"])
    assert promise["accepted"]["expected_error"] == pytest.approx(expected, abs=1e-5)
    wrong = [row["segment_label"] != row["truth"] for row in filled]
    assert answer["truth"]["error"] == pytest.approx(np.mean(wrong))
    assert answer["files"]["model"] == "model.skops"
    progress = (trained / "progress.txt").read_text()
    assert "at most" not in progress
    for record in answer["rounds"]:
        assert f"round {record['round']}: {record['n_selected']:,} of" in progress


def test_what_fit_says_in_the_end(fewlabel: Runner, tmp_path: Path):
    write_table(tmp_path, truth=["large"] * 60)  # half of the truth is a lie
    options = ["--target", "segment", "--truth", "truth", "--learner", "forest", "--jobs", "1"]
    options += ["--accept-error", "20 %"]
    answer = fewlabel(tmp_path, "fit", "table.csv", *options, "--out", "my labels.csv")
    assert answer.code == 0, answer.err
    lines = answer.out.replace("\N{NO-BREAK SPACE}", " ").splitlines()
    said = "\n".join(lines)
    changed = r"^self-learning changed [\d,]+ of the [\d,]+ labels of the first vote"
    assert re.search(
        changed + r"(; by what .+ about .+ more are right than before \(.+\))?$", said, re.M
    )
    estimate = (
        r"^about [\d.]+ % of the 46 new labels are wrong \([\d.]+–[\d.]+ %; estimated from 14"
    )
    assert re.search(estimate, said, re.M)
    taken = r"^(\d+) of them can be taken as they are \(about [\d.]+ % of these are wrong; "
    n = re.search(taken + r"--accept-error 20%\)$", said, re.M)
    rows = rows_of(tmp_path / "my labels.csv")
    accepted = [row for row in rows if row["segment_origin"] != "given"]
    accepted = [row for row in accepted if row["segment_accepted"] == "true"]
    assert n is not None
    assert int(n[1]) == len(accepted)
    proof = next(line for line in lines if line.startswith("to prove it: "))
    command = shlex.split(proof.removeprefix("to prove it: "))
    assert command[:5] == ["fewlabel", "audit", "my labels.csv", "--target", "segment"]
    assert fewlabel(tmp_path, *command[1:], "--out", "check.csv").code == 0
    assert "! The truth breaks the estimate: " in said
    assert "at most" not in said


@pytest.mark.parametrize("text", ["5", "0", "100%", "many", "-5%"])
def test_an_accept_error_that_is_no_share(text: str, fewlabel: Runner, trained: Path):
    answer = fewlabel(trained, "fit", "table.csv", "--target", "segment", f"--accept-error={text}")
    assert answer.code == 1
    assert "--accept-error must be a share above 0 and below 100 %" in answer.err
    assert "Write it as 5% or as 0.05." in answer.err
    answer = fewlabel(trained, "predict", "model.skops", "table.csv", f"--accept-error={text}")
    assert answer.code == 1


def test_labels_of_some_rows_of_each_class(fewlabel: Runner, tmp_path: Path):
    write_table(tmp_path)
    options = ["--target", "segment", "--learner", "forest", "--jobs", "1", "--per-class"]
    answer = fewlabel(tmp_path, "fit", "table.csv", *options, "--json")
    told = json.loads(answer.out)
    assert told["settings"]["labels"] == "per class"
    assert "random within their class" in told["promise"]["error"]["assumes"]


def test_predict_agrees_with_fit(fewlabel: Runner, trained: Path, tmp_path: Path):
    out = tmp_path / "new.jsonl"
    answer = fewlabel(trained, "predict", "model.skops", "table.csv", "--out", out, "--json")
    assert answer.code == 0, answer.err
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    told = json.loads(answer.out)
    assert told["n_rows"] == len(lines) == 60
    assert told["n_accepted"] == sum(line["segment_accepted"] for line in lines)
    assert [name for name in lines[0] if name.startswith("segment_")] == [
        "segment_label",
        "segment_confidence",
        "segment_accepted",
    ]
    for line, row in zip(lines, rows_of(trained / "labelled.csv")):
        if row["segment_origin"] != "given":
            assert line["segment_label"] == row["segment_label"]
            confidence = float(row["segment_confidence"])
            assert line["segment_confidence"] == pytest.approx(confidence, abs=2e-6)
            assert str(line["segment_accepted"]).lower() == row["segment_accepted"]


def test_predict_accepts_for_another_error(fewlabel: Runner, trained: Path, tmp_path: Path):
    counts = []
    for error in ("0.1%", "5%", "40%"):
        command = ["predict", "model.skops", "table.csv", "--out", tmp_path / f"{error}.csv"]
        answer = fewlabel(trained, *command, "--accept-error", error, "--json")
        counts.append(json.loads(answer.out)["n_accepted"])
    assert counts[0] <= counts[1] <= counts[2] == 60
    assert counts[0] < counts[2]


def told_of_new_rows(capsys: pytest.CaptureFixture[str], n_accepted: int, error: float) -> str:
    from fewlabel.cli.commands import tell_predicted
    from fewlabel.cli.console import Console

    told = {"n_rows": 300, "n_accepted": n_accepted, "max_error": 0.05}
    told |= {"expected_error": 0.3, "accepted_error": error}
    tell_predicted(Console(), told, [], Path("new.csv"))
    return capsys.readouterr().out.replace("\N{NO-BREAK SPACE}", " ")


def test_rows_unlike_those_of_the_fit_are_told_of(capsys: pytest.CaptureFixture[str]):
    said = told_of_new_rows(capsys, 163, 0.061)
    assert "can be taken as they are" not in said
    assert "163 rows accepted by the threshold of the fit (about 6.1 % of these labels" in said
    assert "these rows are unlike those of the fit, and the estimate does not hold" in said
    said = told_of_new_rows(capsys, 3, 0.061)
    assert "unlike" not in said
    assert "as can happen with so few rows" in said
    said = told_of_new_rows(capsys, 163, 0.05)
    assert "163 of them can be taken as they are" in said
    assert "!" not in said


def test_standard_output_is_not_named_as_a_file(fewlabel: Runner, trained: Path):
    answer = fewlabel(trained, "predict", "model.skops", "table.csv", "--out", "-")
    assert answer.code == 0, answer.err
    assert "60 rows labelled" in answer.err
    assert "→" not in answer.err


def test_new_cells_that_cannot_be_read_are_told_of(fewlabel: Runner, trained: Path, tmp_path: Path):
    write_table(tmp_path, size=[*columns()["size"][:58], "tall", "NA"])
    model = trained / "model.skops"
    answer = fewlabel(tmp_path, "predict", model, "table.csv", "--out", "new.csv")
    assert answer.code == 0, answer.err
    assert "! column 'size': 1 of 59 filled cells hold no number and count as" in answer.out


def test_same_seed_same_result(fewlabel: Runner, trained: Path, tmp_path: Path):
    out = tmp_path / "again.csv"
    options = ["--target", "segment", "--truth", "truth", "--jobs", "1", "--quiet"]
    answer = fewlabel(trained, "fit", "table.csv", "--learner", "forest", *options, "--out", out)
    assert (answer.code, answer.out, answer.err) == (0, "", "")
    assert out.read_bytes() == (trained / "labelled.csv").read_bytes()


def test_report_in_every_format(fewlabel: Runner, trained: Path, tmp_path: Path):
    for kind in ("html", "json", "md"):
        answer = fewlabel(trained, "report", "model.skops", "--out", tmp_path / f"r.{kind}")
        assert answer.code == 0, answer.err
    summary = json.loads((tmp_path / "r.json").read_text())
    assert all(row["cells"] == {} for row in summary["label_next"]["rows"])  # models carry no cells
    assert summary["headline"][0] in (tmp_path / "r.md").read_text()
    again = fewlabel(tmp_path, "report", "r.json", "--format", "md")
    assert again.out.strip() == (tmp_path / "r.md").read_text().strip()


def test_bounds_of_a_model_and_of_a_votes_file(fewlabel: Runner, trained: Path, tmp_path: Path):
    from fewlabel import realised_error_quantile, transductive_bound

    options = ["--model", "model.skops", "--truth", "truth", "--json"]
    answer = json.loads(fewlabel(trained, "bounds", "table.csv", *options).out)
    assert (answer["error"]["kind"], answer["of"]) == ("guarantee", "realised error")
    assert answer["error"]["value"] >= answer["true_error"]

    votes = np.array([[0.8, 0.2], [0.6, 0.4], [0.3, 0.7], [0.1, 0.9]])
    (tmp_path / "votes.csv").write_text("a,b\n" + "\n".join(f"{p},{q}" for p, q in votes) + "\n")
    (tmp_path / "proba.csv").write_text("b,a\n" + "\n".join(f"{q},{p}" for p, q in votes) + "\n")
    expected = transductive_bound(votes, votes, thresholds=0.5, tight=True).risk
    alone = json.loads(fewlabel(tmp_path, "bounds", "votes.csv", "--json").out)
    assert alone["error"]["kind"] == "estimate"
    assert alone["error"]["value"] == pytest.approx(expected)
    assert "realised_error" not in alone
    options = ["--proba", "proba.csv", "--exact"]
    stated = json.loads(fewlabel(tmp_path, "bounds", "votes.csv", *options, "--json").out)
    assert (stated["error"]["kind"], stated["of"]) == ("guarantee", "expected error")
    assert stated["error"]["value"] == pytest.approx(expected)
    quantile = realised_error_quantile(votes, votes.argmax(axis=1), 0.95)
    assert stated["realised_error"]["value"] == quantile > expected
    assert "expected error: at most" in fewlabel(tmp_path, "bounds", "votes.csv", *options).out
    said = fewlabel(tmp_path, "bounds", "votes.csv").out
    assert "estimate" in said
    assert "at most" not in said


def test_a_guarantee_is_never_smaller_than_the_truth(fewlabel: Runner, tmp_path: Path):
    rng = np.random.default_rng(5)
    first = np.round(rng.random(400), 2)
    truth = np.where(rng.random(400) < first, "a", "b")
    lines = [f"{p:.2f},{1 - p:.2f},{label}" for p, label in zip(first, truth)]
    (tmp_path / "votes.csv").write_text("\n".join(["a,b,truth", *lines]) + "\n")
    command = ["bounds", "votes.csv", "--truth", "truth"]
    answer = json.loads(fewlabel(tmp_path, *command, "--json").out)
    assert answer["error"]["value"] >= answer["true_error"] == 0.2175  # the sums end below it
    said = fewlabel(tmp_path, *command).out.replace("\N{NO-BREAK SPACE}", " ")
    assert "at most 21.8 % wrong (guarantee)" in said
    assert "In truth 21.8 % are." in said


@pytest.mark.filterwarnings("ignore:The estimate of the error is unsafe")
def test_bounds_of_a_model_for_equal_class_shares(fewlabel: Runner, tmp_path: Path):
    import pandas as pd

    from fewlabel import FewLabelClassifier, save

    rng = np.random.default_rng(0)
    truth = (rng.random(300) < 0.2).astype(int)
    X = rng.normal(size=(300, 4)) + truth[:, None]
    target = np.where(np.arange(300) < 60, truth, -1)
    clf = FewLabelClassifier(["forest", "lda"], scoring="balanced", random_state=0, max_iter=0)
    frame = pd.DataFrame(X, columns=list("abcd"))
    save(clf.fit(frame, target), tmp_path / "model.skops")
    frame[60:].to_csv(tmp_path / "table.csv", index=False)
    answer = fewlabel(tmp_path, "bounds", "table.csv", "--model", "model.skops", "--json")
    assert json.loads(answer.out)["error"]["value"] == pytest.approx(clf.risk_bound_)


def test_bounds_of_a_model_are_about_the_labels_it_gives(fewlabel: Runner, trained: Path):
    """Final votes confirm what they were trained on: they must not judge themselves."""
    from fewlabel.assess.calibration import for_bounds
    from fewlabel.bounds.transductive import risk_bound
    from fewlabel.bounds.votes import vote_matrix
    from fewlabel.tables.model_files import load_model
    from fewlabel.tables.reading import read_table

    model = load_model(trained / "model.skops")
    X = model.encoder.transform(read_table(trained / "table.csv"))
    first, final = vote_matrix(model.first, X), vote_matrix(model.final, X)
    proba = for_bounds(first, model.promise.power)
    answer = json.loads(
        fewlabel(trained, "bounds", "table.csv", "--model", "model.skops", "--json").out
    )
    assert answer["error"]["value"] == pytest.approx(risk_bound(final, proba, tight=True))
    assert answer["error"]["value"] != pytest.approx(risk_bound(final, final, tight=True))
    assert "first classifier" in answer["error"]["assumption"]


def test_true_labels_like_the_names_of_the_votes(fewlabel: Runner, tmp_path: Path):
    rows = "0.9,0.1,1.0\n0.2,0.8,2.0\n0.6,0.4,1.0\n"
    for names in ("1.0,2.0", "1,2"):
        (tmp_path / "votes.csv").write_text(f"{names},truth\n{rows}")
        answer = fewlabel(tmp_path, "bounds", "votes.csv", "--truth", "truth", "--json")
        assert json.loads(answer.out)["true_error"] == 0.0


def test_bounds_of_votes_with_decimal_commas(fewlabel: Runner, tmp_path: Path):
    rows = ["a;b;truth", "0.75;0.25;a", "1;0;a", "0.999999;1e-06;b"]
    answers = []
    for decimal in ".,":
        (tmp_path / "votes.csv").write_text("\n".join(rows).replace(".", decimal) + "\n")
        answer = fewlabel(tmp_path, "bounds", "votes.csv", "--truth", "truth", "--json")
        assert answer.code == 0, answer.err
        answers.append(json.loads(answer.out))
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("cell", "says"), [("x", "something else than numbers"), ("", "not shares that sum to 1")]
)
def test_cells_that_are_no_votes(cell: str, says: str, fewlabel: Runner, tmp_path: Path):
    (tmp_path / "votes.csv").write_text(f"a,b\n0.5,0.5\n{cell},1\n")
    answer = fewlabel(tmp_path, "bounds", "votes.csv")
    assert answer.code == 1
    assert says in answer.err


def test_bounds_of_votes_that_are_rounded_or_no_numbers(fewlabel: Runner, tmp_path: Path):
    (tmp_path / "rounded.csv").write_text("a,b\n1.0000001,0\n0.2,0.8\n")
    answer = fewlabel(tmp_path, "bounds", "rounded.csv", "--json")
    assert answer.code == 0, answer.err
    day = pa.array([1, 2], pa.int32()).cast(pa.date32())
    pq.write_table(pa.table({"a": [0.5, 0.5], "b": day}), tmp_path / "dates.parquet")
    answer = fewlabel(tmp_path, "bounds", "dates.parquet")
    assert answer.code == 1
    assert "Column 'b' of 'dates.parquet' holds something else than numbers" in answer.err


def test_an_earlier_output_can_be_filled_again(fewlabel: Runner, trained: Path, tmp_path: Path):
    out = tmp_path / "second.csv"
    options = ["--target", "segment", "--drop", "truth", "--learner", "forest", "--json"]
    answer = fewlabel(trained, "fit", "labelled.csv", *options, "--out", out)
    assert answer.code == 0, answer.err
    assert list(rows_of(out)[0]) == list(rows_of(trained / "labelled.csv")[0])
    used = {c["name"] for c in json.loads(answer.out)["data"]["columns"] if c["kind"] != "left out"}
    assert used == {"size", "weight", "colour"}  # its own labels are no features


def test_default_output_and_shell_completion(fewlabel: Runner, tmp_path: Path):
    write_table(tmp_path)
    options = ["--target", "segment", "--learner", "forest"]
    assert fewlabel(tmp_path, "fit", "table.csv", *options).code == 0
    assert (tmp_path / "table-labelled.csv").exists()
    assert completions("fewlabel fit table.csv --target se", tmp_path) == ["segment"]
    assert completions("fewlabel fit table.csv --learner m", tmp_path) == ["mixed"]


def completions(line: str, folder: Path) -> list[str]:
    """What the shell offers for the last word of a line."""
    completion = {
        **environment(),
        "_FEWLABEL_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split()) - 1),
    }
    code = "import sys; sys.argv = ['fewlabel']; from fewlabel.cli.app import main; main()"
    answer = subprocess.run(
        [COMMAND[0], "-c", code], env=completion, capture_output=True, text=True, cwd=folder
    )
    return answer.stdout.split()


def test_a_column_filled_with_the_labels_is_left_out(fewlabel: Runner, tmp_path: Path):
    """It would be a perfect feature of the labelled rows, and a wrong one of all others."""
    write_table(tmp_path, Segment=columns()["segment"], id=list(range(60)))
    options = ["--target", "segment", "--drop", "colour", "--learner", "forest", "--jobs", "1"]
    answer = fewlabel(tmp_path, "fit", "table.csv", *options, "--report", "report.md")
    assert answer.code == 0, answer.err
    told = [line for line in answer.out.splitlines() if " was left out: " in line]
    assert told[0].startswith("! column 'Segment' was left out: filled in 14 labelled rows")
    assert told[1:] == ["! column 'id' was left out: counts the rows: a row number or identifier"]
    page = (tmp_path / "report.md").read_text()
    assert "| Segment | left out | filled in 14 labelled rows and 0 others" in page


def test_numbers_are_written_as_in_their_country(fewlabel: Runner, tmp_path: Path):
    """A model reads new tables like the one it was trained on."""
    plain = columns()
    german = {**plain, "size": [f"{1000 + v:,.3f}" for v in plain["size"]]}
    german["size"] = [v.translate(str.maketrans(",.", ".,")) for v in german["size"]]
    (tmp_path / "t.csv").write_text(csv_text({**german, "id": range(7, 67)}, ";"))
    outputs = ["--out", "fitted.csv", "--model", "model.skops", "--report", "report.json"]
    options = ["--target", "segment", "--learner", "forest", "--jobs", "1"]
    answer = fewlabel(tmp_path, "fit", "t.csv", *options, *outputs)
    assert answer.code == 0, answer.err
    read = json.loads((tmp_path / "report.json").read_text())["data"]["columns"][0]
    assert (read["kind"], read["notation"]) == ("number", "1.234,5")
    answer = fewlabel(tmp_path, "predict", "model.skops", "t.csv", "--out", "predicted.jsonl")
    assert answer.code == 0, answer.err
    lines = [json.loads(line) for line in (tmp_path / "predicted.jsonl").read_text().splitlines()]
    right = [line["segment_label"] == ("small", "large")[i % 2] for i, line in enumerate(lines)]
    assert np.mean(right) > 0.85


# --- the learner -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mixed(fewlabel: Runner, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as ``trained``, learned by default."""
    folder = tmp_path_factory.mktemp("mixed")
    write_table(folder, truth=["small" if i % 2 == 0 else "large" for i in range(60)])
    outputs = ["--out", "labelled.csv", "--model", "model.skops", "--report", "report.html"]
    options = ["--target", "segment", "--drop", "truth", "--jobs", "1", "--json"]
    answer = fewlabel(folder, "fit", "table.csv", *options, *outputs)
    assert answer.code == 0, answer.err
    (folder / "answer.json").write_text(answer.out)
    (folder / "progress.txt").write_text(answer.err)
    return folder


def test_the_default_is_the_mixed_vote(mixed: Path):
    from fewlabel.ensemble.families import FAMILIES

    answer = json.loads((mixed / "answer.json").read_text())
    assert answer["settings"]["learner"] == "mixed"
    assert answer["settings"]["max_train"] == 5_000
    voters = answer["voters"]["families"]
    assert {voter["name"] for voter in voters} == set(FAMILIES)
    assert sum(voter["weight"] for voter in voters) == pytest.approx(1.0)
    assert all(voter["accuracy"]["kind"] == "estimate" for voter in voters)
    assert f"by a vote of {answer['voters']['n_voting']} families" in answer["headline"][0]
    assert answer["notes"] == []  # no raw warnings
    progress = (mixed / "progress.txt").read_text()
    assert f"training {len(FAMILIES)} families of voters" in progress
    assert "Warning" not in progress
    page = (mixed / "report.html").read_text()
    assert all(f'<div class="what">{voter["title"]}</div>' in page for voter in voters)


def test_a_curriculum_of_the_mixed_vote_takes_all_rows(fewlabel: Runner, tmp_path: Path):
    write_table(tmp_path)
    options = ["--target", "segment", "--policy", "curriculum", "--jobs", "1", "--json"]
    answer = fewlabel(tmp_path, "fit", "table.csv", *options)
    assert answer.code == 0, answer.err
    taken = [record["n_selected"] for record in json.loads(answer.out)["rounds"]]
    assert (len(taken), sum(taken)) == (3, 46)


def test_the_forest_is_the_papers(trained: Path):
    answer = json.loads((trained / "answer.json").read_text())
    assert answer["settings"]["learner"] == "forest"
    assert answer["settings"]["classifier"] == "RandomForestClassifier"
    assert answer["settings"]["max_train"] == 100_000
    assert answer["voters"] is None
    assert "families" not in (trained / "report.html").read_text()


def test_a_mixed_model_predicts_bounds_and_reports(fewlabel: Runner, mixed: Path, tmp_path: Path):
    out = tmp_path / "new.csv"
    answer = fewlabel(mixed, "predict", "model.skops", "table.csv", "--out", out)
    assert answer.code == 0, answer.err
    same = [
        new["segment_label"] == old["segment_label"]
        for new, old in zip(rows_of(out), rows_of(mixed / "labelled.csv"))
    ]
    assert np.mean(same) > 0.9  # label spreading sees new rows otherwise than those of the fit
    bounds = ["bounds", "table.csv", "--model", "model.skops", "--truth", "truth", "--json"]
    assert json.loads(fewlabel(mixed, *bounds).out)["error"]["kind"] == "guarantee"
    page = fewlabel(mixed, "report", "model.skops").out
    assert "## Who votes" in page
    assert "| semi-supervised LDA |" in page


def test_one_label_a_class_is_learned_from(fewlabel: Runner, tmp_path: Path):
    kept = columns()["segment"][:2] + [""] * 58  # one row of each class
    write_table(tmp_path, segment=kept)
    options = ["--target", "segment", "--jobs", "1", "--report", "report.md"]
    answer = fewlabel(tmp_path, "fit", "table.csv", *options, "--max-train", "7")
    assert answer.code == 0, answer.err
    assert "left out" not in answer.out
    assert "sample of 7 pseudo-labelled rows" in answer.out
    assert "semi-supervised LDA" in (tmp_path / "report.md").read_text()
    assert "Warning" not in answer.err


# --- unusual but good input ------------------------------------------------------------------


def _parquet(path: Path, table: dict[str, list[Any]]) -> None:
    from pyarrow import parquet

    typed = {**table, "segment": [label or None for label in table["segment"]]}
    parquet.write_table(pa.table(typed), path)


def _jsonl(path: Path, table: dict[str, list[Any]]) -> None:
    rows = [dict(zip(table, row)) for row in zip(*table.values())]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _text(change: Callable[[str], str] = lambda text: text, encoding: str = "utf-8") -> Any:
    return lambda path, table: path.write_bytes(change(csv_text(table)).encode(encoding))


UNUSUAL: dict[str, tuple[str, Any, list[str]]] = {
    "semicolons": ("t.csv", lambda p, t: p.write_text(csv_text(t, ";")), []),
    "tabs": ("t.tsv", lambda p, t: p.write_text(csv_text(t, "\t")), []),
    "windows line ends": ("t.csv", _text(lambda s: s.replace("\n", "\r\n")), []),
    "byte order mark": ("t.csv", _text(encoding="utf-8-sig"), []),
    "latin-1": (
        "t.csv",
        _text(lambda s: s.replace("red", "réd"), "latin-1"),
        ["--encoding", "latin-1"],
    ),
    "utf-16": ("t.csv", _text(encoding="utf-16"), ["--encoding", "utf-16"]),
    "line break in a cell": ("t.csv", _text(lambda s: s.replace("red", '"re\nd"')), []),
    "huge cell": ("t.csv", _text(lambda s: s.replace("red", "r" * 5_000_000, 1)), []),
    "parquet": ("t.parquet", _parquet, []),
    "json lines": ("t.jsonl", _jsonl, []),
    "gzip": ("t.csv.gz", lambda p, t: p.write_bytes(gzip.compress(csv_text(t).encode())), []),
    "bzip2": ("t.csv.bz2", lambda p, t: p.write_bytes(bz2.compress(csv_text(t).encode())), []),
    "xz": ("t.csv.xz", lambda p, t: p.write_bytes(lzma.compress(csv_text(t).encode())), []),
    "zstandard": ("t.csv.zst", lambda p, t: p.write_bytes(_zstd(csv_text(t).encode())), []),
    "-1 for unlabelled": (
        "t.csv",
        lambda p, t: p.write_text(csv_text({**t, "segment": [s or "-1" for s in t["segment"]]})),
        ["--unlabeled", "-1"],
    ),
    "empty cells and another mark": (
        "t.csv",
        lambda p, t: p.write_text(
            csv_text({**t, "segment": t["segment"][:50] + ["NA"] * 10}),
        ),
        ["--unlabeled", "NA"],
    ),
    "columns of every kind": (
        "t.csv",
        lambda p, t: p.write_text(
            csv_text(
                {
                    "id": list(range(60)),
                    **t,
                    "empty": [""] * 60,
                    "constant": ["x"] * 60,
                    "since": [f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(60)],
                    "member": [("yes", "no", "")[i % 3] for i in range(60)],
                    "holes": ["NA" if i % 4 == 0 else i / 7 for i in range(60)],
                    "=cmd()": ["=1+1"] * 30 + ["ok"] * 30,
                }
            )
        ),
        [],
    ),
}


def _zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_tables_are_read(name: str, fewlabel: Runner, tmp_path: Path):
    file, write, options = UNUSUAL[name]
    write(tmp_path / file, columns())
    before = (tmp_path / file).read_bytes()
    base = ["--target", "segment", "--jobs", "1", "--out", "out.csv", "--report", "report.json"]
    answer = fewlabel(tmp_path, "fit", file, "--learner", "forest", *base, *options)
    assert answer.code == 0, answer.err
    after = rows_of(tmp_path / "out.csv")
    kind = ["small" if i % 2 == 0 else "large" for i in range(60)]
    assert np.mean([row["segment_label"] == k for row, k in zip(after, kind)]) > 0.85
    if name in ("semicolons", "byte order mark"):
        assert (tmp_path / "out.csv").read_bytes().startswith(before.splitlines()[0])
    assert (tmp_path / file).read_bytes() == before
    if name == "columns of every kind":
        summary = json.loads((tmp_path / "report.json").read_text())
        kinds = {column["name"]: column["kind"] for column in summary["data"]["columns"]}
        assert kinds == {
            "id": "left out",
            "size": "number",
            "weight": "number",
            "colour": "category",
            "segment": "left out",
            "empty": "left out",
            "constant": "left out",
            "since": "date",
            "member": "yes/no",
            "holes": "number",
            "=cmd()": "category",
        }
        assert after[0]["'=cmd()"] == "'=1+1"  # a spreadsheet shows it as text


# --- the demonstration -----------------------------------------------------------------------


def test_the_figures_of_the_demonstration_agree(fewlabel: Runner, tmp_path: Path):
    """What is printed is what the report's summary says."""
    from fewlabel.cli.demo import run_demo

    with small_forests(n_trees=20, in_folds=5):  # as the commands of the tests have them
        shown = run_demo(2, 0, 1)
    assert shown.clf.labels == "per class"  # two of each digit are no random sample
    summary = shown.report().summary
    hidden = shown.clf.labeled_iter_ != 0
    wrong = shown.clf.transduction_[hidden] != shown.truth[hidden]
    assert summary["truth"]["error"] == pytest.approx(wrong.mean())
    answer = fewlabel(tmp_path, "demo", "--labels", "2", "--jobs", "1")
    assert answer.code == 0, answer.err
    for line in shown.lines(summary):
        assert line in answer.out
