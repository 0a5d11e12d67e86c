"""What the columns of a table are taken for."""

from __future__ import annotations

import numpy as np
import pytest

from fewlabel.encoding.columns import Column, plan_column
from fewlabel.encoding.encoder import TableEncoder
from fewlabel.encoding.plan import left_out_lines

pa = pytest.importorskip("pyarrow")


def test_columns_left_out_are_told_of_unless_asked_for():
    plan = [Column("asked", "left out", "dropped"), Column("used", "number", "")]
    plan += [Column(f"c{i}", "left out", "every cell is empty") for i in range(7)]
    plan += [Column("status", "left out", "its values tell labelled from unlabelled rows")]
    lines = left_out_lines(plan, asked=["asked"])
    assert lines[0].startswith("column 'status'")  # what knows the labels comes first
    assert lines[1] == "column 'c0' was left out: every cell is empty"
    assert lines[4:] == ["column 'c3' was left out: every cell is empty", "and 3 more columns"]


# --- numbers as people write them ------------------------------------------------------------


def planned(cells: list[str], *, comma_separated: bool = False) -> tuple[Column, list[float]]:
    """The plan of a column of text, and its first two numbers."""
    column = plan_column("x", pa.chunked_array([cells]), comma_separated=comma_separated)
    values = column.read(pa.chunked_array([cells[:2]])).tolist() if column.kind == "number" else []
    return column, values


@pytest.mark.parametrize(
    ("cells", "notation", "sign", "values"),
    [
        (["1.5", "-2", "3e3"], "", "", [1.5, -2.0]),
        (["27.669,5", "-1,5", ""], "1.234,5", "", [27669.5, -1.5]),
        (["27,669.5", "1.5", "NA"], "1,234.5", "", [27669.5, 1.5]),
        (["1,234", "12,345", "7"], "1,234.5", "", [1234.0, 12345.0]),
        (["0,125", "12,345", "7"], "1.234,5", "", [0.125, 12.345]),  # no thousands begin with 0
        (["$27,669", "-$5", "7"], "1,234.5", "$", [27669.0, -5.0]),
        (["27.5%", "-3 %", "4%"], "1,234.5", "%", [27.5, -3.0]),
        (["€ 1.234", "950 €", "7 €"], "1.234,5", "€", [1234.0, 950.0]),
        (["1\u202f234,5 EUR", "2,5", "7 EUR"], "1 234,5", "EUR", [1234.5, 2.5]),
        (["1'234.50", "2\u2019000", "7"], "1'234.5", "", [1234.5, 2000.0]),
    ],
)
def test_notations_of_numbers(cells, notation, sign, values):
    column, read = planned(cells * 10)
    assert (column.kind, column.notation, column.sign) == ("number", notation, sign)
    assert read == pytest.approx(values)
    assert f"written like {notation} {sign}".strip() in column.why or not notation
    again = Column(**column.to_dict())
    assert again == column


def test_a_few_thousands_among_plain_numbers():
    column, _ = planned(["999.5", "12", "3.25"] * 10 + ["1,234.5"])
    assert column.notation == "1,234.5"
    column, _ = planned(["999.5", "12", "3.25"] * 10 + ["1,5"])  # not a thousand
    assert column.notation == ""
    assert "1 cells that are no number" in column.treatment


@pytest.mark.parametrize("cells", [["1,2,3", "2,3", "1"], ["0.5", "50%", "7"], ["Z1", "Z2", "3"]])
def test_text_that_only_looks_like_numbers(cells):
    assert planned(cells * 10)[0].kind == "category"


@pytest.mark.parametrize("comma_separated", [False, True])
def test_an_odd_cell_does_not_change_what_a_comma_means(comma_separated):
    cells = ["1,234", "12,345", "7"] * 10 + ["none known"]
    assert planned(cells, comma_separated=comma_separated)[1] == [1234.0, 12345.0]
    dollars = ["$12", "$15"] * 10 + ["?!"]
    assert planned(dollars, comma_separated=comma_separated)[1] == [12.0, 15.0]


def test_a_slip_among_plain_numbers_does_not_multiply_them():
    cells = [f"{v:.3f}" for v in np.random.default_rng(0).uniform(1, 9, 195)]
    column, values = planned([*cells, "2,371"])
    assert (column.kind, column.notation) == ("number", "")
    assert values == pytest.approx([float(cells[0]), float(cells[1])])


def test_lists_in_a_comma_separated_file_are_no_decimals():
    answers = ["1", "2", "1,2", "1,3"] * 10
    assert planned(answers, comma_separated=True)[0].kind == "category"
    assert planned(answers, comma_separated=False)[1] == [1.0, 2.0]
    both = ["1.234,5", "2,5"] * 10  # grouping and decimals: certainly numbers
    assert planned(both, comma_separated=True)[1] == [1234.5, 2.5]


@pytest.mark.parametrize("form", ["10.1{:02}.103.1{:02}", "1.1{:02}.2{:02}", "1{:02} 1{:02} 408"])
def test_addresses_versions_and_telephone_numbers_are_no_numbers(form):
    cells = [form.format(i % 7, i % 5) for i in range(60)]
    assert planned(cells)[0].kind == "category"
    assert planned(["1.234.567", "12.345", "7"] * 10)[1] == [1234567.0, 12345.0]


def test_plain_columns_are_kept_as_before():
    assert set(planned(["1", "2.5"] * 10)[0].to_dict()) == {"name", "kind", "treatment", "why"}


# --- long numbers ----------------------------------------------------------------------------


@pytest.mark.parametrize("typed", [False, True])
def test_numbers_that_single_precision_would_merge_are_shifted(typed):
    seconds = 1_700_000_000 + np.random.default_rng(0).permutation(300) / 3
    table = pa.table({"t": seconds if typed else [f"{v:.3f}" for v in seconds]})
    encoder = TableEncoder()
    values = encoder.fit_transform(table)[:, 0]
    plan = encoder.plan_
    assert values.dtype == np.float32
    assert len(np.unique(values)) == 300
    np.testing.assert_allclose(
        values.astype(np.float64) + plan[0].shift, seconds, rtol=0, atol=1e-3
    )
    assert "counted from 17000000" in plan[0].treatment
    assert Column(**plan[0].to_dict()) == plan[0]


def test_moments_of_one_day_stay_apart():
    table = pa.table({"d": [f"2024-05-31T12:{i // 60:02d}:{i % 60:02d}" for i in range(600)]})
    encoder = TableEncoder()
    days = encoder.fit_transform(table)[:, 0]
    assert len(np.unique(days)) == 600
    assert encoder.get_feature_names_out().tolist() == ["d (days)"]  # the other parts are constant


@pytest.mark.parametrize(
    "values",
    [
        np.arange(300) / 7,
        np.arange(300) * 86_400.0 + 1.7e9,  # a day apart
        np.random.default_rng(0).normal(5, 1, 20_000),  # a few are equal by chance
        np.array([1.0, np.nan, np.inf] * 10),
    ],
)
def test_other_numbers_stay_as_they_are(values):
    table = pa.table({"x": values, "y": values**2})
    encoder = TableEncoder()
    X = encoder.fit_transform(table)
    assert encoder.plan_[0].shift == 0.0
    known = np.isfinite(values)
    np.testing.assert_array_equal(X[known, 0], values[known].astype(np.float32))


def test_a_column_without_any_number():
    table = pa.table({"x": pa.array([float("nan"), None] * 10), "y": pa.array([1.0, 5.0] * 10)})
    plan = TableEncoder().fit(table).plan_
    assert (plan[0].kind, plan[0].shift) == ("left out", 0.0)
