"""Algorithm 1, the multi-class self-learning algorithm MSLA (Section 4.4).

This module is the loop and the estimator around it. Which rows are trusted is decided in
:mod:`fewlabel.selection.policies`, what the votes are in :mod:`fewlabel.bounds.votes`, how a
round's training set is put together in :mod:`fewlabel.selection.training_set`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import check_is_fitted

from fewlabel._core.checks import check_weights
from fewlabel._core.scikit import (
    HasMethods,
    Interval,
    StrOptions,
    check_features,
    indexable_rows,
    n_rows,
    routed_fit_params,
)
from fewlabel._core.targets import UNLABELED, encode_target, labeled_part
from fewlabel.assess.held_out import unequal
from fewlabel.assess.transduction_bounds import transduction_bounds
from fewlabel.bounds.statistics import Floats, Ints
from fewlabel.bounds.table import Bound
from fewlabel.bounds.votes import vote_matrix
from fewlabel.chunks.local import as_rows
from fewlabel.chunks.loop import learn_in_chunks
from fewlabel.selection.policies import Policy, make_policy
from fewlabel.selection.rounds import (
    final_bound,
    initial_label_proba,
    keep_record,
    n_selected,
    reason_to_stop,
    round_record,
)
from fewlabel.selection.training_set import TrainingSet, default_forest

if TYPE_CHECKING:
    from fewlabel.report import Report


class SelfLearningClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    r"""Learn from few labels: trust confident votes, step by step, and bound the error.

    A classifier is trained on the labelled rows. Then, round by round, the unlabelled rows whose
    vote reaches the threshold of the class they are predicted to be get that class as pseudo-label,
    and the classifier is trained again on both. The thresholds are found anew in every round, for
    each class, by minimising a bound on the error among the rows that they would let in
    (Algorithm 1 of Feofanov, Devijver and Amini, "Multi-class Probabilistic Bounds for
    Self-learning").

    Parameters
    ----------
    estimator : classifier, "forest" or "fast", default=None
        Any classifier with ``predict_proba``. None and "forest": a random forest of 200 full trees.
        "fast": the same from scikit-learn-intelex (``pip install fewlabel[fast]``).
    policy : {"bound", "fixed", "curriculum"} or policy object, default="bound"
        Which rows to trust, see :mod:`fewlabel.selection.policies`.
    label_proba : {"supervised", "current", "uniform"} or array-like, default="supervised"
        What stands for the unknown :math:`P(Y\mid x)` in the bound: the votes of the initial
        supervised classifier (the paper's choice), those of the current one, 1/K, or given
        probabilities of shape (n_samples, n_classes).
    pseudo_weight : {"balanced", "uniform"}, default="balanced"
        "balanced": labelled and pseudo-labelled rows have the same total weight, as in Algorithm 1;
        the mean weight stays 1. "uniform": every row weighs the same.
    max_iter : int, optional
        At most this many rounds. By default until no row is left or none is selected.
    min_gain : float in [0, 1), default=0.01
        Stop when a round would add less than this share of the unlabelled rows: such rounds cost a
        whole refit. 0 is the paper's rule.
    max_train : int, optional
        When more rows than this are trusted, refit on all labelled rows and a random sample of
        this many trusted ones, stratified by pseudo-label and weighted to stand for all. Votes and
        bounds still use every row.
    missing_label : object, default="auto"
        What marks an unlabelled row in ``y``. "auto": -1, NaN, None and pd.NA.
    n_jobs : int, optional
        Processors for the default forest. Other estimators bring their own setting.
    verbose : int, default=0
        With 1, a line for each round.
    callback : callable, optional
        Called with the record of each round (an entry of ``history_``) when it is complete.
    random_state : int, RandomState instance or None, default=None
        Seed of the default forest and of the sample of ``max_train``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    estimator_, initial_estimator_ : the final classifier, and the one trained on labelled rows only
    transduction_ : ndarray of shape (n_samples,)
        The label of each row of ``fit``'s X: given, or predicted by the final classifier.
    transduction_proba_ : ndarray of shape (n_samples, n_classes)
        Votes of the final classifier; 1 for the given label of a labelled row.
    labeled_iter_ : ndarray of int of shape (n_samples,)
        0: label given; n: pseudo-labelled in round n; -1: never trusted.
    pseudo_labels_ : ndarray of shape (n_trusted,)
        Pseudo-labels of the rows with ``labeled_iter_ > 0``, in row order.
    thresholds_ : ndarray of shape (n_classes,)
        Thresholds of the last round; NaN if there was none.
    history_ : list of dict
        A record for each round: rows left before it, rows selected (also per class), thresholds,
        what the policy's criterion says of the error among the selected rows (per class and for
        all), and seconds in the search, the refit and its votes on the rows that are left.
        ``pandas.DataFrame(clf.history_)`` shows it as a table.
    n_iter_ : int
    termination_condition_ : {"all_labeled", "no_selection", "min_gain", "max_iter", "no_unlabeled"}
    risk_bound_ : float
        Bound (TB) of the final classifier's error on the unlabelled rows. **An estimate**: it would
        be a guarantee if ``label_proba`` were the true probabilities. May exceed 1. NaN without
        unlabelled rows.
    confusion_bound_ : ndarray of shape (n_classes, n_classes)
        The bounds of the conditional risks behind it, with the same caveat.
    initial_votes_ : ndarray of shape (n_unlabeled, n_classes)
        Votes of ``initial_estimator_`` for the unlabelled rows, in row order.
    label_proba_ : ndarray of shape (n_unlabeled, n_classes)
        What stood for P(Y|x) of the unlabelled rows in these bounds, in row order.
    labeled_weight_ : ndarray of shape (n_labeled,) or None
        Weights that ``fit`` was given for the labelled rows; None if they weigh the same.
    n_features_in_, feature_names_in_ : as in scikit-learn, if the base estimator has them

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> given = np.random.RandomState(0).rand(len(y)) < 0.04  # 60 labels
    >>> clf = SelfLearningClassifier(random_state=0).fit(X, np.where(given, y, -1))
    >>> clf.initial_estimator_.score(X[~given], y[~given]) < clf.score(X[~given], y[~given])
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "estimator": [StrOptions({"forest", "fast"}), HasMethods("fit"), None],
        "policy": [str, object],
        "label_proba": [StrOptions({"supervised", "current", "uniform"}), "array-like"],
        "pseudo_weight": [StrOptions({"balanced", "uniform"})],
        "max_iter": [Interval(Integral, 0, None, closed="left"), None],
        "min_gain": [Interval(Real, 0, 1, closed="left")],
        "max_train": [Interval(Integral, 1, None, closed="left"), None],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "callback": [callable, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        policy: str | Policy = "bound",
        label_proba: str | ArrayLike = "supervised",
        pseudo_weight: str = "balanced",
        max_iter: int | None = None,
        min_gain: float = 0.01,
        max_train: int | None = None,
        missing_label: Any = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callable[[dict[str, Any]], object] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.policy = policy
        self.label_proba = label_proba
        self.pseudo_weight = pseudo_weight
        self.max_iter = max_iter
        self.min_gain = min_gain
        self.max_train = max_train
        self.missing_label = missing_label
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        unlabeled: Any = None,
        **params: Any,
    ) -> Self:
        """Learn from labelled and unlabelled rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe, list} of shape (n_samples, n_features)
            Handed to the base estimator as it is, row by row.
        y : array-like of shape (n_samples,)
            Labels, with unlabelled rows marked (see ``missing_label``).
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, multiplied with those of ``pseudo_weight``. :meth:`bounds` leaves
            labelled rows of weight 0 out; it counts the others alike.
        unlabeled : UnlabeledRows, DaskRows, path, Arrow data set, callable or list, optional
            Unlabelled rows that need not fit in memory, see :class:`UnlabeledRows`; X and y are
            then the labelled rows, and ``transduction_`` etc. go to a folder, not into memory.
        **params : dict
            Metadata for the base estimator's ``fit``, if metadata routing is enabled.
        """
        self._validate_params()
        policy = make_policy(self.policy)
        if unlabeled is not None:
            rows, routed = as_rows(unlabeled), routed_fit_params(self, params)
            if sample_weight is not None:
                sample_weight = check_weights(sample_weight, n_rows(X))
            self.labeled_weight_ = unequal(sample_weight)
            return learn_in_chunks(self, X, y, rows, policy, sample_weight, routed)
        X = self._checked_rows(X, reset=True)
        codes, self.classes_ = encode_target(y, self.missing_label)
        if len(codes) != n_rows(X):
            raise ValueError(
                f"X and y must have the same number of rows. Got {n_rows(X)} and {len(codes)}."
            )
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=2)
        training = TrainingSet(
            X=X,
            codes=codes,
            classes=self.classes_,
            sample_weight=sample_weight,
            balanced=self.pseudo_weight == "balanced",
            max_train=self.max_train,
            fit_params=routed_fit_params(self, params),
            rng=np.random.default_rng(seeds[1]),
        )
        weight = training.weight
        self.labeled_weight_ = unequal(None if weight is None else weight[training.labeled])
        if len(training.unlabeled) == 0:
            warnings.warn(
                f"y has no unlabelled row: {type(self).__name__} learns from the labelled rows "
                f"only, without self-learning.",
                stacklevel=2,
            )
        self._learn(training, self._base_estimator(int(seeds[0])), policy)
        return self

    def _checked_rows(self, X: Any, *, reset: bool) -> Any:
        check_features(self, X, reset=reset)
        return indexable_rows(X)

    def _base_estimator(self, seed: int) -> Any:
        if self.estimator is None or isinstance(self.estimator, str):
            return default_forest(self.estimator or "forest", seed, self.n_jobs)
        return self.estimator

    def _learn(self, training: TrainingSet, base: Any, policy: Policy) -> None:
        unlabeled = training.unlabeled
        self.history_: list[dict[str, Any]] = []
        self.thresholds_ = np.full(len(self.classes_), np.nan)
        self.labeled_iter_ = np.where(training.codes == UNLABELED, -1, 0)
        votes, _ = self._train_and_vote(training, base, unlabeled)
        self.initial_estimator_, self.initial_votes_ = self.estimator_, votes
        label_proba = initial_label_proba(self.label_proba, votes, unlabeled, len(training.codes))
        left = np.arange(len(unlabeled))  # positions in `unlabeled` of the rows not yet trusted
        while len(left):
            n_left, iteration = len(left), len(self.history_) + 1
            proba = votes if label_proba is None else label_proba[left]
            start = time.perf_counter()
            selection = policy.select(votes, proba, iteration)
            seconds_search = time.perf_counter() - start
            selected, done = n_selected(selection, n_left), iteration - 1
            stop = reason_to_stop(selected, len(unlabeled), done, self.max_iter, self.min_gain)
            if stop:
                self.termination_condition_ = stop
                break
            chosen = unlabeled[left[selection.mask]]
            pseudo = votes[selection.mask].argmax(axis=1)
            training.trust(chosen, pseudo)
            self.thresholds_ = selection.thresholds
            self.labeled_iter_[chosen] = iteration
            left = left[~selection.mask]
            votes, seconds = self._train_and_vote(training, base, unlabeled[left])
            seconds["search"] = seconds_search
            keep_record(self, round_record(iteration, n_left, selection, pseudo, seconds))
        else:
            self.termination_condition_ = "all_labeled" if len(unlabeled) else "no_unlabeled"
        final_votes = self._final_votes(training, base, left, votes)
        self._finish(training, final_votes, final_votes if label_proba is None else label_proba)

    def _train_and_vote(
        self, training: TrainingSet, base: Any, rows: Ints
    ) -> tuple[Floats, dict[str, float]]:
        """Fit ``estimator_`` on what is labelled and trusted now; its votes on these rows."""
        start = time.perf_counter()
        self.estimator_ = self._train(training, base)
        fitted = time.perf_counter()
        votes = np.empty((0, len(self.classes_)))
        if len(rows):
            votes = self._vote(training, base, rows)
        return votes, {"fit": fitted - start, "votes": time.perf_counter() - fitted}

    def _train(self, training: TrainingSet, base: Any) -> Any:
        return training.fit(clone(base))

    def _vote(self, training: TrainingSet, base: Any, rows: Ints) -> Floats:
        return vote_matrix(self.estimator_, training.X, rows=rows)

    def _final_votes(
        self, training: TrainingSet, base: Any, left: Ints, left_votes: Floats
    ) -> Floats:
        # The rows that are left have just been voted on: only the trusted ones are missing.
        votes = np.empty((len(training.unlabeled), len(self.classes_)))
        votes[left] = left_votes
        trusted = np.setdiff1d(np.arange(len(votes)), left, assume_unique=True)
        if len(trusted):
            votes[trusted] = self._vote(training, base, training.unlabeled[trusted])
        return votes

    def _finish(self, training: TrainingSet, votes: Floats, label_proba: Floats) -> None:
        K = len(self.classes_)
        codes, unlabeled = training.codes, training.unlabeled
        proba = np.zeros((len(codes), K))
        given = codes != UNLABELED
        proba[given, codes[given]] = 1.0
        proba[unlabeled] = votes
        self.transduction_proba_ = proba
        self.transduction_ = self.classes_[proba.argmax(axis=1)]
        self.pseudo_labels_ = self.classes_[training.pseudo_codes]
        self.n_iter_ = len(self.history_)
        self.label_proba_ = label_proba
        self.risk_bound_, self.confusion_bound_ = final_bound(votes, label_proba)

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

    def bounds(self, X: Any, y: ArrayLike, **options: Any) -> list[Bound]:
        """Estimates and bounds of the error on the unlabelled rows, as a table.

        Parameters
        ----------
        X, y
            Those of ``fit``. Labelled rows that had weight 0 there are left out.
        **options : dict
            ``y_true``, true labels as far as they are known, or ``X_test`` and ``y_test``: fill the
            column ``excess``, how far each number is from the true error. ``method`` and
            ``smoothing``: how the mislabelling matrix is estimated, see
            :func:`fewlabel.assess.transduction_bounds.estimate_mislabeling`. ``calibrate=False``:
            take the votes for probabilities as they are, as in the paper and in ``risk_bound_``.

        Returns
        -------
        table : list of Bound
            ``pandas.DataFrame(table)`` shows it. Supervised estimate, plug-in error, TB, CB, CBIL
            and the first- and second-order bounds. **All estimates**: they would be guarantees if
            ``label_proba`` and the matrix were the true ones.
        """
        return transduction_bounds(self, X, y, **options)

    def report(self, X: Any = None, y: ArrayLike | None = None, **options: Any) -> Report:
        """What was learned: shown in a notebook, ``save(path)`` writes HTML, JSON or Markdown.

        With the X and y of ``fit``, votes that stand for P(Y|x) in the bounds are calibrated.
        ``y_true``, labels as far as they are known, shows the true error; ``title`` names it. Rows
        that are trusted keep the first classifier's label; the others have that of
        ``transduction_``.
        """
        from fewlabel.report import Report

        check_is_fitted(self)
        if not hasattr(self, "transduction_"):
            raise ValueError(
                "The classifier was fitted with `unlabeled`, whose rows are not kept: a report "
                "cannot show them. Use the method `bounds` of those rows."
            )
        return Report.of(self, X, y, **options)

    # --- scikit-learn ------------------------------------------------------------------------

    def get_metadata_routing(self) -> MetadataRouter:
        """How metadata reaches the base estimator."""
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                estimator=self._base_estimator(0),
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._base_estimator(0)).input_tags
        return tags
