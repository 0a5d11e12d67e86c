"""Checks at the edge: votes, probabilities and weights; kernels trust what was checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Loose enough for probabilities that were computed in single precision.
_SUM_TOLERANCE = 1e-4


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
    """Return one threshold in [0, 1] for each class; ``None`` is the zero vector.

    A threshold that was found on votes is one of them, so it may exceed 1 by as much as they may.
    """
    theta = np.asarray(0.0 if thresholds is None else thresholds, dtype=np.float64)
    if theta.ndim == 0:
        theta = np.full(n_classes, float(theta))
    if theta.shape != (n_classes,):
        raise ValueError(
            f"thresholds must be one number or one for each of the {n_classes} classes. "
            f"Got shape {theta.shape} instead."
        )
    if not ((theta >= 0).all() and (theta <= 1 + _SUM_TOLERANCE).all()):
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


def check_label_distribution(labels: ArrayLike, votes: NDArray[np.float64]) -> NDArray[np.float64]:
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


def as_mask(rows: ArrayLike, n: int) -> NDArray[np.bool_]:
    """Which of n rows are meant, by positions or by a mask of booleans."""
    given = np.asarray(rows)
    if given.dtype == object and all(isinstance(x, bool | np.bool_) for x in given.ravel()):
        given = given.astype(bool)
    if given.dtype == bool and given.shape == (n,):
        return given
    if given.size == 0:
        given = given.astype(np.intp)
    numbers = given.ndim == 1 and given.dtype.kind in "iu"
    if not numbers or (given.size and not 0 <= given.min() <= given.max() < n):
        raise ValueError(
            f"rows must be positions from 0 to {n - 1}, or a mask of {n} booleans. Got "
            f"{given.dtype} of shape {given.shape}."
        )
    if given.size == n > 2 and given.max() <= 1:
        raise ValueError(
            f"rows has a 0 or 1 for each of {n} rows, which would be positions. Use booleans for a "
            f"mask."
        )
    mask = np.zeros(n, dtype=bool)
    mask[given] = True
    return mask
