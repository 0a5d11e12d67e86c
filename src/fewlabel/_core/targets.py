"""Targets with gaps: which rows are labelled, and the codes of their classes."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from fewlabel._core.scikit import indexable_rows, n_rows, take_rows

UNLABELED = -1
"""The code of an unlabelled row in every encoded target."""
_ASKED = ("-1", "")  # texts that may be a class, or mark a row without one


def _is_missing_scalar(value: object) -> bool:
    # pd.NA and pd.NaT are recognised by name so that pandas is never imported for it.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(value != value)


def _is_minus_one(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and value == -1


def _elementwise(test: Callable[[object], bool], values: NDArray[Any]) -> NDArray[np.bool_]:
    return np.fromiter((test(v) for v in values), dtype=bool, count=len(values))


def as_column(y: Any) -> NDArray[Any]:
    """One-dimensional array of a target, with missing values kept apart from strings."""
    if hasattr(y, "to_pylist"):  # Arrow
        column = np.array(y.to_pylist(), dtype=object)
    elif hasattr(y, "to_numpy"):
        # Whole numbers beside missing values would become floats, and large ones the same float.
        column = np.array(list(y), dtype=object) if _has_gaps(y) else y.to_numpy()
    elif isinstance(y, np.ndarray):
        column = y
    else:
        # np.asarray would turn ["a", nan] into ["a", "nan"].
        column = np.asarray(y, dtype=object)
    return column_or_1d(column, warn=True)


def _has_gaps(y: Any) -> bool:
    """Whether a column of pandas or polars holds missing values apart from its numbers."""
    if hasattr(y, "null_count"):
        return bool(y.null_count() > 0)
    return not isinstance(getattr(y, "dtype", np.dtype(float)), np.dtype) and bool(y.isna().any())


def unlabeled_mask(y: object, missing_label: object = "auto") -> NDArray[np.bool_]:
    """Which rows of a target are unlabelled.

    ``missing_label="auto"`` takes -1, NaN, None and pd.NA for "unlabelled" but refuses a target
    in which that is ambiguous; any other value is taken literally (``None`` and NaN stand for
    every missing value).
    """
    return _unlabeled_mask(as_column(y), missing_label)


def _unlabeled_mask(column: NDArray[Any], missing_label: object) -> NDArray[np.bool_]:
    if column.dtype.kind == "f":
        missing = np.isnan(column)
    elif column.dtype.kind == "O":
        missing = _elementwise(_is_missing_scalar, column)
    elif column.dtype.kind in "mM":
        missing = np.isnat(column)
    else:
        missing = np.zeros(len(column), dtype=bool)

    if isinstance(missing_label, str) and missing_label == "auto":
        return _resolve_auto(column, missing)
    if _is_missing_scalar(missing_label):
        return missing
    if missing.any():
        raise ValueError(
            f"y has {int(missing.sum())} missing value(s) besides missing_label={missing_label!r}. "
            f"Use one marker for unlabelled rows, or missing_label='auto'."
        )
    return np.asarray(column == missing_label, dtype=bool)


def _resolve_auto(column: NDArray[Any], missing: NDArray[np.bool_]) -> NDArray[np.bool_]:
    if column.dtype.kind == "O":
        minus_one = _elementwise(_is_minus_one, column)
        text = _elementwise(lambda value: isinstance(value, str) and value in _ASKED, column)
    elif column.dtype.kind in "US":
        minus_one, text = missing, np.isin(column.astype(str), _ASKED)
    elif column.dtype.kind in "if":
        minus_one, text = np.asarray(column == -1), np.zeros(0, dtype=bool)
    else:
        minus_one = text = np.zeros(len(column), dtype=bool)
    if text.any():
        found = str(column[text][0])
        raise ValueError(
            f'y contains the string {found!r}, which may be a class or mean "unlabelled". Pass '
            f"missing_label={found!r} if it marks unlabelled rows, or missing_label=None if it is "
            f"a class (and None or NaN marks them)."
        )
    if missing.any() and minus_one.any():
        raise ValueError(
            "y contains both -1 and missing values, so it is ambiguous which of them means "
            '"unlabelled". Pass missing_label=-1 after replacing the missing values, or '
            "missing_label=None if -1 is a class."
        )
    return missing | minus_one


def marks_unlabeled(column: NDArray[Any], missing_label: object = "auto") -> NDArray[np.bool_]:
    """Which values mark an unlabelled row, where the target has shown what does."""
    missing = _elementwise(_is_missing_scalar, column)
    if _is_missing_scalar(missing_label):
        return missing
    if isinstance(missing_label, str) and missing_label == "auto":
        # These texts are no classes then, or the target would have been refused.
        return missing | _elementwise(lambda v: _is_minus_one(v) or str(v) in _ASKED, column)
    return missing | _elementwise(lambda v: bool(v == missing_label), column)


def _as_numbers(labels: NDArray[Any]) -> NDArray[Any]:
    """Objects that are all numbers, as an array of numbers; other labels as they are."""
    if labels.dtype.kind != "O":
        return labels
    inferred = np.asarray(labels.tolist())
    return inferred if inferred.dtype.kind in "biuf" else labels


def encode_target(
    y: object, missing_label: object = "auto"
) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return class codes (``UNLABELED`` where no label is given) and the sorted classes.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Integer, float, string or categorical target; NumPy, pandas, polars or a list.
    missing_label : object, default="auto"
        What marks an unlabelled row, see :func:`unlabeled_mask`.
    """
    if y is None:
        raise ValueError(
            "The classifier requires y to be passed, but the target y is None. Pass the labels, "
            "with -1 (or NaN or None) for unlabelled rows."
        )
    column = as_column(y)
    unlabeled = _unlabeled_mask(column, missing_label)
    if unlabeled.all():
        raise ValueError(
            "y has no labelled row: every value marks an unlabelled one. At least one row of each "
            "of two classes must be labelled."
        )
    labels = _as_numbers(column[~unlabeled])
    if labels.dtype.kind == "O" and len({isinstance(v, str) for v in labels}) > 1:
        raise ValueError("y mixes strings and other types as labels; use one type for all classes.")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("y contains infinity. Labels must be finite; mark unlabelled rows by NaN.")
    check_classification_targets(labels)
    classes, codes_labeled = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"y has labels of one class only ({classes[0]!r}); a classifier needs at least two "
            f"classes. If -1 is a class in your data, pass missing_label=None and mark unlabelled "
            f"rows by None or NaN."
        )
    codes = np.full(len(column), UNLABELED, dtype=np.intp)
    codes[~unlabeled] = codes_labeled
    return codes, classes


def labeled_part(
    X: Any, y: Any, missing_label: object
) -> tuple[NDArray[np.intp], Any, NDArray[Any]]:
    """Row numbers, features and labels of the labelled rows: those that can be scored."""
    labeled = np.flatnonzero(~unlabeled_mask(y, missing_label))
    if len(labeled) == 0:
        raise ValueError("y has no labelled row to score on.")
    # Not cast to the type of the classes: that would cut "ab" to a class "a", and 0.5 to 0.
    truth = _as_numbers(as_column(y)[labeled])
    if len(labeled) == n_rows(X):
        return labeled, X, truth
    return labeled, take_rows(indexable_rows(X), labeled), truth
