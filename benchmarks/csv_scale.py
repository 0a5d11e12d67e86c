"""``fewlabel fit`` on a CSV of a million rows: ``python -m benchmarks.csv_scale --write FILE``

Runs the real command, in a process of its own, on a table of 20 columns with 1,000 labelled rows,
with several training budgets and without; reads time and peak memory of that process from the
operating system, and the accuracy from the command's own answer. Each run leaves a record; runs
that have one are not repeated (remove the file to measure again), and the page shows the records.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _page

NOTE = """
`make_classification` with 20 columns of numbers and 5 classes, 1,000 rows labelled, written as CSV;
`fewlabel fit table.csv --learner forest --target y --truth truth --out labelled.csv --model
model.skops --report report.html --jobs 2`, from the start of the process to its end: reading,
preprocessing, learning, bounds, and writing all three files. *Supervised* and *accuracy* are on
unlabelled rows, with the first forest and after self-learning. `max_train` is the training budget;
the forest's default is {default:,}, and 0 turns it off. The run without a budget is on fewer rows
because each of its rounds trains on all of them. *Load* is the number of processes that shared the
machine's processors (average of the last five minutes): with an idle machine expect about
*processor minutes* divided by the number of processors.
"""

PLAN = [(1_000_000, 100_000), (100_000, 0), (1_000_000, 20_000), (100_000, 20_000)]
QUICK = [(4_000, 1_000), (4_000, 0)]


def write_csv(path: Path, n: int) -> None:
    """A table of n rows with the target in column y and the truth in column truth."""
    import pyarrow as pa
    from pyarrow import csv
    from sklearn.datasets import make_classification

    X, y = make_classification(
        n, 20, n_informative=8, n_classes=5, class_sep=1.5, flip_y=0.02, random_state=0
    )
    columns: dict[str, Any] = {f"x{k}": np.round(X[:, k], 4) for k in range(20)}
    names = np.array([f"class {c}" for c in range(5)])
    columns["y"] = pa.array(np.where(np.arange(n) < 1_000, names[y], ""))
    columns["truth"] = pa.array(names[y])
    csv.write_csv(pa.table(columns), path)


def run(n: int, max_train: int) -> dict[str, Any]:
    """Run the command and measure its process."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = folder / "table.csv"
        write_csv(table, n)
        outputs = ["--out", "labelled.csv", "--model", "model.skops", "--report", "report.html"]
        options = ["--learner", "forest", "--target", "y", "--truth", "truth", "--jobs", "2"]
        options += ["--json"]
        command = [sys.executable, "-m", "fewlabel", "fit", str(table), *options, *outputs]
        command += ["--max-train", str(max_train)]
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=folder)
        assert process.stdout is not None
        answer = json.loads(process.stdout.read())
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        if status:
            raise SystemExit(f"the command failed: {answer}")
        size = table.stat().st_size
    errors = {entry["key"]: entry["true_error"] for entry in answer["errors"]}
    return {
        "n": n,
        "max_train": max_train,
        "csv_mib": size / 2**20,
        "supervised": 1 - errors["supervised"],
        "accuracy": 1 - errors["all"],
        "rounds": len(answer["rounds"]),
        "minutes": seconds / 60,
        "processor_minutes": (usage.ru_utime + usage.ru_stime) / 60,
        "peak_gib": usage.ru_maxrss / 2**20,
        "load": os.getloadavg()[1],
        "machine": _page.machine(),
    }


def shown(record: dict[str, Any]) -> dict[str, object]:
    """A line of the table."""
    return {
        "rows": f"{record['n']:,} × 20",
        "CSV": f"{record['csv_mib']:.0f} MiB",
        "max_train": f"{record['max_train']:,}" if record["max_train"] else "none",
        "supervised": f"{record['supervised']:.4f}",
        "accuracy": f"{record['accuracy']:.4f}",
        "rounds": record["rounds"],
        "minutes": f"{record['minutes']:.1f}",
        "processor minutes": f"{record['processor_minutes']:.1f}",
        "peak memory": f"{record['peak_gib']:.1f} GiB",
        "load": f"{record['load']:.0f}",
    }


def page(records: list[dict[str, Any]]) -> str:
    """The page of the documentation."""
    from fewlabel.cli.workflow import MAX_TRAIN

    machines = sorted({record["machine"] for record in records})
    head = f"# A CSV of a million rows\n\nMade by `make csv-scale` ({'; '.join(machines)}).\n"
    lines = [shown(record) for record in records]
    return head + NOTE.format(default=MAX_TRAIN) + "\n" + _page.table(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.csv_scale", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--records", type=Path, help="keep the records of the runs in this file")
    parser.add_argument("--write", type=Path, help="write the page to this file")
    options = parser.parse_args()
    plan = QUICK if options.quick else PLAN
    records: dict[tuple[int, int], dict[str, Any]] = {}
    if options.records:
        records = {(r["n"], r["max_train"]): r for r in _page.records(options.records)}
    for n, max_train in plan:
        if (n, max_train) not in records:
            records[n, max_train] = run(n, max_train)
            print(records[n, max_train], flush=True)
            if options.records:
                with options.records.open("a") as file:
                    file.write(json.dumps(records[n, max_train]) + "\n")
        if options.write:
            _page.write(options.write, page([records[key] for key in plan if key in records]))


if __name__ == "__main__":
    main()
