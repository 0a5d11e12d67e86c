"""``SelfLearningClassifier``: Algorithm 1 around any classifier (Section 4.4)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

from fewlabel._core.checks import check_weights
from fewlabel._core.scikit import (
    HasMethods,
    StrOptions,
    check_features,
    indexable_rows,
    routed_fit_params,
    take_rows,
    wants_numbers,
)
from fewlabel.assess.assessment import HeldOut, SelfLearned
from fewlabel.assess.error_estimate import Labels
from fewlabel.assess.held_out import (
    can_be_judged,
    held_out_votes,
    rows_with_weight,
    unequal,
)
from fewlabel.chunks.local import as_rows
from fewlabel.chunks.rows import Rows
from fewlabel.encoding.encoder import TableEncoder
from fewlabel.selection.learner import EstimatorLearner, default_forest, warn_if_unweighted
from fewlabel.selection.policies import Policy
from fewlabel.self_learning.base import SelfLearner
from fewlabel.self_learning.chunked import ChunkedFit
from fewlabel.self_learning.cross_fit import cross_fitted_errors


class SelfLearningClassifier(MetaEstimatorMixin, SelfLearner):
    r"""Learn from few labels: pseudo-label confident votes, round by round, and bound the error.

    A classifier is trained on the labelled rows. Then, round by round, the unlabelled rows whose
    vote reaches the threshold of the class they are predicted to be get that class as pseudo-label,
    and the classifier is trained again on both. The thresholds are found anew in every round, for
    each class, by minimising a bound on the error among the rows that they would let in
    (Algorithm 1 of Feofanov, Devijver and Amini, "Multi-class Probabilistic Bounds for
    Self-learning").

    Parameters
    ----------
    estimator : classifier, optional
        Any classifier with ``predict_proba``. By default a random forest of 200 full trees.
    policy : {"bound", "fixed", "curriculum"} or policy object, default="bound"
        Which rows to pseudo-label, see :mod:`fewlabel.selection.policies`.
    label_proba : {"supervised", "current", "uniform"} or array-like, default="supervised"
        What is used for the unknown :math:`P(Y\mid x)` in the bound: the votes of the initial
        supervised classifier (the paper's choice), those of the current one, 1/K, or given
        probabilities of shape (n_samples, n_classes).
    pseudo_weight : {"balanced", "uniform"}, default="balanced"
        "balanced": labelled and pseudo-labelled rows have the same total weight, as in Algorithm 1;
        the mean weight stays 1. "uniform": every row weighs the same.
    labels : {"random", "per class"}, default="random"
        How rows were chosen for labelling: at random, or some of each class. The estimate of the
        error then rests on class shares that are estimated from the votes.
    table : "auto", TableEncoder or None, default="auto"
        How frames with texts, categories or dates are encoded; "auto" takes
        :class:`fewlabel.TableEncoder` if the estimator is a classifier of scikit-learn that wants
        numbers. Pipelines and classifiers of other packages get the rows as they are.
    max_iter : int, optional
        At most this many rounds. By default until no row is left or none is selected.
    min_gain : float in [0, 1), default=0.01
        Stop when a round would add less than this share of the unlabelled rows: such rounds cost a
        whole refit. 0 is the paper's rule.
    max_train : int, optional
        When more rows than this are pseudo-labelled, refit on all labelled rows and a random
        sample of this many of them, stratified by pseudo-label and weighted to stand for all.
        Votes and bounds still use every row.
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
        0: label given; n: pseudo-labelled in round n; -1: never pseudo-labelled.
    pseudo_labels_ : ndarray of shape (n_pseudo_labeled,)
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
    error_ : ErrorEstimate
        About how many of the labels are wrong: ``value`` with its 95 % limits ``low`` and ``high``,
        the number ``n`` of labelled rows behind it and what it ``assumes``.
    confidence_ : ndarray of shape (n_samples,)
        The calibrated probability that each row's label is right; 1 for given labels.
    risk_bound_ : float
        The paper's bound TB, from calibrated votes: a bound of the **expected** error if
        ``label_proba_`` were true. May exceed 1. NaN without unlabelled rows.
    confusion_bound_ : ndarray of shape (n_classes, n_classes)
        The bounds of the conditional risks behind it, with the same caveat.
    initial_votes_ : ndarray of shape (n_unlabeled, n_classes)
        Votes of ``initial_estimator_`` for the unlabelled rows, in row order.
    label_proba_ : ndarray of shape (n_unlabeled, n_classes)
        What stands for P(Y|x) of the unlabelled rows in these bounds, in row order.
    labeled_weight_ : ndarray of shape (n_labeled,) or None
        Weights that ``fit`` was given for the labelled rows; None if they weigh the same.
    n_features_in_, feature_names_in_ : as in scikit-learn, if the base estimator has them

    See Also
    --------
    FewLabelClassifier : Several families of classifiers vote together.
    sklearn.semi_supervised.SelfTrainingClassifier : One threshold, chosen by hand.

    References
    ----------
    .. [1] V. Feofanov, E. Devijver and M.-R. Amini, "Multi-class Probabilistic Bounds for
           Self-learning", 2021,
           Algorithm 1.

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
        **SelfLearner._parameter_constraints,
        "estimator": [StrOptions({"forest"}), HasMethods("fit"), None],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        policy: str | Policy = "bound",
        label_proba: str | ArrayLike = "supervised",
        pseudo_weight: str = "balanced",
        labels: Labels = "random",
        table: Any = "auto",
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
        self.labels = labels
        self.table = table
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
        routed = routed_fit_params(self, params)
        if unlabeled is not None:
            if routed:
                raise ValueError(
                    f"{', '.join(routed)}: no metadata can be passed with `unlabeled`."
                )
            return self._fit_chunks(X, y, as_rows(unlabeled), sample_weight)
        X = self._checked_rows(self._encoded(X, y, reset=True), reset=True)
        codes = self._encode(X, y)
        weight = self._checked_weight(sample_weight, codes)
        seed, sample_seed = self._seeds()
        base = self._base_estimator(seed)
        if self.pseudo_weight == "balanced":
            warn_if_unweighted(base)
        # Metadata of rows cannot be cut to folds: then only the initial model is held out.
        self._fitted_with, self._only_initial = (base, sample_seed), bool(routed)
        return self._learn(X, codes, weight, EstimatorLearner(base), sample_seed, routed)

    def _checked_rows(self, X: Any, *, reset: bool) -> Any:
        X = X if reset else self._encoded(X, reset=False)
        check_features(self, X, reset=reset)
        return indexable_rows(X)

    def _table_encoder(self, X: Any) -> TableEncoder | None:
        own = self.estimator is not None and not isinstance(self.estimator, str)
        if own and isinstance(self.table, str) and not wants_numbers(self.estimator):
            return None
        return super()._table_encoder(X)

    def _base_estimator(self, seed: int) -> Any:
        if self.estimator is None or isinstance(self.estimator, str):
            return default_forest(seed, self.n_jobs)
        return self.estimator

    def _held_out(self) -> HeldOut:
        X, codes = self._labeled_rows
        votes, share = held_out_votes(
            self.initial_estimator_, X, self.classes_[codes], self.labeled_weight_
        )
        rows, _ = rows_with_weight(len(codes), self.labeled_weight_)
        # The only row of a class has no vote that could be right.
        votes = np.where(can_be_judged(codes, self.labeled_weight_)[:, None], votes, 0.0)
        return HeldOut(votes[None, rows], codes[rows], None, share)

    def _self_learned(self) -> SelfLearned | None:
        if self._only_initial:
            return None
        (X, codes), (base, seed) = self._labeled_rows, self._fitted_with
        sample = None if self._unlabeled_sample is None else self._unlabeled_sample.X
        rows, weight = rows_with_weight(len(codes), self.labeled_weight_)
        # Probabilities that the user gave belong to rows; folds have other ones.
        label_proba = self.label_proba if isinstance(self.label_proba, str) else "supervised"
        learner = EstimatorLearner(base)
        task = self._task(take_rows(X, rows), codes[rows], weight, learner, label_proba)
        schedule = self._schedule(seed, self.max_train)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return cross_fitted_errors(task, schedule, sample, seed)

    def _fit_chunks(
        self, X: Any, y: ArrayLike, rows: Rows, sample_weight: ArrayLike | None
    ) -> Self:
        """Algorithm 1 on labelled rows in memory and unlabelled rows in chunks."""
        seed, sample_seed = self._seeds()
        X, layout = self._encoded_chunks(X, rows, sample_seed)
        X = self._checked_rows(X, reset=True)
        codes = self._codes_of_labeled(X, y)
        weight = None if sample_weight is None else check_weights(sample_weight, len(codes))
        self.labeled_weight_ = unequal(weight)
        base = self._base_estimator(seed)
        learner = EstimatorLearner(base)
        self._fitted_with, self._only_initial = (base, sample_seed), False
        partitions = rows.train == "partitions" and learner.is_forest
        how = ChunkedFit(rows, layout, lambda survey: learner, sample_seed, partitions)
        return self._learn_chunks(X, codes, weight, how)

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
