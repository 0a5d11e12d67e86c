r"""Transductive bounds for the majority vote (Sections 4.1–4.3).

For a true class i, a predicted class j and a threshold :math:`\theta_j` Theorem 1 bounds the joint
conditional risk by

.. math::
    R_{U\wedge\theta}(B_Q,i,j) \le \inf_{\gamma\in[\theta_j,1]} \Big\{
    I_{i,j}^{(\le,<)}(\theta_j,\gamma)
    + \frac1\gamma \big[K_{i,j} - M^<_{i,j}(\gamma) + M^<_{i,j}(\theta_j)\big]_+ \Big\}
    \qquad (\mathrm{TB}_{i,j})

:math:`U(\gamma)` falls until the bracket becomes zero and rises after it, so the infimum is where
the bracket changes sign, found by bisection in cumulative sums, or at :math:`\gamma=1` if it
never does.

**What kind of statement this is.** With the true :math:`P(Y\mid x)` as ``label_proba`` every bound
here is a theorem about the given rows. With estimated probabilities it is an estimate.

Departures from the printed text: the indicator in the solution of the linear program is
:math:`t > k_j`; :math:`u_i` is the sum of ``label_proba``; when :math:`K_{i,j}` exceeds all that
lies above :math:`\theta_j` the printed formula (the default) is larger than the optimum of the
linear program, which ``tight=True`` gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from fewlabel._core.arrays import Floats, Ints
from fewlabel._core.checks import check_thresholds
from fewlabel.bounds.cells import Statistics, open_cells
from fewlabel.bounds.statistics import ClassCells


def class_bound(cells: ClassCells, start: Ints, *, tight: bool = False) -> Floats:
    r"""Bounds :math:`u_i\,[\mathbf U_\theta]_{i,j}` of one predicted class j. A kernel.

    Parameters
    ----------
    cells : ClassCells of class j
    start : ndarray of int of shape (n_thresholds,)
        First cell at or above each threshold; ``len(cells.edges)`` if there is none.
    tight : bool, default=False
        Whether to bound by all the mass above the threshold where that is smaller.

    Returns
    -------
    bound : ndarray of shape (n_classes, n_thresholds)

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 4.1, (TB\ :sub:`i,j`).
    """
    n_cells, n_classes = cells.mass.shape
    gamma = np.append(cells.edges, 1.0)
    bound = np.empty((n_classes, len(start)))
    for i in range(n_classes):
        mass = _cumulated(cells.mass[:, i])  # mass[t] = u_i I(0, γ_t)
        vote_mass = _cumulated(cells.vote_mass[:, i])  # vote_mass[t] = u_i M^<(γ_t)
        level = cells.gibbs[i] + vote_mass[start]
        # The bracket is positive at γ_p and not at γ_{p+1}; p = n_cells means "never, take γ = 1".
        p = np.maximum(np.searchsorted(vote_mass[1:], level), start)
        bracket = np.maximum(level - vote_mass[p], 0.0)
        filled = mass[p] - mass[start] + _over_gamma(bracket, gamma[p])
        # U(γ_{p+1}); smaller than U(γ_p) only in binned cells, where γ_p is below the votes.
        whole = mass[np.minimum(p + 1, n_cells)] - mass[start]
        if not tight:
            whole[p == n_cells] = np.inf
        bound[i] = np.minimum(filled, whole)
    return bound


def _cumulated(values: Floats) -> Floats:
    sums = np.zeros(len(values) + 1)
    np.cumsum(values, out=sums[1:])
    return sums


def _over_gamma(bracket: Floats, gamma: Floats) -> Floats:
    # γ = 0 occurs as the vote of rows without any vote for j: 0/0 adds nothing.
    quotient = np.where(bracket > 0, np.inf, 0.0)
    return np.divide(bracket, gamma, out=quotient, where=gamma > 0)


@dataclass(frozen=True)
class TransductiveBound:
    r"""Bounds of the majority vote's errors on a set of rows (Theorem 1 and its corollary).

    Attributes
    ----------
    confusion : ndarray of shape (n_classes, n_classes)
        :math:`\mathbf U_\theta`: bounds of the joint conditional risks; row true class, column
        predicted class, zero diagonal. Entries may exceed 1.
    class_share : ndarray of shape (n_classes,)
        :math:`\mathbf p = (u_i/u)_i`.
    selected_share : float
        :math:`\pi(v_Q(x,k)\ge\theta_k)`: share of rows whose vote reaches the threshold.
    """

    confusion: Floats
    class_share: Floats
    selected_share: float

    @property
    def risk(self) -> float:
        r"""Bound (TB) of the joint error rate: :math:`\lVert\mathbf U_\theta^T\mathbf p\rVert_1`"""
        return float((self.class_share @ self.confusion).sum())

    @property
    def norm(self) -> float:
        r"""Bound :math:`\lVert\mathbf U_\theta\rVert` of the confusion matrix's spectral norm."""
        return float(np.linalg.norm(self.confusion, 2))

    @property
    def conditional_error(self) -> float:
        """Bound of the error rate among the selected rows; NaN if no row is selected."""
        return self.risk / self.selected_share if self.selected_share > 0 else float("nan")


def transductive_bound(
    votes: ArrayLike | Statistics,
    label_proba: ArrayLike | None = None,
    *,
    thresholds: ArrayLike | None = None,
    resolution: int | None = None,
    tight: bool = False,
) -> TransductiveBound:
    r"""Bound the errors of the majority vote on these rows (Section 4.1).

    Parameters
    ----------
    votes : array-like of shape (n_samples, n_classes) or VoteStatistics
        Class votes, or the statistics accumulated from them.
    label_proba : array-like of shape (n_samples, n_classes)
        :math:`P(Y=c\mid x)`. Not given with statistics, which contain it.
    thresholds : float or array-like of shape (n_classes,), optional
        θ: only rows whose vote for the predicted class reaches it count. By default all rows do:
        θ is then the lowest vote with which each class is predicted. The error is the same as with
        θ = 0, the bound far smaller.
    resolution : int, optional
        Bins for each class: faster, and never smaller than the exact bound. A threshold within a
        bin is replaced by the bin's edge on the safe side.
    tight : bool, default=False
        Use the linear program's optimum, not the printed formula, where they differ.

    Returns
    -------
    TransductiveBound

    See Also
    --------
    optimal_thresholds, tightness : The smallest bound; how far it can be from the risk.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 4.1, (TB).

    Examples
    --------
    >>> votes = [[0.8, 0.2], [0.6, 0.4], [0.3, 0.7], [0.1, 0.9]]
    >>> round(transductive_bound(votes, votes, thresholds=0.5).risk, 3)
    0.25
    """
    source = open_cells(votes, label_proba, resolution)
    u = source.u
    theta = None if thresholds is None else check_thresholds(thresholds, len(u))
    sums = np.zeros((len(u), len(u)))
    selected = 0
    for j, cells in enumerate(source.cells):
        if theta is None:
            won = np.flatnonzero(cells.n_predicted)
            start = at_or_above = int(won[0]) if len(won) else len(cells.edges)
        else:
            start = at_or_above = int(np.searchsorted(cells.edges, theta[j]))
            exact = start < len(cells.edges) and cells.edges[start] == theta[j]
            if source.resolution and not exact:
                start -= 1  # the bin that contains θ counts whole in the bound, not at all in π
        sums[:, j] = class_bound(cells, np.array([start]), tight=tight)[:, 0]
        selected += int(cells.n_predicted[at_or_above:].sum())
    confusion = np.divide(sums, u[:, None], out=np.zeros_like(sums), where=u[:, None] > 0)
    np.fill_diagonal(confusion, 0.0)
    return TransductiveBound(confusion, u / source.n_rows, selected / source.n_rows)


class BoundOptions(TypedDict, total=False):
    """The keyword arguments of :func:`transductive_bound`, for the functions that pass them on."""

    thresholds: ArrayLike | None
    resolution: int | None
    tight: bool


def confusion_bound(
    votes: ArrayLike | Statistics,
    label_proba: ArrayLike | None = None,
    **options: Unpack[BoundOptions],
) -> Floats:
    r"""Matrix :math:`\mathbf U_\theta` that bounds the confusion matrix (Section 4.2).

    Parameters
    ----------
    votes, label_proba, **options
        As in :func:`transductive_bound`.

    Returns
    -------
    confusion : ndarray of shape (n_classes, n_classes)

    See Also
    --------
    bayes_confusion : The matrix that is bounded.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 4.2.

    Examples
    --------
    >>> confusion_bound([[0.8, 0.2], [0.4, 0.6]], [[0.8, 0.2], [0.4, 0.6]]).round(2).tolist()
    [[0.0, 0.33], [0.25, 0.0]]
    """
    return transductive_bound(votes, label_proba, **options).confusion


def risk_bound(
    votes: ArrayLike | Statistics,
    label_proba: ArrayLike | None = None,
    **options: Unpack[BoundOptions],
) -> float:
    r"""Bound (TB) of the (joint) error rate, :math:`\lVert\mathbf U_\theta^T\mathbf p\rVert_1`.

    Parameters
    ----------
    votes, label_proba, **options
        As in :func:`transductive_bound`.

    Returns
    -------
    bound : float

    See Also
    --------
    bayes_risk : The error rate that is bounded.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 4.2, (TB).

    Examples
    --------
    >>> round(risk_bound([[0.8, 0.2], [0.4, 0.6]], [[0.8, 0.2], [0.4, 0.6]]), 3)
    0.3
    """
    return transductive_bound(votes, label_proba, **options).risk


