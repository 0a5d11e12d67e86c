r"""Thresholds that minimise the bound on the conditional error (Section 4.4).

Objective (∗) is minimised class by class:

.. math::
    \theta_j^* = \arg\min_{\theta}\;
    \frac{\sum_{i\ne j} u_i\,[\mathbf U_\theta]_{i,j}}
         {\#\{x : v_Q(x,j)\ge\theta,\; B_Q(x)=j\}}

The search is exact and exhaustive. The numerator never grows with θ and the denominator changes
only at votes of rows that are predicted j, so these votes are the only candidates; and for each of
them the infimum over γ is found by bisection (see :mod:`fewlabel.bounds.transductive`). There is
no grid and no local minimum. The printed formula is used even where it exceeds the linear program's
optimum: its extra term is what makes a high threshold expensive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewlabel._core.arrays import Floats, Ints
from fewlabel.bounds.cells import Statistics, open_cells
from fewlabel.bounds.statistics import ClassCells
from fewlabel.bounds.transductive import class_bound

Criterion = Literal["bound", "plug-in"]

# Values closer than this count as equal, so that rounding in sums over rows in another order
# (chunks, partitions) cannot change the choice.
_TIE = 1e-10


@dataclass(frozen=True)
class ThresholdCurve:
    """The objective of one class over all its candidate thresholds.

    Attributes
    ----------
    thresholds : ndarray of shape (n_candidates,), ascending
    bound : ndarray of shape (n_candidates,)
        Bound of the conditional error of the class at each threshold.
    plug_in : ndarray of shape (n_candidates,)
        The conditional error itself, with ``label_proba`` plugged in.
    n_selected : ndarray of int of shape (n_candidates,)
        Rows predicted to be of the class whose vote reaches the threshold.
    """

    thresholds: Floats
    bound: Floats
    plug_in: Floats
    n_selected: Ints

    def best(self, criterion: Criterion = "bound") -> int | None:
        """Position of the smallest threshold with the smallest value; None without candidates."""
        values = self.bound if criterion == "bound" else self.plug_in
        if len(values) == 0:
            return None
        return int(np.flatnonzero(values <= values.min() + _TIE * max(1.0, values.min()))[0])


def class_curve(cells: ClassCells, j: int) -> ThresholdCurve:
    """Objective (∗) of class j at every candidate threshold. A kernel.

    Parameters
    ----------
    cells : ClassCells
    j : int

    Returns
    -------
    curve : ThresholdCurve

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), (∗).
    """
    candidates = np.flatnonzero(cells.n_predicted)
    others = np.arange(cells.mass.shape[1]) != j
    numerator = class_bound(cells, candidates)[others].sum(axis=0)
    wrong = cells.predicted_mass[:, others].sum(axis=1)
    n_selected = _from_above(cells.n_predicted)[candidates]
    return ThresholdCurve(
        thresholds=cells.edges[candidates],
        bound=numerator / n_selected,
        plug_in=_from_above(wrong)[candidates] / n_selected,
        n_selected=n_selected,
    )


def _from_above(values: NDArray[Any]) -> NDArray[Any]:
    return np.cumsum(values[::-1])[::-1]


def threshold_curves(
    votes: ArrayLike | Statistics,
    label_proba: ArrayLike | None = None,
    *,
    resolution: int | None = None,
) -> list[ThresholdCurve]:
    """The objective over all thresholds for every class, for plots and reports.

    Parameters are those of :func:`optimal_thresholds`.

    Parameters
    ----------
    votes : array-like of shape (n_samples, n_classes) or VoteStatistics
    label_proba : array-like of shape (n_samples, n_classes)
        Not given with statistics, which contain it.
    resolution : int, optional
        Bins for each class, see :func:`optimal_thresholds`.

    Returns
    -------
    curves : list of ThresholdCurve

    See Also
    --------
    optimal_thresholds : The best threshold of each class.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), (∗).

    Examples
    --------
    >>> votes = [[0.8, 0.2], [0.7, 0.3], [0.4, 0.6]]
    >>> [len(curve.thresholds) for curve in threshold_curves(votes, votes)]
    [2, 1]
    """
    source = open_cells(votes, label_proba, resolution, above_lowest_prediction=True)
    return [class_curve(cells, j) for j, cells in enumerate(source.cells)]


def search_thresholds(
    votes: ArrayLike | Statistics,
    label_proba: ArrayLike | None = None,
    *,
    resolution: int | None = None,
    criterion: Criterion = "bound",
) -> tuple[Floats, Floats]:
    """Optimal thresholds and the criterion's value at each of them.

    Parameters are those of :func:`optimal_thresholds`. The value is NaN for a class that no row
    is predicted to be.

    Parameters
    ----------
    votes : array-like of shape (n_samples, n_classes) or VoteStatistics
    label_proba : array-like of shape (n_samples, n_classes)
        Not given with statistics, which contain it.
    resolution, criterion
        As in :func:`optimal_thresholds`.

    Returns
    -------
    thresholds, values : ndarray of shape (n_classes,)
        The value is NaN for a class that no row is predicted to be.

    See Also
    --------
    optimal_thresholds : The thresholds alone.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), (∗).

    Examples
    --------
    >>> votes = [[0.8, 0.2], [0.7, 0.3], [0.4, 0.6]]
    >>> thresholds, errors = search_thresholds(votes, votes)
    >>> thresholds.tolist(), errors.round(3).tolist()
    ([0.7, 0.6], [0.25, 0.4])
    """
    if criterion not in ("bound", "plug-in"):
        raise ValueError(f"criterion must be 'bound' or 'plug-in'. Got {criterion!r} instead.")
    thresholds, values = [], []
    source = open_cells(votes, label_proba, resolution, above_lowest_prediction=True)
    for j, cells in enumerate(source.cells):
        curve = class_curve(cells, j)
        best = curve.best(criterion)
        objective = curve.bound if criterion == "bound" else curve.plug_in
        thresholds.append(1.0 if best is None else curve.thresholds[best])
        values.append(np.nan if best is None else objective[best])
    return np.array(thresholds), np.array(values)


def optimal_thresholds(
    votes: ArrayLike | Statistics,
    label_proba: ArrayLike | None = None,
    *,
    resolution: int | None = None,
    criterion: Criterion = "bound",
) -> Floats:
    r"""Thresholds :math:`\theta^*` that minimise the conditional error's bound, class by class.

    Parameters
    ----------
    votes : array-like of shape (n_samples, n_classes) or VoteStatistics
        Class votes, or the statistics accumulated from them.
    label_proba : array-like of shape (n_samples, n_classes)
        :math:`P(Y=c\mid x)`. Not given with statistics, which contain it.
    resolution : int, optional
        Search over the edges of this many bins instead of all distinct votes (the paper's sampling
        rate R, but with exact sums in the bins).
    criterion : {"bound", "plug-in"}, default="bound"
        "bound": objective (∗). "plug-in": the conditional error computed from ``label_proba``
        itself, to compare with; it nearly always prefers the highest threshold.

    Returns
    -------
    thresholds : ndarray of shape (n_classes,)
        The smallest of the minimising thresholds: it selects most rows. 1 for a class that no row
        is predicted to be.

    See Also
    --------
    search_thresholds : The thresholds and their values.
    transductive_bound : The bound at given thresholds.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 4.4, (∗) and Algorithm 1.

    Examples
    --------
    >>> votes = [[0.95, 0.05], [0.9, 0.1], [0.55, 0.45], [0.45, 0.55], [0.1, 0.9]]
    >>> truth = [[1.0, 0.0], [1.0, 0.0], [0.5, 0.5], [0.5, 0.5], [0.0, 1.0]]
    >>> optimal_thresholds(votes, truth).tolist()
    [0.9, 0.55]
    """
    return search_thresholds(votes, label_proba, resolution=resolution, criterion=criterion)[0]
