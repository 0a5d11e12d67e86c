"""How the mixed vote scales over rows and workers: ``python -m benchmarks.scaling --help``.

Each measurement is a record in results/scaling.jsonl: a run that was interrupted goes on where it
stopped, and the tables of docs/scaling.md are made from the records.
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
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _page
from benchmarks._measure import in_child, side_by_side
from benchmarks._page import put, table
from benchmarks.out_of_core import (
    CLASSES,
    FEATURES,
    FILE_ROWS,
    LABELED,
    blobs,
    classifier,
    fit_in_memory,
    fit_out_of_core,
    labeled,
    write,
)
from fewlabel import DaskRows, VoteStatistics, vote_matrix
from fewlabel.chunks.steps import BALLOT, MARKS
from fewlabel.chunks.survey import ColumnSums
from fewlabel.ensemble.families import FAMILIES

Record = dict[str, Any]
Table = list[dict[str, Any]]
RECORDS = Path(__file__).parents[1] / "results" / "scaling.jsonl"

MILLION = 1_000_000
SIZES = (1, 2, 5, 10)  # million rows
WORKERS = (1, 2, 4)
FAST = ("semi_lda", "s3vm")
"""Families whose votes cost a microsecond a row: what is left is what everything else costs."""
KEPT = ("forest", "extra_trees", "semi_lda", "s3vm", "spreading_lda")
"""Families that the default time budget keeps for ten million rows on one core (table "cost")."""

# The projection: 10⁹ rows on 100 workers with one core each.
ROWS, CORES = 10**9, 100
ROUNDS = 1
STEPS_OF_A_ROUND = 4  # count, pseudo-label, draw, vote
TASKS_OF_A_STEP = 2.5  # one that works, those that take its pieces apart, its share of the merges


class Log:
    """Records of measurements; what has one is not measured again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records = _page.records(path)

    def measured(self, spec: Record, measure: Callable[[], Record]) -> Record:
        """The record of a measurement, made now if there is none."""
        for record in self.records:
            if all(record.get(key) == value for key, value in spec.items()):
                return record
        record = {**spec, **measure(), "load": round(os.getloadavg()[0], 1)}
        self.records.append(record)
        self.path.parent.mkdir(exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        print(record, flush=True)
        return record

    def of(self, part: str) -> list[Record]:
        """Records of one part, smaller ones first."""
        found = [record for record in self.records if record["part"] == part]
        return sorted(found, key=lambda record: (record.get("rows", 0), record.get("workers", 0)))


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


# --- tables --------------------------------------------------------------------------------------


def cost_table(log: Log) -> str:
    rows = []
    for record in log.of("cost"):
        family = FAMILIES.get(record["what"])
        size = f"{record['bytes'] / 2**20:.1f}" if "bytes" in record else ""
        rows.append(
            {
                "": f"votes: {family.title}" if family else record["what"],
                "µs a row": f"{record['microseconds']:.2f}",
                "million rows in 600 s": f"{600 / record['microseconds']:.1f}" if family else "",
                "MiB of the voter": size,
            }
        )
    kept = MARKS.itemsize + BALLOT.itemsize + 8 * CLASSES
    return _noted(
        rows,
        f"One core, 20 columns, {CLASSES} classes, {LABELED:,} labelled rows, voters of the last "
        f"round (`max_train=5000`), medians of 3 runs. Between passes {kept} bytes a row wait on "
        f"disk.",
        log.of("cost"),
    )


def memory_table(log: Log) -> str:
    records = log.of("memory")
    rows = [
        {
            "": record["how"],
            "families": ", ".join(record["voters"]),
            "rows": f"{record['rows']:,} × {len(FEATURES)}",
            "peak MiB": f"{record['peak_mib']:.0f}",
            "seconds": f"{record['seconds']:.0f}",
            "processor seconds": f"{record['processor_seconds']:.0f}",
            "µs a row": f"{record['processor_seconds'] / record['rows'] * 1e6:.1f}",
            "error": f"{record['error']:.4f}",
        }
        for record in records
    ]
    peaks = [record["peak_mib"] for record in _out_of_core(records)]
    start, slope = line(records)
    return _noted(
        rows,
        f"{ROUNDS} round, {LABELED:,} labelled rows, one core, one run each in a process of its "
        f"own. Of {', '.join(records[0]['voters'])} out of core: largest peak over smallest "
        f"{max(peaks) / min(peaks):.3f}; line through the processor seconds: {start:.0f} s + "
        f"{slope * 1e6:.1f} µs a row.",
        records,
    )


def _out_of_core(records: list[Record]) -> list[Record]:
    """The fits of the same families on more and more rows."""
    voters = records[0]["voters"]
    return [r for r in records if r["how"] == "out of core" and r["voters"] == voters]


def line(records: list[Record]) -> tuple[float, float]:
    """Processor seconds at no row, and for each, of the fits out of core."""
    found = _out_of_core(records)
    x = np.array([record["rows"] for record in found], dtype=float)
    y = np.array([record["processor_seconds"] for record in found])
    if len(found) == 1:
        return 0.0, float(y[0] / x[0])
    slope, start = np.polyfit(x, y, 1)
    return max(0.0, float(start)), float(slope)


def workers_table(log: Log) -> str:
    records = log.of("workers")
    rows = [
        {
            "rows": f"{record['rows']:,}",
            "workers": record["workers"],
            "seconds": f"{record['seconds']:.1f}",
            "processor seconds": f"{record['processor_seconds']:.1f}",
            "rows/s/core": f"{record['rows'] / record['processor_seconds']:,.0f}",
            "peak MiB a worker": f"{record['peak_mib']:.0f}",
        }
        for record in records
    ]
    text = (
        f"Families {', '.join(records[0]['voters'])}, one thread a worker, Parquet files of at "
        f"most {FILE_ROWS:,} rows, one run each on {os.cpu_count()} processors that do other work, "
        f"too."
    )
    return _noted(rows, text, records)


def projection_table(log: Log) -> str:
    """What 10⁹ rows on 100 workers would take: computed, not measured."""
    _, slope = line(log.of("memory"))
    costs = {record["what"]: record for record in log.of("cost")}
    voters = {names: [costs[name] for name in names if name in costs] for names in (FAST, KEPT)}
    # Every family votes on all rows in the first and in the last pass.
    more = sum(c["microseconds"] for c in voters[KEPT] if c["what"] not in FAST) / 1e6
    slopes = [slope, slope + (ROUNDS + 1) * more]
    sizes = [sum(cost["bytes"] for cost in voters[names]) for names in (FAST, KEPT)]
    task = log.of("tasks")[0]["task_seconds"]
    partitions = ROWS // FILE_ROWS
    tasks = partitions * (3 + STEPS_OF_A_ROUND * ROUNDS) * TASKS_OF_A_STEP
    statistics = 8 * 1000 * CLASSES * (3 * CLASSES + 2)
    work, sent = ([_time(s * ROWS / CORES) for s in slopes], [size * CORES for size in sizes])
    each_pass = f"{partitions * statistics / 2**30:.1f} GiB a pass"
    rows = [
        ("work on the rows, all workers at once", *work, "with rows"),
        (f"scheduler: {tasks:,.0f} tasks", *[_time(tasks * task)] * 2, "with partitions"),
        (
            f"statistics of {partitions:,} partitions, {statistics / 2**10:.0f} KiB each",
            *[each_pass] * 2,
            "with partitions and classes²",
        ),
        (
            f"voters to {CORES} workers",
            *[f"{size / 2**30:.2f} GiB a round" for size in sent],
            "with workers",
        ),
    ]
    head = ("", " and ".join(FAST), "the five fastest", "grows")
    table_rows = [dict(zip(head, row)) for row in rows]
    return _noted(
        table_rows,
        f"**A projection, not a measurement**: {ROWS:,} rows × {len(FEATURES)} on {CORES} workers "
        f"of one core each as fast as this one, files of {FILE_ROWS:,} rows, by the line of the "
        f"table above and {task * 1e3:.2f} ms for a task that does nothing.",
        log.of("tasks"),
    )


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _noted(rows: Table, text: str, records: list[Record]) -> str:
    loads = sorted(record["load"] for record in records)
    return f"{table(rows)}\n\n{text} Load average of the machine: {loads[0]} to {loads[-1]}."


TABLES: dict[str, Callable[[Log], str]] = {
    "cost": cost_table,
    "memory": memory_table,
    "workers": workers_table,
    "projection": projection_table,
}


def main() -> None:
    parts = ["cost", "memory", "workers", "kept"]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--only", nargs="*", choices=parts, default=parts)
    parser.add_argument("--unit", type=int, default=MILLION, help="rows of the smallest size")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="in units")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--records", type=Path, default=RECORDS)
    parser.add_argument("--write", type=Path, help="page whose tables are replaced")
    options = parser.parse_args()
    log, voters = Log(options.records), list(FAST)
    if "cost" in options.only:
        cost(log, options.unit // 20, options.unit // 500, list(FAMILIES))
    if "memory" in options.only:
        sizes = [size * options.unit for size in options.sizes]
        memory(log, sizes, voters, options.scratch, options.unit)
    if "workers" in options.only:
        workers(log, options.unit, list(WORKERS), voters, options.scratch)
    if "kept" in options.only:
        memory(log, [options.unit], list(KEPT), options.scratch, 0)
    if options.write:
        for name, make in TABLES.items():
            put(options.write, name, make(log))


if __name__ == "__main__":
    main()
