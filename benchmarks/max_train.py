"""What a training budget saves and costs on many rows."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.datasets import make_classification

import fewlabel
from benchmarks._measure import in_child

TITLE = "A training budget on a million rows"
NOTE = """
`make_classification`, 20 columns, 5 classes, 1,000 rows labelled, 2 processors, each classifier at
its defaults but for `max_train`, which limits the pseudo-labelled rows that a refit sees; all rows
vote. Accuracy on the unlabelled rows; *before*: of the first classifier, that saw no pseudo-label.
`SelfLearningClassifier` is Algorithm 1; by default it also stops when a round would add less than
1 % of the rows (`min_gain=0`: the paper's rule). `FewLabelClassifier` keeps its
first vote unless a round is clearly surer of the labels that it changes, which does not always mean
that they are right.
"""
FOREST, MIXED = "SelfLearningClassifier", "FewLabelClassifier"


def run(name: str, n: int, params: dict[str, Any]) -> dict[str, Any]:
    X, y = make_classification(
        n, 20, n_informative=8, n_classes=5, class_sep=1.5, flip_y=0.02, random_state=0
    )
    X = X.astype(np.float32)
    target = np.where(np.arange(n) < 1_000, y, -1)
    start = time.perf_counter()
    clf = getattr(fewlabel, name)(n_jobs=2, random_state=0, **params).fit(X, target)
    seconds = time.perf_counter() - start
    hidden = target == -1
    return {
        "seconds": seconds,
        "rounds": clf.n_iter_,
        "accuracy": float((clf.transduction_[hidden] == y[hidden]).mean()),
        "before": float((clf.initial_votes_.argmax(axis=1) == y[hidden]).mean()),
        "max_train": clf.max_train,
    }


def measure(quick: bool) -> list[dict[str, Any]]:
    plan: list[tuple[str, int, dict[str, Any]]] = [
        (FOREST, 100_000, {}),
        (FOREST, 100_000, {"max_train": 50_000}),
        (FOREST, 100_000, {"max_train": 20_000}),
        (FOREST, 1_000_000, {"max_train": 20_000}),
        (MIXED, 100_000, {}),
        (MIXED, 1_000_000, {}),
    ]
    if quick:
        plan = [(FOREST, 5_000, {}), (FOREST, 5_000, {"max_train": 1_000}), (MIXED, 5_000, {})]
    rows = []
    for name, n, params in plan:
        answer, peak = in_child(run, name, n, params)
        budget = answer["max_train"]
        rows.append(
            {
                "classifier": f"`{name}`",
                "rows": f"{n:,} × 20",
                "max_train": "none" if budget is None else f"{budget:,}",
                "before": f"{answer['before']:.4f}",
                "accuracy": f"{answer['accuracy']:.4f}",
                "rounds": answer["rounds"],
                "seconds": f"{answer['seconds']:.1f}",
                "peak MiB": f"{peak:.0f}",
            }
        )
    return rows
