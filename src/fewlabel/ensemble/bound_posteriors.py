r"""The Q that minimises a bound on the error of the majority vote: second order, or C-bound.

Both search the simplex of the weights with the gradient of bound + penalty·KL(Q‖P).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import rel_entr

from fewlabel._core.arrays import Floats
from fewlabel._core.checks import (
    check_label_distribution,
    check_relaxation,
    check_same_shape,
    check_weights,
)
from fewlabel.bounds.cbound import Correction, alpha_delta, class_correction
from fewlabel.bounds.margins import margin_sums
from fewlabel.ensemble.voter_votes import VoterVotes, check_voters, check_weighting

# A point of the simplex → what is minimised and its gradient.
_Objective = Callable[[Floats], tuple[float, Floats]]

# A non-convex bound is descended from so many of the best starts.
_DESCENTS = 3
# The logarithm in KL's gradient is cut here; KL itself changes by less than 3e-11.
_SMALLEST_WEIGHT = 1e-12
# λ makes λ + δ_c at least this: an estimated δ near 0 would let one class be the whole bound.
_SMALLEST_DELTA = 0.1


# --- minimising over the simplex -------------------------------------------------------------


def minimise(
    bound: _Objective, prior: Floats, penalty: float, given: Iterable[Floats] = ()
) -> Floats:
    """The best Q found for bound + penalty·KL(Q‖P); never worse than a start.

    The starts are P, the uniform Q, each voter alone and the given ones, without those that weigh
    a voter that P excludes.

    Parameters
    ----------
    bound : callable
        From Q to the bound and its gradient.
    prior : ndarray of shape (n_voters,)
    penalty : float
        Of KL(Q‖P); infinite: the prior.
    given : iterable of ndarray, optional
        More starts.

    Returns
    -------
    weights : ndarray of shape (n_voters,)
    """
    if not penalty >= 0:
        raise ValueError(f"penalty must be a number >= 0. Got {penalty} instead.")
    if np.isinf(penalty):
        return prior

    def objective(q: Floats) -> tuple[float, Floats]:
        value, slope = bound(q)
        kl, kl_slope = _kl(q, prior)
        return value + penalty * kl, slope + penalty * kl_slope

    allowed = prior > 0
    starts = [prior, allowed / allowed.sum(), *np.eye(len(prior)), *given]
    starts = [q for q in starts if allowed[q > 0].all()]
    starts.sort(key=lambda q: objective(q)[0])
    found = [_descend(objective, q, allowed) for q in starts[:_DESCENTS]]
    return min([*starts[:1], *found], key=lambda q: objective(q)[0])


def _kl(q: Floats, prior: Floats) -> tuple[float, Floats]:
    slope = np.zeros_like(q)
    np.divide(np.maximum(q, _SMALLEST_WEIGHT), prior, out=slope, where=prior > 0)
    np.log(slope, out=slope, where=prior > 0)
    # A search may step below 0 by rounding, where KL is infinite.
    return float(rel_entr(np.maximum(q, 0.0), prior).sum()), slope + 1.0


def _descend(objective: _Objective, start: Floats, allowed: NDArray[np.bool_]) -> Floats:
    on_simplex: Any = {
        "type": "eq",
        "fun": lambda q: q.sum() - 1.0,
        "jac": lambda q: np.ones_like(q),
    }
    answer = minimize(
        objective,
        start,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, float(upper)) for upper in allowed],
        constraints=on_simplex,
        options={"ftol": 1e-13, "maxiter": 500},
    )
    q = np.clip(answer.x, 0.0, allowed)
    # A search that failed must not win; its start stays a candidate.
    return q / q.sum() if np.isfinite(q).all() and q.sum() > 0 else start


# --- the second-order bound ------------------------------------------------------------------


def tandem_losses(
    voter_votes: ArrayLike, label_proba: ArrayLike, *, row_weight: ArrayLike | None = None
) -> Floats:
    r"""How often two voters err together, for each pair of voters.

    .. math:: A_{h,h'} = \sum_x w_x \sum_c P(Y=c\mid x)\,(1-v_h(x,c))(1-v_{h'}(x,c))

    Parameters
    ----------
    voter_votes : array-like of shape (n_voters, n_samples, n_classes)
    label_proba : array-like of shape (n_samples, n_classes), or class codes of shape (n_samples,)
    row_weight : array-like of shape (n_samples,), optional
        :math:`w_x`, normalised here to sum to 1. Equal by default.

    Returns
    -------
    losses : ndarray of shape (n_voters, n_voters)
        Symmetric, positive semidefinite; :math:`4\,q^\top A\,q` is :func:`fewlabel.tandem_bound`
        of the mixed vote if all rows weigh the same.

    See Also
    --------
    second_order_posterior : The Q that minimises their mean.
    tandem_bound : The bound.

    References
    ----------
    .. [1] Masegosa et al. (2020), Second order PAC-Bayesian bounds for the weighted majority vote.

    Examples
    --------
    >>> tandem_losses([[[1, 0], [0, 1]], [[0, 1], [0, 1]]], [0, 0]).tolist()
    [[0.5, 0.5], [0.5, 1.0]]
    """
    voters = check_voters(voter_votes, "voter_votes")
    proba = check_label_distribution(label_proba, voters[0])
    n = len(proba)
    weight = np.ones(n) if row_weight is None else check_weights(row_weight, n)
    if not weight.sum() > 0:
        raise ValueError("row_weight is zero for every row: at least one must count.")
    mass = proba * (weight / weight.sum())[:, None]
    losses = np.zeros((len(voters), len(voters)))
    for c in range(proba.shape[1]):  # class by class: no temporary is larger than (n_voters, n)
        loss = 1.0 - voters[:, :, c]
        losses += (loss * mass[:, c]) @ loss.T
    return losses


def second_order_posterior(
    voter_votes: ArrayLike,
    label_proba: ArrayLike,
    *,
    penalty: float = 0.0,
    prior: ArrayLike | None = None,
    row_weight: ArrayLike | None = None,
) -> Floats:
    r"""The Q with the smallest second-order bound, :func:`fewlabel.tandem_bound`.

    .. math:: \min_Q\; 4\sum_x w_x\sum_c P(Y=c\mid x)\,(1-v_Q(x,c))^2
        + \text{penalty}\cdot\mathrm{KL}(Q\|P)

    A convex quadratic form in Q on the simplex, of the matrix of :func:`tandem_losses`, so the rows
    are passed once and the minimum is global. Unlike the Gibbs posterior it rewards voters that err
    on different rows (Masegosa et al., 2020).

    Parameters
    ----------
    voter_votes : array-like of shape (n_voters, n_samples, n_classes)
    label_proba : array-like of shape (n_samples, n_classes), or class codes of shape (n_samples,)
    penalty : float, default=0.0
        Infinite: the prior.
    prior : array-like of shape (n_voters,), optional
        P, normalised here. Uniform by default. A voter with prior 0 gets no weight.
    row_weight : array-like of shape (n_samples,), optional
        :math:`w_x`, normalised here to sum to 1. Equal by default.

    Returns
    -------
    weights : ndarray of shape (n_voters,)

    See Also
    --------
    learn_posterior : With labelled and unlabelled rows.
    tandem_losses : The matrix of the quadratic form.

    References
    ----------
    .. [1] Masegosa et al. (2020), Second order PAC-Bayesian bounds for the weighted majority vote.

    Examples
    --------
    Three voters, each wrong on another row of three: only together they are right on all.

    >>> votes = np.eye(2)[[[1, 0, 0], [0, 1, 0], [0, 0, 1]]]
    >>> second_order_posterior(votes, [0, 0, 0]).round(6).tolist()
    [0.333333, 0.333333, 0.333333]
    """
    losses = tandem_losses(voter_votes, label_proba, row_weight=row_weight)
    return minimise(quadratic(losses), check_weighting(prior, len(losses), "prior"), penalty)


def quadratic(losses: Floats) -> _Objective:
    r"""The second-order bound as a function of Q.

    Parameters
    ----------
    losses : ndarray of shape (n_voters, n_voters)

    Returns
    -------
    bound : callable
        From Q to :math:`4\,q^\top A\,q` and its gradient.
    """

    def bound(q: Floats) -> tuple[float, Floats]:
        slope = 8.0 * losses @ q
        return float(q @ slope) / 2.0, slope

    return bound


# --- the C-bounds ----------------------------------------------------------------------------


class _Rows(NamedTuple):
    """Rows on which a C-bound is taken, and their share of the objective."""

    voters: Floats
    proba: Floats
    correction: Correction
    share: float


def c_bound_posterior(
    evidence: VoterVotes,
    *,
    pseudo_proba: ArrayLike | None = None,
    mislabeling: ArrayLike | None = None,
    relaxation: float | None = None,
    penalty: float = 0.0,
    prior: ArrayLike | None = None,
    starts: Iterable[ArrayLike] = (),
) -> Floats:
    r"""The Q with the smallest C-bounds that was found.

    .. math:: \min_Q\; \tfrac12\,\mathrm{CB}(Q) + \tfrac12\,\mathrm{CBIL}(Q)
        + \text{penalty}\cdot\mathrm{KL}(Q\|P)

    CB on the labelled rows, CBIL (Section 5.3) on the pseudo-labelled ones; both parts weigh the
    same, as in Algorithm 1. Without ``pseudo_proba`` only CB counts.

    Parameters
    ----------
    evidence : VoterVotes
    pseudo_proba : array-like of shape (n_unlabeled, n_classes), or codes of shape (n_unlabeled,)
        :math:`P(\hat Y=c\mid x)` of the unlabelled rows, or their pseudo-labels.
    mislabeling : array-like of shape (n_classes, n_classes), optional
        :math:`p_{i,j}=P(\hat Y=i\mid Y=j)`. None: the pseudo-labels are right.
    relaxation : float, optional
        λ. By default the smallest with :math:`\lambda+\delta_c\ge 0.1` for every class: any class
        may be predicted by some Q, and the correction for δ near 0 would outweigh all the rest.
    penalty, prior
        As in :func:`second_order_posterior`.
    starts : iterable of array-like of shape (n_voters,)
        Weights to start from, besides P, the uniform ones and each voter alone.

    Returns
    -------
    weights : ndarray of shape (n_voters,)
        Never worse than one of the starts. The bounds are not convex in Q, and CBIL jumps where
        :math:`B_Q(x)` changes, so a better Q may exist.

    See Also
    --------
    learn_posterior : With all that it needs made from the votes.
    c_bound, c_bound_imperfect : The bounds.

    Notes
    -----
    Where :math:`\mu_1\le 0` a C-bound does not apply. The trivial 1 has no slope, so
    :math:`\psi-\mu_1\ge 1` stands for it there: the first-order bound
    :math:`1\{M\le 0\}\le 1-M`, to which the C-bound is continuous at :math:`\mu_1=0`.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), (CB) and (CBIL).

    Examples
    --------
    >>> votes = np.eye(2)[[[1, 0, 0], [0, 1, 0], [0, 0, 1]]]
    >>> c_bound_posterior(VoterVotes(votes, [0, 0, 0])).round(4).tolist()
    [0.3333, 0.3333, 0.3333]
    """
    voters = check_voters(evidence.held_out, "held_out")
    p = check_weighting(prior, len(voters), "prior")
    given = [check_weighting(q, len(voters), "a start") for q in starts]
    n_classes = voters.shape[2]
    right = Correction(np.ones(n_classes), np.ones(n_classes))
    parts = [_Rows(voters, check_label_distribution(evidence.y, voters[0]), right, 1.0)]
    if pseudo_proba is not None:
        if evidence.unlabeled is None:
            raise ValueError(
                "pseudo_proba needs the votes of each voter on the same rows: give "
                "VoterVotes.unlabeled, or leave pseudo_proba out."
            )
        proba = check_label_distribution(pseudo_proba, evidence.unlabeled[0])
        correction = _correction_for_all(mislabeling, relaxation, n_classes)
        pseudo = _Rows(evidence.unlabeled, proba, correction, 0.5)
        parts = [parts[0]._replace(share=0.5), pseudo]
    return minimise(_c_bounds(parts), p, penalty, given)


def _correction_for_all(
    mislabeling: ArrayLike | None, relaxation: float | None, n_classes: int
) -> Correction:
    """The correction for mislabelling of each class, predicted at present or not."""
    everyone = margin_sums(np.eye(n_classes), np.arange(n_classes))
    if mislabeling is not None:
        _, delta = alpha_delta(mislabeling)
        check_same_shape(delta, everyone.rows, "a row of mislabeling", "a row of votes")
        if relaxation is None:
            relaxation = max(0.0, _SMALLEST_DELTA - float(delta.min()))
    return class_correction(everyone, mislabeling, check_relaxation(relaxation or 0.0))


def _c_bounds(parts: list[_Rows]) -> _Objective:
    def bound(q: Floats) -> tuple[float, Floats]:
        value, slope = 0.0, np.zeros_like(q)
        for voters, proba, correction, share in parts:
            part, by_vote = _c_bound_and_slope(np.tensordot(q, voters, 1), proba, correction)
            value += share * part
            slope += share * np.tensordot(voters, by_vote, 2)
        return value, slope

    return bound


def _c_bound_and_slope(
    votes: Floats, proba: Floats, correction: Correction
) -> tuple[float, Floats]:
    """CBIL, or ψ − μ1 where μ1 ≤ 0, and its derivative by each vote."""
    rows, best = np.arange(len(votes)), votes.argmax(axis=1)
    others = votes.copy()
    others[rows, best] = -np.inf
    second = others.argmax(axis=1)
    highest = votes[rows, best]
    margins = votes - highest[:, None]
    margins[rows, best] = highest - votes[rows, second]
    mass = proba * (correction.weight[best] / len(votes))[:, None]
    mu1, mu2 = float((mass * margins).sum()), float((mass * margins**2).sum())
    psi = float(correction.psi[best].mean())
    if mu1 > 0:
        value, slope = psi - mu1**2 / mu2, mass * (2 * mu1 / mu2 * (mu1 / mu2 * margins - 1))
    else:
        value, slope = psi - mu1, -mass
    # M_c = v_c − v_best for all c but the best, whose margin is v_best − v_second.
    by_vote, own = slope.copy(), slope[rows, best]
    by_vote[rows, best] = 2 * own - slope.sum(axis=1)
    by_vote[rows, second] -= own
    return value, by_vote
