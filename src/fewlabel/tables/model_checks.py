"""Whether what a model file held fits together, before compiled code trusts it.

The list of types says *what* is built; here it is checked that the arrays inside have the lengths
that they must have. Python code raises an error otherwise; compiled code reads beyond their ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix, issparse
from sklearn.base import BaseEstimator
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.svm import SVC

from fewlabel.network.classifier import PriorNetworkClassifier
from fewlabel.tables.packed_trees import PackedTrees, can_be_packed, pack, unpack

_MOST_JOBS = 1_024
_LARGEST = 1e150  # the square of a larger number is infinite, and so are votes


def rebuilt(
    value: Any, change: Callable[[Any], Any], seen: dict[int, tuple[Any, Any]] | None = None
) -> Any:
    """A copy in which ``change`` has replaced parts; what it leaves alone is shared, not copied.

    Parameters
    ----------
    value : object
        Lists, tuples, dictionaries and estimators are looked into.
    change : callable
        From a part to what shall stand for it, or the part itself.
    seen : dict, optional
        What was changed already, by identity: parts that occur twice stay one.
    """
    seen = {} if seen is None else seen
    if id(value) in seen:
        return seen[id(value)][1]
    new = change(value)
    if new is value:
        if isinstance(value, (list, tuple)):
            items = [rebuilt(item, change, seen) for item in value]
            new = type(value)(items) if _differ(items, value) else value
        elif isinstance(value, dict):
            items = [rebuilt(item, change, seen) for item in value.values()]
            new = dict(zip(value, items)) if _differ(items, value.values()) else value
        elif isinstance(value, BaseEstimator):
            state = rebuilt(vars(value), change, seen)
            if state is not vars(value):
                new = object.__new__(type(value))
                vars(new).update(state)
    seen[id(value)] = (value, new)  # with the value, whose identity must not be given again
    return new


def _differ(items: list[Any], before: Any) -> bool:
    return any(new is not old for new, old in zip(items, before))


def with_packed_trees(value: Any) -> Any:
    """The same with the trees of every forest side by side."""
    return rebuilt(value, lambda part: pack(part) if can_be_packed(part) else part)


def checked(value: Any) -> Any:
    """What was read from a file, with forests of trees, if it fits together.

    Raises
    ------
    ValueError
        If it does not.
    """

    def check(part: Any) -> Any:
        if isinstance(part, BaseEstimator):
            _check_jobs(part)
        if isinstance(part, SVC):
            _check_svc(part)
        if isinstance(part, PriorNetworkClassifier):
            _require(part.weights is None, "weights that did not come with fewlabel")
        if issparse(part):
            _check_sparse(part)
        if isinstance(part, np.ndarray):
            _check_size(part)
        if isinstance(part, (RandomForestClassifier, ExtraTreesClassifier)):
            return _with_trees(part)
        return part

    return rebuilt(value, check)


def _with_trees(forest: Any) -> Any:
    state = vars(forest)
    if "estimators_" not in state:
        return forest
    packed = state["estimators_"]
    n_classes = len(forest.classes_)
    _require(isinstance(packed, PackedTrees), "a forest without trees")
    _require(forest.n_classes_ == n_classes and forest.n_outputs_ == 1, "a forest's classes")
    n_features = forest.n_features_in_
    _require(isinstance(n_features, int), "a forest's features")
    trees = unpack(packed, n_features, n_classes)
    _check_jobs(forest)
    new = object.__new__(type(forest))
    vars(new).update(state, estimators_=trees, n_estimators=len(trees))
    return new


def _check_jobs(estimator: Any) -> None:
    jobs = vars(estimator).get("n_jobs")
    _require(jobs is None or (isinstance(jobs, int) and abs(jobs) <= _MOST_JOBS), "n_jobs")


def _check_svc(machine: SVC) -> None:
    """The lengths that libsvm relies on."""
    if "support_vectors_" not in vars(machine):
        return
    vectors, n_classes = machine.support_vectors_, len(machine.classes_)
    n, n_features = vectors.shape
    _require(machine.kernel in ("linear", "poly", "rbf", "sigmoid"), "a kernel")
    _require(machine._sparse is False or issparse(vectors), "support vectors")
    _require(machine._sparse is True or isinstance(vectors, np.ndarray), "support vectors")
    _require(vectors.dtype == np.float64, "support vectors")
    _require(n_features == machine.n_features_in_ == machine.shape_fit_[1], "features")
    # A second set of coefficients without underscore is only shown; these are used.
    _has(machine._n_support, np.int32, (n_classes,), "support vectors of each class")
    _require(bool((machine._n_support >= 0).all()) and machine._n_support.sum() == n, "vectors")
    _has(machine.support_, np.int32, (n,), "support vectors")
    coefficients: Any = machine._dual_coef_
    _require(coefficients.shape == (n_classes - 1, n), "dual coefficients")
    if issparse(coefficients):
        _check_sparse(coefficients)
    else:
        _has(coefficients, np.float64, (n_classes - 1, n), "dual coefficients")
    _has(machine._intercept_, np.float64, (n_classes * (n_classes - 1) // 2,), "intercepts")
    for name in ("_probA", "_probB"):
        _has(getattr(machine, name), np.float64, (0,), "probabilities")


def _check_size(array: Any) -> None:
    """That numbers can be calculated with; NaN and infinity are for who uses them to judge."""
    if array.dtype == np.float64:  # smaller types hold no such numbers
        too_large = (np.abs(array) > _LARGEST) & np.isfinite(array)
        _require(not bool(too_large.any()), "numbers too large to calculate with")


def _check_sparse(matrix: Any) -> None:
    _require(isinstance(matrix, (csr_array, csr_matrix)), "a sparse matrix")
    _require(matrix.data.dtype.kind in "fiub", "a sparse matrix")
    matrix.check_format(full_check=True)
    _check_size(matrix.data)


def _has(array: Any, dtype: Any, shape: tuple[int, ...], what: str) -> None:
    fits = isinstance(array, np.ndarray) and array.dtype == dtype and array.shape == shape
    _require(fits, what)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"its parts do not fit together ({what})")
