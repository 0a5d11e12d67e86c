"""Excel, JSON and Parquet: what their cells can hold, and what becomes of the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fewlabel._core.errors import UserError
from fewlabel.encoding.columns import plan_column
from fewlabel.tables.reading import check_fits, read_table, writable_format, write_table

pa = pytest.importorskip("pyarrow")

TEXTS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]


@pytest.mark.parametrize("kind", [*TEXTS, pa.binary()], ids=str)
@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_formulas_are_disarmed_in_text_of_every_type(kind: Any, ending: str, tmp_path: Path):
    pytest.importorskip("openpyxl")
    path = tmp_path / f"t.{ending}"
    text = pa.array(["=1+1", "plain"])
    column = text.dictionary_encode() if pa.types.is_dictionary(kind) else text.cast(kind)
    write_table(pa.table({"n": [1, 2], "t": column}), path, *writable_format(path))
    assert read_table(path).column("t").to_pylist() == ["'=1+1", "plain"]


def test_excel_shows_characters_that_it_cannot_hold(tmp_path: Path):
    pytest.importorskip("openpyxl")
    table = pa.table({"n": [1, 2, 3, 4], "a\x07": ["bell\x07", "null\0", "tab\t", "last\uffff"]})
    write_table(table, tmp_path / "t.xlsx", "excel")
    assert read_table(tmp_path / "t.xlsx").drop_columns("n").to_pydict() == {
        "a\ufffd": ["bell\ufffd", "null\ufffd", "tab\t", "last\ufffd"]
    }


TOO_MUCH = {
    "a long cell": (pa.table({"t": ["x" * 32_768]}), "a cell of 32,768 characters"),
    "with its apostrophe": (pa.table({"t": ["=" * 32_767]}), "a cell of 32,768 characters"),
    "a long list": (pa.table({"t": [["x" * 32_767]]}), "characters"),
    "rows": (pa.table({"t": pa.nulls(2**20, pa.int8())}), "1,048,576 rows"),
    "columns": (pa.table({f"c{i}": [1] for i in range(16_385)}), "16,385 columns"),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_what_excel_would_cut_off_is_refused(name: str, tmp_path: Path):
    pytest.importorskip("openpyxl")
    table, message = TOO_MUCH[name]
    with pytest.raises(UserError, match=message):
        check_fits(table, "excel")
    with pytest.raises(UserError, match=message):
        write_table(table, tmp_path / "t.xlsx", "excel")
    check_fits(table, "csv")


def test_excel_takes_the_longest_cell(tmp_path: Path):
    pytest.importorskip("openpyxl")
    write_table(pa.table({"n": [1, 2], "t": ["x" * 32_767, None]}), tmp_path / "t.xlsx", "excel")
    assert read_table(tmp_path / "t.xlsx").column("t").to_pylist() == ["x" * 32_767, None]


@pytest.mark.parametrize("ending", ["json", "jsonl"])
def test_json_has_null_for_what_is_no_number(ending: str, tmp_path: Path):
    nan, path = float("nan"), tmp_path / f"t.{ending}"
    columns = {"f": [nan, 1.5], "l": [[float("inf"), 1.0], None], "o": [{"a": nan}, {"a": 2.0}]}
    write_table(pa.table(columns), path, ending)

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    text = path.read_text()
    rows = text.splitlines() if ending == "jsonl" else [text]
    found = [json.loads(row, parse_constant=refuse) for row in rows]
    assert (found if ending == "jsonl" else found[0]) == [
        {"f": None, "l": [None, 1.0], "o": {"a": None}},
        {"f": 1.5, "l": None, "o": {"a": 2.0}},
    ]


NESTED = pa.table(
    {"l": [[1, 2], None], "o": [{"a": "x", "b": b"y"}, None], "m": [[["deep"]], [[]]], "n": [1, 2]}
)


@pytest.mark.parametrize("ending", ["parquet", "feather", "json", "jsonl"])
def test_lists_and_objects_are_kept_and_are_no_features(ending: str, tmp_path: Path):
    path = tmp_path / f"t.{ending}"
    write_table(NESTED, path, ending)
    table = read_table(path)
    for name in "lom":
        planned = plan_column(name, table.column(name))
        assert not planned.used
        assert planned.treatment == "its cells are lists or objects"
    assert table.column("m").to_pylist() == NESTED.column("m").to_pylist()


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_lists_and_objects_are_written_as_json(ending: str, tmp_path: Path):
    pytest.importorskip("openpyxl")
    path = tmp_path / f"t.{ending}"
    write_table(NESTED, path, *writable_format(path))
    table = read_table(path)
    assert table.column("l")[0].as_py() == "[1, 2]"
    assert table.column("o")[0].as_py() == '{"a": "x", "b": "y"}'
    assert table.column("l")[1].as_py() in (None, "")
