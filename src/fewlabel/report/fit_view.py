"""What the report reads from a fitted classifier: its labels, and which of them are accepted."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from fewlabel._core.arrays import Bools, Floats, Ints


class FitView(NamedTuple):
    """The unlabelled rows of a fit; nothing in it is computed here.

    Attributes
    ----------
    clf : fitted SelfLearner
    rows : ndarray of int of shape (n_unlabeled,)
        Their positions in ``fit``'s X.
    votes : ndarray of shape (n_unlabeled, n_classes)
        Votes of the final classifier.
    label : ndarray of int of shape (n_unlabeled,)
        Class codes of ``transduction_``.
    initial_label : ndarray of int of shape (n_unlabeled,)
        What the initial classifier said.
    confidence : ndarray of shape (n_unlabeled,)
    accepted : ndarray of bool of shape (n_unlabeled,)
        Labels that a person may take as they are.
    max_error : float
        The error for which they are accepted.
    """

    clf: Any
    rows: Ints
    votes: Floats
    label: Ints
    initial_label: Ints
    confidence: Floats
    accepted: Bools
    max_error: float

    @classmethod
    def of(cls, clf: Any, max_error: float) -> Self:
        """Read a fitted classifier."""
        rows = np.flatnonzero(clf.labeled_iter_ != 0)
        votes = clf.transduction_proba_[rows]
        return cls(
            clf=clf,
            rows=rows,
            votes=votes,
            label=votes.argmax(axis=1),
            initial_label=clf.initial_votes_.argmax(axis=1),
            confidence=clf.confidence_[rows],
            accepted=clf.accept(max_error)[rows],
            max_error=float(max_error),
        )

    @property
    def n_classes(self) -> int:
        """How many classes the labelled rows have."""
        return len(self.clf.classes_)


def pseudo_label_doubts(clf: Any) -> list[float]:
    """For each round the mean doubt about its pseudo-labels: about so many of them are wrong.

    The doubt is 1 − the calibrated confidence in the pseudo-label that the round gave, which need
    not be the final label.
    """
    unlabeled = clf.labeled_iter_ != 0
    chosen = clf.labeled_iter_ > 0
    codes = np.searchsorted(clf.classes_, clf.pseudo_labels_)
    doubt = 1.0 - clf.assessment_.promise.confidence(clf.initial_votes_[chosen[unlabeled]], codes)
    rounds = clf.labeled_iter_[chosen]
    return [float(doubt[rounds == n + 1].mean()) for n in range(clf.n_iter_)]
