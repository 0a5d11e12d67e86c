"""What a report says of the labels of many rows, as counts and sums that add up over chunks.

A row gets a label, a confidence, and a verdict: the smallest error of a list for which it is
accepted. Everything that a report counts follows from these, so rows in memory, on disk and on a
cluster are summed up by the same function, and the sums of chunks are merged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np

from fewlabel._core.arrays import Floats, Ints
from fewlabel.assess.calibration import Confidence
from fewlabel.assess.promise import Promise

MAX_ERRORS = (0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.3)
"""Errors that one may want to allow; the report's slider goes over them."""

N_BINS = 20
"""Bins of the confidence."""


class Verdicts(NamedTuple):
    """What is said of the labels of some rows.

    Attributes
    ----------
    confidence, cautious : ndarray of shape (n_rows,)
        The chance that the label is right, and the one by which labels are accepted.
    level : ndarray of int of shape (n_rows,)
        Position of the smallest error for which the label is accepted; their number if none.
    """

    confidence: Floats
    cautious: Floats
    level: Ints


@dataclass(frozen=True)
class LabelRule:
    """The confidence in labels, and which of them are accepted for which error.

    Attributes
    ----------
    rule, cautious : Confidence
    max_error : float
        The error that was asked for.
    max_errors : tuple of float
        Rising, that one among them.
    thresholds : tuple of float
        The cautious confidence that each of them takes.
    """

    rule: Confidence
    cautious: Confidence
    max_error: float
    max_errors: tuple[float, ...]
    thresholds: tuple[float, ...]

    @classmethod
    def of(cls, promise: Promise, max_error: float) -> Self:
        """The rule of a fit, from what it promises."""
        errors = tuple(sorted({*MAX_ERRORS, float(max_error)}))
        # A larger error never takes more; rounding must not say so.
        falling = np.minimum.accumulate([promise.least(error) for error in errors])
        thresholds = tuple(falling.tolist())
        return cls(promise.rule, promise.cautious, float(max_error), errors, thresholds)

    @property
    def own(self) -> int:
        """Position of the error that was asked for."""
        return self.max_errors.index(self.max_error)

    def judge(self, initial: Floats, labels: Ints) -> Verdicts:
        """Verdicts on labels, from the votes of the first model."""
        cautious = self.cautious.of(initial, labels)
        reached = np.searchsorted(np.array(self.thresholds)[::-1], cautious, side="right")
        return Verdicts(self.rule.of(initial, labels), cautious, len(self.max_errors) - reached)


class PseudoLabels(NamedTuple):
    """Which round pseudo-labelled each row (-1: none) with which class code."""

    rounds: Ints
    codes: Ints


class KnownLabels(NamedTuple):
    """True labels of some rows: their positions, codes (-1: no labelled row has it), names."""

    position: Ints
    codes: Ints
    unknown: Counter[str]


@dataclass(frozen=True, eq=False)
class TruthSums:
    """How labels compare with true ones, where these are known.

    Attributes
    ----------
    known, wrong : ndarray of int of shape (n_classes, n_errors + 1)
        Rows by label and level.
    initial_wrong : int
        Rows that the first model gets wrong.
    round_known, round_wrong : ndarray of int of shape (n_rounds,)
        Pseudo-labels by round.
    confusion : ndarray of int of shape (n_classes, n_classes)
        Rows by true class and label.
    unknown : Counter
        Rows of classes that no labelled row has, by the class as text.
    """

    known: Ints
    wrong: Ints
    initial_wrong: int
    round_known: Ints
    round_wrong: Ints
    confusion: Ints
    unknown: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: TruthSums) -> TruthSums:
        return TruthSums(
            self.known + other.known,
            self.wrong + other.wrong,
            self.initial_wrong + other.initial_wrong,
            self.round_known + other.round_known,
            self.round_wrong + other.round_wrong,
            self.confusion + other.confusion,
            self.unknown + other.unknown,
        )

    @property
    def n_known(self) -> int:
        """Rows whose true label is known."""
        return int(self.known.sum())


@dataclass(frozen=True, eq=False)
class LabelSums:
    """Counts of labels, and sums of the confidence in them.

    Attributes
    ----------
    counts : ndarray of int of shape (n_classes, n_errors + 1, n_bins)
        Rows by label, level and bin of the confidence.
    confidence, lowest : ndarray of shape (n_errors + 1,)
        Sum and smallest of the confidence at each level.
    n_changed : int
        Rows to which the first model gave another label.
    doubts : ndarray of shape (n_rounds,)
        Sum of 1 − confidence in the pseudo-labels of each round.
    truth : TruthSums or None
    """

    counts: Ints
    confidence: Floats
    lowest: Floats
    n_changed: int
    doubts: Floats
    truth: TruthSums | None = None

    @classmethod
    def of(
        cls,
        labels: Ints,
        initial: Floats,
        verdicts: Verdicts,
        rule: LabelRule,
        pseudo: PseudoLabels,
        n_rounds: int,
        known: KnownLabels | None = None,
    ) -> Self:
        """Sums over some rows.

        Parameters
        ----------
        labels : ndarray of int of shape (n_rows,)
            Class codes.
        initial : ndarray of shape (n_rows, n_classes)
            Votes of the first model.
        verdicts : Verdicts
        rule : LabelRule
            That gave them.
        pseudo : PseudoLabels
        n_rounds : int
        known : KnownLabels, optional
        """
        K, M = initial.shape[1], len(rule.max_errors) + 1
        edges = np.linspace(0.0, 1.0, N_BINS + 1)
        bins = np.searchsorted(edges, verdicts.confidence, side="right") - 1
        cell = (labels * M + verdicts.level) * N_BINS + np.clip(bins, 0, N_BINS - 1)
        lowest = np.full(M, np.inf)
        np.minimum.at(lowest, verdicts.level, verdicts.confidence)
        first = initial.argmax(axis=1)
        chosen = pseudo.rounds > 0
        doubt = 1.0 - rule.rule.of(initial[chosen], pseudo.codes[chosen])
        return cls(
            counts=np.bincount(cell, minlength=K * M * N_BINS).reshape(K, M, N_BINS),
            confidence=_sums(verdicts.level, verdicts.confidence, M),
            lowest=lowest,
            n_changed=int((first != labels).sum()),
            doubts=_sums(pseudo.rounds[chosen] - 1, doubt, n_rounds),
            truth=None
            if known is None
            else _truth_sums(labels, first, verdicts, (K, M), pseudo, n_rounds, known),
        )

    @classmethod
    def merge(cls, parts: Sequence[Self]) -> Self:
        """Sums over the rows of all parts."""
        truths = [part.truth for part in parts if part.truth is not None]
        truth = None
        for sums in truths:
            truth = sums if truth is None else truth + sums
        return cls(
            counts=np.sum([part.counts for part in parts], axis=0),
            confidence=np.sum([part.confidence for part in parts], axis=0),
            lowest=np.min([part.lowest for part in parts], axis=0),
            n_changed=sum(part.n_changed for part in parts),
            doubts=np.sum([part.doubts for part in parts], axis=0),
            truth=truth,
        )

    @property
    def n_rows(self) -> int:
        """Rows that were summed up."""
        return int(self.counts.sum())

    def n_accepted(self, level: int) -> int:
        """Labels that are accepted for an error of the list."""
        return int(self.counts[:, : level + 1].sum())


def _sums(groups: Ints, values: Floats, n: int) -> Floats:
    """Sum of the values of each group."""
    return np.bincount(groups, values, minlength=n).astype(np.float64)


def _truth_sums(
    labels: Ints,
    first: Ints,
    verdicts: Verdicts,
    shape: tuple[int, int],
    pseudo: PseudoLabels,
    n_rounds: int,
    known: KnownLabels,
) -> TruthSums:
    K, M = shape
    at, code = known.position, known.codes
    label, rounds = labels[at], pseudo.rounds[at]
    wrong = code != label
    cell = label * M + verdicts.level[at]
    chosen = rounds > 0
    right_class = pseudo.codes[at][chosen] == code[chosen]
    inside = code >= 0
    return TruthSums(
        known=np.bincount(cell, minlength=K * M).reshape(K, M),
        wrong=np.bincount(cell[wrong], minlength=K * M).reshape(K, M),
        initial_wrong=int((code != first[at]).sum()),
        round_known=np.bincount(rounds[chosen] - 1, minlength=n_rounds),
        round_wrong=np.bincount(rounds[chosen][~right_class] - 1, minlength=n_rounds),
        confusion=np.bincount(code[inside] * K + label[inside], minlength=K * K).reshape(K, K),
        unknown=known.unknown,
    )
