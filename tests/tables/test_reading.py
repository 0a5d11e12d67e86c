"""Tables: what is read, what is written, what a spreadsheet would run."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from pathlib import Path

import pytest

from fewlabel._core.errors import UserError, shorten
from fewlabel.tables.csv_writing import formula_safe, write_csv
from fewlabel.tables.reading import read_table, table_format, write_table
from support.cli_tools import environment

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


def test_moments_in_json_lines_keep_their_zone(tmp_path: Path):
    moments = pa.array([0, 3600]).cast(pa.timestamp("s", "UTC"))
    path = tmp_path / "t.jsonl"
    write_table(pa.table({"t": moments, "n": [1, 2]}), path, "jsonl")
    assert path.read_text().splitlines()[0] == '{"t": "1970-01-01T00:00:00+00:00", "n": 1}'


def test_messages_are_short_and_printable():
    assert shorten("a\x1b[31mb\n") == "a·[31mb·"
    assert len(shorten("x" * 1000)) == 60


TABLE = pa.table({"n": [1, None, 3], "t": ["a", "=1+1", None], "b": [True, None, False]})


@pytest.mark.parametrize("ending", ["json", "feather", "arrow", "xlsx", "json.gz", "parquet"])
def test_typed_formats(ending: str, tmp_path: Path):
    if ending == "xlsx":
        pytest.importorskip("openpyxl")
    path = tmp_path / f"t.{ending}"
    write_table(TABLE, path, *table_format(path))
    back = read_table(path)
    expected = TABLE.to_pylist()
    if ending == "xlsx":
        expected[1]["t"] = "'=1+1"  # a spreadsheet shows it as text
    assert back.to_pylist() == expected
    assert pa.types.is_integer(back.schema.field("n").type)


def test_json_with_keys_that_are_not_in_every_row(tmp_path: Path):
    path = tmp_path / "t.json"
    path.write_text('[{"a": 1, "b": "x"}, {"a": 2.5, "c": true}, {"b": 3}]')
    table = read_table(path)
    assert table.column_names == ["a", "b", "c"]
    assert table.column("b").to_pylist() == ["x", None, "3"]  # of two types: their texts
    path.write_text('{"a": 1, "b": 2}\n{"a": 3, "b": 4}\n')  # lines under this ending, too
    assert read_table(path).num_rows == 2


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.json", "[1, 2]", "something else than objects"),
        ("t.json", '[{"a": 1', "is not JSON"),
        ("t.feather", "no feather", "not a readable Feather file"),
        ("t.xlsx", "no workbook", "not a readable Excel file"),
        ("t.xls", "x", "is an old Excel file"),
    ],
)
def test_files_that_are_not_what_they_are_named(name: str, text: str, message: str, tmp_path: Path):
    if name == "t.xlsx":
        pytest.importorskip("openpyxl")
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=message):
        read_table(tmp_path / name)


@pytest.mark.parametrize("damage", [lambda data: data[:-12], lambda data: data[:12] + b"x" * 40])
def test_damaged_gzip_on_standard_input(damage, monkeypatch: pytest.MonkeyPatch):
    data = damage(gzip.compress(b"a,b\n" + b"1,2\n" * 100))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    with pytest.raises(UserError, match="Standard input cannot be decompressed"):
        read_table(Path("-"))


THREADS_OF_A_READER = """
import os, sys
from pathlib import Path
import pyarrow.feather, pyarrow.parquet
from fewlabel.tables.reading import read_table

threads = lambda: len(os.listdir("/proc/self/task"))
before = threads()
table = read_table(Path(sys.argv[1]))
print(threads() - before)
sys.exit(1)
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts threads as Linux does")
@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_no_thread_of_the_reader_outlives_it(ending: str, tmp_path: Path):
    """One that does may abort the process at its end, whatever its exit status was to be."""
    path = tmp_path / f"t.{ending}"
    write_table(pa.table({f"c{i}": list(range(1_000)) for i in range(20)}), path, ending)
    answer = subprocess.run(
        [sys.executable, "-c", THREADS_OF_A_READER, str(path)],
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 1, answer.stderr
    assert answer.stdout.strip() == "0"
