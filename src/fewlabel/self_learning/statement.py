"""What a self-learning estimator says of its labels: their error, which to accept, an audit."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from fewlabel._core.arrays import Bools, Floats, Ints
from fewlabel._core.checks import as_mask
from fewlabel._core.scikit import n_rows, take_rows
from fewlabel.assess.assessment import (
    FitAssessment,
    HeldOut,
    PaperBounds,
    SelfLearned,
    Transduction,
    assess,
    paper_bounds,
)
from fewlabel.assess.audit import Audit, answered
from fewlabel.assess.audit_plans import Plan
from fewlabel.assess.audited_labels import AuditedLabels, LabelsInMemory
from fewlabel.assess.calibration import for_bounds
from fewlabel.assess.error_estimate import ErrorEstimate, Labels
from fewlabel.assess.held_out import rows_with_weight
from fewlabel.assess.label_sums import LabelRule, LabelSums, PseudoLabels
from fewlabel.assess.prevalence import with_shares
from fewlabel.assess.sampling_checks import check_sampling
from fewlabel.assess.suggest import NextRows
from fewlabel.bounds.votes import vote_matrix
from fewlabel.chunks.source import join_rows
from fewlabel.self_learning.bounds_of_fit import true_codes


class RowSample(NamedTuple):
    """Some unlabelled rows, and their positions among the unlabelled ones."""

    X: Any
    positions: Ints


def are_numbers(X: Any) -> bool:
    """Whether rows are a matrix of numbers, dense or sparse."""
    kind = getattr(getattr(X, "dtype", None), "kind", "O")
    return kind in "iuf" and getattr(X, "ndim", 0) == 2


class LabelStatements:
    """The one statement of error of a fit, a part of every self-learning estimator.

    All of it is made when it is first asked for: a fit that nobody asks does not pay for it.
    """

    labels: Labels
    missing_label: Any
    classes_: NDArray[Any]
    labeled_iter_: Ints
    labeled_weight_: Floats | None
    pseudo_labels_: NDArray[Any]
    n_iter_: int
    transduction_: NDArray[Any]
    transduction_proba_: Floats
    estimator_: Any
    initial_estimator_: Any
    _labeled_rows: tuple[Any, Ints]
    _unlabeled_sample: RowSample | None
    _transduction: Transduction
    _assessment: FitAssessment | None = None
    _paper_bounds: PaperBounds | None = None
    _sample: Bools | None = None

    def _checked_rows(self, X: Any, *, reset: bool) -> Any:
        raise NotImplementedError

    def _held_out(self) -> HeldOut:
        """Votes of the initial model for the labelled rows, without their labels."""
        raise NotImplementedError

    def _self_learned(self) -> SelfLearned | None:
        """What self-learning as a whole gets wrong without the label of a row, if known."""
        return None

    @property
    def assessment_(self) -> FitAssessment:
        """The one statement of error, made when it is first asked for."""
        check_is_fitted(self)
        if self._assessment is None:
            found = assess(
                self.paper_bounds_,
                self._transduction,
                self_learned=self._self_learned(),
                labels=self.labels,
                sample=self._sampled(),
            )
            self._assessment = self._with_sampling_check(found)
        return self._assessment

    def _with_sampling_check(self, found: FitAssessment) -> FitAssessment:
        """Mark the estimate as unsafe if labelled and unlabelled rows can be told apart."""
        (labeled, codes), sample = self._labeled_rows, self._unlabeled_sample
        if sample is None or not are_numbers(labeled) or not are_numbers(sample.X):
            return found
        rows, _ = rows_with_weight(len(codes), self.labeled_weight_)
        if self._sample is not None:
            rows = rows[self._sample[rows]]
        labeled, codes = take_rows(labeled, rows), codes[rows]
        weight = None
        if self.labels == "per class" or getattr(self, "priors", None) is not None:
            if not found.error.prevalence:  # nothing was held out: no estimate that could be unsafe
                return found
            votes = self._transduction.initial[sample.positions]
            given = np.bincount(codes, minlength=len(self.classes_)) / len(codes)
            shares = np.array([share.value for share in found.error.prevalence])
            # Calibrated by the held-out rows: confidence is scaled to the error of all labels.
            proba = with_shares(for_bounds(votes, self.paper_bounds_.power), shares)
            weight = proba @ (given / np.maximum(shares, 1e-6))
        check = check_sampling(
            join_rows([labeled, sample.X]),
            np.arange(len(codes) + len(sample.positions)) < len(codes),
            codes,
            feature_names=self._feature_names(),
            unlabeled_weight=weight,
        )
        if check.safe:
            return replace(found, error=found.error.flagged(*check.notes, safe=True))
        warnings.warn(
            f"The estimate of the error is unsafe: {'; '.join(check.notes)}", stacklevel=4
        )
        return replace(found, error=found.error.flagged(*check.notes))

    def estimate_from(self, rows: ArrayLike) -> Self:
        """Let only these labelled rows stand for the table in the estimate of the error.

        The classifier has learned from every label. Rows that somebody chose to be labelled, such
        as those of :meth:`suggest`, are harder than others: their errors say little about the
        table. Name the rows that were drawn at random.

        Parameters
        ----------
        rows : array-like of int or of bool
            Positions in the rows of ``fit``, or a mask of them. Only labelled ones count.

        Returns
        -------
        self
        """
        mask = as_mask(rows, len(self._in_memory().labeled_iter_))
        self._sample, self._assessment = mask[self.labeled_iter_ == 0], None
        return self

    def _sampled(self) -> Bools | None:
        """Which of the held-out rows stand for the table; None for all of them."""
        if self._sample is None:
            return None
        rows, _ = rows_with_weight(len(self._sample), self.labeled_weight_)
        return self._sample[rows]

    def _feature_names(self) -> Any:
        encoder = getattr(self, "table_encoder_", None)
        if encoder is not None:
            return encoder.get_feature_names_out().tolist()
        return getattr(self, "feature_names_in_", None)

    @property
    def paper_bounds_(self) -> PaperBounds:
        """What the paper's bounds rest on, made when it is first asked for."""
        check_is_fitted(self)
        if self._paper_bounds is None:
            if not hasattr(self, "_transduction"):
                self._in_memory()  # says why it cannot be known
            self._paper_bounds = paper_bounds(self._held_out(), self._transduction)
        return self._paper_bounds

    @property
    def error_(self) -> ErrorEstimate:
        """About how many of the labels of the unlabelled rows are wrong, with 95 % limits."""
        return self.assessment_.error

    @property
    def confidence_(self) -> Floats:
        """For each row of ``fit`` the calibrated probability that its label is right; 1: given."""
        confidence = np.ones(len(self._in_memory().labeled_iter_))
        confidence[self.labeled_iter_ != 0] = self.assessment_.confidence
        return confidence

    @property
    def label_proba_(self) -> Floats:
        """What stands for P(Y|x) of the unlabelled rows in the bounds, calibrated."""
        return self.paper_bounds_.label_proba

    @property
    def risk_bound_(self) -> float:
        """TB: bound of the expected error if ``label_proba_`` were true; NaN without rows."""
        bound = self.paper_bounds_.bound
        return float("nan") if bound is None else bound.risk

    @property
    def confusion_bound_(self) -> Floats:
        """The bounds of the conditional risks behind ``risk_bound_``."""
        K, bound = len(self.classes_), self.paper_bounds_.bound
        return np.full((K, K), np.nan) if bound is None else bound.confusion

    def accept(self, max_error: float = 0.05, X: Any = None) -> Bools:
        """Which labels a person may take as they are.

        Parameters
        ----------
        max_error : float, default=0.05
            The share of wrong labels that is allowed.
        X : array-like, optional
            New rows; those of ``fit`` by default.

        Returns
        -------
        mask : ndarray of bool
            The most rows whose **estimated** error stays below ``max_error``; given labels are
            accepted. :meth:`audit` can prove it. After a fit with ``unlabeled`` the mask is about
            the unlabelled rows, in their order, and is read from the folder of the results.
        """
        if X is None:
            return self._accepted(max_error)
        votes, labels = self._initial_votes_and_labels(X)
        return self.assessment_.promise.accepted(votes, labels, max_error)

    def _accepted(self, max_error: float) -> Bools:
        accepted = np.ones(len(self._in_memory().labeled_iter_), dtype=bool)
        rows = self._transduction
        accepted[self.labeled_iter_ != 0] = self.assessment_.promise.accepted(
            rows.initial, rows.labels, max_error
        )
        return accepted

    def confidence(self, X: Any) -> Floats:
        """The calibrated probability that :meth:`predict` is right, for each of these rows."""
        return self.assessment_.promise.confidence(*self._initial_votes_and_labels(X))

    def _initial_votes_and_labels(self, X: Any) -> tuple[Floats, Ints]:
        check_is_fitted(self)
        X = self._checked_rows(X, reset=False)
        labels = vote_matrix(self.estimator_, X).argmax(axis=1)
        return vote_matrix(self.initial_estimator_, X), labels

    def audit_sample(
        self,
        size: int,
        *,
        max_error: float | None = None,
        random_state: int | None = None,
    ) -> Ints:
        """Rows of ``fit`` to check by hand, drawn at random.

        Parameters
        ----------
        size : int
        max_error : float, optional
            Draw from the labels that :meth:`accept` accepts; from all that were not given by
            default.
        random_state : int, optional
            Rows in chunks were drawn in the last pass, with the seed of the fit.

        Returns
        -------
        rows : ndarray of int of shape (size,)
            After a fit with ``unlabeled`` positions in its source.

        See Also
        --------
        audit : What the checks guarantee.
        fewlabel.checks_needed : How many rows a goal needs.
        """
        return self._audited(max_error).draw(size, random_state)

    def audit(
        self,
        rows: ArrayLike,
        labels: ArrayLike,
        *,
        max_error: float | None = None,
        confidence: float = 0.95,
        plan: Plan = "fixed",
    ) -> Audit:
        """A guarantee for the labels of the unlabelled rows, from random checks.

        Parameters
        ----------
        rows : array-like of int
            Those of :meth:`audit_sample`, in that order.
        labels : array-like
            Their right labels. What marks an unlabelled row is refused.
        max_error : float, optional
            As in :meth:`audit_sample`.
        confidence : float, default=0.95
        plan : {"fixed", "sequential"}, default="fixed"
            Whether the number of checks was fixed in advance, or somebody stops when it suffices.

        Returns
        -------
        statement : Audit
            "at most 4.1 % of the 1,581 accepted labels are wrong (guaranteed …)".
        """
        how = {"plan": plan, "what": "labels" if max_error is None else "accepted labels"}
        right = answered(labels, self.missing_label)
        return self._audited(max_error).audit(rows, right, confidence=confidence, **how)

    def _audited(self, max_error: float | None) -> AuditedLabels:
        rows: Bools = self._in_memory().labeled_iter_ != 0
        population = rows if max_error is None else rows & self._accepted(max_error)
        return LabelsInMemory(self.transduction_, population)

    def label_sums(
        self, max_error: float = 0.05, *, y_true: ArrayLike | None = None
    ) -> tuple[LabelRule, LabelSums]:
        """Counts of the labels of the unlabelled rows, which a report shows.

        Parameters
        ----------
        max_error : float, default=0.05
            As in :meth:`accept`.
        y_true : array-like of shape (n_samples,), optional
            True labels as far as they are known; for rows in chunks
            ``UnlabeledRows(..., truth=column)`` names them.
        """
        return self._sums(max_error, y_true)

    def _sums(self, max_error: float, y_true: ArrayLike | None) -> tuple[LabelRule, LabelSums]:
        unlabeled = np.flatnonzero(self._in_memory().labeled_iter_ != 0)
        rule, rows = LabelRule.of(self.assessment_.promise, max_error), self._transduction
        rounds = self.labeled_iter_[unlabeled]
        codes = np.full(len(unlabeled), -1)
        codes[rounds > 0] = np.searchsorted(self.classes_, self.pseudo_labels_)
        known = None if y_true is None else true_codes(self, y_true, unlabeled)
        verdicts = rule.judge(rows.initial, rows.labels)
        counted = verdicts, rule, PseudoLabels(rounds, codes), self.n_iter_, known
        return rule, LabelSums.of(rows.labels, rows.initial, *counted)

    def next_rows(self, n: int = 20) -> NextRows:
        """Unlabelled rows whose label would teach most, with their votes; see :meth:`suggest`."""
        known, sample = self._in_memory().labeled_iter_ == 0, self._unlabeled_sample
        unlabeled = np.flatnonzero(~known)
        if sample is None or not are_numbers(sample.X):  # nothing says which rows are alike
            return NextRows.of(self.transduction_proba_[unlabeled], unlabeled, n)
        places = np.r_[np.flatnonzero(known), unlabeled[sample.positions]]
        rows = places[self._teaching(join_rows([self._labeled_rows[0], sample.X]), places, n)]
        return NextRows.at(rows, self.transduction_proba_[rows])

    def suggest(self, n: int = 20, X: Any = None) -> Ints:
        """Rows of ``fit`` whose label would teach most, the best first, without near-duplicates.

        Parameters
        ----------
        n : int, default=20
            At most this many rows.
        X : array-like, optional
            The rows of ``fit``, all of which may be chosen then. Without them the choice is among a
            random sample of 1,000; of rows in chunks or that are no numbers, the smallest margins.

        Returns
        -------
        rows : ndarray of int

        See Also
        --------
        estimate_from : These rows are harder than others: leave them out of the estimate.
        audit_sample : Rows to check the result by, which must be drawn at random.
        fewlabel.labeling.next_rows : The same with random rows mixed in, for a loop of one's own.
        """
        if not isinstance(n, Integral) or n < 1:
            raise ValueError(f"n must be a whole number from 1 on. Got {n!r}.")
        if X is None:
            return self.next_rows(n).rows
        every = np.arange(len(self._in_memory().labeled_iter_))
        if n_rows(X) != len(every):
            raise ValueError(f"X must be the {len(every)} rows of fit. Got {n_rows(X)} rows.")
        return self._teaching(self._checked_rows(X, reset=False), every, n)

    def _teaching(self, X: Any, places: Ints, n: int) -> Ints:
        from fewlabel.labeling.choose import teaching_rows

        known = self.labeled_iter_[places] == 0
        return teaching_rows(X, self.transduction_proba_[places], n, known=known)

    def _in_memory(self) -> Self:
        check_is_fitted(self)
        if not hasattr(self, "_transduction"):
            raise ValueError(
                "The classifier was read from a file, which does not keep the rows of the fit. "
                "Pass rows, or fit it again."
            )
        if not hasattr(self, "transduction_"):
            raise ValueError(
                "The classifier was fitted with `unlabeled`, whose rows are not kept. Use "
                "fewlabel.predict_rows and fewlabel.bounds_of_rows for such rows."
            )
        return self
