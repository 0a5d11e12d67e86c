"""What the report tells of the calibration of the first classifier's votes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fewlabel._core.arrays import Floats
from fewlabel._core.scikit import indexable_rows, take_rows
from fewlabel._core.targets import UNLABELED, encode_target
from fewlabel.assess.calibration import FEWEST_ROWS, bounding_power, for_bounds
from fewlabel.assess.transduction_bounds import judged_votes


@dataclass(frozen=True)
class Calibration:
    """What held-out votes for the labelled rows say.

    Attributes
    ----------
    n : int
        Labelled rows that can be judged.
    confidence : float
        Mean winning vote.
    accuracy : float
        How often it is right.
    power : float
        The least calibration that the rows demand; 1 is none.
    """

    n: int
    confidence: float
    accuracy: float
    power: float

    def apply(self, votes: Floats) -> Floats:
        """Votes as calibrated probabilities."""
        return for_bounds(votes, self.power)


def calibration_of(clf: Any, X: Any, y: ArrayLike) -> Calibration | None:
    """Calibration of a fitted classifier's initial votes; None with too few labelled rows."""
    codes, _ = encode_target(y, clf.missing_label)
    labeled = np.flatnonzero(codes != UNLABELED)
    if len(codes) != len(clf.labeled_iter_) or (clf.labeled_iter_[labeled] != 0).any():
        raise ValueError("X and y must be those that the classifier was fitted on.")
    if len(labeled) < FEWEST_ROWS:
        return None
    y_judged, held_out = judged_votes(clf, take_rows(indexable_rows(X), labeled), codes[labeled])
    if len(y_judged) < FEWEST_ROWS:
        return None
    return Calibration(
        n=len(y_judged),
        confidence=float(held_out.max(axis=1).mean()),
        accuracy=float((held_out.argmax(axis=1) == y_judged).mean()),
        power=bounding_power(held_out, y_judged),
    )
