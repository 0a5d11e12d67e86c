"""Labels as they are read from a column of a table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fewlabel._core.errors import UserError
from fewlabel.tables.target_column import (
    check_labels,
    check_not_regression,
    fold_labels,
    folded,
    label_variants,
    target_labels,
    type_of,
    typed_labels,
)

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
        (["open", "a", "open", "b"], "for example --unlabeled 'open'"),
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


MARKS = ["#N/A", "<NA>", "-", ".", "NaT", "??", "missing", "tbd", "TODO", "Unknown", "None"]


@pytest.mark.parametrize("mark", MARKS)
def test_what_looks_like_a_mark_is_asked_about(mark: str):
    with pytest.raises(UserError, match="is that a class") as caught:
        check_labels(np.array(["a", "b", mark, None], dtype=object), "y")
    assert f"--unlabeled '{mark}'" in str(caught.value)
    with pytest.raises(UserError, match="marks unlabelled rows"):
        check_labels(np.array(["a", "b", mark], dtype=object), "y")
    check_labels(np.array(["a", "b", mark, None], dtype=object), "y", "")


@pytest.mark.parametrize(
    ("labels", "unlabeled"),
    [
        (["a", "NA", None], ""),
        (["a", "b", "NA", None], "?"),
        (["1", "-1", None], None),  # without -1 there would be one class
        (["+", "-", None], None),
        ([".", ",", "word", None], None),
        (["a", "banana", None], None),
    ],
)
def test_labels_that_are_classes_by_what_was_said(labels: list[str | None], unlabeled: str | None):
    check_labels(np.array(labels, dtype=object), "y", unlabeled)


def test_whole_numbers_in_a_typed_column_can_keep_their_point():
    """Votes may have the classes 1.0 and 2.0, whether the truth is text or numbers."""
    column = pa.chunked_array([pa.array([1.0, None, 2.0])])
    assert target_labels(column, "", whole=False).tolist() == ["1.0", None, "2.0"]
    assert target_labels(column, "", whole=True).tolist() == ["1", None, "2"]


@pytest.mark.parametrize(
    ("values", "refused"),
    [
        (np.linspace(0.5, 99.5, 60), True),  # prices
        (np.arange(18, 60), True),  # ages
        (np.arange(0, 400, 7), True),
        (np.arange(26), False),  # codes
        (np.arange(1, 120), False),
        (np.arange(0, 60, 3) // 2, False),
        ([1, 2, 3, 5, 8], False),
        ([0.5, 1.0, 1.5], False),
    ],
)
def test_measurements_are_no_classes(values, refused):
    labels = np.array([f"{value:g}" for value in values] * 3 + [None], dtype=object)
    if refused:
        with pytest.raises(UserError, match=r"looks like regression.*bins.*--classes"):
            check_not_regression(labels, "y")
    else:
        check_not_regression(labels, "y")
    check_not_regression(np.array([*labels, "a"], dtype=object), "y")  # not all are numbers
    check_not_regression(np.array([None], dtype=object), "y")


def test_one_class_written_in_several_ways():
    labels = np.array(["sky", "SKY", "sky", "Big  Sky", "big sky", "5", "5.0", None], dtype=object)
    assert label_variants(labels) == {
        "sky": ["sky", "SKY"],
        "5": ["5", "5.0"],
        "Big  Sky": ["Big  Sky", "big sky"],
    }
    with pytest.raises(UserError, match=r"'sky' = 'SKY'; .*Add --fold-labels"):
        fold_labels(labels, "y", None)
    one, names = fold_labels(labels, "y", True)
    assert one.tolist() == ["sky", "sky", "sky", "Big  Sky", "Big  Sky", "5", "5", None]
    assert fold_labels(labels, "y", False)[0] is labels
    assert folded(np.array(["Sky", "05.00", "sea", None], dtype=object), names).tolist() == [
        *("sky", "5", "sea", None),
    ]
    plain = np.array(["a", "b", None], dtype=object)
    assert fold_labels(plain, "y", None) == (plain, {})


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, None, 20]),
        pa.array([1.0, None, 20.0]),
        pa.array([True, None, False]),
        pa.array(["a", None, "b"]).dictionary_encode(),
        pa.array([1, None, 20]).dictionary_encode(),
        pa.array(["a", None, "b"], pa.large_string()),
        pa.array([0, None, 1], pa.int8()),
    ],
)
def test_labels_get_the_type_of_the_target_back(column):
    column = pa.chunked_array([column])
    labels = target_labels(column, "")
    assert typed_labels(labels, type_of(column)).to_pylist() == column.to_pylist()
    back = pa.chunked_array([typed_labels(labels, type_of(column))])
    assert type_of(back) == type_of(column)


def test_labels_that_do_not_fit_the_type_stay_text():
    assert typed_labels(np.array(["a", "1"], dtype=object), "int64").type == pa.string()
    assert typed_labels(np.array(["a"], dtype=object), "no such type").type == pa.string()


def test_decimal_commas_are_numbers_here_too():
    prices = np.array([f"{i},5{i}" for i in range(30)], dtype=object)
    with pytest.raises(UserError, match="looks like regression"):
        check_not_regression(prices, "price")
    assert label_variants(["5", "5,0", "5,0"]) == {"5,0": ["5,0", "5"]}
