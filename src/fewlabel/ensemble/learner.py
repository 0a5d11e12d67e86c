"""Trains mixed votes: first to learn Q, then again under the same Q."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from fewlabel._core.arrays import Floats, Ints, RowView
from fewlabel.assess.held_out import CANNOT_LEARN
from fewlabel.assess.prevalence import shifted
from fewlabel.ensemble.families import Family, Voter
from fewlabel.ensemble.family_trainer import FamilyTrainer
from fewlabel.ensemble.foundation import why_it_failed
from fewlabel.ensemble.kept_rounds import COMPARED_ROWS, kept_vote
from fewlabel.ensemble.mixed_vote import Evidence, MixedVote, VoterRecord
from fewlabel.ensemble.posterior import Posterior, gibbs_posterior, uniform_posterior
from fewlabel.ensemble.voter_votes import (
    VoterVotes,
    check_voters,
    has_votes,
    mix_votes,
    quadratic_losses,
)
from fewlabel.selection.training_set import TrainingSet

# A voter of less weight changes hardly a vote, and costs as much as any. Of many voters each may
# have little, so that it counts beside the heaviest, too.
_LEAST_WEIGHT = 0.03
_LEAST_RELATIVE = 0.1
# Votes of a voter that is trained again are kept up to so many cells (80 MB); those of a graph
# always, because it takes long to look for the neighbours of all rows.
_MOST_KEPT = 10_000_000


class TrainedFamily(NamedTuple):
    """A family's first voter, and its votes for the labelled rows without their labels."""

    family: Family
    voter: Voter
    held_out: Floats


