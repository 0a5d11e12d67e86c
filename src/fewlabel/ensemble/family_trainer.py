"""Trains families of voters on one data set, and makes their votes, held-out ones too."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fewlabel._core.arrays import Floats, Ints, RowView
from fewlabel._core.scikit import n_rows, take_rows
from fewlabel._core.targets import UNLABELED
from fewlabel.assess.calibration import calibrated, calibration_power
from fewlabel.assess.held_out import (
    CANNOT_LEARN,
    N_FOLDS,
    cross_fit,
    folds_of,
    rows_with_weight,
    seen_in_training,
    weight_params,
)
from fewlabel.baselines._base import SemiSupervisedClassifier
from fewlabel.bounds.votes import vote_matrix
from fewlabel.ensemble.families import FAMILIES, Family, RangeScaler, Voter
from fewlabel.network.classifier import PriorNetworkClassifier

TRIED_ROWS = 2_000
"""Unlabelled rows of the trial that tells how long a family would take."""
ALWAYS_FAST = 20_000
"""With no more rows than this, every family is fast enough and none is timed."""


class FamilyTrainer:
    """One data set as the families want it: scaled once, with its folds and samples.

    Parameters
    ----------
    X : ndarray or csr matrix
    codes : ndarray of int of shape (n_samples,)
        Class codes; ``UNLABELED`` for unlabelled rows.
    n_classes : int
    seed : int
    n_jobs : int or None
    labeled_weight : ndarray of shape (n_labeled,), optional
        Weights of the labelled rows. One of weight 0 does not count in held-out errors; the others
        count alike, and held-out fits use their weights.
    """

    def __init__(
        self,
        X: Any,
        codes: Ints,
        n_classes: int,
        seed: int,
        n_jobs: int | None = None,
        labeled_weight: Floats | None = None,
    ) -> None:
        self.X, self.codes, self.n_classes = X, codes, n_classes
        self.seed, self.n_jobs = seed, n_jobs
        self.labeled = np.flatnonzero(codes != UNLABELED)
        # Positions in `labeled` of the rows that count in held-out errors, and their weights.
        self.scored, self.scored_weight = rows_with_weight(len(self.labeled), labeled_weight)
        self.folds = folds_of(len(self.scored), N_FOLDS, seed)
        shuffled = np.random.default_rng(seed).permutation(np.flatnonzero(codes == UNLABELED))
        self.unlabeled_at_random = shuffled
        self._views: dict[str, tuple[Any, Any]] = {"none": (None, X)}

    def view(self, scaling: str) -> tuple[Any, Any]:
        """The scaler, and all rows as it makes them."""
        if scaling not in self._views:
            values: Any = self.X.data if issparse(self.X) else self.X  # type: ignore[attr-defined]
            standard = StandardScaler(with_mean=not issparse(self.X))
            scaler: Any = standard if scaling == "standard" else RangeScaler()
            scaled = scaler.fit_transform(self.X)
            fill = SimpleImputer(strategy="median", keep_empty_features=True)
            if np.isnan(values).any():
                scaled = fill.fit_transform(scaled)
                scaler = make_pipeline(scaler, fill)
            elif not issparse(self.X):
                # New rows may lack values though none of these does; a sample will do for medians.
                some = np.concatenate([self.labeled, self.unlabeled_at_random[:TRIED_ROWS]])
                scaler = make_pipeline(scaler, fill.fit(take_rows(scaled, some)))
            self._views[scaling] = scaler, scaled
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
                # The covariance of a class with one row: LDA shrinks it.
                warnings.filterwarnings("ignore", message="Only one sample available")
            return self._train(family, rows, codes, weight, like)

    def _train(
        self, family: Family, rows: Ints, codes: Ints, weight: Floats | None, like: Voter | None
    ) -> Voter:
        scaler, X = self.view(family.scaling)
        model = family.make(self.seed, self.n_jobs)
        params = weight_params(model, weight)
        if weight is not None and not params:
            # An estimator that takes no weights must not see rows of weight 0.
            rows, codes = rows[weight > 0], codes[weight > 0]
        if not isinstance(model, SemiSupervisedClassifier):
            model.fit(take_rows(X, rows), codes, **params)
        else:
            target = np.full(n_rows(X), UNLABELED)
            target[rows] = codes
            graph = getattr(like.model, "graph_", None) if like is not None else None
            if like is not None and graph is not None and graph.shape[0] == len(target):
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
        return vote_matrix(_OnScaled(voter), RowView(self.view(family.scaling)[1], rows))

    def held_out(self, family: Family, voter: Voter) -> Floats:
        """Votes for the labelled rows that did not see their labels; they calibrate the voter."""
        votes, codes = self._held_out(family, voter), self.codes[self.labeled]
        voted = votes.any(axis=1)
        if family.calibrated and voted.any():
            voter.power = calibration_power(votes[voted], codes[voted])
            votes[voted] = calibrated(votes[voted], voter.power)
        return votes

    def _held_out(self, family: Family, voter: Voter) -> Floats:
        # The same folds for every family: errors on the same rows, from training sets of the same
        # rows, differ less by chance. Out-of-bag votes would be cheaper for a forest, but they come
        # from smaller training sets than those it is compared with.
        rows, weight = self.labeled[self.scored], self.scored_weight
        codes = self.codes[rows]

        def vote(train: Ints, test: Ints) -> Floats:
            of_train = None if weight is None else weight[train]
            try:
                part = self.train(family, rows[train], codes[train], of_train, like=voter)
                return self.vote(part, family, rows[test])
            except CANNOT_LEARN:  # a fold that a family cannot learn from counts as wrong
                return np.zeros((len(test), self.n_classes))

        votes = np.zeros((len(self.labeled), self.n_classes))
        if isinstance(voter.model, PriorNetworkClassifier) and len(rows) == len(self.labeled):
            # Hiding labels costs a forward pass, no training.
            votes[:, voter.model.classes_] = voter.model.held_out_votes(self.folds)
            return votes
        votes[self.scored] = cross_fit(vote, codes, self.n_classes, self.folds)
        return votes

    def accuracy(self, held_out: Floats) -> float:
        """Share of the labelled rows that held-out votes get right; no vote is wrong.

        Rows whose class the training part of their fold lacks do not count; NaN if there are no
        others.
        """
        held_out, codes = held_out[self.scored], self.codes[self.labeled[self.scored]]
        right = (held_out.argmax(axis=1) == codes) & held_out.any(axis=1)
        judged = seen_in_training(codes, self.folds)
        return float(right[judged].mean()) if judged.any() else float("nan")

    # --- what does not fit ---

    def reason_to_leave_out(self, family: Family, seconds: float | None, max_train: int) -> str:
        """Why a family cannot serve here, or an empty text."""
        if issparse(self.X) and not family.sparse:
            return "it needs dense rows"
        if family.most_classes is not None and self.n_classes > family.most_classes:
            return f"it knows at most {family.most_classes} classes, not {self.n_classes}"
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
        small = FamilyTrainer(
            take_rows(self.X, rows), self.codes[rows], self.n_classes, self.seed, self.n_jobs
        )
        small.view(family.scaling)
        start = perf_counter()
        try:
            voter = small.train(family, small.labeled, small.codes[small.labeled])
            fitted = perf_counter()
            small.vote(voter, family, np.flatnonzero(small.codes == UNLABELED))
        except CANNOT_LEARN:
            return 0.0  # the real fit will say what is wrong
        voted = perf_counter()
        growth = n_rows(self.X) / len(rows)
        sees_all = family.learns_from is None and voter.transductive
        in_fit = growth**family.cost_exponent if sees_all else 1.0
        # A machine over its support vectors votes more slowly the more rows it was trained on.
        more_support = 1.0
        if hasattr(voter.model, "support_vectors_"):
            more_support = max(1.0, max_train / len(self.labeled))
        return (fitted - start) * in_fit + (voted - fitted) * growth * more_support


class _OnScaled:
    """A voter that is shown rows which are scaled already."""

    def __init__(self, voter: Voter) -> None:
        self.predict_proba: Callable[[Any], NDArray[Any]] = voter.votes
