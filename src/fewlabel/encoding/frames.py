"""Tables of pandas, polars and Arrow, and arrays of objects, as one: a :class:`pyarrow.Table`."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from fewlabel._core.errors import UserError, listing
from fewlabel._core.optional import pa, pd

DELIMITER = b"fewlabel:delimiter"
"""Where a table remembers what parted its cells in a file of text."""

DECIMAL = b"fewlabel:decimal"
"""Where it remembers that its numbers have a decimal comma."""


def needs_encoding(X: Any) -> bool:
    """Whether rows must become numbers before a classifier can learn from them.

    Parameters
    ----------
    X : array, sparse matrix or frame

    Returns
    -------
    bool
        True for frames with a column that does not hold numbers or with an empty cell, for columns
        of text, and for two-dimensional arrays of objects that are not all numbers. False for
        arrays and frames of numbers, sparse matrices and lists.

    See Also
    --------
    TableEncoder : Encodes them.

    Examples
    --------
    >>> import numpy as np
    >>> needs_encoding(np.eye(2)), needs_encoding(np.array([["a", 1.5]], dtype=object))
    (False, True)
    """
    if isinstance(X, np.ndarray):
        return X.ndim == 2 and X.dtype.kind in "OUSM" and not _all_numbers(X)
    return has_other_than_numbers(X) or _has_gaps(X)


def has_other_than_numbers(X: Any) -> bool:
    """Whether a frame, or a column of one, holds anything but numbers and missing ones.

    Parameters
    ----------
    X : array, sparse matrix or frame
        Arrays are no frames.

    Returns
    -------
    bool

    See Also
    --------
    needs_encoding : True for numbers with empty cells, too.
    """
    X = _as_frame(X)
    if _is_polars(X):
        return not all(kind.is_numeric() for kind in X.schema.dtypes())
    if hasattr(X, "select_dtypes"):  # pandas
        # pandas counts durations as numbers; estimators do not.
        return bool(X.select_dtypes("number", exclude="timedelta").shape[1] < X.shape[1])
    return _is_arrow(X)


def _has_gaps(X: Any) -> bool:
    """Whether a frame of numbers has empty cells."""
    if _is_polars(X):
        cells = _as_frame(X).get_columns()
        return any(c.null_count() or (c.dtype.is_float() and c.is_nan().any()) for c in cells)
    return hasattr(X, "isna") and bool(np.any(X.isna()))


def _as_frame(X: Any) -> Any:
    """A single column as a frame, all else as it is."""
    if type(X).__name__ == "LazyFrame":
        raise TypeError("X is a LazyFrame of polars, whose rows are not there yet: X.collect().")
    if not hasattr(X, "to_frame"):
        return X
    return (X if X.name not in (None, "") else X.rename("x0")).to_frame()


def _all_numbers(X: np.ndarray) -> bool:
    if X.dtype.kind != "O":
        return False
    try:
        X.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return not any(isinstance(cell, str) for cell in X.ravel())


def _is_polars(X: Any) -> bool:
    return type(X).__module__.split(".")[0] == "polars"


def _is_arrow(X: Any) -> bool:
    return type(X).__module__.split(".")[0] == "pyarrow"


def as_table(X: Any) -> pa.Table:
    """Any frame as an Arrow table; names of columns become texts.

    Parameters
    ----------
    X : frame of pandas or polars, a column of one, pyarrow.Table, or array of shape (n, d)
        Columns of an array are named x0, x1, …

    Returns
    -------
    pyarrow.Table
    """
    if _is_arrow(X):
        table = X if isinstance(X, pa.Table) else pa.Table.from_batches([X])
        return _checked(table)
    X = _as_frame(X)
    columns = [_arrow_column(column) for column in _columns(X)]
    return _checked(pa.Table.from_arrays(columns, names=column_names(X)))


def column_names(X: Any) -> list[str]:
    """Names of the columns of a frame or array; none for what has no columns."""
    if _is_arrow(X):
        return list(X.schema.names)
    X = _as_frame(X)
    if hasattr(X, "columns"):
        return [str(name) for name in X.columns]
    shape: Any = np.shape(X) if isinstance(X, (list, tuple)) else getattr(X, "shape", ())
    return [f"x{i}" for i in range(shape[1])] if len(shape) == 2 else []


def _columns(X: Any) -> list[Any]:
    if _is_polars(X):
        return list(X.get_columns())
    if hasattr(X, "iloc"):
        return [X.iloc[:, i] for i in range(X.shape[1])]
    array = np.asarray(X)
    return [array[:, i] for i in range(array.shape[1])]


def _arrow_column(column: Any) -> Any:
    if _is_polars(column):
        return column.to_arrow()
    kind = getattr(column, "dtype", None)
    if isinstance(kind, np.dtype) or not hasattr(column, "isna"):
        column = np.asarray(column)
    elif type(getattr(kind, "categories", None)).__name__ == "IntervalIndex":
        column = column.astype(object)  # of pd.cut: Arrow has no plain type for an interval
    try:
        return pa.array(column, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        # Cells of several types: what they say is all that is left of them.
        missing = np.asarray(pd.isna(np.asarray(column, dtype=object)))
        return pa.array([None if gap else str(cell) for cell, gap in zip(column, missing)])


def _checked(table: pa.Table) -> pa.Table:
    repeated = sorted(name for name, n in Counter(table.column_names).items() if n > 1)
    if repeated:
        raise UserError(
            f"Columns have the same name: {listing(repeated)}.", "Give every column its own."
        )
    return table


def is_comma_separated(table: pa.Table) -> bool:
    """Whether commas parted the cells of the file that a table was read from."""
    return (table.schema.metadata or {}).get(DELIMITER) == b","
