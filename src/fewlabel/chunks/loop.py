"""Algorithm 1 on unlabelled rows that are never in memory all at once.

The loop is that of :mod:`fewlabel.self_learning`, in terms of the steps of
:mod:`fewlabel.chunks.steps`. A
:class:`fewlabel.chunks.rows.Rows` object runs them over all chunks, here or elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from fewlabel._core.checks import check_weights
from fewlabel._core.scikit import check_features, indexable_rows, n_rows
from fewlabel._core.targets import UNLABELED, encode_target
from fewlabel.bounds.statistics import Floats, Ints, VoteStatistics
from fewlabel.bounds.transductive import transductive_bound
from fewlabel.chunks import steps
from fewlabel.chunks.rows import Rows, begin, join, same, total
from fewlabel.chunks.source import check_out, result_folder
from fewlabel.selection.policies import Decision
from fewlabel.selection.rounds import count_record, keep_record, reason_to_stop
from fewlabel.selection.training_set import quotas

if TYPE_CHECKING:
    from fewlabel.self_learning import SelfLearningClassifier

Learner = TypeVar("Learner", bound="SelfLearningClassifier")

MAX_TRAIN = 100_000
"""Trusted rows in a training set if ``max_train`` is not given: memory has to be bounded."""

_KEPT_IN_MEMORY = (
    "initial_votes_",
    "label_proba_",
    "labeled_iter_",
    "pseudo_labels_",
    "transduction_",
    "transduction_proba_",
)


# --- the loop --------------------------------------------------------------------------------


def learn_in_chunks(
    classifier: Learner,
    X: Any,
    y: ArrayLike,
    rows: Rows,
    policy: Any,
    sample_weight: ArrayLike | None = None,
    fit_params: dict[str, Any] | None = None,
) -> Learner:
    """Fit a self-learning classifier on labelled rows in memory and unlabelled rows in chunks."""
    if not hasattr(policy, "from_statistics"):
        raise TypeError(
            f"{type(policy).__name__} has no method from_statistics(statistics, iteration), which "
            f"a policy needs for rows that are not in memory."
        )
    if fit_params:
        raise ValueError(f"{', '.join(fit_params)}: no metadata can be passed with `unlabeled`.")
    if rows.out is not None:
        check_out(rows.out)  # now, not after hours of work
    task = _task(classifier, X, y, rows, policy, sample_weight)
    for name in _KEPT_IN_MEMORY:  # an earlier fit must not speak for this one
        if hasattr(classifier, name):
            delattr(classifier, name)
    with rows.opened(rows.layout_like(X)), result_folder(rows.out) as folder:
        _Loop(classifier, rows, task, policy).learn(folder)
    return classifier


def _task(
    classifier: SelfLearningClassifier,
    X: Any,
    y: ArrayLike,
    rows: Rows,
    policy: Any,
    sample_weight: ArrayLike | None,
) -> steps.Task:
    check_features(classifier, X, reset=True)
    X = indexable_rows(X)
    codes, classifier.classes_ = encode_target(y, classifier.missing_label)
    if len(codes) != n_rows(X) or (codes == UNLABELED).any():
        raise ValueError(
            f"With `unlabeled`, X and y are the labelled rows only: a label for each row of X. Got "
            f"{n_rows(X)} rows and {int((codes != UNLABELED).sum())} labels."
        )
    most = np.iinfo(steps.MARKS["code"]).max
    if len(classifier.classes_) > most:
        raise ValueError(f"y has {len(classifier.classes_)} classes; `unlabeled` allows {most}.")
    seeds = check_random_state(classifier.random_state).randint(np.iinfo(np.int32).max, size=2)
    return steps.Task(
        X=X,
        codes=codes,
        weight=None if sample_weight is None else check_weights(sample_weight, len(codes)),
        classes=classifier.classes_,
        base=classifier._base_estimator(int(seeds[0])),
        balanced=classifier.pseudo_weight == "balanced",
        max_train=classifier.max_train or MAX_TRAIN,
        label_proba=steps.named_label_proba(classifier),
        resolution=rows.resolution,
        search_resolution=_search_resolution(rows.resolution, policy),
        seed=int(seeds[1]),
    )


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


class _Loop:
    """One fit."""

    def __init__(self, classifier: Any, rows: Rows, task: steps.Task, policy: Any) -> None:
        self.clf, self.rows, self.policy = classifier, rows, policy
        self.settings = task  # here; `task` is the copy that was sent to where the steps run
        self.task = rows.call(same, task)
        self.partitions = rows.train == "partitions" and steps.is_forest(task.base)

    def learn(self, folder: Path | None) -> None:
        clf, K = self.clf, len(self.settings.classes)
        clf.history_, clf.thresholds_ = [], np.full(K, np.nan)
        self.offsets, self.n_unlabeled = begin(self.rows)
        self.trusted = np.zeros((len(self.offsets), K), dtype=np.int64)
        self.pieces: tuple[str, ...] = ("X", "marks")
        estimator = self.rows.call(
            steps.fit_drawn, None, task=self.task, trusted=self.trusted.sum(axis=0)
        )
        clf.initial_estimator_ = self.rows.fetch(estimator)
        statistics = self._vote(estimator)
        while statistics is not None:
            next_estimator = self._round(statistics)
            if next_estimator is None:
                break
            estimator, statistics = next_estimator
        else:
            clf.termination_condition_ = "all_labeled" if self.n_unlabeled else "no_unlabeled"
        self._finish(estimator, folder)

    def _round(self, statistics: VoteStatistics) -> tuple[Any, VoteStatistics | None] | None:
        """The next classifier and the statistics of its votes, or None if it is time to stop."""
        clf, iteration = self.clf, len(self.clf.history_) + 1
        seconds: dict[str, float] = {}
        with _stopwatch(seconds, "search"):
            decision: Decision = self.policy.from_statistics(statistics, iteration)
            thresholds, errors = decision
            counts = self.rows.run(steps.count, join, ("ballot",), thresholds=thresholds)
        selected = np.array([counts[position] for position in range(len(counts))])
        stop = reason_to_stop(
            int(selected.sum()), self.n_unlabeled, iteration - 1, clf.max_iter, clf.min_gain
        )
        if stop:
            clf.termination_condition_ = stop
            return None
        clf.thresholds_ = thresholds
        self._trust(thresholds, iteration, selected)
        with _stopwatch(seconds, "fit"):
            estimator = self._train(iteration)
        with _stopwatch(seconds, "votes"):
            left = self._vote(estimator)
        per_class = selected.sum(axis=0)
        keep_record(
            clf, count_record(iteration, statistics.n_rows, thresholds, errors, per_class, seconds)
        )
        return estimator, left

    def _vote(self, estimator: Any) -> VoteStatistics | None:
        makes: tuple[str, ...] = ("ballot",)
        if self.settings.label_proba == "supervised" and "proba" not in self.pieces:
            makes += ("proba",)
        statistics: VoteStatistics | None = self.rows.run(
            steps.vote,
            steps.merge_statistics,
            self.pieces,
            makes,
            estimator=estimator,
            task=self.task,
        )
        self.pieces += makes[1:]
        return statistics

    def _trust(self, thresholds: Floats, iteration: int, selected: Ints) -> None:
        self.rows.run(
            steps.trust,
            total,
            ("marks", "ballot"),
            ("marks",),
            thresholds=thresholds,
            iteration=iteration,
        )
        self.trusted += selected

    def _train(self, iteration: int) -> Any:
        rng = np.random.default_rng([self.settings.seed, iteration])
        seed, uses = int(rng.integers(2**31)), ("X", "marks")
        if self.partitions:
            trees = allot_trees(self.trusted.sum(axis=1), self._n_trees(), rng.random())
            take = [quotas(own, self.settings.max_train) for own in self.trusted]
            return self.rows.run(
                steps.grow,
                steps.merge_forests,
                uses,
                each={"n_trees": trees.tolist(), "take": take},
                keep=True,
                task=self.task,
                seed=seed,
            )
        trusted = self.trusted.sum(axis=0)
        take = list(allot_rows(self.trusted, quotas(trusted, self.settings.max_train), rng))
        drawn = self.rows.run(
            steps.draw, steps.merge_drawn, uses, each={"take": take}, keep=True, seed=seed
        )
        return self.rows.call(steps.fit_drawn, drawn, task=self.task, trusted=trusted)

    def _n_trees(self) -> int:
        return int(self.settings.base.get_params()["n_estimators"])

    def _finish(self, estimator: Any, folder: Path | None) -> None:
        clf, K = self.clf, len(self.settings.classes)
        statistics: VoteStatistics | None = self.rows.run(
            steps.finish,
            steps.merge_statistics,
            self.pieces,
            each={"offset": self.offsets},
            estimator=estimator,
            task=self.task,
            folder=folder,
        )
        clf.estimator_ = self.rows.fetch(estimator)
        clf.n_iter_ = len(clf.history_)
        clf.risk_bound_, clf.confusion_bound_ = float("nan"), np.full((K, K), np.nan)
        if statistics is not None:
            bound = transductive_bound(statistics, tight=True)
            clf.risk_bound_, clf.confusion_bound_ = bound.risk, bound.confusion


@contextmanager
def _stopwatch(seconds: dict[str, float], what: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds[what] = time.perf_counter() - start


# --- who trains on what ----------------------------------------------------------------------


def allot_rows(counts: Ints, quota: Ints, rng: np.random.Generator) -> Ints:
    """How many rows of each class to draw from each chunk, as a simple random sample would.

    The numbers that fall on the chunks are known to the last row, so no reservoir is needed: a
    hypergeometric draw says how many come from each chunk, and one pass collects them.
    """
    take = np.empty_like(counts)
    for c, wanted in enumerate(quota):
        own = counts[:, c]
        if own.sum() < 10**9:  # NumPy's limit
            take[:, c] = rng.multivariate_hypergeometric(own, wanted, method="marginals")
        else:  # among so many rows, with and without replacement are the same
            take[:, c] = np.minimum(own, rng.multinomial(wanted, own / own.sum()))
    return take


def allot_trees(trusted: Ints, n_trees: int, offset: float) -> Ints:
    """Trees for each chunk in proportion to its trusted rows (systematic sampling)."""
    points = (np.arange(n_trees) + offset) / n_trees * trusted.sum()
    chunk = np.searchsorted(np.cumsum(trusted), points, side="right")
    return np.bincount(chunk, minlength=len(trusted))
