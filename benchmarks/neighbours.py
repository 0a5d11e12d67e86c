"""Neighbours in the cells of k-means against all pairs: time, recall, and labels that spread."""

from __future__ import annotations

import os
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from benchmarks._measure import side_by_side
from fewlabel.baselines import _graph
from fewlabel.baselines._inverted_index import InvertedIndex
from fewlabel.ensemble.families import RangeScaler
from fewlabel.ensemble.graphs import local_spreading
from reproduction.datasets import load_dataset, mask_labels, paper_split

TITLE = "Neighbours of many rows"
NOTE = """
Ten neighbours of every row, features in [-1, 1], wide rows as 50 principal components. *All pairs*:
scikit-learn's brute search. *Cells*: what the graphs of the mixed vote use from 5,000 rows on, if
faiss is not installed. *Found*: share of the true neighbours. Then the accuracy of label spreading
on both graphs, mean of five splits (seeds 1000 to 1004, the paper's number of labels, all rows).
Real data sets with `FEWLABEL_DATA`, scikit-learn's digits without.
"""
SETS = ("isolet", "pendigits", "letter", "mnist")
SPLITS = range(1_000, 1_005)
COMPARED = 1_000  # rows whose neighbours are compared


def measure(quick: bool) -> list[dict[str, Any]]:
    names = SETS if "FEWLABEL_DATA" in os.environ and not quick else ("digits",)
    return [_row(name, splits=SPLITS[:1] if quick else SPLITS) for name in names]


def _row(name: str, splits: range) -> dict[str, Any]:
    X, y, n_labeled = _points(name)
    pairs = NearestNeighbors(n_neighbors=10, algorithm="brute").fit(X)
    seconds = side_by_side(1, pairs=pairs.kneighbors, cells=partial(_in_cells, X))
    true, found = pairs.kneighbors()[1], _in_cells(X)
    same = [len(np.intersect1d(a, b)) / 10 for a, b in zip(true[:COMPARED], found[:COMPARED])]
    exact, near = (
        np.mean([_accuracy(X, y, n_labeled, seed, many) for seed in splits])
        for many in (len(X) + 1, 1)
    )
    return {
        "rows": f"{name}, {X.shape[0]:,} × {X.shape[1]}",
        "seconds of all pairs / of cells": seconds["pairs"] / seconds["cells"],
        "found": f"{np.mean(same):.3f}",
        "accuracy, all pairs": f"{exact:.4f}",
        "accuracy, cells": f"{near:.4f}",
    }


def _points(name: str) -> tuple[Any, Any, int]:
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        n_labeled = 100
    else:
        data = load_dataset(name)
        X, y, n_labeled = data.X, data.y, data.info.n_labeled
    points = RangeScaler().fit_transform(np.asarray(X, dtype=np.float64))
    return (
        (PCA(50, random_state=0).fit_transform(points) if X.shape[1] > 50 else points),
        y,
        n_labeled,
    )


def _in_cells(points: Any) -> Any:
    found = InvertedIndex(points).search(points, points, 11)[1]
    others = found != np.arange(len(points))[:, None]
    others[others.all(axis=1), -1] = False  # a twin was found instead of the row itself
    return found[others].reshape(len(points), 10)


def _accuracy(points: Any, y: Any, n_labeled: int, seed: int, many: int) -> float:
    labeled = paper_split(y, n_labeled, seed=seed).labeled
    target = mask_labels(y, labeled)
    without_faiss = mock.patch.object(_graph, "find_spec", return_value=None)
    with without_faiss, mock.patch.object(_graph, "MANY_POINTS", many):
        labels = local_spreading().fit(points, target).transduction_
    return float((labels == y)[target == -1].mean())
