"""Trains families of voters on one data set, and makes their votes, held-out ones too."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import RandomForestClassifier
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
    NoOutOfBagVoteError,
    cross_fit,
    folds_of,
    out_of_bag_votes,
    rows_with_weight,
    seen_in_training,
    weight_params,
)
from fewlabel.baselines._base import SemiSupervisedClassifier
from fewlabel.bounds.votes import vote_matrix
from fewlabel.ensemble.families import FAMILIES, OPTIONAL, OURS, Family, RangeScaler, Voter

N_VECTORS = 100  # as many as a text gets in a table with other columns
TRIED_ROWS = 2_000
"""Unlabelled rows of the trial that tells how long a family would take."""
TRIED_COLUMNS = 1_000
"""Columns of it; all families take time in proportion to them."""
ALWAYS_FAST = 20_000
FEW_CELLS = 4_000_000
"""With no more rows and cells than this, every family is fast enough and none is timed."""
ROWS_A_SECOND = 200
CELLS_A_SECOND = 100_000
"""Nor is a default family on a tall table with no more rows and cells for each second allowed."""

_TEACHERS = frozenset(family.teacher for family in FAMILIES.values() if family.teacher)
_T = TypeVar("_T")


@contextmanager
def _quiet() -> Iterator[None]:
    """Without warnings that say nothing to who cannot change our families."""
    with warnings.catch_warnings():
        # Where a family stops: its held-out error, hence its weight, is that of the voter as it is.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # The covariance of a class with one row: LDA shrinks it.
        warnings.filterwarnings("ignore", message="Only one sample available")
        yield


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
        self._teachers: dict[Any, Any] = {}
        self._in_threads = False
        self._is_trial = False  # few rows, which tell the time and nothing else

    def view_of(self, family: Family) -> tuple[Any, Any]:
        """The scaler of a family, and all rows as it makes them.

        A family that needs dense rows gets singular vectors of sparse ones.
        """
        is_sparse = issparse(self.X)
        if family.sparse or not is_sparse:
            return self.view(family.scaling)
        key = f"vectors, {family.scaling}"
        if key not in self._views:
            n_components = min(N_VECTORS, min(self.X.shape) - 1)
            vectors = TruncatedSVD(max(n_components, 1), random_state=self.seed)
            scaler = make_pipeline(vectors, StandardScaler())
            self._views[key] = scaler, scaler.fit_transform(self.X)
        return self._views[key]

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

    def run(self, tasks: Sequence[Callable[[], _T]], families: Sequence[Family]) -> Iterator[_T]:
        """Results of tasks, one for each family and in their order; ours run in parallel."""
        ours = [task for task, family in zip(tasks, families) if family.name in OURS]
        if effective_n_jobs(self.n_jobs) == 1 or len(ours) < 2:
            yield from (task() for task in tasks)
            return
        for family in families:
            self.view_of(family)
        self._in_threads = True  # what is ignored is ignored by all threads of a process
        try:
            with _quiet():
                parallel = Parallel(n_jobs=self.n_jobs, backend="threading")
                done = iter(parallel(delayed(task)() for task in ours))
        finally:
            self._in_threads = False
        for task, family in zip(tasks, families):
            yield next(done) if family.name in OURS else task()

    def train(
        self,
        family: Family,
        rows: Ints,
        codes: Ints,
        weight: Floats | None = None,
        *,
        like: Voter | None = None,
        held_out: bool = False,
    ) -> Voter:
        """Fit a voter on rows with these codes.

        ``like`` may lend what needs no labels; ``held_out``: it only judges its family.
        """
        with nullcontext() if self._in_threads or family.name not in OURS else _quiet():
            return self._train(family, rows, codes, weight, like, held_out)

    def _train(
        self,
        family: Family,
        rows: Ints,
        codes: Ints,
        weight: Floats | None,
        like: Voter | None,
        held_out: bool,
    ) -> Voter:
        scaler, X = self.view_of(family)
        model, power = family.make(self.seed, self.n_jobs), like.power if like else 1.0
        if held_out and family.held_out:
            model.set_params(**family.held_out)
        key = _key(family.name, rows, codes, weight, held_out)
        if family.teacher:
            model.metric.teacher = self._teacher(family.teacher, rows, codes, weight, held_out)
        params = weight_params(model, weight)
        if weight is not None and not params:
            # An estimator that takes no weights must not see rows of weight 0.
            rows, codes = rows[weight > 0], codes[weight > 0]
        if not isinstance(model, SemiSupervisedClassifier):
            model.fit(take_rows(X, rows), codes, **params)
        elif family.graph and like is not None:
            model = self._graph_anew(family, model, X, rows, codes, like)
        else:
            use, target = self._seen(family, rows, held_out), self._target(rows, codes)
            model.fit(
                X if use is None else take_rows(X, use), target if use is None else target[use]
            )
            # Where few rows are unlabelled, chance alone may keep a class from them.
            judged = not held_out and not self._is_trial
            if family.teacher and judged and len(self.unlabeled_at_random) > len(rows):
                model.require_reach()
        if family.name in _TEACHERS:
            self._teachers[key] = model
        return Voter(family.name, scaler, model, self.n_classes, power)

    def _target(self, rows: Ints, codes: Ints) -> Ints:
        target = np.full(len(self.codes), UNLABELED)
        target[rows] = codes
        return target

    def _graph_anew(
        self, family: Family, model: Any, X: Any, rows: Ints, codes: Ints, like: Voter
    ) -> Any:
        """The graph of a later round, over the rows that carried the first one."""
        use, target = self._carriers(like.model), self._target(rows, codes)
        if not family.teacher:
            return like.model.respread(target[use])
        # Pseudo-labels have taught the metric; the given labels spread.
        target[np.setdiff1d(rows, self.labeled)] = UNLABELED
        return model.fit(take_rows(X, use), target[use])

    def _teacher(
        self, name: str, rows: Ints, codes: Ints, weight: Floats | None, held_out: bool
    ) -> Any:
        """The model of a family that was trained on these rows, in the vote if it was."""
        key = _key(name, rows, codes, weight, held_out)
        if key not in self._teachers:
            self._train((FAMILIES | OPTIONAL)[name], rows, codes, weight, None, held_out)
        return self._teachers[key]

    def _seen(self, family: Family, rows: Ints, held_out: bool) -> Ints | None:
        """Rows that a transductive family sees, of which ``rows`` have labels; None: all."""
        limits = [family.learns_from, family.held_out_rows if held_out else None]
        most = min((n for n in limits if n is not None), default=None)
        if most is None or most >= len(self.unlabeled_at_random):
            return None
        sample = self.unlabeled_at_random[:most]
        # Labelled rows first, whatever was sampled; each row once.
        return np.concatenate([self.labeled if family.graph else rows, np.setdiff1d(sample, rows)])

    def _carriers(self, model: Any) -> Ints:
        """Rows that a graph was made of."""
        n = len(model.label_distributions_)
        if n == len(self.codes):
            return np.arange(n)
        sample = self.unlabeled_at_random[: n - len(self.labeled)]
        return np.concatenate([self.labeled, np.sort(sample)])

    def vote(self, voter: Voter, family: Family, rows: Ints) -> Floats:
        """A voter's votes for rows of this data set."""
        if not voter.transductive:
            return vote_matrix(_OnScaled(voter), RowView(self.view_of(family)[1], rows))
        known = voter.model.label_distributions_
        if len(known) == len(self.codes):
            return voter.finish(known[rows])
        place = np.full(len(self.codes), -1)
        place[self._carriers(voter.model)] = np.arange(len(known))
        place, votes = place[rows], np.empty((len(rows), self.n_classes))
        votes[place >= 0] = voter.finish(known[place[place >= 0]])
        others = RowView(self.view_of(family)[1], rows[place < 0])
        if len(others):
            votes[place < 0] = vote_matrix(_OnScaled(voter), others)
        return votes

    def held_out(self, family: Family, voter: Voter) -> Floats:
        """Votes for the labelled rows that did not see their labels; they calibrate the voter."""
        votes, codes = self._held_out(family, voter), self.codes[self.labeled]
        voted = votes.any(axis=1)
        if family.calibrated and voted.any():
            voter.power = calibration_power(votes[voted], codes[voted])
            votes[voted] = calibrated(votes[voted], voter.power)
        return votes

    def _held_out(self, family: Family, voter: Voter) -> Floats:
        rows, weight = self.labeled[self.scored], self.scored_weight
        codes = self.codes[rows]
        votes = np.zeros((len(self.labeled), self.n_classes))
        if len(rows) == len(self.labeled):
            found = self._without_training(voter)
            if found is not None:
                votes[:] = found
                votes[~seen_in_training(codes, self.folds)] = 0.0
                return votes

        def vote(train: Ints, test: Ints) -> Floats:
            of_train = None if weight is None else weight[train]
            try:
                part = self.train(family, rows[train], codes[train], of_train, held_out=True)
                return self.vote(part, family, rows[test])
            except CANNOT_LEARN:  # a fold that a family cannot learn from counts as wrong
                return np.zeros((len(test), self.n_classes))

        # The same folds for every family: errors on the same rows, from training sets of the same
        # rows, differ less by chance.
        votes[self.scored] = cross_fit(vote, codes, self.n_classes, self.folds)
        return votes

    def _without_training(self, voter: Voter) -> Floats | None:
        """Held-out votes of a model that needs no further fit for them, or None."""
        if hasattr(voter.model, "held_out_votes"):
            return voter.finish(voter.model.held_out_votes(self.folds))
        if self.scored_weight is not None or not isinstance(voter.model, RandomForestClassifier):
            return None
        try:
            rows = take_rows(self.view("none")[1], self.labeled)
            return voter.finish(out_of_bag_votes(voter.model, rows))
        except NoOutOfBagVoteError:
            return None

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
        if issparse(self.X) and not family.sparse and np.isnan(self.X.data).any():  # type: ignore[attr-defined]
            return "it needs dense rows, or sparse ones without gaps"
        limits = (
            (family.most_classes, self.n_classes, "classes"),
            (family.most_features, self.X.shape[1], "features"),
            (family.most_labeled, len(self.labeled), "labelled rows"),
        )
        for most, number, what in limits:
            if most is not None and number > most:
                return f"it is made for at most {most:,} {what}, not {number:,}"
        if seconds is None or self._is_fast(family, seconds):
            return ""
        expected = self._expected_seconds(family, max_train)
        if expected > seconds:
            return f"it would take about {expected:.0f} s, more than the {seconds:.0f} s allowed"
        return ""

    def _is_fast(self, family: Family, seconds: float) -> bool:
        """Whether a trial would take longer than it may save."""
        n_cells: int = self.X.nnz if issparse(self.X) else self.X.size  # type: ignore[attr-defined]
        n, n_columns = self.X.shape
        if n <= ALWAYS_FAST and n_cells <= FEW_CELLS:
            return True
        tall = n <= ROWS_A_SECOND * seconds and n_columns <= TRIED_COLUMNS
        return FAMILIES.get(family.name) is family and tall and n_cells <= CELLS_A_SECOND * seconds

    def _expected_seconds(self, family: Family, max_train: int) -> float:
        """Time of a fit, its cross-fitting and its votes, by a trial on few rows and columns."""
        few = np.sort(self.unlabeled_at_random[:TRIED_ROWS])
        rows = np.concatenate([self.labeled, few])
        X, wider = take_rows(self.X, rows), max(1.0, self.X.shape[1] / TRIED_COLUMNS)
        if wider > 1.0:
            columns = np.random.default_rng(self.seed).permutation(self.X.shape[1])
            X = X[:, np.sort(columns[:TRIED_COLUMNS])]
        small = FamilyTrainer(X, self.codes[rows], self.n_classes, self.seed, self.n_jobs)
        small.view_of(family)
        small._is_trial = True
        start = perf_counter()
        try:
            voter = small.train(family, small.labeled, small.codes[small.labeled])
            fitted = perf_counter()
            small.vote(voter, family, np.flatnonzero(small.codes == UNLABELED))
        except CANNOT_LEARN:
            return 0.0  # the real fit will say what is wrong
        voted = perf_counter()
        growth, in_fit, in_votes = n_rows(self.X) / len(rows), 1.0, 1.0
        if voter.transductive:
            seen = self._seen(family, self.labeled, held_out=False)
            in_fit = in_votes = (n_rows(self.X) if seen is None else len(seen)) / len(rows)
        if family.graph:
            # The more rows, the more cells are looked into. A learned metric is learned again.
            in_fit, in_votes = in_fit**1.5 * (1 + bool(family.teacher)), 1.0
        # A machine over its support vectors votes more slowly the more rows it was trained on.
        if hasattr(voter.model, "support_vectors_"):
            in_votes = max(1.0, max_train / len(self.labeled))
        # Held-out fits see as few unlabelled rows as the trial.
        fits = (fitted - start) * (in_fit + N_FOLDS)
        return wider * (fits + (voted - fitted) * growth * in_votes)


def _key(name: str, rows: Ints, codes: Ints, weight: Floats | None, held_out: bool) -> Any:
    weights = None if weight is None else weight.tobytes()
    return name, rows.tobytes(), codes.tobytes(), weights, held_out


class _OnScaled:
    """A voter that is shown rows which are scaled already."""

    def __init__(self, voter: Voter) -> None:
        self.predict_proba: Callable[[Any], NDArray[Any]] = voter.votes
