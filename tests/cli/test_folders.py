"""``fewlabel fit FOLDER`` and other tables in pieces: as a shell sees it."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewlabel.chunks.dask_rows import DaskRows
from fewlabel.tables.streaming import TableFiles
from support.cli_tools import COMMAND, Runner, columns, csv_text, environment

pytest.importorskip("typer")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

LABELS = {"small", "large"}
ADDED = ["segment_label", "segment_origin", "segment_confidence", "segment_accepted"]
FOREST = ["--target", "segment", "--learner", "forest", "--jobs", "1"]
N = 240


def table_of_customers() -> Any:
    every = columns(n=N, n_labeled=30) | {"id": list(range(N))}
    every["truth"] = [("small", "large")[i % 2] for i in range(N)]
    return pa.table(every)


def write_folder(made: Path) -> Path:
    made.mkdir()
    table, size = table_of_customers(), N // 3
    kinds = [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
    for part, kind in enumerate(kinds):  # each file keeps the same texts in another way
        texts = [f.with_type(kind) if f.type == pa.string() else f for f in table.schema]
        rows = table.slice(part * size, size).cast(pa.schema(texts))
        pq.write_table(rows, made / f"{part}.parquet")
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "customers")


def labelled(path: Path, names: Sequence[str] = ADDED) -> Any:
    """The rows of a folder in the order of its files, with plain texts."""
    parts = [pq.read_table(file) for file in sorted(path.glob("*.parquet"))]
    columns_of = [pa.chunked_array([c for p in parts for c in _plain(p[n]).chunks]) for n in names]
    return pa.table(dict(zip(names, columns_of)))


def _plain(column: Any) -> Any:
    is_text = pa.types.is_dictionary(column.type) or pa.types.is_large_string(column.type)
    return column.cast(pa.string()) if is_text else column


# --- the same as for a file ----------------------------------------------------------------------


SHARES = ["--votes", "--scoring", "balanced", "--priors", "small=40%,large=0.6"]


@pytest.fixture(scope="module", params=[[], SHARES], ids=["plain", "votes and shares"])
def both(
    request: pytest.FixtureRequest, fewlabel: Runner, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The same rows as a folder and as a file, each fitted with everything that can be asked."""
    home = tmp_path_factory.mktemp("both")
    write_folder(home / "customers")
    pq.write_table(table_of_customers(), home / "customers.parquet")
    options = ["--target", "segment", "--truth", "truth", "--accept-error", "10%", "--jobs", "1"]
    options += request.param
    for name, out in (("customers", "labels"), ("customers.parquet", "labels.parquet")):
        kind = "folder" if out == "labels" else "file"
        files = ["--out", out, "--model", f"{kind}.skops", "--report", f"{kind}.json"]
        answer = fewlabel(home, "fit", name, *options, *files, "--json")
        assert answer.code == 0, answer.err
        (home / f"{kind}-answer.json").write_text(answer.out)
    return home


def test_labels_and_columns_are_those_of_the_file(both):
    parts = [pq.read_table(file) for file in sorted((both / "labels").glob("*.parquet"))]
    expected = pq.read_table(both / "labels.parquet")
    assert {tuple(part.column_names) for part in parts} == {tuple(expected.column_names)}
    found = labelled(both / "labels", expected.column_names)
    assert found.num_rows == N
    for name in expected.column_names:
        ours, theirs = found[name].to_pylist(), _plain(expected[name]).to_pylist()
        if pa.types.is_floating(expected[name].type):
            np.testing.assert_allclose(numbers(ours), numbers(theirs), rtol=0, atol=2e-6)
        else:
            assert ours == theirs, name
    given = found["segment_origin"].to_pylist()[:30]
    assert set(given) == {"given"}
    assert found["segment_confidence"].null_count == 30
    assert all(found["segment_accepted"].to_pylist()[:30])


def numbers(cells: list[float | None]) -> Any:
    return np.array([np.nan if cell is None else cell for cell in cells])


# Names of files, times, notes about what only a folder has; rows in chunks are suggested by their
# votes alone, rows in memory by how many like rows they tell about.
OWN = {"title", "source", "seconds", "notes", "label_next"}


