r"""Learning Q, the weights of the voters (Section 7, which leaves it open).

The bounds of Sections 4 and 5 hold for any Q; here Q is chosen to make one of them small. Three
ways, from the cheapest to the one that the paper names:

- :func:`gibbs_posterior` minimises the error of a random voter plus the price of leaving P;
- :func:`second_order_posterior` minimises the second-order bound, which is convex in Q;
- :func:`c_bound_posterior` minimises CB on the labelled and CBIL on the pseudo-labelled rows.

All three pay :math:`\mathrm{KL}(Q\|P)`, so that few labels cannot move Q far from the prior P, and
all three work on arrays of votes: which estimators made them does not matter.

A bound of a learned Q is what it was: a guarantee *on the given rows* if the label distribution is
true, an estimate otherwise. For new rows :func:`fewlabel.pac_bayes_c_bound` holds for every Q at
once and takes :attr:`Posterior.kl`; P must then be independent of the rows, the voters too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from fewlabel._core.arrays import Floats
from fewlabel.bounds.concentration import kl_divergence
from fewlabel.bounds.mislabeling import held_out_counts, imperfect_proba, mislabeling_matrix
from fewlabel.ensemble.bound_posteriors import (
    c_bound_posterior,
    minimise,
    quadratic,
    second_order_posterior,
    tandem_losses,
)
from fewlabel.ensemble.voter_votes import VoterVotes, check_weighting, has_votes, mix_votes

__all__ = [
    "Posterior",
    "VoterVotes",
    "c_bound_posterior",
    "gibbs_posterior",
    "learn_posterior",
    "mix_votes",
    "second_order_posterior",
    "tandem_losses",
    "uniform_posterior",
]

Method = Literal["uniform", "gibbs", "second-order", "c-bound"]


# --- closed forms ----------------------------------------------------------------------------


def uniform_posterior(n_voters: int) -> Floats:
    """The same weight for each voter, as in the paper's experiments.

    Parameters
    ----------
    n_voters : int

    Returns
    -------
    weights : ndarray of shape (n_voters,)

    See Also
    --------
    gibbs_posterior : Weights by the voters' errors.

    Examples
    --------
    >>> uniform_posterior(4).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    if n_voters < 1:
        raise ValueError(f"n_voters must be at least 1. Got {n_voters} instead.")
    return np.full(n_voters, 1.0 / n_voters)


def gibbs_posterior(
    errors: ArrayLike,
    n_rows: float,
    *,
    inverse_temperature: float = 3.0,
    prior: ArrayLike | None = None,
) -> Floats:
    r"""Weights that fall exponentially with the error of a voter.

    .. math:: Q(h) \propto P(h)\,e^{-\beta\,\mathrm{error}_h}, \qquad
        \beta = \text{inverse\_temperature}\cdot\sqrt{n}

    Parameters
    ----------
    errors : array-like of shape (n_voters,)
        Error of each voter on rows that it was not trained on.
    n_rows : float
        How many rows the errors were counted on.
    inverse_temperature : float, default=3.0
        0: the prior, whatever the errors; large: all weight on the best voter.
    prior : array-like of shape (n_voters,), optional
        P, normalised here. Uniform by default.

    Returns
    -------
    weights : ndarray of shape (n_voters,)

    See Also
    --------
    learn_posterior : Any of the methods by name.
    kl_divergence : How far Q is from P.

    Notes
    -----
    For each fixed β, with probability 1 − ε and for all Q at once, the error of a voter drawn from
    Q is at most

    .. math:: \mathbb{E}_Q[\mathrm{error}_h] + \frac{\mathrm{KL}(Q\|P) + \ln(1/\epsilon)}{\beta}
        + \frac{\beta}{8n}

    (Catoni, 2007) and this Q minimises it. With :math:`\beta\propto\sqrt n` both prices fall like
    :math:`1/\sqrt n`: the differences between voters count once they exceed the noise of the
    errors.

    References
    ----------
    .. [1] O. Catoni, "PAC-Bayesian supervised classification", 2007.

    Examples
    --------
    >>> gibbs_posterior([0.1, 0.2, 0.4], 100).round(4).tolist()
    [0.9525, 0.0474, 0.0001]
    """
    e = np.asarray(errors, dtype=np.float64)
    if e.ndim != 1 or len(e) == 0 or not np.isfinite(e).all():
        raise ValueError(f"errors must be a vector of finite numbers, one for each voter. Got {e}.")
    p = check_weighting(prior, len(e), "prior")
    log_prior = np.log(p, out=np.full(len(p), -np.inf), where=p > 0)
    return softmax(log_prior - _beta(inverse_temperature, n_rows) * (e - e.min()))


def _beta(inverse_temperature: float, n_rows: float) -> float:
    if not (np.isfinite(inverse_temperature) and inverse_temperature >= 0):
        raise ValueError(
            f"inverse_temperature must be a finite number >= 0. Got {inverse_temperature} instead."
        )
    if not n_rows >= 1:
        raise ValueError(f"n_rows must be at least 1: errors of no rows say nothing. Got {n_rows}.")
    return float(inverse_temperature * np.sqrt(n_rows))


