"""Families of voters for a mixed vote: what each is, how it is fed, and when it is left out.

A family brings its own preprocessing. Scales are taken from all rows, labelled or not: no label
is needed for them. Inductive families learn from labelled rows only, transductive ones see the
unlabelled rows too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import diags_array, issparse
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.svm import SVC

from fewlabel._training import N_TREES, default_forest
from fewlabel._validation import UNLABELED, fit_weight_name, n_rows, take_rows
from fewlabel.assessment import calibrated, calibration_power
from fewlabel.baselines import LabelSpreadingClassifier, QNS3VMClassifier, SemiLDAClassifier
from fewlabel.baselines._base import SemiSupervisedClassifier
from fewlabel.statistics import Floats, Ints
from fewlabel.votes import vote_matrix

N_FOLDS = 5
TRIED_ROWS = 2_000
"""Unlabelled rows of the trial that tells how long a family would take."""
ALWAYS_FAST = 20_000
"""With no more rows than this, every family is fast enough and none is timed."""


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
    power : float
        Exponent with which its time grows with the number of rows.
    """

    name: str
    title: str
    make: Callable[[int, int | None], Any]
    scaling: Literal["none", "standard", "range"] = "none"
    calibrated: bool = False
    refitted: bool = True
    sparse: bool = True
    learns_from: int | None = None
    power: float = 1.0


def _extra_trees(seed: int, n_jobs: int | None) -> Any:
    return ExtraTreesClassifier(N_TREES, random_state=seed, n_jobs=n_jobs)


def _spreading(seed: int, n_jobs: int | None) -> Any:
    return LabelSpreadingClassifier(random_state=seed, n_jobs=n_jobs)


# The S3VM and the semi-supervised LDA estimate few numbers from the unlabelled rows: a sample will
# do. Scores settle long before the digits that a competitor's table would want.
_SAMPLE = 3_000

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family("forest", "random forest", lambda s, j: default_forest("forest", s, j)),
        Family("extra_trees", "extra trees", _extra_trees),
        Family("svm", "SVM with RBF kernel", lambda s, j: SVC(C=10.0), "standard", True),
        Family(
            "lda",
            "linear discriminant analysis",
            lambda s, j: LinearDiscriminantAnalysis("lsqr", shrinkage="auto"),
            "standard",
            sparse=False,
        ),
        Family(
            "semi_lda",
            "semi-supervised LDA",
            lambda s, j: SemiLDAClassifier(max_iter=100),
            "standard",
            sparse=False,
            learns_from=_SAMPLE,
        ),
        Family(
            "s3vm",
            "semi-supervised linear SVM",
            lambda s, j: QNS3VMClassifier(tol=1e-3, random_state=s),
            "range",
            calibrated=True,
            refitted=False,
            learns_from=_SAMPLE,
        ),
        Family("spreading", "label spreading", _spreading, "range", power=2.0),
        Family(
            "spreading_standard",
            "label spreading, standardised",
            _spreading,
            "standard",
            power=2.0,
        ),
    )
}
"""What ``voters="default"`` stands for; docs/mixed_vote.md says how they were chosen."""


def families_of(voters: Any) -> list[Family]:
    """Families by name, as estimators, or as pairs of both; "default" is all of ``FAMILIES``."""
    if isinstance(voters, str):
        voters = list(FAMILIES) if voters == "default" else [voters]
    found = [_family_of(voter) for voter in voters]
    names = [family.name for family in found]
    if not found or len(set(names)) < len(names):
        raise ValueError(
            f"voters must be one or more families of different names. Got {names}. Give a pair "
            f"(name, estimator) to name an estimator."
        )
    return found


