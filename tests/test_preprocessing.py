"""What the columns of a table are taken for."""

from __future__ import annotations

import numpy as np
import pytest

from fewlabel.preprocessing import Column, filled_with_labels, left_out_lines

pa = pytest.importorskip("pyarrow")


# --- columns that come with the labels -------------------------------------------------------

LABELED = np.arange(200) < 20


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        (["3"] * 20 + [""] * 180, True),
        (["3"] * 20 + ["NA"] * 180, True),
        (["3"] * 20 + ["4"] * 9 + [""] * 171, True),  # 5 % as often
        (["3"] * 20 + ["4"] * 10 + [""] * 170, False),
        (["3"] * 200, False),
        ([""] * 20 + ["3"] * 180, False),
        ([3.0] * 20 + [float("nan")] * 180, True),
        ([None] * 200, False),
        ([True] * 20 + [None] * 180, True),
    ],
)
def test_columns_filled_beside_labels(cells, found):
    table = pa.table({"x": cells, "target": ["a"] * 20 + [""] * 180})
    assert ("x" in filled_with_labels(table, LABELED, skip=["target"])) is found


def test_a_few_empty_cells_may_be_chance():
    table = pa.table({"x": ["3"] * 20 + [""] * 4})
    assert filled_with_labels(table, np.arange(24) < 20, skip=[]) == {}


def test_columns_left_out_are_told_of_unless_asked_for():
    plan = [Column("asked", "left out", "dropped"), Column("used", "number", "")]
    plan += [Column(f"c{i}", "left out", "every cell is empty") for i in range(7)]
    lines = left_out_lines(plan, asked=["asked"])
    assert lines[0] == "column 'c0' was left out: every cell is empty"
    assert lines[4:] == ["column 'c4' was left out: every cell is empty", "and 2 more columns"]
