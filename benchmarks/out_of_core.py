"""Peak memory of self-learning from Parquet: ``python -m benchmarks.out_of_core --help``."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.ensemble import RandomForestClassifier

from benchmarks._measure import in_child
from benchmarks._page import put, table
from fewlabel import SelfLearningClassifier, UnlabeledRows

FEATURES = [f"x{k}" for k in range(20)]
FILE_ROWS = 250_000
LABELED = 1_000
CLASSES = 5


def blobs(n: int, part: int) -> tuple[Any, Any]:
    """Rows of 5 classes of 3 clusters each in 8 of 20 columns; 2 % of the labels are random."""
    world = np.random.default_rng(0)
    centres = world.normal(scale=1.7, size=(CLASSES, 3, 8))
    rng = np.random.default_rng([1, part])
    y = rng.integers(CLASSES, size=n)
    X = rng.standard_normal((n, len(FEATURES)), dtype=np.float32)
    X[:, :8] += centres[y, rng.integers(3, size=n)]
    noisy = rng.random(n) < 0.02
    return X, np.where(noisy, rng.integers(CLASSES, size=n), y)


def write(folder: Path, n: int, file_rows: int = FILE_ROWS) -> None:
    """The unlabelled rows as Parquet files, with the true label in a column of its own."""
    for part, start in enumerate(range(0, n, file_rows)):
        X, y = blobs(min(file_rows, n - start), part + 1)
        columns = {name: X[:, k] for k, name in enumerate(FEATURES)}
        pq.write_table(pa.table(columns | {"truth": y}), folder / f"{part:04d}.parquet")


def classifier(trees: int, max_train: int) -> SelfLearningClassifier:
    forest = RandomForestClassifier(trees, random_state=0, n_jobs=2)
    return SelfLearningClassifier(forest, max_iter=2, max_train=max_train, random_state=0)


def labeled() -> tuple[pd.DataFrame, Any]:
    X, y = blobs(LABELED, 0)
    return pd.DataFrame(X, columns=FEATURES), y


def fit_in_memory(folder: Path, trees: int, max_train: int) -> float:
    frame = pd.read_parquet(folder)
    X, y = labeled()
    target = np.concatenate([y, np.full(len(frame), -1)])
    start = time.perf_counter()
    classifier(trees, max_train).fit(pd.concat([X, frame[FEATURES]], ignore_index=True), target)
    return time.perf_counter() - start


def fit_out_of_core(folder: Path, trees: int, max_train: int, out: Path) -> float:
    X, y = labeled()
    start = time.perf_counter()
    clf = classifier(trees, max_train)
    clf.fit(X, y, unlabeled=UnlabeledRows(folder, out=out, scratch=out.parent))
    return time.perf_counter() - start


def accuracy(folder: Path, out: Path) -> float:
    truth = pd.read_parquet(folder, columns=["truth"])["truth"].to_numpy()
    label = pd.read_parquet(out, columns=["row", "label"]).sort_values("row")["label"]
    return float((label.to_numpy() == truth).mean())


def measure(sizes: list[int], trees: int, max_train: int, in_memory: int) -> list[dict[str, Any]]:
    rows = []
    for n in sizes:
        with tempfile.TemporaryDirectory() as temporary:
            folder, out = Path(temporary, "rows"), Path(temporary, "labels")
            folder.mkdir()
            write(folder, n)
            if n == in_memory:
                seconds, peak = in_child(fit_in_memory, folder, trees, max_train)
                rows.append(_row("in memory", n, seconds, peak, ""))
            seconds, peak = in_child(fit_out_of_core, folder, trees, max_train, out)
            rows.append(_row("out of core", n, seconds, peak, f"{accuracy(folder, out):.4f}"))
            print(table(rows), flush=True)
    return rows


def _row(how: str, n: int, seconds: float, peak: float, right: str) -> dict[str, Any]:
    return {
        "": how,
        "rows": f"{n:,} × 20",
        "peak MiB": f"{peak:.0f}",
        "seconds": f"{seconds:.0f}",
        "accuracy": right,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.out_of_core", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 5_000_000])
    parser.add_argument("--trees", type=int, default=50)
    parser.add_argument("--max-train", type=int, default=50_000)
    parser.add_argument("--in-memory", type=int, default=1_000_000, help="also fit this many there")
    parser.add_argument("--write", type=Path, help="page whose table 'memory' is replaced")
    options = parser.parse_args()
    rows = measure(options.rows, options.trees, options.max_train, options.in_memory)
    peaks = [float(row["peak MiB"]) for row in rows if row[""] == "out of core"]
    text = table(rows) + (
        f"\n\n{options.trees} trees, 2 rounds, `max_train={options.max_train}`, {LABELED} labelled "
        f"rows, one run each in a process of its own. Largest peak out of core over smallest: "
        f"{max(peaks) / min(peaks):.3f}."
    )
    print(text)
    if options.write:
        put(options.write, "memory", text)


if __name__ == "__main__":
    main()
