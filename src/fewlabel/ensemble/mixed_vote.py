r"""The mixed majority vote: voters of several families under one Q, then Algorithm 1 (Section 7).

Every method wins somewhere and loses elsewhere, and few labels do not suffice to pick one. So all
of them vote, each with the weight :math:`Q(h)` that its held-out votes earn,

.. math:: v_Q(x, c) = \sum_h Q(h)\, v_h(x, c),

and the mixed vote teaches the families by self-learning: rows that it can be trusted on become
pseudo-labels for all. :mod:`fewlabel.ensemble.families` has the families,
:mod:`fewlabel.ensemble.workbench` trains them, :mod:`fewlabel.ensemble.posterior` learns Q.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from fewlabel._core.scikit import Interval, StrOptions, validate_data
from fewlabel.assess.held_out import CANNOT_LEARN
from fewlabel.bounds.statistics import Floats, Ints
from fewlabel.ensemble.families import Family, Voter, families_of
from fewlabel.ensemble.posterior import Method, Posterior, VoterVotes, learn_posterior
from fewlabel.ensemble.voter_votes import mix_votes, someone_voted
from fewlabel.ensemble.workbench import Workbench
from fewlabel.selection.policies import Policy
from fewlabel.selection.training_set import TrainingSet
from fewlabel.self_learning import SelfLearningClassifier

# A voter of less weight changes hardly a vote, and costs as much as any. Of many voters each may
# have little, so that it counts beside the heaviest, too.
_LEAST_WEIGHT = 0.01
_LEAST_RELATIVE = 0.1
# Unlabelled rows that a bound is minimised on.
_EVIDENCE_ROWS = 5_000


class VoterRecord(NamedTuple):
    """What is known of one family after the first round; a row of ``voters_``.

    Attributes
    ----------
    name, title : str
    weight : float
        Q(h); 0 if it was left out or too light to count.
    accuracy : float
        Share of labelled rows that held-out votes get right, without rows whose class has no other
        row outside their fold; NaN if there are no others, or if left out. **An estimate** from few
        rows; Q was chosen by the same rows.
    seconds : float
    left_out : str
        Why it has no vote; empty if it has.
    """

    name: str
    title: str
    weight: float
    accuracy: float
    seconds: float
    left_out: str = ""


class MixedVote(ClassifierMixin, BaseEstimator):
    """A majority vote over fitted voters under Q; what ``FewLabelClassifier`` trains.

    Parameters
    ----------
    estimators : list of Voter
    weights : ndarray of shape (n_voters,)
        Q.
    classes : ndarray of shape (n_classes,)
    held_out_votes : ndarray of shape (n_labeled, n_classes), optional
        Votes for the labelled rows by voters that did not see their labels; a row of zeros if
        none could vote.
    """

    def __init__(
        self,
        estimators: list[Voter],
        weights: Floats,
        classes: NDArray[Any],
        held_out_votes: Floats | None = None,
    ) -> None:
        self.estimators = estimators
        self.weights = weights
        self.classes = classes
        self.held_out_votes = held_out_votes

    @property
    def estimators_(self) -> list[Voter]:
        """The voters, as :func:`fewlabel.bounds.votes.vote_matrix` looks for them."""
        return self.estimators

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the classes."""
        return self.classes

    @property
    def held_out_votes_(self) -> Floats | None:
        """As :func:`fewlabel.assess.held_out.held_out_votes` looks for them."""
        return self.held_out_votes

    def predict_proba(self, X: Any) -> Floats:
        """The mixed vote, shape (n_samples, n_classes)."""
        votes: Floats = sum(
            (q * voter.predict_proba(X) for q, voter in zip(self.weights, self.estimators)),
            start=np.zeros(1),
        )
        return votes

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels of the winning classes."""
        return self.classes[self.predict_proba(X).argmax(axis=1)]


class Trained(NamedTuple):
    """A family's first voter, and its votes for the labelled rows without their labels."""

    family: Family
    voter: Voter
    held_out: Floats


