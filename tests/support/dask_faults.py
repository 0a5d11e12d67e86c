"""Estimators that break the worker they run on, in a module that workers can import."""

from __future__ import annotations

import os
import signal
import time
import uuid
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier


class GivenVotes(ClassifierMixin, BaseEstimator):
    """Its rows are votes already."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        votes = np.asarray(X)[:, self.classes_] + 1e-12  # a fold may lack a class
        return np.asarray(X) if len(self.classes_) == np.shape(X)[1] else _normalised(votes)


def _normalised(votes):
    return votes / votes.sum(axis=1, keepdims=True)


class FaultyForest(RandomForestClassifier):
    """Ends its worker when it has voted so many times, once or always.

    ``counter`` is a folder in which every vote leaves a file, as workers share no memory.
    """

    def __init__(
        self,
        n_estimators=10,
        *,
        random_state=0,
        counter=None,
        fault=None,
        fatal_vote=None,
        home=None,
    ):
        super().__init__(n_estimators, random_state=random_state)
        self.counter, self.fault, self.fatal_vote, self.home = counter, fault, fatal_vote, home

    def predict_proba(self, X):
        votes = super().predict_proba(X)
        if self.fault is not None and os.getpid() != self.home:
            done = len(list(Path(self.counter).iterdir()))
            Path(self.counter, f"{os.getpid()}-{time.monotonic_ns()}").touch()
            if self.fault == "kill" and done == self.fatal_vote:
                os.kill(os.getpid(), signal.SIGKILL)
            if self.fault == "memory" and done >= self.fatal_vote:
                hog = np.ones(150_000_000)  # 1.2 GB, more than the worker has
                time.sleep(60)
                del hog
        return votes


class CountedTree(DecisionTreeClassifier):
    """A tree that leaves a file wherever it is unpickled after it was fitted."""

    def __init__(self, *, folder: str = "", max_depth: int = 3, random_state: int = 0) -> None:
        super().__init__(max_depth=max_depth, random_state=random_state)
        self.folder = folder

    def __setstate__(self, state: dict[str, object]) -> None:
        super().__setstate__(state)
        if "tree_" in state:
            Path(self.folder, f"{os.getpid()}-{uuid.uuid4().hex}").touch()
