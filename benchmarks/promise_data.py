"""Data sets and splits of the study of error estimates: real ones and hard synthetic ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from fewlabel import FewLabelClassifier, SelfLearningClassifier

FILES = (
    "vowel", "protein", "dna", "pageblocks", "har_recomputed", "pendigits", "letter", "fashion",
)  # fmt: skip
"""``NAME.npz`` with X and y in the folder ``FEWLABEL_DATA``."""

BUNDLED: dict[str, Callable[..., Any]] = {
    "digits": datasets.load_digits,
    "wine": datasets.load_wine,
    "breast_cancer": datasets.load_breast_cancer,
    "iris": datasets.load_iris,
}
PER_CLASS = (4, 10, 25)
DRAWS = ("random", "per class")
SEEDS = tuple(range(4000, 4020))  # constants were chosen on smaller seeds
FEWER_SEEDS = SEEDS[:5]  # of labels drawn within classes
MAX_UNLABELED = 1_000
BASES = ("mixed vote", "forest", "tree", "naive Bayes", "1-NN")


class Split(NamedTuple):
    """Rows, their true labels, and which of them are labelled."""

    X: NDArray[Any]
    y: NDArray[np.intp]
    labeled: NDArray[np.bool_]


def _blobs_with_noise(n: int, rng: np.random.RandomState, n_classes: int) -> tuple[Any, Any]:
    return datasets.make_classification(
        n, 20, n_informative=5, n_redundant=2, n_classes=n_classes, class_sep=0.7, flip_y=0.15,
        random_state=rng,
    )  # fmt: skip


def _imbalanced(n: int, rng: np.random.RandomState) -> tuple[Any, Any]:
    return datasets.make_classification(
        n, 10, n_informative=4, weights=[0.95, 0.05], flip_y=0.02, random_state=rng
    )


def _checkerboard(n: int, rng: np.random.RandomState) -> tuple[Any, Any]:
    X = rng.uniform(0, 4, size=(n, 2))
    return X, np.floor(X).sum(axis=1).astype(int) % 2


def _many_classes(n: int, rng: np.random.RandomState) -> tuple[Any, Any]:
    return datasets.make_classification(
        n, 12, n_informative=6, n_classes=8, n_clusters_per_class=1, class_sep=0.8, flip_y=0.05,
        weights=[0.3, 0.2, 0.15, 0.1, 0.1, 0.07, 0.05, 0.03], random_state=rng,
    )  # fmt: skip


SYNTHETIC: dict[str, Callable[[int, np.random.RandomState], tuple[Any, Any]]] = {
    "overlap, 2 classes": lambda n, rng: _blobs_with_noise(n, rng, 2),
    "overlap, 3 classes": lambda n, rng: _blobs_with_noise(n, rng, 3),
    "imbalanced 95:5": _imbalanced,
    "noisy moons": lambda n, rng: datasets.make_moons(n, noise=0.35, random_state=rng),
    "checkerboard": _checkerboard,
    "8 unequal classes": _many_classes,
}
NAMES = (*FILES, *BUNDLED, *SYNTHETIC)


def load(name: str, seed: int) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """All rows of a data set; a synthetic one is drawn anew for each seed."""
    if name in SYNTHETIC:
        X, y = SYNTHETIC[name](2_000, np.random.RandomState(seed))
    elif name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
    else:
        with np.load(Path(os.environ["FEWLABEL_DATA"]) / f"{name}.npz") as file:
            X, y = file["X"], file["y"]
        X = X.astype(np.float64)  # naive Bayes of float32 rows may not sum to 1
        if np.isnan(X).any():  # not every base takes missing values
            X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    return X, y.astype(np.intp)


def split(
    name: str, per_class: int, seed: int, max_unlabeled: int = MAX_UNLABELED, draw: str = "random"
) -> Split | None:
    """``per_class`` · K labels, drawn at random or as many of each class; None if of no use."""
    X, y = load(name, seed)
    n_labeled = per_class * len(np.unique(y))
    if n_labeled > 0.7 * len(y):
        return None
    order = np.random.RandomState(seed).permutation(len(y))
    if draw == "per class":
        of_class = [order[y[order] == c] for c in np.unique(y)]
        if min(map(len, of_class)) < 2 * per_class:
            return None
        first = np.concatenate([rows[:per_class] for rows in of_class])
        order = np.concatenate([first, order[~np.isin(order, first)]])
    rows = order[: n_labeled + max_unlabeled]
    labeled = np.arange(len(rows)) < n_labeled
    if len(np.unique(y[rows[labeled]])) < 2:  # nothing to learn from
        return None
    return Split(X[rows], y[rows], labeled)


def make(base: str, seed: int) -> Any:
    """The classifier of a base, unfitted."""
    if base == "mixed vote":
        return FewLabelClassifier(random_state=seed)
    estimators: dict[str, Any] = {
        "forest": None,
        "tree": DecisionTreeClassifier(random_state=seed),
        "naive Bayes": GaussianNB(),
        "1-NN": make_pipeline(StandardScaler(), KNeighborsClassifier(1)),
    }
    return SelfLearningClassifier(estimators[base], random_state=seed)
