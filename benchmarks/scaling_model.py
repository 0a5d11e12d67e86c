"""What self-learning would cost on more rows than this machine can hold: a model on paper.

The costs of one row are measured here, in processor time of one core, and multiplied.
"""

from __future__ import annotations

import pickle
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from sklearn.ensemble import RandomForestClassifier

from benchmarks.out_of_core import CLASSES, FEATURES, blobs, write
from fewlabel.bounds.statistics import VoteStatistics
from fewlabel.bounds.votes import vote_matrix
from fewlabel.chunks.steps import BALLOT, MARKS, chunk_statistics


@dataclass(frozen=True)
class Costs:
    """Of one row, on one core: microseconds; of one tree: seconds and bytes.

    Attributes
    ----------
    read : to read a row of 20 columns from Parquet
    vote_tree : one tree's vote on a row
    statistics : to add a row's votes to the statistics
    grow_tree, tree_bytes : to grow a tree on ``max_train`` rows; its size
    statistics_bytes : of one partition
    """

    read: float
    vote_tree: float
    statistics: float
    grow_tree: float
    tree_bytes: float
    statistics_bytes: int


def _cpu(work: Callable[[], Any], repeats: int = 3) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return float(np.median(seconds))


def measure_costs(n: int, max_train: int, trees: int) -> Costs:
    """Processor time of this machine, which other work on it hardly changes."""
    X, y = blobs(max_train, 0)
    forest = RandomForestClassifier(trees, random_state=0)
    grow = _cpu(lambda: forest.fit(X, y), repeats=1) / trees
    rows, _ = blobs(n, 1)
    votes = vote_matrix(forest, rows)
    # As with 200 trees: the distinct votes of a forest.
    fine = np.random.default_rng(0).multinomial(200, votes) / 200
    statistics = VoteStatistics.from_votes(fine, fine)
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), n, file_rows=n)
        file = Path(folder, "0000.parquet")
        read = _cpu(lambda: pq.read_table(file, columns=FEATURES, use_threads=False))
    return Costs(
        read=read / n * 1e6,
        vote_tree=_cpu(lambda: vote_matrix(forest, rows)) / n / trees * 1e6,
        statistics=_cpu(lambda: chunk_statistics(fine, fine)) / n * 1e6,
        grow_tree=grow,
        tree_bytes=len(pickle.dumps(forest)) / trees,
        statistics_bytes=statistics.nbytes,
    )


def microseconds(costs: Costs, trees: int, rounds: int) -> float:
    """Of one core for one row, if every row is voted on in every round."""
    # Votes: at first, after each round, and at the end. Only reading: once at first, and in each
    # round to collect the rows to train on.
    vote = costs.read + costs.vote_tree * trees + costs.statistics
    return (rounds + 2) * vote + (rounds + 1) * costs.read


def estimate(costs: Costs, n: int, partition: int, workers: int, rounds: int) -> dict[str, Any]:
    """One row of the table: 200 trees, 5 classes."""
    trees = 200
    micro = microseconds(costs, trees, rounds)
    hours = (n * micro * 1e-6 + rounds * trees * costs.grow_tree) / 3600
    forest = costs.tree_bytes * trees
    partitions = -(-n // partition)
    kept = MARKS.itemsize + BALLOT.itemsize + 8 * CLASSES
    return {
        "rows": f"{n:.0e}".replace("e+0", "e").replace("e+", "e"),
        "partitions": f"{partitions:,}",
        "workers (cores)": f"{workers:,}",
        "rows/s/core": f"{1e6 / micro:,.0f}",
        "core-hours": f"{hours:,.0f}" if hours >= 10 else f"{hours:.2f}",
        "hours": f"{hours / workers:,.1f}",
        "statistics/round": _size(partitions * costs.statistics_bytes),
        "forest/round": _size(forest * (workers + 1)),
        "kept": _size(n * kept),
        "kept/worker": _size(n * kept / workers),
    }


def _size(n: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if n < 1000:
            return f"{n:.3g} {unit}"
        n /= 1000
    return f"{n:.3g} TB"


def described(costs: Costs, max_train: int) -> str:
    """The measured costs in a sentence."""
    return (
        f"Measured on one core, in processor time: reading a row {costs.read:.2f} µs, the vote of "
        f"one tree {costs.vote_tree:.3f} µs (so {200 * costs.vote_tree:.1f} µs for 200), its "
        f"statistics {costs.statistics:.2f} µs; growing a tree on {max_train:,} rows "
        f"{costs.grow_tree:.2f} s, which then has {_size(costs.tree_bytes)}; statistics of a "
        f"partition {_size(costs.statistics_bytes)}. For 10 trees and 1 round, as in the table of "
        f"workers, the model says {1e6 / microseconds(costs, 10, 1):,.0f} rows/s/core."
    )