@dataclass(frozen=True, eq=False)
class MixedVoteLearner:
    """A :class:`fewlabel.selection.learner.Learner` of several families of voters.

    Parameters
    ----------
    families : sequence of Family
    trainer : FamilyTrainer
        Of the rows of the fit, labelled or not.
    inverse_temperature : float
        How sharply Q follows the held-out losses; 0: every family weighs the same.
    time_budget : float or None
        Seconds that a family may take, see :class:`fewlabel.FewLabelClassifier`.
    max_train : int
        Rows that a family may be trained on in a later round, for the estimate of its time.
    on_family : callable
        Called with the VoterRecord of each family when it is trained or left out.
    on_start : callable, optional
        Called with a dict when a family begins to be trained.
    class_shares : ndarray of shape (n_classes,), optional
        The shares that votes shall be for; those of the training rows by default.
    balanced : bool, default=False
        Whether Q is learned from balanced errors.
    """

    families: Sequence[Family]
    trainer: FamilyTrainer
    inverse_temperature: float
    time_budget: float | None
    max_train: int
    on_family: Callable[[VoterRecord], None]
    on_start: Callable[[dict[str, Any]], None] = lambda record: None
    class_shares: Floats | None = None
    balanced: bool = False
    # Voters and their votes for all rows, by identity: each votes once, not for the rule, the round
    # and the result.
    _kept: dict[int, tuple[Voter, Floats]] = field(default_factory=dict)
    # Seconds of the families that are trained.
    _seconds: list[float] = field(default_factory=list)

    def train(self, training: TrainingSet, previous: MixedVote | None) -> MixedVote:
        """A mixed vote of families trained on these rows; Q is learned in the first round.

        Where a later round does not help, it is the vote before it.
        """
        vote = self.train_once(training, previous)
        if previous is None:
            return vote
        used = {id(voter) for model in (previous, vote) for voter in model.estimators}
        for voter in self._kept.keys() - used:
            del self._kept[voter]
        rows = RowView(training.X.table, self.trainer.unlabeled_at_random[:COMPARED_ROWS])
        return kept_vote(previous, vote, lambda model: self.votes(model, rows))

    def train_once(self, training: TrainingSet, previous: MixedVote | None) -> MixedVote:
        """The same, however a later round turns out."""
        # Small products in many threads wait for each other more than they compute, above all on a
        # busy machine, and their number changes the last digits.
        with threadpool_limits(1, user_api="blas"):
            return self._train(training, previous)

    def _train(self, training: TrainingSet, previous: MixedVote | None) -> MixedVote:
        rows, codes, weight = training.X.rows, training.codes, training.weight
        if previous is None:
            records, trained = self.train_families(training)
            return self._mix(records, trained, training.classes)
        pairs = self._pairs(previous)
        tasks = [
            partial(self.trainer.train, family, rows, codes, weight, like=voter)
            if family.refitted
            else partial(_same, voter)
            for family, voter in pairs
        ]
        refitted = self.trainer.run(tasks, [family for family, _ in pairs])
        voters = [
            self._shifted(voter, training) if family.refitted else voter
            for voter, (family, _) in zip(refitted, pairs)
        ]
        vote = MixedVote(voters, previous.weights, previous.classes)
        vote.evidence_ = previous.evidence_
        return vote

    def votes(self, model: MixedVote, X: RowView) -> Floats:
        """The mixed vote for rows of the fit."""
        total = np.zeros((len(X), self.trainer.n_classes))
        for q, (family, voter) in zip(model.weights, self._pairs(model)):
            total += q * self._votes_of(voter, family, X.rows)
        return total

    def _pairs(self, model: MixedVote) -> list[tuple[Family, Voter]]:
        by_name = {family.name: family for family in self.families}
        return [(by_name[voter.name], voter) for voter in model.estimators]

    def _votes_of(self, voter: Voter, family: Family, rows: Ints) -> Floats:
        n = len(self.trainer.codes)
        quick = family.refitted and not family.graph
        if quick and n * self.trainer.n_classes > _MOST_KEPT:
            return self.trainer.vote(voter, family, rows)
        if id(voter) not in self._kept:
            self._kept[id(voter)] = voter, self.trainer.vote(voter, family, np.arange(n))
        return self._kept[id(voter)][1][rows]

    # --- the first round ---

    def train_families(
        self, training: TrainingSet
    ) -> tuple[list[VoterRecord], list[TrainedFamily]]:
        """Train each family that can serve here on the labelled rows."""
        reasons = [
            self.trainer.reason_to_leave_out(family, self.time_budget, self.max_train)
            for family in self.families
        ]
        tasks = [
            partial(self._try_family, family, why, training)
            for family, why in zip(self.families, reasons)
        ]
        records: list[VoterRecord] = []
        trained: list[TrainedFamily] = []
        for record, found in self.trainer.run(tasks, self.families):
            records.append(record)
            self.on_family(record)
            if found is not None:
                trained.append(found)
        if not trained:
            reasons = [f"{record.title}: {record.left_out}" for record in records]
            raise ValueError(f"No family of voters could be trained. {'; '.join(reasons)}")
        return records, trained

    def _try_family(
        self, family: Family, why: str, training: TrainingSet
    ) -> tuple[VoterRecord, TrainedFamily | None]:
        self._tell_start(family)
        rows, codes, weight = training.X.rows, training.codes, training.weight
        start, accuracy, found = time.perf_counter(), float("nan"), None
        if not why:
            try:
                voter = self.trainer.train(family, rows, codes, weight)
                self.trainer.vote(voter, family, rows[:1])  # what has learned may still fail here
                held_out = self.trainer.held_out(family, voter)
                found = TrainedFamily(family, voter, self._shift_both(voter, held_out, training))
                accuracy = self.trainer.accuracy(found.held_out)
            except CANNOT_LEARN as error:
                why = f"it cannot learn from these rows ({str(error).rstrip('.')})"
                if family.package:
                    why = why_it_failed(family.package, error)
            except Exception as error:  # a foundation model may fail in any way
                if not family.package:
                    raise
                why = why_it_failed(family.package, error)
        seconds = time.perf_counter() - start
        self._seconds.append(seconds)
        return VoterRecord(family.name, family.title, 0.0, accuracy, seconds, why), found

    def _tell_start(self, family: Family) -> None:
        """Tell which family is trained, and about how long all of them will take from now on."""
        n, done = len(self.families), len(self._seconds)
        left = (n - done) * sum(self._seconds) / done if done else float("nan")
        place = {"position": self.families.index(family) + 1, "n_families": n}
        self.on_start({"training": family.title, **place, "seconds_left": left})

    def _shift_both(self, voter: Voter, held_out: Floats, training: TrainingSet) -> Floats:
        """Held-out votes for the wanted class shares, as the voter's will be from now on."""
        shift = self._shifted(voter, training).shift
        if shift is not None:
            voted = held_out.any(axis=1)
            held_out[voted] = shifted(held_out[voted], shift)
        return held_out

    def _shifted(self, voter: Voter, training: TrainingSet) -> Voter:
        """The voter, whose votes are for the wanted class shares from now on."""
        if self.class_shares is not None:
            weight = np.ones(len(training.codes)) if training.weight is None else training.weight
            counts = np.bincount(training.codes, weight, self.trainer.n_classes)
            # A class without a row gets no vote, whatever the ratio is.
            ratio = np.where(counts > 0, self.class_shares * weight.sum() / (counts + 1e-300), 1.0)
            # Pseudo-labels follow the corrected votes already: the given labels' part is left.
            given = weight[np.isin(training.X.rows, self.trainer.labeled)].sum()
            voter.shift = ratio ** (given / weight.sum())
        return voter

    @property
    def scored_codes(self) -> Ints:
        """Classes of the labelled rows that count in held-out errors."""
        return self.trainer.codes[self.trainer.labeled[self.trainer.scored]]

    def learn_q(self, evidence: VoterVotes) -> Posterior:
        """Q from the held-out votes of the families."""
        q = _gibbs(evidence, self.inverse_temperature)
        return Posterior(q, uniform_posterior(len(q)), evidence.errors, "gibbs")

    def _mix(
        self, records: list[VoterRecord], trained: list[TrainedFamily], classes: NDArray[Any]
    ) -> MixedVote:
        """Learn Q, and keep the voters that have weight."""
        scored = self.trainer.scored
        each = np.stack([t.held_out for t in trained])
        evidence = VoterVotes(each[:, scored], self.scored_codes, balanced=self.balanced)
        posterior = self.learn_q(evidence)
        weights = without_light_voters(posterior.weights)
        by_name = {t.family.name: float(q) for t, q in zip(trained, weights)}
        held_out = mix_votes(weights, each)
        held_out[~has_votes(weights, each)] = 0.0
        heavy = [t for t, q in zip(trained, weights) if q > 0]
        vote = MixedVote([t.voter for t in heavy], weights[weights > 0], classes, held_out)
        vote.evidence_ = Evidence(
            records=[r._replace(weight=by_name.get(r.name, 0.0)) for r in records],
            posterior=replace(posterior, weights=weights),
            held_out=each,
            scored=scored,
        )
        return vote


def _same(voter: Voter) -> Voter:
    return voter


def gibbs_weights(
    held_out: Floats, y: Ints, *, inverse_temperature: float, balanced: bool = False
) -> Floats:
    """Q of families with these held-out votes, as :class:`MixedVoteLearner` learns it."""
    evidence = VoterVotes(held_out, y, balanced=balanced)
    return without_light_voters(_gibbs(evidence, inverse_temperature))


def _gibbs(evidence: VoterVotes, inverse_temperature: float) -> Floats:
    """The Gibbs posterior with the quadratic loss, under a uniform prior."""
    votes = check_voters(evidence.held_out, "held_out")
    losses = quadratic_losses(votes, evidence.y, evidence.row_weights)
    return gibbs_posterior(losses, evidence.n_rows, inverse_temperature=inverse_temperature)


def without_light_voters(weights: Floats) -> Floats:
    """Q without the voters that hardly count."""
    least = min(_LEAST_WEIGHT, _LEAST_RELATIVE * weights.max())
    kept = np.where(weights < least, 0.0, weights)
    return kept / kept.sum()
