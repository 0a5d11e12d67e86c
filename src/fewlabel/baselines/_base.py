"""What the competitors share: checks at the edge, predictions, labels of the training rows."""

from __future__ import annotations

import sys
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from fewlabel._core.arrays import Floats
from fewlabel._core.scikit import validate_data
from fewlabel._core.targets import UNLABELED, encode_target

Codes = NDArray[np.intp]


class SemiSupervisedClassifier(ClassifierMixin, BaseEstimator):
    """Fit on labelled and unlabelled rows together, predict by the largest class score.

    A subclass has the parameters ``missing_label`` and ``verbose`` and provides two methods on
    checked input: ``_fit(X, codes)``, which returns the class scores of the training rows, and
    ``_scores(X)``, the class scores of any rows, both of shape (n_samples, n_classes).
    """

    _sparse: ClassVar[bool] = False
    _dtype: ClassVar[Any] = np.float64

    # Declared for the type checker; subclasses assign them in __init__ and fit.
    missing_label: object
    verbose: int
    classes_: NDArray[Any]

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on all rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Labelled and unlabelled rows.
        y : array-like of shape (n_samples,)
            Class labels; -1, NaN, None or pd.NA marks an unlabelled row (see ``missing_label``).

        Returns
        -------
        self : object
        """
        self._validate_params()
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        X = self._check_X(X, reset=True)
        check_consistent_length(X, y)
        codes, self.classes_ = encode_target(y, self.missing_label)
        self._label_rows(codes, self._fit(X, codes))
        return self

    def _label_rows(self, codes: Codes, scores: Floats) -> None:
        best = np.where(codes == UNLABELED, scores.argmax(axis=1), codes)
        self.transduction_ = self.classes_[best]

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of each row of X.

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        best = self._checked_scores(X).argmax(axis=1)
        return self.classes_[best]

    def _checked_scores(self, X: Any) -> Floats:
        check_is_fitted(self)
        return self._scores(self._check_X(X, reset=False))

    def _check_X(self, X: Any, *, reset: bool) -> Any:
        return validate_data(
            self,
            X,
            accept_sparse="csr" if self._sparse else False,
            dtype=self._dtype,
            order="C",
            reset=reset,
        )

    def _fit(self, X: Any, codes: Codes) -> Floats:
        raise NotImplementedError

    def _scores(self, X: Any) -> Floats:
        raise NotImplementedError

    def _log(self, message: str) -> None:
        if self.verbose:
            sys.stdout.write(f"[{type(self).__name__}] {message}\n")
            sys.stdout.flush()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._sparse
        return tags


def as_decision(scores: Floats) -> Floats:
    """Class scores in scikit-learn's shape: one column, > 0 for the second class, if K = 2."""
    return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores


def class_prior(codes: Codes, n_classes: int) -> Floats:
    """Share of each class among the labelled rows."""
    counts = np.bincount(codes[codes != UNLABELED], minlength=n_classes)
    return counts / counts.sum()
