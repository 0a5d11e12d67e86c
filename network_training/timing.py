"""Seconds to draw the tasks of a step, by context size: ``python -m network_training.timing``."""

from __future__ import annotations

import json
import sys
import time

import torch

from network_training.train import FULL, TINY, chunk_of


def main() -> None:
    """Print one JSON line for each context size."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    plan = FULL if device == "cuda" else TINY
    for index, (n_rows, n_columns) in enumerate(plan.contexts):
        for repeat in range(3):
            start = time.perf_counter()
            tasks = list(chunk_of(plan, repeat, index, device))
            if device == "cuda":
                torch.cuda.synchronize()
            seconds = (time.perf_counter() - start) / plan.chunk_steps
        line = {
            "rows": n_rows,
            "columns": n_columns,
            "tasks": len(tasks[0]),
            "seconds_a_step": seconds,
        }
        sys.stdout.write(f"{json.dumps(line)}\n")


if __name__ == "__main__":
    main()
