"""What a round of self-learning trains on: labelled and pseudo-labelled rows with their weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewlabel._core.arrays import Floats, Ints, RowView
from fewlabel._core.scikit import copied_rows, fit_weight_name, params_of_rows, take_rows


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Rows, their labels and pseudo-labels, and their weights.

    Attributes
    ----------
    X : rows that can be taken by index, or a view of them
        The labelled rows first.
    codes : ndarray of int of shape (n_rows,)
        Class codes.
    classes : ndarray of shape (n_classes,)
    weight : ndarray of shape (n_rows,) or None
    fit_params : dict
        Further arguments of ``fit``; arrays with one entry for each row of the table are cut.
    """

    X: Any
    codes: Ints
    classes: NDArray[Any]
    weight: Floats | None = None
    fit_params: dict[str, Any] = field(default_factory=dict)

    def fit(self, estimator: Any) -> Any:
        """Fit an (unfitted) estimator."""
        rows, name = np.arange(len(self.codes)), None
        if self.weight is not None:
            name = fit_weight_name(estimator)
            if name is None:
                # An estimator that takes no weights must not see rows of weight 0, unless a class
                # would be unknown without them.
                known = np.isin(self.codes, self.codes[self.weight > 0])
                rows = np.flatnonzero((self.weight > 0) | ~known)
        X = take_rows(self.X, rows) if len(rows) < len(self.codes) else self.X
        params = params_of_rows(X, self.fit_params) if isinstance(X, RowView) else {}
        if name is not None:
            params[name] = self.weight
        return estimator.fit(copied_rows(X), self.classes[self.codes[rows]], **params)


def training_weights(
    labeled: Floats | None,
    pseudo: Floats | None,
    codes: Ints,
    n_pseudo_labeled: Ints,
    n_labeled: int,
    *,
    balanced: bool,
) -> Floats | None:
    r"""Weights of the labelled rows, then of the pseudo-labelled rows that are trained on.

    Parameters
    ----------
    labeled, pseudo : ndarray or None
        Weights that the user gave to the labelled rows and to these pseudo-labelled ones.
    codes : ndarray of int
        Pseudo-labels of the rows that are trained on, a sample of all pseudo-labelled rows.
    n_pseudo_labeled : ndarray of int of shape (n_classes,)
        How many rows have each pseudo-label. A row of the sample stands for those not in it.
    n_labeled : int
    balanced : bool
        Whether both parts get the same total weight (Algorithm 1: rows weigh :math:`1/l` and
        :math:`1/|Z_P|` up to a constant, which keeps the total, and so the mean, as it was).

    Returns
    -------
    weight : ndarray, or None if all rows weigh the same
    """
    drawn = np.bincount(codes, minlength=len(n_pseudo_labeled))
    stands_for = (n_pseudo_labeled / np.maximum(drawn, 1))[codes]
    given = labeled is not None or pseudo is not None
    first = np.ones(n_labeled) if labeled is None else labeled.astype(np.float64)
    second = stands_for if pseudo is None else pseudo * stands_for
    if balanced and first.sum() > 0 and second.sum() > 0:
        half = (first.sum() + second.sum()) / 2
        first, second = first * (half / first.sum()), second * (half / second.sum())
    elif not given and (stands_for == 1).all():
        return None
    weight = np.concatenate([first, second])
    return weight if given else weight * (len(weight) / weight.sum())


def quotas(counts: Ints, max_train: int | None) -> Ints:
    """Rows of each class in a sample of ``max_train``, in proportion, at least one of each."""
    total = int(counts.sum())
    if max_train is None or total <= max_train:
        return counts
    return np.minimum(counts, np.maximum(1, counts * max_train // total))
