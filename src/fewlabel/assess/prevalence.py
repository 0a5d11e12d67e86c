r"""Class shares of the unlabelled rows, from label probabilities and held-out votes.

If labelled rows are "some of each class", their shares say nothing of the table's. Under label
shift, :math:`P(x\mid y)` the same and :math:`P(y)` not, the table's shares can be found from the
votes, with the confusion matrix of held-out rows (:func:`prevalence_draws`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewlabel._core.errors import UserError, listing
from fewlabel.assess.limits import Share, of_finite_population, share
from fewlabel.bounds.statistics import Floats, Ints

DRAWN_LIMITS = (0.01, 0.99)
"""Quantiles of drawn shares that are their 95 % limits: draws pile up where a share is 0."""

# Shares that people type are rounded.
_ROUNDING = 0.011


def mixture_shares(confusion: ArrayLike, said: ArrayLike, *, n_steps: int = 100) -> Floats:
    r"""Class shares that explain how often each class is predicted, by maximum likelihood.

    .. math:: \pi_c \leftarrow \sum_k \mu_k
        \frac{\pi_c\,C_{kc}}{\sum_j \pi_j\,C_{kj}}, \qquad C_{kc} = P(\hat Y=k\mid Y=c),
        \quad \mu_k = P(\hat Y=k)

    Steps of EM. Several problems are solved at once if the arrays have leading dimensions.

    Parameters
    ----------
    confusion : array-like of shape (..., n_classes, n_classes)
        C, columns sum to 1.
    said : array-like of shape (..., n_classes)
        μ, shares of the predictions.
    n_steps : int, default=100

    Returns
    -------
    shares : ndarray of shape (..., n_classes)

    References
    ----------
    Saerens, Latinne and Decaestecker (2002), Adjusting the outputs of a classifier to new a priori
    probabilities. Neural Computation 14. Lipton, Wang and Smola (2018), Detecting and correcting
    for label shift with black box predictors. ICML.

    Examples
    --------
    >>> confusion = [[0.9, 0.1], [0.1, 0.9]]
    >>> mixture_shares(confusion, [0.8, 0.2]).round(3).tolist()  # 0.9 p + 0.1 (1 - p) = 0.8
    [0.875, 0.125]
    """
    C, mu = np.asarray(confusion, dtype=np.float64), np.asarray(said, dtype=np.float64)
    shares = np.ones_like(mu)  # all alike; a step makes them sum to 1
    for _ in range(n_steps):
        joint = C * shares[..., None, :]
        explained = joint / np.maximum(joint.sum(axis=-1, keepdims=True), 1e-300)
        shares = (explained * mu[..., None]).sum(axis=-2)
    return shares


def prevalence_draws(
    y: Ints,
    held_out: Ints,
    predicted: Ints,
    n_classes: int,
    *,
    n_draws: int = 200,
    random_state: int = 0,
) -> Floats:
    """Class shares by black-box shift estimation, drawn from their posterior.

    The confusion matrix of few held-out rows is uncertain: its columns are drawn from Dirichlet
    distributions, with one row of each class beforehand that is right as often as all are.

    Parameters
    ----------
    y, held_out : ndarray of int of shape (n_labeled,)
        Given labels and held-out predictions; -1 for a row without prediction.
    predicted : ndarray of int of shape (n_unlabeled,)
        Predictions of the same classifier for the unlabelled rows.
    n_classes, n_draws, random_state : int

    Returns
    -------
    draws : ndarray of shape (n_draws, n_classes)

    See Also
    --------
    mixture_shares : the shares that one confusion matrix speaks for.

    Examples
    --------
    >>> y, held_out = np.repeat([0, 1], 50), np.repeat([0, 1, 0, 1], [45, 5, 5, 45])
    >>> draws = prevalence_draws(y, held_out, np.repeat([0, 1], [800, 200]), 2)
    >>> draws.mean(axis=0).round(1).tolist()
    [0.9, 0.1]
    """
    rng, voted = np.random.default_rng(random_state), held_out >= 0
    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts, (held_out[voted], y[voted]), 1.0)
    right = (np.trace(counts) + 1.0) / (counts.sum() + 2.0)
    counts += (1.0 - right) / max(n_classes - 1, 1)
    np.fill_diagonal(counts, counts.diagonal() + right - (1.0 - right) / max(n_classes - 1, 1))
    confusion = rng.gamma(np.broadcast_to(counts, (n_draws, *counts.shape)))
    confusion /= np.maximum(confusion.sum(axis=1, keepdims=True), 1e-300)
    said = np.maximum(np.bincount(predicted, minlength=n_classes), 1e-3)
    return mixture_shares(confusion, rng.dirichlet(said, size=n_draws))


def check_priors(priors: Any, classes: NDArray[Any]) -> Floats:
    """Class shares that a user knows, in the order of the classes.

    Parameters
    ----------
    priors : dict or array-like
        A share for each class by its label (or the text of it), or in the order of ``classes``.
    classes : ndarray of shape (n_classes,)

    Returns
    -------
    shares : ndarray of shape (n_classes,)

    Examples
    --------
    >>> check_priors({"b": 0.25, "a": 0.75}, np.array(["a", "b"])).tolist()
    [0.75, 0.25]
    """
    if isinstance(priors, Mapping):
        by_text = {str(label): share for label, share in priors.items()}
        names = [str(label) for label in classes]
        if set(by_text) != set(names):
            absent, unknown = sorted(set(names) - set(by_text)), sorted(set(by_text) - set(names))
            what = [f"no share of {listing(absent)}"] if absent else []
            what += [f"no labelled row of {listing(unknown)}"] if unknown else []
            raise UserError(
                f"priors must give each class its share. There is {' and '.join(what)}.",
                f"The classes are {listing(names, 12)}.",
            )
        priors = [by_text[name] for name in names]
    shares = np.asarray(priors, dtype=np.float64)
    if shares.shape != classes.shape:
        raise UserError(
            f"priors must have a share for each of the {len(classes)} classes. Got an array of "
            f"shape {shares.shape}.",
            f"The classes are {listing([str(label) for label in classes], 12)}.",
        )
    total = float(shares.sum())
    if not (shares > 0).all() or not abs(total - 1.0) <= _ROUNDING:
        raise UserError(
            f"priors must be above 0 and sum to 1. Got {shares.tolist()}, in all {total:.4g}.",
            "Give the share of every class, such as a=0.95,b=0.05.",
        )
    return shares / total


def shifted(label_proba: Floats, ratio: Floats) -> Floats:
    r"""Label probabilities under other class shares, :math:`P'(c\mid x) \propto r_c P(c\mid x)`.

    Examples
    --------
    >>> shifted(np.array([[0.5, 0.5]]), np.array([3.0, 1.0])).tolist()
    [[0.75, 0.25]]
    """
    weighted = label_proba * ratio
    return weighted / weighted.sum(axis=1, keepdims=True)


def with_shares(label_proba: Floats, shares: Floats, *, n_steps: int = 20) -> Floats:
    """Label probabilities whose means are these class shares, by repeated scaling.

    Examples
    --------
    >>> proba = with_shares(np.array([[0.9, 0.1], [0.6, 0.4]]), np.array([0.5, 0.5]))
    >>> proba.mean(axis=0).round(3).tolist()
    [0.5, 0.5]
    """
    for _ in range(n_steps):
        label_proba = shifted(label_proba, shares / np.maximum(label_proba.mean(axis=0), 1e-12))
    return label_proba


def sampled_prevalence(
    y: Ints, held_out: Ints, predicted: Ints, n_classes: int
) -> tuple[Share, ...]:
    r"""Class shares of the unlabelled rows if the labelled ones are a random sample of all.

    .. math:: \hat\pi_c = \frac1l\sum_x 1\{y=c\}
        + \lambda_c\Bigl(\frac1N\sum_{x'} 1\{\hat y=c\} - \frac1l\sum_x 1\{\hat y=c\}\Bigr)

    with the λ in [0, 1] of smallest variance (power-tuned prediction-powered inference).

    Parameters
    ----------
    y, held_out : ndarray of int of shape (n_labeled,)
        Given labels and held-out predictions; -1 for a row without prediction.
    predicted : ndarray of int of shape (n_unlabeled,)
    n_classes : int

    Returns
    -------
    prevalence : tuple of Share

    References
    ----------
    Angelopoulos, Duchi and Zrnic (2023), PPI++: efficient prediction-powered inference.

    Examples
    --------
    >>> y, predicted = np.repeat([0, 1], [12, 8]), np.repeat([0, 1], [500, 500])
    >>> [round(share.value, 2) for share in sampled_prevalence(y, y, predicted, 2)]
    [0.5, 0.5]
    """
    found = []
    for c in range(n_classes):
        given, voted, others = (np.where(v == c, 1.0, 0.0) for v in (y, held_out, predicted))
        value, n_effective = _powered_mean(given, voted, others)
        found.append(share(value, of_finite_population(n_effective, len(predicted))))
    return tuple(found)


def _powered_mean(given: Floats, voted: Floats, others: Floats) -> tuple[float, float]:
    """PPI++ mean of ``given``, and the rows of a plain mean that would be as certain."""
    n, n_others = len(given), len(others)
    if n < 2 or n_others == 0:
        return float(given.mean()) if n else float("nan"), float(n)
    covariance = np.cov(given, voted)
    tuned = covariance[0, 1] / (covariance[1, 1] * (1 + n / n_others)) if covariance[1, 1] else 0.0
    power = max(0.0, float(tuned))  # below 1: a difference of two shares
    value = float(given.mean() + power * (others.mean() - voted.mean()))
    value = min(max(value, 0.0), 1.0)
    spread = value * (1.0 - value)
    # Two more rows of full variance: without an error in a few rows its variance is not 0.
    residual = float(np.sum((given - power * voted - (given - power * voted).mean()) ** 2))
    variance = (residual + 2.0 * spread) / (n + 1.0) / n
    return value, spread / variance if variance > 0 else float(n)


def labeled_shares(y: Ints, n_classes: int) -> Floats:
    """Class shares of labelled rows; a class without any counts as half a row."""
    counts = np.maximum(np.bincount(y, minlength=n_classes), 0.5)
    return counts / counts.sum()


class ClassShares(NamedTuple):
    """Shares of the classes, where they are not simply those of the labelled rows.

    Attributes
    ----------
    table : ndarray of shape (n_classes,) or None
        Of the unlabelled rows, if the user knows them.
    votes : ndarray of shape (n_classes,) or None
        Those that the votes are for; equal ones make every class count the same.
    """

    table: Floats | None = None
    votes: Floats | None = None

    def ratios(self, y: Ints) -> tuple[float, ...] | None:
        """Shares of the labelled rows over those that votes are for; None if they do not differ."""
        if self.votes is None:
            return None
        return tuple(labeled_shares(y, len(self.votes)) / self.votes)
