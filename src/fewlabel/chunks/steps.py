r"""What self-learning does with one chunk of the unlabelled rows.

Each *step* is a pure function ``step(chunk, **arguments) -> (made, summary)``. ``chunk`` holds the
pieces of a chunk that the step uses: its rows ``"X"``, and what earlier steps made of it:

- ``"marks"``: for each row its pseudo-label (a class code) and the round that gave it,
- ``"proba"``: the initial votes that stand for :math:`P(Y\mid x)`,
- ``"ballot"``: for each row that is not trusted yet, the class that wins the vote and its vote.

``made`` are new pieces of the chunk, ``summary`` is small and merges with those of other chunks.
Where pieces are kept and where steps run is none of their business.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from fewlabel._core.scikit import n_rows, take_rows
from fewlabel._core.targets import UNLABELED
from fewlabel.bounds.statistics import Floats, Ints, VoteStatistics
from fewlabel.bounds.votes import vote_matrix
from fewlabel.chunks.source import join_rows, write_part
from fewlabel.selection.rounds import stand_in
from fewlabel.selection.training_set import TrainingSet

Chunk = dict[str, Any]
Made = dict[str, Any]

MARKS = np.dtype([("code", np.int16), ("round", np.int16)])
BALLOT = np.dtype([("code", np.int16), ("vote", np.float64)])

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


def merge_statistics(parts: Sequence[VoteStatistics | None]) -> VoteStatistics | None:
    """Statistics of all chunks, in any order and grouping; None stands for no rows.

    The result is exact if and only if all rows together have few distinct votes, however they
    were divided into chunks.
    """
    present = [part for part in parts if part is not None]
    if not present:
        return None
    binned = next((part.resolution for part in present if part.resolution is not None), None)
    if binned is not None:
        present = [part.binned(binned) for part in present]
    merged = VoteStatistics.merge(present)
    too_many = merged.resolution is None and merged.n_cells > EXACT_CELLS
    return merged.binned(RESOLUTION) if too_many else merged


# --- what stays the same during a fit --------------------------------------------------------


class Drawn(NamedTuple):
    """Trusted rows to train on, and their pseudo-labels."""

    X: Any
    codes: Ints


@dataclass(frozen=True)
class Task:
    """The labelled rows and the settings of a fit.

    Attributes
    ----------
    X, codes, weight : the labelled rows, their class codes and their weights (or None)
    classes : ndarray of shape (n_classes,)
    base : unfitted estimator
    balanced : whether labelled and trusted rows get the same total weight
    max_train : at most this many trusted rows in one training set
    label_proba : {"supervised", "current", "uniform"}
    resolution : bins of the statistics, or None for as exact as can be
    search_resolution : the same for the statistics that a policy sees
    seed : int
    """

    X: Any
    codes: Ints
    weight: Floats | None
    classes: NDArray[Any]
    base: Any
    balanced: bool
    max_train: int
    label_proba: str
    resolution: int | None
    search_resolution: int | None
    seed: int

    def fit(self, estimator: Any, drawn: Drawn | None, trusted: Ints) -> Any:
        """Fit on the labelled rows and those drawn of the trusted ones (counts per class)."""
        X, codes, weight = self.X, self.codes, self.weight
        if drawn is not None:
            X = join_rows([X, drawn.X])
            codes = np.append(codes, np.full(len(drawn.codes), UNLABELED))
            weight = self._weights(drawn, trusted)
        training = TrainingSet(
            X=X,
            codes=codes,
            classes=self.classes,
            sample_weight=weight,
            balanced=self.balanced,
            max_train=None,
            fit_params={},
            rng=np.random.default_rng(self.seed),
        )
        if drawn is not None:
            training.trust(training.unlabeled, drawn.codes)
        return training.fit(estimator)

    def _weights(self, drawn: Drawn, trusted: Ints) -> Floats | None:
        counts = np.bincount(drawn.codes, minlength=len(self.classes))
        if self.weight is None and np.array_equal(counts, trusted):
            return None
        given = np.ones(len(self.codes)) if self.weight is None else self.weight
        # A row that was drawn stands for all trusted rows of its class that were not.
        weight = np.append(given, (trusted / np.maximum(counts, 1))[drawn.codes])
        return weight * (len(weight) / weight.sum()) if self.weight is None else weight


def is_forest(estimator: Any) -> bool:
    """Whether its trees can be grown apart and put together."""
    return isinstance(estimator, (RandomForestClassifier, ExtraTreesClassifier))


def merge_forests(forests: Sequence[Any]) -> Any:
    """One forest of all trees; None stands for no trees."""
    present = [forest for forest in forests if forest is not None]
    if not present:
        return None
    whole = copy.copy(present[0])
    whole.estimators_ = [tree for forest in present for tree in forest.estimators_]
    return whole.set_params(n_estimators=len(whole.estimators_))


def named_label_proba(classifier: Any) -> str:
    """The parameter ``label_proba`` of a classifier for rows in chunks: a name, no array."""
    if isinstance(classifier.label_proba, str):
        return classifier.label_proba
    raise ValueError(
        "label_proba must be 'supervised', 'current' or 'uniform' for rows in chunks: an array of "
        f"probabilities belongs to rows in memory. Got {type(classifier.label_proba).__name__}."
    )


# --- steps -----------------------------------------------------------------------------------


class Seen(NamedTuple):
    """What the first look at a chunk tells: rows read, unlabelled ones, and what marks these."""

    n_read: int
    n_unlabeled: int
    markers: list[Any]


def begin(chunk: Chunk) -> tuple[Made, dict[int, Seen]]:
    """Look at every chunk once: nothing is trusted yet."""
    marks = np.zeros(n_rows(chunk["X"]), MARKS)
    marks["code"], marks["round"] = UNLABELED, -1
    return {"marks": marks}, {
        chunk["position"]: Seen(chunk["n_read"], len(marks), chunk["markers"])
    }


def vote(chunk: Chunk, *, estimator: Any, task: Task) -> tuple[Made, VoteStatistics | None]:
    """Votes on the rows that are left: who wins, and the statistics of all votes."""
    left = _left(chunk["marks"])
    if len(left) == 0:
        return {"ballot": np.empty(0, BALLOT), "proba": np.empty((0, len(task.classes)))}, None
    votes = vote_matrix(estimator, chunk["X"], rows=left)
    made: Made = {"ballot": ballot_of(votes)}
    initial = chunk["proba"][left] if "proba" in chunk else votes  # the first votes are these
    if "proba" not in chunk and task.label_proba == "supervised":
        made["proba"] = initial
    proba = stand_in(task.label_proba, votes, initial)
    return made, chunk_statistics(votes, proba, task.search_resolution)


def ballot_of(votes: Floats) -> NDArray[Any]:
    ballot = np.empty(len(votes), BALLOT)
    ballot["code"], ballot["vote"] = votes.argmax(axis=1), votes.max(axis=1)
    return ballot


def _left(marks: NDArray[Any]) -> Ints:
    return np.flatnonzero(marks["code"] == UNLABELED)


def count(chunk: Chunk, *, thresholds: Floats) -> tuple[Made, dict[int, Ints]]:
    """How many rows of each class these thresholds would trust."""
    codes = chunk["ballot"]["code"][_reaches(chunk["ballot"], thresholds)]
    return {}, {chunk["position"]: np.bincount(codes, minlength=len(thresholds))}


def _reaches(ballot: NDArray[Any], thresholds: Floats) -> NDArray[np.bool_]:
    return np.asarray(ballot["vote"] >= thresholds[ballot["code"]])


def trust(chunk: Chunk, *, thresholds: Floats, iteration: int) -> tuple[Made, int]:
    """Give the rows that reach their threshold the class that wins as pseudo-label."""
    marks, ballot = chunk["marks"].copy(), chunk["ballot"]
    chosen = _reaches(ballot, thresholds)
    rows = _left(marks)[chosen]
    marks["code"][rows], marks["round"][rows] = ballot["code"][chosen], iteration
    return {"marks": marks}, len(rows)


def draw(chunk: Chunk, *, take: Ints, seed: int) -> tuple[Made, Drawn | None]:
    """Draw so many trusted rows of each class, without replacement."""
    rng = np.random.default_rng([seed, chunk["position"]])
    code = chunk["marks"]["code"]
    kept = []
    for c in np.flatnonzero(take):
        rows = np.flatnonzero(code == c)
        kept.append(rows if take[c] >= len(rows) else rng.choice(rows, take[c], replace=False))
    if not kept:
        return {}, None
    rows = np.sort(np.concatenate(kept))
    return {}, Drawn(take_rows(chunk["X"], rows), code[rows].astype(np.intp))


def merge_drawn(parts: Sequence[Drawn | None]) -> Drawn | None:
    present = [part for part in parts if part is not None]
    if not present:
        return None
    codes = np.concatenate([part.codes for part in present])
    return Drawn(join_rows([part.X for part in present]), codes)


def fit_drawn(drawn: Drawn | None, *, task: Task, trusted: Ints) -> Any:
    """The classifier that is trained on rows drawn from all chunks."""
    return task.fit(clone(task.base), drawn, trusted)


def grow(
    chunk: Chunk, *, task: Task, n_trees: int, take: Ints, seed: int
) -> tuple[Made, Any | None]:
    """This chunk's share of the trees, on the labelled rows and its own trusted rows only."""
    if n_trees == 0:
        return {}, None
    _, drawn = draw(chunk, take=take, seed=seed)
    trusted = np.bincount(
        chunk["marks"]["code"][chunk["marks"]["code"] != UNLABELED], minlength=len(task.classes)
    )
    state = np.random.SeedSequence([seed, chunk["position"]]).generate_state(1)[0]
    forest = clone(task.base).set_params(n_estimators=n_trees, random_state=int(state % 2**31))
    return {}, task.fit(forest, drawn, trusted)


