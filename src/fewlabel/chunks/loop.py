r"""Algorithm 1, the multi-class self-learning algorithm MSLA (Section 4.4): the one loop.

1. Train on the labelled rows; its votes stand for :math:`P(Y\mid x)` of the unlabelled ones.
2. Find thresholds from the votes on the rows that are left (a policy).
3. Rows whose winning vote reaches its threshold get that class as pseudo-label.
4. Train on labelled and pseudo-labelled rows; go on with 2 until no row is left or selected.

The loop is written in the steps of :mod:`fewlabel.chunks.steps`. An executor runs them over the
chunks of the unlabelled rows, which are one chunk in memory, many on disk or on a cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fewlabel._core.arrays import Floats, Ints
from fewlabel.bounds.cells import Statistics
from fewlabel.chunks import steps
from fewlabel.chunks.executor import Executor, first_look, join, same, total
from fewlabel.chunks.finish import Finished, Judgement, PartWriter, finish, merge_finished
from fewlabel.chunks.survey import Survey, offsets_of, sample_votes
from fewlabel.selection.policies import Policy, Selection
from fewlabel.selection.rounds import reason_to_stop, round_record
from fewlabel.selection.training_set import quotas


@dataclass(frozen=True)
class Schedule:
    """How to go on from round to round.

    Attributes
    ----------
    policy : Policy
    max_iter, min_gain, max_train : see :class:`fewlabel.SelfLearningClassifier`
    seed : int
        Of the samples that ``max_train`` needs.
    on_round : callable
        Called with the record of each round when it is complete.
    on_initial : callable
        Called with the first model when it is trained.
    judge : callable or None
        From the votes of the first and of the final model for a sample of rows to what is said of
        labels in the last pass; None for rows in memory, which are judged when somebody asks.
    partitions : bool
        Whether each chunk grows its share of a forest's trees on its own pseudo-labelled rows.
    """

    policy: Policy
    max_iter: int | None
    min_gain: float
    max_train: int | None
    seed: int
    on_round: Callable[[dict[str, Any]], None]
    on_initial: Callable[[Any], None] = lambda model: None
    judge: Callable[[Floats, Floats], Judgement] | None = None
    partitions: bool = False


@dataclass(frozen=True, eq=False)
class Outcome:
    """What self-learning leaves behind.

    Attributes
    ----------
    initial, final : the model of the labelled rows alone, and the last one
    history : list of dict, a record for each round
    thresholds : ndarray of shape (n_classes,)
        Of the last round; NaN if there was none.
    termination : str
    n_unlabeled : int
    finished : Finished
        What the last pass leaves of all unlabelled rows.
    judgement : Judgement or None
        By which rows in chunks were judged.
    """

    initial: Any
    final: Any
    history: list[dict[str, Any]]
    thresholds: Floats
    termination: str
    n_unlabeled: int
    finished: Finished
    judgement: Judgement | None = None


class Results(NamedTuple):
    """Where the results of each chunk go, and who writes them."""

    folder: Path | None
    writer: PartWriter


def self_learn(
    executor: Executor,
    task: steps.Task,
    schedule: Schedule,
    *,
    survey: Survey | None = None,
    results: Results | None = None,
) -> Outcome:
    """Run Algorithm 1; ``survey`` is the first pass over rows in chunks, if it was made."""
    return _Loop(executor, task, schedule).learn(survey, results)


class _Loop:
    def __init__(self, executor: Executor, task: steps.Task, schedule: Schedule) -> None:
        self.executor, self.schedule = executor, schedule
        self.settings = task  # here; `task` is the copy that was sent to where the steps run
        self.task = executor.call(same, task)
        self.history: list[dict[str, Any]] = []
        self.thresholds = np.full(len(task.classes), np.nan)
        self.pieces: tuple[str, ...] = ("X", "marks")

    def learn(self, survey: Survey | None, results: Results | None) -> Outcome:
        looks = survey.looks if survey else first_look(self.executor, self.settings.missing_label)
        self.n_unlabeled = sum(look.n_unlabeled for look in looks)
        # How many rows of each chunk have each pseudo-label.
        self.counts = np.zeros((len(looks), len(self.settings.classes)), dtype=np.int64)
        initial = self._fit(None, None)
        first = self.executor.fetch(initial)
        self.schedule.on_initial(first)
        model, stop = self._rounds(initial)
        judgement = self._judgement(initial, model, survey)
        return Outcome(
            initial=first,
            final=self.executor.fetch(model),
            history=self.history,
            thresholds=self.thresholds,
            termination=stop or ("all_labeled" if self.n_unlabeled else "no_unlabeled"),
            n_unlabeled=self.n_unlabeled,
            finished=self._finish(
                model,
                initial=initial,
                judgement=judgement,
                n_rounds=len(self.history),
                each={"offset": offsets_of(looks)},
                folder=None if results is None else results.folder,
                writer=None if results is None else results.writer,
            ),
            judgement=judgement,
        )

    def _rounds(self, model: Any) -> tuple[Any, str | None]:
        """The last model, and why it is the last."""
        statistics = self._vote(model)
        while statistics is not None:
            start = time.perf_counter()
            iteration = len(self.history) + 1
            selection = self._select(statistics, iteration)
            selected = self._count(selection)
            seconds = {"search": time.perf_counter() - start}
            stop = self._reason_to_stop(int(selected.sum()))
            if stop:
                return model, stop
            model, left = self._round(selection, selected, model, seconds)
            self.history.append(
                round_record(iteration, statistics.n_rows, selection, selected.sum(axis=0), seconds)
            )
            self.schedule.on_round(self.history[-1])
            if left is None and self.counts.sum() < self.n_unlabeled:
                return model, "max_iter"
            statistics = left
        return model, None

    def _judgement(self, initial: Any, model: Any, survey: Survey | None) -> Judgement | None:
        if self.schedule.judge is None:
            return None
        K = len(self.settings.classes)
        votes = np.empty((0, K)), np.empty((0, K))
        if survey is not None and survey.sample is not None:
            task = self.task
            handle = self.executor.call(sample_votes, survey.sample, initial, model, task=task)
            votes = self.executor.fetch(handle)
        return self.schedule.judge(*votes)

    def _select(self, statistics: Statistics, iteration: int) -> Selection:
        selection = self.schedule.policy.select(statistics, iteration)
        if np.shape(selection.thresholds) != self.thresholds.shape:
            raise ValueError(
                f"A policy must give one threshold for each class, shape {self.thresholds.shape}. "
                f"{type(self.schedule.policy).__name__} gave {np.shape(selection.thresholds)}."
            )
        return selection

    def _count(self, selection: Selection) -> Ints:
        """Rows of each chunk and class that the thresholds select."""
        thresholds = selection.thresholds
        counts = self.executor.run(steps.count, join, ("ballot",), thresholds=thresholds)
        return np.array([counts[position] for position in range(len(counts))])

    def _reason_to_stop(self, n_selected: int) -> str | None:
        rounds, schedule = len(self.history), self.schedule
        return reason_to_stop(
            n_selected, self.n_unlabeled, rounds, schedule.max_iter, schedule.min_gain
        )

    def _round(
        self, selection: Selection, selected: Ints, model: Any, seconds: dict[str, float]
    ) -> tuple[Any, Statistics | None]:
        """Pseudo-label, train, vote: the next model, and its votes on the rows that are left."""
        iteration, self.thresholds = len(self.history) + 1, selection.thresholds
        self.executor.run(
            steps.pseudo_label,
            total,
            ("marks", "ballot"),
            ("marks",),
            thresholds=selection.thresholds,
            iteration=iteration,
        )
        self.counts += selected
        with _stopwatch(seconds, "fit"):
            model = self._train(model, iteration)
        with _stopwatch(seconds, "votes"):
            # Rows in chunks are voted on in the last pass anyway, whose votes are not kept.
            is_last = iteration == self.schedule.max_iter and not self.settings.in_memory
            return model, None if is_last else self._vote(model)

    def _vote(self, model: Any) -> Statistics | None:
        makes: tuple[str, ...] = ("ballot",)
        if self.settings.label_proba == "supervised" and "proba" not in self.pieces:
            makes += ("proba",)
        if self.settings.in_memory:
            makes += (
                ("votes",) if self.history or "initial" in self.pieces else ("votes", "initial")
            )
        statistics: Statistics | None = self.executor.run(
            steps.vote, steps.merge_statistics, self.pieces, makes, model=model, task=self.task
        )
        self.pieces = tuple(dict.fromkeys((*self.pieces, *makes[1:])))
        return statistics

    def _train(self, previous: Any, iteration: int) -> Any:
        rng = np.random.default_rng([self.schedule.seed, iteration])
        seed, uses, max_train = int(rng.integers(2**31)), ("X", "marks"), self.schedule.max_train
        if self.schedule.partitions:
            return self.executor.run(
                steps.grow,
                steps.merge_forests,
                uses,
                each={
                    "n_trees": self._allot_trees(rng.random()).tolist(),
                    "take": [quotas(own, max_train) for own in self.counts],
                },
                keep=True,
                task=self.task,
                seed=seed,
            )
        take = allot_rows(self.counts, quotas(self.counts.sum(axis=0), max_train), rng)
        drawn = self.executor.run(
            steps.draw, steps.merge_drawn, uses, each={"take": list(take)}, keep=True, seed=seed
        )
        return self._fit(drawn, previous)

    def _fit(self, drawn: Any, previous: Any) -> Any:
        counts = self.counts.sum(axis=0)
        return self.executor.call(
            steps.train, drawn, previous, task=self.task, n_pseudo_labeled=counts
        )

    def _allot_trees(self, offset: float) -> Ints:
        learner: Any = self.settings.learner
        n_trees = int(learner.base.get_params()["n_estimators"])
        return allot_trees(self.counts.sum(axis=1), n_trees, offset)

    def _finish(self, model: Any, **arguments: Any) -> Finished:
        makes = ("votes",) if self.settings.in_memory else ()
        finished: Finished = self.executor.run(
            finish,
            merge_finished,
            self.pieces,
            makes,
            model=model,
            task=self.task,
            **arguments,
        )
        return finished


@contextmanager
def _stopwatch(seconds: dict[str, float], what: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds[what] = time.perf_counter() - start


# --- which chunk contributes what --------------------------------------------------------------


def allot_rows(counts: Ints, quota: Ints, rng: np.random.Generator) -> Ints:
    """How many rows of each class to draw from each chunk, as a simple random sample would.

    The numbers that fall on the chunks are known to the last row, so no reservoir is needed: a
    hypergeometric draw says how many come from each chunk, and one pass collects them.
    """
    if len(counts) == 1:
        return quota[None]
    take = np.empty_like(counts)
    for c, wanted in enumerate(quota):
        own = counts[:, c]
        if own.sum() < 10**9:  # NumPy's limit
            take[:, c] = rng.multivariate_hypergeometric(own, wanted, method="marginals")
        else:  # among so many rows, with and without replacement are the same
            take[:, c] = np.minimum(own, rng.multinomial(wanted, own / own.sum()))
    return take


def allot_trees(n_pseudo_labeled: Ints, n_trees: int, offset: float) -> Ints:
    """Trees for each chunk in proportion to its pseudo-labelled rows (systematic sampling)."""
    points = (np.arange(n_trees) + offset) / n_trees * n_pseudo_labeled.sum()
    chunk = np.searchsorted(np.cumsum(n_pseudo_labeled), points, side="right")
    return np.bincount(chunk, minlength=len(n_pseudo_labeled))
