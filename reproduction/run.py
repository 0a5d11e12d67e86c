"""Run trials: each in a child process with limits, each record on the disk before the next.

Kill the runner at any moment and start it again: it goes on where it was and loses at most the
trials in flight. The children notice that the runner is gone and end themselves.
"""

from __future__ import annotations

import datetime
import functools
import json
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from reproduction.estimate import seconds_left
from reproduction.records import (
    ERROR,
    MEMORY_LIMIT,
    OK,
    TIME_LIMIT,
    Record,
    RecordWriter,
    pending,
    read_records,
)
from reproduction.spec import Trial

_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Limits:
    """What one trial may use; the paper's deadline is four hours."""

    seconds: float | None = 4 * 3600.0
    memory_mib: float | None = None


@dataclass(frozen=True)
class Progress:
    """State of a run after a trial has ended."""

    done: int
    total: int
    seconds_left: float | None
    record: Record


class Interrupted(Exception):
    """The run was stopped while a trial was under way; that trial has no record."""


def run(
    trials: Iterable[Trial],
    path: Path,
    *,
    data_dir: Path | None = None,
    limits: Limits | None = None,
    jobs: int = 1,
    report: Callable[[Progress], None] | None = None,
) -> list[Record]:
    """Run the trials that have no record in the folder of ``path`` yet and append one of each.

    Parameters
    ----------
    trials : iterable of Trial
    path : Path
        File of records (JSON lines). A trial with a record in any such file beside it is not run
        again.
    data_dir : Path, optional
        Folder of the data sets.
    limits : Limits, optional
    jobs : int, default=1
        Trials at a time.
    report : callable, optional
        Called after every trial.

    Returns
    -------
    records : list of dict
        Of all the trials asked for, old and new.
    """
    wanted, limits = list(dict.fromkeys(trials)), limits or Limits()
    with RecordWriter(path) as writer:
        known = read_records(path.parent)
        todo = pending(wanted, known, asdict(limits))
        stop = threading.Event()
        pool = ThreadPoolExecutor(jobs)
        work = functools.partial(run_limited, data_dir=data_dir, limits=limits, stop=stop)
        futures: list[Future[Record]] = [pool.submit(work, trial) for trial in todo]
        new: list[Record] = []
        try:
            for future in as_completed(futures):
                new.append(future.result())
                writer.append(new[-1])
                if report:
                    ended = {record["key"] for record in new}
                    ahead = [trial for trial in todo if trial.key not in ended]
                    left = seconds_left(ahead, known + new, jobs)
                    report(Progress(len(wanted) - len(ahead), len(wanted), left, new[-1]))
        finally:
            stop.set()
            for future in futures:
                future.cancel()
            pool.shutdown()
    keys = {trial.key for trial in wanted}
    return [record for record in read_records(path.parent) if record["key"] in keys]


def run_limited(
    trial: Trial,
    *,
    data_dir: Path | None = None,
    limits: Limits | None = None,
    stop: threading.Event | None = None,
) -> Record:
    """Run one trial in a child process and return its record, whatever becomes of the child."""
    limits, start = limits or Limits(), time.monotonic()
    outcome = _in_child(trial, data_dir, limits, start, stop)
    return {
        "key": trial.key,
        "trial": trial.as_dict(),
        "limits": asdict(limits),
        "total_seconds": round(time.monotonic() - start, 3),
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        **outcome,
    }


def _in_child(
    trial: Trial,
    data_dir: Path | None,
    limits: Limits,
    start: float,
    stop: threading.Event | None,
) -> dict[str, Any]:
    context = _context()
    answers, channel = context.Pipe(duplex=False)
    # The child holds the reading end of this pipe: it reads the end of file when we are gone.
    lifeline, alive = context.Pipe(duplex=False)
    process = context.Process(
        target=_child,
        args=(channel, lifeline, trial, data_dir, limits.memory_mib, dict(os.environ)),
        daemon=True,
    )
    process.start()
    channel.close()
    lifeline.close()
    try:
        outcome = _wait(answers, start, limits.seconds, stop)
    finally:
        process.kill()
        process.join()
        answers.close()
        alive.close()
    if outcome is None:
        return {"status": ERROR, "error": f"the process ended with code {process.exitcode}"}
    return outcome


def _context() -> Any:
    if sys.platform == "win32":
        return get_context("spawn")
    # Forks from a small clean process that has imported the libraries once: a trial starts in
    # milliseconds, and no thread pool of ours is forked half-way.
    context = get_context("forkserver")
    context.set_forkserver_preload(["reproduction.preload"])
    return context


def _wait(
    answers: Connection, start: float, seconds: float | None, stop: threading.Event | None
) -> dict[str, Any] | None:
    """The child's answer, a time limit, or None if the child died without a word."""
    while not answers.poll(_POLL_SECONDS):
        if stop is not None and stop.is_set():
            raise Interrupted
        if seconds is not None and time.monotonic() - start > seconds:
            return {"status": TIME_LIMIT}
    try:
        answer: dict[str, Any] = answers.recv()
    except EOFError:
        return None
    return answer


def _child(
    channel: Connection,
    lifeline: Connection,
    trial: Trial,
    data_dir: Path | None,
    memory_mib: float | None,
    environment: dict[str, str],
) -> None:
    os.environ.update(environment)  # ours is that of the day the fork server was started
    threading.Thread(target=_die_with_runner, args=(lifeline,), daemon=True).start()
    answer: dict[str, Any] = {"status": OK}
    try:
        if memory_mib is not None:
            _limit_memory(memory_mib)
        from reproduction.measure import measure

        answer |= measure(trial, data_dir)
        json.dumps(answer, allow_nan=False)  # a score that cannot be written down is an error
    except MemoryError:
        answer = {"status": MEMORY_LIMIT if memory_mib is not None else ERROR}
        answer |= {"error": "out of memory"} if memory_mib is None else {}
    except Exception as error:
        answer = {"status": ERROR, "error": f"{type(error).__name__}: {error}"}
    channel.send(answer | {"peak_mib": _peak_mib(), "versions": versions()})


def _die_with_runner(lifeline: Connection) -> None:
    try:
        lifeline.poll(None)
    finally:
        os._exit(1)


def _limit_memory(mib: float) -> None:
    if not sys.platform.startswith("linux"):
        raise ValueError("A memory limit can be kept on Linux only; run without one.")
    import resource

    # Private writable memory: what a trial allocates, without the libraries' code.
    limit = int(mib * 2**20)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _peak_mib() -> float | None:
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)


@functools.cache
def machine() -> dict[str, Any]:
    """System, processor and number of cores."""
    return {"system": platform.system(), "cpu": _cpu(), "cores": os.cpu_count()}


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def versions() -> dict[str, str]:
    """Versions of what a score may depend on."""
    import numpy
    import scipy
    import sklearn

    import fewlabel

    return {
        "fewlabel": fewlabel.__version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }
