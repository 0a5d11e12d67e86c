"""How the mixed vote scales over rows and workers: ``python -m benchmarks.scaling --help``.

Each measurement is a record in results/scaling.jsonl: a run that was interrupted goes on where it
stopped, and the tables of docs/scaling.md are made from the records.
"""

from __future__ import annotations

import argparse
import pickle
import resource
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._measure import in_child, side_by_side
from benchmarks._page import put
from benchmarks.out_of_core import (
    CLASSES,
    FILE_ROWS,
    blobs,
    classifier,
    compare,
    fit_in_memory,
    fit_out_of_core,
    labeled,
    write,
)
from benchmarks.scaling_page import (
    ALL,
    ALL_SIZES,
    FAST,
    MILLION,
    RECORDS,
    ROUNDS,
    SIZES,
    TABLES,
    UNSAMPLED,
    WORKERS,
    Log,
    Record,
)
from fewlabel import DaskRows, VoteStatistics, vote_matrix
from fewlabel.chunks.survey import ColumnSums

# --- what a row costs --------------------------------------------------------------------------


def cost(log: Log, n: int, n_votes: int, voters: list[str]) -> None:
    """Microseconds that one row costs: votes of each family, and everything else."""
    X, y = labeled()
    rows = blobs(n, 1)[0]
    few = rows[:n_votes]
    for name in voters:
        log.measured(
            {"part": "cost", "what": name, "rows": n},
            partial(_cost_of_votes, X.to_numpy(), y, rows, few, name),
        )
    votes = np.random.default_rng(0).dirichlet(np.full(CLASSES, 0.3), size=n)
    work: dict[str, Callable[[], Any]] = {
        "sums of the columns": lambda: ColumnSums.of(rows),
        "statistics of the votes": lambda: VoteStatistics.from_votes(votes, votes, resolution=1000),
    }
    for name, run in work.items():
        spec = {"part": "cost", "what": name, "rows": n}
        log.measured(spec, partial(_cost_of_rows, run, n))


def _cost_of_rows(run: Callable[[], Any], n: int) -> Record:
    return {"microseconds": side_by_side(3, run=run)["run"] / n * 1e6}


def _cost_of_votes(X: Any, y: Any, rows: Any, few: Any, name: str) -> Record:
    start = time.perf_counter()
    clf = classifier([name]).fit(X, y, unlabeled=[rows])
    seconds = time.perf_counter() - start
    found = side_by_side(3, run=lambda: vote_matrix(clf.estimator_, few))["run"]
    return {
        "microseconds": found / len(few) * 1e6,
        "bytes": len(pickle.dumps(clf.estimator_)),
        "fit_seconds": seconds,
    }


# --- rows out of core ----------------------------------------------------------------------------


def memory(log: Log, sizes: list[int], voters: list[str], scratch: Path, in_memory: int) -> None:
    """Peak memory and time of fits on rows on disk."""
    for n in sizes:
        specs = [{"part": "memory", "rows": n, "voters": voters, "how": "out of core"}]
        if n == in_memory:
            specs.append({**specs[0], "how": "in memory"})
        missing = [s for s in specs if not any(s.items() <= r.items() for r in log.of("memory"))]
        if not missing:
            continue
        with tempfile.TemporaryDirectory(dir=scratch) as temporary:
            folder, out = Path(temporary, "rows"), Path(temporary, "labels")
            folder.mkdir()
            write(folder, n)
            for spec in missing:
                log.measured(spec, partial(_fit, spec["how"], folder, voters, out))


def _fit(how: str, folder: Path, voters: list[str], out: Path) -> Record:
    if how == "in memory":
        told, peak = in_child(fit_in_memory, folder, voters)
    else:
        told, peak = in_child(fit_out_of_core, folder, voters, out)
    return {**told, "peak_mib": peak}


