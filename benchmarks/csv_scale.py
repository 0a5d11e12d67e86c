"""``fewlabel fit`` on a CSV of a million rows: ``python -m benchmarks.csv_scale --write FILE``

Runs the real command, in a process of its own, on a table of 20 columns with 1,000 labelled rows,
with the default training budget and without; reads time and peak memory of that process from the
operating system, and the accuracy from the command's own answer.
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

from benchmarks.__main__ import _machine, _table

NOTE = """
`make_classification` with 20 columns of numbers and 5 classes, 1,000 rows labelled, written as CSV;
`fewlabel fit table.csv --target y --truth truth --out labelled.csv --model model.skops --report
report.html --jobs 2`, from the start of the process to its end: reading, preprocessing, learning,
bounds, and writing all three files. *Supervised* and *accuracy* are on unlabelled rows, with the
first forest and after self-learning. `max_train` is the training budget; 20,000 is the command's
default, and 0 turns it off. The run without a budget is on fewer rows because each of its rounds
trains on all of them.
"""


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


def run(folder: Path, n: int, max_train: int) -> dict[str, Any]:
    """Run the command and measure its process."""
    table = folder / f"table-{n}.csv"
    if not table.exists():
        write_csv(table, n)
    outputs = {"--out": "labelled.csv", "--model": "model.skops", "--report": "report.html"}
    files = [part for option, name in outputs.items() for part in (option, str(folder / name))]
    options = ["--target", "y", "--truth", "truth", "--jobs", "2", "--force", "--json"]
    command = [sys.executable, "-m", "fewlabel", "fit", str(table), *options, *files]
    start = time.perf_counter()
    process = subprocess.Popen([*command, "--max-train", str(max_train)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    answer = json.loads(process.stdout.read())
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        raise SystemExit(f"the command failed: {answer}")
    errors = {entry["key"]: entry["true_error"] for entry in answer["errors"]}
    return {
        "rows": f"{n:,} × 20",
        "CSV": f"{table.stat().st_size / 2**20:.0f} MiB",
        "max_train": f"{max_train:,}" if max_train else "none",
        "supervised": f"{1 - errors['supervised']:.4f}",
        "accuracy": f"{1 - errors['all']:.4f}",
        "rounds": len(answer["rounds"]),
        "minutes": f"{seconds / 60:.1f}",
        "processor minutes": f"{(usage.ru_utime + usage.ru_stime) / 60:.1f}",
        "peak memory": f"{usage.ru_maxrss / 2**20:.1f} GiB",
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.csv_scale", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--write", type=Path, help="also write the page to this file")
    options = parser.parse_args()
    plan = [(1_000_000, 20_000), (100_000, 20_000), (100_000, 0)]
    if options.quick:
        plan = [(4_000, 1_000), (4_000, 0)]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for n, max_train in plan:
            rows.append(run(Path(folder), n, max_train))
            print(rows[-1], flush=True)
    load = f"{os.getloadavg()[2]:.1f} running processes on average in the last quarter of an hour"
    page = [
        "# A CSV of a million rows",
        "",
        f"Made by `make csv-scale` on one machine ({_machine()}; {load}).",
        NOTE,
        _table(rows),
    ]
    if options.write:
        options.write.write_text("\n".join(page) + "\n")


if __name__ == "__main__":
    main()
