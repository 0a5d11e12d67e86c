"""Are the labelled rows like the others? Checks of what an error estimate assumes.

An estimate from labelled rows holds for the table if these are a random sample of it. Nobody can
prove that, but two signs speak against it: a classifier that tells labelled from unlabelled rows
apart better than chance, and columns whose values differ between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm, rankdata
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import StratifiedKFold

from fewlabel._core.scikit import take_rows
from fewlabel.bounds.statistics import Floats, Ints

LEVEL = 0.005
"""How often a check may raise a false alarm."""

FEWEST_ROWS = 10
"""With fewer labelled rows nothing can be said."""

_N_FOLDS = 5
_MOST_NAMED = 3
_MOST_FEATURES = 1_000
_OFTEN_ALONE = 0.05
_FEWEST_ODD = 5
_N_TREES = 25


class SamplingCheck(NamedTuple):
    """What was found of the labelled rows.

    Attributes
    ----------
    safe : bool
        False if labelled and unlabelled rows can be told apart.
    auc : float
        Cross-validated area under the ROC curve of a classifier that tells them apart; about 0.5
        if they are alike. NaN if there are too few rows.
    p_value : float
        Of the stronger sign.
    columns : tuple of str
        Names of the features that differ most, at most three; empty if ``safe``.
    notes : tuple of str
        What a user should read.
    """

    safe: bool
    auc: float
    p_value: float
    columns: tuple[str, ...]
    notes: tuple[str, ...]


def check_sampling(
    X: Any,
    labeled: NDArray[np.bool_],
    y: Ints | None = None,
    *,
    feature_names: Sequence[str] | None = None,
    unlabeled_weight: ArrayLike | None = None,
    max_rows: int = 1_000,
    random_state: int = 0,
) -> SamplingCheck:
    """Check whether the labelled rows look like a random sample of all rows.

    Parameters
    ----------
    X : {ndarray, csr matrix} of numbers, shape (n_rows, n_features)
        NaN is taken for a value of its own.
    labeled : ndarray of bool of shape (n_rows,)
    y : ndarray of int of shape (n_labeled,), optional
        Codes of the labels, to look for classes with one row.
    feature_names : sequence of str, optional
        For the message; by default "x0", "x1", …
    unlabeled_weight : array-like of shape (n_unlabeled,), optional
        How probable a row is in the comparison. If labelled rows are some of each class, let it be
        the share of a row's class among the labelled rows over its prevalence: classes then weigh
        the same on both sides.
    max_rows : int, default=1000
        Rows of each kind that are looked at; a random sample of more.
    random_state : int, default=0

    Returns
    -------
    check : SamplingCheck

    See Also
    --------
    fewlabel.assess.error_estimate.assess_labels : the estimate that assumes it.

    Notes
    -----
    On each fold the Mann-Whitney statistic of a forest that has not seen it has its known mean and
    variance if rows are exchangeable; the folds' z add up. For single columns the same statistic
    is corrected for their number. Each of the two may raise a false alarm in 0.25 % of tables.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, labeled = rng.normal(size=(500, 3)), np.arange(500) < 60
    >>> check_sampling(X, labeled).safe
    True
    >>> X[labeled, 1] += 2.0  # labelled rows come from elsewhere
    >>> check_sampling(X, labeled, feature_names=["age", "income", "size"]).columns
    ('income',)
    """
    rng = np.random.default_rng(random_state)
    notes = class_notes(y) if y is not None else ()
    given, others = np.flatnonzero(labeled), np.flatnonzero(~labeled)
    if min(len(given), len(others)) < FEWEST_ROWS:
        return SamplingCheck(True, float("nan"), 1.0, (), notes)
    weight = None if unlabeled_weight is None else np.asarray(unlabeled_weight, dtype=np.float64)
    one = rng.choice(given, size=min(max_rows, len(given)), replace=False)
    two = _sample(others, weight, max_rows, rng)
    columns = np.arange(X.shape[1])
    if len(columns) > _MOST_FEATURES:
        columns = np.sort(rng.choice(columns, size=_MOST_FEATURES, replace=False))
    rows = _dense(X, np.concatenate([one, two]), columns)
    is_labeled = np.arange(len(rows)) < len(one)
    auc, z = told_apart(rows, is_labeled, random_state)
    z_columns = np.abs(mann_whitney_z(rows, is_labeled))
    p_columns = 2.0 * norm.sf(z_columns) * len(columns)
    p_columns[~_varied(rows, min(len(one), len(two)))] = np.inf
    p_value = float(min(1.0, 2.0 * min(norm.sf(z), p_columns.min(initial=1.0))))
    if p_value >= LEVEL:
        return SamplingCheck(True, auc, p_value, (), notes)
    names = _names(columns, z_columns, p_columns, feature_names)
    note = f"labelled rows differ from the others in {', '.join(names)}"
    return SamplingCheck(False, auc, p_value, names, (note, *notes))


def class_notes(y: Ints) -> tuple[str, ...]:
    """What class counts say: many classes with one label mean that others have none.

    Examples
    --------
    >>> class_notes(np.array([0, 0, 0, 1, 2]))
    ('2 of 5 labels are the only one of their class: other classes probably have none',)
    >>> class_notes(np.array([0, 0, 1, 1]))
    ()
    """
    alone = int((np.bincount(y) == 1).sum())
    if alone <= 1 or alone / len(y) < _OFTEN_ALONE:
        return ()
    return (
        f"{alone} of {len(y)} labels are the only one of their class: other classes probably "
        f"have none",
    )


def mann_whitney_z(values: Floats, first: NDArray[np.bool_]) -> Floats:
    r"""Standardised Mann-Whitney statistic of each column, with the correction for ties.

    .. math:: z = \frac{R_1 - n_1(n+1)/2}{\sqrt{\frac{n_1 n_2}{n(n-1)}\sum_i (r_i-\bar r)^2}}

    with the ranks r, their sum :math:`R_1` over the first group.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns)
    first : ndarray of bool of shape (n_rows,)
        The first group.

    Returns
    -------
    z : ndarray of shape (n_columns,)
        0 for a constant column.

    Examples
    --------
    >>> values = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> mann_whitney_z(values, np.array([False, False, True, True])).round(3).tolist()
    [1.549]
    """
    n, n_first = len(values), int(first.sum())
    ranks = rankdata(values, axis=0) - (n + 1) / 2.0
    variance = n_first * (n - n_first) / (n * (n - 1.0)) * (ranks**2).sum(axis=0)
    z = np.zeros(values.shape[1])
    return np.divide(ranks[first].sum(axis=0), np.sqrt(variance), out=z, where=variance > 0)


def told_apart(
    rows: Floats, is_labeled: NDArray[np.bool_], random_state: int
) -> tuple[float, float]:
    """Mean AUC over folds of a small forest that tells both kinds apart, and its z."""
    areas, z = [], []
    folds = StratifiedKFold(_N_FOLDS, shuffle=True, random_state=random_state)
    for train, test in folds.split(rows, is_labeled):
        forest = ExtraTreesClassifier(
            _N_TREES, max_depth=6, class_weight="balanced", random_state=random_state
        )
        forest.fit(rows[train], is_labeled[train])
        score, kind = forest.predict_proba(rows[test])[:, 1], is_labeled[test]
        one, two = int(kind.sum()), int((~kind).sum())
        rank_sum = float(rankdata(score)[kind].sum())
        areas.append((rank_sum - one * (one + 1) / 2.0) / (one * two))
        z.append(float(mann_whitney_z(score[:, None], kind)[0]))
    return float(np.mean(areas)), float(np.sum(z) / np.sqrt(_N_FOLDS))


def _sample(rows: Ints, weight: Floats | None, size: int, rng: np.random.Generator) -> Ints:
    if weight is None:
        return rng.choice(rows, size=min(size, len(rows)), replace=False)
    # With replacement: rows of large weight stand for several.
    size = min(size, len(rows))
    return rng.choice(rows, size=size, p=weight / weight.sum())


def _dense(X: Any, rows: Ints, columns: Ints) -> Floats:
    part = take_rows(X, rows)[:, columns]
    values = np.array(part.toarray() if hasattr(part, "toarray") else part, dtype=np.float64)
    lowest = np.nanmin(values, initial=0.0)
    return np.where(np.isnan(values), lowest - 1.0, values)


def _varied(rows: Floats, n_smaller: int) -> NDArray[np.bool_]:
    """Columns of which the smaller group has a few values besides the commonest.

    A single odd value would be a large z, whose distribution is far from normal.
    """
    ordered = np.sort(rows, axis=0)
    length = np.ones(rows.shape[1])
    commonest = np.ones(rows.shape[1])
    for above, below in zip(ordered[1:], ordered):
        length = np.where(above == below, length + 1.0, 1.0)
        np.maximum(commonest, length, out=commonest)
    return (1.0 - commonest / len(rows)) * n_smaller >= _FEWEST_ODD


def _names(
    columns: Ints, z: Floats, p_value: Floats, names: Sequence[str] | None
) -> tuple[str, ...]:
    clear = p_value < LEVEL
    if not clear.any():
        clear = z == z.max()  # what only the forest found: the likeliest column
    worst = [i for i in np.argsort(-z, kind="stable") if clear[i]][:_MOST_NAMED]
    return tuple(str(names[columns[i]]) if names is not None else f"x{columns[i]}" for i in worst)
