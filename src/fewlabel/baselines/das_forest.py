r"""DAS-RF: a semi-supervised random forest by deterministic annealing.

With :math:`g_c(x) = v(x,c) - \max_{k\ne c} v(x,k)` the margin of class c under the forest's votes v
and a decreasing margin loss :math:`\ell`, each iteration m lowers

.. math::
    \frac1l\sum_{x\in L} \ell\bigl(g_{y}(x)\bigr)
    + \frac{\alpha}{u}\sum_{x\in U}\sum_c p(c\mid x)\,\ell\bigl(g_c(x)\bigr)
    - \frac{T_m}{u} \sum_{x\in U} H\bigl(p(\cdot\mid x)\bigr)

in the labels p of the unlabelled rows, which has the closed form

.. math::
    p^*(c\mid x) \propto \exp\bigl(-\alpha\,\ell(g_c(x))/T_m\bigr),\qquad \ell(g) = e^{-g},

and then in the forest: every tree draws its own labels from :math:`p^*` and is grown again on the
labelled and unlabelled rows. The temperature falls, :math:`T_m = T_0\,\kappa^{m-1}`, so the labels
go from soft to hard.

References
----------
.. [1] C. Leistner, A. Saffari, J. Santner, H. Bischof, "Semi-supervised random forests", ICCV 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state, gen_even_slices

from fewlabel._core.arrays import Floats
from fewlabel._core.scikit import Interval, StrOptions
from fewlabel._core.targets import UNLABELED
from fewlabel.baselines._base import Codes, SemiSupervisedClassifier
from fewlabel.bounds.votes import margin

_LARGEST_SEED = np.iinfo(np.int32).max


def annealed_labels(votes: Floats, *, strength: float, temperature: float) -> Floats:
    r"""The optimal label distribution :math:`p^*(c\mid x)` of the module's docstring.

    Parameters
    ----------
    votes : ndarray of shape (n_samples, n_classes)
    strength : float
        :math:`\alpha`.
    temperature : float
        :math:`T`.

    Returns
    -------
    proba : ndarray of shape (n_samples, n_classes)

    Examples
    --------
    >>> annealed_labels(np.array([[0.6, 0.4]]), strength=0.1, temperature=1e-2).round(2).tolist()
    [[0.98, 0.02]]
    """
    if len(votes) == 0:
        return votes
    energy = (-strength / temperature) * np.exp(-margin(votes))
    proba = np.exp(energy - energy.max(axis=1, keepdims=True))
    return proba / proba.sum(axis=1, keepdims=True)


class DASForestClassifier(SemiSupervisedClassifier):
    r"""Semi-supervised random forest by deterministic annealing.

    The first forest is grown on the labelled rows. Each iteration finds the label distributions of
    the unlabelled rows at the current temperature and grows every tree again on labels drawn from
    them (see the module's docstring).

    If the last forest is worse than the first one on the labelled rows, the first one is the result
    (the *airbag*). As published, "worse" means a higher out-of-bag error. A tree keeps its
    bootstrap sample of the labelled rows in all iterations, so both errors are over the same rows
    and trees; labelled rows that every tree has seen, which happens only in very small forests,
    count in neither. **The later error is optimistic**: a tree that has not seen a labelled row has
    seen unlabelled rows beside it, whose labels come from trees that have. It falls even where the
    accuracy does, so this airbag catches collapse but not decline. ``airbag="cross-fit"`` compares
    the two forests on labelled rows that nothing was trained on.

    Parameters
    ----------
    n_estimators : int, default=200
    temperature : float, default=0.005
        Initial temperature :math:`T_0`.
    cooling : float in (0, 1], default=0.8
        Factor :math:`\kappa` of the temperature after each iteration.
    strength : float, default=0.1
        Weight :math:`\alpha` of the unlabelled rows in the label distributions.
    n_iter : int, default=10
    max_features : {"sqrt", "log2"}, int, float or None, default="sqrt"
        Features tried at each split.
    min_samples_leaf : int, default=1
    airbag : {"oob", "cross-fit"} or None, default="oob"
        How the first and the last forest are compared: by out-of-bag error, or by the error on
        each of 5 folds of the labelled rows after training without its labels, which takes 6 times
        as long. None keeps the last forest.
    random_state : int, RandomState instance or None, default=None
    n_jobs : int, default=None
        Threads that grow trees.
    missing_label : object, default="auto"
        What marks an unlabelled row; "auto" takes -1, NaN, None and pd.NA.
    verbose : int, default=0
        Print the out-of-bag error of each iteration.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    estimators_ : list of DecisionTreeClassifier
        The trees, trained on class codes.
    oob_errors_ : ndarray of shape (n_iter + 1,)
        Out-of-bag error on the labelled rows of the first forest and after each iteration; NaN if
        no labelled row is out of any bag.
    airbag_deployed_ : bool
        Whether the result is the first forest.
    label_distributions_, first_votes_ : ndarray of shape (n_samples, n_classes)
        Votes of the result and of the first forest for the training rows.
    transduction_ : ndarray of shape (n_samples,)
        Given labels of the labelled rows, predicted ones of the others.

    See Also
    --------
    SelfLearningClassifier : Self-learning with thresholds from a bound.

    References
    ----------
    .. [1] C. Leistner, A. Saffari, J. Santner and H. Bischof, "Semi-supervised random forests",
           2009.

    Examples
    --------
    >>> import numpy as np
    >>> from fewlabel import DASForestClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(-2, 1, (50, 2)), rng.normal(2, 1, (50, 2))])
    >>> y = np.full(100, -1)
    >>> y[:3], y[50:53] = 0, 1
    >>> clf = DASForestClassifier(20, n_iter=3, random_state=0).fit(X, y)
    >>> clf.predict([[-2, -2], [2, 2]]).tolist()
    [0, 1]
    """

    _sparse = True
    _dtype = np.float32  # what the trees work on

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "cooling": [Interval(Real, 0, 1, closed="right")],
        "strength": [Interval(Real, 0, None, closed="left")],
        "n_iter": [Interval(Integral, 0, None, closed="left")],
        "max_features": [
            StrOptions({"sqrt", "log2"}),
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
            None,
        ],
        "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
        "airbag": [StrOptions({"oob", "cross-fit"}), None],
        "random_state": ["random_state"],
        "n_jobs": [None, Integral],
        "missing_label": "no_validation",
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_estimators: int = 200,
        *,
        temperature: float = 0.005,
        cooling: float = 0.8,
        strength: float = 0.1,
        n_iter: int = 10,
        max_features: str | int | float | None = "sqrt",
        min_samples_leaf: int = 1,
        airbag: str | None = "oob",
        random_state: Any = None,
        n_jobs: int | None = None,
        missing_label: object = "auto",
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.temperature = temperature
        self.cooling = cooling
        self.strength = strength
        self.n_iter = n_iter
        self.max_features = max_features
        self.min_samples_leaf = min_samples_leaf
        self.airbag = airbag
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.missing_label = missing_label
        self.verbose = verbose

    def _fit(self, X: Any, codes: Codes) -> Floats:
        self._seeds = check_random_state(self.random_state).randint(
            _LARGEST_SEED, size=self.n_estimators
        )
        labeled, unlabeled = np.flatnonzero(codes != UNLABELED), np.flatnonzero(codes == UNLABELED)
        first = trees, votes, error = self._grow(X, codes, labeled, unlabeled, None, iteration=0)
        errors = [error]
        iterations = self.n_iter if len(unlabeled) else 0
        for iteration in range(1, iterations + 1):
            temperature = self.temperature * self.cooling ** (iteration - 1)
            proba = annealed_labels(
                votes[unlabeled], strength=self.strength, temperature=temperature
            )
            trees, votes, error = self._grow(X, codes, labeled, unlabeled, proba, iteration)
            errors.append(error)
            self._log(
                f"iteration {iteration}: temperature {temperature:.3g}, out-of-bag error "
                f"{error:.4f} (first forest {errors[0]:.4f})"
            )
        self.oob_errors_, self.first_votes_ = np.asarray(errors), first[1]
        self.airbag_deployed_ = iterations > 0 and self._is_worse(X, codes, labeled)
        if self.airbag_deployed_:
            self._log("airbag: the error has grown, returning the first forest")
            trees, votes, _ = first
        self.estimators_, self.label_distributions_ = trees, votes
        return votes

    def _is_worse(self, X: Any, codes: Codes, labeled: Codes) -> bool:
        """Whether the last forest errs more than the first one on labelled rows."""
        if self.airbag is None:
            return False
        if self.airbag == "oob":
            return bool(self.oob_errors_[-1] > self.oob_errors_[0])
        excess = 0
        for fold in np.array_split(np.random.default_rng(self._seeds).permutation(labeled), 5):
            masked = codes.copy()
            masked[fold] = UNLABELED
            if not np.isin(codes[fold], masked[labeled]).all():
                raise ValueError(
                    "airbag='cross-fit' needs at least two labelled rows of each class, in "
                    "different folds. Use airbag='oob' or label more rows."
                )
            part = clone(self).set_params(airbag=None, random_state=int(self._seeds[0]))
            part.classes_ = self.classes_
            last = part._fit(X, masked)
            for votes, sign in ((last, 1), (part.first_votes_, -1)):
                excess += sign * int((votes[fold].argmax(axis=1) != codes[fold]).sum())
        return excess > 0

    def _grow(
        self,
        X: Any,
        codes: Codes,
        labeled: Codes,
        unlabeled: Codes,
        proba: Floats | None,
        iteration: int,
    ) -> tuple[list[DecisionTreeClassifier], Floats, float]:
        """All trees anew, their votes for all rows, and their out-of-bag error on labelled rows."""
        # Sparse trees are grown from columns and evaluated on rows.
        columns = X.tocsc() if hasattr(X, "tocsc") else X
        grow = _TreeGrower(X, columns, codes, labeled, unlabeled, proba, iteration, self._tree())
        slices = gen_even_slices(self.n_estimators, effective_n_jobs(self.n_jobs))
        # Growing a tree releases the interpreter lock, so threads do and X is not copied.
        parts = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(grow.many)(self._seeds[part]) for part in slices
        )
        trees = [tree for part, _, _ in parts for tree in part]
        votes = np.sum([part for _, part, _ in parts], axis=0) / self.n_estimators
        out_of_bag = np.sum([part for _, _, part in parts], axis=0)
        seen = out_of_bag.sum(axis=1) > 0
        wrong = out_of_bag[seen].argmax(axis=1) != codes[labeled][seen]
        return trees, votes, float(wrong.mean()) if seen.any() else np.nan

    def _tree(self) -> DecisionTreeClassifier:
        return DecisionTreeClassifier(
            max_features=self.max_features, min_samples_leaf=self.min_samples_leaf
        )

    def _scores(self, X: Any) -> Floats:
        slices = gen_even_slices(len(self.estimators_), effective_n_jobs(self.n_jobs))
        parts = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(_sum_of_votes)(self.estimators_[part], X) for part in slices
        )
        return np.sum(parts, axis=0) / len(self.estimators_)

    def predict_proba(self, X: Any) -> Floats:
        """Class votes: the mean over the trees of the class fractions in the leaves.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
        """
        return self._checked_scores(X)


def _sum_of_votes(trees: list[DecisionTreeClassifier], X: Any) -> Floats:
    total = trees[0].predict_proba(X, check_input=False)
    for tree in trees[1:]:
        total += tree.predict_proba(X, check_input=False)
    return total


@dataclass(frozen=True)
class _TreeGrower:
    """Grows the trees of one iteration."""

    X: Any
    columns: Any  # X again, in the layout that growing needs
    codes: Codes
    labeled: Codes
    unlabeled: Codes
    proba: Floats | None  # label distributions of the unlabelled rows, None for the first forest
    iteration: int
    template: DecisionTreeClassifier

    def many(
        self, seeds: NDArray[np.integer]
    ) -> tuple[list[DecisionTreeClassifier], Floats, Floats]:
        """Trees, the sum of their votes for all rows and of their out-of-bag votes."""
        n_classes = int(self.codes.max()) + 1
        trees = []
        votes = np.zeros((len(self.codes), n_classes))
        out_of_bag = np.zeros((len(self.labeled), n_classes))
        for seed in seeds:
            in_bag = _bootstrap_counts(np.random.default_rng(seed), len(self.labeled))
            tree = self._one(int(seed), in_bag)
            vote = tree.predict_proba(self.X, check_input=False)
            votes += vote
            out_of_bag += vote[self.labeled] * (in_bag == 0)[:, None]
            trees.append(tree)
        return trees, votes, out_of_bag

    def _one(self, seed: int, in_bag: Codes) -> DecisionTreeClassifier:
        rng = np.random.default_rng([seed, self.iteration])
        # Rows out of the bag get weight 0 instead of being left out: each tree then knows every
        # class, and X is not copied.
        weight = np.zeros(len(self.codes))
        weight[self.labeled] = in_bag
        target = self.codes.copy()
        if self.proba is None:
            target[self.unlabeled] = 0  # any class: their weight is 0
        else:
            weight[self.unlabeled] = _bootstrap_counts(rng, len(self.unlabeled))
            target[self.unlabeled] = draw_labels(self.proba, rng)
        tree = clone(self.template).set_params(random_state=int(rng.integers(_LARGEST_SEED)))
        return tree.fit(self.columns, target, sample_weight=weight, check_input=False)


def _bootstrap_counts(rng: np.random.Generator, n: int) -> Codes:
    """How often each of n rows is in a bootstrap sample of n."""
    return np.bincount(rng.integers(n, size=n), minlength=n)


def draw_labels(proba: Floats, rng: np.random.Generator) -> Codes:
    """One class for each row, drawn from the row's distribution."""
    below = proba.cumsum(axis=1) < rng.random((len(proba), 1))
    # Rounding can leave the last cumulative sum under the draw.
    return np.minimum(below.sum(axis=1), proba.shape[1] - 1)
