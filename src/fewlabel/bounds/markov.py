r"""First-order and second-order bounds on the error of the majority vote, by Markov's inequality.

The paper compares its C-bounds with them.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from fewlabel.bounds.cbound import class_correction, markov_bound_of
from fewlabel.bounds.margins import margin_sums


def gibbs_bound(
    votes: ArrayLike,
    label_proba: ArrayLike,
    *,
    mislabeling: ArrayLike | None = None,
    relaxation: float = 0.0,
) -> float:
    r"""First-order bound: the majority vote errs at most twice as often as a random voter.

    .. math:: R(B_Q) \le 2\,\mathbb{E}\sum_c P(Y=c\mid X)\,(1 - v_Q(X,c))

    With ``mislabeling`` the labels are imperfect and the correction of
    Section 5.2 is applied to each row, as in CBIL:
    :math:`R(B_Q) \le \mathbb{E}[\psi - w] + 2\,\mathbb{E}[w\,\ell]`, :math:`w=1/(\lambda+\delta)`.
    ``label_proba`` is then :math:`P(\hat Y=c\mid x)`; with drawn labels the number is an estimate.

    Parameters
    ----------
    votes : array-like of shape (n_samples, n_classes)
    label_proba : array-like of shape (n_samples, n_classes), or class codes of shape (n_samples,)
        :math:`P(Y=c\mid x)`, or the labels.
    mislabeling : array-like of shape (n_classes, n_classes), or None
        :math:`p_{i,j}=P(\hat Y=i\mid Y=j)`. None: the labels are right.
    relaxation : float, default=0.0
        λ, see :func:`c_bound_imperfect`.

    Returns
    -------
    bound : float

    See Also
    --------
    tandem_bound : Second order, smaller if the voters err apart.
    gibbs_risk : The expectation on the right.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 5.2, for the correction.

    Examples
    --------
    >>> gibbs_bound([[0.75, 0.25], [0.5, 0.5]], [0, 0])
    0.75
    """
    sums = margin_sums(votes, label_proba)
    return markov_bound_of(sums, class_correction(sums, mislabeling, relaxation), order=1)


def tandem_bound(
    votes: ArrayLike,
    label_proba: ArrayLike,
    *,
    mislabeling: ArrayLike | None = None,
    relaxation: float = 0.0,
) -> float:
    r"""Second-order bound of Masegosa et al. (2020) by the tandem loss.

    .. math::
        R(B_Q) \le 4\,\mathbb{E}_{h,h'\sim Q^2}\mathbb{E}\,1\{h(X)\ne Y\}1\{h'(X)\ne Y\}
        = 4\,\mathbb{E}\sum_c P(Y=c\mid X)\,(1-v_Q(X,c))^2

    Two voters drawn independently err together with probability :math:`(1-v_Q(x,y))^2`, so the
    votes are all that is needed; the right side bounds the error for soft votes too, since
    :math:`B_Q(x)\ne y` implies :math:`v_Q(x,y)\le 1/2`. With ``mislabeling``, corrected as in
    :func:`gibbs_bound`; the paper names this combination and leaves it open.

    Parameters
    ----------
    votes : array-like of shape (n_samples, n_classes)
    label_proba : array-like of shape (n_samples, n_classes), or class codes of shape (n_samples,)
        :math:`P(Y=c\mid x)`, or the labels.
    mislabeling : array-like of shape (n_classes, n_classes), or None
        :math:`p_{i,j}=P(\hat Y=i\mid Y=j)`. None: the labels are right.
    relaxation : float, default=0.0
        λ, see :func:`c_bound_imperfect`.

    Returns
    -------
    bound : float

    See Also
    --------
    gibbs_bound : First order.
    second_order_posterior : The Q that minimises it.

    References
    ----------
    .. [1] Masegosa et al. (2020), Second order PAC-Bayesian bounds for the weighted majority vote.

    Examples
    --------
    >>> tandem_bound([[0.75, 0.25], [0.5, 0.5]], [0, 0])
    0.625
    """
    sums = margin_sums(votes, label_proba)
    return markov_bound_of(sums, class_correction(sums, mislabeling, relaxation), order=2)
