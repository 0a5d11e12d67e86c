"""Learning beside the page: a process of its own, so that no answer ever waits for a fit."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from fewlabel._core.errors import UserError
from fewlabel.labeling.learning import Learned, Lesson, learn
from fewlabel.labeling.space import row_space

# A process that was ended by the system, for its memory say, is started again so many times.
_RESTARTS = 2


class Job(Protocol):
    """What the process needs to know of a table; it is pickled once."""

    n_jobs: int | None

    def features(self) -> Any:
        """The rows as numbers."""

    def write(self, clf: Any, lesson: Lesson, request: dict[str, Any], folder: Path) -> list[str]:
        """Write the result into a folder: table, model, report. Names of the files."""


class LearningProcess:
    """A process that learns what the session has to teach, one lesson after the other.

    Parameters
    ----------
    job : Job
    next_task : callable
        Asked for work: a :class:`Lesson`, a dict with a ``lesson`` and a ``folder`` for files to
        write, or None for nothing to do.
    on_learned, on_files, on_trouble : callable
        Told of a :class:`Learned`, of names of files, of an error in words.
    """

    def __init__(
        self,
        job: Job,
        next_task: Callable[[], Lesson | dict[str, Any] | None],
        on_learned: Callable[[Learned], object],
        on_files: Callable[[list[str]], object],
        on_trouble: Callable[[str], object],
    ) -> None:
        self._job, self._next_task = job, next_task
        self._on_learned, self._on_files, self._on_trouble = on_learned, on_files, on_trouble
        self._wake, self._stop = threading.Event(), threading.Event()
        self._process: Any = None
        self._thread = threading.Thread(target=self._run, name="learning", daemon=True)

    def start(self) -> None:
        """Begin to learn."""
        self._thread.start()

    def wake(self) -> None:
        """Say that there may be something to do."""
        self._wake.set()

    def stop(self) -> None:
        """End the process, whatever it does."""
        self._stop.set()
        self._wake.set()
        process = self._process
        if process is not None:
            process.kill()
            process.join(5)

    # --- the thread of the session -------------------------------------------------------------

    def _run(self) -> None:
        for _ in range(_RESTARTS + 1):
            try:
                self._serve(self._started())
                return
            except (EOFError, OSError):
                if self._stop.is_set():
                    return
                self._on_trouble("Learning ended unexpectedly, perhaps for want of memory.")

    def _started(self) -> Any:
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        self._process = context.Process(target=_work, args=(there, self._job), daemon=True)
        self._process.start()
        there.close()  # so that the end of the process is the end of the pipe
        return here

    def _serve(self, pipe: Any) -> None:
        first = pipe.recv()
        self._tell(first)
        while first is None and not self._stop.is_set():
            task = self._next_task()
            if task is None:
                self._wake.wait()
                self._wake.clear()
                continue
            pipe.send(task)
            self._tell(pipe.recv())

    def _tell(self, answer: Any) -> None:
        if isinstance(answer, Learned):
            self._on_learned(answer)
        elif isinstance(answer, list):
            self._on_files(answer)
        elif isinstance(answer, str):
            self._on_trouble(answer)


# --- the process -------------------------------------------------------------------------------


def _work(pipe: Any, job: Job) -> None:
    """Do one task after the other; end when the session does."""
    _lower_priority()
    warnings.simplefilter("ignore")  # what concerns the user stands in the estimate
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the page, which ends this process
    threading.Thread(target=_exit_with_parent, args=(os.getppid(),), daemon=True).start()
    try:
        X = job.features()
        points = row_space(X)
    except Exception as error:
        pipe.send(_words(error))
        return
    pipe.send(None)
    last: tuple[dict[int, str], Any] = ({}, None)
    answer: Any
    while True:
        try:
            task = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            if isinstance(task, Lesson):
                clf, learned = learn(X, points, task, n_jobs=job.n_jobs)
                last, answer = (task.labels, clf), learned
            else:
                lesson = task["lesson"]
                if last[0] != lesson.labels or last[1] is None:
                    last = lesson.labels, learn(X, points, lesson, n_jobs=job.n_jobs)[0]
                answer = job.write(last[1], lesson, task, Path(task["folder"]))
        except Exception as error:
            answer = _words(error)
        pipe.send(answer)


def _lower_priority() -> None:
    """Let the page go first."""
    if hasattr(os, "nice"):
        os.nice(10)


def _exit_with_parent(parent: int) -> None:
    """End when the process that started this one is gone, also in the middle of a fit."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _words(error: Exception) -> str:
    if isinstance(error, UserError):
        return f"{error.message} {error.remedy}".strip()
    return f"{type(error).__name__}: {error}"
