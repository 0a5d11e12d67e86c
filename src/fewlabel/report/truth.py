"""True labels beside the bounds, where they are known."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewlabel._core.arrays import Floats, Ints
from fewlabel._core.targets import as_column
from fewlabel.assess.transduction_bounds import true_codes
from fewlabel.bounds.transductive import transductive_bound
from fewlabel.bounds.votes import bayes_confusion
from fewlabel.report.state import FinalState

GUARANTEE = (
    "A guarantee for these rows: Theorem 1 with the known true labels in place of the label "
    "probabilities."
)


@dataclass(frozen=True)
class Truth:
    """True labels of unlabelled rows.

    Attributes
    ----------
    position : ndarray of int
        Which of the state's rows have a known label.
    code : ndarray of int
        Their class codes; -1 for a class that no labelled row has.
    wrong : ndarray of bool
        Whether the final label is another.
    round : ndarray of int
        In which round they were pseudo-labelled; -1 for never.
    n_classes : int
    unknown : dict
        Classes that no labelled row has, as texts, and how many of the rows are of them.
    """

    position: Ints
    code: Ints
    wrong: NDArray[np.bool_]
    round: Ints
    n_classes: int
    unknown: dict[str, int]

    @classmethod
    def of(cls, clf: Any, state: FinalState, truth: ArrayLike) -> Self:
        """Match true labels, as far as they are known, with the unlabelled rows."""
        position, code = true_codes(clf, truth, state.rows)
        outside = as_column(truth)[state.rows[position[code < 0]]]
        return cls(
            position=position,
            code=code,
            wrong=code != state.label[position],
            round=clf.labeled_iter_[state.rows[position]],
            n_classes=len(clf.classes_),
            unknown=dict(Counter(map(str, outside)).most_common()),
        )

    def compare(self, votes: Floats, thresholds: Floats | None) -> dict[str, Any]:
        """True error among rows that reach the thresholds (None: all), and the theorem's bound."""
        votes = votes[self.position]
        best = votes.argmax(axis=1)
        reached = np.ones(len(best), dtype=bool)
        if thresholds is not None:
            reached = votes.max(axis=1, initial=0.0) >= thresholds[best]
        if not reached.any():
            return {"true_error": None, "n_known": 0, "guarantee": None}
        inside = self.code >= 0
        # Rows of a class outside `classes_` are wrong whatever is predicted: they add their share.
        outside = float((reached & ~inside).sum())
        value = outside / reached.sum()
        if inside.any():
            bound = transductive_bound(
                votes[inside],
                np.eye(self.n_classes)[self.code[inside]],
                thresholds=thresholds,
                tight=True,
            )
            value += bound.risk * inside.sum() / reached.sum()
        return {
            "true_error": float((best != self.code)[reached].mean()),
            "n_known": int(reached.sum()),
            "guarantee": {"value": float(value), "kind": "guarantee", "assumption": GUARANTEE},
        }

    def of_class(self, state: FinalState, j: int) -> dict[str, Any]:
        """True error among the trusted rows that are predicted to be of class j."""
        mine = ((state.first_label == j) & state.trusted)[self.position]
        return {"true_error": float(self.wrong[mine].mean()) if mine.any() else None}

    def error_of_round(self, iteration: int) -> float | None:
        """True error of the final labels of rows that were pseudo-labelled in this round."""
        mine = self.round == iteration
        return float(self.wrong[mine].mean()) if mine.any() else None

    def confusion(self, votes: Floats) -> Floats:
        """Share of the rows of each true class that are predicted to be each other class."""
        inside = self.code >= 0
        if not inside.any():
            return np.zeros((self.n_classes, self.n_classes))
        truth = np.eye(self.n_classes)[self.code[inside]]
        return bayes_confusion(votes[self.position][inside], truth)
