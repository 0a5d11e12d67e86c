"""Cross-validation that makes sense with unlabelled rows.

An unlabelled row cannot be scored, so it must never be in a test fold; and self-learning needs it
for training in every fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import get_scorer
from sklearn.model_selection import BaseCrossValidator, KFold, StratifiedKFold

from fewlabel._core.targets import UNLABELED, encode_target, labeled_part


class LabeledKFold(BaseCrossValidator):
    """K folds of the labelled rows; every unlabelled row is in every training part.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    stratify : bool, default=True
        Keep the class shares in the folds. Classes with fewer rows than folds are spread as far as
        they go.
    shuffle : bool, default=True
    missing_label : object, default="auto"
        What marks an unlabelled row.
    random_state : int, RandomState instance or None, default=None

    See Also
    --------
    labeled_scorer : For other splitters.

    References
    ----------
    .. [1] T. Hastie, R. Tibshirani and J. Friedman, "The elements of statistical learning", 2009,
           Section 7.10.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([0, 1, -1, 0, 1, -1])
    >>> for train, test in LabeledKFold(2, shuffle=False).split(y.reshape(-1, 1), y):
    ...     print(train, test)
    [2 3 4 5] [0 1]
    [0 1 2 5] [3 4]
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        stratify: bool = True,
        shuffle: bool = True,
        missing_label: Any = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_splits = n_splits
        self.stratify = stratify
        self.shuffle = shuffle
        self.missing_label = missing_label
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of folds."""
        return self.n_splits

    def split(
        self, X: Any, y: ArrayLike | None = None, groups: Any = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield row numbers of the training and the test part of each fold."""
        if y is None:
            raise ValueError("LabeledKFold needs y to know which rows are labelled.")
        codes, _ = encode_target(y, self.missing_label)
        labeled = np.flatnonzero(codes != UNLABELED)
        unlabeled = np.flatnonzero(codes == UNLABELED)
        if len(labeled) < self.n_splits:
            raise ValueError(
                f"There are only {len(labeled)} labelled rows for {self.n_splits} folds. Use at "
                f"most as many folds as labelled rows."
            )
        seed = self.random_state if self.shuffle else None
        # Fewer rows of a class than folds is what "few labels" means: not worth StratifiedKFold's
        # warning, and where it is an error (every class is that small) plain folds are the answer.
        smallest_enough = np.bincount(codes[labeled]).max() >= self.n_splits
        kind = StratifiedKFold if self.stratify and smallest_enough else KFold
        folds = kind(self.n_splits, shuffle=self.shuffle, random_state=seed)
        for train, test in _without_warnings(folds.split(labeled, codes[labeled])):
            yield np.sort(np.concatenate([labeled[train], unlabeled])), labeled[test]


def _without_warnings(pairs: Iterator[Any]) -> list[Any]:
    import warnings

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return list(pairs)


def labeled_scorer(
    scoring: str | Callable[..., float] = "accuracy", *, missing_label: Any = "auto"
) -> Callable[..., float]:
    """Scorer that leaves unlabelled rows out, for splitters that put them into test parts.

    Parameters
    ----------
    scoring : str or scorer, default="accuracy"
        Any scorer of scikit-learn, by name or as a callable ``(estimator, X, y)``.
    missing_label : object, default="auto"
        What marks an unlabelled row.

    Returns
    -------
    scorer : callable ``(estimator, X, y)``

    See Also
    --------
    LabeledKFold : A splitter that needs no such scorer.

    References
    ----------
    .. [1] T. Hastie, R. Tibshirani and J. Friedman, "The elements of statistical learning", 2009,
           Section 7.10.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> majority = DummyClassifier().fit([[0], [0], [0]], [1, 1, 0])
    >>> labeled_scorer("accuracy")(majority, [[0], [0], [0], [0]], [1, 0, -1, -1])
    0.5
    """
    return _LabeledScorer(
        get_scorer(scoring) if isinstance(scoring, str) else scoring, missing_label
    )


@dataclass(frozen=True)
class _LabeledScorer:
    """A class, not a closure: a search that holds one can be saved."""

    scorer: Callable[..., float]
    missing_label: Any

    def __call__(self, estimator: Any, X: Any, y: ArrayLike, **params: Any) -> float:
        labeled, part, truth = labeled_part(X, y, self.missing_label)
        params = {name: np.asarray(value)[labeled] for name, value in params.items()}
        return float(self.scorer(estimator, part, truth, **params))
