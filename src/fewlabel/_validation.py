"""Checks at the edge: what comes in from users is verified here once, kernels trust it.

This is the one module that may touch scikit-learn's internals.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.ensemble import VotingClassifier
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, column_or_1d, has_fit_parameter, validate_data

# scikit-learn's own vocabulary for parameters, passed on to the estimators.
__all__ = ["HasMethods", "Interval", "StrOptions"]

UNLABELED = -1
"""The code of an unlabelled row in every encoded target."""

# Loose enough for probabilities that were computed in single precision.
_SUM_TOLERANCE = 1e-4

take_rows: Callable[..., Any] = _safe_indexing
n_rows: Callable[[Any], int] = _num_samples


def check_proba(proba: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return ``proba`` as a C-ordered float64 matrix whose rows are distributions."""
    matrix = np.ascontiguousarray(proba, dtype=np.float64)
    if matrix.ndim != 2:
        raise ValueError(
            f"{name} must have shape (n_samples, n_classes). Got {matrix.shape} instead."
        )
    if matrix.shape[0] == 0:
        raise ValueError(f"{name} has no rows; at least one sample is needed.")
    if matrix.shape[1] < 2:
        raise ValueError(
            f"{name} must have at least 2 columns, one for each class. Got {matrix.shape[1]}."
        )
    # One pass each; NaN fails both comparisons, so it needs no pass of its own.
    sums = matrix @ np.ones(matrix.shape[1])
    if not (matrix.min() >= 0.0 and np.abs(sums - 1.0).max() <= _SUM_TOLERANCE):
        _raise_not_distribution(matrix, sums, name)
    return matrix


def _raise_not_distribution(
    matrix: NDArray[np.float64], sums: NDArray[np.float64], name: str
) -> None:
    broken = {
        "are not finite": ~np.isfinite(matrix).all(axis=1),
        "have negative entries": (matrix < 0).any(axis=1),
        "do not sum to 1": ~(np.abs(sums - 1.0) <= _SUM_TOLERANCE),
    }
    what, rows = next((what, rows) for what, rows in broken.items() if rows.any())
    first = int(np.flatnonzero(rows)[0])
    raise ValueError(
        f"Each row of {name} must be a probability distribution over the classes: "
        f"{int(rows.sum())} row(s) {what}; the first is row {first}: {matrix[first]}. "
        f"Divide each row by its sum, or pass the output of `predict_proba`."
    )


def check_votes(votes: ArrayLike) -> NDArray[np.float64]:
    """Return the class votes v_Q(x, c) as a validated (n_samples, n_classes) matrix."""
    return check_proba(votes, "votes")