class Mixer:
    """Trains mixed votes on one data set: first to learn Q, then again under the same Q.

    Parameters
    ----------
    families : list of Family
    owner : FewLabelClassifier
        Whose settings count; gets ``voters_`` and ``posterior_``.
    seed : int
    """

    def __init__(self, families: list[Family], owner: FewLabelClassifier, seed: int) -> None:
        self.families, self.owner, self.seed = families, owner, seed
        self.vote: MixedVote | None = None
        self.bench: Workbench
        self._kept: dict[str, Floats] = {}

    def train(self, training: TrainingSet) -> MixedVote:
        """A mixed vote of families trained on what is labelled and trusted now."""
        if self.vote is None:
            self.bench = Workbench(
                training.X,
                training.codes,
                len(training.classes),
                self.seed,
                self.owner.n_jobs,
                self.owner.labeled_weight_,
            )
            self.vote = self.mix(self.train_families(training), training.classes)
            return self.vote
        rows, codes, weight = training.sample()
        voters = [
            self.bench.train(family, rows, codes, weight, like=voter) if family.refitted else voter
            for family, voter in zip(self.families, self.vote.estimators)
        ]
        self.vote = MixedVote(voters, self.vote.weights, self.vote.classes)
        return self.vote

    def votes(self, rows: Ints) -> Floats:
        """The current mixed vote for rows of the data set."""
        assert self.vote is not None
        total = np.zeros((len(rows), self.bench.n_classes))
        for q, voter, family in zip(self.vote.weights, self.vote.estimators, self.families):
            if family.refitted:
                total += q * self.bench.vote(voter, family, rows)
            else:
                total += q * self._kept_votes(voter, family)[rows]
        return total

    def _kept_votes(self, voter: Voter, family: Family) -> Floats:
        # A voter that is not refitted votes once, not once a round.
        if family.name not in self._kept:
            every = np.arange(len(self.bench.codes))
            self._kept[family.name] = self.bench.vote(voter, family, every)
        return self._kept[family.name]

    # --- the first round ---

    def train_families(self, training: TrainingSet) -> list[Trained]:
        """Train each family that can serve here on the labelled rows; fill ``voters_``."""
        bench, owner = self.bench, self.owner
        rows, codes, weight = training.sample()
        max_train = owner.max_train or len(training.codes)
        trained = []
        owner.voters_ = []
        for family in self.families:
            start = time.perf_counter()
            accuracy = float("nan")
            why = bench.reason_to_leave_out(family, owner.time_budget, max_train)
            if not why:
                try:
                    voter = bench.train(family, rows, codes, weight)
                    bench.vote(voter, family, rows[:1])  # what has learned may still fail here
                    held_out = bench.held_out(family, voter)
                except CANNOT_LEARN as error:
                    why = f"it cannot learn from these rows ({str(error).rstrip('.')})"
                else:
                    accuracy = bench.accuracy(held_out)
                    trained.append(Trained(family, voter, held_out))
            seconds = time.perf_counter() - start
            record = VoterRecord(family.name, family.title, 0.0, accuracy, seconds, why)
            owner.voters_.append(record)
            owner._tell(record)
        if not trained:
            reasons = "; ".join(f"{r.title}: {r.left_out}" for r in owner.voters_)
            raise ValueError(f"No family of voters could be trained. {reasons}")
        return trained

    def mix(self, trained: list[Trained], classes: NDArray[Any]) -> MixedVote:
        """Learn Q, and keep the voters that have weight."""
        posterior = self._learn_q(trained)
        weights = _without_light(posterior.weights)
        self.owner.posterior_ = replace(posterior, weights=weights)
        by_name = {t.family.name: float(q) for t, q in zip(trained, weights)}
        self.owner.voters_ = [
            record._replace(weight=by_name.get(record.name, 0.0)) for record in self.owner.voters_
        ]
        each = np.stack([t.held_out for t in trained])
        held_out = mix_votes(weights, each)
        held_out[~someone_voted(weights, each)] = 0.0
        heavy = [t for t, q in zip(trained, weights) if q > 0]
        self.families = [t.family for t in heavy]
        return MixedVote([t.voter for t in heavy], weights[weights > 0], classes, held_out)

    def _learn_q(self, trained: list[Trained]) -> Posterior:
        bench, owner = self.bench, self.owner
        unlabeled = None
        sample = np.sort(bench.unlabeled_at_random[:_EVIDENCE_ROWS])
        if owner.posterior not in ("uniform", "gibbs") and len(sample):
            unlabeled = np.stack([bench.vote(t.voter, t.family, sample) for t in trained])
        held_out = np.stack([t.held_out[bench.judges] for t in trained])
        y = bench.codes[bench.labeled[bench.judges]]
        evidence = VoterVotes(held_out, y, unlabeled)
        return learn_posterior(owner.posterior, evidence, temperature=owner.temperature)


def _without_light(weights: Floats) -> Floats:
    """Q without the voters that hardly count."""
    least = min(_LEAST_WEIGHT, _LEAST_RELATIVE * weights.max())
    kept = np.where(weights < least, 0.0, weights)
    return kept / kept.sum()


