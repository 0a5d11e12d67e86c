"""Records of the scaling benchmark, and the tables of docs/scaling.md that are made of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _page
from benchmarks._page import table
from benchmarks.out_of_core import CLASSES, FEATURES, FILE_ROWS, LABELED
from fewlabel.chunks.steps import BALLOT, MARKS
from fewlabel.ensemble.families import FAMILIES

Record = dict[str, Any]
Table = list[dict[str, Any]]
RECORDS = Path(__file__).parents[1] / "results" / "scaling.jsonl"

MILLION = 1_000_000
SIZES = (1, 2, 5, 10)  # million rows
ALL_SIZES = SIZES  # of all families, whose votes cost thirty times as much: an hour
WORKERS = (1, 2, 4)
FAST = ["semi_lda", "s3vm"]
"""Families whose votes cost a microsecond a row: what is left is what everything else costs."""
ALL = list(FAMILIES)
UNSAMPLED = ["forest", "extra_trees", "svm"]
"""Families that use no sample of the unlabelled rows."""

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


def families_of(record: Record) -> str:
    """The families of a record, in words."""
    return f"all {len(ALL)}" if record["voters"] == ALL else ", ".join(record["voters"])


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
        f"round (`max_train=5000`), medians of 3 runs by the clock on the wall, which other work "
        f"on the machine makes longer. Between passes {kept} bytes a row wait on disk.",
        log.of("cost"),
    )


def memory_table(log: Log) -> str:
    records = log.of("memory")
    rows = [
        {
            "": record["how"],
            "families": families_of(record),
            "rows": f"{record['rows']:,} × {len(FEATURES)}",
            "peak MiB": f"{record['peak_mib']:.0f}",
            "seconds": f"{record['seconds']:.0f}",
            "processor seconds": f"{record['processor_seconds']:.0f}",
            "µs a row": f"{record['processor_seconds'] / record['rows'] * 1e6:.1f}",
            "error": f"{record['error']:.4f}",
        }
        for record in records
    ]
    text = (
        f"{ROUNDS} round, {LABELED:,} labelled rows, one core, one run each in a process of its "
        f"own, no time budget."
    )
    kinds = {families_of(record): record["voters"] for record in records}
    for name, voters in kinds.items():
        found = _out_of_core(log, voters)
        if len(found) > 1:
            peaks, (start, slope) = [record["peak_mib"] for record in found], line(log, voters)
            text += (
                f" Of {name} out of core: largest peak over smallest "
                f"{max(peaks) / min(peaks):.3f}; line through the processor seconds: "
                f"{start:.0f} s + {slope * 1e6:.1f} µs a row."
            )
    return _noted(rows, text, records)


def _out_of_core(log: Log, voters: list[str]) -> list[Record]:
    """The fits of the same families on more and more rows."""
    return [r for r in log.of("memory") if r["how"] == "out of core" and r["voters"] == voters]


def line(log: Log, voters: list[str]) -> tuple[float, float]:
    """Processor seconds at no row, and for each, of the fits out of core."""
    found = _out_of_core(log, voters)
    x = np.array([record["rows"] for record in found], dtype=float)
    y = np.array([record["processor_seconds"] for record in found])
    if len(found) == 1:
        return 0.0, float(y[0] / x[0])
    slope, start = np.polyfit(x, y, 1)
    return max(0.0, float(start)), float(slope)


def agreement_table(log: Log) -> str:
    records = log.of("agreement")
    rows = [
        {
            "families": families_of(record),
            "rounds": record["rounds"],
            "rows": f"{record['rows']:,}",
            "equal labels": f"{record['equal_labels']:.2%}",
            "largest difference of a vote": f"{record['largest_difference']:.1e}",
            "error out of core": f"{record['error']:.4f}",
            "error in memory": f"{record['error_in_memory']:.4f}",
        }
        for record in records
    ]
    text = f"The same {len(FEATURES)} columns and {LABELED:,} labelled rows as above, one fit each."
    return _noted(rows, text, records)


def workers_table(log: Log) -> str:
    records = log.of("workers")
    rows = [
        {
            "families": families_of(record),
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
        f"One thread a worker, Parquet files of at most {FILE_ROWS:,} rows (at least four), one "
        f"run each on {os.cpu_count()} processors that do other work, too."
    )
    return _noted(rows, text, records)


def projection_table(log: Log) -> str:
    """What 10⁹ rows on 100 workers would take: computed, not measured."""
    costs = {record["what"]: record for record in log.of("cost")}
    kinds = [voters for voters in (FAST, ALL) if _out_of_core(log, voters)]
    task = log.of("tasks")[0]["task_seconds"]
    partitions = ROWS // FILE_ROWS
    tasks = partitions * (3 + STEPS_OF_A_ROUND * ROUNDS) * TASKS_OF_A_STEP
    statistics = 8 * 1000 * CLASSES * (3 * CLASSES + 2)
    of_statistics = f"statistics of {partitions:,} partitions, {statistics / 2**10:.0f} KiB each"
    rows: Table = [
        {"": "work on the rows, all workers at once", "grows": "with rows"},
        {"": f"scheduler: {tasks:,.0f} tasks", "grows": "with partitions"},
        {"": of_statistics, "grows": "with partitions and classes²"},
        {"": f"voters to {CORES} workers", "grows": "with workers"},
    ]
    for voters in kinds:
        sent = CORES * sum(costs[name]["bytes"] for name in voters if name in costs)
        cells = [
            _time(line(log, voters)[1] * ROWS / CORES),
            _time(tasks * task),
            f"{partitions * statistics / 2**30:.1f} GiB a pass",
            f"{sent / 2**30:.2f} GiB a round",
        ]
        for row, cell in zip(rows, cells):
            row[families_of({"voters": voters})] = cell
    head = ["", *(families_of({"voters": voters}) for voters in kinds), "grows"]
    return _noted(
        [{key: row[key] for key in head} for row in rows],
        f"**A projection, not a measurement**: {ROWS:,} rows × {len(FEATURES)} on {CORES} workers "
        f"of one core each as fast as this one, files of {FILE_ROWS:,} rows, no time budget, by "
        f"the lines of the table above and {task * 1e3:.2f} ms for a task that does nothing.",
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
    "agreement": agreement_table,
    "workers": workers_table,
    "projection": projection_table,
}
