"""The methods of Table 2 by name: how each is made, tuned and fed."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from reproduction.observe import Watched
from reproduction.spec import Trial, Value

Params = dict[str, Value]


@dataclass(frozen=True)
class Method:
    """How a column of Table 2 is computed.

    Attributes
    ----------
    make : callable
        From the trial, its parameters and the label probabilities to an unfitted classifier.
    symbol : str
        The column's head in LaTeX.
    grid : tuple of dict
        The paper's grid. Every point runs on every split; the table shows the point with the best
        mean, as the paper does, so these columns are tuned on the labels they are scored on.
    supervised : bool
        Whether it is fitted on the labelled rows only.
    scaling : {"none", "minmax", "standard"}
        Of every feature over all rows but those of the test part (no label is used). "minmax": to
        [-1, 1], except that features that only take 0 and 1 stay as they are. "standard": to mean
        0 and variance 1.
    """

    make: Callable[[Trial, Params, Any], Any]
    symbol: str
    grid: tuple[Params, ...] = ({},)
    supervised: bool = False
    scaling: Literal["none", "minmax", "standard"] = "none"


def _forest(trial: Trial, params: Params, label_proba: Any) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(trial.n_trees, random_state=trial.seed, n_jobs=1)


def _self_learning(policy: str, **fixed: Any) -> Callable[[Trial, Params, Any], Any]:
    def make(trial: Trial, params: Params, label_proba: Any) -> Any:
        import fewlabel

        return fewlabel.SelfLearningClassifier(
            _forest(trial, params, None),
            policy=Watched(getattr(fewlabel, policy)(**params)),
            label_proba=label_proba,
            min_gain=0.0,  # the paper's rule: go on until nothing is left or nothing is selected
            random_state=trial.seed,
            **fixed,
        )

    return make


def _mixed_vote(trial: Trial, params: Params, label_proba: Any) -> Any:
    from fewlabel.ensemble.few_label import FewLabelClassifier

    return FewLabelClassifier(random_state=trial.seed, n_jobs=1)


def _baseline(name: str, **fixed: Any) -> Callable[[Trial, Params, Any], Any]:
    def make(trial: Trial, params: Params, label_proba: Any) -> Any:
        cls = getattr(importlib.import_module("fewlabel.baselines"), name)
        settings = dict(fixed)
        if "n_estimators" in cls().get_params():
            settings["n_estimators"] = trial.n_trees
        if "random_state" in cls().get_params():
            settings["random_state"] = trial.seed
        return cls(**settings, **params)

    return make


def _lda(solver: str, shrinkage: str | None) -> Callable[[Trial, Params, Any], Any]:
    def make(trial: Trial, params: Params, label_proba: Any) -> Any:
        from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

        return LinearDiscriminantAnalysis(solver, shrinkage=shrinkage)

    return make


def _grid(**axes: tuple[Value, ...]) -> tuple[Params, ...]:
    return tuple(dict(zip(axes, point)) for point in itertools.product(*axes.values()))


_STRENGTHS: tuple[Value, ...] = (0.1, 0.01, 0.001)
_SIGMAS = _grid(gamma=(10.0, 1.5, 0.5, 0.1, 0.01, 0.001))
# The paper's setting: the dense kernel with scikit-learn's defaults for all but its parameter.
_label_spreading = _baseline("LabelSpreadingClassifier", kernel="rbf", alpha=0.2, max_iter=30)

METHODS: dict[str, Method] = {
    "RF": Method(_forest, r"\texttt{RF}", supervised=True),
    "LS": Method(
        _label_spreading,
        r"\texttt{LS}",
        _SIGMAS,
        scaling="minmax",
    ),
    "QN-S3VM": Method(
        _baseline("QNS3VMClassifier"),
        r"\texttt{QN-S3VM}",
        _grid(lam=_STRENGTHS, lam_u=_STRENGTHS),
        scaling="minmax",
    ),
    "Semi-LDA": Method(
        _baseline("SemiLDAClassifier", max_iter=300),
        r"\texttt{Semi-LDA}",
        _grid(learning_rate=(1e-4, 1e-3, 1e-2)),
    ),
    "DAS-RF": Method(
        _baseline("DASForestClassifier"),
        r"\texttt{DAS-RF}",
        _grid(temperature=(1e-3, 5e-3, 1e-2)),
    ),
    # The classical method, in which all rows weigh the same: with the weights of Algorithm 1, as
    # "FSLA weighted" below, it would not come near the paper's figures.
    "FSLA": Method(
        _self_learning("FixedThreshold", max_iter=10, pseudo_weight="uniform"),
        r"\texttt{FSLA}$_{\theta=0.7}$",
        ({"threshold": 0.7},),
    ),
    "CSLA": Method(
        _self_learning("Curriculum"),
        r"\texttt{CSLA}$_{\Delta=1/3}$",
    ),
    "MSLA": Method(_self_learning("BoundPolicy"), r"\texttt{MSLA}"),
    "FewLabel": Method(_mixed_vote, r"\texttt{FewLabel} (ours)"),
}
"""The columns of Table 2 in the paper's order, and ours."""

