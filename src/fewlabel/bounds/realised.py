r"""From the expected error to the realised one: a quantile of the share of wrong labels.

With the true P(Y|x) the transductive bounds are about the **expected** share of wrong labels. The
labels themselves are drawn once: the share that is wrong in the end exceeds its expectation in
about half of the draws. Its distribution is known, too: each label is wrong independently of the
others, with its own probability.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import irfft, next_fast_len, rfft

from fewlabel._core.arrays import Floats
from fewlabel._core.checks import check_codes, check_votes

_ROUNDING = 1e-11  # of the transforms, over all rows


def realised_error_quantile(
    label_proba: ArrayLike, labels: ArrayLike, confidence: float = 0.95
) -> float:
    r"""A limit of the realised share of wrong labels, if ``label_proba`` is the true P(Y|x).

    .. math:: \frac1n \min\Bigl\{k : P\Bigl(\sum_x Z_x \le k\Bigr) \ge \text{confidence}\Bigr\},
        \qquad Z_x \sim \mathrm{Bernoulli}(1 - P(Y=\hat y_x\mid x)) \text{ independent}

    The sum has a Poisson-binomial distribution.

    Parameters
    ----------
    label_proba : array-like of shape (n_samples, n_classes)
        P(Y=c|x). With estimated ones the answer is an estimate.
    labels : array-like of int of shape (n_samples,)
        Codes of the labels that the rows got, chosen without knowing the true ones.
    confidence : float, default=0.95
        Probability, over the true labels, with which the share stays below the answer.

    Returns
    -------
    share : float
        A multiple of 1/n_samples.

    See Also
    --------
    risk_bound : a bound of the expected share.
    audit : a limit that needs no probabilities, from random checks.

    Notes
    -----
    Exact for any number of rows: the generating functions of the rows are multiplied in pairs, by
    fast Fourier transforms.

    References
    ----------
    Y. Hong, On computing the distribution function for the Poisson binomial distribution,
    Computational Statistics & Data Analysis 59, 2013.

    Examples
    --------
    >>> proba = np.tile([0.9, 0.1], (100, 1))
    >>> realised_error_quantile(proba, np.zeros(100, dtype=int))  # 10 are expected
    0.15
    """
    proba = check_votes(label_proba)
    codes = check_codes(labels, proba.shape[1], len(proba))
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie strictly between 0 and 1. Got {confidence} instead.")
    wrong = np.maximum(1.0 - proba[np.arange(len(codes)), codes], 0.0)
    reached = np.cumsum(poisson_binomial(wrong)) >= confidence - _ROUNDING
    return int(reached.argmax()) / len(codes)


def poisson_binomial(probabilities: Floats) -> Floats:
    r"""Distribution of a sum of independent Bernoulli variables.

    .. math:: \sum_k P(S=k)\,z^k = \prod_x (1 - p_x + p_x z)

    Parameters
    ----------
    probabilities : ndarray of shape (n,)

    Returns
    -------
    probability : ndarray of shape (n + 1,)
        Of 0, 1, …, n.

    Examples
    --------
    >>> poisson_binomial(np.array([0.5, 0.5])).tolist()
    [0.25, 0.5, 0.25]
    """
    n = len(probabilities)
    factors = np.column_stack([1.0 - probabilities, probabilities])
    while len(factors) > 1:
        if len(factors) % 2:
            one = np.zeros((1, factors.shape[1]))
            one[0, 0] = 1.0
            factors = np.concatenate([factors, one])
        length = 2 * factors.shape[1] - 1
        size = next_fast_len(length, real=True)
        spectrum = rfft(factors, size, axis=1)
        factors = irfft(spectrum[::2] * spectrum[1::2], size, axis=1)[:, :length]
    return np.maximum(factors[0, : n + 1], 0.0)
