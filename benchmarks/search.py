"""The exact threshold search against the paper's grid search, a sort, and itself at other sizes."""

from __future__ import annotations

import functools
import tracemalloc
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from benchmarks._measure import side_by_side
from fewlabel import optimal_thresholds

TITLE = "Exact threshold search"
NOTE = """
`optimal_thresholds` on votes of 10 classes. *Forest*: 200 trees, so few distinct values;
*continuous*: logistic regression. *Grid*: the paper's search, R = 50, in vectorised NumPy. *Sort*:
`np.argsort(votes, axis=0)`. Medians of interleaved runs; memory is the peak during the call.
"""


def grid_search(votes: Any, label_proba: Any, R: int = 50) -> Any:
    """The paper's grid search, class by class; O(n K² R²)."""
    grid = np.arange(1, R + 1) / R
    best = votes.argmax(axis=1)
    thresholds = np.ones(votes.shape[1])
    for j in range(votes.shape[1]):
        v = votes[:, j].copy()
        predicted = best == j
        gibbs = v[predicted] @ label_proba[predicted]
        below = [(v * (v < s)) @ label_proba for s in grid]
        lowest = np.inf
        for a, theta in enumerate(grid):
            n_selected = int((predicted & (v >= theta)).sum())
            if n_selected == 0:
                continue
            bound = np.full(votes.shape[1], np.inf)
            for b in range(a, R):
                inside = ((v >= theta) & (v < grid[b])).astype(float) @ label_proba
                rest = np.maximum(gibbs - below[b] + below[a], 0.0) / grid[b]
                bound = np.minimum(bound, inside + rest)
            value = np.delete(bound, j).sum() / n_selected
            if value < lowest:
                lowest, thresholds[j] = value, theta
    return thresholds


@functools.cache
def example_votes(n: int) -> dict[str, Any]:
    X, y = make_classification(
        n + 500, 20, n_informative=10, n_classes=10, n_clusters_per_class=1, random_state=0
    )
    models = {
        "forest": RandomForestClassifier(200, random_state=0, n_jobs=-1),
        "continuous": LogisticRegression(max_iter=1000),
    }
    return {
        name: np.ascontiguousarray(model.fit(X[:500], y[:500]).predict_proba(X[500:]))
        for name, model in models.items()
    }


def peak_in_matrices(call: Any, votes: Any) -> float:
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / votes.nbytes


def measure(quick: bool) -> list[dict[str, Any]]:
    small, large = (2_000, 20_000) if quick else (100_000, 1_000_000)
    reference = 2_000 if quick else 70_000
    repeats = 3 if quick else 7
    rows = []
    for name, votes in example_votes(reference).items():
        grid = side_by_side(1, grid=functools.partial(grid_search, votes, votes))["grid"]
        seconds = side_by_side(
            repeats,
            exact=functools.partial(optimal_thresholds, votes, votes),
            binned=functools.partial(optimal_thresholds, votes, votes, resolution=200),
            sort=functools.partial(np.argsort, votes, axis=0),
        )
        rows += [
            _row(f"{name}, grid seconds / exact seconds", reference, grid / seconds["exact"]),
            _row(f"{name}, exact / sort", reference, seconds["exact"] / seconds["sort"]),
            _row(f"{name}, 200 bins / sort", reference, seconds["binned"] / seconds["sort"]),
        ]
    few, many = example_votes(small), example_votes(large)
    for name in few:
        for kind, resolution in (("exact", None), ("200 bins", 200)):
            calls = {
                size: functools.partial(optimal_thresholds, v, v, resolution=resolution)
                for size, v in (("small", few[name]), ("large", many[name]))
            }
            seconds = side_by_side(repeats, **calls)
            ratio = seconds["large"] / seconds["small"]
            rows.append(_row(f"{name}, {kind}: ten times the rows", large, ratio))
            memory = peak_in_matrices(calls["large"], many[name])
            rows.append(_row(f"{name}, {kind}: peak memory / vote matrix", large, memory))
    return rows


def _row(what: str, n: int, ratio: float) -> dict[str, Any]:
    return {"what": what, "rows": f"{n:,} × 10", "ratio": ratio}
