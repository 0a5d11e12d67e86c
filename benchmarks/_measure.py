"""How the benchmarks measure: warm-up, interleaved repeats, medians; memory in a child process."""

from __future__ import annotations

import multiprocessing
import resource
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any


def side_by_side(repeats: int, **candidates: Callable[[], Any]) -> dict[str, float]:
    """Median seconds of each candidate; rounds are interleaved so that noise hits all alike."""
    for run in candidates.values():
        run()  # warm-up
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(repeats):
        for name, run in candidates.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def _child(function: Callable[..., Any], args: tuple[Any, ...], queue: Any) -> None:
    queue.put((function(*args), _peak_mib()))


def _peak_mib() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def in_child(function: Callable[..., Any], *args: Any) -> tuple[Any, float]:
    """Result of ``function(*args)`` in a fresh process, and that process's peak memory in MiB."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=_child, args=(function, args, queue))
    process.start()
    answer = queue.get()
    process.join()
    return answer
