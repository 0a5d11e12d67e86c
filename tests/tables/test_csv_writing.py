"""CSV that every reader sees alike: as many rows and the same cells as were written."""

from __future__ import annotations

import csv
import io
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fewlabel._core.errors import UserError
from fewlabel.tables.csv_reading import check_names
from fewlabel.tables.csv_writing import formula_safe, python_cells, write_csv
from fewlabel.tables.reading import read_table, write_table
from fewlabel.tables.target_column import target_labels

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

# Characters that readers and spreadsheets treat in ways of their own are common among the cells.
SPECIAL = st.sampled_from("\r\n\t\"',;|=+-@ \\\u00a0\u2028\ufeff＝é")
# No zero bytes: with them a file is no text table, and our reader says so.
OTHER = st.characters(exclude_characters="\0", exclude_categories=("Cs",))
CELLS = st.text(st.one_of(SPECIAL, OTHER), max_size=8)


def safe(cells: list[str]) -> list[str]:
    return formula_safe(pa.array(cells, pa.string())).to_pylist()


@given(
    rows=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=6),
    names=st.lists(
        CELLS.filter(str.strip), min_size=2, max_size=2, unique_by=lambda n: safe([n])[0]
    ),
    delimiter=st.sampled_from(",;\t|"),
)
@example(
    rows=[("x\r=cmd|'/C calc'!A1", "1"), ("a", "\r"), ("\r\n", "b")],
    names=["p", "q"],
    delimiter=",",
)
@example(rows=[("1", "2")], names=["\ufeffp", "q"], delimiter=",")
def test_cells_and_rows_survive_in_every_reader(rows, names, delimiter, tmp_path_factory):
    table = pa.table({name: [row[k] for row in rows] for k, name in enumerate(names)})
    file = io.StringIO()
    write_csv(table, file, delimiter)
    expected = [safe(names), *(list(row) for row in zip(*(safe(list(c)) for c in zip(*rows))))]

    assert (
        list(csv.reader(io.StringIO(file.getvalue(), newline=""), delimiter=delimiter)) == expected
    )

    frame = pd.read_csv(
        io.StringIO(file.getvalue(), newline=""),
        sep=delimiter,
        dtype=str,
        keep_default_na=False,
        header=None,
    )
    assert frame.to_numpy().tolist() == expected

    path = tmp_path_factory.mktemp("t") / ("t.tsv" if delimiter == "\t" else "t.csv")
    marked = table.replace_schema_metadata({b"fewlabel:delimiter": delimiter})
    write_table(marked, path, path.suffix[1:])
    try:
        again = read_table(path)
    except UserError:
        # A header in which another separator is as frequent is not clear to anybody.
        assert any(d in name for name in names for d in ",;\t|")
        return
    if again.num_columns == 2:
        assert [again.column_names, *map(list, zip(*again.to_pydict().values()))] == expected


@pytest.mark.parametrize("blank", ["\u00a0", "\ufeff", "\u200b", "\u2003", "\x0b", " \u202f"])
@pytest.mark.parametrize("sign", "=@+-＝＠＋－")
def test_nothing_invisible_hides_a_formula(blank: str, sign: str):
    for cell in (f"{blank}{sign}cmd|x", f"{sign}cmd|x"):
        assert formula_safe(pa.array([cell])).to_pylist() == ["'" + cell]


@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
def test_lines_that_end_with_a_carriage_return(name: str, tmp_path: Path):
    separator = "\t" if name.endswith("tsv") else ";"
    lines = [("a", "b"), ("1", '"x\ry"'), ("2", "z")]
    text = "".join(separator.join(line) + "\r" for line in lines)
    (tmp_path / name).write_bytes(text.encode())
    table = read_table(tmp_path / name)
    assert table.to_pydict() == {"a": ["1", "2"], "b": ["x\ry", "z"]}


def test_a_long_file_without_any_line_feed(tmp_path: Path):
    """Its first part is looked at; that may end within a character."""
    text = "a,b\r" + "é,2\r" * 300_000
    (tmp_path / "t.csv").write_bytes(text.encode())
    assert read_table(tmp_path / "t.csv").num_rows == 300_000


def test_the_names_of_many_columns_take_no_time():
    names = [f"column {k}" for k in range(50_000)]
    start = time.perf_counter()
    check_names(names, Path("t.csv"))
    assert time.perf_counter() - start < 2  # 40 s when each name was counted
    with pytest.raises(UserError, match="same name: 'column 7'"):
        check_names([*names, "column 7"], Path("t.csv"))


FAR = {
    "date": pa.array([0, 10**7, None], pa.int32()).cast(pa.date32()),
    "timestamp": pa.array([0, 10**16, None], pa.timestamp("ms")),
    "zoned": pa.array([0, 10**16, None], pa.timestamp("ms", "UTC")),
}


@pytest.mark.parametrize("kind", FAR)
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_dates_that_python_does_not_know_are_written(kind: str, ending: str, tmp_path: Path):
    """Databases write "no end" as the year 29,349, or as any other."""
    path = tmp_path / f"t.{ending}"
    write_table(pa.table({"a": ["x", "y", "z"], "when": FAR[kind]}), path, ending)
    cells = python_cells(read_table(path).column("when"))
    assert str(cells[0]).startswith("1970-01-01")
    assert str(cells[1]).startswith("29349-01-26" if kind == "date" else "318857-05-20")
    assert cells[2] in (None, "")


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary(2)])
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_bytes_are_written_as_text(kind, ending: str, tmp_path: Path):
    column = pa.array([b"ab", b"=1", b"\xff\xfe", None], kind)
    path = tmp_path / f"t.{ending}"
    write_table(pa.table({"a": ["x"] * 4, "b": column}), path, ending)
    formula = "'=1" if ending == "csv" else "=1"
    assert read_table(path).column("b").to_pylist()[:3] == ["ab", formula, "\ufffd\ufffd"]


def test_a_target_of_bytes():
    assert target_labels(pa.chunked_array([[b"ab", None]]), None).tolist() == ["ab", None]
    with pytest.raises(UserError, match="type binary, which cannot be read as text"):
        target_labels(pa.chunked_array([[b"\xff\xfe", None]]), None)


def test_zero_bytes_do_not_make_the_output_unreadable(tmp_path: Path):
    table = pa.table({"a\0": ["x\0y", None], "b": pa.array([b"\0", b"="])})
    write_table(table, tmp_path / "t.csv", "csv")
    assert read_table(tmp_path / "t.csv").to_pydict() == {
        "a\ufffd": ["x\ufffdy", ""],
        "b": ["\ufffd", "'="],
    }


@pytest.mark.parametrize("bad", [b"caf\xe9", b"\\ud800"])
@pytest.mark.parametrize("place", [b'{"a": "%s", "b": "x"}\n', b'{"a": "x", "%s": "x"}\n'])
def test_json_lines_that_are_no_utf8(bad: bytes, place: bytes, tmp_path: Path):
    (tmp_path / "t.jsonl").write_bytes(place % bad)
    with pytest.raises(UserError, match=r"UTF-8|JSON lines"):
        read_table(tmp_path / "t.jsonl")
