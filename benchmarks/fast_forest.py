"""The forest of scikit-learn-intelex beside scikit-learn's, with and without row weights."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from benchmarks.self_learning import data
from fewlabel.selection.fast_forest import FastForestClassifier

TITLE = 'The forest behind `estimator="fast"`'
NOTE = """
One fit of 50 full trees on 30,000 rows of MNIST (scikit-learn's digits where `FEWLABEL_DATA` is not
set), 2 processors each; accuracy on 5,000 other rows. *Weighted*: 175 rows have half of the total
weight, as labelled rows have in self-learning. Processor seconds do not depend on what else the
machine does.
"""


def measure(quick: bool) -> list[dict[str, Any]]:
    X, y, _ = data(quick)
    order = np.random.default_rng(0).permutation(len(y))
    n = min(30_000, len(y) * 2 // 3)
    train, test = order[:n], order[n : n + 5_000]
    balanced = np.where(np.arange(n) < 175, n / 350, n / (2 * (n - 175)))
    trees = 10 if quick else 50
    rows = []
    for what, weight in (("equal weights", None), ("weighted", balanced)):
        for name, kind in (
            ("scikit-learn", RandomForestClassifier),
            ("scikit-learn-intelex", FastForestClassifier),
        ):
            forest = kind(trees, n_jobs=2, random_state=0)
            forest.fit(X[train[:500]], y[train[:500]])  # warm-up
            wall, processor = time.perf_counter(), time.process_time()
            forest.fit(X[train], y[train], sample_weight=weight)
            rows.append(
                {
                    "forest": name,
                    "rows": f"{n:,} × {X.shape[1]}, {what}",
                    "processor seconds": f"{time.process_time() - processor:.1f}",
                    "seconds": f"{time.perf_counter() - wall:.1f}",
                    "accuracy": f"{(forest.predict(X[test]) == y[test]).mean():.3f}",
                }
            )
    return rows
