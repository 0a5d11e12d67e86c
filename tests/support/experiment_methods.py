"""Methods for the tests of the runner: slow, hungry and crashing ones, named "module:attribute"."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
from sklearn.dummy import DummyClassifier

from reproduction.methods import Method


class Slow(DummyClassifier):
    """Sleeps as long as SLOW_SECONDS says and leaves its process id in the folder SLOW_PIDS."""

    def fit(self, X, y, sample_weight=None):
        if folder := os.environ.get("SLOW_PIDS"):
            (Path(folder) / str(os.getpid())).touch()
        time.sleep(float(os.environ.get("SLOW_SECONDS", "60")))
        return super().fit(X, y)


class Hungry(DummyClassifier):
    def fit(self, X, y, sample_weight=None):
        self.ballast_ = np.ones(600 * 2**20 // 8)
        return super().fit(X, y)


class Crashing(DummyClassifier):
    def fit(self, X, y, sample_weight=None):
        os._exit(7)


class Failing(DummyClassifier):
    def fit(self, X, y, sample_weight=None):
        if Path(os.environ["FAILING_UNTIL"]).exists():
            return super().fit(X, y)
        raise RuntimeError("not today")


class Seen(DummyClassifier):
    """Fails unless the labelled rows come first and the labels of all others are hidden."""

    def __init__(self, n_labeled):
        super().__init__()
        self.n_labeled = n_labeled

    def fit(self, X, y, sample_weight=None):
        if (y[: self.n_labeled] == -1).any() or (y[self.n_labeled :] != -1).any():
            raise ValueError("training sees the wrong labels")
        self.transduction_ = np.zeros(len(y), dtype=int)
        self.n_iter_ = len(y)
        return super().fit(X, y)


class Spanned(DummyClassifier):
    """Fails unless every feature of the rows it is given goes from -1 to 1."""

    def fit(self, X, y, sample_weight=None):
        if (X.min(axis=0) != -1).any() or (X.max(axis=0) != 1).any():
            raise ValueError("the features were scaled by other rows")
        return super().fit(X, y)


SLOW = Method(lambda *_: Slow(), "slow", supervised=True)
HUNGRY = Method(lambda *_: Hungry(), "hungry", supervised=True)
CRASHING = Method(lambda *_: Crashing(), "crashing", supervised=True)
FAILING = Method(lambda *_: Failing(), "failing", supervised=True)
SEEN = Method(lambda trial, *_: Seen(trial.n_labeled), "seen")
SPANNED = Method(lambda *_: Spanned(), "spanned", scaling="minmax")
