"""How the time of the competitors grows with the number of rows."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

from fewlabel import (
    DASForestClassifier,
    LabelSpreadingClassifier,
    QNS3VMClassifier,
    SemiLDAClassifier,
)

TITLE = "Competitors: time to fit against the number of rows"

NOTE = """
Five overlapping Gaussians in 20 dimensions, 50 labelled rows; processor time, the smaller of two
runs. The exponent is the slope of log time against log rows. Dense label spreading needs time and
memory with the square of the rows; the k-NN graph needs memory in proportion to them.
"""

SIZES = (2_000, 8_000, 32_000)
DENSE_SIZES = (1_000, 3_000, 9_000)  # 32,000 rows would take 23 GiB
QUICK_SIZES = (200, 400, 800)


def _models() -> dict[str, tuple[Any, tuple[int, ...]]]:
    return {
        "LS, k-NN graph": (LabelSpreadingClassifier(), SIZES),
        "LS, dense RBF": (LabelSpreadingClassifier("rbf", gamma=0.05, alpha=0.2), DENSE_SIZES),
        "QN-S3VM, linear": (QNS3VMClassifier(random_state=0), SIZES),
        "QN-S3VM, RBF on 200 rows": (
            QNS3VMClassifier("rbf", n_components=200, random_state=0),
            SIZES,
        ),
        "Semi-LDA": (SemiLDAClassifier(), SIZES),
        "DAS-RF, 20 trees": (DASForestClassifier(20, n_iter=5, random_state=0), SIZES),
    }


def _problem(n: int) -> tuple[Any, Any]:
    X, truth = make_blobs(n, n_features=20, centers=5, cluster_std=6.0, random_state=0)
    return (X - X.mean(axis=0)) / X.std(axis=0), np.where(np.arange(n) < 50, truth, -1)


def _seconds(model: Any, n: int) -> float:
    X, y = _problem(n)
    seconds = []
    for _ in range(2):
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        seconds.append(time.process_time() - start)
    return min(seconds)


def exponent(sizes: tuple[int, ...], seconds: list[float]) -> float:
    """Slope of log seconds against log size."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def measure(quick: bool) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for name, (model, full_sizes) in _models().items():
        sizes = QUICK_SIZES if quick else full_sizes
        seconds = [_seconds(model, n) for n in sizes]
        measured = ", ".join(f"{n:,}: {s:.2g} s" for n, s in zip(sizes, seconds))
        rows.append({"method": name, "rows: time": measured, "exponent": exponent(sizes, seconds)})
    return rows
