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
from fewlabel.chunks.dask_errors import (
    NoWorkersError,
    check_versions,
    clear_errors,
    in_partition,
    versions,
)
from fewlabel.chunks.executor import Merge, Step, same
from fewlabel.chunks.files import is_address, need, open_file, parquet_files
from fewlabel.chunks.finish import PartWriter
from fewlabel.chunks.progress import Pass, Report
from fewlabel.chunks.rows import Rows
from fewlabel.chunks.source import read_chunk, unreadable

_FAN_IN = 8  # summaries that one task merges
_LOOK_SECONDS = 1.0  # how often to look whether there are workers at all
_CONNECT_SECONDS = 3.0  # a scheduler that runs answers at once, whatever its workers do


class DaskRows(Rows):
    """Unlabelled rows in the partitions of a Dask collection, on the workers of a cluster.

    ``FewLabelClassifier`` and ``SelfLearningClassifier`` learn from them by
    ``fit(X, y, unlabeled=DaskRows(frame, client))``. The labelled rows X, y are few and sent to the
    workers. The forest of a ``SelfLearningClassifier`` is grown in parallel: each partition grows a
    share of the trees, in proportion to its pseudo-labelled rows, on the labelled rows and its own
    pseudo-labelled rows (at most ``max_train``, 100,000 by default). No row leaves its partition.
    Other classifiers are trained by one worker on rows drawn from all partitions.

    Parameters
    ----------
    source : dask.dataframe.DataFrame, dask.array.Array, path or list of paths
        A path is a folder of Parquet files that all workers can read, a pattern, or an address such
        as ``s3://…``: a partition for each file.
    client : distributed.Client, optional
        The current one by default.
    worker_timeout : float, default=120
        Seconds without any worker after which a fit gives up.
    out, target, missing_label, resolution, train, layout, truth, max_error, writer, progress
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
        truth: str | None = None,
        max_error: float = 0.05,
        writer: PartWriter | None = None,
        progress: Report | None = None,
    ) -> None:
        super().__init__(
            out=None if out is None else Path(out).absolute(),  # workers may run elsewhere
            target=target,
            missing_label=missing_label,
            resolution=resolution,
            train=train,
            layout=layout,
            truth=truth,
            max_error=max_error,
            writer=writer,
            progress=progress,
        )
        self.source, self.worker_timeout = source, worker_timeout
        self.client = client if client is not None else _current_client()
        self._parts, self._names = _partitions(source)

    @property
    def n_workers(self) -> int:
        """See :class:`fewlabel.chunks.rows.Rows`."""
        return max(1, sum(self.client.nthreads().values()))

    @contextmanager
    def opened(self, layout: Any) -> Iterator[DaskExecutor]:
        """See :class:`fewlabel.chunks.rows.Rows`."""
        # The workers forget their pieces when the executor is gone.
        with clear_errors(self.client):
            yield DaskExecutor(
                self.client, self._parts, self._names, layout, self.worker_timeout, self.progress
            )


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
    progress : callable, optional
        Called with the :class:`Progress` of a pass.
    """

    def __init__(
        self,
        client: Any,
        parts: list[Any],
        names: list[str],
        layout: Any,
        worker_timeout: float,
        progress: Report | None = None,
    ) -> None:
        self.client, self._parts, self._names = client, parts, names
        with _quiet_about_size():
            self._layout = client.submit(same, layout, pure=False)
        self.worker_timeout = worker_timeout
        self._progress, self._versions = progress, versions()
        self._n_rows: list[int] = []  # of each partition, as the first pass found them
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
        item = delayed(operator.getitem, pure=False)
        results = self._tasks(step, uses, each or {}, arguments)
        summary = _tree([item(result, "summary") for result in results], merge, delayed)
        made = ("n_rows", *makes)  # counts are small, and tell which partitions are done
        wanted = [item(result, name) for name in made for result in results]
        with _quiet_about_size():
            futures = self.client.compute([summary, *wanted])
        n = len(results)
        pieces = {name: futures[1 + k * n : 1 + (k + 1) * n] for k, name in enumerate(made)}
        counts = pieces.pop("n_rows")
        try:
            self._await(futures[0], counts, Pass(self._progress, step, sum(self._n_rows)))
        except Exception as error:
            raise self._with_name(error, counts) from error
        if "X" in uses and not self._n_rows:
            self._n_rows = self.client.gather(counts)
        self._pieces |= pieces
        return self._keep(futures[0]) if keep else futures[0].result()

    def _tasks(
        self,
        step: Step,
        uses: tuple[str, ...],
        each: dict[str, Sequence[Any]],
        arguments: dict[str, Any],
    ) -> list[Any]:
        """One task for each partition; what is the same for all of them travels once."""
        apply = need("dask", "Running on a cluster").delayed(_apply, pure=False)
        names = [name for name in uses if name != "X"]
        return [
            apply(
                self._versions,
                step,
                position,
                self._names[position],
                self._parts[position] if "X" in uses else None,
                self._layout,
                names,
                [self._pieces[name][position] for name in names],
                **arguments,
                **{name: values[position] for name, values in each.items()},
            )
            for position in range(len(self._parts))
        ]

    def _with_name(self, error: Exception, counts: list[Any]) -> Exception:
        """The error with the name of the partition that it came from, if it has none yet."""
        failed = [self._names[k] for k, count in enumerate(counts) if count.status == "error"]
        return error if not failed else in_partition(failed[0], error)

    def call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """See :class:`fewlabel.chunks.executor.Executor`."""
        with _quiet_about_size():
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

    def _await(self, future: Any, counts: Sequence[Any] = (), watch: Pass | None = None) -> None:
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
                self._tell(counts, watch)
                now = time.monotonic()
                idle_since = None if self._has_workers() else idle_since or now
                if idle_since is not None and now - idle_since > self.worker_timeout:
                    raise NoWorkersError from None
        if future.status != "finished":
            future.result()  # raises

    def _tell(self, counts: Sequence[Any], watch: Pass | None) -> None:
        done = [k for k, count in enumerate(counts) if count.done()]
        if watch is not None and self._n_rows:
            watch.at(sum(self._n_rows[k] for k in done))

    def _has_workers(self) -> bool:
        try:
            return bool(self.client.nthreads())
        except OSError as error:
            raise TimeoutError(f"the scheduler does not answer: {error}") from error


