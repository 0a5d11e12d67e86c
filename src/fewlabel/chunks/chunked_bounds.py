"""The table of bounds from sums over chunks of the unlabelled rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fewlabel._core.scikit import n_rows
from fewlabel.assess.calibration import bounding_power, for_bounds
from fewlabel.assess.transduction_bounds import judged_votes, supervised_estimate
from fewlabel.bounds.margins import Floats, MarginSums, margin_sums
from fewlabel.bounds.mislabeling import (
    expected_counts,
    held_out_counts,
    imperfect_proba,
    mislabeling_matrix,
)
from fewlabel.bounds.statistics import Ints, VoteStatistics
from fewlabel.bounds.table import Bound, table_of_sums
from fewlabel.bounds.transductive import risk_bound
from fewlabel.bounds.votes import vote_matrix
from fewlabel.chunks.steps import (
    Chunk,
    Made,
    chunk_statistics,
    merge_statistics,
)
from fewlabel.selection.rounds import stand_in

if TYPE_CHECKING:
    from fewlabel.chunks.rows import Rows


class Sums(NamedTuple):
    """What the table needs of some rows."""

    statistics: VoteStatistics | None
    margins: MarginSums
    counts: Floats


class Judge(NamedTuple):
    """The classifiers whose votes are compared.

    ``power`` calibrates initial votes that stand for P(Y|x); 1 leaves them alone.
    """

    final: Any
    initial: Any
    label_proba: str
    power: float
    resolution: int | None

    def votes_and_proba(self, X: Any) -> tuple[Floats, Floats]:
        votes = vote_matrix(self.final, X)
        initial = votes
        if self.label_proba == "supervised":
            initial = for_bounds(vote_matrix(self.initial, X), self.power)
        return votes, stand_in(self.label_proba, votes, initial)


def assess(chunk: Chunk, *, judge: Judge) -> tuple[Made, Sums | None]:
    """Sums of the bounds that take ``label_proba`` as it is, and counts for the matrix."""
    if n_rows(chunk["X"]) == 0:
        return {}, None
    votes, proba = judge.votes_and_proba(chunk["X"])
    return {}, Sums(
        chunk_statistics(votes, proba, judge.resolution),
        margin_sums(votes, proba),
        expected_counts(votes.argmax(axis=1), proba, max_iter=0),
    )


def assess_imperfect(
    chunk: Chunk, *, judge: Judge, matrix: Floats
) -> tuple[Made, MarginSums | None]:
    """Sums of the bounds for imperfect labels."""
    if n_rows(chunk["X"]) == 0:
        return {}, None
    votes, proba = judge.votes_and_proba(chunk["X"])
    return {}, margin_sums(votes, imperfect_proba(proba, matrix))


def merge_sums(parts: Sequence[Sums | None]) -> Sums | None:
    present = [part for part in parts if part is not None]
    if not present:
        return None
    return Sums(
        merge_statistics([part.statistics for part in present]),
        _add([part.margins for part in present]),
        np.sum([part.counts for part in present], axis=0),
    )


def merge_margins(parts: Sequence[MarginSums | None]) -> MarginSums | None:
    present = [part for part in parts if part is not None]
    return _add(present) if present else None


def _add(parts: Sequence[MarginSums]) -> MarginSums:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def chunked_bounds(
    rows: Rows, classifier: Any, X: Any, codes: Ints, label_proba: str
) -> list[Bound]:
    """The rows of :mod:`fewlabel.assess.transduction_bounds`, in two passes."""
    codes, held_out = judged_votes(classifier, X, codes)
    power = bounding_power(held_out, codes) if label_proba == "supervised" else 1.0
    judge = rows.call(
        Judge,
        classifier.estimator_,
        classifier.initial_estimator_,
        label_proba,
        power,
        rows.resolution,
    )
    sums: Sums | None = rows.run(assess, merge_sums, ("X",), judge=judge)
    if sums is None or sums.statistics is None:
        raise ValueError("There is no unlabelled row whose error could be bounded.")
    known = held_out_counts(codes, held_out.argmax(axis=1), held_out.shape[1])
    matrix = mislabeling_matrix(known + sums.counts)
    imperfect = rows.run(assess_imperfect, merge_margins, ("X",), judge=judge, matrix=matrix)
    tb = risk_bound(sums.statistics, tight=True)
    first = supervised_estimate(held_out, codes, None)
    return [first, *table_of_sums(sums.margins, tb, imperfect, matrix)]
