r"""What self-learning does with one chunk of the unlabelled rows.

Each *step* is a pure function ``step(chunk, **arguments) -> (made, summary)``. ``chunk`` holds the
pieces of a chunk that the step uses: its rows ``"X"``, and what earlier steps made of it:

- ``"marks"``: for each row its pseudo-label (a class code) and the round that gave it,
- ``"proba"``: the initial votes that stand for :math:`P(Y\mid x)`,
- ``"ballot"``: for each row without a pseudo-label, the class that wins the vote and its vote,
- ``"votes"``, ``"initial"``: of rows in memory, all votes of the rows without a pseudo-label,
  and those of the first model.

``made`` are new pieces of the chunk, ``summary`` is small and merges with those of other chunks.
Where pieces are kept and where steps run is the business of an executor.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from fewlabel._core.arrays import Bools, Floats, Ints
from fewlabel._core.scikit import n_rows, take_rows
from fewlabel._core.targets import UNLABELED
from fewlabel.assess.label_proba import label_proba_of
from fewlabel.assess.label_sums import LabelRule
from fewlabel.bounds.cells import RowStatistics, Statistics
from fewlabel.bounds.statistics import VoteStatistics
from fewlabel.bounds.votes import vote_matrix
from fewlabel.chunks.results import write_part
from fewlabel.chunks.source import join_rows
from fewlabel.selection.learner import EstimatorLearner, Learner
from fewlabel.selection.training_set import TrainingSet, training_weights

Chunk = dict[str, Any]
Made = dict[str, Any]

MARKS = np.dtype([("code", np.int32), ("round", np.int32)])
BALLOT = np.dtype([("code", np.int32), ("vote", np.float64)])

EXACT_CELLS = 4096
"""Statistics stay exact up to this many distinct votes a class (a forest has a few hundred)."""
RESOLUTION = 1000
"""Bins for each class where there are more."""


# --- statistics of bounded size --------------------------------------------------------------


def chunk_statistics(
    votes: Floats, label_proba: Floats, resolution: int | None = None
) -> VoteStatistics:
    """Statistics of one chunk: exact while that is small, else (or if given) binned."""
    some = votes[: 2 * EXACT_CELLS]  # enough to tell continuous votes from those of a forest
    if resolution is None and any(len(np.unique(column)) > EXACT_CELLS for column in some.T):
        resolution = RESOLUTION
    return VoteStatistics.from_votes(votes, label_proba, resolution=resolution)


def merge_statistics(parts: Sequence[Statistics | None]) -> Statistics | None:
    """Statistics of all chunks, in any order and grouping; None stands for no rows.

    The result is exact if and only if all rows together have few distinct votes, however they
    were divided into chunks.
    """
    present: list[Any] = [part for part in parts if part is not None]
    if not present:
        return None
    if isinstance(present[0], RowStatistics):  # rows in memory are one chunk
        return present[0]
    binned = next((part.resolution for part in present if part.resolution is not None), None)
    if binned is not None:
        present = [part.binned(binned) for part in present]
    merged = VoteStatistics.merge(present)
    too_many = merged.resolution is None and merged.n_cells > EXACT_CELLS
    return merged.binned(RESOLUTION) if too_many else merged


# --- what stays the same during a fit --------------------------------------------------------


class TrainingSample(NamedTuple):
    """Pseudo-labelled rows to train on, their pseudo-labels, and the weights that they came with.

    ``weight`` is None where the user gave none.
    """

    X: Any
    codes: Ints
    weight: Floats | None = None


@dataclass(frozen=True, eq=False)
class Task:
    """The labelled rows and the settings of a fit.

    Attributes
    ----------
    X, codes, weight : the labelled rows, their class codes and their weights (or None)
    classes : ndarray of shape (n_classes,)
    learner : Learner
    balanced : whether labelled and pseudo-labelled rows get the same total weight
    label_proba : {"supervised", "current", "uniform", "given"}
    in_memory : whether the rows are one chunk in memory: votes are then kept, statistics exact
    resolution : bins of the statistics, or None for as exact as can be
    search_resolution : the same for the statistics that a policy sees
    missing_label : what marks unlabelled rows in the chunks
    seed : of the sample of rows
    fit_params : further arguments of the learner's ``fit``
    """

    X: Any
    codes: Ints
    weight: Floats | None
    classes: NDArray[Any]
    learner: Learner
    balanced: bool
    label_proba: str
    in_memory: bool = False
    resolution: int | None = None
    search_resolution: int | None = None
    missing_label: Any = "auto"
    seed: int = 0
    fit_params: dict[str, Any] = field(default_factory=dict)

    def training_set(self, drawn: TrainingSample | None, n_pseudo_labeled: Ints) -> TrainingSet:
        """The labelled rows, and those drawn of the pseudo-labelled ones (counts per class)."""
        if drawn is None:
            return TrainingSet(self.X, self.codes, self.classes, self.weight, self.fit_params)
        weight = training_weights(
            self.weight,
            drawn.weight,
            drawn.codes,
            n_pseudo_labeled,
            len(self.codes),
            balanced=self.balanced,
        )
        X, codes = join_rows([self.X, drawn.X]), np.append(self.codes, drawn.codes)
        return TrainingSet(X, codes, self.classes, weight, self.fit_params)

    def statistics(self, votes: Floats, proba: Floats, resolution: int | None) -> Statistics:
        """Statistics of one chunk."""
        if self.in_memory:
            return RowStatistics(votes, proba, resolution)
        return chunk_statistics(votes, proba, resolution)


def merge_forests(forests: Sequence[Any]) -> Any:
    """One forest of all trees; None stands for no trees."""
    present = [forest for forest in forests if forest is not None]
    if not present:
        return None
    whole = copy.copy(present[0])
    whole.estimators_ = [tree for forest in present for tree in forest.estimators_]
    return whole.set_params(n_estimators=len(whole.estimators_))


# --- steps -----------------------------------------------------------------------------------


class FirstLook(NamedTuple):
    """What the first look at a chunk tells: rows read, unlabelled ones, and what marks these."""

    n_read: int
    n_unlabeled: int
    markers: list[Any]


def begin(chunk: Chunk) -> tuple[Made, dict[int, FirstLook]]:
    """Look at every chunk once: no row has a pseudo-label yet."""
    marks = np.zeros(n_rows(chunk["X"]), MARKS)
    marks["code"], marks["round"] = UNLABELED, -1
    look = FirstLook(chunk["n_read"], len(marks), chunk["markers"])
    return {"marks": marks}, {chunk["position"]: look}


def vote(chunk: Chunk, *, model: Any, task: Task) -> tuple[Made, Statistics | None]:
    """Votes on the rows that are left: which class wins, and the statistics of all votes."""
    left = _left(chunk["marks"])
    if len(left) == 0:
        none = np.empty((0, len(task.classes)))
        ballot = np.empty(0, BALLOT)
        return {"ballot": ballot, "votes": none, "initial": none, "proba": none}, None
    votes = task.learner.votes(model, take_rows(chunk["X"], left))
    made: Made = {"ballot": ballot_of(votes), "votes": votes, "initial": votes}
    initial = chunk["proba"][left] if "proba" in chunk else votes  # the first votes are these
    if "proba" not in chunk:
        made["proba"] = initial
    proba = label_proba_of(task.label_proba, votes, initial)
    return made, task.statistics(votes, proba, task.search_resolution)


def ballot_of(votes: Floats) -> NDArray[Any]:
    """The winning class of each row and its vote."""
    ballot = np.empty(len(votes), BALLOT)
    ballot["code"], ballot["vote"] = votes.argmax(axis=1), votes.max(axis=1)
    return ballot


def _left(marks: NDArray[Any]) -> Ints:
    return np.flatnonzero(marks["code"] == UNLABELED)


def count(chunk: Chunk, *, thresholds: Floats) -> tuple[Made, dict[int, Ints]]:
    """How many rows of each class these thresholds would select."""
    codes = chunk["ballot"]["code"][_reaches(chunk["ballot"], thresholds)]
    return {}, {chunk["position"]: np.bincount(codes, minlength=len(thresholds))}


def _reaches(ballot: NDArray[Any], thresholds: Floats) -> Bools:
    return np.asarray(ballot["vote"] >= thresholds[ballot["code"]])


def pseudo_label(chunk: Chunk, *, thresholds: Floats, iteration: int) -> tuple[Made, int]:
    """Give the rows that reach their threshold the class that wins as pseudo-label."""
    marks, ballot = chunk["marks"].copy(), chunk["ballot"]
    chosen = _reaches(ballot, thresholds)
    rows = _left(marks)[chosen]
    marks["code"][rows], marks["round"][rows] = ballot["code"][chosen], iteration
    return {"marks": marks}, len(rows)


def draw(chunk: Chunk, *, take: Ints, seed: int) -> tuple[Made, TrainingSample | None]:
    """Draw so many pseudo-labelled rows of each class, without replacement."""
    rng = np.random.default_rng([seed, chunk["position"]])
    code = chunk["marks"]["code"]
    kept = []
    for c in np.flatnonzero(take):
        rows = np.flatnonzero(code == c)
        kept.append(rows if take[c] >= len(rows) else rng.choice(rows, take[c], replace=False))
    if not kept:
        return {}, None
    rows = np.sort(np.concatenate(kept))
    weight = chunk.get("weight")
    own = None if weight is None else weight[rows]
    return {}, TrainingSample(take_rows(chunk["X"], rows), code[rows].astype(np.intp), own)


def merge_drawn(parts: Sequence[TrainingSample | None]) -> TrainingSample | None:
    """Rows drawn from all chunks."""
    present = [part for part in parts if part is not None]
    if len(present) < 2:
        return present[0] if present else None
    codes = np.concatenate([part.codes for part in present])
    return TrainingSample(join_rows([part.X for part in present]), codes)


def train(
    drawn: TrainingSample | None, previous: Any, *, task: Task, n_pseudo_labeled: Ints
) -> Any:
    """The model that is trained on rows drawn from all chunks."""
    return task.learner.train(task.training_set(drawn, n_pseudo_labeled), previous)


def grow(
    chunk: Chunk, *, task: Task, n_trees: int, take: Ints, seed: int
) -> tuple[Made, Any | None]:
    """This chunk's share of the trees, on the labelled rows and its own pseudo-labelled rows."""
    if n_trees == 0:
        return {}, None
    _, drawn = draw(chunk, take=take, seed=seed)
    own = chunk["marks"]["code"][chunk["marks"]["code"] != UNLABELED]
    counts = np.bincount(own, minlength=len(task.classes))
    state = np.random.SeedSequence([seed, chunk["position"]]).generate_state(1)[0]
    assert isinstance(task.learner, EstimatorLearner)  # the loop asks for it
    forest = clone(task.learner.base)
    forest.set_params(n_estimators=n_trees, random_state=int(state % 2**31))
    return {}, task.training_set(drawn, counts).fit(forest)


def label(
    chunk: Chunk,
    *,
    models: tuple[Any, Any],
    rule: LabelRule,
    classes: NDArray[Any],
    folder: Path,
    offset: int,
) -> tuple[Made, int]:
    """Predictions for a chunk as Parquet, with verdicts by the votes of the first model."""
    if n_rows(chunk["X"]):
        final, initial = models
        votes = vote_matrix(final, chunk["X"])
        labels = votes.argmax(axis=1)
        verdicts = rule.judge(vote_matrix(initial, chunk["X"]), labels)
        columns = {
            "row": offset + chunk["rows"],
            "label": classes[labels],
            "confidence": verdicts.confidence,
            "accepted": verdicts.level <= rule.own,
            **{f"vote_{name}": votes[:, c] for c, name in enumerate(classes)},
        }
        write_part(folder, chunk["position"], columns)
    return {}, n_rows(chunk["X"])