def _apply(
    expected: dict[str, str],
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
    check_versions(expected)
    chunk: dict[str, Any] = {"position": position, **dict(zip(piece_names, pieces))}
    if raw is not None:
        chunk |= read_chunk(name, raw, layout)
        n = n_rows(chunk["X"])
        if "marks" in chunk and len(chunk["marks"]) != n:
            raise RuntimeError(
                f"{name} had {len(chunk['marks'])} unlabelled rows when it was first read and has "
                f"{n} now: the data changed during the fit."
            )
    made, summary = step(chunk, **arguments)
    return {**made, "summary": summary, "n_rows": n_rows(chunk["X"]) if raw is not None else 0}


def _quiet_about_size() -> Any:
    # The labelled rows, the sample and the models are what has to travel.
    return need("dask", "Running on a cluster").config.set(
        {"distributed.admin.large-graph-warning-threshold": "2GiB"}
    )


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
    if isinstance(source, (str, Path, list)):
        found = list(map(str, source)) if isinstance(source, list) else parquet_files(source)
        files = [name if is_address(name) else str(Path(name).absolute()) for name in found]
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
        with open_file(file) as opened:
            return parquet.read_table(opened, partitioning=None, use_threads=False)
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
        client = distributed.Client(scheduler, timeout=_CONNECT_SECONDS)
    except OSError as error:
        raise ConnectionError(
            f"There is no Dask scheduler at {scheduler}: {error}. Start it, or check the address."
        ) from error
    with client:
        yield client