def _family_of(voter: Any) -> Family:
    if isinstance(voter, str):
        if voter not in FAMILIES:
            raise ValueError(
                f"There is no family {voter!r}. Choose from {', '.join(FAMILIES)}, or give an "
                f"estimator."
            )
        return FAMILIES[voter]
    name, estimator = voter if isinstance(voter, tuple) else (type(voter).__name__.lower(), voter)
    if not hasattr(estimator, "fit") or isinstance(estimator, type):
        raise TypeError(f"A voter must be a name or an unfitted classifier. Got {estimator!r}.")
    return Family(
        name,
        type(estimator).__name__,
        lambda seed, n_jobs: clone(estimator),
        calibrated=not hasattr(estimator, "predict_proba"),
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
    """

    def __init__(
        self, name: str, scaler: Any, model: Any, n_classes: int, power: float = 1.0
    ) -> None:
        self.name = name
        self.scaler = scaler
        self.model = model
        self.n_classes = n_classes
        self.power = power

    @property
    def classes_(self) -> Ints:
        """Codes of the classes."""
        return np.arange(self.n_classes)

    @property
    def transductive(self) -> bool:
        """Whether the model keeps its votes for the training rows, which are all rows."""
        return isinstance(self.model, LabelSpreadingClassifier)

    def predict_proba(self, X: Any) -> Floats:
        """Votes for rows that are not scaled yet."""
        return self.votes(X if self.scaler is None else self.scaler.transform(X))

    def predict(self, X: Any) -> Ints:
        """Codes of the winning classes."""
        return self.predict_proba(X).argmax(axis=1)

    def votes(self, scaled: Any) -> Floats:
        """Votes for scaled rows."""
        if hasattr(self.model, "predict_proba"):
            return self.finish(self.model.predict_proba(scaled))
        scores = self.model.decision_function(scaled)
        return self.finish(softmax(np.c_[-scores, scores] if scores.ndim == 1 else scores, axis=1))

    def finish(self, proba: Floats) -> Floats:
        """Votes over all classes, calibrated, from the model's own."""
        full = np.zeros((len(proba), self.n_classes))
        full[:, self.model.classes_] = proba
        return full if self.power == 1.0 else calibrated(full, self.power)


# --- a data set on which voters are trained --------------------------------------------------


class Workbench:
    """One data set as the families want it: scaled once, with its folds and samples.

    Parameters
    ----------
    X : ndarray or csr matrix
    codes : ndarray of int of shape (n_samples,)
        Class codes; ``UNLABELED`` for unlabelled rows.
    n_classes : int
    seed : int
    n_jobs : int or None
    """

    def __init__(
        self, X: Any, codes: Ints, n_classes: int, seed: int, n_jobs: int | None = None
    ) -> None:
        self.X, self.codes, self.n_classes = X, codes, n_classes
        self.seed, self.n_jobs = seed, n_jobs
        self.labeled = np.flatnonzero(codes != UNLABELED)
        shuffled = np.random.default_rng(seed).permutation(np.flatnonzero(codes == UNLABELED))
        self.unlabeled_at_random = shuffled
        self._views: dict[str, tuple[Any, Any]] = {"none": (None, X)}

    def view(self, scaling: str) -> tuple[Any, Any]:
        """The scaler, and all rows as it makes them."""
        if scaling not in self._views:
            values: Any = self.X.data if issparse(self.X) else self.X  # type: ignore[attr-defined]
            standard = StandardScaler(with_mean=not issparse(self.X))
            steps: list[Any] = [standard if scaling == "standard" else RangeScaler()]
            if np.isnan(values).any():
                steps.append(SimpleImputer(strategy="median", keep_empty_features=True))
            scaler = make_pipeline(*steps) if len(steps) > 1 else steps[0]
            self._views[scaling] = scaler, scaler.fit_transform(self.X)
        return self._views[scaling]

    def train(
        self,
        family: Family,
        rows: Ints,
        codes: Ints,
        weight: Floats | None = None,
        *,
        like: Voter | None = None,
    ) -> Voter:
        """Fit a voter on rows with these codes; ``like`` may lend what needs no labels."""
        with warnings.catch_warnings():
            if family.name in FAMILIES:
                # A user cannot change where a family of ours stops, and its held-out error, hence
                # its weight, is that of the voter as it is.
                warnings.simplefilter("ignore", ConvergenceWarning)
            return self._train(family, rows, codes, weight, like)

    def _train(
        self, family: Family, rows: Ints, codes: Ints, weight: Floats | None, like: Voter | None
    ) -> Voter:
        scaler, X = self.view(family.scaling)
        model = family.make(self.seed, self.n_jobs)
        if not isinstance(model, SemiSupervisedClassifier):
            params = {}
            if weight is not None and (name := fit_weight_name(model)):
                params[name] = weight
            model.fit(take_rows(X, rows), codes, **params)
        else:
            target = np.full(n_rows(X), UNLABELED)
            target[rows] = codes
            if like is not None and hasattr(like.model, "graph_"):
                model = like.model.respread(target)
            elif family.learns_from is None:
                model.fit(X, target)
            else:
                seen = self.unlabeled_at_random[: family.learns_from]
                # Labelled rows first, whatever was sampled; each row once.
                use = np.concatenate([rows, np.setdiff1d(seen, rows)])
                model.fit(take_rows(X, use), target[use])
        return Voter(family.name, scaler, model, self.n_classes, like.power if like else 1.0)

    def vote(self, voter: Voter, family: Family, rows: Ints) -> Floats:
        """A voter's votes for rows of this data set."""
        if voter.transductive:
            return voter.finish(voter.model.label_distributions_[rows])
        return vote_matrix(_OnScaled(voter), self.view(family.scaling)[1], rows=rows)

    def held_out(self, family: Family, voter: Voter) -> Floats:
        """Votes for the labelled rows that did not see their labels; they calibrate the voter."""
        votes = self._held_out(family, voter)
        voted = votes.any(axis=1)
        if family.calibrated and voted.any():
            codes = self.codes[self.labeled]
            voter.power = calibration_power(votes[voted], codes[voted])
            votes[voted] = calibrated(votes[voted], voter.power)
        return votes

    def _held_out(self, family: Family, voter: Voter) -> Floats:
        # The same folds for every family: errors on the same rows, from training sets of the same
        # rows, differ less by chance. Out-of-bag votes would be cheaper for a forest, but they come
        # from smaller training sets than those it is compared with.
        labeled, codes = self.labeled, self.codes[self.labeled]
        votes = np.zeros((len(labeled), self.n_classes))
        if len(labeled) < 2:
            return votes
        folds = KFold(min(N_FOLDS, len(labeled)), shuffle=True, random_state=self.seed)
        for train, test in folds.split(labeled):
            try:
                part = self.train(family, labeled[train], codes[train], like=voter)
            except (ValueError, np.linalg.LinAlgError):
                continue  # a fold that a family cannot learn from counts as wrong
            votes[test] = self.vote(part, family, labeled[test])
        return votes

    def accuracy(self, held_out: Floats) -> float:
        """Share of the labelled rows that held-out votes get right; no vote is wrong."""
        right = held_out.argmax(axis=1) == self.codes[self.labeled]
        return float((right & held_out.any(axis=1)).mean())

    # --- what does not fit ---

    def reason_to_leave_out(self, family: Family, seconds: float | None, max_train: int) -> str:
        """Why a family cannot serve here, or an empty text."""
        if issparse(self.X) and not family.sparse:
            return "it needs dense rows"
        if seconds is None or n_rows(self.X) <= ALWAYS_FAST:
            return ""
        expected = self._expected_seconds(family, max_train)
        if expected > seconds:
            return f"it would take about {expected:.0f} s, more than the {seconds:.0f} s allowed"
        return ""

    def _expected_seconds(self, family: Family, max_train: int) -> float:
        """Time of a fit and its votes, by a trial on few rows."""
        few = np.sort(self.unlabeled_at_random[:TRIED_ROWS])
        rows = np.concatenate([self.labeled, few])
        small = Workbench(
            take_rows(self.X, rows), self.codes[rows], self.n_classes, self.seed, self.n_jobs
        )
        small.view(family.scaling)
        start = perf_counter()
        try:
            voter = small.train(family, small.labeled, small.codes[small.labeled])
            fitted = perf_counter()
            small.vote(voter, family, np.flatnonzero(small.codes == UNLABELED))
        except (ValueError, np.linalg.LinAlgError):
            return 0.0  # the real fit will say what is wrong
        voted = perf_counter()
        growth = n_rows(self.X) / len(rows)
        in_fit = growth**family.power if family.learns_from is None and voter.transductive else 1.0
        # A machine over its support vectors votes more slowly the more rows it was trained on.
        more_support = 1.0
        if hasattr(voter.model, "support_vectors_"):
            more_support = max(1.0, max_train / len(self.labeled))
        return (fitted - start) * in_fit + (voted - fitted) * growth * more_support


class _OnScaled:
    """A voter that is shown rows which are scaled already."""

    def __init__(self, voter: Voter) -> None:
        self.predict_proba: Callable[[Any], NDArray[Any]] = voter.votes
