"""Tables: what is read, what is written, what a spreadsheet would run."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from fewlabel._errors import shorten
from fewlabel.preprocessing import make_transformer, plan_columns, to_frame
from fewlabel.tables import formula_safe, read_table, write_csv, write_table

pa = pytest.importorskip("pyarrow")


@pytest.mark.parametrize("cell", ["=1+1", "@SUM(A1)", "+1+1", "-1+1", "\t=1", " =1", "-", "\r=1"])
def test_formulas_are_disarmed(cell: str):
    assert formula_safe(pa.array([cell])).to_pylist() == ["'" + cell]


@pytest.mark.parametrize("cell", ["-1.5", "+3", "1e-5", "-2E+10", "a=b", "", None, "2024-01-01"])
def test_other_cells_stay(cell: str | None):
    assert formula_safe(pa.array([cell], pa.string())).to_pylist() == [cell]


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "tsv.zst", "csv.bz2", "csv.xz"])
def test_text_survives(ending: str, tmp_path: Path):
    from fewlabel.tables import table_format

    table = pa.table(
        {
            "a,b": ["1.10", "007", "", 'q"uote', "line\nbreak", "ünï"],
            'say "x"': ["1e3", " spaces ", "NA", ";", "\\", "|"],
        }
    )
    path = tmp_path / f"t.{ending}"
    write_table(table, path, *table_format(path))
    assert read_table(path).to_pydict() == table.to_pydict()


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


def test_messages_are_short_and_printable():
    assert shorten("a\x1b[31mb\n") == "a·[31mb·"
    assert len(shorten("x" * 1000)) == 60