VARIANTS: dict[str, Method] = {
    "LS raw": Method(_label_spreading, "", _SIGMAS),
    "LS standard": Method(_label_spreading, "", _SIGMAS, scaling="standard"),
    "LS k-NN": Method(_baseline("LabelSpreadingClassifier"), ""),
    "QN-S3VM raw": Method(
        _baseline("QNS3VMClassifier"), "", _grid(lam=_STRENGTHS, lam_u=_STRENGTHS)
    ),
    "QN-S3VM early": Method(
        _baseline("QNS3VMClassifier", max_iter=5),
        "",
        _grid(lam=_STRENGTHS, lam_u=_STRENGTHS),
        scaling="minmax",
    ),
    "SVM": Method(
        _baseline("QNS3VMClassifier", lam_u=0.0),
        "",
        _grid(lam=_STRENGTHS),
        scaling="minmax",
    ),
    "Semi-LDA converged": Method(_baseline("SemiLDAClassifier"), ""),
    "Semi-LDA unshrunk": Method(
        _baseline("SemiLDAClassifier", shrinkage=1e-6, max_iter=300),
        "",
        _grid(learning_rate=(1e-4, 1e-3, 1e-2)),
    ),
    "LDA": Method(_lda("lsqr", "auto"), "", supervised=True),
    "LDA plain": Method(_lda("svd", None), "", supervised=True),
    "FSLA weighted": Method(
        _self_learning("FixedThreshold", max_iter=10),
        "",
        ({"threshold": 0.7},),
    ),
    "DAS-RF no airbag": Method(
        _baseline("DASForestClassifier", airbag=None),
        "",
        _grid(temperature=(1e-3, 5e-3, 1e-2)),
    ),
}
"""What a column of Table 2 is compared with to explain it; not in the paper."""


def scaled(
    X: NDArray[Any], scaling: str, test: Sequence[int] | NDArray[np.intp] = ()
) -> NDArray[np.float32]:
    """Features as a method wants them, in single precision.

    The rows ``test`` are scaled like the others, but nothing is learned from them.

    Notes
    -----
    "minmax" is the scaling of :class:`fewlabel.ensemble.families.RangeScaler` but for two details,
    which are kept because every record was made with them: a constant feature becomes -1 here, 0
    there (a linear S3VM takes the -1 for a second bias), and 2(x - low)/span - 1 rounds otherwise
    in single precision than (x - middle)/half. The library's scaler subtracts the middle so that
    constant features vanish and missing values pass.
    """
    values = np.ascontiguousarray(X, dtype=np.float32)
    if scaling == "none":
        return values
    # The other rows stay in their order, on which the rounding of a mean depends.
    seen = np.delete(values, test, axis=0) if len(test) else values
    if scaling == "standard":
        deviation = seen.std(axis=0)
        return (values - seen.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
    low, high = seen.min(axis=0), seen.max(axis=0)
    binary = ((seen == 0) | (seen == 1)).all(axis=0)
    span = np.where(high > low, high - low, 1)
    return np.where(binary, values, 2 * (values - low) / span - 1).astype(np.float32)


def method_named(name: str) -> Method:
    """A method of the table, a variant, or the :class:`Method` that ``module:attribute`` names."""
    if ":" not in name:
        return (METHODS | VARIANTS)[name]
    module, attribute = name.split(":")
    found = getattr(importlib.import_module(module), attribute)
    if not isinstance(found, Method):
        raise TypeError(f"{name} must be a Method. Got {type(found).__name__} instead.")
    return found
