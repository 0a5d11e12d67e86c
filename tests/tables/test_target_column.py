"""Labels as they are read from a column of a table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fewlabel._core.errors import UserError
from fewlabel.tables.target_column import check_labels, target_labels

pa = pytest.importorskip("pyarrow")

NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        (["a", " a ", "", " ", None], ["a", "a", None, None, None]),
        ([1, None, 20231101], ["1", None, "20231101"]),
        ([1.0, None, 20231101.0], ["1", None, "20231101"]),  # whole numbers, once with gaps
        ([1.0, NAN, 20231101.0, INFINITE], ["1", None, "20231101", None]),
        (["1.0", "", "20.0", "0.0"], ["1", None, "20", "0"]),  # the same in a file of text
        (["1.0", "2.5"], ["1.0", "2.5"]),
        (["1.0", "a"], ["1.0", "a"]),
        ([1.5, None, 2.0], ["1.5", None, "2"]),
        ([1e20, None, 2e20], ["1e+20", None, "2e+20"]),  # too large for a whole number
        ([None, NAN], [None, None]),
        ([True, None, False], ["true", None, "false"]),
    ],
)
def test_labels_of_a_column(cells: list[Any], labels: list[str | None]):
    assert target_labels(pa.chunked_array([pa.array(cells)]), "").tolist() == labels


def test_a_marker_beside_whole_numbers_in_text():
    column = pa.chunked_array([["0.0", "1.0", "-1.0", ""]])
    for marker in ("-1", "-1.0"):
        assert target_labels(column, marker).tolist() == ["0", "1", None, None]
    assert target_labels(column, "-1", whole=False).tolist() == ["0.0", "1.0", "-1.0", None]


def test_labels_of_a_dictionary_and_a_marker():
    column = pa.chunked_array([pa.array(["a", "?", None, "b"]).dictionary_encode()])
    assert target_labels(column, "? ").tolist() == ["a", None, None, "b"]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([None, None], "Every cell of the target 'y' is empty"),
        (["a", "b"], "Leave the target's cell empty"),
        (["a", "-1"], "add --unlabeled '-1'"),
        (["a", "b", "NA", None], "add --unlabeled 'NA'; if it is a class, add --unlabeled ''"),
        (["a", "?", None], "has empty cells and cells with '\\?'"),
        (["0", "1", "-1", None], "add --unlabeled '-1'"),
        (["a", "a", None], "the same label, 'a'"),
        ([str(i) for i in range(21)] + [None], "a label of its own"),
        ([str(i // 2) for i in range(2002)] + [None], "1,001 different labels"),
    ],
)
def test_labels_that_nothing_can_be_learned_from(labels: list[str | None], message: str):
    with pytest.raises(UserError, match=message):
        check_labels(np.array(labels, dtype=object), "y")


@pytest.mark.parametrize(
    ("labels", "unlabeled"),
    [
        (["a", "NA", None], ""),
        (["a", "b", "NA", None], "?"),
        (["1", "-1", None], None),  # without -1 there would be one class
        (["a", "banana", None], None),
    ],
)
def test_labels_that_are_classes_by_what_was_said(labels: list[str | None], unlabeled: str | None):
    check_labels(np.array(labels, dtype=object), "y", unlabeled)
