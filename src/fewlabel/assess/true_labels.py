"""True labels beside those of a fit, where they are known."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewlabel._core.targets import as_column, unlabeled_mask
from fewlabel.assess.label_sums import KnownLabels


def known_labels(labels: ArrayLike, classes: NDArray[Any], missing_label: Any) -> KnownLabels:
    """Which rows have a known true label, and its code; -1 for a class unknown to ``fit``.

    A missing value, and the marker of unlabelled rows, say that a label is not known.

    Parameters
    ----------
    labels : array-like of shape (n_rows,)
        True labels as far as they are known.
    classes : ndarray of shape (n_classes,)
    missing_label : object
        The estimator's, what marks unlabelled rows.

    Examples
    --------
    >>> found = known_labels(["b", None, "c", "a"], np.array(["a", "b"]), "auto")
    >>> found.position.tolist(), found.codes.tolist(), dict(found.unknown)
    ([0, 2, 3], [1, -1, 0], {'c': 1})
    """
    column = as_column(labels)
    known = np.flatnonzero(~unlabeled_mask(column, None))
    order: dict[Any, int] = {c: code for code, c in enumerate(classes.tolist())}
    marker = -1 if isinstance(missing_label, str) and missing_label == "auto" else missing_label
    if unlabeled_mask([marker], None)[0]:
        marker = None  # missing values are left out already
    stated = column[known].tolist()
    kept = np.array([label in order or label != marker for label in stated], dtype=bool)
    codes = np.array([order.get(label, -1) for label in stated], dtype=np.intp)[kept]
    position = known[kept]
    unknown = Counter(map(str, column[position[codes < 0]]))
    return KnownLabels(position, codes, unknown)


def check_some_known(known: KnownLabels, labels: ArrayLike, classes: NDArray[Any]) -> None:
    """Raise if true labels are written in another way than the given ones."""
    if len(known.codes) and not (known.codes >= 0).any():
        raise ValueError(
            f"y_true has no class of fit for any unlabelled row: the classes are {classes[:5]}, "
            f"y_true begins with {as_column(labels)[:5]}. Write both alike."
        )
