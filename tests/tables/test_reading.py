"""Tables: what is read, what is written, what a spreadsheet would run."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from fewlabel._core.errors import UserError, shorten
from fewlabel.encoding.columns import (
    MOSTLY_IN_PART,
    Column,
    make_transformer,
    plan_columns,
    to_frame,
)
from fewlabel.tables.csv_writing import formula_safe, write_csv
from fewlabel.tables.reading import read_table, table_format, write_table

pa = pytest.importorskip("pyarrow")


RISKY = ["=1+1", "@SUM(A1)", "+1+1", "-1+1", "\t=1", " =1", "-A1", "\r=1", "+E5", "-$E5"]


@pytest.mark.parametrize("cell", RISKY)
def test_formulas_are_disarmed(cell: str):
    assert formula_safe(pa.array([cell])).to_pylist() == ["'" + cell]


SAFE = ["-1.5", "+3", "1e-5", "-2E+10", "a=b", "", None, "2024-01-01"]
SAFE += ["+", "-", " - ", "-1,5", "-1.234,50 €", "-$5", "+3 %"]


@pytest.mark.parametrize("cell", SAFE)
def test_other_cells_stay(cell: str | None):
    assert formula_safe(pa.array([cell], pa.string())).to_pylist() == [cell]


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "tsv.zst", "csv.bz2", "csv.xz"])
def test_text_survives(ending: str, tmp_path: Path):
    table = pa.table(
        {
            "a,b": ["1.10", "007", "", 'q"uote', "line\nbreak", "ünï"],
            'say "x"': ["1e3", " spaces ", "NA", ";", "\\", "|"],
        }
    )
    path = tmp_path / f"t.{ending}"
    write_table(table, path, *table_format(path))
    assert read_table(path).to_pydict() == table.to_pydict()


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("ending", ["csv", "txt"])
def test_text_is_written_as_it_was(ending: str, delimiter: str, mark: bytes, tmp_path: Path):
    def written(*lines: str) -> bytes:
        return mark + "".join(delimiter.join(line) + "\n" for line in lines).encode()

    (tmp_path / f"t.{ending}").write_bytes(written("abc", "123"))
    table = read_table(tmp_path / f"t.{ending}")
    out = tmp_path / f"out.{ending}"
    write_table(table.append_column("d", pa.array(["4"])), out, *table_format(out))
    assert out.read_bytes() == written("abcd", "1234")
    write_table(table, tmp_path / "t.parquet", "parquet")
    again = read_table(tmp_path / "t.parquet")
    assert again.schema.metadata is None
    write_table(again, out, "csv")
    assert out.read_bytes() == b"a,b,c\n1,2,3\n"


def test_the_ending_tsv_means_tabs(tmp_path: Path):
    (tmp_path / "t.tsv").write_text("a\tb\n1\t2\n")
    table = read_table(tmp_path / "t.tsv")
    write_table(table, tmp_path / "t.csv", "csv")
    assert (tmp_path / "t.csv").read_text() == "a,b\n1,2\n"
    write_table(read_table(tmp_path / "t.csv"), tmp_path / "u.tsv", "tsv")
    assert (tmp_path / "u.tsv").read_bytes() == (tmp_path / "t.tsv").read_bytes()


def test_missing_numbers_are_empty_cells():
    file = io.StringIO()
    write_csv(pa.table({"v": pa.array([0.5, None]), "t": [True, False]}), file)
    assert file.getvalue() == "v,t\n0.5,true\n,false\n"


def test_numbers_dates_and_categories_become_features():
    table = pa.table(
        {
            "n": ["1", "+2.5", "inf", "NA", "oops"] * 8,
            "d": ["2024-01-31", "2024-02-01T12:00", "", "2024-02-29", "2024-03-01"] * 8,
            "c": ["x", "y", "", "x", "z"] * 8,
            "b": ["Yes", "no", "", "YES", "no"] * 8,
        }
    )
    plan = plan_columns(table, leave_out={})
    assert [column.kind for column in plan] == ["category", "date", "category", "yes/no"]
    frame = to_frame(table, plan)
    assert frame["d (days)"][0] == 19753  # days from 1970-01-01 to 2024-01-31
    assert frame["d (days)"][1] == 19754.5
    assert frame["d (weekday)"][0] == 2  # a Wednesday
    assert np.isnan(frame["d (month)"][2])
    assert frame["b"][:2].tolist() == [1.0, 0.0]
    X = make_transformer(plan).fit_transform(frame)
    assert X.dtype == np.float32
    assert np.isfinite(X).all()


def test_a_few_odd_cells_do_not_make_numbers_text():
    numbers = [str(i / 3) for i in range(95)] + ["about 3", "4 apples"] + ["", "NA", "inf"]
    plan = plan_columns(pa.table({"n": numbers, "m": numbers}), leave_out={})
    assert plan[0].kind == "number"
    assert "2 cells that are no number count as missing" in plan[0].treatment
    values = to_frame(pa.table({"n": numbers, "m": numbers}), plan)["n"].to_numpy()
    assert np.isnan(values[[95, 96, 97, 98]]).all()
    assert np.isfinite(values[99])  # infinity is cut to what a forest can hold


def of_type(kind: str) -> pa.ChunkedArray:
    """40 cells as files of different programs keep them."""
    words = pa.array(["p", "q", None, "q"] * 10)
    seconds = pa.array([1, 2, None, 4] * 10)
    made = {
        "string": words,
        "large_string": words.cast(pa.large_string()),
        "string_view": words.cast(pa.string_view()),
        "dictionary": words.dictionary_encode(),
        "dictionary of large_string": words.cast(pa.large_string()).dictionary_encode(),
        "null": pa.nulls(40),
        "duration": seconds.cast(pa.duration("s")),
        "time32": seconds.cast(pa.int32()).cast(pa.time32("s")),
        "date32": seconds.cast(pa.int32()).cast(pa.date32()),
        "timestamp": seconds.cast(pa.timestamp("s", "Europe/Berlin")),
        "decimal": seconds.cast(pa.decimal128(21, 2)),
        "numbers in a dictionary": seconds.dictionary_encode(),
        "bytes": pa.array([b"\xff", b"\xfe"] * 20),
        "bits": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0] * 20, pa.int8())),
    }[kind]
    return pa.chunked_array([made])


@pytest.mark.parametrize(
    ("kind", "taken_for"),
    [
        ("string", "category"),
        ("large_string", "category"),
        ("string_view", "category"),
        ("dictionary", "category"),
        ("dictionary of large_string", "category"),
        ("null", "left out: every cell is empty"),
        ("duration", "number: in seconds"),
        ("time32", "number: in seconds"),
        ("date32", "date"),
        ("timestamp", "date"),
        ("decimal", "number"),
        ("numbers in a dictionary", "number"),
        ("bytes", "left out: its type, binary, is neither number nor text"),
        ("bits", "number"),
    ],
)
def test_columns_of_every_type_are_understood_or_left_out(kind: str, taken_for: str, tmp_path):
    table = pa.table({"x": np.arange(40) ** 2, "y": of_type(kind)})
    plan = plan_columns(table, leave_out={})
    assert f"{plan[1].kind}: {plan[1].treatment}".startswith(taken_for)
    X = make_transformer(plan).fit_transform(to_frame(table, plan))
    assert len(X) == 40
    assert np.isfinite(X).all()
    if plan[1].kind == "number" and kind != "bits":
        assert to_frame(table, plan)["y"].tolist()[:2] == [1.0, 2.0]
    for path in (tmp_path / "t.csv", tmp_path / "t.jsonl"):
        if kind != "bytes":
            write_table(table, path, path.suffix[1:])
            assert read_table(path).num_rows == 40


@pytest.mark.parametrize("written", ["text", "date32", "timestamp"])
def test_dates_of_all_times(written: str):
    """The year 9999 often stands for "no end"; nanoseconds do not reach it."""
    days = np.array([19753, 19754, 2932896, -290000] * 5)
    dates = pa.array(days, pa.int32()).cast(pa.date32())
    column = {
        "text": lambda: pa.array([str(d) for d in dates.to_pylist()]),
        "date32": lambda: dates,
        "timestamp": lambda: dates.cast(pa.timestamp("us")),
    }[written]()
    table = pa.table({"d": column})
    plan = plan_columns(table, leave_out={})
    assert plan[0].kind == "date"
    np.testing.assert_array_equal(to_frame(table, plan)["d (days)"], days)


def test_a_column_named_like_a_part_of_a_date():
    table = pa.table({"d": ["2024-01-31", "2024-02-01"] * 10, "d (days)": [1, 5] * 10})
    plan = plan_columns(table, leave_out={})
    frame = to_frame(table, plan)
    assert frame["d (days)"][0] == 1
    assert frame["d (days)*"][0] == 19753
    assert make_transformer(plan).fit_transform(frame).shape == (20, 4)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [("date", "2024-01-31", "31.12.2024"), ("number", "3", "three"), ("yes/no", "no", "nope")],
)
def test_new_cells_that_cannot_be_read_are_an_error(kind: str, good: str, bad: str):
    plan = [Column("c", kind, "")]
    with pytest.raises(UserError, match=f"held a {kind} when the model was trained; here 1 of 1 "):
        to_frame(pa.table({"c": [bad, None]}), plan)
    with pytest.raises(UserError, match=f"399 of 400 filled cells cannot .* '{bad}'"):
        to_frame(pa.table({"c": [good] + [bad] * 399}), plan)
    notes: list[str] = []
    assert len(to_frame(pa.table({"c": [good] * 9 + [bad]}), plan, notes=notes)) == 10
    told = f"1 of 10 filled cells hold no {kind} and count as missing (the first: '{bad}')"
    assert notes == [f"column 'c': {told}"]
    assert len(to_frame(pa.table({"c": ["", None, "NA"]}), plan, notes=notes)) == 3
    assert len(notes) == 1
    part = to_frame(pa.table({"c": [good, bad]}), plan, readable=MOSTLY_IN_PART)
    assert len(part) == 2


def test_moments_in_json_lines_keep_their_zone(tmp_path: Path):
    moments = pa.array([0, 3600]).cast(pa.timestamp("s", "UTC"))
    path = tmp_path / "t.jsonl"
    write_table(pa.table({"t": moments, "n": [1, 2]}), path, "jsonl")
    assert path.read_text().splitlines()[0] == '{"t": "1970-01-01T00:00:00+00:00", "n": 1}'


def test_messages_are_short_and_printable():
    assert shorten("a\x1b[31mb\n") == "a·[31mb·"
    assert len(shorten("x" * 1000)) == 60
