"""Rows that come in chunks: from where, and in which form."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fewlabel._core.arrays import RowView
from fewlabel._core.scikit import indexable_rows, n_rows, take_rows
from fewlabel._core.targets import unlabeled_mask
from fewlabel.chunks.files import need, open_file, parquet_files

CHUNK_ROWS = 65_536
"""Rows of a chunk read from Parquet: a few MiB, and enough that the work per chunk dominates."""

NamedChunk = tuple[str, Any]
"""Where a chunk comes from, for error messages, and the chunk."""


# --- reading -----------------------------------------------------------------------------------


def open_chunks(source: Any, chunk_rows: int = CHUNK_ROWS) -> Callable[[], Iterator[NamedChunk]]:
    """A function that starts a fresh pass over the chunks of a source.

    Parameters
    ----------
    source : path, pyarrow Dataset, callable or sequence
        A Parquet file, a folder of them, a pattern or an address (``s3://…``), an Arrow data set,
        a function that returns a fresh iterator of chunks, or a list of chunks. Anything that can
        be read only once is refused: self-learning passes over the rows several times.
    chunk_rows : int
        Rows read at once from Parquet.
    """
    if isinstance(source, (str, os.PathLike)):
        return lambda: _parquet_chunks(source, chunk_rows)
    if hasattr(source, "named_chunks"):
        return source.named_chunks
    if hasattr(source, "get_fragments"):
        return lambda: _arrow_chunks(source, chunk_rows)
    if callable(source):
        return lambda: ((f"chunk {i}", chunk) for i, chunk in enumerate(source()))
    if isinstance(source, Sequence) and not isinstance(source, bytes):
        return lambda: ((f"chunk {i}", chunk) for i, chunk in enumerate(source))
    if hasattr(source, "__dask_graph__"):
        raise TypeError("Wrap a Dask collection: fit(..., unlabeled=DaskRows(collection, client)).")
    raise TypeError(
        "Unlabelled rows must be a Parquet file or folder, an Arrow data set, a list of chunks or "
        "a function that returns a fresh iterator of chunks (they are read several times). Got "
        f"{type(source).__name__} instead."
    )


def _parquet_chunks(source: Any, chunk_rows: int) -> Iterator[NamedChunk]:
    parquet = need("pyarrow.parquet", "Reading Parquet")
    for name in parquet_files(source):
        with (
            _reading(name),
            open_file(name) as file,
            parquet.ParquetFile(file, pre_buffer=False) as opened,
        ):
            batches = opened.iter_batches(chunk_rows, use_threads=False)
            yield from ((name, batch) for batch in batches if batch.num_rows)


def _arrow_chunks(dataset: Any, chunk_rows: int) -> Iterator[NamedChunk]:
    for fragment in dataset.get_fragments():
        name = str(getattr(fragment, "path", "Arrow data"))
        with _reading(name):
            # Little read-ahead: by default Arrow would keep many batches in memory.
            batches = fragment.to_batches(dataset.schema, batch_size=chunk_rows, batch_readahead=1)
            yield from ((name, batch) for batch in batches if batch.num_rows)


@contextmanager
def _reading(name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:  # pyarrow's errors are of these kinds
        raise unreadable(name, error) from error


def unreadable(name: str, error: BaseException) -> OSError:
    """The error that says which part of the rows cannot be read."""
    return OSError(
        f"The unlabelled rows of {name} cannot be read ({type(error).__name__}: {error}). "
        f"Replace or remove it and start again; no results were written."
    )


# --- form --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """The form in which the estimator was given the labelled rows: chunks are brought into it.

    Attributes
    ----------
    kind : {"pandas", "polars", "array", "other"}
    columns : tuple of str, or None
        For arrays: the names that the chunks have, in their order in the first one; empty if they
        have no names, None while no chunk has been seen.
    dtype : numpy dtype of an array
    n_features : int or None
    target, missing_label
        Column whose missing values mark the unlabelled rows; the others are left out.
    truth
        Column with true labels, which is no feature.
    """

    kind: str
    columns: tuple[str, ...] | None = None
    dtype: Any = None
    n_features: int | None = None
    target: str | None = None
    missing_label: Any = "auto"
    truth: str | None = None

    @classmethod
    def of(
        cls,
        X: Any,
        target: str | None = None,
        missing_label: Any = "auto",
        truth: str | None = None,
    ) -> Layout:
        """The layout of the labelled rows."""
        own = {"target": target, "missing_label": missing_label, "truth": truth}
        library = type(X).__module__.split(".")[0]
        if library in ("pandas", "polars") and hasattr(X, "columns"):
            columns = tuple(name for name in X.columns if name != truth)
            return cls(library, columns, **own)
        if sparse.issparse(X) or not hasattr(X, "__array__"):
            return cls("other", **own)
        array = np.asarray(X)
        width = array.shape[1] if array.ndim == 2 else None
        return cls("array", None, array.dtype, width, **own)

    def in_order_of(self, names: Sequence[str] | None) -> Layout:
        """The layout of chunks of which the first has columns with these names (None: without).

        Labelled rows with names say themselves which column is which.
        """
        if self.kind != "array":
            return self
        columns = tuple(name for name in names or () if name not in self._no_features)
        return replace(self, columns=columns)

    @property
    def _no_features(self) -> tuple[str | None, ...]:
        return self.target, self.truth

    def truth_of(self, raw: Any, rows: NDArray[np.intp]) -> Any:
        """True labels of the unlabelled rows, None if no column has them."""
        if self.truth is None:
            return None
        return np.asarray(target_column(raw, self.truth), dtype=object)[rows]

    def conform(self, raw: Any) -> tuple[Any, NDArray[np.intp]]:
        """The unlabelled rows of a chunk in this layout, and their positions in the chunk."""
        rows = np.arange(n_rows(raw) if not hasattr(raw, "num_rows") else raw.num_rows)
        if self.target is not None:
            rows = np.flatnonzero(
                unlabeled_mask(target_column(raw, self.target), self.missing_label)
            )
        X = self._convert(raw)
        return (X if self.target is None else take_rows(X, rows)), rows

    def _convert(self, raw: Any) -> Any:
        if self.kind == "other":
            return indexable_rows(raw)
        if self.kind == "array":
            return self._to_array(raw)
        frame = _to_frame(raw, self.kind, self.columns)
        missing = [name for name in self.columns or () if name not in frame.columns]
        if missing:
            raise ValueError(
                f"The unlabelled rows lack columns of the labelled ones: {', '.join(missing)}."
            )
        return frame[list(self.columns or ())]

    def _to_array(self, raw: Any) -> NDArray[Any]:
        names = self._names_to_take(raw)
        if names is None:
            array = np.asarray(raw)
        elif hasattr(raw, "num_rows"):  # Arrow
            columns = [raw.column(name).to_numpy(zero_copy_only=False) for name in names]
            array = np.column_stack(columns)
        else:
            array = np.asarray(raw[names])
        array = _with_dtype(array, np.dtype(self.dtype))
        if self.n_features is not None and array.shape[1:] != (self.n_features,):
            raise ValueError(
                f"The unlabelled rows must have {self.n_features} columns as the labelled ones. "
                f"Got shape {array.shape} instead."
            )
        return array

    def _names_to_take(self, raw: Any) -> list[str] | None:
        """The columns of a chunk in the order of the first chunk; None if they have no names."""
        found = column_names(raw)
        names = None if found is None else [name for name in found if name not in self._no_features]
        if self.columns is None:
            return names
        if (names is None) != (len(self.columns) == 0):
            raise ValueError(
                "Either all chunks or none must have names of columns: beside an array without "
                "names it cannot be told which column is which."
            )
        if names is not None and set(names) != set(self.columns):
            raise ValueError(
                f"The columns must be those of the first rows, {list(self.columns)}. "
                f"Got {names} instead."
            )
        return list(self.columns) or None


def read_chunk(name: str, raw: Any, layout: Any) -> dict[str, Any]:
    """What the steps get of a chunk: its unlabelled rows in this layout, and where they stood."""
    try:
        X, rows = layout.conform(raw)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    target = layout.target if isinstance(layout, Layout) else None  # others mark rows in their way
    truth = getattr(layout, "truth_of", None)
    return {
        "X": X,
        "rows": rows,
        "raw": raw,
        **({} if truth is None else {"truth": truth(raw, rows)}),
        "n_read": getattr(raw, "num_rows", None) or n_rows(raw),
        "markers": [] if target is None else first_marker(raw, target, rows),
    }


def first_marker(raw: Any, target: str, rows: NDArray[np.intp]) -> list[Any]:
    """What marks the first of the unlabelled rows; nothing if there is none.

    One is enough: within a chunk, all of them have the same.
    """
    if len(rows) == 0:
        return []
    is_arrow = hasattr(raw, "num_rows")
    row = raw.slice(int(rows[0]), 1) if is_arrow else take_rows(raw, rows[:1])
    return list(target_column(row, target))


def check_markers(markers: Sequence[Any], missing_label: Any) -> None:
    """Raise if what marks unlabelled rows in different chunks is ambiguous together."""
    unlabeled_mask(np.array(markers, dtype=object), missing_label)


def column_names(raw: Any) -> list[str] | None:
    """Names of the columns of Arrow data or of a data frame; None for an array or one column."""
    if hasattr(raw, "num_rows") or hasattr(raw, "get_fragments"):
        return list(raw.schema.names)
    is_frame = hasattr(raw, "columns") and getattr(raw, "ndim", 2) == 2
    return list(raw.columns) if is_frame else None


def first_columns(source: Any) -> list[str] | None:
    """Names of the columns of a source, as its first part has them; None if they have no names."""
    if isinstance(source, (str, os.PathLike)):
        parquet = need("pyarrow.parquet", "Reading Parquet")
        name = parquet_files(source)[0]
        with _reading(name), open_file(name) as file:
            return list(parquet.read_schema(file).names)
    if isinstance(source, Sequence):
        return column_names(source[0]) if len(source) else None
    return column_names(source)


def _with_dtype(array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The array in the dtype of the labelled rows, unless that would lose something."""
    if dtype.kind in "OUS":
        return array
    if array.dtype == object:  # None becomes NaN
        array = array.astype(np.float64)
    # Single precision is chosen knowingly, often to halve memory: it may round what is read.
    rounds = array.dtype == np.float64 and dtype == np.float32
    safe = rounds or np.can_cast(array.dtype, dtype, "safe")
    return array.astype(dtype, copy=False) if safe else array


def target_column(raw: Any, name: str) -> Any:
    """The column of a chunk that says which of its rows are unlabelled."""
    if name not in (column_names(raw) or ()):
        raise ValueError(f"The rows have no column {name!r} that says which are unlabelled.")
    if not hasattr(raw, "num_rows"):
        return raw[name]
    # Whole numbers beside missing values would become floats, and large ones the same float.
    return raw.column(name).to_pandas(integer_object_nulls=True)


def _to_frame(raw: Any, kind: str, columns: tuple[str, ...] | None) -> Any:
    if type(raw).__module__.split(".")[0] == kind:
        return raw
    if kind == "pandas":
        if hasattr(raw, "to_pandas"):
            return raw.to_pandas()
        import pandas

        return pandas.DataFrame(np.asarray(raw), columns=list(columns or ()))
    import polars

    return polars.DataFrame(raw)


def join_rows(parts: Sequence[Any]) -> Any:
    """Rows of all parts, one after the other."""
    first = parts[0]
    if isinstance(first, RowView):
        return RowView(first.table, np.concatenate([part.rows for part in parts]))
    library = type(first).__module__.split(".")[0]
    if len(parts) == 1:
        return first
    if sparse.issparse(first):
        return sparse.vstack(parts, format="csr")
    if library == "pandas":
        import pandas

        return pandas.concat(parts, ignore_index=True)
    if library == "polars":
        import polars

        return polars.concat(parts)
    if library == "pyarrow":
        import pyarrow

        return pyarrow.concat_tables(parts, promote_options="permissive")
    if hasattr(first, "__array__"):
        return np.concatenate(parts)
    return [row for part in parts for row in part]
