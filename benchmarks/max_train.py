"""What a training budget saves and costs on many rows."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.datasets import make_classification

from benchmarks._measure import in_child
from fewlabel import SelfLearningClassifier

TITLE = "A training budget on a million rows"
NOTE = """
`make_classification`, 20 columns, 5 classes, 1,000 rows labelled, 200 trees on 2 processors.
`max_train` limits the pseudo-labelled rows that a refit sees; all rows vote. Accuracy on the
unlabelled rows; *supervised* is the initial forest.
"""


def run(n: int, max_train: int | None) -> dict[str, Any]:
    X, y = make_classification(
        n, 20, n_informative=8, n_classes=5, class_sep=1.5, flip_y=0.02, random_state=0
    )
    X = X.astype(np.float32)
    target = np.where(np.arange(n) < 1_000, y, -1)
    start = time.perf_counter()
    clf = SelfLearningClassifier(max_train=max_train, n_jobs=2, random_state=0).fit(X, target)
    seconds = time.perf_counter() - start
    hidden = target == -1
    return {
        "seconds": seconds,
        "rounds": clf.n_iter_,
        "accuracy": float((clf.transduction_[hidden] == y[hidden]).mean()),
        "supervised": clf.initial_estimator_.score(X[hidden], y[hidden]),
    }


def measure(quick: bool) -> list[dict[str, Any]]:
    plan: list[tuple[int, int | None]] = [
        (100_000, None),
        (100_000, 50_000),
        (100_000, 20_000),
        (1_000_000, 20_000),
    ]
    if quick:
        plan = [(5_000, None), (5_000, 1_000)]
    rows = []
    for n, budget in plan:
        answer, peak = in_child(run, n, budget)
        rows.append(
            {
                "rows": f"{n:,} × 20",
                "max_train": "none" if budget is None else f"{budget:,}",
                "supervised": f"{answer['supervised']:.4f}",
                "accuracy": f"{answer['accuracy']:.4f}",
                "rounds": answer["rounds"],
                "seconds": f"{answer['seconds']:.1f}",
                "peak MiB": f"{peak:.0f}",
            }
        )
    return rows
