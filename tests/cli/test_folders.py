"""``fewlabel fit FOLDER``: as a shell sees it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.cli_tools import COMMAND, columns, environment

pytest.importorskip("typer")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

LABELS = {"small", "large"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "customers"
    made.mkdir()
    table = pa.table(columns(n=300, n_labeled=30) | {"id": list(range(300))})
    kinds = [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
    for part, kind in enumerate(kinds):  # each file keeps the same texts in another way
        texts = [f.with_type(kind) if f.type == pa.string() else f for f in table.schema]
        rows = table.slice(part * 100, 100).cast(pa.schema(texts))
        pq.write_table(rows, made / f"{part}.parquet")
    return made


def labels(path: Path) -> dict[int, str]:
    table = pq.read_table(path)
    return dict(zip(table["row"].to_pylist(), table["label"].to_pylist()))


def test_folder_gets_a_folder_of_labels(fewlabel, folder):
    answer = fewlabel(folder.parent, "fit", "customers", "--target", "segment", "--json")
    assert answer.code == 0, answer.err
    told = json.loads(answer.out)
    assert told["n_labeled"] == 30
    assert told["n_unlabeled"] == 270
    assert told["files"] == {"out": "customers-labelled"}
    error = told["error"]
    assert 0 <= error["low"] <= error["value"] <= error["high"] <= 1
    assert error["n"] > 0
    assert told["learner"] == "forest"
    assert any("learned by a random forest" in note for note in told["notes"])
    left_out = {column["name"] for column in told["columns"] if column["kind"] == "left out"}
    assert left_out == {"segment", "id"}  # a counter is no feature
    found = labels(folder.parent / "customers-labelled")
    assert sorted(found) == list(range(30, 300))
    right = [label == ("small", "large")[row % 2] for row, label in found.items()]
    assert sum(right) > 0.9 * len(right)
    for more in ([], ["--force"]):
        again = fewlabel(folder.parent, "fit", "customers", "--target", "segment", *more)
        assert again.code == 1
        assert "'customers-labelled' exists already" in again.err
        assert ("--force does not remove folders" in again.err) is bool(more)
        assert "reading" not in again.err  # found out before the work, not after
    assert labels(folder.parent / "customers-labelled") == found


def test_local_scheduler(folder):
    pytest.importorskip("distributed", reason="needs pip install 'fewlabel[scale]'")
    options = ["--target", "segment", "--learner", "forest", "--jobs", "1"]
    options += ["--scheduler", "local", "--out", "labels"]
    answer = subprocess.run(
        [*COMMAND, "fit", "customers", *options],
        cwd=folder.parent,
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert "270 rows labelled from 30 labels" in answer.stdout
    assert "! column 'id' was left out: counts the rows" in answer.stdout
    assert answer.stdout.count("!") == 1  # who asks for the forest need not be told of it
    assert set(labels(folder.parent / "labels").values()) == LABELS


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "m.skops"], "--model cannot be used with a folder"),
        (["--learner", "mixed"], "--learner mixed cannot be used with a folder"),
        (["--report", "r.html"], "--report cannot be used with a folder"),
        (["--scheduler", "somewhere"], "'local' or an address"),
        (["--scheduler", "tcp://127.0.0.1:9"], "no Dask scheduler at tcp://127.0.0.1:9"),
        (["--target", "segmnet"], "Did you mean 'segment'? The columns are 'size', 'weight'"),
        (["--out", "customers/labels"], "lies in the folder that is read"),
    ],
)
def test_mistakes_are_explained(options, message, fewlabel, folder):
    answer = fewlabel(folder.parent, "fit", "customers", "--target", "segment", *options)
    assert answer.code == 1
    assert message in answer.err
    assert "Traceback" not in answer.err
    assert [path.name for path in folder.parent.iterdir()] == ["customers"]


def write(folder: Path, **files: dict[str, Any]) -> None:
    for path in folder.iterdir():
        path.unlink()
    for name, columns_of in files.items():
        pq.write_table(pa.table(columns_of), folder / f"{name}.parquet")


def strict(text: str) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_a_column_filled_with_the_labels_is_left_out(fewlabel, folder):
    table = columns(n=60, n_labeled=20)
    table["note"] = [f"{i % 3}" if i < 20 else None for i in range(60)]
    write(folder, all=table)
    answer = fewlabel(folder.parent, "fit", "customers", "--target", "segment", "--json")
    assert answer.code == 0, answer.err
    told = json.loads(answer.out)
    assert "column 'note' was left out: filled in 20 labelled rows" in told["notes"][0]


def test_labelled_rows_may_have_a_file_of_their_own(fewlabel, folder):
    every = columns(n=60, n_labeled=20)
    first = {name: values[:20] for name, values in every.items()}
    rest = {name: pa.array(values[20:], pa.array(values).type) for name, values in every.items()}
    # One label of a class that is never predicted: its bound is no number.
    first = first | {"segment": ["lonely", *first["segment"][1:]]}
    write(folder, labelled=first, rest=rest)
    answer = fewlabel(folder.parent, "fit", "customers", "--target", "segment", "--json")
    assert answer.code == 0, answer.err
    assert strict(answer.out)["n_unlabeled"] == 40
    assert sorted(labels(folder.parent / "customers-labelled")) == list(range(20, 60))


def test_columns_may_differ_in_order_and_width(fewlabel, folder):
    a = {"n": pa.array([1, 2] * 20), "m": pa.nulls(40), "t": ["u", "v"] * 10 + [None] * 20}
    b = {"t": [None] * 40, "m": pa.array([0.5, 4.5] * 20), "n": pa.array([1.5, None] * 20)}
    write(folder, a=a, b=b)
    answer = fewlabel(folder.parent, "fit", "customers", "--target", "t", "--json")
    assert answer.code == 0, answer.err
    assert strict(answer.out)["n_unlabeled"] == 60


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a": {"x": [1.5, 2.5] * 20, "t": ["u", "v"] * 20}}, "nothing to fill"),
        ({"a": {"x": pa.array([], pa.float64()), "t": pa.array([], pa.string())}}, "have no rows"),
        (
            {"a": {"x": ["p", "q"], "t": ["u", "v"]}, "b": {"x": [[1], [2]], "t": [None, None]}},
            "different types in its files",
        ),
    ],
)
def test_folders_that_cannot_be_learned(files, message, fewlabel, folder):
    write(folder, **files)
    answer = fewlabel(folder.parent, "fit", "customers", "--target", "t")
    assert answer.code == 1
    assert message in answer.err
    assert "mistake of fewlabel" not in answer.err


def test_a_file_without_the_target_is_named(fewlabel, folder):
    write(folder, a={"x": [1.5, 2.5], "t": ["u", "v"]}, b={"x": [1.5, 2.5]})
    answer = fewlabel(folder.parent, "fit", "customers", "--target", "t")
    assert answer.code == 1
    assert "b.parquet" in answer.err
    assert "has no column 't', which the files before it have" in answer.err


def test_damaged_file_is_named(fewlabel, folder):
    (folder / "1.parquet").write_bytes(b"PAR1 nothing PAR1")
    answer = fewlabel(folder.parent, "fit", "customers", "--target", "segment")
    assert answer.code == 1
    assert "1.parquet" in answer.err
    assert [path.name for path in folder.parent.iterdir()] == ["customers"]


def test_scheduler_needs_a_folder(fewlabel, folder):
    table = folder / "0.parquet"
    answer = fewlabel(folder, "fit", table, "--target", "segment", "--scheduler", "local")
    assert answer.code == 1
    assert "--scheduler is for a folder" in answer.err