def conditional_error_bound(
    votes: ArrayLike | Statistics,
    label_proba: ArrayLike | None = None,
    **options: Unpack[BoundOptions],
) -> float:
    r"""Bound of the conditional error rate :math:`R_{U|\theta}(B_Q)` (Section 4.4).

    How often the majority vote errs among the rows whose vote reaches the threshold.

    Parameters
    ----------
    votes, label_proba, **options
        As in :func:`transductive_bound`.

    Returns
    -------
    bound : float
        NaN if no row reaches the thresholds.

    See Also
    --------
    optimal_thresholds : Thresholds that minimise it.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 4.4, (∗).

    Examples
    --------
    >>> votes = [[0.8, 0.2], [0.7, 0.3], [0.4, 0.6]]
    >>> round(conditional_error_bound(votes, votes, thresholds=[0.75, 0.6]), 3)
    0.405
    """
    return transductive_bound(votes, label_proba, **options).conditional_error


@dataclass(frozen=True)
class Tightness:
    r"""How far (TB) can be from the true conditional risks (Section 4.3).

    Each attribute is an ndarray of shape (n_classes, n_classes), row i true, column j predicted.

    Attributes
    ----------
    C : share of the class-i mass below each vote of Γ^τ that is predicted j, at least
    tau : the threshold τ on :math:`b_{i,j}^{(t)}`
    gamma_star : highest vote with :math:`b_{i,j}^{(t)} > \tau`; NaN if there is none
    r : vote-weighted risk above ``gamma_star``
    gap : :math:`\frac{1-C}{C}R_U(B_Q,i,j) + r_{i,j}(1/\gamma^*_j - 1)`, what the proposition allows
        the bound to exceed the risk by; infinite where it promises nothing
    actual_gap : :math:`[\mathbf U_0]_{i,j} - R_U(B_Q,i,j)`, never above ``gap``
    """

    C: Floats
    tau: Floats
    gamma_star: Floats
    r: Floats
    gap: Floats
    actual_gap: Floats


def tightness(
    votes: ArrayLike | Statistics,
    label_proba: ArrayLike | None = None,
    *,
    tau: float | None = None,
) -> Tightness:
    r"""Evaluate the tightness statement of Section 4.3.

    Parameters
    ----------
    votes, label_proba
        As in :func:`transductive_bound`; statistics must be exact.
    tau : float in [0, 1], optional
        τ for all pairs. By default each pair gets the τ that allows the smallest gap.

    Returns
    -------
    tightness : Tightness

    See Also
    --------
    transductive_bound : The bound.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 4.3.

    Examples
    --------
    >>> votes = [[0.8, 0.2], [0.7, 0.3], [0.4, 0.6]]
    >>> found = tightness(votes, votes)
    >>> bool((found.actual_gap <= found.gap + 1e-12).all())
    True
    """
    source = open_cells(votes, label_proba, None)
    u = source.u
    if source.resolution is not None:
        raise ValueError("tightness needs the distinct votes; make the statistics exact.")
    if tau is not None and not 0 <= tau <= 1:
        raise ValueError(f"tau must lie in [0, 1]. Got {tau!r} instead.")
    parts = np.zeros((6, len(u), len(u)))
    for j, cells in enumerate(source.cells):
        bound = class_bound(cells, np.array([0]))[:, 0]
        for i in np.flatnonzero(u > 0):
            if i != j:
                parts[:, i, j] = _pair_tightness(cells, int(i), u[i], bound[i], tau)
    return Tightness(*parts)


def _pair_tightness(
    cells: ClassCells, i: int, u_i: float, bound: float, tau: float | None
) -> tuple[float, float, float, float, float, float]:
    b = cells.predicted_mass[:, i] / u_i
    b_below, B_below = _cumulated(b), _cumulated(cells.mass[:, i] / u_i)
    risk = b_below[-1]
    actual = bound / u_i - risk
    # Γ^τ holds the cells with the largest b: as τ falls, cells join in this order.
    joining = np.argsort(-b, kind="stable")
    joining = joining[b[joining] > 0]
    if len(joining) == 0:  # no row of class i is predicted j: the bound is 0 and so is the risk
        return 1.0, tau or 0.0, np.nan, 0.0, 0.0, actual
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(B_below > 0, b_below / B_below, 1.0)[joining]
    C = np.minimum.accumulate(np.minimum(share, 1.0))
    highest = np.maximum.accumulate(joining)
    above = np.append(np.cumsum((b * cells.edges)[::-1])[::-1], 0.0)  # Σ_{s≥t} b γ
    r, gamma = above[highest + 1], cells.edges[highest]
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = (1 - C) / C * risk + r * (1 / gamma - 1)  # infinite where C is 0
    b_next = np.append(b[joining][1:], 0.0)
    if tau is None:
        complete = b_next < b[joining]  # cells with equal b join together
        best = int(np.flatnonzero(complete)[np.argmin(gap[complete])])
        tau = float(b_next[best])
    else:
        best = int((b[joining] > tau).sum()) - 1
        if best < 0:
            return np.nan, tau, np.nan, np.nan, np.inf, actual
    return C[best], tau, gamma[best], r[best], gap[best], actual
