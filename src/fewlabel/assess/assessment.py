r"""What a fit says of its labels: one estimate of their error, one confidence for each of them.

The estimator owns one :class:`FitAssessment`. The table of labels, the report, ``predict`` and
``bounds`` read it; none of them computes its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fewlabel._core.arrays import Bools, Floats, Ints
from fewlabel.assess.calibration import Confidence, bounding_power
from fewlabel.assess.error_estimate import ErrorEstimate, Labels, assess_labels
from fewlabel.assess.label_proba import label_proba_of
from fewlabel.assess.out_of_sample import WeightRule, mix_held_out
from fewlabel.assess.prevalence import ClassShares, labeled_shares
from fewlabel.assess.promise import Promise
from fewlabel.assess.shifts import Shifts
from fewlabel.bounds.transductive import TransductiveBound, transductive_bound


class HeldOut(NamedTuple):
    """Votes of the initial model for the labelled rows, by voters that did not see their labels.

    Attributes
    ----------
    votes : ndarray of shape (n_voters, n_labeled, n_classes)
        A row of zeros: this voter has no vote for it.
    y : ndarray of int of shape (n_labeled,)
        Codes of the given labels.
    weights : callable or None
        How Q is learned from such votes; None for a single voter.
    trained_share : float
        Share of the labelled rows that the voters learned from: 0.8 for 5 folds.
    class_shares : ClassShares
        Shares of the classes in the table and in the votes, where they are known to differ.
    """

    votes: Floats
    y: Ints
    weights: WeightRule | None = None
    trained_share: float = 1.0
    class_shares: ClassShares = ClassShares()

    def shifts(self, n_classes: int) -> Shifts:
        """From the class shares of the votes to those of the labelled rows, and to the table's."""
        (table, votes), labeled = self.class_shares, labeled_shares(self.y, n_classes)
        return Shifts(
            None if votes is None else labeled / votes, None if table is None else table / labeled
        )

    @property
    def judged(self) -> tuple[Ints, Floats]:
        """Codes and mixed votes of the rows that somebody could vote on."""
        mixed = self.votes[0]
        if self.weights is not None:
            mixed = mix_held_out(self.votes, self.weights(self.votes, self.y))
        voted = mixed.any(axis=1)
        return self.y[voted], mixed[voted]


class SelfLearned(NamedTuple):
    """What self-learning as a whole makes of labelled rows whose labels it was not shown.

    Attributes
    ----------
    errors : ndarray of shape (n_labeled,)
        1 where the label that it gives a row is wrong.
    trained_share : float
        Share of the labelled rows that it learned from: 0.9 for 10 folds.
    """

    errors: Floats
    trained_share: float


class Transduction(NamedTuple):
    """What a fit says of the unlabelled rows.

    Attributes
    ----------
    initial : ndarray of shape (n_unlabeled, n_classes)
        Votes of the model that learned from the given labels only.
    votes : ndarray of shape (n_unlabeled, n_classes)
        Votes of the final model; the winner is the label.
    label_proba : str
        What stands for P(Y|x) in the bounds: "supervised", "current", "uniform" or "given".
    given : ndarray of shape (n_unlabeled, n_classes) or None
        Label probabilities that the user gave.
    """

    initial: Floats
    votes: Floats
    label_proba: str
    given: Floats | None = None

    @property
    def labels(self) -> Ints:
        """Class codes."""
        return self.votes.argmax(axis=1)


@dataclass(frozen=True, eq=False)
class PaperBounds:
    """What the paper's bounds of a fit rest on.

    Attributes
    ----------
    held_out : HeldOut
        The labelled rows that calibrate.
    power : float
        To which initial votes are raised before they stand for P(Y|x) in the bounds (1 over the
        temperature).
    label_proba : ndarray of shape (n_unlabeled, n_classes)
        What stands for P(Y|x).
    bound : TransductiveBound or None
        TB: a bound of the expected error if ``label_proba`` were true; None without rows.
    """

    held_out: HeldOut
    power: float
    label_proba: Floats
    bound: TransductiveBound | None


def paper_bounds(held_out: HeldOut, rows: Transduction) -> PaperBounds:
    """TB of the labels of a fit, from calibrated label probabilities."""
    if len(rows.votes) == 0:
        return PaperBounds(held_out, 1.0, rows.votes, None)
    y, mixed = held_out.judged
    shifts = held_out.shifts(rows.votes.shape[1])
    power = 1.0
    if rows.label_proba == "supervised":
        power = bounding_power(shifts.before_calibration(mixed), y)
    known = shifts.label_proba(rows.initial, power) if rows.given is None else rows.given
    label_proba = label_proba_of(rows.label_proba, rows.votes, known)
    bound = transductive_bound(rows.votes, label_proba, tight=True)
    return PaperBounds(held_out, power, label_proba, bound)


@dataclass(frozen=True, eq=False)
class FitAssessment:
    """How wrong the labels of the unlabelled rows are.

    Attributes
    ----------
    error : ErrorEstimate
        Share of wrong labels, with limits.
    promise : Promise
        The chance that a label is right, and which to accept, for any row.
    confidence : ndarray of shape (n_unlabeled,)
        The chance that a label is right, for the rows of the fit.
    self_learned : SelfLearned or None
        What self-learning as a whole gets wrong without the label of a row, if known.
    """

    error: ErrorEstimate
    promise: Promise
    confidence: Floats
    self_learned: SelfLearned | None = None


def assess(
    paper: PaperBounds,
    rows: Transduction,
    *,
    self_learned: SelfLearned | None = None,
    labels: Labels = "random",
    sample: Bools | None = None,
    random_state: int = 0,
) -> FitAssessment:
    """Assess the labels of a fit.

    Parameters
    ----------
    paper : PaperBounds
        With the held-out votes.
    rows : Transduction
    self_learned : SelfLearned, optional
        Errors of self-learning as a whole, if not only the initial model was held out.
    labels : {"random", "per class"}, default="random"
        How rows were chosen for labelling.
    sample : ndarray of bool of shape (n_labeled,), optional
        The labelled rows that stand for the table; all by default.
    random_state : int, default=0
        Of the bootstrap.
    """
    held_out, power = paper.held_out, paper.power
    if len(rows.votes) == 0:
        unknown = ErrorEstimate(float("nan"), 0.0, 1.0, 0, "there is no unlabelled row")
        rule = Confidence(1.0)
        nothing = Promise.of(rule, rule, rows.votes, rows.labels, power)
        return FitAssessment(unknown, nothing, np.empty(0))
    found = assess_labels(
        held_out.votes,
        held_out.y,
        rows.initial,
        rows.labels,
        weights=held_out.weights,
        errors=None if self_learned is None else self_learned.errors,
        trained_share=(self_learned or held_out).trained_share,
        labels=labels,
        sample=sample,
        class_shares=held_out.class_shares,
        random_state=random_state,
    )
    shifts = held_out.shifts(rows.votes.shape[1])
    promise = Promise.of(found.confidence, found.cautious, rows.initial, rows.labels, power, shifts)
    return FitAssessment(
        error=found.error,
        promise=promise,
        confidence=promise.confidence(rows.initial, rows.labels),
        self_learned=self_learned,
    )