# --- all methods by name ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Posterior:
    """Learned weights of the voters.

    Attributes
    ----------
    weights : ndarray of shape (n_voters,)
        Q, for ``vote_matrix(..., weights=)`` and :func:`mix_votes`.
    prior : ndarray of shape (n_voters,)
    errors : ndarray of shape (n_voters,)
        Held-out error of each voter.
    method : {"uniform", "gibbs", "second-order", "c-bound"}
    """

    weights: Floats
    prior: Floats
    errors: Floats
    method: Method

    @property
    def kl(self) -> float:
        """KL(Q‖P), what :func:`fewlabel.pac_bayes_c_bound` charges for having learned Q."""
        return kl_divergence(self.weights, self.prior)


def learn_posterior(
    method: Method,
    evidence: VoterVotes,
    *,
    inverse_temperature: float = 3.0,
    prior: ArrayLike | None = None,
) -> Posterior:
    r"""Learn Q from labelled and, if there are any, unlabelled rows.

    Parameters
    ----------
    method : {"uniform", "gibbs", "second-order", "c-bound"}
        "uniform" learns nothing: all voters that have a prior weigh the same. "gibbs" weighs
        voters by their held-out errors (:func:`gibbs_posterior`). The others start
        from the Gibbs Q, whose mixed vote on the unlabelled rows stands for
        :math:`P(Y\mid x)`, and minimise

        .. math:: \tfrac12\,\text{bound on labelled rows} + \tfrac12\,\text{on unlabelled rows}
            + \mathrm{KL}(Q\|P)/\beta, \qquad \beta=\text{inverse\_temperature}\cdot\sqrt{l}

        "second-order": the plain second-order bound on both, because its correction for
        mislabelling depends on :math:`B_Q(x)` and is not convex. "c-bound": CB, and CBIL with
        the mislabelling matrix of the Gibbs vote on the labelled rows and the
        :math:`P(\hat Y\mid x)` that follows from it.
    evidence : VoterVotes
    inverse_temperature : float, default=3.0
        How much the rows count against the prior; 0: the prior is returned (but for "uniform").
    prior : array-like of shape (n_voters,), optional
        P, normalised here. Uniform by default. A voter with prior 0 gets no weight.

    Returns
    -------
    posterior : Posterior

    See Also
    --------
    gibbs_posterior, second_order_posterior, c_bound_posterior : The methods one by one.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 7, which leaves the choice of Q open.

    Examples
    --------
    >>> good, bad = np.eye(2)[[0, 1, 0, 1]], np.eye(2)[[0, 0, 1, 1]]
    >>> evidence = VoterVotes(np.stack([good, bad]), [0, 1, 0, 1])
    >>> learn_posterior("gibbs", evidence).weights.round(3).tolist()
    [0.953, 0.047]
    """
    if method not in get_args(Method):
        names = ", ".join(repr(name) for name in get_args(Method))
        raise ValueError(f"method must be one of {names}. Got {method!r} instead.")
    errors = evidence.errors
    p = check_weighting(prior, len(errors), "prior")
    if method == "uniform":
        allowed = p > 0
        return Posterior(allowed / allowed.sum(), p, errors, method)
    q = gibbs_posterior(errors, evidence.n_rows, inverse_temperature=inverse_temperature, prior=p)
    beta = _beta(inverse_temperature, evidence.n_rows)
    if method != "gibbs" and beta > 0:
        minimise = _second_order_from if method == "second-order" else _c_bound_from
        q = minimise(q, evidence, p, 1.0 / beta)
    return Posterior(q, p, errors, method)


def _second_order_from(
    gibbs: Floats, evidence: VoterVotes, prior: Floats, penalty: float
) -> Floats:
    losses = tandem_losses(evidence.held_out, evidence.y)
    if evidence.unlabeled is not None:
        label_proba = mix_votes(gibbs, evidence.unlabeled)
        losses = (losses + tandem_losses(evidence.unlabeled, label_proba)) / 2.0
    return minimise(quadratic(losses), prior, penalty, [gibbs])


def _c_bound_from(gibbs: Floats, evidence: VoterVotes, prior: Floats, penalty: float) -> Floats:
    pseudo_proba = matrix = None
    voted = has_votes(gibbs, evidence.held_out)
    if evidence.unlabeled is not None and voted.any():  # a matrix is counted on votes only
        winner = mix_votes(gibbs, evidence.held_out).argmax(axis=1)
        counts = held_out_counts(evidence.y[voted], winner[voted], evidence.held_out.shape[2])
        matrix = mislabeling_matrix(counts, smoothing=1.0)
        pseudo_proba = imperfect_proba(mix_votes(gibbs, evidence.unlabeled), matrix)
    return c_bound_posterior(
        evidence,
        pseudo_proba=pseudo_proba,
        mislabeling=matrix,
        penalty=penalty,
        prior=prior,
        starts=[gibbs],
    )
