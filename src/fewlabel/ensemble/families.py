"""Families of voters for a mixed vote: what each is, how it is fed, and when it is left out.

A family brings its own preprocessing. Scales are taken from all rows, labelled or not: no label
is needed for them. Inductive families learn from labelled rows only, transductive ones see the
unlabelled rows too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal, Self

import numpy as np
from scipy.sparse import diags_array, issparse
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import SVC

from fewlabel._core.scikit import n_rows
from fewlabel.assess.calibration import calibrated
from fewlabel.assess.prevalence import shifted
from fewlabel.baselines import LabelSpreadingClassifier, QNS3VMClassifier, SemiLDAClassifier
from fewlabel.baselines._wide import ScreenedClassifier, WideLDA
from fewlabel.bounds.statistics import Floats, Ints
from fewlabel.ensemble.foundation import LIMITS, limits_of, make_tabicl
from fewlabel.ensemble.graphs import (
    Discriminants,
    LeafProximity,
    MetricSpreadingClassifier,
    local_spreading,
)
from fewlabel.network.classifier import PriorNetworkClassifier

# --- the families ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Family:
    """One kind of voter.

    Attributes
    ----------
    name, title : str
        As typed, and as read by people.
    make : callable
        From a seed and ``n_jobs`` to an unfitted classifier.
    scaling : {"none", "standard", "range"}
        Mean 0 and variance 1, or the interval [-1, 1] (features of 0 and 1 stay as they are).
    calibrated : bool
        Whether votes are raised to the power that fits the held-out labels best. Scores that are
        no probabilities need it.
    refitted : bool
        Whether it learns from pseudo-labels, too. A family that is not keeps its first votes.
    sparse : bool
        Whether it can learn from sparse rows.
    learns_from : int or None
        Of how many unlabelled rows a transductive family sees a sample; None: all.
    most_classes, most_features, most_labeled : int or None
        With how many classes, features and labelled rows it can deal.
    package : str
        Where a foundation model comes from. Whatever fails in there, the others vote.
    held_out : mapping
        Parameters that differ in held-out fits, which only judge the family: they may be cheaper.
    graph : bool
        Whether its model is a graph over rows; refitted, it ``respread``s other labels. It
        sees held-out rows too, without their labels. With more than ``learns_from`` unlabelled
        rows a sample carries the graph: the anchors; the others vote by their neighbours in it.
    teacher : str
        The family whose model, trained on the same rows, makes the metric of a graph. Refitted,
        such a graph learns its metric from pseudo-labels, too; only given labels spread on it.
    held_out_rows : int or None
        Of how many unlabelled rows a held-out fit sees a sample; None: as many as any other.
    """

    name: str
    title: str
    make: Callable[[int, int | None], Any]
    scaling: Literal["none", "standard", "range"] = "none"
    calibrated: bool = False
    refitted: bool = True
    sparse: bool = True
    learns_from: int | None = None
    most_classes: int | None = None
    most_features: int | None = None
    most_labeled: int | None = None
    package: str = ""
    held_out: Mapping[str, Any] = field(default_factory=dict)
    held_out_rows: int | None = None
    graph: bool = False
    teacher: str = ""


def _forest(seed: int, n_jobs: int | None) -> Any:
    return RandomForestClassifier(FAMILY_TREES, random_state=seed, n_jobs=n_jobs)


def _extra_trees(seed: int, n_jobs: int | None) -> Any:
    return ExtraTreesClassifier(FAMILY_TREES, random_state=seed, n_jobs=n_jobs)


def _spreading(seed: int, n_jobs: int | None) -> Any:
    return local_spreading(n_components=50, random_state=seed, n_jobs=n_jobs)


def _white_spreading(seed: int, n_jobs: int | None) -> Any:
    return local_spreading(n_components=20, whiten=True, random_state=seed, n_jobs=n_jobs)


def _leaf_spreading(seed: int, n_jobs: int | None) -> Any:
    metric = LeafProximity(n_trees=FAMILY_TREES, random_state=seed, n_jobs=n_jobs)
    return MetricSpreadingClassifier(metric, local_spreading(n_jobs=n_jobs))


def _discriminant_spreading(seed: int, n_jobs: int | None) -> Any:
    return MetricSpreadingClassifier(Discriminants(), local_spreading(n_jobs=n_jobs))


# Half of the paper's forest: beside other families the votes of more trees change nothing.
FAMILY_TREES = 100
# Each labelled row is judged by one of five held-out forests of this size.
_HELD_OUT_TREES = 40
# The S3VM and the semi-supervised LDA estimate few numbers from the unlabelled rows: a sample will
# do. Scores settle long before the digits that a competitor's table would want.
_SAMPLE = 3_000
_HELD_OUT_SAMPLE = 1_000
ANCHORS = 100_000
"""Unlabelled rows that carry a graph; all others vote by their neighbours among them."""
_GRAPH: dict[str, Any] = {"graph": True, "learns_from": ANCHORS, "held_out_rows": 2_000}

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family("forest", "random forest", _forest),
        Family(
            "extra_trees", "extra trees", _extra_trees, held_out={"n_estimators": _HELD_OUT_TREES}
        ),
        Family("svm", "SVM with RBF kernel", lambda s, j: SVC(C=10.0), "standard", True),
        Family(
            "semi_lda",
            "semi-supervised LDA",
            lambda s, j: SemiLDAClassifier(max_iter=100),
            "standard",
            sparse=False,
            learns_from=_SAMPLE,
            held_out={"max_iter": 30},
            held_out_rows=_HELD_OUT_SAMPLE,
        ),
        Family(
            "s3vm",
            "semi-supervised linear SVM",
            # The power that fits the held-out votes is its temperature, too.
            lambda s, j: QNS3VMClassifier(tol=1e-3, calibrate=False, random_state=s),
            "range",
            calibrated=True,
            refitted=False,
            learns_from=_SAMPLE,
            held_out_rows=_HELD_OUT_SAMPLE,
        ),
        Family("spreading", "label spreading", _spreading, "range", **_GRAPH),
        Family(
            "spreading_white", "label spreading, whitened", _white_spreading, "standard", **_GRAPH
        ),
        Family(
            "spreading_forest",
            "label spreading, forest proximity",
            _leaf_spreading,
            teacher="extra_trees",
            **_GRAPH,
        ),
        Family(
            "spreading_lda",
            "label spreading, discriminants",
            _discriminant_spreading,
            "standard",
            sparse=False,
            teacher="lda",
            **_GRAPH,
        ),
    )
}
"""What ``voters="default"`` stands for; docs/mixed_vote.md says how they were chosen."""


OPTIONAL: dict[str, Family] = {
    "spreading_standard": Family(
        "spreading_standard", "label spreading, standardised", _spreading, "standard", **_GRAPH
    ),
    "lda": Family(
        "lda", "linear discriminant analysis", lambda s, j: WideLDA(), "standard", sparse=False
    ),
    "screened_lda": Family(
        "screened_lda",
        "LDA on screened columns",
        lambda s, j: ScreenedClassifier(WideLDA()),
        "standard",
    ),
    "network": Family(
        "network",
        "prior network",
        lambda s, j: PriorNetworkClassifier(random_state=s),
        "standard",
        refitted=False,
        sparse=False,
        most_classes=32,
    ),
    "tabicl": Family(
        "tabicl",
        "TabICL",
        make_tabicl,
        refitted=False,
        sparse=False,
        held_out={"n_estimators": 2},
        **LIMITS["TabICLClassifier"],
    ),
}
"""Families that are not among the default ones: ``voters=["default", "network"]``."""

WIDE = ("screened_lda",)
"""Those that the default ones are joined by where columns are many more than labels."""
_MANY_COLUMNS = 10

OURS = frozenset(FAMILIES | OPTIONAL)
"""Names of all families that the package brings along."""


def families_of(voters: Any, *, n_columns: int = 0, n_labeled: int = 1) -> list[Family]:
    """Families by name, as estimators, or as pairs of both; "default" is all of ``FAMILIES``.

    With ten times more columns than labelled rows the default families are joined by ``WIDE``.
    """
    default = [*FAMILIES, *(WIDE if n_columns > _MANY_COLUMNS * n_labeled else ())]
    voters = [voters] if isinstance(voters, str) else voters
    each = [default if isinstance(v, str) and v == "default" else [v] for v in voters]
    found = [_family_of(voter) for voter in chain.from_iterable(each)]
    names = [family.name for family in found]
    if not found or len(set(names)) < len(names):
        raise ValueError(
            f"voters must be one or more families of different names. Got {names}. Give a pair "
            f"(name, estimator) to name an estimator."
        )
    return found


def _family_of(voter: Any) -> Family:
    if isinstance(voter, str):
        known = FAMILIES | OPTIONAL
        if voter not in known:
            raise ValueError(
                f"There is no family {voter!r}. Choose from default, {', '.join(known)}, or give "
                f"an estimator."
            )
        return known[voter]
    pair = voter if isinstance(voter, tuple) else (type(voter).__name__.lower(), voter)
    if len(pair) != 2 or not isinstance(pair[0], str):
        raise TypeError(f"A pair of voters must be (name, classifier). Got {voter!r}.")
    name, estimator = pair
    if name in OURS and not (FAMILIES | OPTIONAL)[name].package:
        raise ValueError(
            f"{name!r} is the name of one of our own families. Choose another for {estimator!r}."
        )
    votes = hasattr(estimator, "predict_proba") or hasattr(estimator, "decision_function")
    if isinstance(estimator, type) or not (hasattr(estimator, "fit") and votes):
        raise TypeError(f"A voter must be a name or an unfitted classifier. Got {estimator!r}.")
    return Family(
        name,
        type(estimator).__name__,
        lambda seed, n_jobs: clone(estimator),
        calibrated=not hasattr(estimator, "predict_proba"),
        **limits_of(estimator),
    )


class RangeScaler(TransformerMixin, BaseEstimator):
    """Features to [-1, 1]; those that only take 0 and 1 stay as they are.

    Sparse rows are divided by the largest absolute value instead, so that they stay sparse.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the range of every feature; NaN is skipped."""
        if issparse(X):
            scale = MaxAbsScaler().fit(X).scale_
            self.low_, self.span_ = np.zeros_like(scale), scale
            return self
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a feature without any value
            low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
        binary = ((X == 0) | (X == 1) | np.isnan(X)).all(axis=0)
        span = np.where(high > low, (high - low) / 2, 1)
        self.low_ = np.where(binary, 0, np.where(high > low, (high + low) / 2, low))
        self.span_ = np.where(binary, 1, span)
        return self

    def transform(self, X: Any) -> Any:
        """Scale rows."""
        if issparse(X):
            matrix: Any = X
            return matrix @ diags_array(1.0 / self.span_)
        return ((X - self.low_) / self.span_).astype(X.dtype, copy=False)


# --- a fitted voter --------------------------------------------------------------------------


class Voter(ClassifierMixin, BaseEstimator):
    """A fitted classifier of one family with all that is needed to vote on new rows.

    Parameters
    ----------
    name : str
    scaler : fitted transformer or None
    model : fitted classifier
        Its classes are codes.
    n_classes : int
        Of the vote; the model may know fewer.
    power : float
        Of the calibration.
    shift : ndarray of shape (n_classes,), optional
        What calibrated votes are multiplied with: class shares that are wanted, divided by those
        of the training rows.
    """

    def __init__(
        self,
        name: str,
        scaler: Any,
        model: Any,
        n_classes: int,
        power: float = 1.0,
        shift: Floats | None = None,
    ) -> None:
        self.name = name
        self.scaler = scaler
        self.model = model
        self.n_classes = n_classes
        self.power = power
        self.shift = shift

    @property
    def classes_(self) -> Ints:
        """Codes of the classes."""
        return np.arange(self.n_classes)

    @property
    def transductive(self) -> bool:
        """Whether the model keeps its votes for the rows that it was trained on."""
        kinds = LabelSpreadingClassifier, MetricSpreadingClassifier, PriorNetworkClassifier
        return isinstance(self.model, kinds)

    def predict_proba(self, X: Any) -> Floats:
        """Votes for rows that are not scaled yet."""
        return self.votes(X if self.scaler is None else self.scaler.transform(X))

    def predict(self, X: Any) -> Ints:
        """Codes of the winning classes."""
        return self.predict_proba(X).argmax(axis=1)

    def votes(self, scaled: Any) -> Floats:
        """Votes for scaled rows."""
        if len(self.model.classes_) == 1:  # some classifiers learn one class, but cannot vote then
            return self.finish(np.ones((n_rows(scaled), 1)))
        if hasattr(self.model, "predict_proba"):
            return self.finish(self.model.predict_proba(scaled))
        scores = self.model.decision_function(scaled)
        return self.finish(softmax(np.c_[-scores, scores] if scores.ndim == 1 else scores, axis=1))

    def finish(self, proba: Floats) -> Floats:
        """Votes over all classes, calibrated, from the model's own."""
        full = np.zeros((len(proba), self.n_classes))
        full[:, self.model.classes_] = proba
        full = full if self.power == 1.0 else calibrated(full, self.power)
        return full if self.shift is None else shifted(full, self.shift)
