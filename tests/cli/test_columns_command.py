"""Columns and targets, as a shell sees them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from fewlabel.tables.reading import read_table
from support.cli_tools import columns, csv_text

pytest.importorskip("typer")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


FIT = ["--target", "segment", "--learner", "forest", "--jobs", "1"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    made = columns() | {
        "born": [f"{1 + i % 28:02d}.{1 + i % 12:02d}.19{50 + i % 40}" for i in range(60)],
        "code": [f"A{i:03}" for i in range(60)],
        "zip": [f"{i % 7:05}" for i in range(60)],
    }
    made["status"] = [("ok", "bad")[i % 2] if s else "open" for i, s in enumerate(made["segment"])]
    (tmp_path / "t.csv").write_text(csv_text(made))
    return tmp_path


def test_the_plan_is_shown_before_anything_is_learned(fewlabel, table):
    answer = fewlabel(table, "columns", "t.csv", "--target", "segment")
    assert answer.code == 0, answer.err
    assert "born: date (every filled cell holds a date, written like 31.01.2012 (day first))" in (
        answer.out
    )
    assert "code: left out\n    nearly every row has its own code" in answer.out
    assert "status: left out\n    its values tell labelled from unlabelled rows" in answer.out
    told = json.loads(fewlabel(table, "columns", "t.csv", "--target", "segment", "--json").out)
    kinds = {column["name"]: column["kind"] for column in told["columns"]}
    assert kinds["segment"] == kinds["status"] == kinds["code"] == "left out"
    assert (kinds["zip"], kinds["born"]) == ("category", "date")
    assert not (table / "t-labelled.csv").exists()


def test_the_plan_can_be_overruled(fewlabel, table):
    options = ["--text", "code", "--number", "zip", "--category", "size", "--drop", "colour"]
    options += ["--date", "born=%d.%m.%Y", "--json"]
    told = json.loads(fewlabel(table, "columns", "t.csv", "--target", "segment", *options).out)
    kinds = {column["name"]: column["kind"] for column in told["columns"]}
    assert (kinds["code"], kinds["zip"], kinds["size"]) == ("text", "number", "category")
    assert (kinds["colour"], kinds["born"]) == ("left out", "date")
    wrong = fewlabel(table, "fit", "t.csv", *FIT, "--text", "Codes")
    assert wrong.code == 1
    assert "no column 'Codes' for --text" in wrong.err
    assert "Did you mean 'code'?" in wrong.err
    twice = fewlabel(table, "fit", "t.csv", *FIT, "--text", "segment")
    assert "'segment' is named for a kind, and it is the target" in twice.err


def test_models_know_how_columns_are_read(fewlabel, table):
    options = ["--out", "out.csv", "--model", "m.skops", "--text", "code"]
    answer = fewlabel(table, "fit", "t.csv", *FIT, *options)
    assert answer.code == 0, answer.err
    assert "column 'status' was left out" in answer.out
    new = fewlabel(table, "predict", "m.skops", "t.csv", "--out", "new.csv")
    assert new.code == 0, new.err
    assert len(rows_of(table / "new.csv")) == 60


def test_a_table_whose_only_column_is_text(fewlabel, tmp_path):
    rng = np.random.default_rng(0)
    topics = {"sea": ["wave", "boat", "salt", "fish"], "sky": ["cloud", "wing", "rain", "star"]}
    names = [("sea", "sky")[i % 2] for i in range(80)]
    texts = [" ".join(rng.choice([*topics[name], "the", "and"], 9)) for name in names]
    target = [name if i < 12 else "" for i, name in enumerate(names)]
    (tmp_path / "t.csv").write_text(csv_text({"text": texts, "topic": target}))
    answer = fewlabel(
        tmp_path, "fit", "t.csv", "--target", "topic", "--learner", "forest", "--jobs", "1"
    )
    assert answer.code == 0, answer.err
    found = [row["topic_label"] for row in rows_of(tmp_path / "t-labelled.csv")]
    assert np.mean(np.array(found) == names) > 0.9


@pytest.mark.parametrize("kind", ["int", "float", "category", "bool"])
def test_the_target_keeps_its_type(fewlabel, tmp_path, kind):
    made = columns()
    codes = [None if s == "" else s == "small" for s in made.pop("segment")]
    target = {
        "int": pa.array([None if c is None else int(c) for c in codes], pa.int16()),
        "float": pa.array([None if c is None else float(c) for c in codes]),
        "category": pa.array([None if c is None else str(c) for c in codes]).dictionary_encode(),
        "bool": pa.array(codes),
    }[kind]
    pq.write_table(pa.table(made | {"segment": target}), tmp_path / "t.parquet")
    options = ["--out", "out.parquet", "--model", "m.skops"]
    answer = fewlabel(tmp_path, "fit", "t.parquet", *FIT, *options)
    assert answer.code == 0, answer.err
    out = pq.read_table(tmp_path / "out.parquet")
    assert out.schema.field("segment_label").type == out.schema.field("segment").type
    assert fewlabel(tmp_path, "predict", "m.skops", "t.parquet", "--out", "p.parquet").code == 0
    again = pq.read_table(tmp_path / "p.parquet")
    assert again.schema.field("segment_label").type == out.schema.field("segment").type


def test_measurements_and_variants_are_refused_until_the_user_says(fewlabel, tmp_path):
    made = columns()
    made["price"] = [f"{i * 1.37:.2f}" if i < 30 else "" for i in range(60)]
    made["mixed"] = [s.upper() if i % 4 == 0 else s for i, s in enumerate(made["segment"])]
    (tmp_path / "t.csv").write_text(csv_text(made))
    answer = fewlabel(tmp_path, "fit", "t.csv", "--target", "price")
    assert answer.code == 1
    assert "looks like regression" in answer.err
    options = ["--learner", "forest", "--jobs", "1", "--drop", "segment", "--drop", "price"]
    answer = fewlabel(tmp_path, "fit", "t.csv", "--target", "mixed", *options)
    assert answer.code == 1
    assert "--fold-labels" in answer.err
    answer = fewlabel(tmp_path, "fit", "t.csv", "--target", "mixed", *options, "--fold-labels")
    assert answer.code == 0, answer.err
    found = {row["mixed_label"] for row in rows_of(tmp_path / "t-labelled.csv")}
    assert len(found) == 2


def test_columns_of_the_user_are_never_replaced(fewlabel, tmp_path):
    made = columns() | {"segment_label": ["mine"] * 30 + ["own"] * 30}
    (tmp_path / "t.csv").write_text(csv_text(made))
    answer = fewlabel(tmp_path, "fit", "t.csv", *FIT)
    assert answer.code == 1
    assert "columns of its own where the result is written: 'segment_label'" in answer.err


def test_decimal_commas_come_back(fewlabel, tmp_path):
    made = columns()
    made["size"] = [str(value).replace(".", ",") for value in made["size"]]
    made["weight"] = [str(value).replace(".", ",") for value in made["weight"]]
    names = list(made)
    lines = [";".join(names), *(";".join(map(str, row)) for row in zip(*made.values()))]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    answer = fewlabel(tmp_path, "fit", "t.csv", *FIT, "--out", "o.csv", "--model", "m.skops")
    assert answer.code == 0, answer.err
    assert fewlabel(tmp_path, "predict", "m.skops", "t.csv", "--out", "p.csv").code == 0
    for name in ("o.csv", "p.csv"):
        head, *rows = (tmp_path / name).read_text().splitlines()
        place = head.split(";").index("segment_confidence")
        votes = [row.split(";")[place] for row in rows]
        assert any("," in vote for vote in votes)
        assert not any("." in vote for vote in votes)


def test_true_labels_of_a_typed_column(fewlabel, tmp_path):
    votes = {"1.0": [0.9, 0.2, 0.6], "2.0": [0.1, 0.8, 0.4], "truth": [1.0, 2.0, 1.0]}
    pq.write_table(pa.table(votes), tmp_path / "v.parquet")
    answer = fewlabel(tmp_path, "bounds", "v.parquet", "--truth", "truth", "--json")
    assert answer.code == 0, answer.err
    assert json.loads(answer.out)["true_error"] == 0.0


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_standard_input_and_output(kind, fewlabel, tmp_path):
    made = columns()
    rows = [dict(zip(made, row)) for row in zip(*made.values())]
    text = csv_text(made) if kind == "csv" else json.dumps(rows)
    answer = fewlabel(tmp_path, "fit", "-", *FIT, stdin=text)
    assert answer.code == 0, answer.err
    found = list(csv.DictReader(answer.out.splitlines()))
    assert len(found) == 60
    assert {row["segment_label"] for row in found} == {"small", "large"}
    assert "labelled" in answer.err  # what is told goes elsewhere
    assert list(tmp_path.iterdir()) == []


def test_machines_and_tables_cannot_share_standard_output(fewlabel, table):
    answer = fewlabel(table, "fit", "t.csv", *FIT, "--out", "-", "--json")
    assert answer.code == 1


def test_lists_and_objects_are_left_out_and_kept(fewlabel, tmp_path):
    cells = columns()
    n = len(cells["size"])
    cells["segment"] = [label or None for label in cells["segment"]]
    nested = {"tags": [["a", "b"]] * n, "place": [{"x": i} for i in range(n)]}
    pq.write_table(pa.table({**cells, **nested}), tmp_path / "t.parquet")
    options = ["--target", "segment", "--learner", "forest"]
    model = ["--drop", "tags", "--out", "out.parquet", "--model", "m.skops"]
    answer = fewlabel(tmp_path, "fit", "t.parquet", *options, *model)
    assert answer.code == 0, answer.err
    assert "column 'place' was left out: its cells are lists or objects" in answer.out
    assert "'tags'" not in answer.out  # that was asked for
    out = pq.ParquetFile(tmp_path / "out.parquet").read()
    assert out.column("tags").to_pylist() == nested["tags"]
    (tmp_path / "parts").mkdir()
    (tmp_path / "t.parquet").rename(tmp_path / "parts" / "t.parquet")
    for args in (["fit", "parts", *options], ["predict", "m.skops", "parts"]):
        answer = fewlabel(tmp_path, *args, "--out", f"{args[0]}-out")
        assert answer.code == 0, answer.err
        file = next((tmp_path / f"{args[0]}-out").glob("*.parquet"))
        assert pq.ParquetFile(file).read().column("place").to_pylist() == nested["place"]


def with_index(folder: Path, how: str) -> Path:
    """A table of pandas whose index says what the classes are."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({**columns(), "segment": [x or None for x in columns()["segment"]]})
    rows = np.arange(len(frame))
    frame.index = rows % 2 * 1_000 + rows * 7
    path = folder / ("t.csv" if how == "csv" else "t.parquet")
    if how == "csv":
        frame.to_csv(path)
    else:
        frame.rename_axis("id" if how == "named" else None).to_parquet(path)
    return path