def agreement(log: Log, n: int, voters: list[str], rounds: int, scratch: Path) -> None:
    """How far votes out of core are from those in memory."""

    def measure() -> Record:
        with tempfile.TemporaryDirectory(dir=scratch) as temporary:
            folder = Path(temporary, "rows")
            folder.mkdir()
            write(folder, n, -(-n // 4))
            found: Record = in_child(compare, folder, voters, rounds, Path(temporary, "labels"))[0]
            return found

    spec = {"part": "agreement", "rows": n, "voters": voters, "rounds": rounds}
    log.measured(spec, measure)


# --- workers -------------------------------------------------------------------------------------


def usage() -> tuple[float, float]:
    """Processor seconds and peak MiB of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def workers(log: Log, n: int, counts: list[int], voters: list[str], scratch: Path) -> None:
    """The same fit on Dask with several workers."""
    with tempfile.TemporaryDirectory(dir=scratch) as temporary:
        folder = Path(temporary, "rows")
        folder.mkdir()
        write(folder, n, min(FILE_ROWS, -(-n // 4)))
        for count in counts:
            spec = {"part": "workers", "rows": n, "voters": voters, "workers": count}
            log.measured(spec, partial(timed_fit, folder, count, voters))
    log.measured({"part": "tasks"}, time_of_tasks)


def _cluster(n_workers: int) -> Any:
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        memory_limit="2GiB",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
    )


def timed_fit(folder: Path, n_workers: int, voters: list[str]) -> Record:
    """Seconds of a fit on a fresh cluster; processor seconds and largest peak of its workers."""
    from distributed import Client

    X, y = labeled()
    with _cluster(n_workers) as cluster, Client(cluster) as client:
        before = sum(cpu for cpu, _ in client.run(usage).values())
        start = time.perf_counter()
        out = folder.parent / f"out-{n_workers}"
        clf = classifier(voters).fit(X, y, unlabeled=DaskRows(folder, client, out=out))
        seconds = time.perf_counter() - start
        after = client.run(usage).values()
        return {
            "seconds": seconds,
            "processor_seconds": sum(cpu for cpu, _ in after) - before,
            "peak_mib": max(peak for _, peak in after),
            "rounds": clf.n_iter_,
        }


def time_of_tasks(n: int = 2_000) -> Record:
    """Seconds that the scheduler takes for a task that does nothing."""
    from distributed import Client

    with _cluster(1) as cluster, Client(cluster) as client:
        client.gather(client.map(abs, range(10)))
        start = time.perf_counter()
        client.gather(client.map(abs, range(n), pure=False))
        return {"task_seconds": (time.perf_counter() - start) / n}


def main() -> None:
    parts = ["cost", "memory", "all", "agreement", "workers"]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--only", nargs="*", choices=parts, default=parts)
    parser.add_argument("--unit", type=int, default=MILLION, help="rows of the smallest size")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="in units")
    parser.add_argument("--all-sizes", type=float, nargs="+", default=ALL_SIZES, help="in units")
    parser.add_argument("--workers", type=int, nargs="+", default=WORKERS)
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--records", type=Path, default=RECORDS)
    parser.add_argument("--write", type=Path, help="page whose tables are replaced")
    options = parser.parse_args()
    log, unit, scratch = Log(options.records), options.unit, options.scratch
    if "cost" in options.only:
        cost(log, unit // 20, unit // 500, ALL)
    if "workers" in options.only:
        workers(log, unit, options.workers, FAST, scratch)
        workers(log, unit // 5, options.workers, ALL, scratch)
    if "agreement" in options.only:
        for voters, rounds in ((UNSAMPLED, 0), (ALL, ROUNDS)):
            agreement(log, unit // 20, voters, rounds, scratch)
    if "memory" in options.only:
        memory(log, [size * unit for size in options.sizes], FAST, scratch, unit)
    if "all" in options.only:
        memory(log, [int(size * unit) for size in options.all_sizes], ALL, scratch, unit)
    if options.write:
        for name, make in TABLES.items():
            put(options.write, name, make(log))


if __name__ == "__main__":
    main()
