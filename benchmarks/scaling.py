"""How self-learning scales over partitions and workers: ``python -m benchmarks.scaling --help``.

Tables of docs/scaling.md, each made by its own part.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import mannwhitneyu
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from benchmarks import _page
from benchmarks._measure import side_by_side
from benchmarks._page import put, table
from benchmarks.out_of_core import FEATURES, blobs, classifier, labeled, write
from fewlabel import DaskRows, SelfLearningClassifier, UnlabeledRows, VoteStatistics, vote_matrix
from fewlabel.chunks.steps import BALLOT, MARKS

Table = list[dict[str, Any]]
RECORDS = Path(__file__).parent / "scaling_accuracy.jsonl"

# --- accuracy of a forest that is grown in partitions --------------------------------------------

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


# --- workers and rows ----------------------------------------------------------------------------


def usage() -> tuple[float, float]:
    """Processor seconds and peak MiB of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def timed_fit(folder: Path, workers: int, trees: int, max_train: int) -> tuple[float, float, float]:
    """Seconds of a fit on a fresh cluster; processor seconds and largest peak of its workers."""
    from distributed import Client, LocalCluster

    X, y = labeled()
    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            memory_limit="2GiB",
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        Client(cluster) as client,
    ):
        clf = classifier(trees, max_train).set_params(max_iter=1, estimator__n_jobs=1)
        before = sum(cpu for cpu, _ in client.run(usage).values())
        start = time.perf_counter()
        clf.fit(X, y, unlabeled=DaskRows(folder, client, out=folder.parent / f"out-{workers}"))
        seconds = time.perf_counter() - start
        after = client.run(usage).values()
        return seconds, sum(cpu for cpu, _ in after) - before, max(peak for _, peak in after)


def workers(sizes: list[int], counts: list[int], trees: int, max_train: int) -> Table:
    rows = []
    for n in sizes:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary, "rows")
            folder.mkdir()
            write(folder, n)
            for count in counts:
                seconds, cpu, peak = timed_fit(folder, count, trees, max_train)
                rows.append(
                    {
                        "rows": f"{n:,}",
                        "workers": count,
                        "seconds": f"{seconds:.1f}",
                        "rows/s": f"{n / seconds:,.0f}",
                        "processor seconds": f"{cpu:.1f}",
                        "rows/s/core": f"{n / cpu:,.0f}",
                        "peak MiB a worker": f"{peak:.0f}",
                    }
                )
                print(table(rows), flush=True)
    return rows


# --- statistics alone ----------------------------------------------------------------------------


def statistics(n: int, n_classes: int, repeats: int) -> Table:
    rng = np.random.default_rng(0)
    smooth = rng.dirichlet(np.full(n_classes, 0.3), size=n)
    forest = rng.multinomial(200, smooth) / 200  # votes of 200 full trees
    proba = rng.dirichlet(np.full(n_classes, 0.3), size=n)
    work: dict[str, Callable[[], Any]] = {
        "reading the votes once (`votes.sum()`)": lambda: smooth.sum(),
        "statistics, votes of a forest, exact": lambda: VoteStatistics.from_votes(forest, proba),
        "statistics, continuous votes, 1,000 bins": lambda: VoteStatistics.from_votes(
            smooth, proba, resolution=1000
        ),
    }
    seconds = side_by_side(repeats, **work)
    read = next(iter(seconds.values()))
    return [
        {"": name, "rows/s": f"{n / s:,.0f}", "times reading": f"{s / read:.0f}"}
        for name, s in seconds.items()
    ]


# --- what travels and what is kept ---------------------------------------------------------------


def bytes_and_speed(n: int, trees: int, max_train: int) -> Table:
    X, y = labeled()
    rows = pd.DataFrame(blobs(n, 1)[0], columns=FEATURES)
    fit = classifier(trees, max_train)
    clf = fit.set_params(max_iter=1).fit(X, y, unlabeled=[rows])
    votes, proba = vote_matrix(clf.estimator_, rows), vote_matrix(clf.initial_estimator_, rows)
    exact = VoteStatistics.from_votes(votes, proba)
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder, "proba.npy")
        np.save(kept, proba)
        seconds = side_by_side(
            3,
            vote=lambda: vote_matrix(clf.estimator_, rows),
            initial=lambda: vote_matrix(clf.initial_estimator_, rows),
            load=lambda: np.load(kept),
        )
    K = votes.shape[1]
    forest = len(pickle.dumps(clf.estimator_)) / 2**20
    per_row = MARKS.itemsize + BALLOT.itemsize + 8 * K
    return [
        {"": f"statistics of {trees} trees, {K} classes", "size": f"{exact.nbytes / 1024:.0f} KiB"},
        {
            "": f"statistics, 1,000 bins, {K} classes",
            "size": f"{exact.binned(1000).nbytes / 1024:.0f} KiB",
        },
        {"": f"forest of {trees} trees, `max_train={max_train}`", "size": f"{forest:.1f} MiB"},
        {"": f"kept of a row between rounds, {K} classes", "size": f"{per_row} bytes"},
        {"": "votes on a row, 2 threads", "size": f"{seconds['vote'] / n * 1e6:.2f} µs"},
        {"": "initial votes: vote again", "size": f"{seconds['initial'] / n * 1e6:.2f} µs a row"},
        {"": "initial votes: read them back", "size": f"{seconds['load'] / n * 1e6:.3f} µs a row"},
    ]


# --- the command ---------------------------------------------------------------------------------


def load_average() -> str:
    return f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"


def parts(options: argparse.Namespace) -> dict[str, Callable[[], tuple[Table, str]]]:
    """Each part with its table and what has to be said about it."""
    million = [size * options.unit for size in (1, 2, 4, 8)]
    return {
        "accuracy": lambda: (
            accuracy(options.splits, SETS, TREES, RECORDS),
            f"{TREES} trees, the paper's splits (seeds 0, 10, …), mean ± standard deviation.",
        ),
        "workers": lambda: (
            workers(million, [1, 2], 10, 20_000),
            "10 trees, 1 round (3 passes of votes over the rows), 20 columns, 5 classes, "
            "`max_train=20000`, Parquet files of 250,000 rows, one run each.",
        ),
        "statistics": lambda: (
            statistics(options.unit, 10, 5),
            f"{options.unit:,} rows, 10 classes, one thread, median of 5 interleaved runs.",
        ),
        "bytes": lambda: (
            bytes_and_speed(options.unit // 10, 50, 50_000),
            f"{options.unit // 10:,} rows, 20 columns; times are medians of 3 interleaved runs.",
        ),
    }


def main() -> None:
    names = ["statistics", "bytes", "accuracy", "workers"]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--unit", type=int, default=1_000_000, help="rows of the smallest size")
    parser.add_argument("--write", type=Path, help="page whose tables are replaced")
    options = parser.parse_args()
    for name in options.only:
        before = load_average()
        rows, note = parts(options)[name]()
        text = f"{table(rows)}\n\n{note} Load average of the machine when it began: {before}."
        print(f"{name}\n\n{text}\n", flush=True)
        if options.write:
            put(options.write, name, text)


if __name__ == "__main__":
    main()
