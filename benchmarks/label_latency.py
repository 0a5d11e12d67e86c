"""How long a person waits at the page while it learns: ``python -m benchmarks.label_latency``.

A table of 100,000 rows and 50 columns; a client answers row after row while the program learns.
Measured at the client: from sending an answer to its acknowledgement (it is on the disk then), and
from asking for the next row to having it.

    python -m benchmarks.label_latency --answers 300 --write docs/labeling.md
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification

from benchmarks._page import machine, put
from benchmarks.label_kill import Client, started

RECORD = Path("results/label_latency.json")


def make_table(path: Path, rows: int, columns: int) -> np.ndarray[Any, Any]:
    """A table of numbers with an empty target; the true classes."""
    X, y = make_classification(
        rows, columns, n_informative=8, n_classes=3, class_sep=1.5, random_state=0
    )
    with path.open("w", encoding="utf-8") as file:
        file.write(",".join([*(f"x{j}" for j in range(columns)), "y"]) + "\n")
        for row in X.round(4):
            file.write(",".join(map(str, row)) + ",\n")
    return y


def measured(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Times of answers and of rows, in milliseconds, while the program learns."""
    path = folder / "large.csv"
    y = make_table(path, args.rows, args.columns)
    begin = time.perf_counter()
    classes = [option for k in range(3) for option in ("--class", str(k))]
    process, address = started(str(path), "--target", "y", *classes)
    opened = time.perf_counter() - begin
    client = Client(address)
    answers, rows, during = [], [], 0
    try:
        for _ in range(args.answers):
            busy = client.state()["learning"]["busy"]
            start = time.perf_counter()
            card = client.post("next")["card"]
            middle = time.perf_counter()
            client.post("answer", row=card["row"], kind="label", label=str(y[card["row"]]))
            answers.append(1e3 * (time.perf_counter() - middle))
            rows.append(1e3 * (middle - start))
            during += busy
            time.sleep(args.pause)
        end = time.monotonic() + args.wait
        while client.state()["model"] is None and time.monotonic() < end:
            time.sleep(1.0)
        model = client.state()["model"]
    finally:
        process.kill()
        process.communicate()
    return {
        "rows": args.rows,
        "columns": args.columns,
        "answers": len(answers),
        "while learning": during,
        "opened_s": round(opened, 1),
        "answer_ms": _quantiles(answers),
        "row_ms": _quantiles(rows),
        "learned": model is not None,
        "machine": machine(),
    }


def _quantiles(times: list[float]) -> dict[str, float]:
    values = np.quantile(times, [0.5, 0.95, 1.0])
    return dict(zip(("median", "95 %", "slowest"), (round(float(v), 1) for v in values)))


def text(record: dict[str, Any]) -> str:
    """The paragraph of the page."""
    answer, row = record["answer_ms"], record["row_ms"]
    return (
        f"{record['rows']:,} rows of {record['columns']} columns, {record['answers']} answers, "
        f"{record['while learning']} of them while a model was being learned "
        f"({record['machine']}):\n\n"
        "| | median | 95 % below | slowest |\n|---|---|---|---|\n"
        f"| an answer is acknowledged | {answer['median']} ms | {answer['95 %']} ms | "
        f"{answer['slowest']} ms |\n"
        f"| the next row is there | {row['median']} ms | {row['95 %']} ms | {row['slowest']} ms |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--answers", type=int, default=300)
    parser.add_argument("--pause", type=float, default=0.1, help="seconds between answers")
    parser.add_argument("--wait", type=float, default=0.0, help="seconds to wait for a model")
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        record = measured(Path(folder), args)
    print(json.dumps(record, indent=1))
    if args.write:
        RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        put(args.write, "latency", text(record))


if __name__ == "__main__":
    main()
