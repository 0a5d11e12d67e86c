"""Accuracy of forests that are grown in partitions: ``python -m benchmarks.partition_forests``."""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import mannwhitneyu
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from benchmarks import _page
from benchmarks._page import put, table
from fewlabel import SelfLearningClassifier, UnlabeledRows

Table = list[dict[str, Any]]
RECORDS = Path(__file__).parent / "scaling_accuracy.jsonl"

# Labelled rows as in the paper; MNIST is cut to 10,000 rows, which it says in the table.
SETS = {"pendigits": 109, "letter": 400, "mnist": 175}
MNIST_ROWS = 10_000
PARTITIONS = 8
TREES = 50


def load(name: str) -> tuple[Any, Any]:
    if name == "digits":  # for tests: bundled
        return load_digits(return_X_y=True)
    with np.load(Path(os.environ["FEWLABEL_DATA"], f"{name}.npz")) as file:
        X, y = file["X"], file["y"]
    if name == "mnist":
        rows = np.random.default_rng(0).choice(len(y), MNIST_ROWS, replace=False)
        X, y = X[rows], y[rows]
    return X, y


def one_fit(name: str, n_labeled: int, split: int, train: str, trees: int) -> dict[str, Any]:
    """Accuracy on the unlabelled rows of one of the paper's splits, one machine or partitions."""
    X, y = load(name)
    X_l, X_u, y_l, y_u = train_test_split(X, y, train_size=n_labeled, random_state=10 * split)
    rows = UnlabeledRows(np.array_split(X_u, PARTITIONS), train=train)
    forest = RandomForestClassifier(trees, random_state=split, n_jobs=2)
    start = time.perf_counter()
    clf = SelfLearningClassifier(forest, random_state=split).fit(X_l, y_l, unlabeled=rows)
    return {
        "data": name,
        "split": split,
        "train": train,
        "trees": trees,
        "accuracy": float(clf.score(X_u, y_u)),
        "supervised": float(clf.initial_estimator_.score(X_u, y_u)),
        "rounds": clf.n_iter_,
        "seconds": time.perf_counter() - start,
    }


def accuracy(splits: int, sets: dict[str, int], trees: int, records: Path) -> Table:
    """One row for each data set; fits that have a record are not repeated."""
    fits = _page.records(records)
    done = {(r["data"], r["split"], r["train"], r["trees"]): r for r in fits}
    for split in range(splits):
        for name, n_labeled in sets.items():
            for train in ("sample", "partitions"):
                key = (name, split, train, trees)
                if key not in done:
                    done[key] = one_fit(name, n_labeled, split, train, trees)
                    with records.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(done[key]) + "\n")
                    print(done[key], flush=True)
    return [_compared(name, splits, trees, done) for name in sets]


def _compared(name: str, splits: int, trees: int, done: dict[Any, Any]) -> dict[str, Any]:
    values = {
        what: np.array([done[name, split, what, trees]["accuracy"] for split in range(splits)])
        for what in ("sample", "partitions")
    }
    supervised = np.array([done[name, s, "sample", trees]["supervised"] for s in range(splits)])
    p = mannwhitneyu(values["sample"], values["partitions"]).pvalue
    return {
        "data": f"{name} ({MNIST_ROWS:,} rows)" if name == "mnist" else name,
        "splits": splits,
        "supervised": _mean(supervised),
        "one machine": _mean(values["sample"]),
        f"{PARTITIONS} partitions": _mean(values["partitions"]),
        "difference": f"{(values['partitions'] - values['sample']).mean():+.4f}",
        "p (Mann-Whitney)": f"{p:.2f}",
    }


def _mean(values: Any) -> str:
    return f"{values.mean():.4f} ± {values.std(ddof=1):.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.partition_forests")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--write", type=Path, help="page whose table 'accuracy' is replaced")
    options = parser.parse_args()
    text = table(accuracy(options.splits, SETS, TREES, RECORDS)) + (
        f"\n\n{TREES} trees, the paper's splits (seeds 0, 10, …), mean ± standard deviation."
    )
    print(text)
    if options.write:
        put(options.write, "accuracy", text)


if __name__ == "__main__":
    main()
