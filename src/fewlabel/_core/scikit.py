"""The one module that may touch scikit-learn's internals: rows, columns and base estimators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.ensemble import VotingClassifier
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.tree._tree import NODE_DTYPE, Tree
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metadata_routing import (
    _raise_for_params,
    get_routing_for_object,
    process_routing,
)
from sklearn.utils.validation import (
    _check_method_params,
    _num_samples,
    check_array,
    has_fit_parameter,
    validate_data,
)

from fewlabel._core.arrays import RowView

# scikit-learn's own vocabulary for parameters, passed on to the estimators.
__all__ = ["NODE_DTYPE", "HasMethods", "Interval", "StrOptions", "validate_data"]

n_rows: Callable[[Any], int] = _num_samples


def take_rows(X: Any, rows: NDArray[np.intp]) -> Any:
    """Rows of X by index: a copy, or of a :class:`RowView` a smaller view."""
    return X.take(rows) if isinstance(X, RowView) else _safe_indexing(X, rows)


def take_columns(X: Any, columns: NDArray[np.intp]) -> Any:
    """Columns of X by index."""
    return _safe_indexing(X, columns, axis=1)


def copied_rows(X: Any) -> Any:
    """The rows themselves, where a view only names them."""
    return _safe_indexing(X.table, X.rows) if isinstance(X, RowView) else X


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


def check_numbers(X: Any) -> Any:
    """Numbers as they are: frames, arrays and sparse matrices pass, lists become arrays."""
    if hasattr(X, "iloc") or hasattr(X, "get_columns"):
        return X
    return check_array(X, accept_sparse=True, dtype=None, ensure_all_finite=False)


def indexable_rows(X: Any) -> Any:
    """Return X with rows that can be taken by index; only sparse formats may need conversion."""
    if issparse(X):
        matrix: Any = X
        return matrix.tocsr()
    return X if hasattr(X, "__getitem__") or hasattr(X, "iloc") else np.asarray(X)


def routed_fit_params(owner: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Metadata for the base estimator's ``fit``, after scikit-learn's routing rules."""
    if not params:
        return {}
    _raise_for_params(params, owner, "fit")
    return dict(process_routing(owner, "fit", **params).estimator.fit)


def params_of_rows(view: RowView, params: dict[str, Any]) -> dict[str, Any]:
    """Arguments of ``fit`` for some rows: those with one value a row of the table are cut."""
    return dict(_check_method_params(view.table, params, indices=view.rows))


def fit_weight_name(estimator: Any) -> str | None:
    """Name of the ``fit`` argument that takes row weights, or None if there is none.

    A pipeline passes weights on to its last step by the name ``laststep__sample_weight``, a search
    or a vote to what is in it, or, with metadata routing, only to who requested them.
    """
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


def wants_numbers(estimator: Any) -> bool:
    """Whether a classifier of scikit-learn takes nothing but numbers.

    Pipelines, searches and votes may encode what they are given, and so may classifiers of other
    packages, and those that have an option for categories.
    """
    if type(estimator).__module__.split(".")[0] not in ("sklearn", "fewlabel"):
        return False
    params = estimator.get_params(deep=False)
    inside = ("steps", "estimator", "estimators", "categorical_features")
    return all(params.get(name) is None for name in inside)


def make_tree(
    n_features: int, n_classes: int, max_depth: int, nodes: NDArray[Any], values: NDArray[Any]
) -> Any:
    """A fitted tree of one target from its nodes, which scikit-learn does not check."""
    tree = Tree(n_features, np.array([n_classes], dtype=np.intp), 1)
    tree.__setstate__(
        {"max_depth": max_depth, "node_count": len(nodes), "nodes": nodes, "values": values}
    )
    return tree


def is_tree(value: Any) -> bool:
    """Whether something is the inside of a fitted decision tree."""
    return isinstance(value, Tree)
