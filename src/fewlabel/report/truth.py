"""True labels beside the estimates, where they are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from fewlabel._core.arrays import Floats
from fewlabel.assess.label_sums import TruthSums
from fewlabel.report.fit_view import FitView


@dataclass(frozen=True)
class Truth:
    """True errors of the labels of unlabelled rows."""

    sums: TruthSums
    level: int

    @classmethod
    def of(cls, view: FitView) -> Self | None:
        """What the sums of a fit say; None if no true label is known."""
        sums = view.sums.truth
        return None if sums is None or sums.n_known == 0 else cls(sums, view.rule.own)

    def error(self, label: int | slice = slice(None), *, accepted: bool = False) -> float | None:
        """Share of wrong labels; None if none of the rows is known.

        Parameters
        ----------
        label : int, optional
            Of rows with this label; all by default.
        accepted : bool, default=False
            Of the accepted ones.
        """
        levels = slice(self.level + 1) if accepted else slice(None)
        known, wrong = self.sums.known[label], self.sums.wrong[label]
        return _share(wrong[..., levels].sum(), known[..., levels].sum())

    def summary(self) -> dict[str, Any]:
        """True errors of all labels, of the initial ones and of the accepted ones."""
        return {
            "n_known": self.sums.n_known,
            "error": self.error(),
            "initial_error": self.sums.initial_wrong / self.sums.n_known,
            "accepted_error": self.error(accepted=True),
            "n_accepted_known": int(self.sums.known[:, : self.level + 1].sum()),
            "unknown_classes": dict(self.sums.unknown.most_common()),
        }

    def error_of_round(self, iteration: int) -> float | None:
        """True error of the pseudo-labels that a round gave, not of the final labels."""
        at = iteration - 1
        return _share(self.sums.round_wrong[at], self.sums.round_known[at])

    def confusion(self) -> Floats:
        """Share of the rows of each true class that are predicted to be each other class."""
        counts = self.sums.confusion.astype(np.float64)
        total = counts.sum(axis=1, keepdims=True)
        shares = np.divide(counts, total, out=np.zeros_like(counts), where=total > 0)
        np.fill_diagonal(shares, 0.0)
        return shares


def _share(part: Any, whole: Any) -> float | None:
    return float(part / whole) if whole else None
