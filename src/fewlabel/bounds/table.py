r"""All bounds on one set of votes as a small table that says what each number is.

A number called a bound is a *guarantee* only under its assumption; with estimated probabilities it
is an *estimate*. The table keeps the two apart, row by row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fewlabel._core.arrays import Floats
from fewlabel._core.checks import (
    check_label_distribution,
    check_mislabeling,
    check_relaxation,
    check_same_shape,
    check_votes,
)
from fewlabel.bounds.cbound import (
    alpha_delta,
    c_bound_of,
    class_correction,
    markov_bound_of,
    smallest_relaxation,
)
from fewlabel.bounds.margins import MarginSums, margin_sums
from fewlabel.bounds.transductive import risk_bound

Kind = Literal["guarantee", "estimate"]

_ROUNDING = 1e-6  # of probabilities that were computed in single precision

_TRUE_LABELS = "label_proba is the true P(Y|x) of these rows"
_IMPERFECT_LABELS = (
    "imperfect_proba and mislabeling are the true P(Ŷ|x) and P(Ŷ|Y), "
    "and Ŷ depends on x through Y only"
)
_CONTRADICTED = (
    "contradicted: the matrix allows no such P(Ŷ|x) (labels that were drawn, or copied from the "
    "vote, are not their distribution)"
)


@dataclass(frozen=True)
class Bound:
    """One row of the table; ``pandas.DataFrame(rows)`` shows them all.

    Attributes
    ----------
    name : what is bounded by what
    value : the number, not clipped: it may exceed 1, and is the trivial 1.0 if ``applies`` is False
    kind : "guarantee" if the assumption was said to hold and is not contradicted, else "estimate"
    applies : False if the formula says nothing about this input
    assumption : under which the error on these rows is at most ``value``
    excess : ``value`` minus the true error where that is known, else None

    See Also
    --------
    bounds_table : Makes a list of them.

    References
    ----------
    .. [1] V. Feofanov, E. Devijver and M.-R. Amini, "Multi-class Probabilistic Bounds for
           Self-learning", 2021.

    Examples
    --------
    >>> from fewlabel import bounds_table
    >>> row = bounds_table([[0.9, 0.1], [0.2, 0.8]], [[0.9, 0.1], [0.2, 0.8]])[0]
    >>> row.kind, row.applies
    ('estimate', True)
    """

    name: str
    value: float
    kind: Kind
    applies: bool
    assumption: str
    excess: float | None = None


def bounds_table(
    votes: ArrayLike,
    label_proba: ArrayLike,
    *,
    imperfect_proba: ArrayLike | None = None,
    mislabeling: ArrayLike | None = None,
    relaxation: float | None = None,
    exact: bool = False,
    error: float | None = None,
) -> list[Bound]:
    r"""Every bound on the error of the majority vote on these rows.

    Parameters
    ----------
    votes : array-like of shape (n_samples, n_classes)
    label_proba : array-like of shape (n_samples, n_classes)
        :math:`P(Y=c\mid x)`, true or estimated.
    imperfect_proba : array-like of shape (n_samples, n_classes), or codes of shape (n_samples,)
        :math:`P(\hat Y=c\mid x)`, given together with ``mislabeling``: adds the bounds for it.
        Labels that were drawn (codes) are not their distribution: a noisy matrix allows no such
        certainty, so their bounds are estimates.
    mislabeling : array-like of shape (n_classes, n_classes)
    relaxation : float, optional
        λ. By default the one of 0, 0.1, …, 1 and the smallest that applies which gives each bound
        its smallest value: each λ gives a valid bound, so the smallest of them is valid too.
    exact : bool, default=False
        Whether the assumptions hold, which only the caller can know. Otherwise every row is an
        estimate.
    error : float, optional
        True error on these rows, to fill ``excess``.

    Returns
    -------
    table : list of Bound

    See Also
    --------
    transductive_bound, c_bound, tandem_bound, gibbs_bound : The bounds one by one.
    c_bound_imperfect : The one with imperfect labels.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), (TB), (CB), (CBIL).

    Examples
    --------
    >>> votes = [[0.8, 0.2], [0.6, 0.4], [0.3, 0.7], [0.1, 0.9]]
    >>> for bound in bounds_table(votes, votes):
    ...     print(f"{bound.name:<24} {bound.value:.3f} {bound.kind}")
    plug-in error            0.250 estimate
    TB                       0.250 estimate
    CB                       0.700 estimate
    second-order             0.700 estimate
    first-order              0.700 estimate
    """
    v = check_votes(votes)
    if (imperfect_proba is None) != (mislabeling is None):
        raise ValueError("imperfect_proba and mislabeling must be given together.")
    sums = margin_sums(v, label_proba)
    tb = risk_bound(v, label_proba, tight=True)
    if imperfect_proba is None or mislabeling is None:
        return table_of_sums(sums, tb, exact=exact, error=error)
    proba = check_label_distribution(imperfect_proba, v)
    return table_of_sums(
        sums,
        tb,
        margin_sums(v, proba),
        mislabeling,
        relaxation,
        possible=_possible(proba, mislabeling),
        exact=exact,
        error=error,
    )


def table_of_sums(
    sums: MarginSums,
    tb: float,
    imperfect: MarginSums | None = None,
    mislabeling: ArrayLike | None = None,
    relaxation: float | None = None,
    *,
    possible: bool = True,
    exact: bool = False,
    error: float | None = None,
) -> list[Bound]:
    """The table of :func:`bounds_table` from sums over rows, which may have come in chunks.

    ``possible``: whether the matrix can give every row its distribution of imperfect labels.

    Parameters
    ----------
    sums : MarginSums
    tb : float
        The transductive bound.
    imperfect : MarginSums, optional
        The same sums with the distribution of the imperfect labels.
    mislabeling, relaxation, exact, error
        As in :func:`bounds_table`.
    possible : bool, default=True
        Whether the matrix can give every row its distribution of imperfect labels.

    Returns
    -------
    table : list of Bound
    """
    rows = list(_with_true_labels(sums, tb))
    if imperfect is not None and mislabeling is not None:
        assumption = _IMPERFECT_LABELS if possible else f"{_IMPERFECT_LABELS}; {_CONTRADICTED}"
        rows += _with_imperfect_labels(imperfect, mislabeling, relaxation, assumption)
    return [
        Bound(
            name,
            value,
            "guarantee" if exact and _CONTRADICTED not in assumption else "estimate",
            applies,
            assumption,
            None if error is None else value - error,
        )
        for name, value, applies, assumption in rows
    ]


_Row = tuple[str, float, bool, str]


def _with_true_labels(sums: MarginSums, tb: float) -> Iterator[_Row]:
    none = class_correction(sums, None, 0.0)
    yield "plug-in error", float(sums.error.sum() / sums.rows.sum()), True, _TRUE_LABELS
    yield "TB", tb, True, _TRUE_LABELS
    yield "CB", *c_bound_of(sums, none), _TRUE_LABELS
    yield "second-order", markov_bound_of(sums, none, 2), True, _TRUE_LABELS
    yield "first-order", markov_bound_of(sums, none, 1), True, _TRUE_LABELS


def _with_imperfect_labels(
    sums: MarginSums, mislabeling: ArrayLike, relaxation: float | None, assumption: str
) -> Iterator[_Row]:
    grid = _relaxations(sums, mislabeling) if relaxation is None else [check_relaxation(relaxation)]
    corrections = [
        class_correction(sums, mislabeling, lam) for lam in grid if _applies(sums, mislabeling, lam)
    ]
    if not corrections:
        for name in ("CBIL", "second-order, corrected", "first-order, corrected"):
            yield name, 1.0, False, f"{assumption}; relaxation is too small"
        return
    # Trivial results rank last, whatever their value.
    value, applies = min((c_bound_of(sums, c) for c in corrections), key=lambda b: (not b[1], b[0]))
    yield "CBIL", value, applies, assumption
    second = min(markov_bound_of(sums, c, 2) for c in corrections)
    yield "second-order, corrected", second, True, assumption
    first = min(markov_bound_of(sums, c, 1) for c in corrections)
    yield "first-order, corrected", first, True, assumption


def _relaxations(sums: MarginSums, mislabeling: ArrayLike) -> list[float]:
    predicted = np.eye(len(sums.rows))[sums.rows > 0]  # votes that predict the same classes
    return [smallest_relaxation(predicted, mislabeling), *np.linspace(0.0, 1.0, 11).tolist()]


def _applies(sums: MarginSums, mislabeling: ArrayLike, relaxation: float) -> bool:
    _, delta = alpha_delta(mislabeling)
    return bool((relaxation + delta[sums.rows > 0] > 0).all())


def _possible(proba: Floats, mislabeling: ArrayLike) -> bool:
    # P(Ŷ=c|x) is a mean of the entries of row c, weighted by P(Y|x): it lies between them.
    matrix = check_mislabeling(mislabeling)
    check_same_shape(matrix[0], proba[0], "a row of mislabeling", "a row of votes")
    low, high = matrix.min(axis=1) - _ROUNDING, matrix.max(axis=1) + _ROUNDING
    return bool((proba.min(axis=0) >= low).all() and (proba.max(axis=0) <= high).all())