def finish(
    chunk: Chunk, *, estimator: Any, task: Task, folder: Path | None, offset: int
) -> tuple[Made, VoteStatistics | None]:
    """Final votes on all rows: their statistics, and the results of the chunk as Parquet."""
    X = chunk["X"]
    if n_rows(X) == 0:
        return {}, None
    votes = vote_matrix(estimator, X)
    proba = stand_in(task.label_proba, votes, chunk.get("proba", votes))
    if folder is not None:
        columns = {"row": offset + chunk["rows"], "round": chunk["marks"]["round"]}
        write_part(folder, chunk["position"], columns | result_columns(votes, task.classes))
    return {}, chunk_statistics(votes, proba, task.resolution)


def label(
    chunk: Chunk, *, estimator: Any, classes: NDArray[Any], folder: Path, offset: int
) -> tuple[Made, int]:
    """Predictions for a chunk as Parquet."""
    if n_rows(chunk["X"]):
        columns = {"row": offset + chunk["rows"]}
        votes = vote_matrix(estimator, chunk["X"])
        write_part(folder, chunk["position"], columns | result_columns(votes, classes))
    return {}, n_rows(chunk["X"])


def result_columns(votes: Floats, classes: NDArray[Any]) -> dict[str, Any]:
    """The label and the votes, a column each."""
    named = {f"vote_{name}": votes[:, c] for c, name in enumerate(classes)}
    return {"label": classes[votes.argmax(axis=1)], **named}
