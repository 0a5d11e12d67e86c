"""``FewLabelClassifier``: the mixed vote, self-learned, without anything to tune."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from fewlabel._core.arrays import Ints
from fewlabel._core.checks import check_weights
from fewlabel._core.scikit import Interval, StrOptions, take_rows, validate_data
from fewlabel._core.targets import UNLABELED
from fewlabel.assess.assessment import HeldOut
from fewlabel.assess.error_estimate import Labels
from fewlabel.assess.held_out import trained_share, unequal
from fewlabel.assess.prevalence import ClassShares, check_priors
from fewlabel.chunks.encoded import NumberLayout
from fewlabel.chunks.local import as_rows
from fewlabel.chunks.rows import Rows
from fewlabel.chunks.survey import ColumnSums, Survey
from fewlabel.ensemble.families import Family, families_of
from fewlabel.ensemble.family_trainer import FamilyTrainer
from fewlabel.ensemble.learner import MixedVoteLearner, gibbs_weights
from fewlabel.ensemble.mixed_vote import VoterRecord
from fewlabel.ensemble.sampled import SampledLearner
from fewlabel.selection.policies import Policy
from fewlabel.self_learning.base import SelfLearner
from fewlabel.self_learning.chunked import MAX_TRAIN, ChunkedFit


class FewLabelClassifier(SelfLearner):
    r"""Learn from few labels by a vote of several families of classifiers; nothing to tune.

    Random forest, extra trees, SVM, semi-supervised SVM and LDA, and label spreading on graphs in
    given and in learned metrics vote together. The weight of each is learned from the labelled rows
    by votes that did not see their labels; then a round of self-learning (Algorithm 1) lets the
    mixed vote teach the families, with thresholds from the paper's bound. Where the round does not
    help, the first vote stays.

    Parameters
    ----------
    voters : "default" or list, default="default"
        Families by name, classifiers, or pairs (name, classifier). "default" in a list stands for
        the default families: ``["default", "tabicl"]`` adds one to them. A classifier gets the rows
        as they are; put a pipeline around it if it wants them scaled. It gets codes 0, 1, … for the
        classes, also in parameters that name classes. With more than ten columns for each labelled
        row the default has LDA on screened columns (``screened_lda``), too.
    inverse_temperature : float, default=5.0
        How sharply Q follows the held-out losses (half the Brier score), see
        :func:`fewlabel.gibbs_posterior`; 0: every family weighs the same.
    time_budget : float or None, default=600
        Seconds that a family may take for its training, cross-fitting and votes. On large tables
        (by default more than 120,000 rows or 60 million cells; in more than 1,000 columns, with
        families that are not among the default ones, or with ``unlabeled`` from 20,000 rows on) a
        short trial estimates it, and slower families are left out with a warning before they are
        begun. None: no limit.
    scoring : {"accuracy", "balanced"}, default="accuracy"
        What the vote is to be good at. "balanced": every class counts the same, however rare it is.
        Q is learned from balanced errors, and votes are for classes of equal shares.
    priors : dict or array-like of shape (n_classes,), optional
        Shares of the classes among the unlabelled rows, if you know them and the labelled rows
        have others. A dict gives each class its share; an array is in the order of ``classes_``.
    policy, label_proba, pseudo_weight, labels, min_gain : as in :class:`SelfLearningClassifier`
    table : "auto", TableEncoder or None, default="auto"
        How a frame with texts, categories or dates is encoded; "auto" takes
        :class:`fewlabel.TableEncoder` as it is, None refuses such frames.
    max_iter : int or None, default=1
        Rounds of self-learning, at most; None: no limit. A second round hardly changes a label and
        costs as much as the first.
    max_train : int or None, default=5000
        Pseudo-labelled rows that the families are trained on again, at most. None: all rows in
        memory, 100,000 in chunks.
    missing_label, n_jobs, verbose, random_state : as in :class:`SelfLearningClassifier`
    callback : callable, optional
        Called with a dict when a family begins to be trained (``training``, its title,
        ``position``, ``n_families`` and ``seconds_left``, an estimate), when it is complete (the
        fields of :class:`VoterRecord`, weights still 0), and after each round (an entry of
        ``history_``).

    Attributes
    ----------
    posterior_ : fewlabel.ensemble.posterior.Posterior
        Q over the families that were trained (``weights``), and its divergence from the prior
        (``kl``).
    voters_ : list of VoterRecord
        Every family: weight, held-out accuracy, seconds, and why it was left out if it was.
        ``pandas.DataFrame(clf.voters_)`` shows it as a table.
    estimator_, initial_estimator_ : MixedVote
    classes_, transduction_, error_, confidence_, thresholds_, history_, risk_bound_, ... :
        as in :class:`SelfLearningClassifier`

    See Also
    --------
    SelfLearningClassifier : Algorithm 1 around one classifier.
    TableEncoder : How data frames are encoded.

    Notes
    -----
    For rows of ``fit``, label spreading votes by its graph; for new rows, by the mean of their
    nearest neighbours among the rows of ``fit``. With more than 100,000 unlabelled rows (20,000
    with ``unlabeled``) a sample of that size carries the graphs; all others vote like new rows.

    References
    ----------
    .. [1] V. Feofanov, E. Devijver and M.-R. Amini, "Multi-class Probabilistic Bounds for
           Self-learning", 2021,
           Algorithm 1 and Section 7.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> given = np.random.RandomState(0).rand(len(y)) < 0.04  # 60 labels
    >>> clf = FewLabelClassifier(random_state=0).fit(X, np.where(given, y, -1))
    >>> bool(clf.score(X[~given], y[~given]) > 0.9)
    True
    """

    _wants_sparse = True

    _parameter_constraints: dict[str, list[Any]] = {
        **SelfLearner._parameter_constraints,
        "voters": [str, list, tuple],
        "inverse_temperature": [Interval(Real, 0, None, closed="left")],
        "time_budget": [Interval(Real, 0, None, closed="left"), None],
        "scoring": [StrOptions({"accuracy", "balanced"})],
        "priors": [dict, "array-like", None],
    }

    def __init__(
        self,
        voters: Any = "default",
        *,
        inverse_temperature: float = 5.0,
        time_budget: float | None = 600.0,
        scoring: str = "accuracy",
        priors: Any = None,
        policy: str | Policy = "bound",
        label_proba: str | ArrayLike = "supervised",
        pseudo_weight: str = "balanced",
        labels: Labels = "random",
        table: Any = "auto",
        max_iter: int | None = 1,
        min_gain: float = 0.01,
        max_train: int | None = 5_000,
        missing_label: Any = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callable[[dict[str, Any]], object] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.voters = voters
        self.inverse_temperature = inverse_temperature
        self.time_budget = time_budget
        self.scoring = scoring
        self.priors = priors
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
    ) -> Self:
        """Learn from labelled and unlabelled rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Numbers, or a pandas or polars frame with texts, categories and dates (see ``table``).
            NaN is filled with the median for families that need it.
        y : array-like of shape (n_samples,)
            Labels, with unlabelled rows marked (see ``missing_label``).
        sample_weight : array-like of shape (n_samples,), optional
            For the families that take weights. A labelled row of weight 0 is as if it had no label:
            no family learns it, and it does not count in held-out errors. Others count alike in
            errors, calibration and bounds, whatever their weights.
        unlabeled : UnlabeledRows, DaskRows, path, Arrow data set, callable or list, optional
            Unlabelled rows that need not fit in memory, see :class:`UnlabeledRows`; X and y are
            then the labelled rows, and ``transduction_`` etc. go to a folder, not into memory.
            Families train on the labelled rows, at most ``max_train`` pseudo-labelled ones, and a
            sample of 20,000 rows, which carries the graphs and what an encoder learns.
        """
        if sample_weight is not None and not np.any(np.asarray(sample_weight)):
            raise ValueError("sample_weight is zero for every row: give some rows weight.")
        self._validate_params()
        if unlabeled is not None:
            return self._fit_chunks(X, y, as_rows(unlabeled), sample_weight)
        X = self._checked_rows(self._encoded(X, y, reset=True), reset=True)
        codes = self._encode(X, y)
        self._class_shares = self._wanted_shares()
        weight = self._checked_weight(sample_weight, codes)
        seed, sample_seed = self._seeds()
        self._learn(X, codes, weight, self._learner(X, codes, seed), sample_seed)
        return self._keep_evidence()

    def _keep_evidence(self) -> Self:
        evidence = self.initial_estimator_.evidence_
        self.voters_, self.posterior_ = evidence.records, evidence.posterior
        return self

    def _fit_chunks(
        self, X: Any, y: ArrayLike, rows: Rows, sample_weight: ArrayLike | None
    ) -> Self:
        """Algorithm 1 on labelled rows in memory and unlabelled rows in chunks."""
        seed, sample_seed = self._seeds()
        X, layout = self._encoded_chunks(X, rows, sample_seed)
        X = self._checked_rows(X, reset=True)
        codes = self._codes_of_labeled(X, y)
        weight = None if sample_weight is None else check_weights(sample_weight, len(codes))
        self.labeled_weight_, self._class_shares = unequal(weight), self._wanted_shares()

        def learner(survey: Survey) -> SampledLearner:
            of_labeled, others = ColumnSums.of(X), survey.columns
            none = take_rows(X, np.arange(0))
            return SampledLearner(
                families=self._families(X, len(codes)),
                inverse_temperature=self.inverse_temperature,
                time_budget=self.time_budget,
                max_train=self.max_train or MAX_TRAIN,
                sample=none if survey.sample is None else take_rows(survey.sample, survey.in_order),
                columns=of_labeled if others is None else of_labeled + others,
                codes=codes,
                n_classes=len(self.classes_),
                seed=seed,
                n_jobs=self.n_jobs if rows.n_workers == 1 else None,
                labeled_weight=self.labeled_weight_,
                n_all=len(codes) + survey.n_unlabeled,
                n_workers=rows.n_workers,
                class_shares=self._class_shares.votes,
                balanced=self.scoring == "balanced",
            )

        how = ChunkedFit(rows, NumberLayout(layout), learner, sample_seed, columns=True)
        return self._learn_chunks(X, codes, weight, how)._keep_evidence()

    def _on_initial(self, model: Any) -> None:
        super()._on_initial(model)
        for record in model.evidence_.records:
            self._on_family(record)

    def _chunk_layout(self, layout: Any) -> Any:
        return NumberLayout(super()._chunk_layout(layout))

    def _learner(self, X: Any, codes: Ints, seed: int) -> MixedVoteLearner:
        K, n_labeled = len(self.classes_), int((codes != UNLABELED).sum())
        return MixedVoteLearner(
            families=self._families(X, n_labeled),
            trainer=FamilyTrainer(X, codes, K, seed, self.n_jobs, self.labeled_weight_),
            inverse_temperature=self.inverse_temperature,
            time_budget=self.time_budget,
            max_train=self.max_train or len(codes),
            on_family=self._on_family,
            on_start=self._on_start,
            class_shares=self._class_shares.votes,
            balanced=self.scoring == "balanced",
        )

    def _families(self, X: Any, n_labeled: int) -> list[Family]:
        # Sparse rows have many columns that are mostly 0: singular vectors serve them better.
        n_columns = 0 if issparse(X) else X.shape[1]
        return families_of(self.voters, n_columns=n_columns, n_labeled=n_labeled)

    def _wanted_shares(self) -> ClassShares:
        """Shares of the classes that the user knows, and those that votes shall be for."""
        K = len(self.classes_)
        table = None if self.priors is None else check_priors(self.priors, self.classes_)
        return ClassShares(table, np.full(K, 1.0 / K) if self.scoring == "balanced" else table)

    def _held_out(self) -> HeldOut:
        evidence, codes = self.initial_estimator_.evidence_, self._labeled_rows[1]
        scored = evidence.scored
        rule = partial(
            gibbs_weights,
            inverse_temperature=self.inverse_temperature,
            balanced=self.scoring == "balanced",
        )
        share, shares = trained_share(len(scored)), self._class_shares
        return HeldOut(evidence.held_out[:, scored], codes[scored], rule, share, shares)

    def _checked_rows(self, X: Any, *, reset: bool) -> Any:
        X = X if reset else self._encoded(X, reset=False)
        return validate_data(
            self,
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan",
            reset=reset,
        )

    def _on_start(self, record: dict[str, Any]) -> None:
        if self.callback is not None:
            self.callback(record)

    def _on_family(self, record: VoterRecord) -> None:
        if self.callback is not None:
            self.callback(record._asdict())
        if record.left_out:
            warnings.warn(f"{record.title} is left out: {record.left_out}.", stacklevel=2)
        elif self.verbose:
            sys.stdout.write(
                f"[FewLabelClassifier] {record.title}: held-out accuracy {record.accuracy:.3f} "
                f"({record.seconds:.1f} s)\n"
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags
