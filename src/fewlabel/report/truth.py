"""True labels beside the estimates, where they are known."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from fewlabel._core.arrays import Bools, Floats, Ints
from fewlabel._core.targets import as_column
from fewlabel.assess.transduction_bounds import true_codes
from fewlabel.bounds.votes import bayes_confusion
from fewlabel.report.fit_view import FitView


@dataclass(frozen=True)
class Truth:
    """True labels of unlabelled rows.

    Attributes
    ----------
    position : ndarray of int
        Which of the unlabelled rows have a known label.
    code : ndarray of int
        Their class codes; -1 for a class that no labelled row has.
    n_classes : int
    unknown : dict
        Classes that no labelled row has, as texts, and how many of the rows are of them.
    """

    position: Ints
    code: Ints
    n_classes: int
    unknown: dict[str, int]

    @classmethod
    def of(cls, view: FitView, truth: ArrayLike) -> Self | None:
        """Match true labels with the unlabelled rows; None if none of them is known."""
        position, code = true_codes(view.clf, truth, view.rows)
        if len(position) == 0:
            return None
        outside = as_column(truth)[view.rows[position[code < 0]]]
        unknown = dict(Counter(map(str, outside)).most_common())
        return cls(position, code, view.n_classes, unknown)

    def error(self, labels: Ints, among: Bools | None = None) -> float | None:
        """Share of wrong labels; None if none of the rows is known.

        Parameters
        ----------
        labels : ndarray of int of shape (n_unlabeled,)
        among : ndarray of bool of shape (n_unlabeled,), optional
            The rows that count; all by default.
        """
        wrong = self.code != labels[self.position]
        if among is not None:
            wrong = wrong[among[self.position]]
        return float(wrong.mean()) if len(wrong) else None

    def summary(self, view: FitView) -> dict[str, Any]:
        """True errors of all labels, of the initial ones and of the accepted ones."""
        return {
            "n_known": len(self.position),
            "error": self.error(view.label),
            "initial_error": self.error(view.initial_label),
            "accepted_error": self.error(view.label, view.accepted),
            "n_accepted_known": int(view.accepted[self.position].sum()),
            "unknown_classes": self.unknown,
        }

    def error_of_round(self, view: FitView, iteration: int) -> float | None:
        """True error of the pseudo-labels that a round gave, not of the final labels."""
        rounds = view.clf.labeled_iter_[view.rows]
        labels = np.full(len(view.rows), -1)
        labels[rounds > 0] = np.searchsorted(view.clf.classes_, view.clf.pseudo_labels_)
        return self.error(labels, rounds == iteration)

    def confusion(self, votes: Floats) -> Floats:
        """Share of the rows of each true class that are predicted to be each other class."""
        inside = self.code >= 0
        if not inside.any():
            return np.zeros((self.n_classes, self.n_classes))
        truth = np.eye(self.n_classes)[self.code[inside]]
        return bayes_confusion(votes[self.position][inside], truth)
