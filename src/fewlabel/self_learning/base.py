"""What the self-learning estimators share: one fit, one label for each row, one prediction."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from fewlabel._core.arrays import Bools, Floats, Ints, RowView
from fewlabel._core.checks import check_weights
from fewlabel._core.scikit import Interval, StrOptions, n_rows, take_rows
from fewlabel._core.targets import UNLABELED, encode_target, labeled_part
from fewlabel.assess.assessment import FitAssessment, HeldOut, Transduction, assess
from fewlabel.assess.audit import Audit, audit
from fewlabel.assess.audit_draws import audit_sample
from fewlabel.assess.audit_plans import Plan
from fewlabel.assess.error_estimate import ErrorEstimate, Labels
from fewlabel.assess.held_out import unequal
from fewlabel.assess.label_proba import CHOICES, given_label_proba
from fewlabel.assess.suggest import next_to_label
from fewlabel.assess.transduction_bounds import transduction_bounds
from fewlabel.bounds.table import Bound
from fewlabel.bounds.votes import vote_matrix
from fewlabel.chunks.executor import MemoryExecutor
from fewlabel.chunks.loop import Outcome, Schedule, self_learn
from fewlabel.chunks.steps import Task
from fewlabel.selection.learner import Learner
from fewlabel.selection.policies import Policy, make_policy
from fewlabel.selection.rounds import round_line

if TYPE_CHECKING:
    from fewlabel.report import Report

OF_ROWS = (
    "initial_votes_",
    "labeled_iter_",
    "pseudo_labels_",
    "transduction_",
    "transduction_proba_",
)
"""Attributes with an entry for each row, which a fit on rows in chunks does not leave behind."""


class SelfLearner(ClassifierMixin, BaseEstimator):
    """Base class of the self-learning estimators.

    A subclass says how rows are checked (``_checked_rows``) and who learns: its ``fit`` makes a
    :class:`fewlabel.selection.learner.Learner` and hands it to ``_learn``.
    """

    policy: str | Policy
    label_proba: str | ArrayLike
    pseudo_weight: str
    labels: Labels
    max_iter: int | None
    min_gain: float
    max_train: int | None
    missing_label: Any
    verbose: int
    callback: Callable[[dict[str, Any]], object] | None
    random_state: int | np.random.RandomState | None
    _assessment: FitAssessment | None = None

    _parameter_constraints: dict[str, list[Any]] = {
        "policy": [str, object],
        "label_proba": [StrOptions(set(CHOICES)), "array-like"],
        "pseudo_weight": [StrOptions({"balanced", "uniform"})],
        "labels": [StrOptions({"random", "per class"})],
        "max_iter": [Interval(Integral, 0, None, closed="left"), None],
        "min_gain": [Interval(Real, 0, 1, closed="left")],
        "max_train": [Interval(Integral, 1, None, closed="left"), None],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "callback": [callable, None],
        "random_state": ["random_state"],
    }

    def _checked_rows(self, X: Any, *, reset: bool) -> Any:
        raise NotImplementedError

    def _held_out(self) -> HeldOut:
        """Votes of the initial model for the labelled rows, without their labels."""
        raise NotImplementedError

    # --- fitting -----------------------------------------------------------------------------

    def _seeds(self) -> tuple[int, int]:
        """Seeds of the learner and of the samples of ``max_train``."""
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=2)
        return int(seeds[0]), int(seeds[1])

    def _encode(self, X: Any, y: ArrayLike) -> Ints:
        """Class codes of the rows; sets ``classes_``."""
        codes, self.classes_ = encode_target(y, self.missing_label)
        if len(codes) != n_rows(X):
            raise ValueError(
                f"X and y must have the same number of rows. Got {n_rows(X)} and {len(codes)}."
            )
        if not (codes == UNLABELED).any():
            warnings.warn(
                f"y has no unlabelled row: {type(self).__name__} learns from the labelled rows "
                f"only, without self-learning.",
                stacklevel=3,
            )
        return codes

    def _checked_weight(self, sample_weight: ArrayLike | None, codes: Ints) -> Floats | None:
        """The weights of all rows; sets ``labeled_weight_``."""
        weight = None if sample_weight is None else check_weights(sample_weight, len(codes))
        self.labeled_weight_ = unequal(None if weight is None else weight[codes != UNLABELED])
        return weight

    def _learn(
        self,
        X: Any,
        codes: Ints,
        weight: Floats | None,
        learner: Learner,
        seed: int,
        fit_params: dict[str, Any] | None = None,
    ) -> Self:
        """Algorithm 1 on rows in memory; sets the fitted attributes."""
        labeled, unlabeled = np.flatnonzero(codes != UNLABELED), np.flatnonzero(codes == UNLABELED)
        named, given = self.label_proba, None
        if not isinstance(named, str):
            given = given_label_proba(named, unlabeled, len(codes), len(self.classes_))
            named = "given"
        task = Task(
            X=RowView(X, labeled),
            codes=codes[labeled],
            weight=None if weight is None else weight[labeled],
            classes=self.classes_,
            learner=learner,
            balanced=self.pseudo_weight == "balanced",
            label_proba=named,
            in_memory=True,
            fit_params=fit_params or {},
        )
        own = None if weight is None else weight[unlabeled]
        executor = MemoryExecutor(RowView(X, unlabeled), weight=own, proba=given)
        outcome = self_learn(executor, task, self._schedule(seed, self.max_train))
        self._keep_outcome(outcome)
        self._keep_rows(X, codes, executor.chunk)
        initial, votes = executor.chunk["initial"], executor.chunk["votes"]
        self._transduction = Transduction(initial, votes, named, given)
        self._assessment = None
        return self

    def _schedule(self, seed: int, max_train: int | None, **own: Any) -> Schedule:
        return Schedule(
            policy=make_policy(self.policy),
            max_iter=self.max_iter,
            min_gain=self.min_gain,
            max_train=max_train,
            seed=seed,
            on_round=self._on_round,
            **own,
        )

    def _on_round(self, record: dict[str, Any]) -> None:
        if self.verbose:
            sys.stdout.write(f"[{type(self).__name__}] {round_line(record)}\n")
        if self.callback is not None:
            self.callback(record)

    def _keep_outcome(self, outcome: Outcome) -> None:
        self.initial_estimator_, self.estimator_ = outcome.initial, outcome.final
        self.history_, self.n_iter_ = outcome.history, len(outcome.history)
        self.thresholds_ = outcome.thresholds
        self.termination_condition_ = outcome.termination

    def _keep_rows(self, X: Any, codes: Ints, chunk: dict[str, Any]) -> None:
        unlabeled = codes == UNLABELED
        marks, votes = chunk["marks"], chunk["votes"]
        proba = np.zeros((len(codes), len(self.classes_)))
        proba[~unlabeled, codes[~unlabeled]] = 1.0
        proba[unlabeled] = votes
        self._labeled_rows = take_rows(X, np.flatnonzero(~unlabeled)), codes[~unlabeled]
        self.initial_votes_ = chunk["initial"]
        self.labeled_iter_ = np.zeros(len(codes), dtype=np.intp)
        self.labeled_iter_[unlabeled] = marks["round"]
        self.pseudo_labels_ = self.classes_[marks["code"][marks["code"] != UNLABELED]]
        self.transduction_proba_ = proba
        self.transduction_ = self.classes_[proba.argmax(axis=1)]

    # --- prediction --------------------------------------------------------------------------

    def predict_proba(self, X: Any) -> Floats:
        """Class votes of the final classifier, shape (n_samples, n_classes)."""
        check_is_fitted(self)
        return vote_matrix(self.estimator_, self._checked_rows(X, reset=False))

    def predict(self, X: Any) -> NDArray[Any]:
        """Majority vote of the final classifier."""
        winner = self.predict_proba(X).argmax(axis=1)
        return self.classes_[winner]

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithm of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy on the labelled rows of a data set; unlabelled ones are left out."""
        check_is_fitted(self)
        labeled, X, truth = labeled_part(X, y, self.missing_label)
        weight = None if sample_weight is None else np.asarray(sample_weight)[labeled]
        return super().score(X, truth, weight)

    # --- how wrong the labels are ------------------------------------------------------------

    @property
    def assessment_(self) -> FitAssessment:
        """The one statement of error, made when it is first asked for."""
        check_is_fitted(self)
        if self._assessment is None:
            self._assessment = assess(self._held_out(), self._transduction, labels=self.labels)
        return self._assessment

    @property
    def error_(self) -> ErrorEstimate:
        """About how many of the labels of the unlabelled rows are wrong, with 95 % limits."""
        return self.assessment_.error

    @property
    def confidence_(self) -> Floats:
        """For each row of ``fit`` the calibrated chance that its label is right; 1 if given."""
        confidence = np.ones(len(self._in_memory().labeled_iter_))
        confidence[self.labeled_iter_ != 0] = self.assessment_.confidence
        return confidence

    @property
    def label_proba_(self) -> Floats:
        """What stands for P(Y|x) of the unlabelled rows in the bounds, calibrated."""
        return self.assessment_.label_proba

    @property
    def risk_bound_(self) -> float:
        """TB: bound of the expected error if ``label_proba_`` were true; NaN without rows."""
        bound = self.assessment_.bound
        return float("nan") if bound is None else bound.risk

    @property
    def confusion_bound_(self) -> Floats:
        """The bounds of the conditional risks behind ``risk_bound_``."""
        K, bound = len(self.classes_), self.assessment_.bound
        return np.full((K, K), np.nan) if bound is None else bound.confusion

    def accept(self, max_error: float = 0.05, X: Any = None) -> Bools:
        """Which labels a person may take as they are.

        Parameters
        ----------
        max_error : float, default=0.05
            The share of wrong labels that one can live with.
        X : array-like, optional
            New rows; those of ``fit`` by default.

        Returns
        -------
        mask : ndarray of bool
            The most rows whose **estimated** error stays below ``max_error``; given labels are
            accepted. :meth:`audit` can prove it.
        """
        if X is not None:
            return self.assessment_.accepted(max_error, *self._initial_votes_and_labels(X))
        accepted = np.ones(len(self._in_memory().labeled_iter_), dtype=bool)
        accepted[self.labeled_iter_ != 0] = self.assessment_.accepted(max_error)
        return accepted

    def confidence(self, X: Any) -> Floats:
        """The calibrated chance that :meth:`predict` is right, for each of these rows."""
        return self.assessment_.rule.of(*self._initial_votes_and_labels(X))

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

        Returns
        -------
        rows : ndarray of int of shape (size,)

        See Also
        --------
        audit : What the checks guarantee.
        fewlabel.checks_needed : How many rows a goal needs.
        """
        return audit_sample(self._audited(max_error), size, random_state=random_state)

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
            Their right labels.
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
        what = "labels" if max_error is None else "accepted labels"
        population = self._audited(max_error)
        return audit(
            self.transduction_,
            rows,
            labels,
            population=population,
            confidence=confidence,
            plan=plan,
            what=what,
        )

    def _audited(self, max_error: float | None) -> Bools:
        rows: Bools = self._in_memory().labeled_iter_ != 0
        return rows if max_error is None else rows & self.accept(max_error)

    def suggest(self, n: int = 20) -> Ints:
        """Rows of ``fit`` whose label would teach most, the best first.

        Parameters
        ----------
        n : int, default=20
            At most this many rows.

        Returns
        -------
        rows : ndarray of int

        See Also
        --------
        audit_sample : Rows to check the result by, which must be drawn at random.
        """
        unlabeled = np.flatnonzero(self._in_memory().labeled_iter_ != 0)
        rows: Ints = unlabeled[next_to_label(self.transduction_proba_[unlabeled], n).rows]
        return rows

    def _in_memory(self) -> Self:
        check_is_fitted(self)
        if not hasattr(self, "transduction_"):
            raise ValueError(
                "The classifier was fitted with `unlabeled`, whose rows are not kept. Use "
                "fewlabel.predict_rows and fewlabel.bounds_of_rows for such rows."
            )
        return self

    def bounds(self, X: Any = None, y: ArrayLike | None = None, **options: Any) -> list[Bound]:
        """The paper's bounds of the error on the unlabelled rows, as a table.

        Parameters
        ----------
        X, y : optional
            Those of ``fit``; they are compared with it and not needed.
        **options : dict
            ``y_true``, true labels as far as they are known, or ``X_test`` and ``y_test``: fill the
            column ``excess``, how far each number is from the true error. ``method`` and
            ``smoothing``: how the mislabelling matrix is estimated, see
            :func:`fewlabel.assess.transduction_bounds.estimate_mislabeling`. ``calibrate=False``:
            take the votes for probabilities as they are, as in the paper.

        Returns
        -------
        table : list of Bound
            ``pandas.DataFrame(table)`` shows it. Supervised estimate, plug-in error, TB, CB, CBIL
            and the first- and second-order bounds. **All estimates**: they would be bounds of the
            expected error if ``label_proba_`` and the matrix were the true ones.

        See Also
        --------
        error_ : the estimate to read first.
        """
        return transduction_bounds(self._in_memory(), X, y, **options)

    def report(
        self, *, y_true: ArrayLike | None = None, max_error: float = 0.05, title: str = ""
    ) -> Report:
        """What was learned: shown in a notebook, ``save(path)`` writes HTML, JSON or Markdown.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,), optional
            True labels as far as they are known: shows the true error.
        max_error : float, default=0.05
            The share of wrong labels that one can live with, as in :meth:`accept`.
        title : str, optional
        """
        from fewlabel.report import Report

        return Report.of(self._in_memory(), y_true=y_true, max_error=max_error, title=title)
