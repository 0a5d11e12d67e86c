"""Array types of signatures, and rows of a table that are named by index instead of copied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class RowView:
    """Some rows of a table, without a copy of them.

    Attributes
    ----------
    table : rows that can be taken by index
    rows : ndarray of int
        Which of them.
    """

    table: Any
    rows: Ints

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, positions: Ints) -> RowView:
        """Those of the rows that stand at these positions."""
        return RowView(self.table, self.rows[positions])
