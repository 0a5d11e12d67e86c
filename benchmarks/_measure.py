"""How the benchmarks measure: warm-up, interleaved repeats, medians; memory in a child process."""

from __future__ import annotations

import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
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


def _with_peak(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, float]:
    return function(*args), _peak_mib()


def _peak_mib() -> float:
    # ru_maxrss survives exec, so on Linux a child would report its parent's peak if that is higher.
    status = Path("/proc/self/status")
    if status.exists():
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) / 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def in_child(function: Callable[..., Any], *args: Any) -> tuple[Any, float]:
    """Result of ``function(*args)`` in a fresh process, and that process's peak memory in MiB."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        return pool.submit(_with_peak, function, args).result()
