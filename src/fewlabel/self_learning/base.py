"""What the self-learning estimators share: one fit, one label for each row, one prediction."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from fewlabel._core.arrays import Floats, Ints, RowView
from fewlabel._core.checks import check_weights
from fewlabel._core.scikit import HasMethods, Interval, StrOptions, n_rows, take_rows
from fewlabel._core.targets import UNLABELED, encode_target, labeled_part
from fewlabel.assess.assessment import Transduction
from fewlabel.assess.held_out import unequal
from fewlabel.assess.label_proba import CHOICES, given_label_proba
from fewlabel.bounds.table import Bound
from fewlabel.bounds.votes import vote_matrix
from fewlabel.chunks.encoded import EncodedLayout
from fewlabel.chunks.executor import MemoryExecutor
from fewlabel.chunks.loop import Outcome, Schedule, self_learn
from fewlabel.chunks.rows import Rows
from fewlabel.chunks.steps import Task
from fewlabel.chunks.survey import survey_rows
from fewlabel.encoding.encoder import TableEncoder
from fewlabel.encoding.frames import has_other_than_numbers
from fewlabel.selection.learner import Learner
from fewlabel.selection.policies import Policy, make_policy
from fewlabel.selection.rounds import round_line
from fewlabel.self_learning.bounds_of_fit import transduction_bounds
from fewlabel.self_learning.chunked import MOST_UNLABELED, ChunkStatements, joined_with_sample
from fewlabel.self_learning.statement import RowSample

if TYPE_CHECKING:
    from fewlabel.report import Report


class SelfLearner(ChunkStatements, ClassifierMixin, BaseEstimator):
    """Base class of the self-learning estimators.

    A subclass says how rows are checked (``_checked_rows``) and who learns: its ``fit`` makes a
    :class:`fewlabel.selection.learner.Learner` and hands it to ``_learn``.
    """

    # Whether the learner gains from sparse tf-idf where a table is text alone.
    _wants_sparse = False

    policy: str | Policy
    label_proba: str | ArrayLike
    pseudo_weight: str
    table: Any
    max_iter: int | None
    min_gain: float
    max_train: int | None
    missing_label: Any
    verbose: int
    callback: Callable[[dict[str, Any]], object] | None
    random_state: int | np.random.RandomState | None

    _parameter_constraints: dict[str, list[Any]] = {
        "table": [StrOptions({"auto"}), HasMethods(["fit_transform", "transform"]), None],
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

    # --- rows --------------------------------------------------------------------------------

    def _encoded(self, X: Any, y: ArrayLike | None = None, *, reset: bool) -> Any:
        """Frames with anything but numbers as numbers; all other rows as they are.

        ``reset``: learn how to encode from these rows, and from which of them ``y`` labels.
        """
        if reset:
            self.table_encoder_ = self._table_encoder(X)
            if self.table_encoder_ is not None:
                return self.table_encoder_.fit_transform(X, y)
        encoder = None if reset else getattr(self, "table_encoder_", None)
        return X if encoder is None else encoder.transform(X)

    def _table_encoder(self, X: Any) -> TableEncoder | None:
        if self.table is None or (self.table == "auto" and not has_other_than_numbers(X)):
            return None
        if isinstance(self.table, str):
            return TableEncoder(missing_label=self.missing_label, sparse=self._wants_sparse)
        encoder: TableEncoder = clone(self.table)
        return encoder

    def _encoded_chunks(self, X: Any, rows: Rows, seed: int) -> tuple[Any, Any]:
        """Labelled rows as numbers, and what brings chunks into the same form.

        An encoder is fitted on the labelled rows and a random sample of the others.
        """
        layout, self.table_encoder_ = rows.layout_like(X), self._table_encoder(X)
        if self.table_encoder_ is None:
            return X, layout
        with rows.opened(layout) as executor:
            survey = survey_rows(executor, rows.missing_label, seed=seed, n_features=None)
        seen, n = joined_with_sample(X, survey), n_rows(X)
        marker: Any = self.table_encoder_.missing_label
        if marker is None or (isinstance(marker, str) and marker == "auto"):
            marker = np.nan
        y = np.array([1.0] * n + [marker] * (n_rows(seen) - n), dtype=object)
        encoded = self.table_encoder_.fit_transform(seen, y)
        return take_rows(encoded, np.arange(n)), self._chunk_layout(layout)

    def _chunk_layout(self, layout: Any) -> Any:
        """What brings chunks that have this layout into the form that the estimator votes on."""
        encoder = getattr(self, "table_encoder_", None)
        return layout if encoder is None else EncodedLayout(layout, encoder)

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
        if weight is not None and not weight[codes != UNLABELED].any():
            raise ValueError("sample_weight is zero for every labelled row: give some weight.")
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
        of_labeled = None if weight is None else weight[labeled]
        task = self._task(RowView(X, labeled), codes[labeled], of_labeled, learner, named)
        task = replace(task, in_memory=True, fit_params=fit_params or {})
        own = None if weight is None else weight[unlabeled]
        self._unlabeled_sample = _sample(X, unlabeled, seed)
        executor = MemoryExecutor(RowView(X, unlabeled), weight=own, proba=given)
        outcome = self_learn(executor, task, self._schedule(seed, self.max_train))
        self._keep_outcome(outcome)
        self._keep_rows(X, codes, executor.chunk)
        initial, votes = executor.chunk["initial"], executor.chunk["votes"]
        self._transduction = Transduction(initial, votes, named, given)
        self._assessment = self._paper_bounds = self._on_disk = self._sample = None
        return self

    def _task(
        self, X: Any, codes: Ints, weight: Floats | None, learner: Learner, label_proba: str
    ) -> Task:
        """The labelled rows, and the settings of the estimator."""
        return Task(
            X=X,
            codes=codes,
            weight=weight,
            classes=self.classes_,
            learner=learner,
            balanced=self.pseudo_weight == "balanced",
            label_proba=label_proba,
        )

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

    # --- what was learned ----------------------------------------------------------------------

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
            :func:`fewlabel.assess.pseudo_label_errors.estimate_mislabeling`. ``calibrate=False``:
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
        check_is_fitted(self)
        if self._on_disk is not None and X is None and y is None and not options:
            return self._on_disk.bounds(self.paper_bounds_.held_out)
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
            The share of wrong labels that is allowed, as in :meth:`accept`.
        title : str, optional
        """
        from fewlabel.report import Report

        check_is_fitted(self)
        return Report.of(self, y_true=y_true, max_error=max_error, title=title)


def _sample(X: Any, unlabeled: Ints, seed: int) -> RowSample:
    order = np.random.default_rng(seed).permutation(len(unlabeled))
    positions = np.sort(order[:MOST_UNLABELED])
    return RowSample(take_rows(X, unlabeled[positions]), positions)