@pytest.mark.parametrize(
    ("how", "name"), [("csv", ""), ("named", "id"), ("unnamed", "__index_level_0__")]
)
def test_the_index_of_a_data_frame_is_no_feature(how, name, fewlabel, tmp_path):
    path = with_index(tmp_path, how)
    model = ["--model", "m.skops", "--out", f"out{path.suffix}"]
    answer = fewlabel(tmp_path, "fit", path.name, *FIT, *model)
    assert answer.code == 0, answer.err
    assert f"The index of a data frame was left out: '{name}'." in answer.out
    kept = read_table(tmp_path / f"out{path.suffix}")
    assert kept.column(name).to_pylist() == read_table(path).column(name).to_pylist()

    without = read_table(path).drop_columns(name).replace_schema_metadata(None)
    pq.write_table(without, tmp_path / "new.parquet")
    assert fewlabel(tmp_path, "predict", "m.skops", "new.parquet").code == 0

    pieces = fewlabel(tmp_path, "fit", path.name, *FIT, "--stream", "--out", "labels")
    assert f"The index of a data frame was left out: '{name}'." in pieces.out


def test_an_index_that_is_asked_for_is_a_feature(fewlabel, tmp_path):
    path = with_index(tmp_path, "named")
    asked = fewlabel(tmp_path, "columns", path.name, "--target", "segment", "--number", "id")
    assert "id: number (asked for)" in asked.out
    assert "index" not in asked.out


def test_an_unnamed_column_of_words_is_a_feature(fewlabel, tmp_path):
    cells = {"": ["a", "b", "c"] * 20, **columns()}
    (tmp_path / "t.csv").write_text(csv_text(cells))
    answer = fewlabel(tmp_path, "columns", "t.csv", "--target", "segment")
    assert "\n: category" in f"\n{answer.out}"
