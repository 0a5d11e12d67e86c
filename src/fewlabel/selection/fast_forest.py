"""The random forest of scikit-learn-intelex, with row weights."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from fewlabel._core.checks import check_weights
from fewlabel._core.scikit import n_rows, take_rows


class FastForestClassifier(ClassifierMixin, BaseEstimator):
    r"""Random forest of full trees grown by scikit-learn-intelex.

    Faster than scikit-learn's on some processors, not on all: ``docs/benchmarks.md`` has both side
    by side, and ``python -m benchmarks --only fast_forest`` measures yours.

    scikit-learn-intelex hands a bootstrapped forest back to scikit-learn, without a word, as soon
    as rows are weighted (with scikit-learn 1.9 and later). This class keeps its own: weights become
    repetitions. A row of weight w (mean weight 1) is repeated 2w times, rounded at random so that
    the expectation is right, and each tree draws half of these rows with replacement: as many as
    there are rows, each with probability proportional to its weight, which is what weights mean in
    scikit-learn's own forest.

    Parameters
    ----------
    n_estimators : int, default=200
    n_jobs : int, optional
    random_state : int, RandomState instance or None, default=None

    Notes
    -----
    Needs ``pip install fewlabel[fast]``. Dense X without missing values only. The forest differs
    from scikit-learn's in its random numbers: results agree in distribution, not bit by bit.
    """

    def __init__(
        self,
        n_estimators: int = 200,
        *,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the forest."""
        labels = np.asarray(y)
        params: dict[str, Any] = {}
        seed = self._seed()
        if sample_weight is not None:
            rows = _repeated(check_weights(sample_weight, n_rows(X)), labels, seed)
            X, labels = take_rows(X, rows), labels[rows]
            params["max_samples"] = 0.5
        self.forest_ = _intelex_forest()(
            self.n_estimators, n_jobs=self.n_jobs, random_state=seed, **params
        ).fit(X, labels)
        self.classes_ = self.forest_.classes_
        self.n_features_in_ = self.forest_.n_features_in_
        if hasattr(self.forest_, "feature_names_in_"):
            self.feature_names_in_ = self.forest_.feature_names_in_
        return self

    def _seed(self) -> int:
        """One number for the rounding of weights and for the forest."""
        if isinstance(self.random_state, (int, np.integer)):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class votes, shape (n_samples, n_classes)."""
        check_is_fitted(self)
        return np.asarray(self.forest_.predict_proba(X), dtype=np.float64)

    def predict(self, X: Any) -> NDArray[Any]:
        """Majority vote."""
        winner = self.predict_proba(X).argmax(axis=1)
        return self.classes_[winner]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(_intelex_forest()()).input_tags
        tags.input_tags.sparse = tags.input_tags.allow_nan = False
        return tags


def _repeated(weight: NDArray[np.float64], labels: NDArray[Any], seed: int) -> NDArray[np.intp]:
    """Rows, as often as their weights say."""
    if weight.sum() == 0:
        raise ValueError("sample_weight must not be zero for every row.")
    rng = np.random.default_rng(seed)
    times = np.floor(2 * weight / weight.mean() + rng.random(len(weight))).astype(np.intp)
    # Rounding must not lose the last row of a class.
    for label in np.unique(labels[weight > 0]):
        rows = np.flatnonzero((labels == label) & (weight > 0))
        if not times[rows].any():
            times[rows[weight[rows].argmax()]] = 1
    return np.repeat(np.arange(len(weight)), times)


def _intelex_forest() -> Any:
    try:
        from sklearnex.ensemble import RandomForestClassifier
    except ImportError as error:
        raise ImportError(
            "estimator='fast' needs scikit-learn-intelex: pip install 'fewlabel[fast]', or use "
            "estimator='forest'."
        ) from error
    return RandomForestClassifier
