"""Cells of every type, and cells that cannot be read."""

from __future__ import annotations

import numpy as np
import pytest

from fewlabel._core.errors import UserError
from fewlabel.encoding.columns import MOSTLY_IN_PART, plan_column
from fewlabel.encoding.encoder import TableEncoder
from fewlabel.tables.reading import read_table, write_table

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")


def encoded(table):
    """A fitted encoder, and the features by name."""
    encoder = TableEncoder()
    X = encoder.fit_transform(table)
    assert X.dtype == np.float32
    return encoder, pd.DataFrame(X, columns=encoder.get_feature_names_out())


def test_numbers_dates_and_categories_become_features():
    table = pa.table(
        {
            "n": ["1", "+2.5", "inf", "NA", "oops"] * 8,
            "d": ["2024-01-31", "2024-02-01T12:00", "", "2024-02-29", "2024-03-01"] * 8,
            "c": ["x", "y", "", "x", "z"] * 8,
            "b": ["Yes", "no", "", "YES", "no"] * 8,
        }
    )
    encoder, frame = encoded(table)
    kinds = [column.kind for column in encoder.plan_]
    assert kinds == ["category", "date", "category", "yes/no"]
    assert frame["d (days)"][0] == 19753  # days from 1970-01-01 to 2024-01-31
    assert frame["d (days)"][1] == 19754.5
    assert frame["d (missing)"].tolist()[:3] == [0, 0, 1]
    assert frame["b"][:2].tolist() == [1.0, 0.0]
    assert frame["b (missing)"].sum() == 8
    assert np.isfinite(frame).all(axis=None)


def test_a_few_odd_cells_do_not_make_numbers_text():
    numbers = [str(i / 3) for i in range(95)] + ["about 3", "4 apples"] + ["", "NA", "inf"]
    column = plan_column("n", pa.chunked_array([numbers]))
    assert column.kind == "number"
    assert "2 cells that are no number count as missing" in column.treatment
    values = column.read(pa.chunked_array([numbers]))
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
    encoder, frame = encoded(table)
    column = encoder.plan_[1]
    assert f"{column.kind}: {column.treatment}".startswith(taken_for)
    assert len(frame) == 40
    assert np.isfinite(frame).all(axis=None)
    if column.kind == "number" and kind != "bits":
        assert frame["y"].tolist()[:2] == [1.0, 2.0]
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
    encoder, frame = encoded(pa.table({"d": column}))
    assert encoder.plan_[0].kind == "date"
    np.testing.assert_array_equal(frame["d (days)"], days)


def test_a_column_named_like_a_part_of_a_date():
    table = pa.table({"d": ["2024-01-31", "2024-02-01"] * 10, "d (days)": [1, 5] * 10})
    _, frame = encoded(table)
    assert frame["d (days)"][0] == 19753
    assert frame["d (days)*"][0] == 1


@pytest.mark.parametrize(
    ("kind", "good", "other", "bad"),
    [
        ("date", "2024-01-31", "2024-05-01", "31.12.2024"),
        ("number", "3", "4", "three"),
        ("yes/no", "no", "yes", "nope"),
    ],
)
def test_new_cells_that_cannot_be_read_are_an_error(kind: str, good: str, other: str, bad: str):
    encoder = TableEncoder().fit(pa.table({"c": [good, None, other] * 8}))
    assert encoder.plan_[0].kind == kind
    with pytest.raises(UserError, match=f"held a {kind} when the model was trained; here 1 of 1 "):
        encoder.encode(pa.table({"c": [bad, None]}))
    with pytest.raises(UserError, match=f"399 of 400 filled cells cannot .* '{bad}'"):
        encoder.encode(pa.table({"c": [good] + [bad] * 399}))
    X, notes = encoder.encode(pa.table({"c": [good] * 9 + [bad]}))
    assert len(X) == 10
    told = f"1 of 10 filled cells hold no {kind} and count as missing (the first: '{bad}')"
    assert notes == [f"column 'c': {told}"]
    assert encoder.encode(pa.table({"c": ["", None, "NA"]}))[1] == []
    part, _ = encoder.encode(pa.table({"c": [good, bad]}), readable=MOSTLY_IN_PART)
    assert len(part) == 2
