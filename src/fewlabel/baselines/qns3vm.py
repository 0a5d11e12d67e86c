r"""QN-S3VM: a semi-supervised support vector machine trained by a quasi-Newton method.

For one class against the rest, with labels :math:`y\in\{-1,+1\}`, rows L (labelled, l of them) and
U (unlabelled, u of them) and :math:`f(x) = \langle w, x - m\rangle + b`, it minimises

.. math::
    J(w) = \frac1l\sum_{x\in L} \frac1\gamma\log\bigl(1+e^{\gamma(1 - y f(x))}\bigr)
         + \frac{\lambda'}{u}\sum_{x\in U} e^{-s f(x)^2} + \lambda\lVert w\rVert^2,
    \qquad \gamma = 20,\ s = 3,

where m is the mean of the unlabelled rows and b the mean of the labels: the mean output on U then
equals the labelled balance for every w (the balancing constraint). The second term, which drives
the boundary away from the unlabelled rows, is not convex: :math:`\lambda'` is raised step by step
from 0 and each step starts where the last one ended (annealing).

References
----------
.. [1] F. Gieseke, A. Airola, T. Pahikkala, O. Kramer, "Fast and simple gradient-based optimization
   for semi-supervised support vector machines", Neurocomputing 123, 2014.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_softmax, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state

from fewlabel._core.arrays import Floats
from fewlabel._core.scikit import Interval, StrOptions
from fewlabel._core.targets import UNLABELED
from fewlabel.baselines._base import Codes, SemiSupervisedClassifier
from fewlabel.baselines._wide import row_basis

_SHARPNESS = 20.0  # γ: how closely the logistic loss follows the hinge
_WIDTH = 3.0  # s: how narrow the penalty around f = 0 is
_ANNEALING = (0.0, 1e-6, 1e-4, 1e-2, 0.1, 0.5, 1.0)
_CALIBRATION_FOLDS = 5


@dataclass(frozen=True)
class _Machine:
    """The K one-versus-all problems of one data set, evaluated together.

    They share X and do not share variables, so the sum of their objectives is minimised by the
    minimisers of each, and one product with X serves all of them.
    """

    labeled: Any  # (l, d), dense or sparse
    unlabeled: Any  # (u, d), u may be 0
    signs: Floats  # (l, K) in {-1, +1}
    center: Floats  # m
    lam: float

    @property
    def bias(self) -> Floats:
        return np.asarray(self.signs.mean(axis=0))

    def outputs(self, X: Any, W: Floats) -> Floats:
        out: Floats = X @ W + (self.bias - self.center @ W)
        return out

    def objective(self, w: Floats, lam_u: float) -> tuple[float, Floats]:
        """J summed over the classes, and its gradient, at the flattened (d, K) weights."""
        W = w.reshape(len(self.center), -1)
        margin_gap = 1.0 - self.signs * self.outputs(self.labeled, W)
        n_labeled = len(margin_gap)
        # logaddexp(0, z) is log(1 + e^z) without overflow.
        value = np.logaddexp(0.0, _SHARPNESS * margin_gap).sum() / (_SHARPNESS * n_labeled)
        slope = expit(_SHARPNESS * margin_gap) * (-self.signs / n_labeled)
        gradient = self._pull_back(self.labeled, slope)
        if lam_u > 0.0:
            f = self.outputs(self.unlabeled, W)
            share = lam_u / len(f)
            bump = np.exp(-_WIDTH * f**2)
            value += share * bump.sum()
            gradient += self._pull_back(self.unlabeled, share * -2.0 * _WIDTH * f * bump)
        value += self.lam * (W**2).sum()
        gradient += 2.0 * self.lam * W
        return float(value), gradient.ravel()

    def _pull_back(self, X: Any, slope: Floats) -> Floats:
        # Σ slope (x − m): the centring is applied to the sum, so a sparse X stays sparse.
        pulled: Floats = X.T @ slope - np.outer(self.center, slope.sum(axis=0))
        return pulled


def _signs(codes: Codes, n_classes: int) -> Floats:
    if n_classes == 2:
        return np.where(codes[:, None] == 1, 1.0, -1.0)  # one machine separates two classes
    return np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)


def _class_scores(outputs: Floats) -> Floats:
    return np.hstack([-outputs, outputs]) if outputs.shape[1] == 1 else outputs


class QNS3VMClassifier(SemiSupervisedClassifier):
    r"""Semi-supervised support vector machine, one class against the rest, by L-BFGS.

    The classes are separate problems; they are solved side by side because one pass over X then
    serves all of them. The objective is in the module's docstring. It is not invariant to the scale
    of the features: scale them to about [-1, 1] first.

    Parameters
    ----------
    kernel : {"linear", "rbf"}, default="linear"
        "linear" optimises w itself, in memory proportional to X, dense or sparse. "rbf" optimises
        the kernel expansion over ``n_components`` rows (Nyström features); with at least as many
        components as rows it is the full expansion.
    lam : float, default=0.01
        Weight :math:`\lambda` of the squared norm.
    lam_u : float, default=0.1
        Weight :math:`\lambda'` of the unlabelled rows. 0 is the supervised machine.
    gamma : {"scale"} or float, default="scale"
        RBF parameter of :math:`e^{-\gamma\lVert x-z\rVert^2}`; "scale" is 1 / (d · Var(X)).
    n_components : int, default=1000
        Rows in the RBF kernel expansion.
    max_iter : int, default=1000
        Largest number of L-BFGS iterations at each annealing step.
    tol : float, default=1e-4
        An annealing step ends when no entry of the gradient exceeds it.
    calibrate : bool, default=True
        Whether the temperature of ``predict_proba`` is learned from held-out scores, which takes
        five more fits; otherwise it is 1.
    random_state : int, RandomState instance or None, default=None
        Draws the rows of the RBF expansion and the folds of the calibration.
    missing_label : object, default="auto"
        What marks an unlabelled row; "auto" takes -1, NaN, None and pd.NA.
    verbose : int, default=0
        Print the objective after each annealing step.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (n_machines, n_features or n_components)
        Weights; for two classes there is one machine.
    intercept_ : ndarray of shape (n_machines,)
    temperature_ : float
        Divides the scores before the softmax of ``predict_proba``.
    transduction_ : ndarray of shape (n_samples,)
        Given labels of the labelled rows, predicted ones of the others.
    n_iter_ : int
        L-BFGS iterations over all annealing steps.
    objective_ : float
        Final objective, summed over the machines.

    See Also
    --------
    FewLabelClassifier : This and other families vote together.

    Notes
    -----
    ``predict_proba`` is the softmax of the scores over one temperature, chosen by likelihood on
    held-out scores of the labelled rows: machines without the unlabelled term are cross-fitted on
    folds of the labelled rows. The order of the classes is that of the scores, so ``predict`` and
    the largest probability agree. The temperature belongs to the supervised machine; where the
    unlabelled rows move the scores far from it, the votes are as good as that approximation.

    References
    ----------
    .. [1] F. Gieseke, A. Airola, T. Pahikkala and O. Kramer, "Fast and simple gradient-based
           optimization for semi-supervised support vector machines", 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from fewlabel import QNS3VMClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(-2, 1, (50, 2)), rng.normal(2, 1, (50, 2))])
    >>> y = np.full(100, -1)
    >>> y[0], y[50] = 0, 1
    >>> QNS3VMClassifier(random_state=0).fit(X, y).predict([[-2, -2], [2, 2]]).tolist()
    [0, 1]
    """

    _sparse = True

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [StrOptions({"linear", "rbf"})],
        "lam": [Interval(Real, 0, None, closed="neither")],
        "lam_u": [Interval(Real, 0, None, closed="left")],
        "gamma": [StrOptions({"scale"}), Interval(Real, 0, None, closed="neither")],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "calibrate": ["boolean"],
        "random_state": ["random_state"],
        "missing_label": "no_validation",
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        kernel: str = "linear",
        *,
        lam: float = 0.01,
        lam_u: float = 0.1,
        gamma: str | float = "scale",
        n_components: int = 1000,
        max_iter: int = 1000,
        tol: float = 1e-4,
        calibrate: bool = True,
        random_state: Any = None,
        missing_label: object = "auto",
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.lam = lam
        self.lam_u = lam_u
        self.gamma = gamma
        self.n_components = n_components
        self.max_iter = max_iter
        self.tol = tol
        self.calibrate = calibrate
        self.random_state = random_state
        self.missing_label = missing_label
        self.verbose = verbose

    def _fit(self, X: Any, codes: Codes) -> Floats:
        rng = check_random_state(self.random_state)
        self._nystroem = self._fit_features(X, rng)
        features = self._features(X)
        is_labeled = codes != UNLABELED
        background = features[~is_labeled] if not is_labeled.all() else features
        center = np.asarray(background.mean(axis=0)).ravel()
        basis = None
        if isinstance(features, np.ndarray) and features.shape[1] > 2 * features.shape[0]:
            # The best w is a combination of the centred rows: there are fewer of those.
            basis = row_basis(features - center)
            features, center = features @ basis, center @ basis
        labeled = features[is_labeled]
        machine = _Machine(
            labeled=labeled,
            unlabeled=features[~is_labeled] if not is_labeled.all() else labeled[:0],
            signs=_signs(codes[is_labeled], len(self.classes_)),
            center=center,
            lam=self.lam,
        )
        W = self._anneal(machine)
        self.coef_ = W.T if basis is None else W.T @ basis.T
        self.intercept_ = machine.bias - machine.center @ W
        self.temperature_ = 1.0
        if self.calibrate:
            self.temperature_ = self._temperature(machine, codes[is_labeled], rng)
        return _class_scores(features @ W + self.intercept_)

    def _fit_features(self, X: Any, rng: np.random.RandomState) -> Nystroem | None:
        if self.kernel == "linear":
            return None
        gamma = self.gamma
        if gamma == "scale":
            # E[x²] − E[x]² over all entries, without making a sparse X dense.
            variance = float(X.multiply(X).mean() if hasattr(X, "multiply") else (X**2).mean())
            variance -= float(X.mean()) ** 2
            gamma = 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
        n_components = min(self.n_components, X.shape[0])
        nystroem = Nystroem("rbf", gamma=gamma, n_components=n_components, random_state=rng)
        return nystroem.fit(X)

    def _features(self, X: Any) -> Any:
        return X if self._nystroem is None else self._nystroem.transform(X)

    def _anneal(self, machine: _Machine) -> Floats:
        w = np.zeros(machine.center.size * machine.signs.shape[1])
        has_unlabeled = machine.unlabeled.shape[0] > 0 and self.lam_u > 0
        self.n_iter_ = 0
        for fraction in _ANNEALING if has_unlabeled else _ANNEALING[:1]:
            lam_u = fraction * self.lam_u
            w, self.objective_, steps, converged = _minimise(
                machine, w, lam_u, max_iter=self.max_iter, tol=self.tol
            )
            self.n_iter_ += steps
            self._log(f"λ'={lam_u:.3g}: objective {self.objective_:.6g} after {steps} iterations")
        if not converged:
            warnings.warn(
                f"L-BFGS stopped after {steps} iterations of the last annealing step before the "
                f"gradient fell below tol={self.tol}. Scale the features (for example to [-1, 1]), "
                f"or increase max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return w.reshape(machine.center.size, -1)

    def _temperature(self, machine: _Machine, codes: Codes, rng: np.random.RandomState) -> float:
        n_labeled = len(codes)
        scores = np.empty((n_labeled, len(self.classes_)))
        judged = np.zeros(n_labeled, dtype=bool)  # a class that a fold has not seen says nothing
        folds = KFold(min(_CALIBRATION_FOLDS, n_labeled), shuffle=True, random_state=rng)
        for rest, held_out in folds.split(codes):
            part = _Machine(
                machine.labeled[rest],
                machine.unlabeled,
                machine.signs[rest],
                machine.center,
                machine.lam,
            )
            start = np.zeros(machine.center.size * machine.signs.shape[1])
            w, *_ = _minimise(part, start, 0.0, max_iter=self.max_iter, tol=self.tol)
            outputs = part.outputs(machine.labeled[held_out], w.reshape(machine.center.size, -1))
            scores[held_out] = _class_scores(outputs)
            judged[held_out] = np.isin(codes[held_out], codes[rest])
        return _temperature(scores[judged], codes[judged]) if judged.any() else 1.0

    def _scores(self, X: Any) -> Floats:
        return _class_scores(self._features(X) @ self.coef_.T + self.intercept_)

    def decision_function(self, X: Any) -> Floats:
        """Outputs f(x) of the machines.

        Returns
        -------
        scores : ndarray of shape (n_samples,) for two classes, else (n_samples, n_classes)
        """
        scores = self._checked_scores(X)
        return scores[:, 1] if scores.shape[1] == 2 else scores

    def predict_proba(self, X: Any) -> Floats:
        """Calibrated class votes, see the notes of the class.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
        """
        return softmax(self._checked_scores(X) / self.temperature_, axis=1)


def _minimise(
    machine: _Machine, start: Floats, lam_u: float, *, max_iter: int, tol: float
) -> tuple[Floats, float, int, bool]:
    """Weights, objective, iterations and whether the gradient is small enough."""
    result = minimize(
        machine.objective,
        start,
        args=(lam_u,),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter, "gtol": tol, "ftol": 0.0, "maxfun": 10 * max_iter},
    )
    # A line search that stalls next to the optimum is not a failure worth a warning.
    converged = float(np.abs(result.jac).max()) <= 10.0 * tol
    return result.x, float(result.fun), int(result.nit), converged


def _temperature(scores: Floats, codes: Codes) -> float:
    rows = np.arange(len(codes))

    def loss(log_temperature: float) -> float:
        return -float(log_softmax(scores / np.exp(log_temperature), axis=1)[rows, codes].mean())

    found = minimize_scalar(loss, bounds=(np.log(1e-2), np.log(1e2)), method="bounded")
    return float(np.exp(found.x))
