from __future__ import annotations

import numpy as np
import pytest

from fewlabel._core.checks import check_thresholds, check_weights


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