def same_numbers(found: Any, expected: Any, at: str = "") -> None:
    """Compare two reports; numbers agree but for rounding."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), at
        for key in expected.keys() - OWN:
            same_numbers(found[key], expected[key], f"{at}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), at
        for k, (one, other) in enumerate(zip(found, expected)):
            same_numbers(one, other, f"{at}[{k}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-9, nan_ok=True), at
    else:
        assert found == expected, at


def test_report_has_the_numbers_of_the_file(both):
    found, expected = (
        json.loads((both / f"{kind}.json").read_text()) for kind in ("folder", "file")
    )
    same_numbers(found, expected)
    assert found["truth"]["n_known"] == N - 30
    accepted = labelled(both / "labels")["segment_accepted"].to_pylist()[30:]
    assert found["data"]["n_accepted"] == sum(accepted)
    wrong = [
        label != ("small", "large")[i % 2]
        for i, label in enumerate(labelled(both / "labels")["segment_label"].to_pylist())
    ]
    assert found["truth"]["error"] == pytest.approx(sum(wrong) / (N - 30))
    first = found["label_next"]["rows"][0]
    table = table_of_customers()
    assert first["cells"]["size"] == str(table["size"][first["row"] - 1].as_py())
    assert any("random ones" in note for note in found["notes"])


def test_the_model_of_a_folder_labels_folders_and_files(both, fewlabel):
    options = ["--out", "predictions", "--json"]
    answer = fewlabel(both, "predict", "folder.skops", "customers", *options)
    assert answer.code == 0, answer.err
    told = json.loads(answer.out)
    single = fewlabel(both, "predict", "folder.skops", "customers.parquet", "--out", "p.csv", "-q")
    assert single.code == 0, single.err
    lines = (both / "p.csv").read_text().splitlines()
    at = lines[0].split(",").index("segment_label")
    parts = [pq.read_table(file) for file in sorted((both / "predictions").glob("*.parquet"))]
    labels = [label for part in parts for label in part["segment_label"].to_pylist()]
    assert labels == [line.split(",")[at] for line in lines[1:]]
    accepted = [cell for part in parts for cell in part["segment_accepted"].to_pylist()]
    assert told["n_rows"] == N
    assert told["n_accepted"] == sum(accepted)


def test_what_a_folder_is_told(both):
    told = json.loads((both / "folder-answer.json").read_text())
    assert told["files"] == {"out": "labels", "model": "folder.skops", "report": "folder.json"}
    assert told["promise"]["accepted"]["max_error"] == 0.1
    assert [family["title"] for family in told["voters"]["families"]]


def test_a_folder_is_audited_like_a_file(both, fewlabel, tmp_path):
    drawn = []
    for name in ("labels", "labels.parquet"):
        command = ["audit", both / name, "--target", "segment", "--draw", 20, "--all"]
        answer = fewlabel(tmp_path, *command, "--seed", 1, "--out", f"{name}.csv")
        assert answer.code == 0, answer.err
        with (tmp_path / f"{name}.csv").open(newline="") as file:
            drawn.append(list(csv.DictReader(file)))
    own = ["audit_row", "audit_label", "size", "id"]
    assert [[row[n] for n in own] for row in drawn[0]] == [
        [row[n] for n in own] for row in drawn[1]
    ]
    filled = (tmp_path / "labels.csv").read_text().splitlines()
    for i, row in enumerate(drawn[0], 1):
        start = f"{row['audit_order']},{row['audit_label']},"
        assert filled[i].startswith(f"{start},")
        filled[i] = f"{start}{row['audit_label']}{filled[i].removeprefix(start)}"
    (tmp_path / "done.csv").write_text("\n".join(filled) + "\n")
    command = ["audit", both / "labels", "--checked", "done.csv", "--out", "corrected.parquet"]
    answer = fewlabel(tmp_path, *command)
    assert "of the 210 labels are wrong" in answer.out, answer.err
    assert pq.read_table(tmp_path / "corrected.parquet").num_rows == N
    within = fewlabel(both / "labels", "audit", ".", "--target", "segment", "--draw", 20)
    assert "lies in the folder that is read" in within.err


def test_a_folder_that_does_not_fit_in_memory_is_not_audited(both, monkeypatch, capsys):
    from fewlabel.cli.app import app

    monkeypatch.setattr("fewlabel.tables.streaming._memory", lambda: 1)
    with pytest.raises(SystemExit):
        app(["audit", str(both / "labels"), "--goal", "5%"])
    told = capsys.readouterr().err
    assert "The rows of" in told
    assert "would not fit in memory" in told
    assert "fewlabel.audit_sample" in told


@pytest.mark.parametrize("command", ["fit", "predict", "columns", "bounds", "label"])
def test_the_help_says_which_commands_read_folders(command, fewlabel, tmp_path):
    told = fewlabel(tmp_path, command, "--help").out
    assert ("a folder" in told) is (command in ("fit", "predict"))
    refused = fewlabel(tmp_path, "columns", ".", "--target", "t").err
    assert "is a folder" in refused


# --- other tables in pieces ----------------------------------------------------------------------


def test_text_in_pieces_patterns_and_folders_agree(fewlabel, folder):
    home = folder.parent
    text = csv_text(columns(n=N, n_labeled=30))
    (home / "one.csv").write_text(text)
    (home / "packed.csv.gz").write_bytes(gzip.compress(text.encode()))
    lines = text.splitlines(keepends=True)
    (home / "many").mkdir()
    for k in range(3):
        part = lines[1 + 80 * k : 1 + 80 * (k + 1)]
        (home / "many" / f"{k}.csv").write_text("".join([lines[0], *part]))
    tables = [TableFiles.of(str(home / name)) for name in ("one.csv", "packed.csv.gz", "many")]
    read = [pa.concat_tables(table for _, table in files.named_chunks()) for files in tables]
    assert read[0].num_rows == N
    assert all(table.equals(read[0]) for table in read)
    found = []
    for name, more in (("packed.csv.gz", ["--stream"]), ("many/*.csv", [])):
        answer = fewlabel(home, "fit", name, *FOREST, *more, "--out", f"out{len(found)}")
        assert answer.code == 0, answer.err
        found.append(labelled(home / f"out{len(found)}")["segment_label"].to_pylist())
    assert found[0] == found[1]
    right = [label == ("small", "large")[i % 2] for i, label in enumerate(found[0])]
    assert np.mean(right) > 0.9


def test_out_has_a_name_and_is_never_replaced(fewlabel, folder):
    answer = fewlabel(folder.parent, "fit", "customers", *FOREST, "--json")
    assert answer.code == 0, answer.err
    told = json.loads(answer.out)
    assert told["files"] == {"out": "customers-labelled"}
    left_out = {
        c["name"]: c["treatment"] for c in told["data"]["columns"] if c["kind"] == "left out"
    }
    assert set(left_out) == {"segment", "id"}  # a counter is no feature
    assert left_out["segment"] == "the target"
    for more in ([], ["--force"]):
        again = fewlabel(folder.parent, "fit", "customers", "--target", "segment", *more)
        assert again.code == 1
        assert "'customers-labelled' exists already" in again.err
        assert ("--force does not remove folders" in again.err) is bool(more)
        assert "reading" not in again.err  # found out before the work, not after


def test_local_scheduler(folder):
    pytest.importorskip("distributed", reason="needs pip install 'fewlabel[scale]'")
    answer = subprocess.run(
        [*COMMAND, "fit", "customers", *FOREST, "--scheduler", "local", "--out", "labels"],
        cwd=folder.parent,
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert "From 30 labelled rows, 210 others got a label" in answer.stdout
    assert "! column 'id' was left out: counts the rows" in answer.stdout
    assert set(labelled(folder.parent / "labels")["segment_label"].to_pylist()) == LABELS


@pytest.mark.parametrize("gives_up", ["the command", "the scheduler"])
def test_scheduler_without_workers(gives_up, folder, monkeypatch, capsys):
    """Dask waits for workers for ever, unless its scheduler is told to fail the tasks."""
    pytest.importorskip("distributed", reason="needs pip install 'fewlabel[scale]'")
    import dask

    from fewlabel.cli.app import app
    from support.dask_cluster import cluster

    limit = None if gives_up == "the command" else "300ms"
    if limit is None:
        monkeypatch.setitem(DaskRows.__init__.__kwdefaults__, "worker_timeout", 0.3)
    monkeypatch.chdir(folder.parent)
    given = ["fit", "customers", *FOREST, "--out", "labels", "--model", "m.skops"]
    with (
        dask.config.set({"distributed.scheduler.no-workers-timeout": limit}),
        cluster(0) as made,
        pytest.raises(SystemExit) as ended,
    ):
        app([*given, "--scheduler", made.scheduler_address])
    told = capsys.readouterr().err
    assert ended.value.code == 1
    assert f"fewlabel: The cluster at {made.scheduler_address} has had no worker" in told
    assert "No results were written. Start workers and fit again." in told
    assert "mistake of fewlabel" not in told
    assert "Traceback" not in told
    assert [path.name for path in folder.parent.iterdir()] == ["customers"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--scheduler", "somewhere"], "'local' or an address"),
        (
            ["--scheduler", "tcp://127.0.0.1:9"],
            "There is no Dask scheduler at tcp://127.0.0.1:9: Timed out trying to connect to "
            "tcp://127.0.0.1:9 after 3 s. Start it, or check the address.",
        ),
        (["--target", "segmnet"], "Did you mean 'segment'? The columns are 'size', 'weight'"),
        (["--out", "customers/labels"], "lies in the folder that is read"),
        (["--no-stream"], "is no single file"),
        (["--truth", "colour"], "No label of 'segment' stands in 'colour'"),
        (["--model", "model.pkl"], "does not end in .skops"),
        (["--out", "s3://bucket/labels"], "is no folder of this machine"),
        (["--out", "-"], "and --out is standard output"),
        (["--out", "labels.csv"], "and --out is 'labels.csv', a file's name"),
        (["--out", "labels.TSV.gz"], "Name a new folder, such as --out labels"),
    ],
)
def test_mistakes_are_explained(options, message, fewlabel, folder):
    answer = fewlabel(folder.parent, "fit", "customers", "--target", "segment", *options)
    assert answer.code == 1
    assert message in answer.err
    assert "Traceback" not in answer.err
    assert [path.name for path in folder.parent.iterdir()] == ["customers"]


def test_a_folder_of_nothing_and_of_both_kinds(fewlabel, tmp_path):
    (tmp_path / "rows").mkdir()
    answer = fewlabel(tmp_path, "fit", "rows", "--target", "t")
    assert "'rows' has no Parquet or text files" in answer.err
    (tmp_path / "rows" / "a.csv").write_text("a,b\n1,2\n")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "rows" / "b.parquet")
    answer = fewlabel(tmp_path, "fit", "rows", "--target", "t")
    assert "Parquet files and text files" in answer.err
    (tmp_path / "t.json").write_text("[]")
    answer = fewlabel(tmp_path, "fit", "t.json", "--target", "t", "--stream")
    assert "cannot be read in pieces" in answer.err
    answer = fewlabel(tmp_path, "fit", "rows/*.csv", "--target", "t", "--scheduler", "local")
    assert answer.code == 1


def test_what_a_killed_process_left_is_removed(fewlabel, folder):
    stale = folder.parent / ".labels.0123abcd.part"
    stale.mkdir()
    (stale / "part-000000.parquet").write_bytes(b"half")
    other = folder.parent / ".labels.of.mine"
    other.mkdir()
    answer = fewlabel(folder.parent, "fit", "customers", *FOREST, "--out", "labels")
    assert answer.code == 0, answer.err
    assert sorted(p.name for p in folder.parent.iterdir()) == [
        ".labels.of.mine",
        "customers",
        "labels",
    ]


def test_a_file_with_a_model_that_cannot_be_written_leaves_nothing(fewlabel, folder):
    answer = fewlabel(
        folder.parent, "fit", "customers", *FOREST, "--out", "labels", "--model", "no/m.skops"
    )
    assert answer.code == 1
    assert "does not exist" in answer.err
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
    answer = fewlabel(folder.parent, "fit", "customers", *FOREST, "--json")
    assert answer.code == 0, answer.err
    told = json.loads(answer.out)
    notes = {c["name"]: c["treatment"] for c in told["data"]["columns"]}
    assert "filled in 20 labelled rows" in notes["note"]


def test_labelled_rows_may_have_a_file_of_their_own(fewlabel, folder):
    every = columns(n=60, n_labeled=20)
    first = {name: values[:20] for name, values in every.items()}
    rest = {name: pa.array(values[20:], pa.array(values).type) for name, values in every.items()}
    # One label of a class that is never predicted: its bound is no number.
    first = first | {"segment": ["lonely", *first["segment"][1:]]}
    write(folder, labelled=first, rest=rest)
    answer = fewlabel(folder.parent, "fit", "customers", *FOREST, "--json")
    assert answer.code == 0, answer.err
    assert strict(answer.out)["data"]["n_unlabeled"] == 40
    assert labelled(folder.parent / "customers-labelled").num_rows == 60


def test_columns_may_differ_in_order_and_width(fewlabel, folder):
    a = {"n": pa.array([1, 2] * 20), "m": pa.nulls(40), "t": ["u", "v"] * 10 + [None] * 20}
    b = {"t": [None] * 40, "m": pa.array([0.5, 4.5] * 20), "n": pa.array([1.5, None] * 20)}
    write(folder, a=a, b=b)
    answer = fewlabel(folder.parent, "fit", "customers", "--target", "t", *FOREST[2:], "--json")
    assert answer.code == 0, answer.err
    assert strict(answer.out)["data"]["n_unlabeled"] == 60


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
