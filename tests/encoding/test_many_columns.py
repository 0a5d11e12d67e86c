"""Work grows in proportion to the columns of a table: counted in calls, not in seconds."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fewlabel.encoding import frames
from fewlabel.encoding.columns import Column
from fewlabel.encoding.encoder import TableEncoder
from fewlabel.encoding.plan import Asked, with_pairs
from fewlabel.tables.csv_writing import write_csv
from fewlabel.tables.reading import read_table
from support.cli_tools import csv_text

pytest.importorskip("pyarrow")

N = 200


class Name(str):
    """Counts how often it is compared: loops of C code do not count as calls."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__

    def __str__(self) -> str:
        return self  # else str() makes a copy that does not count


def n_compared(action: Callable[[list[Name]], object]) -> int:
    Name.compared = 0
    action([Name(f"c{i}") for i in range(N)])
    return Name.compared


def test_names_are_not_compared_with_all_others():
    checked: Any = frames._checked
    assert n_compared(lambda names: checked(SimpleNamespace(column_names=names))) < 3 * N
    assert n_compared(lambda names: Asked.of(names, drop=names[: N // 2], date=None)) < 3 * N
    plan = [Column(f"c{i}", "date", "days") for i in range(N)]
    assert n_compared(lambda names: with_pairs(plan, list(pairwise(names)))) < 3 * N
    assert n_compared(lambda names: Asked.of(names, drop=None, date=names)) < 3 * N


def n_calls(action: Callable[[], object]) -> int:
    """Calls of functions, in Python and C."""
    n = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal n
        n += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(before)
    return n


def wide_csv(path: Path, n_columns: int) -> Path:
    """Numbers and categories; dates take so many calls that others would not be noticed."""
    rng = np.random.default_rng(0)
    table: dict[str, list[Any]] = {}
    for i in range(0, n_columns, 2):
        table[f"c{i}"] = np.round(rng.normal(size=30), 4).tolist()
        table[f"c{i + 1}"] = rng.choice(["red", "green", "blue"], 30).tolist()
    path.write_text(csv_text(table))
    return path


def test_each_further_column_costs_as_much_as_the_one_before(tmp_path):
    y = np.where(np.arange(30) < 10, np.arange(30) % 2, -1)

    def read_encode_write(path: Path) -> None:
        table = read_table(path)
        encoder = TableEncoder()
        encoder.fit_transform(table, y)
        assert len([column.to_dict() for column in encoder.plan_]) == table.num_columns
        write_csv(table, io.StringIO())

    paths = [wide_csv(tmp_path / f"{n}.csv", n) for n in (20, 100, 200, 400)]
    read_encode_write(paths[0])  # what is done once: imports, caches
    few, more, most = (n_calls(lambda path=path: read_encode_write(path)) for path in paths[1:])
    assert (most - more) / 200 < 1.1 * (more - few) / 100
