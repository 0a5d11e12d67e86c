"""The last pass over rows in chunks: labels, verdicts on them, and all that a report counts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fewlabel._core.arrays import Bools, Floats, Ints
from fewlabel._core.scikit import n_rows, take_rows
from fewlabel._core.targets import UNLABELED
from fewlabel.assess.label_proba import label_proba_of
from fewlabel.assess.label_sums import LabelRule, LabelSums, PseudoLabels, Verdicts
from fewlabel.assess.shifts import Shifts
from fewlabel.assess.suggest import NextRows
from fewlabel.assess.true_labels import known_labels
from fewlabel.bounds.cells import Statistics
from fewlabel.bounds.margins import MarginSums, margin_sums
from fewlabel.bounds.mislabeling import imperfect_proba
from fewlabel.chunks import steps
from fewlabel.chunks.results import write_part

NEXT_ROWS = 1_000
"""Rows worth labelling that a fit on rows in chunks keeps."""
AUDIT_ROWS = 10_000
"""Rows for an audit that it draws."""


class Judgement(NamedTuple):
    """What is known of the labels before the last pass, by the sample.

    Attributes
    ----------
    power : float
        Calibrates initial votes that stand for P(Y|x).
    rule : LabelRule
    matrix : ndarray of shape (n_classes, n_classes)
        The mislabelling matrix, for the bounds with imperfect labels.
    shifts : Shifts
        Between class shares of votes, labelled rows and the table.
    """

    power: float
    rule: LabelRule
    matrix: Floats
    shifts: Shifts


class Part(NamedTuple):
    """The results of one chunk, to be written.

    Attributes
    ----------
    position : int
        Of the chunk.
    offset : int
        Position of the chunk's first row among all rows.
    raw : the chunk as it was read
    rows : ndarray of int
        Positions of the unlabelled rows in it. All that follows is about these.
    labels, rounds : ndarray of int
        Class codes, and the round that pseudo-labelled each (-1: none).
    verdicts : Verdicts
    accepted : ndarray of bool
    votes, first : ndarray of shape (n_rows, n_classes)
        Of the final and of the first model.
    rule : LabelRule
        By which the labels were judged.
    """

    position: int
    offset: int
    raw: Any
    rows: Ints
    labels: Ints
    rounds: Ints
    verdicts: Verdicts
    accepted: Bools
    votes: Floats
    first: Floats
    rule: LabelRule


class PartWriter(Protocol):
    """Writes the results of chunks into a folder."""

    def write(self, folder: Path, part: Part, classes: NDArray[Any]) -> None:
        """Write one part; a task that is repeated writes the same."""
        ...


class ResultWriter:
    """Labels, votes and verdicts of the unlabelled rows, as Parquet."""

    def write(self, folder: Path, part: Part, classes: NDArray[Any]) -> None:
        """See :class:`PartWriter`."""
        if len(part.rows) == 0:
            return
        columns = {
            "row": part.offset + part.rows,
            "round": part.rounds,
            "label": classes[part.labels],
            "confidence": part.verdicts.confidence,
            "cautious": part.verdicts.cautious,
            "accepted": part.accepted,
            **{f"vote_{name}": part.votes[:, c] for c, name in enumerate(classes)},
        }
        write_part(folder, part.position, columns)


class Drawn(NamedTuple):
    """Rows to check by hand, drawn at random: those with the smallest keys, in their order."""

    keys: Floats
    rows: Ints
    labels: Ints
    cautious: Floats

    @classmethod
    def merge(cls, parts: Sequence[Drawn]) -> Drawn:
        """The first of all parts."""
        keys, *others = (np.concatenate(piece) for piece in zip(*parts))
        kept = np.argsort(keys, kind="stable")[:AUDIT_ROWS]
        rows, labels, cautious = (piece[kept] for piece in others)
        return cls(keys[kept], rows, labels, cautious)


class Finished(NamedTuple):
    """What the last pass leaves of some rows; without a judgement only the statistics.

    Attributes
    ----------
    statistics : of the final votes; None without rows
    sums : LabelSums
    margins, imperfect : MarginSums
        For the table of bounds, with true and with imperfect labels.
    suggested : NextRows
    drawn : Drawn
    """

    statistics: Statistics | None
    sums: LabelSums | None = None
    margins: MarginSums | None = None
    imperfect: MarginSums | None = None
    suggested: NextRows | None = None
    drawn: Drawn | None = None


def merge_finished(parts: Sequence[Finished]) -> Finished:
    """The same of all chunks."""
    statistics = steps.merge_statistics([part.statistics for part in parts])
    full: list[Any] = [part for part in parts if part.sums is not None]
    if not full:
        return Finished(statistics)
    return Finished(
        statistics,
        LabelSums.merge([part.sums for part in full]),
        add_margins([part.margins for part in full]),
        add_margins([part.imperfect for part in full]),
        NextRows.merge([part.suggested for part in full], NEXT_ROWS),
        Drawn.merge([part.drawn for part in full]),
    )


def add_margins(parts: Sequence[MarginSums]) -> MarginSums:
    """Sums of margins over the rows of all parts."""
    together = parts[0]
    for part in parts[1:]:
        together = together + part
    return together


def finish(
    chunk: steps.Chunk,
    *,
    model: Any,
    initial: Any,
    judgement: Judgement | None,
    task: steps.Task,
    n_rounds: int,
    folder: Path | None,
    writer: PartWriter | None,
    offset: int,
) -> tuple[steps.Made, Finished]:
    """Final votes on all rows: statistics, verdicts, and the results of the chunk as Parquet."""
    n, K = n_rows(chunk["X"]), len(task.classes)
    votes = _final_votes(chunk, model, task) if n else np.empty((0, K))
    if judgement is None:  # rows in memory are judged when somebody asks
        known = chunk.get("proba", votes)
        proba = label_proba_of(task.label_proba, votes, known)
        found = task.statistics(votes, proba, task.resolution) if n else None
        return {"votes": votes}, Finished(found)
    first = _initial_votes(chunk, initial, task) if n else votes
    labels = votes.argmax(axis=1)
    verdicts = judgement.rule.judge(first, labels)
    accepted = verdicts.level <= judgement.rule.own
    results = (labels, chunk["marks"]["round"], verdicts, accepted, votes, first, judgement.rule)
    part = Part(chunk["position"], offset, chunk["raw"], chunk["rows"], *results)
    if folder is not None and writer is not None:
        writer.write(folder, part, task.classes)
    return {}, _summed_up(chunk, part, judgement, task, n_rounds) if n else Finished(None)


def _summed_up(
    chunk: steps.Chunk,
    part: Part,
    judgement: Judgement,
    task: steps.Task,
    n_rounds: int,
) -> Finished:
    """What is kept of a chunk."""
    marks, votes, labels, first = chunk["marks"], part.votes, part.labels, part.first
    proba = label_proba_of(
        task.label_proba, votes, judgement.shifts.label_proba(first, judgement.power)
    )
    pseudo = PseudoLabels(marks["round"].astype(np.intp), marks["code"].astype(np.intp))
    truth = chunk.get("truth")
    true = None if truth is None else known_labels(truth, task.classes, None)
    keys = np.random.default_rng([task.seed, 1, part.position]).random(len(labels))
    chosen = np.argsort(keys, kind="stable")[:AUDIT_ROWS]
    at = part.offset + part.rows
    return Finished(
        task.statistics(votes, proba, task.resolution),
        LabelSums.of(labels, first, part.verdicts, part.rule, pseudo, n_rounds, true),
        margin_sums(votes, proba),
        margin_sums(votes, imperfect_proba(proba, judgement.matrix)),
        NextRows.of(votes, at, NEXT_ROWS),
        Drawn(keys[chosen], at[chosen], labels[chosen], part.verdicts.cautious[chosen]),
    )


def _initial_votes(chunk: steps.Chunk, initial: Any, task: steps.Task) -> Floats:
    if task.label_proba == "supervised":
        return np.asarray(chunk["proba"])
    return task.learner.votes(initial, chunk["X"])


def _final_votes(chunk: steps.Chunk, model: Any, task: steps.Task) -> Floats:
    X = chunk["X"]
    if "votes" not in chunk:
        return task.learner.votes(model, X)
    # The rows that are left have just been voted on: only the pseudo-labelled ones are missing.
    votes = np.empty((n_rows(X), len(task.classes)))
    left = chunk["marks"]["code"] == UNLABELED
    votes[left] = chunk["votes"]
    if not left.all():
        votes[~left] = task.learner.votes(model, take_rows(X, np.flatnonzero(~left)))
    return votes
