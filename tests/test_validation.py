from __future__ import annotations

import numpy as np
import pytest

from fewlabel._validation import check_weights


def test_weights():
    assert check_weights(2.0, 3).tolist() == [2.0, 2.0, 2.0]
    for wrong in ([1.0, 2.0], [1.0, -1.0, 0.0], [np.nan, 1, 1], [np.inf, 1, 1]):
        with pytest.raises(ValueError, match="sample_weight must"):
            check_weights(wrong, 3)
