"""Self-learning from unlabelled rows in chunks, and what a fit says of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from fewlabel._core.arrays import Bools, Floats, Ints
from fewlabel._core.scikit import n_rows, take_rows
from fewlabel._core.targets import UNLABELED, encode_target
from fewlabel.assess.assessment import Transduction
from fewlabel.assess.audited_labels import AuditedLabels
from fewlabel.assess.label_sums import LabelRule, LabelSums
from fewlabel.assess.suggest import NextRows
from fewlabel.bounds.mislabeling import expected_counts, held_out_counts, mislabeling_matrix
from fewlabel.bounds.transductive import transductive_bound
from fewlabel.chunks.finish import Judgement, ResultWriter
from fewlabel.chunks.fitted_rows import FittedRows, LabelsOnDisk
from fewlabel.chunks.labeling import named_label_proba
from fewlabel.chunks.loop import Outcome, Results, Schedule, self_learn
from fewlabel.chunks.results import check_out, result_folder
from fewlabel.chunks.rows import Rows
from fewlabel.chunks.source import join_rows
from fewlabel.chunks.steps import Task
from fewlabel.chunks.survey import Survey, survey_rows
from fewlabel.selection.learner import Learner
from fewlabel.selection.policies import make_policy
from fewlabel.self_learning.statement import LabelStatements, RowSample

MAX_TRAIN = 100_000
"""Pseudo-labelled rows in a training set if rows are in chunks and ``max_train`` is None: memory
has to be bounded."""

MOST_UNLABELED = 1_000
"""Unlabelled rows that are kept for the statement of error."""

OF_ROWS = (
    "initial_votes_",
    "labeled_iter_",
    "pseudo_labels_",
    "transduction_",
    "transduction_proba_",
)
"""Attributes with an entry for each row, which a fit on rows in chunks does not leave behind."""


@dataclass(frozen=True, eq=False)
class ChunkedFit:
    """How an estimator learns from rows in chunks.

    Attributes
    ----------
    rows : Rows
    layout : object
        Brings chunks into the form of the labelled rows.
    learner : callable
        From the first pass to the learner.
    seed : int
        Of the samples.
    partitions : bool
        Whether each chunk grows its share of a forest's trees.
    columns : bool
        Whether the learner wants the columns summed up.
    """

    rows: Rows
    layout: Any
    learner: Callable[[Survey], Learner]
    seed: int
    partitions: bool = False
    columns: bool = False


class ChunkStatements(LabelStatements):
    """The part of a self-learning estimator that deals with rows in chunks."""

    max_train: int | None
    policy: Any
    label_proba: Any
    initial_estimator_: Any
    _on_disk: FittedRows | None = None

    def _task(self, *arguments: Any) -> Task:
        raise NotImplementedError

    def _schedule(self, seed: int, max_train: int | None, **own: Any) -> Schedule:
        raise NotImplementedError

    def _keep_outcome(self, outcome: Outcome) -> None:
        raise NotImplementedError

    # --- fitting -----------------------------------------------------------------------------

    def _learn_chunks(self, X: Any, codes: Ints, weight: Floats | None, how: ChunkedFit) -> Self:
        """Algorithm 1 on labelled rows in memory and unlabelled rows in chunks."""
        rows, label_proba = how.rows, named_label_proba(self.label_proba)
        if rows.out is not None:
            check_out(rows.out)  # now, not after hours of work
        for name in OF_ROWS:  # an earlier fit must not speak for this one
            if hasattr(self, name):
                delattr(self, name)
        self._labeled_rows, self._on_disk, self._sample = (X, codes), None, None
        wide = getattr(X, "shape", (0, None))[1:]
        search = _search_resolution(rows.resolution, make_policy(self.policy))
        with rows.opened(how.layout) as executor, result_folder(rows.out) as folder:
            survey = survey_rows(
                executor,
                rows.missing_label,
                seed=how.seed,
                n_features=wide[0] if wide else None,
                columns=how.columns,
            )
            schedule = self._schedule(
                how.seed,
                self.max_train or MAX_TRAIN,
                partitions=how.partitions,
                on_initial=self._on_initial,
                judge=lambda initial, votes: self._judge(initial, votes, survey, rows.max_error),
            )
            task = replace(
                self._task(X, codes, weight, how.learner(survey), label_proba),
                resolution=rows.resolution,
                search_resolution=search,
                missing_label=rows.missing_label,
                seed=how.seed,
            )
            results = Results(folder, rows.writer or ResultWriter())
            outcome = self_learn(executor, task, schedule, survey=survey, results=results)
        rows.n_unlabeled = outcome.n_unlabeled
        self._keep_outcome(outcome)
        self._keep_chunks(outcome, rows)
        return self

    def _codes_of_labeled(self, X: Any, y: ArrayLike) -> Ints:
        """Class codes of rows that must all have a label; sets ``classes_``."""
        codes, self.classes_ = encode_target(y, self.missing_label)
        if len(codes) != n_rows(X) or (codes == UNLABELED).any():
            raise ValueError(
                f"With `unlabeled`, X and y are the labelled rows only: a label for each row of X. "
                f"Got {n_rows(X)} rows and {int((codes != UNLABELED).sum())} labels."
            )
        return codes

    def _on_initial(self, model: Any) -> None:
        self.initial_estimator_ = model

    def _judge(self, initial: Floats, votes: Floats, survey: Survey, max_error: float) -> Judgement:
        """What is said of labels, by the votes for a sample of the rows."""
        self._transduction = Transduction(initial, votes, named_label_proba(self.label_proba))
        self._assessment = self._paper_bounds = self._unlabeled_sample = None
        if survey.sample is not None:
            few = np.arange(min(MOST_UNLABELED, n_rows(survey.sample)))
            self._unlabeled_sample = RowSample(take_rows(survey.sample, few), few)
        paper = self.paper_bounds_
        codes, held_out = paper.held_out.judged
        counts = held_out_counts(codes, held_out.argmax(axis=1), len(self.classes_))
        if len(votes):
            expected = expected_counts(votes.argmax(axis=1), paper.label_proba, max_iter=0)
            counts = counts + expected * (survey.n_unlabeled / len(votes))
        rule = LabelRule.of(self.assessment_.promise, max_error)
        shifts = paper.held_out.shifts(len(self.classes_))
        return Judgement(paper.power, rule, mislabeling_matrix(counts), shifts)

    def _keep_chunks(self, outcome: Outcome, rows: Rows) -> None:
        finished, judgement = outcome.finished, outcome.judgement
        assert judgement is not None  # rows in chunks are always judged
        if finished.statistics is not None:
            bound = transductive_bound(finished.statistics, tight=True)
            self._paper_bounds = replace(self.paper_bounds_, bound=bound)
        out = None if rows.out is None or rows.writer is not None else Path(rows.out)
        self._on_disk = FittedRows(
            judgement,
            finished,
            outcome.n_unlabeled,
            len(self.classes_),
            len(outcome.history),
            out,
        )
        truth = None if finished.sums is None else finished.sums.truth
        if truth is not None and truth.n_known and not truth.confusion.any():
            warnings.warn(
                f"No true label of the rows is one of the classes {self.classes_[:5]}: write both "
                f"alike.",
                stacklevel=4,
            )

    # --- what is said of rows in chunks --------------------------------------------------------

    def _accepted(self, max_error: float) -> Bools:
        if self._on_disk is None:
            return super()._accepted(max_error)
        return self._on_disk.accepted(self.assessment_.promise.least(max_error))

    def _audited(self, max_error: float | None) -> AuditedLabels:
        if self._on_disk is None:
            return super()._audited(max_error)
        least = None if max_error is None else self.assessment_.promise.least(max_error)
        return LabelsOnDisk(self._on_disk, self.classes_, max_error, least)

    def _sums(self, max_error: float, y_true: ArrayLike | None) -> tuple[LabelRule, LabelSums]:
        if self._on_disk is None:
            return super()._sums(max_error, y_true)
        if y_true is not None:
            raise ValueError(
                "True labels of rows in chunks are a column of theirs: fit with "
                "UnlabeledRows(..., truth=column)."
            )
        return self._on_disk.label_sums(max_error)

    def next_rows(self, n: int = 20) -> NextRows:
        """Unlabelled rows whose label would teach most, with their votes; see :meth:`suggest`."""
        check_is_fitted(self)
        return super().next_rows(n) if self._on_disk is None else self._on_disk.suggested(n)


def joined_with_sample(X: Any, survey: Survey) -> Any:
    """The labelled rows, and then those of the sample."""
    return X if survey.sample is None else join_rows([X, survey.sample])


def _search_resolution(of_rows: int | None, policy: Any) -> int | None:
    """Bins of the statistics that a policy sees: its own number, if the rows leave that open."""
    wanted: int | None = getattr(policy, "resolution", None)
    if of_rows is None or wanted is None:
        return wanted if of_rows is None else of_rows
    if wanted < 1 or of_rows % wanted:  # bins can be joined, not divided
        raise ValueError(
            f"The rows have resolution={of_rows}, which cannot be put into the {wanted} bins of "
            f"{type(policy).__name__}. Give it to one of them only, or to the rows a multiple of "
            f"{wanted}."
        )
    return of_rows
