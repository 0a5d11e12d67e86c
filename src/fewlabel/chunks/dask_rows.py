"""Self-learning on a Dask cluster: the steps of the out-of-core loop, one task for each partition.

What stays on the workers: the rows, what is kept of each (votes, pseudo-labels) and the forests.
What travels: statistics of fixed size, merged in a tree, and the trees of each round.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from fewlabel._core.scikit import n_rows
from fewlabel.chunks.executor import Merge, Step
from fewlabel.chunks.rows import Rows
from fewlabel.chunks.source import need, parquet_files, read_chunk, unreadable

_FAN_IN = 8  # summaries that one task merges
_LOOK_SECONDS = 5.0  # how often to look whether there are workers at all


class DaskRows(Rows):
    """Unlabelled rows in the partitions of a Dask collection, on the workers of a cluster.

    ``SelfLearningClassifier.fit(X, y, unlabeled=DaskRows(frame, client))`` learns from them.
    The labelled rows X, y are few and sent to the workers. A forest is grown in parallel: each
    partition grows a share of the trees, in proportion to its pseudo-labelled rows, on the labelled
    rows and its own pseudo-labelled rows (at most ``max_train``, 100,000 by default). No row leaves
    its partition. Other classifiers are trained by one worker on rows drawn from all partitions.

    Parameters
    ----------
    source : dask.dataframe.DataFrame, dask.array.Array or path
        A path is a folder of Parquet files that all workers can read: a partition for each file.
    client : distributed.Client, optional
        The current one by default.
    worker_timeout : float, default=120
        Seconds without any worker after which a fit gives up.
    out, target, missing_label, resolution, train, layout
        See :class:`fewlabel.chunks.rows.Rows`. All workers must be able to write to ``out``.

    See Also
    --------
    UnlabeledRows : Rows on this machine.
    fewlabel.predict_rows : Labels for further rows.

    Notes
    -----
    A worker that dies costs time, not results: the scheduler repeats its tasks elsewhere, from the
    rows and the forests of the earlier rounds. Seeds belong to partitions, so the result is the
    same. What cannot be repaired ends with an error and without a result folder.

    References
    ----------
    .. [1] M. Rocklin, "Dask: parallel computation with blocked algorithms and task scheduling",
           2015.

    Examples
    --------
    >>> from fewlabel import DaskRows, SelfLearningClassifier
    >>> from distributed import Client  # doctest: +SKIP
    >>> rows = DaskRows("customers/", Client(), target="segment")  # doctest: +SKIP
    >>> SelfLearningClassifier().fit(X, y, unlabeled=rows)  # doctest: +SKIP
    """

    def __init__(
        self,
        source: Any,
        client: Any = None,
        *,
        worker_timeout: float = 120.0,
        out: str | Path | None = None,
        target: str | None = None,
        missing_label: Any = "auto",
        resolution: int | None = None,
        train: str = "partitions",
        layout: Any = None,
    ) -> None:
        super().__init__(
            out=None if out is None else Path(out).absolute(),  # workers may run elsewhere
            target=target,
            missing_label=missing_label,
            resolution=resolution,
            train=train,
            layout=layout,
        )
        self.source, self.worker_timeout = source, worker_timeout
        self.client = client if client is not None else _current_client()
        self._parts, self._names = _partitions(source)

    @contextmanager
    def opened(self, layout: Any) -> Iterator[DaskExecutor]:
        """See :class:`fewlabel.chunks.rows.Rows`."""
        # The workers forget their pieces when the executor is gone.
        with _clear_errors(self.client):
            yield DaskExecutor(self.client, self._parts, self._names, layout, self.worker_timeout)


class DaskExecutor:
    """Runs a task for each partition on the workers of a cluster; their pieces stay there.

    Parameters
    ----------
    client : distributed.Client
    parts : list of delayed partitions
    names : list of str
        Their names, for error messages.
    layout : what brings partitions into the form of the labelled rows
    worker_timeout : float
        Seconds without any worker after which to give up.
    """

    def __init__(
        self, client: Any, parts: list[Any], names: list[str], layout: Any, worker_timeout: float
    ) -> None:
        self.client, self._parts, self._names = client, parts, names
        self._layout, self.worker_timeout = layout, worker_timeout
        self._pieces: dict[str, list[Any]] = {}
        self._kept: list[Any] = []

    def run(
        self,
        step: Step,
        merge: Merge,
        uses: tuple[str, ...],
        makes: tuple[str, ...] = (),
        *,
        each: dict[str, Sequence[Any]] | None = None,
        keep: bool = False,
        **arguments: Any,
    ) -> Any:
        """See :class:`fewlabel.chunks.executor.Executor`."""
        delayed = need("dask", "Running on a cluster").delayed
        apply, item = delayed(_apply, pure=False), delayed(operator.getitem, pure=False)
        names = [name for name in uses if name != "X"]
        results = [
            apply(
                step,
                position,
                self._names[position],
                self._parts[position] if "X" in uses else None,
                self._layout,
                names,
                [self._pieces[name][position] for name in names],
                **arguments,
                **{name: values[position] for name, values in (each or {}).items()},
            )
            for position in range(len(self._parts))
        ]
        summary = _tree([item(result, "summary") for result in results], merge, delayed)
        made = {name: [item(result, name) for result in results] for name in makes}
        futures = self.client.compute(
            [summary, *(piece for pieces in made.values() for piece in pieces)]
        )
        self._await(futures[0])
        for k, name in enumerate(made):
            start = 1 + k * len(results)
            self._pieces[name] = futures[start : start + len(results)]
        return self._keep(futures[0]) if keep else futures[0].result()

    def call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """See :class:`fewlabel.chunks.executor.Executor`."""
        future = self.client.submit(function, *arguments, **named, pure=False)
        self._await(future)
        return self._keep(future)

    def fetch(self, handle: Any) -> Any:
        """See :class:`fewlabel.chunks.executor.Executor`."""
        return handle.result()

    def _keep(self, future: Any) -> Any:
        # What was made in every round so far stays on the workers: if one of them is lost, its
        # partitions are voted on anew by these forests, instead of growing all of them again.
        self._kept.append(future)
        return future

    def _await(self, future: Any) -> None:
        """Wait for a result without fetching it; raise what went wrong, also if no worker is left.

        A scheduler without workers waits for new ones, for ever: that would look like work.
        """
        wait = need("distributed", "Running on a cluster").wait
        idle_since: float | None = None
        while True:
            try:
                wait(future, timeout=_LOOK_SECONDS)
                break
            except TimeoutError:
                now = time.monotonic()
                idle_since = None if self._has_workers() else idle_since or now
                if idle_since is not None and now - idle_since > self.worker_timeout:
                    raise NoWorkersError from None
        if future.status != "finished":
            future.result()  # raises

    def _has_workers(self) -> bool:
        try:
            return bool(self.client.nthreads())
        except OSError as error:
            raise TimeoutError(f"the scheduler does not answer: {error}") from error


def _apply(
    step: Step,
    position: int,
    name: str,
    raw: Any,
    layout: Any,
    piece_names: list[str],
    pieces: list[Any],
    **arguments: Any,
) -> dict[str, Any]:
    """Run a step on one partition: the task that a worker executes."""
    chunk = {"position": position, **dict(zip(piece_names, pieces))}
    if raw is not None:
        chunk |= read_chunk(name, raw, layout)
        n = n_rows(chunk["X"])
        if "marks" in chunk and len(chunk["marks"]) != n:
            raise RuntimeError(
                f"{name} had {len(chunk['marks'])} unlabelled rows when it was first read and has "
                f"{n} now: the data changed during the fit."
            )
    made, summary = step(chunk, **arguments)
    return {**made, "summary": summary}


def _tree(parts: list[Any], merge: Merge, delayed: Any) -> Any:
    together = delayed(merge, pure=False)
    while len(parts) > 1:
        parts = [together(parts[k : k + _FAN_IN]) for k in range(0, len(parts), _FAN_IN)]
    return together(parts)


# --- what comes in ---------------------------------------------------------------------------


def _current_client() -> Any:
    distributed = need("distributed", "DaskRows")
    try:
        return distributed.get_client()
    except ValueError:
        raise ValueError(
            "There is no Dask client: pass one, DaskRows(source, distributed.Client(address))."
        ) from None


def _partitions(source: Any) -> tuple[list[Any], list[str]]:
    """The partitions, to be read by the workers, and their names for error messages."""
    delayed = need("dask", "DaskRows").delayed
    if isinstance(source, (str, Path)):
        if "://" in str(source):
            raise ValueError(
                f"{source}: read a remote folder with dask.dataframe.read_parquet and pass that."
            )
        files = [str(file.absolute()) for file in parquet_files(Path(source))]
        return [delayed(_read_file, pure=False)(file) for file in files], files
    if not hasattr(source, "to_delayed"):
        raise TypeError(
            "DaskRows takes a dask.dataframe, a dask.array or a folder of Parquet files. Got "
            f"{type(source).__name__} instead."
        )
    if hasattr(source, "rechunk") and source.ndim == 2 and source.numblocks[1] > 1:
        source = source.rechunk({1: -1})  # a partition holds whole rows
    parts = np.asarray(source.to_delayed(), dtype=object).ravel().tolist()
    return parts, [f"partition {position}" for position in range(len(parts))]


def _read_file(file: str) -> Any:
    parquet = need("pyarrow.parquet", "Reading Parquet")
    try:
        return parquet.read_table(file, partitioning=None, use_threads=False)
    except (OSError, ValueError) as error:
        raise unreadable(file, error) from error


@contextmanager
def open_client(scheduler: str = "local") -> Iterator[Any]:
    """A client of a scheduler (``tcp://host:port``) or, with "local", of processes right here.

    Parameters
    ----------
    scheduler : str
        "local" starts a worker process for each processor, and ends them with the block.
    """
    distributed = need("distributed", "A Dask scheduler")
    if scheduler == "local":
        with (
            distributed.LocalCluster(
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",
                host="127.0.0.1",
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client
        return
    if "://" not in scheduler:
        raise ValueError(
            f"scheduler must be 'local' or an address such as tcp://host:8786. Got {scheduler!r}."
        )
    try:
        client = distributed.Client(scheduler, timeout="10s")
    except OSError as error:
        raise ConnectionError(f"There is no Dask scheduler at {scheduler}: {error}") from error
    with client:
        yield client


# --- what goes wrong ---------------------------------------------------------------------------


class NoWorkersError(RuntimeError):
    """The cluster has lost its last worker."""


@contextmanager
def _clear_errors(client: Any) -> Iterator[None]:
    """Say what happened, in the words of someone who runs a fit, not of someone who runs Dask."""
    from concurrent.futures import CancelledError

    from distributed.comm.core import CommClosedError
    from distributed.scheduler import KilledWorker

    address = client.scheduler.address if client.scheduler else "the scheduler"
    try:
        yield
    except NoWorkersError:
        raise NoWorkersError(
            f"The cluster at {address} has had no worker for a while, so the fit cannot go on. No "
            f"results were written. Start workers and fit again."
        ) from None
    except KilledWorker as error:
        raise MemoryError(
            f"A task ended its worker several times ({error}): most likely a worker has too little "
            f"memory for a partition. No results were written. Use smaller partitions, a smaller "
            f"max_train, or workers with more memory."
        ) from error
    except (CancelledError, CommClosedError, TimeoutError) as error:
        raise ConnectionError(
            f"The connection to the scheduler at {address} was lost during the fit "
            f"({type(error).__name__}: {error}). No results were written; fit again."
        ) from error
    except Exception as error:
        if type(error).__module__.startswith("pyarrow") or type(error) is FileNotFoundError:
            raise unreadable("a partition", error) from error
        raise
