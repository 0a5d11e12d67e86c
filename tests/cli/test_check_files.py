"""``fewlabel audit``, as a shell sees it: the draw, the statement, and files that are refused."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewlabel import audit_confidence_sequence, audit_sample, hypergeometric_limits
from support.cli_tools import Answer, Runner

pytest.importorskip("typer")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

Rows = list[dict[str, str]]
N, GIVEN = 240, 20


def labelled_columns(**changes: list[Any]) -> dict[str, list[Any]]:
    """What `fewlabel fit --out` writes; two in three of the labels that were made are accepted."""
    rng = np.random.default_rng(0)
    labels = [("small", "large")[i] for i in rng.integers(0, 2, N)]
    given = np.arange(N) < GIVEN
    table = {
        "size": np.round(rng.normal(size=N), 3).tolist(),
        "remark": [f"=run {i}, 0{i}" for i in range(N)],
        "day": [f"2024-01-{1 + i % 28:02d}" for i in range(N)],
        "segment": [label if g else "" for label, g in zip(labels, given)],
        "segment_label": labels,
        "segment_origin": ["given" if g else "predicted" for g in given],
        "segment_confidence": ["" if g else "0.98" for g in given],
        "segment_accepted": ["true" if g or i % 3 else "false" for i, g in enumerate(given)],
    }
    return {**table, **changes}


def write(path: Path, rows: Rows, delimiter: str = ",") -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)


def read(path: Path) -> Rows:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def as_rows(columns: dict[str, list[Any]]) -> Rows:
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "labelled.csv", as_rows(labelled_columns()))
    return tmp_path


def draw(fewlabel: Runner, folder: Path, *options: object) -> Rows:
    args = ["audit", "labelled.csv", "--target", "segment", "--draw", 30, "--seed", 7, *options]
    answer = fewlabel(folder, *args, "--out", "check.csv", "--quiet")
    assert answer.code == 0, answer.err
    return read(folder / "check.csv")


def filled(rows: Rows, first: int | None = None) -> Rows:
    """The right labels as a person fills them in: all are right."""
    for row in rows[:first]:
        row["audit_right_label"] = row["audit_label"]
    return rows


def state(fewlabel: Runner, folder: Path, rows: Rows, *options: object) -> Answer:
    write(folder / "done.csv", rows)
    return fewlabel(folder, "audit", "labelled.csv", "--checked", "done.csv", *options)


# --- good input ------------------------------------------------------------------------------


def test_rows_are_drawn_from_the_accepted_ones(fewlabel: Runner, folder: Path):
    before = (folder / "labelled.csv").read_bytes()
    rows = draw(fewlabel, folder)
    assert (folder / "labelled.csv").read_bytes() == before
    columns = labelled_columns()
    inside = np.array([i >= GIVEN and i % 3 > 0 for i in range(N)])
    numbers = [int(row["audit_row"]) for row in rows]
    assert numbers == (audit_sample(inside, 30, 7) + 1).tolist()
    assert [row["audit_order"] for row in rows] == [str(i + 1) for i in range(30)]
    for row, number in zip(rows, numbers):
        assert row["audit_label"] == columns["segment_label"][number - 1]
        assert row["size"] == str(columns["size"][number - 1])
        assert row["audit_right_label"] == ""
        assert row["remark"].startswith("'=run")  # nothing that a spreadsheet would run
    assert "segment_confidence" not in rows[0]  # a person judges without a hint
    assert "segment" not in rows[0]


def test_the_draw_says_what_it_can_show(fewlabel: Runner, folder: Path):
    args = ["audit", "labelled.csv", "--draw", "20", "--goal", "5%", "--out", "check.csv"]
    answer = fewlabel(folder, *args)
    assert answer.code == 0, answer.err
    out = answer.out.replace("\N{NO-BREAK SPACE}", " ")
    assert "20 rows of 147 accepted labels drawn at random" in out
    shown = np.ceil(1000 * hypergeometric_limits(147, 20, 0).high / 147) / 10
    assert f"If none is wrong they will show that at most {shown:.1f} % of all are" in out
    assert "To show that at most 5 % are wrong takes 45 checks if none is wrong" in out
    assert "if 2.0 % are, as the confidences say" in out
    assert "20 checks cannot show it, even if none is wrong: draw at least 45" in out


def test_a_goal_alone_is_planned(fewlabel: Runner, folder: Path):
    args = ["audit", "labelled.csv", "--goal", "5%", "--json", "--all"]
    answer = json.loads(fewlabel(folder, *args).out)
    fixed, rows = answer["goal"], answer["rows"]
    assert rows == N - GIVEN
    assert fixed["checks_if_none_wrong"] < fixed["checks_probably"] < rows
    one = json.loads(fewlabel(folder, *args, "--sequential").out)["goal"]
    assert one["checks_probably"] > fixed["checks_probably"]
    hopeless = fewlabel(folder, "audit", "labelled.csv", "--goal", "1%").out
    assert "It will probably fail" in hopeless
    assert "too few for a guarantee from a sample" in hopeless


def test_the_statement(fewlabel: Runner, folder: Path):
    answer = state(fewlabel, folder, filled(draw(fewlabel, folder)), "--target", "segment")
    assert answer.code == 0, answer.err
    share = hypergeometric_limits(147, 30, 0).high / 147
    shown = f"{np.ceil(1000 * share) / 10:.1f}"
    assert answer.out.replace("\N{NO-BREAK SPACE}", " ") == (
        f"At most {shown} % of the 147 accepted labels are wrong (guaranteed with 95 % confidence, "
        f"30 rows checked, 0 wrong).\n"
    )


def test_the_statement_for_machines(fewlabel: Runner, folder: Path):
    rows = filled(draw(fewlabel, folder))
    for row in rows[:2]:
        row["audit_right_label"] = "large" if row["audit_label"] == "small" else "small"
    options = ["--json", "--confidence", "0.9", "--goal", "50 %"]
    answer = json.loads(state(fewlabel, folder, rows[::-1], *options).out)  # in any order
    high = hypergeometric_limits(147, 30, 2, confidence=0.9).high
    expected = {"at_most": high / 147, "confidence": 0.9, "checked": 30, "wrong": 2, "rows": 147}
    assert expected.items() <= answer.items()
    assert answer["at_most_after_correction"] == (high - 2) / 147
    assert [item["row"] for item in answer["corrections"]] == [
        int(r["audit_row"]) for r in rows[:2]
    ]
    assert answer["goal"]["reached"]


def test_all_labels(fewlabel: Runner, folder: Path):
    rows = filled(draw(fewlabel, folder, "--all"))
    answer = state(fewlabel, folder, rows)
    assert "of the 220 labels are wrong" in answer.out


def test_a_sequential_audit_may_stop(fewlabel: Runner, folder: Path):
    rows = filled(draw(fewlabel, folder, "--sequential"), first=12)
    rows[4]["audit_right_label"] = "small" if rows[4]["audit_label"] == "large" else "large"
    answer = json.loads(state(fewlabel, folder, rows[::-1], "--json").out)
    high = audit_confidence_sequence(147, np.arange(12) == 4)[1][-1]
    assert answer["plan"] == "sequential"
    assert answer["checked"] == 12
    assert answer["at_most"] == high / 147
    # The same for a draw that was not meant to be stopped.
    rows = filled(draw(fewlabel, folder, "--force"), first=12)
    assert state(fewlabel, folder, rows, "--force").code == 1
    assert "valid at every moment" in state(fewlabel, folder, rows, "--sequential").out


def test_corrected_labels_are_taken_over(fewlabel: Runner, folder: Path):
    rows = filled(draw(fewlabel, folder))
    rows[3]["audit_right_label"] = " huge "
    answer = state(fewlabel, folder, rows, "--out", "corrected.csv")
    assert answer.code == 0, answer.err
    assert "! No row of the table has the label 'huge'" in answer.out
    before, after = read(folder / "labelled.csv"), read(folder / "corrected.csv")
    checked = {int(row["audit_row"]) - 1: row for row in rows}
    wrong = int(rows[3]["audit_row"]) - 1
    for i, (old, new) in enumerate(zip(before, after)):
        label = old["segment_label"] if i != wrong else "huge"
        assert new["segment_label"] == label
        if i in checked:
            assert (new["segment_origin"], new["segment"]) == ("audited", label)
            assert (new["segment_confidence"], new["segment_accepted"]) == ("", "true")
        else:
            assert new["segment_origin"] == old["segment_origin"]
            assert new["segment"] == old["segment"]
    again = fewlabel(folder, "audit", "corrected.csv", "--draw", 5, "--json", "--out", "c2.csv")
    assert json.loads(again.out)["rows"] == 147 - 30  # a person vouches for the audited ones


def test_tables_with_types(fewlabel: Runner, tmp_path: Path):
    columns = labelled_columns(segment_label=[i % 3 for i in range(N)])
    columns["segment"] = [i % 3 if i < GIVEN else None for i in range(N)]
    columns["segment_accepted"] = [i % 2 == 0 for i in range(N)]
    columns["segment_confidence"] = [None if i < GIVEN else 0.9 for i in range(N)]
    pq.write_table(pa.table(columns), tmp_path / "labelled.parquet")
    args = ["audit", "labelled.parquet", "--draw", 10, "--out", "check.csv", "--seed", 1]
    assert fewlabel(tmp_path, *args).code == 0
    for right, kind in (("2", pa.int64()), ("none", pa.string())):
        rows = filled(read(tmp_path / "check.csv"))
        rows[0]["audit_right_label"] = right
        write(tmp_path / "done.csv", rows, ";")  # as a spreadsheet may save it
        args = ["audit", "labelled.parquet", "--checked", "done.csv", "--out", "out.parquet"]
        answer = fewlabel(tmp_path, *args, "--force")
        assert answer.code == 0, answer.err
        out = pq.read_table(tmp_path / "out.parquet")
        assert out.schema.field("segment_label").type == kind
        assert out.schema.field("segment_accepted").type == pa.bool_()
        row = int(rows[0]["audit_row"]) - 1
        assert str(out.column("segment_label")[row]) == right
        assert str(out.column("segment")[row]) == right


def test_pandas_reads_a_table_whose_labels_changed_their_type(fewlabel: Runner, tmp_path: Path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(labelled_columns(segment_label=[i % 3 for i in range(N)]))
    frame["segment"] = pd.array([i % 3 if i < GIVEN else None for i in range(N)], dtype="Int64")
    frame["segment_label"] = frame["segment_label"].astype("category")
    frame["size"] = frame["size"].astype("Float64")
    frame.index = pd.Index(np.arange(N) * 2, name="id")
    frame.to_parquet(tmp_path / "labelled.parquet")
    args = ["audit", "labelled.parquet", "--draw", 10, "--out", "check.csv", "--seed", 1]
    assert fewlabel(tmp_path, *args).code == 0
    rows = filled(read(tmp_path / "check.csv"))
    rows[0]["audit_right_label"] = "none"
    write(tmp_path / "done.csv", rows)
    args = ["audit", "labelled.parquet", "--checked", "done.csv", "--out", "out.parquet"]
    answer = fewlabel(tmp_path, *args)
    assert answer.code == 0, answer.err
    out = pd.read_parquet(tmp_path / "out.parquet")
    assert out["segment"].iloc[int(rows[0]["audit_row"]) - 1] == "none"
    assert out.index.equals(frame.index)  # what did not change is as it was
    assert out["size"].dtype == "Float64"


def test_labels_without_an_origin_are_all_of_a_model(fewlabel: Runner, folder: Path):
    columns = labelled_columns()
    del columns["segment_origin"]
    write(folder / "labelled.csv", as_rows(columns))
    rows = filled(draw(fewlabel, folder))
    answer = state(fewlabel, folder, rows, "--target", "segment", "--out", "corrected.csv")
    assert answer.code == 0, answer.err
    assert "every row counts as labelled by a model" in answer.out
    origins = [row["segment_origin"] for row in read(folder / "corrected.csv")]
    assert origins.count("audited") == 30
    assert origins.count("predicted") == N - 30


def test_what_spreadsheets_do_is_forgiven(fewlabel: Runner, folder: Path):
    rows = filled(draw(fewlabel, folder))
    for row in rows:
        row["size"] = f"{float(row['size']):.6e}".replace(".", ",")
        row["remark"] = row["remark"].removeprefix("'").upper()
        row["audit_right_label"] = f" {row['audit_right_label']} "
    rows.append(dict.fromkeys(rows[0], ""))  # a row without a cell
    answer = state(fewlabel, folder, rows)
    assert answer.code == 0, answer.err
    assert "30 rows checked, 0 wrong" in answer.out


@pytest.mark.parametrize("kind", ["true and false", "fractions", "any"])
def test_labels_that_a_spreadsheet_rewrites(kind: str, fewlabel: Runner, folder: Path):
    labels = {"true and false": ["true", "false"], "fractions": ["1.0", "2.0"]}
    names = labels.get(kind, ["small", "large"])
    write(folder / "labelled.csv", as_rows(labelled_columns(segment_label=names * (N // 2))))
    rows = filled(draw(fewlabel, folder))
    rewritten = {"1.0": "1", "2.0": "2"}
    for row in rows:
        for name in ("audit_label", "audit_right_label"):
            row[name] = rewritten.get(row[name], row[name].upper())
    rows[0]["audit_right_label"] = next(
        row["audit_label"] for row in rows if row["audit_label"] != rows[0]["audit_label"]
    )
    answer = state(fewlabel, folder, rows, "--out", "corrected.csv")
    assert answer.code == 0, answer.err
    assert "30 rows checked, 1 wrong" in answer.out
    assert {row["segment_label"] for row in read(folder / "corrected.csv")} == set(names)


def test_a_spelling_of_several_classes_is_refused(fewlabel: Runner, folder: Path):
    names = ["large", "small", "Small"]
    write(folder / "labelled.csv", as_rows(labelled_columns(segment_label=names * (N // 3))))
    rows = filled(draw(fewlabel, folder))
    row = next(row for row in rows if row["audit_label"] == "small")
    row["audit_right_label"] = "SMALL"
    answer = state(fewlabel, folder, rows)
    assert answer.code == 1
    assert f"row {row['audit_row']} 'SMALL' for 'Small' or 'small'" in answer.err
    row["audit_right_label"], row["audit_label"] = "small", "Small"  # another label than was drawn
    answer = state(fewlabel, folder, rows)
    assert "Cells of 'done.csv' were changed" in answer.err


def test_long_numbers_come_back_with_six_digits(fewlabel: Runner, folder: Path):
    rng = np.random.default_rng(0)
    numbers = [str(n) for n in rng.integers(10**12, 10**13, N)]
    write(folder / "labelled.csv", as_rows(labelled_columns(day=numbers)))
    rows = filled(draw(fewlabel, folder))
    for row in rows:
        row["day"] = f"{float(row['day']):.5E}"
    answer = state(fewlabel, folder, rows)
    assert "30 rows checked, 0 wrong" in answer.out, answer.err
    rows[3]["day"] = f"{float(rows[3]['day']) * 1.0001:.5E}"
    assert "were changed" in state(fewlabel, folder, rows).err


def test_digests_are_no_numbers(fewlabel: Runner, folder: Path):
    rows = filled(draw(fewlabel, folder))
    assert all(row["audit_row_digest"].startswith("r") for row in rows)
    for row in rows:  # as earlier versions wrote them
        row["audit_row_digest"] = row["audit_row_digest"].removeprefix("r")
    answer = state(fewlabel, folder, rows)
    assert "30 rows checked, 0 wrong" in answer.out, answer.err


def test_a_file_in_another_encoding_than_the_table(fewlabel: Runner, folder: Path):
    names = ["größer", "kleiner"]
    write(folder / "labelled.csv", as_rows(labelled_columns(segment_label=names * (N // 2))))
    filled(rows := draw(fewlabel, folder))
    write(folder / "done.csv", rows)
    text = (folder / "done.csv").read_text(encoding="utf-8")
    (folder / "done.csv").write_text(text, encoding="cp1252")
    command = ["audit", "labelled.csv", "--checked", "done.csv"]
    refused = fewlabel(folder, *command)
    assert "'done.csv' is not UTF-8 text" in refused.err
    answer = fewlabel(folder, *command, "--encoding", "cp1252", "--out", "corrected.csv")
    assert "30 rows checked, 0 wrong" in answer.out, answer.err
    assert {row["segment_label"] for row in read(folder / "corrected.csv")} == set(names)


def test_the_file_is_written_as_the_table_was(fewlabel: Runner, folder: Path):
    write(folder / "labelled.csv", as_rows(labelled_columns()), ";")
    text = (folder / "labelled.csv").read_text(encoding="utf-8")
    (folder / "labelled.csv").write_text(text, encoding="utf-8-sig")
    assert fewlabel(folder, "audit", "labelled.csv", "--draw", 30, "--out", "c.csv").code == 0
    assert (folder / "c.csv").read_bytes().startswith(b"\xef\xbb\xbfaudit_order;audit_label;")


def test_labels_that_a_spreadsheet_would_run(fewlabel: Runner, tmp_path: Path):
    columns = labelled_columns(segment_label=["=a", "-b"] * (N // 2))
    pq.write_table(pa.table(columns), tmp_path / "labelled.parquet")
    args = ["audit", "labelled.parquet", "--draw", 10, "--out", "check.csv"]
    assert fewlabel(tmp_path, *args).code == 0
    rows = filled(read(tmp_path / "check.csv"))
    assert rows[0]["audit_label"][:2] in ("'=", "'-")
    for row in rows[:5]:
        row["audit_right_label"] = row["audit_right_label"].removeprefix("'")
    write(tmp_path / "done.csv", rows)
    answer = fewlabel(tmp_path, "audit", "labelled.parquet", "--checked", "done.csv")
    assert "10 rows checked, 0 wrong" in answer.out, answer.err


def test_draws_differ_unless_a_seed_is_named(fewlabel: Runner, folder: Path):
    for name in ("a.csv", "b.csv"):
        assert fewlabel(folder, "audit", "labelled.csv", "--draw", 30, "--out", name).code == 0
    assert read(folder / "a.csv") != read(folder / "b.csv")


def test_the_name_of_the_file_by_default(fewlabel: Runner, folder: Path):
    assert fewlabel(folder, "audit", "labelled.csv", "--draw", 3).code == 0
    assert len(read(folder / "labelled-check.csv")) == 3


# --- files that are refused ------------------------------------------------------------------


def change(row: int, column: str, value: str) -> Callable[[Rows], Rows]:
    def changed(rows: Rows) -> Rows:
        rows[row][column] = value
        return rows

    return changed


def foreign(rows: Rows) -> Rows:
    rows[2]["audit_row"] = "1"  # a given row: never drawn
    return rows


def swapped(column: str) -> Callable[[Rows], Rows]:
    def changed(rows: Rows) -> Rows:
        other = next(i for i in range(1, 30) if rows[i][column] != rows[0][column])
        rows[0][column], rows[other][column] = rows[other][column], rows[0][column]
        return rows

    return changed


def without(column: str) -> Callable[[Rows], Rows]:
    return lambda rows: [{k: v for k, v in row.items() if k != column} for row in rows]


def other_seed(rows: Rows) -> Rows:
    return [{**row, "audit_draw": row["audit_draw"].replace("-7-", "-8-")} for row in rows]


TAMPERED: dict[str, tuple[Callable[[Rows], Rows], str]] = {
    "a row repeated": (lambda rows: [*rows, rows[4]], "repeats: row {4}"),
    "a row replaced by another": (
        lambda rows: [*rows[:9], rows[3], *rows[10:]],
        "repeats: row {3}",
    ),
    "a row missing": (lambda rows: rows[:7] + rows[8:], "lacks rows that were drawn: row {7}"),
    "a foreign row": (foreign, "not drawn: row 1."),
    "another label shown": (swapped("audit_label"), "'audit_label'"),
    "rows swapped": (swapped("audit_row"), "were changed"),
    "order swapped": (swapped("audit_order"), "'audit_order'"),
    "digests swapped": (swapped("audit_row_digest"), "'audit_row_digest'"),
    "a cell changed": (change(6, "size", "99"), "row {6}, 'size'"),
    "a column sorted by itself": (swapped("day"), "'day'"),
    "no row number": (change(6, "audit_row", "six"), "no row number in row 7"),
    "row of another draw": (change(6, "audit_draw", "fixed-all-3-1-0123456789abcdef"), "row 7"),
    "another seed": (other_seed, "was not drawn from this table"),
    "a draw of nothing": (
        lambda rows: [{**row, "audit_draw": "fixed-all-0-1-0123456789abcdef"} for row in rows],
        "says how it was drawn",
    ),
    "a draw of more than there is": (
        lambda rows: [{**row, "audit_draw": "fixed-all-900-1-0123456789abcdef"} for row in rows],
        "was not drawn from this table",
    ),
    "no note of the draw": (
        lambda rows: [{**row, "audit_draw": ""} for row in rows],
        "says how it was drawn",
    ),
    "a column of ours missing": (without("audit_order"), "lacks the columns 'audit_order'"),
    "a column missing": (without("day"), "lacks the columns 'day'"),
    "a row unchecked": (change(6, "audit_right_label", "  "), "checked: row {6}"),
    "nothing checked": (
        lambda rows: [{**row, "audit_right_label": ""} for row in rows],
        "No row is checked",
    ),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_tampered_files_are_refused(name: str, fewlabel: Runner, folder: Path):
    tamper, says = TAMPERED[name]
    rows = filled(draw(fewlabel, folder))
    numbers = [f"{int(row['audit_row']):,}" for row in rows]
    answer = state(fewlabel, folder, tamper(rows), "--out", "corrected.csv")
    assert answer.code == 1
    assert says.format(*numbers) in answer.err, answer.err
    assert "Traceback" not in answer.err
    assert answer.out == ""
    assert not (folder / "corrected.csv").exists()


def test_a_sequential_audit_may_not_skip(fewlabel: Runner, folder: Path):
    rows = filled(draw(fewlabel, folder, "--sequential"), first=12)
    rows[5]["audit_right_label"] = ""
    answer = state(fewlabel, folder, rows)
    assert answer.code == 1
    assert f"order of the draw: row {rows[5]['audit_row']}" in answer.err


def test_a_table_that_changed_is_refused(fewlabel: Runner, folder: Path):
    rows = filled(draw(fewlabel, folder))
    number = int(rows[0]["audit_row"])
    columns = labelled_columns()
    columns["segment_label"][number - 1] = "huge"
    write(folder / "labelled.csv", as_rows(columns))
    answer = state(fewlabel, folder, rows)
    assert answer.code == 1
    assert f"row {number} is not what was drawn" in answer.err
    columns = labelled_columns()
    columns["segment_label"][GIVEN] = "huge"  # row 21 is not accepted: it cannot be drawn
    write(folder / "labelled.csv", as_rows(columns)[:-1])
    answer = state(fewlabel, folder, rows)
    assert answer.code == 1
    assert "was not drawn from this table as it is now" in answer.err


LABELLED = labelled_columns()
BAD: dict[str, tuple[dict[str, list[Any]], str, str]] = {
    "nothing to do": (LABELLED, "", "nothing to do"),
    "a file of a goal": (LABELLED, "--goal 5% --out c.csv", "--goal alone writes no file"),
    "both": (LABELLED, "--draw 3 --checked check.csv", "exclude each other"),
    "too many rows": (LABELLED, "--draw 148", "only 147 accepted labels"),
    "no such target": (LABELLED, "--draw 3 --target segmnt", "no column 'segmnt_label'"),
    "no file": (LABELLED, "--checked nothing.csv", "no file 'nothing.csv'"),
    "not a checked file": (LABELLED, "--checked labelled.csv", "lacks the columns 'audit_order'"),
    "confidence": (LABELLED, "--draw 3 --confidence 95", "Write it as 5%"),
    "certainty": (LABELLED, "--draw 3 --confidence 100%", "below 100 %"),
    "goal": (LABELLED, "--draw 3 --goal low", "--goal must be a share"),
    "an output for people": (LABELLED, "--draw 3 --out c.parquet", "is no CSV file"),
    "the output is the input": (LABELLED, "--draw 3 --out labelled.csv --force", "never changed"),
    "seed": (LABELLED, "--checked check.csv --seed 1", "--seed is for --draw"),
    "no accepted column": (
        {k: v for k, v in LABELLED.items() if k != "segment_accepted"},
        "--draw 3",
        "Add --all",
    ),
    "no labels": ({"a": [1], "b": [2]}, "--draw 3", "no labels to audit"),
    "two targets": (
        {**LABELLED, "b_label": ["x"] * N, "b_origin": ["predicted"] * N},
        "--draw 3",
        "several targets: 'segment', 'b'",
    ),
    "accepted is something else": (
        {**LABELLED, "segment_accepted": ["true", "perhaps"] * (N // 2)},
        "--draw 3",
        "something else than true and false in rows 2, 4",
    ),
    "nothing accepted": ({**LABELLED, "segment_accepted": ["false"] * N}, "--draw 3", "accepted"),
    "everything given": (
        {**LABELLED, "segment_origin": ["given"] * N},
        "--draw 3 --all",
        "every label was given",
    ),
    "a label is empty": (
        {**LABELLED, "segment_label": ["a"] * (N - 1) + [""]},
        "--draw 3 --all",
        "is empty in row 240",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str, fewlabel: Runner, tmp_path: Path):
    columns, options, says = BAD[name]
    write(tmp_path / "labelled.csv", as_rows(columns))
    answer = fewlabel(tmp_path, "audit", "labelled.csv", *options.split())
    assert answer.code == 1, answer.err
    assert says in answer.err.replace("\N{NO-BREAK SPACE}", " "), answer.err
    assert "Traceback" not in answer.err
    assert answer.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["labelled.csv"]
