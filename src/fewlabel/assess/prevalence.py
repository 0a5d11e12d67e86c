r"""Class shares of the unlabelled rows, from label probabilities and held-out votes.

If labelled rows are "some of each class", their shares say nothing of the table's. Under label
shift, :math:`P(x\mid y)` the same and :math:`P(y)` not, the table's shares can be found from the
votes: by EM on label probabilities (:func:`em_prevalence`), or by inverting the confusion matrix
(:func:`black_box_prevalence`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls

from fewlabel._core.checks import check_proba
from fewlabel._core.errors import UserError, listing
from fewlabel.assess.calibration import calibrated, calibrated_by
from fewlabel.assess.limits import Share, of_finite_population, share
from fewlabel.bounds.statistics import Floats, Ints

# Shares that people type are rounded.
_ROUNDING = 0.011


def em_prevalence(
    label_proba: ArrayLike, trained_share: ArrayLike, *, max_iter: int = 500, tol: float = 1e-7
) -> Floats:
    r"""Class shares of rows by EM (Saerens, Latinne and Decaestecker).

    .. math:: \pi_c \leftarrow \frac1N \sum_x
        \frac{\frac{\pi_c}{\rho_c} P(c\mid x)}{\sum_k \frac{\pi_k}{\rho_k} P(k\mid x)}

    Parameters
    ----------
    label_proba : array-like of shape (n_rows, n_classes)
        Calibrated probabilities of a classifier whose training rows had the shares ρ.
    trained_share : array-like of shape (n_classes,)
        ρ, the class shares of the training rows.
    max_iter : int, default=500
    tol : float, default=1e-7
        Stop when no share moves further than this.

    Returns
    -------
    prevalence : ndarray of shape (n_classes,)

    See Also
    --------
    black_box_prevalence : needs no probabilities, but a confusion matrix.

    References
    ----------
    Saerens, Latinne and Decaestecker (2002), Adjusting the outputs of a classifier to new a priori
    probabilities. Neural Computation 14.

    Examples
    --------
    >>> proba = np.repeat([[0.9, 0.1], [0.1, 0.9]], [80, 20], axis=0)  # trained on 1 : 1
    >>> em_prevalence(proba, [0.5, 0.5]).round(3).tolist()  # 0.9 p + 0.1 (1 - p) = 0.8
    [0.875, 0.125]
    """
    proba = check_proba(label_proba, "label_proba")
    share = np.asarray(trained_share, dtype=np.float64)
    if share.shape != (proba.shape[1],) or not (share > 0).all():
        raise ValueError(
            f"trained_share must be positive, one for each of the {proba.shape[1]} classes. Got "
            f"{share}."
        )
    ratio = proba / (share / share.sum())
    prevalence = share / share.sum()
    for _ in range(max_iter):
        adjusted = ratio * prevalence
        updated = (adjusted / adjusted.sum(axis=1, keepdims=True)).mean(axis=0)
        moved = float(np.abs(updated - prevalence).max())
        prevalence = updated
        if moved < tol:
            break
    return prevalence


def black_box_prevalence(y: Ints, held_out: Ints, predicted: Ints, n_classes: int) -> Floats:
    r"""Class shares by black-box shift estimation (BBSE): the confusion matrix, inverted.

    .. math:: \hat\pi = \arg\min_{\pi\ge0} \|C\pi - \mu\|, \qquad C_{kc} = P(\hat Y=k\mid Y=c),
        \quad \mu_k = P(\hat Y = k)

    Parameters
    ----------
    y, held_out : ndarray of int of shape (n_labeled,)
        Given labels and held-out predictions; -1 for a row without prediction.
    predicted : ndarray of int of shape (n_unlabeled,)
    n_classes : int

    Returns
    -------
    prevalence : ndarray of shape (n_classes,)

    References
    ----------
    Lipton, Wang and Smola (2018), Detecting and correcting for label shift with black box
    predictors. ICML.

    Examples
    --------
    >>> y, held_out = np.repeat([0, 1], 10), np.repeat([0, 1, 0, 1], [9, 1, 1, 9])
    >>> predicted = np.repeat([0, 1], [80, 20])
    >>> black_box_prevalence(y, held_out, predicted, 2).round(2).tolist()
    [0.87, 0.13]
    """
    counts = np.eye(n_classes)  # one right row of each class: no column is empty
    voted = held_out >= 0
    np.add.at(counts, (held_out[voted], y[voted]), 1.0)
    confusion = counts / counts.sum(axis=0)
    target = np.bincount(predicted, minlength=n_classes) / len(predicted)
    found, _ = nnls(confusion, target)
    total = found.sum()
    return found / total if total > 0 else target


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


def prevalence_draws(
    held_out: Floats,
    y: Ints,
    votes: Floats,
    trained_share: Floats,
    *,
    n_draws: int = 40,
    max_rows: int = 300,
    random_state: int = 0,
) -> Floats:
    """Class shares by EM on bootstrap samples: of the labelled rows within their classes, which
    give the temperature, and of the unlabelled rows.

    Parameters
    ----------
    held_out : ndarray of shape (n_labeled, n_classes)
    y : ndarray of int of shape (n_labeled,)
    votes : ndarray of shape (n_unlabeled, n_classes)
        Votes that are not calibrated.
    trained_share : ndarray of shape (n_classes,)
    n_draws, max_rows, random_state : int
        ``max_rows``: unlabelled rows in a sample, at most.

    Returns
    -------
    draws : ndarray of shape (n_draws, n_classes)
    """
    rng = np.random.default_rng(random_state)
    voted = np.flatnonzero(held_out.any(axis=1))
    members = [voted[y[voted] == c] for c in np.unique(y[voted])]
    draws = np.empty((n_draws, votes.shape[1]))
    for draw in draws:
        power = 1.0
        if members:
            rows = np.concatenate([rng.choice(m, size=len(m)) for m in members])
            power = calibrated_by(held_out[rows], y[rows])
        sample = votes[rng.integers(len(votes), size=min(max_rows, len(votes)))]
        draw[:] = em_prevalence(calibrated(sample, power), trained_share, tol=1e-4)
    return draws


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
    n, n_unlabeled = len(y), len(predicted)
    found = []
    for c in range(n_classes):
        given, voted, others = y == c, held_out == c, predicted == c
        value, n_effective = _powered_mean(given * 1.0, voted * 1.0, others * 1.0)
        found.append(share(value, of_finite_population(n_effective, n_unlabeled) if n else 0.0))
    return tuple(found)


def _powered_mean(given: Floats, voted: Floats, others: Floats) -> tuple[float, float]:
    """PPI++ mean of ``given``, and the rows of a plain mean that would be as certain."""
    n, n_others = len(given), len(others)
    if n < 2 or n_others == 0:
        return float(given.mean()) if n else float("nan"), float(n)
    covariance = np.cov(given, voted)
    tuned = covariance[0, 1] / (covariance[1, 1] * (1 + n / n_others)) if covariance[1, 1] else 0.0
    power = float(np.clip(tuned, 0.0, 1.0))
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
