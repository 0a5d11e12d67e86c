"""What a fitted classifier says of its unlabelled rows, in the end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewlabel.bounds.statistics import Floats, Ints
from fewlabel.bounds.thresholds import ThresholdCurve, threshold_curves
from fewlabel.report.vote_calibration import Calibration, calibration_of


@dataclass(frozen=True)
class FinalState:
    """Labels of the unlabelled rows, and which of them to trust.

    A label is *trusted* if the first classifier, which learned from given labels only, votes for it
    with at least the threshold that minimises the bound for its class. The final classifier is the
    better one, but its votes are no measure of trust: it was trained on its own guesses and
    confirms them. A trusted row keeps the label that it is trusted with; all others get the label
    of the final classifier.

    Attributes
    ----------
    rows : ndarray of int of shape (n_unlabeled,)
        The unlabelled rows of ``fit``'s X.
    first_votes : ndarray of shape (n_unlabeled, n_classes)
        Votes of the first classifier.
    label_proba : ndarray of shape (n_unlabeled, n_classes)
        What stands for P(Y|x) in the bound.
    votes : ndarray of shape (n_unlabeled, n_classes)
        Votes of the final classifier.
    curves : list of ThresholdCurve
        The bound of each class over all thresholds.
    chosen : list of int or None
        Position of the best threshold on each curve; None for a class nobody is predicted to be.
    thresholds : ndarray of shape (n_classes,)
    calibration : Calibration or None
        How ``label_proba`` was made from the first votes; None if they are taken as they are.
    """

    rows: Ints
    first_votes: Floats
    label_proba: Floats
    votes: Floats
    curves: list[ThresholdCurve]
    chosen: list[int | None]
    thresholds: Floats
    calibration: Calibration | None = None

    @classmethod
    def of(cls, clf: Any, X: Any = None, y: ArrayLike | None = None) -> Self:
        """The state of a fitted SelfLearningClassifier; X and y are those of its ``fit``."""
        rows = np.flatnonzero(clf.labeled_iter_ != 0)
        first, proba = clf.initial_votes_, clf.label_proba_
        choice = clf.label_proba if isinstance(clf.label_proba, str) else "given"
        if choice == "current":
            proba = first
        calibration = None
        if choice == "supervised" and X is not None and y is not None and len(rows):
            calibration = calibration_of(clf, X, y)
            proba = calibration.apply(first) if calibration else first
        curves = threshold_curves(first, proba) if len(rows) else []
        chosen = [curve.best() for curve in curves] or [None] * len(clf.classes_)
        thresholds = [
            1.0 if best is None else float(curves[j].thresholds[best])
            for j, best in enumerate(chosen)
        ]
        return cls(
            rows=rows,
            first_votes=first,
            label_proba=proba,
            votes=clf.transduction_proba_[rows],
            curves=curves,
            chosen=chosen,
            thresholds=np.array(thresholds),
            calibration=calibration,
        )

    @cached_property
    def first_label(self) -> Ints:
        """Class codes of the first classifier's majority vote."""
        return self.first_votes.argmax(axis=1)

    @cached_property
    def first_vote(self) -> Floats:
        """The winning vote of the first classifier."""
        return np.asarray(self.first_votes.max(axis=1, initial=0.0))

    @cached_property
    def trusted(self) -> NDArray[np.bool_]:
        """Rows whose first vote reaches the threshold of its class."""
        return self.first_vote >= self.thresholds[self.first_label]

    @cached_property
    def label_votes(self) -> Floats:
        """The votes that give each row its label: the first classifier's if they are trusted."""
        return deciding_votes(self.first_votes, self.votes, self.thresholds)[0]

    @cached_property
    def label(self) -> Ints:
        """Class codes: what a row is trusted to be, or else the final classifier's vote."""
        return self.label_votes.argmax(axis=1)

    @cached_property
    def trusted_error_bound(self) -> float:
        """Bound of the error rate among the trusted rows; NaN if there are none."""
        parts = [
            (curve.bound[best], curve.n_trusted[best])
            for curve, best in zip(self.curves, self.chosen)
            if best is not None
        ]
        # Each class's bound is on the error among its trusted rows: their mean is on all.
        trusted = sum(n for _, n in parts)
        return float(sum(bound * n for bound, n in parts) / trusted) if trusted else float("nan")


def deciding_votes(
    first_votes: Floats, votes: Floats, thresholds: Floats
) -> tuple[Floats, NDArray[np.bool_]]:
    """The votes that give each row its label, and whether it is trusted.

    A row whose first vote reaches the threshold of its class keeps that label.
    """
    first = first_votes.argmax(axis=1)
    trusted = first_votes.max(axis=1, initial=0.0) >= thresholds[first]
    return np.where(trusted[:, None], first_votes, votes), trusted


def combine(
    first_votes: Floats, votes: Floats, thresholds: Floats
) -> tuple[Ints, NDArray[np.bool_]]:
    """Label of each row, and whether it is trusted, by the rule of :func:`deciding_votes`."""
    deciding, trusted = deciding_votes(first_votes, votes, thresholds)
    return deciding.argmax(axis=1), trusted


def next_to_label(votes: Floats, most: int) -> tuple[Ints, Floats, Floats]:
    r"""Rows whose label would teach most: positions, margins and gains, best first.

    The gain of a row is :math:`(1 - v_1)(1 - (v_1 - v_2))`, with its two highest votes: the
    first factor is the estimated chance that its present label is wrong, the second says how near
    it is to being decided differently.
    """
    if len(votes) == 0:
        return np.empty(0, dtype=np.intp), np.empty(0), np.empty(0)
    top = np.partition(votes, -2, axis=1)
    margins = top[:, -1] - top[:, -2]
    gains = (1.0 - top[:, -1]) * (1.0 - margins)
    order = np.argsort(-gains, kind="stable")[:most]
    return order, margins[order], gains[order]