def check_label_proba(label_proba: ArrayLike, votes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return P(Y=c | x) validated and of the votes' shape."""
    proba = check_proba(label_proba, "label_proba")
    check_same_shape(proba, votes, "label_proba", "votes")
    return proba


def check_votes_and_proba(
    votes: ArrayLike, label_proba: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return both matrices, validated."""
    if label_proba is None:
        raise ValueError(
            "label_proba is needed with votes: the (estimated) P(Y=c|x), of the votes' shape."
        )
    v = check_votes(votes)
    # Votes are often their own estimate of P(Y|x): one array need not be checked twice.
    return v, v if label_proba is votes else check_label_proba(label_proba, v)


def check_same_shape(a: NDArray[Any], b: NDArray[Any], name_a: str, name_b: str) -> None:
    """Raise unless two arrays have one shape."""
    if a.shape != b.shape:
        raise ValueError(
            f"{name_a} and {name_b} must have the same shape. Got {a.shape} and {b.shape}."
        )


def check_thresholds(thresholds: ArrayLike | None, n_classes: int) -> NDArray[np.float64]:
    """Return one threshold in [0, 1] for each class; ``None`` is the zero vector."""
    theta = np.asarray(0.0 if thresholds is None else thresholds, dtype=np.float64)
    if theta.ndim == 0:
        theta = np.full(n_classes, float(theta))
    if theta.shape != (n_classes,):
        raise ValueError(
            f"thresholds must be one number or one for each of the {n_classes} classes. "
            f"Got shape {theta.shape} instead."
        )
    if not ((theta >= 0).all() and (theta <= 1).all()):
        raise ValueError(
            f"thresholds must lie in [0, 1]: they are compared with votes. Got {theta}."
        )
    return theta


def check_weights(sample_weight: ArrayLike, n_samples: int) -> NDArray[np.float64]:
    """Return one finite, non-negative weight for each row."""
    weight = np.array(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n_samples, float(weight))
    if weight.shape != (n_samples,):
        raise ValueError(
            f"sample_weight must have shape ({n_samples},), one weight for each row. "
            f"Got {weight.shape} instead."
        )
    if not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError("sample_weight must be finite and not negative.")
    return weight


def check_features(estimator: Any, X: Any, *, reset: bool) -> None:
    """Record (``reset``) or compare the number and names of X's columns; X is not converted.

    Lists and one-dimensional arrays of texts pass: the base estimator may be a text pipeline.
    """
    if isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.kind in "biufc":
        raise ValueError(
            f"Expected 2D array, got 1D array instead: array={X}. Reshape your data using "
            f"X.reshape(-1, 1) if it has a single feature or X.reshape(1, -1) if it contains a "
            f"single sample."
        )
    validate_data(estimator, X=X, reset=reset, skip_check_array=True)


def indexable_rows(X: Any) -> Any:
    """Return X with rows that can be taken by index; only sparse formats may need conversion."""
    if issparse(X):
        matrix: Any = X
        return matrix.tocsr()
    return X if hasattr(X, "__getitem__") or hasattr(X, "iloc") else np.asarray(X)


# --- imperfect labels ------------------------------------------------------------------------


def check_labels(labels: ArrayLike, votes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return label probabilities of the votes' shape; class codes put all of it on one class."""
    array = np.asarray(labels)
    if array.ndim == 1:
        codes = check_codes(array, votes.shape[1], len(votes))
        proba = np.zeros_like(votes)
        proba[np.arange(len(codes)), codes] = 1.0
        return proba
    return check_label_proba(array, votes)


def check_codes(
    labels: ArrayLike, n_classes: int, n_samples: int | None = None
) -> NDArray[np.intp]:
    """Return class codes 0..n_classes-1, of shape (n_samples,) if that is given."""
    codes = np.asarray(labels)
    if codes.ndim != 1 or (n_samples is not None and len(codes) != n_samples):
        wanted = "(n_samples,)" if n_samples is None else f"({n_samples},)"
        raise ValueError(f"Labels must have shape {wanted}. Got {codes.shape} instead.")
    if len(codes) and (
        codes.dtype.kind not in "iu" or not 0 <= codes.min() <= codes.max() < n_classes
    ):
        raise ValueError(
            f"Labels must be class codes 0..{n_classes - 1} (integers), the columns of the votes. "
            f"Got {np.unique(codes)[:5]} of type {codes.dtype}. Unlabelled rows have no place here."
        )
    return codes.astype(np.intp, copy=False)  # codes of pairs would overflow one byte


def check_mislabeling(mislabeling: ArrayLike) -> NDArray[np.float64]:
    """Return p[i, j] = P(Ŷ=i | Y=j) as a square matrix whose columns are distributions."""
    matrix = np.asarray(mislabeling, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        raise ValueError(
            f"mislabeling must be a square matrix, at least 2 x 2. Got shape {matrix.shape}."
        )
    outside = ~((matrix >= 0.0) & (matrix <= 1.0 + _SUM_TOLERANCE)).all(axis=0)
    sums = matrix.sum(axis=0)
    broken = np.flatnonzero(outside | ~(np.abs(sums - 1.0) <= _SUM_TOLERANCE))
    if broken.size:
        hint = " Its rows do: pass the transpose." if _columns_are_proba(matrix.T) else ""
        raise ValueError(
            f"Each column of mislabeling must be a distribution, P(Ŷ=i | Y=j) over i: the columns "
            f"of classes {broken.tolist()} are not (their sums: {sums[broken].tolist()}).{hint}"
        )
    return matrix


def _columns_are_proba(matrix: NDArray[np.float64]) -> bool:
    return bool((matrix >= 0).all() and (np.abs(matrix.sum(axis=0) - 1) <= _SUM_TOLERANCE).all())


def check_relaxation(relaxation: float) -> float:
    """Return λ, a finite number that is not negative."""
    if not (np.isfinite(relaxation) and relaxation >= 0.0):
        raise ValueError(f"relaxation must be a finite number >= 0. Got {relaxation} instead.")
    return float(relaxation)


# --- targets ---------------------------------------------------------------------------------


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
    if hasattr(y, "to_numpy"):
        # Whole numbers beside missing values would become floats, and large ones the same float.
        column = np.array(y.to_list(), dtype=object) if _has_gaps(y) else y.to_numpy()
    elif isinstance(y, np.ndarray):
        column = y
    else:
        # np.asarray would turn ["a", nan] into ["a", "nan"].
        column = np.asarray(y, dtype=object)
    return column_or_1d(column, warn=True)


def _has_gaps(y: Any) -> bool:
    """Whether a column of pandas or polars holds missing values apart from its numbers."""
    if hasattr(y, "null_count"):
        return hasattr(y, "to_list") and y.null_count() > 0
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
        text = _elementwise(lambda value: isinstance(value, str) and value == "-1", column)
    elif column.dtype.kind in "US":
        minus_one, text = missing, np.asarray(column == "-1", dtype=bool)
    elif column.dtype.kind in "if":
        minus_one, text = np.asarray(column == -1), np.zeros(0, dtype=bool)
    else:
        minus_one = text = np.zeros(len(column), dtype=bool)
    if text.any():
        raise ValueError(
            'y contains the string "-1", which may be a class or mean "unlabelled". Pass '
            'missing_label="-1" if it marks unlabelled rows, or missing_label=None if it is a '
            "class (and None or NaN marks them)."
        )
    if missing.any() and minus_one.any():
        raise ValueError(
            "y contains both -1 and missing values, so it is ambiguous which of them means "
            '"unlabelled". Pass missing_label=-1 after replacing the missing values, or '
            "missing_label=None if -1 is a class."
        )
    return missing | minus_one


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
    labels = column[~unlabeled]
    if labels.dtype.kind == "O":
        inferred = np.asarray(labels.tolist())
        labels = inferred if inferred.dtype.kind in "biuf" else labels
        if labels.dtype.kind == "O" and len({isinstance(v, str) for v in labels}) > 1:
            raise ValueError(
                "y mixes strings and other types as labels; use one type for all classes."
            )
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
    X: Any, y: Any, classes: NDArray[Any], missing_label: object
) -> tuple[NDArray[np.intp], Any, NDArray[Any]]:
    """Numbers, features and labels of the labelled rows: those that can be scored."""
    labeled = np.flatnonzero(~unlabeled_mask(y, missing_label))
    if len(labeled) == 0:
        raise ValueError("y has no labelled row to score on.")
    if len(labeled) == n_rows(X):
        return labeled, X, y
    truth = np.asarray(take_rows(y, labeled)).astype(classes.dtype)
    return labeled, take_rows(indexable_rows(X), labeled), truth


# --- base estimators -------------------------------------------------------------------------


def fit_weight_name(estimator: Any) -> str | None:
    """Name of the ``fit`` argument that takes row weights, or None if there is none.

    A pipeline passes weights on to its last step by the name ``laststep__sample_weight``, a search
    or a vote to what is in it, or, with metadata routing, only to who requested them.
    """
    from sklearn import get_config

    router = isinstance(estimator, (Pipeline, BaseSearchCV, VotingClassifier))
    if router and get_config()["enable_metadata_routing"]:
        routed = get_routing_for_object(estimator).consumes("fit", ["sample_weight"])
        return "sample_weight" if routed else None
    if isinstance(estimator, Pipeline):
        last_name, last = estimator.steps[-1]
        inner = None if last in (None, "passthrough") else fit_weight_name(last)
        return f"{last_name}__{inner}" if inner else None
    if isinstance(estimator, BaseSearchCV):
        return fit_weight_name(estimator.estimator)  # a search hands on what it is given
    if isinstance(estimator, VotingClassifier):
        voters = [voter for _, voter in estimator.estimators if voter != "drop"]
        taken = all(fit_weight_name(voter) == "sample_weight" for voter in voters)
        return "sample_weight" if taken else None
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def base_tags(estimator: Any) -> Any:
    """The scikit-learn tags of a base estimator."""
    return get_tags(estimator)
