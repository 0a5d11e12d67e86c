"""The mixed vote for rows in chunks: families train on few rows here, voters travel to the rows.

All that a family trains on fits in memory: the labelled rows, the pseudo-labelled rows drawn for a
round (at most ``max_train``), and a random sample of the unlabelled rows, which carries the graphs
and what semi-supervised families learn from. Scales come from sums over all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.decomposition import TruncatedSVD
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fewlabel._core.arrays import Floats, Ints, RowView
from fewlabel._core.scikit import n_rows, take_rows
from fewlabel._core.targets import UNLABELED
from fewlabel.assess.held_out import CANNOT_LEARN
from fewlabel.bounds.votes import vote_matrix
from fewlabel.chunks.source import join_rows
from fewlabel.chunks.survey import ColumnSums
from fewlabel.ensemble.families import Family, RangeScaler, Voter
from fewlabel.ensemble.family_trainer import (
    ALWAYS_FAST,
    N_VECTORS,
    TRIED_ROWS,
    FamilyTrainer,
)
from fewlabel.ensemble.kept_rounds import COMPARED_ROWS, kept_vote
from fewlabel.ensemble.learner import MixedVoteLearner
from fewlabel.ensemble.mixed_vote import MixedVote, VoterRecord
from fewlabel.selection.training_set import TrainingSet


def fitted_scaler(scaling: str, columns: ColumnSums, *, sparse: bool) -> Any:
    """The scaler that would have been fitted on all rows, from their sums.

    Parameters
    ----------
    scaling : {"standard", "range"}
        As in :class:`fewlabel.ensemble.families.Family`.
    columns : ColumnSums
        Of all rows.
    sparse : bool
        Whether rows are sparse: then they are divided only.
    """
    if scaling == "standard":
        return _standard_scaler(columns, sparse=sparse)
    scaler = RangeScaler()
    low, high = columns.low, columns.high
    if sparse:
        largest = np.maximum(np.abs(low), np.abs(high))
        scaler.low_, scaler.span_ = np.zeros_like(low), np.where(largest > 0, largest, 1.0)
        return scaler
    wide = high > low
    scaler.low_ = np.where(columns.binary, 0, np.where(wide, (high + low) / 2, low))
    scaler.span_ = np.where(columns.binary | ~wide, 1, (high - low) / 2)
    return scaler


def _standard_scaler(columns: ColumnSums, *, sparse: bool) -> StandardScaler:
    scaler, n, variance = StandardScaler(with_mean=not sparse), columns.n, columns.variance
    # A column that rounding alone makes vary is a constant, as scikit-learn has it.
    eps = np.finfo(np.float64).eps
    constant = variance <= n * eps * variance + np.square(n * columns.mean * eps)
    scaler.mean_, scaler.var_ = columns.mean, variance
    scaler.scale_ = np.where(constant, 1.0, np.sqrt(variance))
    scaler.n_samples_seen_ = int(n.max(initial=0))
    scaler.n_features_in_ = len(n)
    return scaler


class SampleTrainer(FamilyTrainer):
    """Trains families on labelled rows, a sample of the unlabelled ones, and rows of a round.

    Parameters
    ----------
    parts : sequence of rows
        Labelled rows, the sample, and the pseudo-labelled rows that were drawn.
    codes : ndarray of int of shape (n_labeled,)
    n_classes, seed, n_jobs, labeled_weight : as in :class:`FamilyTrainer`
    columns : ColumnSums
        Of all rows.
    n_all : int
        Number of all rows, which the voters will have to vote on.
    n_workers : int
        How many of them vote at once.
    """

    def __init__(
        self,
        parts: Sequence[Any],
        codes: Ints,
        n_classes: int,
        seed: int,
        n_jobs: int | None,
        labeled_weight: Floats | None,
        *,
        columns: ColumnSums,
        n_all: int,
        n_workers: int,
    ) -> None:
        X = join_rows(list(parts))
        every = np.full(n_rows(X), UNLABELED)
        every[: len(codes)] = codes
        super().__init__(X, every, n_classes, seed, n_jobs, labeled_weight)
        # The rows of a round are no random ones. A sample that is all of the rows is shuffled as
        # they are in memory, so that families which see a part of them see the same.
        shuffled = np.random.default_rng(seed).permutation(n_rows(parts[1]))
        self.unlabeled_at_random = len(codes) + shuffled
        self.columns, self.n_all, self.n_workers = columns, n_all, n_workers
        self.row_seconds: dict[str, float] = {}
        self._tried: dict[str, Voter] = {}

    def view_of(self, family: Family) -> tuple[Any, Any]:
        """See :class:`FamilyTrainer`; singular vectors are those of the sample, in every round."""
        key = f"vectors, {family.scaling}"
        if issparse(self.X) and not family.sparse and key not in self._views:
            some = take_rows(self.X, np.concatenate([self.labeled, self.unlabeled_at_random]))
            n_components = min(N_VECTORS, min(some.shape) - 1)
            vectors = TruncatedSVD(max(n_components, 1), random_state=self.seed)
            scaler = make_pipeline(vectors, StandardScaler()).fit(some)
            self._views[key] = scaler, scaler.transform(self.X)
        return super().view_of(family)

    def view(self, scaling: str) -> tuple[Any, Any]:
        """The scaler of all rows, and the rows here as it makes them."""
        if scaling not in self._views:
            sparse = issparse(self.X)
            scaler = fitted_scaler(scaling, self.columns, sparse=sparse)
            scaled = scaler.transform(self.X)
            if not sparse or np.isnan(scaled.data).any():
                # Medians do not add up; those of the sample will do.
                some = np.concatenate([self.labeled, self.unlabeled_at_random])
                fill = SimpleImputer(strategy="median", keep_empty_features=True)
                fill.fit(take_rows(scaled, some))
                scaled, scaler = fill.transform(scaled), make_pipeline(scaler, fill)
            self._views[scaling] = scaler, scaled
        return self._views[scaling]

    def train(
        self,
        family: Family,
        rows: Ints,
        codes: Ints,
        weight: Floats | None = None,
        *,
        like: Voter | None = None,
        held_out: bool = False,
    ) -> Voter:
        """See :class:`FamilyTrainer`; what was trained for a trial is not trained again."""
        is_first = like is None and weight is None and np.array_equal(rows, self.labeled)
        if is_first and family.name in self._tried:
            return self._tried.pop(family.name)
        return super().train(family, rows, codes, weight, like=like, held_out=held_out)

    def reason_to_leave_out(self, family: Family, seconds: float | None, max_train: int) -> str:
        """Why a family cannot serve here, or an empty text; what a row costs is measured."""
        why = super().reason_to_leave_out(family, None, max_train)
        if why or seconds is None or self.n_all <= ALWAYS_FAST:
            return why
        expected = self._expected_seconds(family, max_train)
        if expected <= seconds:
            return ""
        del self._tried[family.name]
        cost = self.row_seconds[family.name] * 1e6
        return (
            f"it would take about {expected:,.0f} s for {self.n_all:,} rows ({cost:.0f} µs a row), "
            f"more than the {seconds:,.0f} s allowed"
        )

    def _expected_seconds(self, family: Family, max_train: int) -> float:
        start = perf_counter()
        try:
            voter = self.train(family, self.labeled, self.codes[self.labeled])
            fitted = perf_counter()
            few = take_rows(self.X, self.unlabeled_at_random[:TRIED_ROWS])
            voter.predict_proba(few)
        except CANNOT_LEARN:
            return 0.0  # the real fit will say what is wrong
        cost = (perf_counter() - fitted) / max(n_rows(few), 1)
        if hasattr(voter.model, "support_vectors_"):
            cost *= max(1.0, max_train / len(self.labeled))
        self._tried[family.name], self.row_seconds[family.name] = voter, cost
        return (fitted - start) + cost * self.n_all / self.n_workers


def _silent(record: VoterRecord) -> None:
    """The records of families are told when the model comes back from where it was trained."""


@dataclass(frozen=True, eq=False)
class SampledLearner:
    """A :class:`fewlabel.selection.learner.Learner` of several families, for rows in chunks.

    Parameters
    ----------
    families, inverse_temperature, time_budget, max_train, class_shares, balanced :
        as in :class:`MixedVoteLearner`
    sample : rows
        Unlabelled rows drawn at random, in the order of the chunks.
    columns : ColumnSums
        Of all rows, labelled and unlabelled.
    codes : ndarray of int of shape (n_labeled,)
    n_classes, seed, n_jobs, labeled_weight : as in :class:`FamilyTrainer`
    n_all, n_workers : as in :class:`SampleTrainer`
    """

    families: Sequence[Family]
    inverse_temperature: float
    time_budget: float | None
    max_train: int
    sample: Any
    columns: ColumnSums
    codes: Ints
    n_classes: int
    seed: int
    n_jobs: int | None
    labeled_weight: Floats | None
    n_all: int
    n_workers: int = 1
    class_shares: Floats | None = None
    balanced: bool = False

    @cached_property
    def _index(self) -> RowIndex:
        return RowIndex(self.sample)

    def train(self, training: TrainingSet, previous: MixedVote | None) -> MixedVote:
        """See :class:`MixedVoteLearner`."""
        trainer, at = self._trainer(training.X)
        learner = self._learner(trainer)
        vote = learner.train_once(replace(training, X=RowView(trainer.X, at)), previous)
        if previous is not None:
            compared = trainer.unlabeled_at_random[:COMPARED_ROWS] - len(self.codes)
            some = take_rows(self.sample, compared)
            return kept_vote(previous, vote, lambda model: self.votes(model, some))
        seconds = trainer.row_seconds
        timed = [
            record._replace(row_seconds=seconds.get(record.name, float("nan")))
            for record in vote.evidence_.records
        ]
        vote.evidence_ = replace(vote.evidence_, records=timed)
        return vote

    def _trainer(self, rows: Any) -> tuple[SampleTrainer, Ints]:
        """The labelled rows, the sample and the rows of a round; where ``rows`` stand in them."""
        n = len(self.codes)
        labeled, drawn = np.arange(n), np.arange(n, n_rows(rows))
        parts = [take_rows(rows, labeled), self.sample]
        at = labeled
        if len(drawn):
            # A row of the sample that was drawn is one row: it carries the graphs, too.
            known = self._index.find(take_rows(rows, drawn))
            others = drawn[known < 0]
            parts.append(take_rows(rows, others))
            behind = n + n_rows(self.sample) + np.cumsum(known < 0) - 1
            at = np.concatenate([labeled, np.where(known < 0, behind, n + known)])
        trainer = SampleTrainer(
            parts,
            self.codes,
            self.n_classes,
            self.seed,
            self.n_jobs,
            self.labeled_weight,
            columns=self.columns,
            n_all=self.n_all,
            n_workers=self.n_workers,
        )
        return trainer, at

    def _learner(self, trainer: SampleTrainer) -> MixedVoteLearner:
        return MixedVoteLearner(
            families=self.families,
            trainer=trainer,
            inverse_temperature=self.inverse_temperature,
            time_budget=self.time_budget,
            max_train=self.max_train,
            on_family=_silent,
            class_shares=self.class_shares,
            balanced=self.balanced,
        )

    def votes(self, model: MixedVote, X: Any) -> Floats:
        """The mixed vote for rows of a chunk: rows of the sample vote by the graphs they carry."""
        votes = vote_matrix(model, X)
        pairs = zip(model.weights, model.estimators)
        graphs = [(q, voter) for q, voter in pairs if voter.transductive]
        if not graphs:
            return votes
        known = self._index.find(X)
        inside = np.flatnonzero(known >= 0)
        if len(inside) == 0:
            return votes
        rows, place = take_rows(X, inside), len(self.codes) + known[inside]
        for q, voter in graphs:
            own = voter.finish(voter.model.label_distributions_[place])
            votes[inside] += q * (own - voter.predict_proba(rows))
        return votes


class RowIndex:
    """Finds rows that are equal to known ones.

    Parameters
    ----------
    X : ndarray or csr matrix
        The known rows.

    Examples
    --------
    >>> RowIndex(np.eye(3)).find(np.array([[0.0, 1.0, 0.0], [2.0, 0.0, 0.0]])).tolist()
    [1, -1]
    """

    def __init__(self, X: Any) -> None:
        self._at: dict[bytes, int] = {}
        for position, key in enumerate(_row_keys(X)):
            self._at.setdefault(key, position)

    def find(self, X: Any) -> Ints:
        """Position of an equal row among the known ones, for each row; -1 if there is none."""
        found = (self._at.get(key, -1) for key in _row_keys(X))
        return np.fromiter(found, dtype=np.intp, count=n_rows(X))


def _row_keys(X: Any) -> Iterator[bytes]:
    matrix: Any = X
    if not issparse(X):
        return (row.tobytes() for row in np.ascontiguousarray(matrix))
    matrix = matrix.tocsr()
    ends = zip(matrix.indptr[:-1], matrix.indptr[1:])
    return (matrix.indices[a:b].tobytes() + matrix.data[a:b].tobytes() for a, b in ends)
