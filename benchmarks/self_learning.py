"""The self-learning loop: its own share of the time, and scikit-learn's SelfTrainingClassifier."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.semi_supervised import SelfTrainingClassifier

from benchmarks._measure import in_child
from fewlabel import SelfLearningClassifier

TITLE = "Self-learning on 70,000 × 784"
NOTE = """
MNIST with 175 labels (digits without `FEWLABEL_DATA`), one stratified split, the same forest of 50
trees for all. *Outside the forest*: the share of `fit` that is not spent in the forest.
scikit-learn's `SelfTrainingClassifier` has its default threshold, 0.75, and at most 10 rounds.
"""


def data(quick: bool) -> tuple[Any, Any, Any]:
    folder = os.environ.get("FEWLABEL_DATA")
    if folder and Path(folder, "mnist.npz").exists():
        with np.load(Path(folder, "mnist.npz")) as file:
            X, y = file["X"], file["y"]
    else:
        X, y = load_digits(return_X_y=True)
    if quick and len(y) > 10_000:
        X, y = X[::40], y[::40]
    labeled, _ = train_test_split(np.arange(len(y)), train_size=175, random_state=0, stratify=y)
    target = np.full(len(y), -1)
    target[labeled] = y[labeled]
    return X, y, target


class TimedForest(RandomForestClassifier):
    """Adds up the seconds that are spent inside it."""

    seconds = 0.0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        start = time.perf_counter()
        super().fit(X, y, sample_weight)
        TimedForest.seconds += time.perf_counter() - start
        return self

    def predict_proba(self, X: Any) -> Any:
        start = time.perf_counter()
        votes = super().predict_proba(X)
        TimedForest.seconds += time.perf_counter() - start
        return votes


def run(method: str, trees: int, quick: bool) -> dict[str, Any]:
    X, y, target = data(quick)
    forest = TimedForest(trees, random_state=0, n_jobs=2)
    models = {
        "fewlabel": SelfLearningClassifier(forest),
        "fewlabel, paper's rule (min_gain=0)": SelfLearningClassifier(forest, min_gain=0.0),
        "SelfTrainingClassifier": SelfTrainingClassifier(forest, max_iter=10),
        "supervised forest": RandomForestClassifier(trees, random_state=0, n_jobs=2),
    }
    model = models[method]
    start = time.perf_counter()
    if method == "supervised forest":
        model.fit(X[target != -1], target[target != -1])
    else:
        model.fit(X, target)
    seconds = time.perf_counter() - start
    inside = TimedForest.seconds
    hidden = target == -1
    answer = {"accuracy": float((model.predict(X[hidden]) == y[hidden]).mean()), "seconds": seconds}
    answer["rounds"] = getattr(model, "n_iter_", 0)
    if inside:
        answer["outside"] = 1 - inside / seconds
    return answer


def measure(quick: bool) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for method in (
        "supervised forest",
        "fewlabel",
        "fewlabel, paper's rule (min_gain=0)",
        "SelfTrainingClassifier",
    ):
        answer, peak = in_child(run, method, 10 if quick else 50, quick)
        rows.append(
            {
                "method": method,
                "accuracy": f"{answer['accuracy']:.3f}",
                "rounds": answer["rounds"],
                "seconds": f"{answer['seconds']:.1f}",
                "peak MiB": f"{peak:.0f}",
                "outside the forest": f"{answer['outside']:.1%}" if "outside" in answer else "",
            }
        )
    return rows
