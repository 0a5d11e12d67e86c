"""Unlabelled rows that do not fit in memory: self-learning from Parquet or any chunks."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewlabel._core.scikit import n_rows, take_rows
from fewlabel._core.targets import as_column, unlabeled_mask
from fewlabel.chunks.executor import Merge, Step
from fewlabel.chunks.finish import PartWriter
from fewlabel.chunks.progress import Pass, Report
from fewlabel.chunks.rows import Rows
from fewlabel.chunks.source import (
    CHUNK_ROWS,
    NamedChunk,
    check_markers,
    column_names,
    first_marker,
    join_rows,
    open_chunks,
    read_chunk,
    target_column,
)

# Summaries are merged whenever there are so many: memory must not grow with the chunks.
_FAN_IN = 4


class UnlabeledRows(Rows):
    """Unlabelled rows that are read chunk by chunk, as often as needed.

    ``FewLabelClassifier`` and ``SelfLearningClassifier`` take one as ``fit(X, y, unlabeled=...)``,
    or directly any ``source``. Peak memory does not depend on the number of rows: it is that of a
    chunk, of the training set (at most ``max_train`` pseudo-labelled rows, by default 5,000 for
    ``FewLabelClassifier`` and 100,000 for ``SelfLearningClassifier``), of a sample of at most
    20,000 rows, and of the classifier. Between passes 20 bytes a row, and with
    ``label_proba="supervised"`` 8 more for each class, wait in scratch files.

    Parameters
    ----------
    source : path, pyarrow Dataset, callable or sequence
        A Parquet file or a folder of them, an Arrow data set, a function that returns a fresh
        iterator of chunks, or a list of chunks. A chunk is whatever the labelled rows are: NumPy,
        pandas, polars, sparse; Arrow batches are converted.
    chunk_rows : int, default=65536
        Rows read at once from Parquet or Arrow.
    scratch : path, optional
        Folder for scratch files, with room for the bytes above; the system's by default.
    out, target, missing_label, resolution, train, layout, truth, max_error, writer, progress
        See :class:`fewlabel.chunks.rows.Rows`: in short, the folder for the labels, and the column
        whose missing values mark unlabelled rows.

    See Also
    --------
    DaskRows : Rows on a cluster.
    labeled_rows : The labelled rows of the same source.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Algorithm 1, whose sums over
           rows add up over chunks.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn.utils import shuffle
    >>> from fewlabel import SelfLearningClassifier, UnlabeledRows
    >>> X, y = shuffle(*load_digits(return_X_y=True), random_state=0)
    >>> rows = UnlabeledRows([X[100:900], X[900:]])  # or UnlabeledRows("folder", out="labels")
    >>> forest = RandomForestClassifier(25, random_state=0)
    >>> clf = SelfLearningClassifier(forest).fit(X[:100], y[:100], unlabeled=rows)
    >>> sum(record["n_selected"] for record in clf.history_) > 1000
    True
    """

    def __init__(
        self,
        source: Any,
        *,
        chunk_rows: int = CHUNK_ROWS,
        scratch: str | Path | None = None,
        out: str | Path | None = None,
        target: str | None = None,
        missing_label: Any = "auto",
        resolution: int | None = None,
        train: str = "sample",
        layout: Any = None,
        truth: str | None = None,
        max_error: float = 0.05,
        writer: PartWriter | None = None,
        progress: Report | None = None,
    ) -> None:
        super().__init__(
            out=out,
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
        self.source, self.chunk_rows, self.scratch = source, chunk_rows, scratch
        self._chunks = open_chunks(source, chunk_rows)

    @contextmanager
    def opened(self, layout: Any) -> Iterator[LocalExecutor]:
        """See :class:`fewlabel.chunks.rows.Rows`."""
        by_first_chunk = self.layout is None and callable(self.source)
        with tempfile.TemporaryDirectory(prefix="fewlabel-", dir=self.scratch) as folder:
            yield LocalExecutor(self._chunks, layout, Path(folder), by_first_chunk, self.progress)


class LocalExecutor:
    """Reads one chunk after the other in this process; their pieces wait in scratch files.

    Parameters
    ----------
    chunks : callable that starts a pass over the chunks
    layout : what brings chunks into the form of the labelled rows
    folder : Path
        For the scratch files.
    by_first_chunk : bool
        Whether the first chunk says in which order columns come.
    progress : callable, optional
        Called with the :class:`Progress` of a pass.
    """

    def __init__(
        self,
        chunks: Callable[[], Iterator[NamedChunk]],
        layout: Any,
        folder: Path,
        by_first_chunk: bool,
        progress: Report | None = None,
    ) -> None:
        self._chunks, self._layout, self._folder = chunks, layout, folder
        self._by_first_chunk, self._progress = by_first_chunk, progress
        self._n_rows: list[int] = []  # of each chunk, as the first pass found them

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
        summaries: list[Any] = []
        pieces = [name for name in uses if name != "X"]
        watch, done = Pass(self._progress, step, sum(self._n_rows)), 0
        for chunk in self._read() if "X" in uses else self._positions():
            position = chunk["position"]
            chunk |= {name: np.load(self._file(name, position)) for name in pieces}
            own = {name: values[position] for name, values in (each or {}).items()}
            made, summary = step(chunk, **arguments, **own)
            for name in makes:
                np.save(self._file(name, position), made[name])
            done += n_rows(chunk["X"]) if "X" in uses else 0
            watch.at(done)
            summaries.append(summary)
            if len(summaries) >= _FAN_IN:
                summaries = [merge(summaries)]
        return merge(summaries)

    def _positions(self) -> Iterator[dict[str, Any]]:
        return ({"position": position} for position in range(len(self._n_rows)))

    def _read(self) -> Iterator[dict[str, Any]]:
        first_pass = not self._n_rows
        position = -1
        for position, (name, raw) in enumerate(self._chunks()):
            if first_pass and position == 0 and self._by_first_chunk:
                self._layout = self._layout.in_order_of(column_names(raw))
            chunk = read_chunk(name, raw, self._layout)
            n = n_rows(chunk["X"])
            if first_pass:
                self._n_rows.append(n)
            elif position >= len(self._n_rows) or self._n_rows[position] != n:
                raise RuntimeError(_changed(name))
            yield {"position": position, **chunk}
        if position + 1 < len(self._n_rows):
            raise RuntimeError(_changed(f"chunk {position + 1}"))

    def _file(self, name: str, position: int) -> Path:
        return self._folder / f"{name}-{position:06d}.npy"

    def call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """See :class:`fewlabel.chunks.executor.Executor`."""
        return function(*arguments, **named)

    def fetch(self, handle: Any) -> Any:
        """See :class:`fewlabel.chunks.executor.Executor`."""
        return handle


def _changed(name: str) -> str:
    return (
        f"The unlabelled rows changed between two passes over them, at {name}. Every pass must "
        f"give the same chunks; an iterator that is used up gives none: pass a function that "
        f"returns a fresh one."
    )


def as_rows(source: Any) -> Rows:
    """The rows of ``fit(..., unlabeled=source)``."""
    return source if isinstance(source, Rows) else UnlabeledRows(source)


def labeled_rows(
    source: Any, target: str, *, missing_label: Any = "auto", chunk_rows: int = CHUNK_ROWS
) -> tuple[Any, NDArray[Any]]:
    """The few labelled rows of a source that also holds the unlabelled ones.

    Parameters
    ----------
    source : path or pyarrow Dataset, or chunks that are data frames
    target : str
        Column with the labels.
    missing_label : object, default="auto"
        What marks an unlabelled row.
    chunk_rows : int, default=65536
        Rows read at once from Parquet or Arrow.

    Returns
    -------
    X : pandas.DataFrame
        All columns but the target, of the labelled rows.
    y : ndarray of shape (n_labeled,)

    See Also
    --------
    UnlabeledRows : The other rows of the same source.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Algorithm 1.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"x": [0.1, 0.2, 0.3], "kind": ["a", None, "b"]})
    >>> X, y = labeled_rows([table], "kind")
    >>> X["x"].tolist(), y.tolist()
    ([0.1, 0.3], ['a', 'b'])
    """
    frames, labels = [], []
    markers: list[Any] = []
    for name, raw in open_chunks(source, chunk_rows)():
        if target not in (column_names(raw) or ()):
            raise ValueError(f"{name} has no column {target!r} with the labels.")
        column = as_column(target_column(raw, target))
        missing = unlabeled_mask(column, missing_label)
        markers += first_marker(raw, target, np.flatnonzero(missing))
        if not missing.all():
            frame = raw.to_pandas() if hasattr(raw, "to_pandas") else raw
            frames.append(take_rows(frame.drop(columns=target), np.flatnonzero(~missing)))
            labels.append(column[~missing])
    check_markers(markers, missing_label)
    if not frames:
        raise ValueError(f"No row has a label in column {target!r}.")
    return join_rows(frames), _plain(np.concatenate(labels))


def _plain(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels that were Python objects beside missing values as numbers, if they are numbers."""
    import pandas

    return pandas.Series(labels).infer_objects().to_numpy()
