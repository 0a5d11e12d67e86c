r"""What a fit says of its labels: one estimate of their error, one confidence for each of them.

The estimator owns one :class:`FitAssessment`. The table of labels, the report, ``predict`` and
``bounds`` read it; none of them computes its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fewlabel._core.arrays import Bools, Floats, Ints
from fewlabel.assess.accept import accept_threshold
from fewlabel.assess.calibration import Confidence, bounding_power, for_bounds
from fewlabel.assess.error_estimate import ClassShares, ErrorEstimate, Labels, assess_labels
from fewlabel.assess.label_proba import label_proba_of
from fewlabel.assess.out_of_sample import WeightRule, mix_held_out
from fewlabel.assess.prevalence import shifted
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

    @property
    def back(self) -> Floats | None:
        """What brings votes for other class shares back to those of the table; None: nothing."""
        table, votes = self.class_shares
        if votes is None:
            return None
        counts = np.maximum(np.bincount(self.y, minlength=len(votes)), 0.5)
        return (counts / counts.sum() if table is None else table) / votes

    @property
    def judged(self) -> tuple[Ints, Floats]:
        """Codes and mixed votes of the rows that somebody could vote on."""
        mixed = self.votes[0]
        if self.weights is not None:
            mixed = mix_held_out(self.votes, self.weights(self.votes, self.y))
        voted = mixed.any(axis=1)
        return self.y[voted], mixed[voted]


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
    initial, back = rows.initial, held_out.back
    if back is not None:
        initial, mixed = shifted(initial, back), shifted(mixed, back)
    power = bounding_power(mixed, y) if rows.label_proba == "supervised" else 1.0
    known = for_bounds(initial, power) if rows.given is None else rows.given
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
    rule : Confidence
        The chance that a label is right, for any row.
    confidence : ndarray of shape (n_unlabeled,)
        The same for the rows of the fit.
    cautious : Confidence
        The rule by which labels are accepted, for an error nearer to the upper limit.
    cautious_confidence : ndarray of shape (n_unlabeled,)
        The same for the rows of the fit.
    errors : ndarray of shape (n_labeled,) or None
        Whether self-learning as a whole gets a labelled row wrong without its label, if known.
    """

    error: ErrorEstimate
    rule: Confidence
    confidence: Floats
    cautious: Confidence
    cautious_confidence: Floats
    errors: Floats | None = None

    def accepted(
        self, max_error: float, votes: Floats | None = None, labels: Ints | None = None
    ) -> Bools:
        """Rows to accept: of the fit, or others with these initial votes and labels."""
        cautious = self.cautious_confidence
        if votes is not None and labels is not None:
            cautious = self.cautious.of(votes, labels)
        reached: Bools = cautious >= accept_threshold(self.cautious_confidence, max_error)
        return reached


def assess(
    held_out: HeldOut,
    rows: Transduction,
    *,
    errors: Floats | None = None,
    labels: Labels = "random",
    sample: Bools | None = None,
    random_state: int = 0,
) -> FitAssessment:
    """Assess the labels of a fit.

    Parameters
    ----------
    held_out : HeldOut
    rows : Transduction
    errors : ndarray of shape (n_labeled,), optional
        Whether the label that self-learning as a whole gives a row without its label is wrong, if
        not only the initial model was held out.
    labels : {"random", "per class"}, default="random"
        How rows were chosen for labelling.
    sample : ndarray of bool of shape (n_labeled,), optional
        The labelled rows that stand for the table; all by default.
    random_state : int, default=0
        Of the bootstrap.
    """
    if len(rows.votes) == 0:
        unknown = ErrorEstimate(float("nan"), 0.0, 1.0, 0, "there is no unlabelled row")
        return FitAssessment(unknown, Confidence(1.0), np.empty(0), Confidence(1.0), np.empty(0))
    found = assess_labels(
        held_out.votes,
        held_out.y,
        rows.initial,
        rows.labels,
        weights=held_out.weights,
        errors=errors,
        trained_share=held_out.trained_share,
        labels=labels,
        sample=sample,
        class_shares=held_out.class_shares,
        random_state=random_state,
    )
    return FitAssessment(
        error=found.error,
        rule=found.confidence,
        confidence=found.confidence.of(rows.initial, rows.labels),
        cautious=found.cautious,
        cautious_confidence=found.cautious.of(rows.initial, rows.labels),
        errors=errors,
    )
