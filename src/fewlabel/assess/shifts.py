"""Initial votes as they stand for P(Y|x): calibrated, and for the class shares of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from fewlabel._core.arrays import Floats
from fewlabel.assess.calibration import for_bounds
from fewlabel.assess.prevalence import shifted


class Shifts(NamedTuple):
    """Ratios of class shares by which votes are changed before and after they are calibrated.

    ``before``: to the shares of the labelled rows, which calibration needs; ``after``: from these
    to the shares of the table. None: they do not differ.

    Examples
    --------
    >>> votes = np.array([[0.5, 0.5]])
    >>> Shifts(after=np.array([1.5, 0.5])).label_proba(votes, 1.0)
    array([[0.75, 0.25]])
    """

    before: Floats | None = None
    after: Floats | None = None

    def before_calibration(self, votes: Floats) -> Floats:
        """Votes for the class shares of the labelled rows."""
        return votes if self.before is None else shifted(votes, self.before)

    def label_proba(self, votes: Floats, power: float) -> Floats:
        """Initial votes as they stand for P(Y|x) in the bounds."""
        known = for_bounds(self.before_calibration(votes), power)
        return known if self.after is None else shifted(known, self.after)

    def to_lists(self) -> list[list[float] | None]:
        """Plain values, for JSON."""
        return [None if ratios is None else ratios.tolist() for ratios in self]

    @classmethod
    def from_lists(cls, plain: Sequence[Sequence[float] | None]) -> Self:
        """The shifts from :meth:`to_lists`; ValueError if they are none."""
        before, after = plain
        found = cls(*(None if x is None else np.array(x, dtype=float) for x in (before, after)))
        if not all(ratios is None or np.isfinite(ratios).all() for ratios in found):
            raise ValueError("shifts")
        return found


NO_SHIFTS = Shifts()
