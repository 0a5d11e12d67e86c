from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fewlabel._core.targets import encode_target, labeled_part, unlabeled_mask

NA = pd.NA
TARGETS = {
    "int": np.array([0, 2, -1, 2, -1]),
    "int list": [0, 2, -1, 2, -1],
    "float -1": np.array([0.0, 2.0, -1.0, 2.0, -1.0]),
    "float nan": np.array([0.0, 2.0, np.nan, 2.0, np.nan]),
    "object None": np.array([0, 2, None, 2, None], dtype=object),
    "list None": [0, 2, None, 2, None],
    "pandas Int64": pd.Series([0, 2, NA, 2, NA], dtype="Int64"),
    "pandas int": pd.Series([0, 2, -1, 2, -1], index=[9, 8, 7, 6, 5]),
    "pandas categorical": pd.Series(pd.Categorical([0, 2, None, 2, None])),
    "pandas Int64 array": pd.array([0, 2, NA, 2, NA], dtype="Int64"),
    "pandas text array": pd.array(["a", "c", NA, "c", NA], dtype="string"),
    "pandas categorical array": pd.Categorical(["a", "c", None, "c", None]),
    "pandas boolean array": pd.array([False, True, NA, True, NA], dtype="boolean"),
    "polars": pl.Series([0, 2, None, 2, None]),
    "strings None": np.array(["a", "c", None, "c", None], dtype=object),
    "strings nan": ["a", "c", float("nan"), "c", float("nan")],
    "strings -1": np.array(["a", "c", -1, "c", -1], dtype=object),
    "pandas string": pd.Series(["a", "c", NA, "c", NA], dtype="string"),
    "pandas object": pd.Series(["a", "c", None, "c", None]),
    "pandas str categorical": pd.Series(["a", "c", None, "c", None], dtype="category"),
    "polars strings": pl.Series(["a", "c", None, "c", None]),
    "polars categorical": pl.Series(["a", "c", None, "c", None], dtype=pl.Categorical),
    "arrow": pa.array([0, 2, None, 2, None]),
    "arrow strings": pa.chunked_array([["a", "c"], [None, "c", None]]),
    "bool": [False, True, None, True, None],
}


@pytest.mark.parametrize("name", TARGETS)
def test_every_kind_of_target(name):
    codes, classes = encode_target(TARGETS[name])
    assert codes.tolist() == [0, 1, -1, 1, -1]
    assert len(classes) == 2
    assert list(classes) == sorted(classes)
    np.testing.assert_array_equal(unlabeled_mask(TARGETS[name]), codes == -1)


@pytest.mark.parametrize(
    "make",
    [
        lambda values: pd.Series(values, dtype="Int64"),
        lambda values: pl.Series(values),
        list,
    ],
    ids=["pandas", "polars", "list"],
)
def test_large_whole_numbers_with_gaps_stay_apart(make):
    """As floats they would be the same number."""
    codes, classes = encode_target(make([2**53, 2**53 + 1, None]), None)
    assert codes.tolist() == [0, 1, -1]
    assert classes.tolist() == [2**53, 2**53 + 1]


def test_fully_labelled_text():
    codes, classes = encode_target(np.array(["b", "a"]))
    assert codes.tolist() == [1, 0]
    assert classes.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("y", "missing_label", "codes"),
    [
        ([-1, 1, None], None, [0, 1, -1]),
        ([-1.0, 1.0, np.nan], np.nan, [0, 1, -1]),
        (["-1", "x", None], None, [0, 1, -1]),
        (["-1", "x", "y"], "-1", [-1, 0, 1]),
        (["?", "x", "y"], "?", [-1, 0, 1]),
        ([99, 0, 1], 99, [-1, 0, 1]),
    ],
)
def test_explicit_markers(y, missing_label, codes):
    assert encode_target(y, missing_label)[0].tolist() == codes


@pytest.mark.parametrize(
    ("y", "missing_label", "message"),
    [
        ([-1, 1, 0, np.nan], "auto", "both -1 and missing"),
        ([-1, "a", "b", None], "auto", "both -1 and missing"),
        (["-1", "a", "b"], "auto", "the string '-1'"),
        (np.array(["-1", "a", "b"]), "auto", "the string '-1'"),
        (["", "a", "b"], "auto", "the string ''"),
        (np.array(["", "a", "b"]), "auto", "Pass missing_label='' if"),
        ([-1, -1, -1], "auto", "no labelled row"),
        ([None, None], "auto", "no labelled row"),
        ([1, 1, -1], "auto", "one class only"),
        ([1, 0, None], -1, "besides missing_label"),
        ([1, "a", None], "auto", "mixes strings"),
        ([0.5, 1.5, np.nan, 2.25], "auto", "Unknown label type"),
        ([np.inf, 0.0, 1.0], "auto", "infinity|Unknown label type"),
    ],
)
def test_refused_targets(y, missing_label, message):
    with pytest.raises(ValueError, match=message):
        encode_target(y, missing_label)


@pytest.mark.parametrize(
    ("y", "missing_label", "expected"),
    [
        (["ab", "b", "?"], "?", ["ab", "b"]),
        (np.array(["ab", "b", "?"]), "?", ["ab", "b"]),
        ([0.5, 1.0, None], None, [0.5, 1.0]),
        ([True, False, None], None, [True, False]),
        (pd.Series([3, 1, NA], dtype="Int64"), "auto", [3, 1]),
    ],
)
def test_labels_to_score_are_those_given(y, missing_label, expected):
    rows, X, truth = labeled_part(np.arange(3), y, missing_label)
    assert rows.tolist() == X.tolist() == [0, 1]
    assert truth.tolist() == expected
    assert truth.dtype.kind == "O" or truth.dtype.kind == np.asarray(expected).dtype.kind
