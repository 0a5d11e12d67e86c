"""What a round of self-learning trains on: rows by index, their labels and weights."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.ensemble import RandomForestClassifier

from fewlabel._core.checks import check_weights
from fewlabel._core.scikit import fit_weight_name, params_of_rows, take_rows
from fewlabel._core.targets import UNLABELED
from fewlabel.selection.fast_forest import FastForestClassifier

Ints = NDArray[np.intp]
Floats = NDArray[np.float64]

N_TREES = 200  # the paper's forest


def default_forest(kind: str, seed: int, n_jobs: int | None) -> Any:
    """The default base estimator, from scikit-learn ("forest") or scikit-learn-intelex ("fast")."""
    if kind == "forest":
        return RandomForestClassifier(N_TREES, random_state=seed, n_jobs=n_jobs)
    return FastForestClassifier(N_TREES, random_state=seed, n_jobs=n_jobs)


def quotas(counts: Ints, max_train: int) -> Ints:
    """Rows of each class in a sample of ``max_train``, in proportion, at least one of each."""
    total = int(counts.sum())
    if total <= max_train:
        return counts
    return np.minimum(counts, np.maximum(1, counts * max_train // total))


class TrainingSet:
    """Labelled rows plus the rows trusted so far, without copies of X between rounds.

    Parameters
    ----------
    X : rows that can be taken by index
    codes : ndarray of int of shape (n_samples,)
        Class codes; ``UNLABELED`` for unlabelled rows.
    classes : ndarray of shape (n_classes,)
    sample_weight : array-like of shape (n_samples,) or None
    balanced : bool
        Whether labelled and trusted rows get the same total weight.
    max_train : int or None
        Sample the trusted rows down to this many.
    fit_params : dict
        Further arguments of ``fit``; arrays with one entry for each row are sliced.
    rng : numpy.random.Generator
        For the sample.
    """

    def __init__(
        self,
        *,
        X: Any,
        codes: Ints,
        classes: NDArray[Any],
        sample_weight: ArrayLike | None,
        balanced: bool,
        max_train: int | None,
        fit_params: dict[str, Any],
        rng: np.random.Generator,
    ) -> None:
        self.X, self.codes, self.classes = X, codes, classes
        self.weight = None if sample_weight is None else check_weights(sample_weight, len(codes))
        self.balanced, self.max_train = balanced, max_train
        self.fit_params, self.rng = fit_params, rng
        self.labeled = np.flatnonzero(codes != UNLABELED)
        self.unlabeled = np.flatnonzero(codes == UNLABELED)
        self._current = codes.copy()  # given and pseudo-labels
        self._warned = False

    @property
    def trusted(self) -> Ints:
        """Rows with a pseudo-label, in row order."""
        return self.unlabeled[self._current[self.unlabeled] != UNLABELED]

    @property
    def pseudo_codes(self) -> Ints:
        """Pseudo-labels of the trusted rows."""
        return self._current[self.trusted]

    def trust(self, rows: Ints, codes: Ints) -> None:
        """Give pseudo-labels to these rows."""
        self._current[rows] = codes

    def fit(self, estimator: Any) -> Any:
        """Fit an (unfitted) estimator on the labelled and trusted rows."""
        rows, codes, weight = self.sample()
        name = None if weight is None else fit_weight_name(estimator)
        if weight is not None and name is None:
            self._warn_unweighted(estimator)
            # Who takes no weights is not shown what has none, unless a class would be unknown.
            shown = (weight > 0) | ~np.isin(codes, codes[weight > 0])
            rows, codes = rows[shown], codes[shown]
        params = params_of_rows(self.X, self.fit_params, rows)
        if name is not None:
            params[name] = weight
        return estimator.fit(take_rows(self.X, rows), self.classes[codes], **params)

    def sample(self) -> tuple[Ints, Ints, Floats | None]:
        """Rows to train on now, the codes of their labels and pseudo-labels, and their weights."""
        rows, weight = self._rows_and_weights()
        return rows, self._current[rows], weight

    def _rows_and_weights(self) -> tuple[Ints, Floats | None]:
        trusted = self.trusted
        if len(trusted) == 0:
            weight = None if self.weight is None else self.weight[self.labeled]
            return self.labeled, weight
        trusted, stands_for = self._sample(trusted)
        rows = np.concatenate([self.labeled, trusted])
        weight = np.ones(len(rows)) if self.weight is None else self.weight[rows]
        n_labeled = len(self.labeled)
        weight[n_labeled:] *= stands_for
        if self.balanced:
            of_labeled, of_trusted = weight[:n_labeled].sum(), weight[n_labeled:].sum()
            if of_labeled > 0 and of_trusted > 0:
                # Each half of the total; the total, and so the mean, stays what it was.
                half = (of_labeled + of_trusted) / 2
                weight[:n_labeled] *= half / of_labeled
                weight[n_labeled:] *= half / of_trusted
        elif self.weight is None and self.max_train is None:
            return rows, None
        return rows, weight * (len(rows) / weight.sum()) if self.weight is None else weight

    def _sample(self, trusted: Ints) -> tuple[Ints, Floats]:
        """At most ``max_train`` of the trusted rows, and how many rows each stands for."""
        if self.max_train is None or len(trusted) <= self.max_train:
            return trusted, np.ones(len(trusted))
        codes = self._current[trusted]
        counts = np.bincount(codes, minlength=len(self.classes))
        quota = quotas(counts, self.max_train)
        shuffled = self.rng.permutation(len(trusted))
        by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
        rank = np.arange(len(trusted)) - np.repeat(np.cumsum(counts) - counts, counts)
        kept = np.sort(by_class[rank < np.repeat(quota, counts)])
        return trusted[kept], (counts / np.maximum(quota, 1))[codes[kept]]

    def _warn_unweighted(self, estimator: Any) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"{type(estimator).__name__} takes no sample_weight, so pseudo-labelled rows weigh "
                f"as much as labelled ones. Use an estimator that takes weights, or set "
                f"pseudo_weight='uniform' if that is meant.",
                stacklevel=2,
            )