class FewLabelClassifier(SelfLearningClassifier):
    r"""Learn from few labels with voters of several families, without anything to tune.

    Random forest, extra trees, SVM, discriminant analysis, semi-supervised SVM and LDA, and label
    spreading vote together. The weight of each is learned from the labelled rows by cross-fitting;
    then up to two rounds of self-learning (Algorithm 1) let the mixed vote teach the families,
    with thresholds from the paper's bound.

    Parameters
    ----------
    voters : "default" or list, default="default"
        Families by name (``fewlabel.ensemble.families.FAMILIES``), classifiers, or pairs
        (name, classifier). A classifier gets the rows as they are; put a pipeline around it if
        it wants them scaled. It gets codes 0, 1, … for the classes, also in parameters that name
        classes.
    posterior : {"gibbs", "uniform", "second-order", "c-bound"}, default="gibbs"
        How Q is learned, see :func:`fewlabel.ensemble.posterior.learn_posterior`.
    temperature : float, default=3.0
        How sharply Q follows the held-out errors.
    time_budget : float or None, default=600
        Seconds that a family may take for one training and its votes. With more than 20,000 rows
        a short trial estimates it, and slower families are left out with a warning. None: no limit.
    policy, label_proba, pseudo_weight, min_gain : as in :class:`SelfLearningClassifier`
    max_iter : int or None, default=2
    max_train : int or None, default=5000
        Trusted rows that the families are trained on again.
    missing_label, n_jobs, verbose, random_state : as in :class:`SelfLearningClassifier`
    callback : callable, optional
        Called with a dict when something is complete: first for each family (the fields of
        :class:`VoterRecord`, weights still 0), then for each round (an entry of ``history_``).

    Attributes
    ----------
    posterior_ : fewlabel.ensemble.posterior.Posterior
        Q over the families that were trained (``weights``), and its divergence from the prior
        (``kl``).
    voters_ : list of VoterRecord
        Every family: weight, held-out accuracy, seconds, and why it was left out if it was.
        ``pandas.DataFrame(clf.voters_)`` shows it as a table.
    estimator_, initial_estimator_ : MixedVote
    classes_, transduction_, thresholds_, history_, risk_bound_, ... :
        as in :class:`SelfLearningClassifier`

    Notes
    -----
    For rows of ``fit``, label spreading votes by its graph; for new rows, by the mean of their
    nearest neighbours among the rows of ``fit``.

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

    _parameter_constraints: dict[str, list[Any]] = {
        **{
            name: constraint
            for name, constraint in SelfLearningClassifier._parameter_constraints.items()
            if name != "estimator"
        },
        "voters": [str, list, tuple],
        "posterior": [StrOptions(set(get_args(Method)))],
        "temperature": [Interval(Real, 0, None, closed="left")],
        "time_budget": [Interval(Real, 0, None, closed="left"), None],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        voters: Any = "default",
        *,
        posterior: Method = "gibbs",
        temperature: float = 3.0,
        time_budget: float | None = 600.0,
        policy: str | Policy = "bound",
        label_proba: str | ArrayLike = "supervised",
        pseudo_weight: str = "balanced",
        max_iter: int | None = 2,
        min_gain: float = 0.01,
        max_train: int | None = 5_000,
        missing_label: Any = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callable[[dict[str, Any]], object] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(
            policy=policy,
            label_proba=label_proba,
            pseudo_weight=pseudo_weight,
            max_iter=max_iter,
            min_gain=min_gain,
            max_train=max_train,
            missing_label=missing_label,
            n_jobs=n_jobs,
            verbose=verbose,
            callback=callback,
            random_state=random_state,
        )
        self.voters = voters
        self.posterior = posterior
        self.temperature = temperature
        self.time_budget = time_budget

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:  # type: ignore[override]
        """Learn from labelled and unlabelled rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of numbers, shape (n_samples, n_features)
            NaN is filled with the median for families that need it.
        y : array-like of shape (n_samples,)
            Labels, with unlabelled rows marked (see ``missing_label``).
        sample_weight : array-like of shape (n_samples,), optional
            For the families that take weights. A labelled row of weight 0 is as if it had no label
            (no family learns it, nor is judged by it); others count alike in errors, calibration
            and bounds, whatever their weights.
        """
        if sample_weight is not None and not np.any(np.asarray(sample_weight)):
            raise ValueError("sample_weight is zero for every row: give some rows weight.")
        return super().fit(X, y, sample_weight)

    def _checked_rows(self, X: Any, *, reset: bool) -> Any:
        return validate_data(
            self,
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan",
            reset=reset,
        )

    def _base_estimator(self, seed: int) -> Mixer:
        return Mixer(families_of(self.voters), self, seed)

    def _train(self, training: TrainingSet, base: Mixer) -> MixedVote:
        return base.train(training)

    def _vote(self, training: TrainingSet, base: Mixer, rows: Ints) -> Floats:
        return base.votes(rows)

    def _tell(self, record: VoterRecord) -> None:
        if self.callback is not None:
            self.callback(record._asdict())
        if record.left_out:
            warnings.warn(f"{record.title} is left out: {record.left_out}.", stacklevel=2)
        elif self.verbose:
            sys.stdout.write(
                f"[FewLabelClassifier] {record.title}: held-out accuracy {record.accuracy:.3f} "
                f"({record.seconds:.1f} s)\n"
            )

    # --- scikit-learn ---

    def get_metadata_routing(self) -> Any:
        """No metadata is passed on."""
        return BaseEstimator.get_metadata_routing(self)

    def __sklearn_tags__(self) -> Any:
        tags = ClassifierMixin.__sklearn_tags__(self)
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags
