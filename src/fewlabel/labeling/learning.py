"""What is learned from the answers so far: labels, their error, and the rows to ask for next."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewlabel._core.arrays import Bools, Floats, Ints
from fewlabel.assess.assessment import HeldOut
from fewlabel.assess.out_of_sample import has_vote, mix_held_out
from fewlabel.ensemble.few_label import FewLabelClassifier
from fewlabel.labeling.choose import Reason, next_rows

QUEUE = 60
"""Rows that a model asks for; more than a person answers while the next one learns."""

# How far the held-out vote for another class must be ahead before a person is asked again.
_CONTRADICTED = 0.5
_SECOND_LOOKS = 20


@dataclass(frozen=True)
class Lesson:
    """What to learn from.

    Attributes
    ----------
    version : int
        Of the model that comes of it.
    labels : dict of int to str
        The label of each labelled row.
    random : list of int
        Those of them that were drawn at random: only they enter the estimate of the error.
    closed : list of int
        Other rows that are not to be asked for.
    n_classes : int
        Classes that are known to exist, with or without a label.
    goal : float
        The share of wrong labels that is allowed.
    seed : int
    until : int
        The last answer that it contains.
    """

    version: int
    labels: dict[int, str]
    random: list[int]
    closed: list[int]
    n_classes: int
    goal: float
    seed: int = 0
    until: int = 0


@dataclass(frozen=True, eq=False)
class Learned:
    """What a model says.

    Attributes
    ----------
    version, until : int
        Of the lesson.
    n_labels : int
        Labels that it learned from.
    queue : list of (int, str)
        Rows to ask for, and why, the best first.
    classes : list of str
        Empty if there were too few labels to learn anything but where to look.
    codes : ndarray of int of shape (n_rows,)
        The label of each row, given or predicted.
    confidence : ndarray of shape (n_rows,)
        The chance that it is right.
    accepted : ndarray of bool of shape (n_rows,)
        Predicted labels that are accepted for the goal.
    error : dict
        ``text``, ``value``, ``low``, ``high``, ``n`` and ``notes`` of the error estimate, and
        ``cautious``, the error nearer to the upper limit by which labels are accepted.
    shares : list of (float, float, float)
        The share of each class, with limits.
    second_looks : list of (int, str)
        Labelled rows that the held-out vote contradicts, and what it says.
    seconds : float
    """

    version: int
    until: int
    n_labels: int
    queue: list[tuple[int, Reason]]
    classes: list[str] = field(default_factory=list)
    codes: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    confidence: Floats = field(default_factory=lambda: np.empty(0))
    accepted: Bools = field(default_factory=lambda: np.empty(0, dtype=bool))
    error: dict[str, Any] = field(default_factory=dict)
    shares: list[tuple[float, float, float]] = field(default_factory=list)
    second_looks: list[tuple[int, str]] = field(default_factory=list)
    seconds: float = 0.0

    def believes(self, row: int) -> tuple[str, float] | None:
        """The label of a row and the chance that it is right; None before anything is learned."""
        if not self.classes:
            return None
        return self.classes[self.codes[row]], float(self.confidence[row])


def learn(
    X: Any, points: Floats, lesson: Lesson, *, n_jobs: int | None = None
) -> tuple[FewLabelClassifier | None, Learned]:
    """Learn from the labels, state the error by the random ones, choose rows to ask for.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_rows, n_features)
    points : ndarray of shape (n_rows, n_dimensions)
        See :func:`fewlabel.labeling.space.row_space`.
    lesson : Lesson
    n_jobs : int, optional

    Returns
    -------
    clf : FewLabelClassifier or None
        None with labels of fewer than two classes.
    learned : Learned
    """
    start = time.perf_counter()
    n = len(points)
    known = np.zeros(n, dtype=bool)
    known[list(lesson.labels)] = True
    clf = None
    if len(set(lesson.labels.values())) > 1 and not known.all():
        clf = fitted(X, lesson, n_jobs)
    closed = np.isin(np.arange(n), lesson.closed)
    asked = next_rows(
        points,
        None if clf is None else clf.transduction_proba_,
        QUEUE,
        known=known,
        closed=closed,
        n_classes=max(lesson.n_classes, 2),
        random_share=0.0,  # the session mixes them in, in an order of its own
        random_state=lesson.seed,
    )
    queue = list(zip(asked.rows.tolist(), asked.reasons))
    found = Learned(lesson.version, lesson.until, len(lesson.labels), queue)
    if clf is not None:
        found = _statement(clf, lesson, found)
    return clf, _timed(found, time.perf_counter() - start)


def fitted(X: Any, lesson: Lesson, n_jobs: int | None = None) -> FewLabelClassifier:
    """The classifier that learns from a lesson; its estimate rests on the random rows."""
    target = np.full(X.shape[0], None, dtype=object)
    for row, label in lesson.labels.items():
        target[row] = label
    clf = FewLabelClassifier(missing_label=None, random_state=lesson.seed, n_jobs=n_jobs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what concerns the user stands in the estimate's notes
        clf.fit(X, target).estimate_from(np.array(lesson.random, dtype=np.intp))
        _ = clf.assessment_
    return clf


def _statement(clf: FewLabelClassifier, lesson: Lesson, found: Learned) -> Learned:
    error = clf.error_
    accepted = clf.accept(lesson.goal) & (clf.labeled_iter_ != 0)
    if not error.n:  # no random row says anything: nothing can be accepted
        accepted = np.zeros_like(accepted)
    values = {
        "text": str(error) if error.safe else str(error).partition(", unsafe")[0],
        "value": _finite(error.value),
        "low": error.low,
        "high": error.high,
        "n": error.n,
        "cautious": clf.assessment_.promise.mean_doubt,
        "notes": list(error.notes),
    }
    return Learned(
        version=found.version,
        until=found.until,
        n_labels=found.n_labels,
        queue=found.queue,
        classes=[str(name) for name in clf.classes_],
        codes=np.asarray(np.searchsorted(clf.classes_, clf.transduction_), dtype=np.int32),
        confidence=clf.confidence_.astype(np.float32),
        accepted=accepted,
        error=values,
        shares=[(share.value, share.low, share.high) for share in error.prevalence],
        second_looks=_second_looks(clf),
    )


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _second_looks(clf: FewLabelClassifier) -> list[tuple[int, str]]:
    """Labelled rows whose held-out vote is clearly for another class, the clearest first."""
    held: HeldOut = clf.paper_bounds_.held_out
    if held.weights is None or len(held.y) < 2:
        return []
    mixed = mix_held_out(held.votes, held.weights(held.votes, held.y))
    rows: Ints = np.flatnonzero(clf.labeled_iter_ == 0)
    ahead = mixed.max(axis=1) - mixed[np.arange(len(held.y)), held.y]
    doubted = np.flatnonzero((ahead > _CONTRADICTED) & has_vote(mixed))
    best = doubted[np.argsort(-ahead[doubted], kind="stable")][:_SECOND_LOOKS]
    return [(int(rows[i]), str(clf.classes_[mixed[i].argmax()])) for i in best]


def _timed(found: Learned, seconds: float) -> Learned:
    return Learned(**{**found.__dict__, "seconds": seconds})
