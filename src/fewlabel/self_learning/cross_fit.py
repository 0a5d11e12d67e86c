"""Held-out errors of self-learning as a whole: Algorithm 1 without the labels of a fold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from fewlabel._core.arrays import Floats, Ints, RowView
from fewlabel._core.scikit import n_rows
from fewlabel.assess.assessment import SelfLearned
from fewlabel.assess.held_out import CANNOT_LEARN, cross_fit, folds_of, trained_share
from fewlabel.assess.out_of_sample import wrong_rows
from fewlabel.chunks.executor import MemoryExecutor
from fewlabel.chunks.loop import Schedule, self_learn
from fewlabel.chunks.source import join_rows
from fewlabel.chunks.steps import Task
from fewlabel.selection.learner import EstimatorLearner, Learner

N_FOLDS = 10
"""More than elsewhere: each run learns from nearly as many labels as the fit itself."""

MOST_ROUNDS = 2
"""Rounds in these runs; the first one pseudo-labels most rows."""

FOREST_TREES, FOREST_ROUNDS = 60, 1
"""Trees and rounds of a forest in these runs, which would take longer than the fit otherwise."""


def _cheaper(learner: Learner) -> tuple[Learner, int]:
    """The learner of these runs, and their rounds."""
    if not isinstance(learner, EstimatorLearner) or not learner.is_forest:
        return learner, MOST_ROUNDS
    n_trees = min(FOREST_TREES, learner.base.n_estimators)
    return EstimatorLearner(clone(learner.base).set_params(n_estimators=n_trees)), FOREST_ROUNDS


def cross_fitted_errors(
    task: Task, schedule: Schedule, unlabeled: Any, random_state: int = 0
) -> SelfLearned:
    """Which labelled rows get a wrong label from self-learning that had them as unlabelled rows.

    Parameters
    ----------
    task : Task
        With the labelled rows, all of which count.
    schedule : Schedule
        Of the fit.
    unlabeled : rows in the form of the labelled ones, or None
        Those that take part: some are enough to show what self-learning changes.
    random_state : int, default=0
        Of the folds.

    Returns
    -------
    self_learned : SelfLearned
        An error of 1 for a row whose class the other folds lack.
    """
    K, codes = len(task.classes), task.codes
    rows = task.X
    if unlabeled is not None and n_rows(unlabeled):
        rows = join_rows([rows, unlabeled])
    learner, rounds = _cheaper(task.learner)
    task = replace(task, learner=learner)
    schedule = replace(
        schedule,
        max_iter=rounds if schedule.max_iter is None else min(rounds, schedule.max_iter),
        on_round=lambda record: None,
    )

    def vote(train: Ints, test: Ints) -> Floats:
        votes = np.zeros((len(test), K))
        known = np.unique(codes[train])
        weight = None if task.weight is None else task.weight[train]
        part = replace(
            task,
            X=RowView(rows, train),
            codes=np.searchsorted(known, codes[train]),
            classes=task.classes[known],
            weight=weight,
            in_memory=True,
        )
        hidden = np.concatenate([test, np.arange(len(codes), n_rows(rows))])
        executor = MemoryExecutor(RowView(rows, hidden))
        try:
            self_learn(executor, part, schedule)
        except CANNOT_LEARN:
            if len(known) == K:
                raise  # not for want of a class: it is the estimator's own error
        else:
            votes[:, known] = executor.chunk["votes"][: len(test)]
        return votes

    folds = folds_of(len(codes), N_FOLDS, random_state)
    votes = cross_fit(vote, codes, K, folds)
    errors = wrong_rows(votes, codes).astype(np.float64)
    return SelfLearned(errors, trained_share(len(codes), N_FOLDS))
