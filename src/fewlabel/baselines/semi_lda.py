r"""Semi-LDA: linear discriminant analysis by maximum contrastive pessimistic likelihood.

With :math:`\theta` = (class priors, class means, shared covariance), soft labels q of the
unlabelled rows (those of the labelled rows are fixed) and :math:`\theta_{sup}` the supervised
estimate, solve

.. math::
    \max_\theta \min_q\ \mathcal L(\theta\mid q) - \mathcal L(\theta_{sup}\mid q),\qquad
    \mathcal L(\theta\mid q) = \sum_x \sum_c q_c(x) \log p(x, c\mid\theta).

The labels q are as unfavourable as they can be, so the solution is at least as likely as the
supervised one **whatever** the true labels are: the inner minimum at :math:`\theta_{sup}` is 0.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning

from fewlabel._core.arrays import Floats
from fewlabel._core.scikit import Interval, StrOptions
from fewlabel._core.targets import UNLABELED
from fewlabel.baselines._base import Codes, SemiSupervisedClassifier, as_decision
from fewlabel.baselines._wide import row_basis, spherical_shrinkage

_LARGEST_SHRINKAGE = 0.99
_FIRST_STEP = 0.01


@dataclass(frozen=True)
class LDAModel:
    r"""Parameters :math:`\theta` of a linear discriminant analysis."""

    priors: Floats  # (K,)
    means: Floats  # (K, d)
    covariance: Floats  # (d, d)

    def discriminants(self) -> tuple[Floats, Floats]:
        """Coefficients (d, K) and intercepts of log p(x, c | θ), up to a term common to all c."""
        coef = cho_solve(cho_factor(self.covariance), self.means.T)
        return coef, np.log(self.priors) - 0.5 * np.einsum("kd,dk->k", self.means, coef)


def weighted_lda(
    class_weight: Floats, class_sum: Floats, scatter: Floats, *, strength: float, variance: float
) -> LDAModel:
    r"""The maximiser of the likelihood for given soft labels, from their sufficient statistics.

    With :math:`\nu` = ``strength`` the likelihood is penalised by
    :math:`-\tfrac\nu2(\log\det\Sigma + v\,\mathrm{tr}\,\Sigma^{-1})`, as if :math:`\nu` more rows
    with independent features of variance v = ``variance`` had been seen.

    Parameters
    ----------
    class_weight : ndarray of shape (n_classes,)
        :math:`\sum_x q_c(x)`.
    class_sum : ndarray of shape (n_classes, n_features)
        :math:`\sum_x q_c(x)\,x`.
    scatter : ndarray of shape (n_features, n_features)
        :math:`\sum_x x x^\top`; it does not depend on q.
    """
    total = class_weight.sum()
    means = class_sum / class_weight[:, None]
    within = scatter - means.T @ class_sum
    within[np.diag_indices_from(within)] += strength * variance
    return LDAModel(class_weight / total, means, within / (total + strength))


def project_to_simplex(rows: Floats) -> Floats:
    """The nearest probability distribution to each row, in the Euclidean sense.

    Examples
    --------
    >>> project_to_simplex(np.array([[0.5, 0.5, -3.0], [2.0, 0.0, 0.0]])).tolist()
    [[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]
    """
    descending = -np.sort(-rows, axis=1)
    excess = (descending.cumsum(axis=1) - 1.0) / np.arange(1, rows.shape[1] + 1)
    # The support is a prefix of the sorted row: the last place where the entry exceeds the shift.
    last = (descending > excess).sum(axis=1) - 1
    return np.maximum(rows - excess[np.arange(len(rows)), last][:, None], 0.0)


class _DecreasingStep:
    """α/√t at iteration t."""

    def __init__(self, rate: float) -> None:
        self._rate, self._iteration = rate, 0

    def __call__(self, q: Floats, gradient: Floats) -> float:
        self._iteration += 1
        return self._rate / math.sqrt(self._iteration)


class _AdaptiveStep:
    """Barzilai and Borwein's step: the inverse curvature along the last move."""

    def __init__(self) -> None:
        self._step = _FIRST_STEP
        self._last: tuple[Floats, Floats] | None = None

    def __call__(self, q: Floats, gradient: Floats) -> float:
        # The gradient is known up to a constant in each row, and moves of q sum to 0 in each row.
        if self._last is not None:
            move, change = q - self._last[0], gradient - self._last[1]
            curvature = float(np.vdot(move, change))
            # Convexity makes it non-negative; 0 means the move changed nothing that matters.
            longer = 2.0 * self._step
            self._step = float(np.vdot(move, move)) / curvature if curvature > 0 else longer
        self._last = (q, gradient)
        return self._step


class SemiLDAClassifier(SemiSupervisedClassifier):
    r"""Linear discriminant analysis by maximum contrastive pessimistic likelihood.

    Alternates the closed-form estimate for given soft labels q with a step of q against the
    gradient :math:`\log p(x,c\mid\theta) - \log p(x,c\mid\theta_{sup})`, projected back on the
    simplex; the objective is in the module's docstring. The largest value over :math:`\theta` is
    convex in q, so there is one optimum, and its distance is known (``gap_``).

    Features are divided by their standard deviation over all rows: their units do not matter.

    Parameters
    ----------
    learning_rate : "adaptive" or float, default="adaptive"
        Step of q. A number :math:`\alpha` gives the steps :math:`\alpha/\sqrt t` of iteration t;
        "adaptive" takes them from the curvature met on the way and usually needs under 100.
    max_iter : int, default=1000
    tol : float, default=1e-3
        Stop when the objective is within this many nats per unlabelled row of its optimum.
    shrinkage : "auto" or float in [0, 1), default="auto"
        Weight of the spherical covariance in the supervised estimate; needed when there are fewer
        labelled rows than features. "auto" is Ledoit and Wolf's value for the labelled rows. In the
        semi-supervised estimate it counts as the same number of pseudo-rows,
        :math:`\nu = l s/(1-s)`, among all rows, so the guarantee holds for the likelihood with
        that prior.
    missing_label : object, default="auto"
        What marks an unlabelled row; "auto" takes -1, NaN, None and pd.NA.
    verbose : int, default=0
        Print the gap from time to time.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    model_, supervised_model_ : LDAModel
        :math:`\theta` and :math:`\theta_{sup}`, in units of the features' standard deviations;
        with more features than rows, in an orthonormal basis of what the rows span.
    coef_ : ndarray of shape (n_classes, n_features)
    intercept_ : ndarray of shape (n_classes,)
    label_distributions_ : ndarray of shape (n_samples, n_classes)
        The pessimistic labels q (the given ones for labelled rows). They are *not* predictions.
    gap_ : float
        Upper bound of the distance to the optimum, in nats per unlabelled row.
    worst_case_gain_ : float
        :math:`\min_q` of the objective at ``model_``. If it is not negative, the model is certainly
        at least as likely as the supervised one on the true labels (prior included).
    shrinkage_ : float
    transduction_ : ndarray of shape (n_samples,)
        Given labels of the labelled rows, predicted ones of the others.
    n_iter_ : int

    See Also
    --------
    FewLabelClassifier : This and other families vote together.

    References
    ----------
    .. [1] M. Loog, "Contrastive pessimistic likelihood estimation", IEEE TPAMI 38, 2016.
    .. [2] O. Ledoit and M. Wolf, "A well-conditioned estimator of covariance matrices", 2004.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(-2, 1, (50, 2)), rng.normal(2, 1, (50, 2))])
    >>> y = np.full(100, -1)
    >>> y[:3], y[50:53] = 0, 1
    >>> clf = SemiLDAClassifier().fit(X, y)
    >>> clf.predict([[-2, -2], [2, 2]]).tolist(), clf.worst_case_gain_ > 0
    ([0, 1], True)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "learning_rate": [StrOptions({"adaptive"}), Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "shrinkage": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="left")],
        "missing_label": "no_validation",
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        learning_rate: str | float = "adaptive",
        *,
        max_iter: int = 1000,
        tol: float = 1e-3,
        shrinkage: str | float = "auto",
        missing_label: object = "auto",
        verbose: int = 0,
    ) -> None:
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.tol = tol
        self.shrinkage = shrinkage
        self.missing_label = missing_label
        self.verbose = verbose

    def _fit(self, X: Floats, codes: Codes) -> Floats:
        center, scale = X.mean(axis=0), X.std(axis=0)
        # A constant feature is 0 after centring and plays no part; its mean is rounded.
        constant = np.ptp(X, axis=0) == 0.0
        center[constant], scale[constant] = X[0, constant], 1.0
        Z = (X - center) / scale
        n_rows, n_features = Z.shape
        # The rows span n directions at most; in all others the estimate is the prior's variance.
        basis = row_basis(Z) if n_features > n_rows else None
        Z = Z if basis is None else Z @ basis
        self._n_null = n_features - Z.shape[1]
        self.supervised_model_, strength, variance = self._supervised(Z, codes)
        problem = _Contrast(
            Z, codes, self.supervised_model_, strength, variance, n_null=self._n_null
        )
        q = self._descend(problem)
        self.label_distributions_ = problem.full_labels(q)
        coef, intercept = self.model_.discriminants()
        coef = coef if basis is None else basis @ coef
        self.coef_ = coef.T / scale
        self.intercept_ = intercept - self.coef_ @ center
        return self._scores(X)

    def _supervised(self, Z: Floats, codes: Codes) -> tuple[LDAModel, float, float]:
        labeled = Z[codes != UNLABELED]
        onehot = np.eye(len(self.classes_))[codes[codes != UNLABELED]]
        class_weight, class_sum = onehot.sum(axis=0), onehot.T @ labeled
        residuals = labeled - onehot @ (class_sum / class_weight[:, None])
        n_features = Z.shape[1] + self._n_null
        variance = float((residuals**2).sum() / (len(residuals) * n_features))
        self.shrinkage_ = self._shrinkage(residuals, variance, n_features)
        strength = len(labeled) * self.shrinkage_ / (1.0 - self.shrinkage_)
        # Where no class has two labelled rows, nothing is known of the spread within classes.
        variance = variance if variance > 0.0 else 1.0
        model = weighted_lda(
            class_weight, class_sum, labeled.T @ labeled, strength=strength, variance=variance
        )
        try:
            model.discriminants()
        except LinAlgError:
            raise ValueError(
                f"The covariance of the {len(labeled)} labelled rows in {Z.shape[1]} features is "
                f"singular with shrinkage={self.shrinkage!r}. Use shrinkage='auto' or a value "
                f"between 0 and 1."
            ) from None
        return model, strength, variance

    def _shrinkage(self, residuals: Floats, variance: float, n_features: int) -> float:
        if self.shrinkage != "auto":
            return float(self.shrinkage)
        if variance == 0.0:
            return 0.5
        return min(spherical_shrinkage(residuals, n_features), _LARGEST_SHRINKAGE)

    def _descend(self, problem: _Contrast) -> Floats:
        rate = self.learning_rate
        step = _AdaptiveStep() if isinstance(rate, str) else _DecreasingStep(rate)
        q, best = problem.initial_labels(), np.inf
        for iteration in range(1, self.max_iter + 1):
            model, gradient, gap = problem.evaluate(q)
            if gap < best:  # the steps are not monotone: the best model seen is the result
                best, best_q, self.model_ = gap, q, model
            if iteration & (iteration - 1) == 0:
                self._log(f"iteration {iteration}: gap {gap:.3g} nats per unlabelled row")
            if gap <= self.tol:
                break
            q = project_to_simplex(q - step(q, gradient) * gradient)
        self.gap_, self.n_iter_ = best, iteration
        self.worst_case_gain_ = problem.worst_case_gain(self.model_)
        if best > self.tol:
            warnings.warn(
                f"Semi-LDA stopped after max_iter={self.max_iter} iterations with a gap of "
                f"{best:.3g} nats per unlabelled row (tol={self.tol}). Increase max_iter or tol, "
                f"or use learning_rate='adaptive'.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return best_q

    def _scores(self, X: Floats) -> Floats:
        return X @ self.coef_.T + self.intercept_

    def decision_function(self, X: Any) -> Floats:
        """Log of p(x, c), up to a term common to all classes; for two classes the log odds.

        Returns
        -------
        scores : ndarray of shape (n_samples,) for two classes, else (n_samples, n_classes)
        """
        return as_decision(self._checked_scores(X))

    def predict_proba(self, X: Any) -> Floats:
        """Posterior probabilities of the classes under the fitted model.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
        """
        return softmax(self._checked_scores(X), axis=1)


class _Contrast:
    """The contrastive likelihood of one data set as a function of the soft labels q."""

    def __init__(
        self,
        Z: Floats,
        codes: Codes,
        supervised: LDAModel,
        strength: float,
        variance: float,
        *,
        n_null: int = 0,
    ) -> None:
        is_labeled = codes != UNLABELED
        self._codes, self._onehot = codes, np.eye(len(supervised.priors))
        onehot = self._onehot[codes[is_labeled]]
        self._unlabeled = Z[~is_labeled]
        self._labeled_weight, self._labeled_sum = onehot.sum(axis=0), onehot.T @ Z[is_labeled]
        self._scatter = Z.T @ Z
        self._strength, self._variance = strength, variance
        self._n_null = n_null
        self._supervised = supervised
        coef, intercept = supervised.discriminants()
        self._supervised_scores = self._unlabeled @ coef + intercept

    def initial_labels(self) -> Floats:
        return softmax(self._supervised_scores, axis=1)

    def full_labels(self, q: Floats) -> Floats:
        full = self._onehot[self._codes]
        full[self._codes == UNLABELED] = q
        return full

    def evaluate(self, q: Floats) -> tuple[LDAModel, Floats, float]:
        """The best model for q, the gradient in q (up to a constant in each row), the gap.

        The gap is the objective at (θ, q) less its minimum over q, per row: an upper and a lower
        bound of the value at the optimum. Both only need the gradient up to a constant in each row,
        and so does the projection: the terms of log p(x, c) without c are never computed.
        """
        model = weighted_lda(
            self._labeled_weight + q.sum(axis=0),
            self._labeled_sum + q.T @ self._unlabeled,
            self._scatter,
            strength=self._strength,
            variance=self._variance,
        )
        gradient = self._gradient(model)
        if len(q) == 0:
            return model, gradient, 0.0
        gap = float((np.einsum("ic,ic->i", q, gradient) - gradient.min(axis=1)).mean())
        return model, gradient, gap

    def _gradient(self, model: LDAModel) -> Floats:
        coef, intercept = model.discriminants()
        return self._unlabeled @ coef + intercept - self._supervised_scores

    def worst_case_gain(self, model: LDAModel) -> float:
        """The smallest value over q of L(θ|q) − L(θ_sup|q), prior included."""
        gain = self._common_terms(model) - self._common_terms(self._supervised)
        return gain + float(self._gradient(model).min(axis=1).sum())

    def _common_terms(self, model: LDAModel) -> float:
        # Everything but the discriminants of the unlabelled rows: their common quadratic term, the
        # labelled rows, log det Σ, and the prior of `weighted_lda`.
        n_rows = len(self._codes)
        inverse = cho_solve(cho_factor(model.covariance), np.eye(len(model.covariance)))
        log_det = float(np.linalg.slogdet(model.covariance)[1])
        coef, intercept = model.discriminants()
        value = -0.5 * (n_rows + self._strength) * log_det
        value -= 0.5 * float(np.vdot(inverse, self._scatter))
        value -= 0.5 * self._strength * self._variance * float(np.trace(inverse))
        if self._n_null:
            # Directions that no row has: the covariance there is a multiple of the identity.
            total = (
                len(self._codes) if model is not self._supervised else self._labeled_weight.sum()
            )
            spread = self._strength * self._variance / (total + self._strength)
            value -= 0.5 * (n_rows + self._strength) * self._n_null * math.log(spread)
            value -= 0.5 * self._strength * self._variance * self._n_null / spread
        value += float(self._labeled_weight @ intercept + np.vdot(self._labeled_sum.T, coef))
        return value
