"""What the report reads from a fitted classifier: its labels, and which of them are accepted."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

from numpy.typing import ArrayLike

from fewlabel._core.arrays import Ints
from fewlabel.assess.label_sums import LabelRule, LabelSums


class FitView(NamedTuple):
    """Sums over the unlabelled rows of a fit, wherever they are; nothing is computed here.

    Attributes
    ----------
    clf : fitted SelfLearner
    rule : LabelRule
        By which labels are accepted.
    sums : LabelSums
    given : ndarray of int of shape (n_labeled,)
        Class codes of the given labels.
    """

    clf: Any
    rule: LabelRule
    sums: LabelSums
    given: Ints

    @classmethod
    def of(cls, clf: Any, max_error: float, y_true: ArrayLike | None = None) -> Self:
        """Read a fitted classifier."""
        rule, sums = clf.label_sums(max_error, y_true=y_true)
        return cls(clf, rule, sums, clf._labeled_rows[1])

    @property
    def n_classes(self) -> int:
        """How many classes the labelled rows have."""
        return len(self.clf.classes_)

    @property
    def n_unlabeled(self) -> int:
        """Rows that got a label."""
        return self.sums.n_rows


def pseudo_label_doubts(clf: Any) -> list[float]:
    """For each round the mean doubt about its pseudo-labels: about so many of them are wrong.

    The doubt is 1 − the calibrated confidence in the pseudo-label that the round gave, which need
    not be the final label.
    """
    _, sums = clf.label_sums()
    return [d / record["n_selected"] for d, record in zip(sums.doubts.tolist(), clf.history_)]
