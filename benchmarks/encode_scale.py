"""Read and encode a million rows: ``python -m benchmarks.encode_scale --before REVISION``

Writes a CSV file of 20 mixed columns (numbers, money, yes or no, dates, categories of few and of
500 values, an identifier) and reads and encodes it in processes of their own, with one thread: by
``TableEncoder``, by skrub's ``TableVectorizer``, and by the code of an earlier commit, alternately.
Prints processor seconds and peak memory, medians over the repeats, and adds them to the records of
``benchmarks.table_costs`` if asked to. ``--rows 20000`` is the small version.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.table_costs import keep

ROOT = Path(__file__).parents[1]
OURS = """
import json, resource, sys, time, warnings
from pathlib import Path
from fewlabel.tables.reading import read_table
warnings.simplefilter("ignore")
start = time.process_time()
table = read_table(Path(sys.argv[1]))
read = time.process_time()
try:
    from fewlabel.encoding.encoder import TableEncoder
    X = TableEncoder().fit_transform(table)
except ImportError:
    from fewlabel.encoding.columns import make_transformer, plan_columns, to_frame
    plan = plan_columns(table, leave_out={}, comma_separated=True)
    X = make_transformer(plan).fit_transform(to_frame(table, plan))
done = time.process_time()
"""
SKRUB = """
import json, resource, sys, time, warnings
import pandas as pd
from skrub import TableVectorizer
warnings.simplefilter("ignore")
start = time.process_time()
table = pd.read_csv(sys.argv[1])
read = time.process_time()
X = TableVectorizer().fit_transform(table)
done = time.process_time()
"""
TELL = """
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
told = {"reading": read - start, "encoding": done - read, "mib": peak, "width": X.shape[1]}
print(json.dumps(told))
"""


def write_csv(path: Path, n: int) -> None:
    """A table of 20 mixed columns."""
    import pyarrow as pa
    from pyarrow import csv

    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {f"x{k}": np.round(rng.normal(size=n), 4) for k in range(10)}
    for k, levels in enumerate((3, 8, 20, 35)):
        columns[f"kind{k}"] = np.array([f"level {i}" for i in range(levels)])[
            rng.integers(0, levels, n)
        ]
    columns["town"] = np.array([f"town {i * 7919 % 500}" for i in range(500)])[
        rng.integers(0, 500, n)
    ]
    columns["member"] = np.where(rng.random(n) < 0.5, "yes", "no")
    columns["price"] = np.char.add("$", np.round(rng.lognormal(4, 1, n), 2).astype(str))
    days = np.datetime64("2015-01-01") + rng.integers(0, 3_000, n)
    columns["since"] = days.astype(str)
    columns["until"] = (days + rng.integers(0, 400, n)).astype(str)
    columns["id"] = np.char.add("C", np.arange(n).astype(str))
    csv.write_csv(pa.table(columns), path)


def measure(source: Path, work: str, path: Path) -> dict[str, float]:
    """Seconds and memory of one process with the package in this folder."""
    environment = {**os.environ, "PYTHONPATH": str(source / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", work + TELL, str(path)]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(answer.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", help="a commit to compare with")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=["now", "before", "skrub"], help="one of the sides")
    parser.add_argument("--record", action="store_true", help="keep what was measured")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, tree = Path(folder) / "table.csv", Path(folder) / "before"
        write_csv(path, options.rows)
        sides = {"now": (ROOT, OURS), "skrub's TableVectorizer": (ROOT, SKRUB)}
        git = ["git", "-C", str(ROOT), "worktree"]
        if options.before:
            subprocess.run([*git, "add", "-q", "--detach", str(tree), options.before], check=True)
            sides[f"before ({options.before})"] = (tree, OURS)
        sides = {name: side for name, side in sides.items() if (options.only or "") in name}
        runs: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
        try:
            for _ in range(options.repeats):
                for name, (source, work) in sides.items():
                    runs[name].append(measure(source, work, path))
        finally:
            if options.before:
                subprocess.run([*git, "remove", "--force", str(tree)], check=True)
        for name, found in runs.items():
            mid = {key: median(run[key] for run in found) for key in found[0]}
            print(
                f"{name}: reading {mid['reading']:.1f} s, encoding {mid['encoding']:.1f} s, peak "
                f"{mid['mib']:,.0f} MiB, {mid['width']:.0f} features ({options.rows:,} rows, "
                f"{options.repeats} repeats)",
                flush=True,
            )
            if options.record:
                size = {"rows": options.rows, "repeats": options.repeats}
                keep({"kind": "encode", "side": name, **size, **mid})


if __name__ == "__main__":
    main()
