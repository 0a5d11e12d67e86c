from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fewlabel._core.checks import as_mask, check_thresholds, check_weights


def test_weights():
    assert check_weights(2.0, 3).tolist() == [2.0, 2.0, 2.0]
    for wrong in ([1.0, 2.0], [1.0, -1.0, 0.0], [np.nan, 1, 1], [np.inf, 1, 1]):
        with pytest.raises(ValueError, match="sample_weight must"):
            check_weights(wrong, 3)


def test_thresholds_may_be_any_vote_that_passes():
    rounded = np.nextafter(1.0, 2.0)  # what nine votes of 1/9 add up to
    assert check_thresholds([rounded, 0.0], 2).tolist() == [rounded, 0.0]
    assert check_thresholds(None, 2).tolist() == [0.0, 0.0]
    for wrong in (1.01, -1e-9, np.nan, [0.5, 0.5, 0.5]):
        with pytest.raises(ValueError, match="thresholds must"):
            check_thresholds(wrong, 2)


@pytest.mark.parametrize(
    "rows",
    [
        [1, 3],
        np.array([3, 1], dtype=np.uint8),
        [False, True, False, True],
        np.array([False, True, False, True], dtype=object),
        pd.Series([False, True, False, True], dtype="boolean"),
    ],
    ids=["positions", "unsigned", "mask", "object mask", "nullable mask"],
)
def test_rows_are_positions_or_a_mask(rows):
    np.testing.assert_array_equal(as_mask(rows, 4), [False, True, False, True])


def test_no_rows_are_no_rows():
    assert not as_mask([], 4).any()


@pytest.mark.parametrize(
    "rows",
    [
        [4],
        [-1],
        [0.5],
        [True, False],
        [[0, 1]],
        ["0"],
        pd.Series([True, None] * 2, dtype="boolean"),
    ],
    ids=str,
)
def test_what_is_neither_positions_nor_a_mask_is_refused(rows):
    with pytest.raises(ValueError, match="positions from 0 to 3, or a mask of 4 booleans"):
        as_mask(rows, 4)


def test_a_mask_of_zeros_and_ones_is_refused():
    with pytest.raises(ValueError, match="Use booleans"):
        as_mask([0, 1, 0, 1], 4)
    np.testing.assert_array_equal(as_mask([0, 1], 2), [True, True])
