"""Held-out errors of self-learning as a whole: Algorithm 1 without the labels of a fold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fewlabel._core.arrays import Floats, Ints, RowView
from fewlabel._core.scikit import n_rows
from fewlabel.assess.held_out import CANNOT_LEARN, N_FOLDS, cross_fit, folds_of
from fewlabel.assess.out_of_sample import wrong_rows
from fewlabel.chunks.executor import MemoryExecutor
from fewlabel.chunks.loop import Schedule, self_learn
from fewlabel.chunks.source import join_rows
from fewlabel.chunks.steps import Task

MOST_ROUNDS = 4
FEWER_TREES = 50
"""Trees of a forest in these runs: their votes are counted, not shown."""


def cross_fitted_errors(
    task: Task, schedule: Schedule, unlabeled: Any, random_state: int = 0
) -> Floats:
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
    errors : ndarray of shape (n_labeled,)
        0 or 1; 1 for a row whose class the other folds lack.
    """
    K, codes = len(task.classes), task.codes
    rows = task.X
    if unlabeled is not None and n_rows(unlabeled):
        rows = join_rows([rows, unlabeled])
    schedule = replace(
        schedule,
        max_iter=min(MOST_ROUNDS, MOST_ROUNDS if schedule.max_iter is None else schedule.max_iter),
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
    return wrong_rows(votes, codes).astype(np.float64)
