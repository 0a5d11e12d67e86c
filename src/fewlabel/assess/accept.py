r"""Which labels can be taken as they are: the most rows whose estimated error stays below a limit.

Rows are sorted by confidence, and as many are accepted as keep the mean doubt below
``max_error``. The doubt is a cautious one: of a confidence whose mean matches an error between the
estimate and its upper limit (:attr:`fewlabel.assess.error_estimate.Assessment.cautious`), because
rows are accepted where the estimate happens to be too small rather than too large.
"""

from __future__ import annotations

from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewlabel.bounds.statistics import Floats


def accept_threshold(confidence: ArrayLike, max_error: float) -> float:
    r"""The smallest confidence with which a row is accepted.

    .. math:: \theta = \min\Bigl\{\theta : \frac{\sum_x (1-c_x)\,1\{c_x\ge\theta\}}
        {\sum_x 1\{c_x\ge\theta\}} \le \text{max\_error}\Bigr\}

    over the confidences that occur: rows with the same confidence are accepted together.

    Parameters
    ----------
    confidence : array-like of shape (n_rows,)
        Chance that each label is right.
    max_error : float in [0, 1]
        Share of wrong labels that is tolerable among the accepted rows.

    Returns
    -------
    threshold : float
        inf if no row can be accepted.

    See Also
    --------
    accept_mask : the rows themselves.

    Examples
    --------
    >>> accept_threshold([0.99, 0.97, 0.9, 0.6], 0.05)
    0.9
    """
    return threshold_among(acceptance_steps(_checked(confidence)), max_error)


def acceptance_steps(confidence: Floats) -> Floats:
    """For each confidence that occurs, the highest first, the mean doubt of rows that reach it.

    Returns
    -------
    steps : ndarray of shape (n_steps, 2)
        Mean doubt, which rises, and confidence, which falls.

    Examples
    --------
    >>> acceptance_steps(np.array([1.0, 0.9, 0.9])).round(3).tolist()
    [[0.0, 1.0], [0.067, 0.9]]
    """
    order = np.sort(confidence)[::-1]
    mean_doubt = np.cumsum(1.0 - order) / np.arange(1, len(order) + 1)
    last_of_its_value = np.append(order[1:] < order[:-1], True)[: len(order)]
    # Rounding must not let it fall.
    rising = np.maximum.accumulate(np.maximum(mean_doubt, 0.0))
    return np.column_stack([rising, order])[last_of_its_value]


def accept_mask(confidence: ArrayLike, max_error: float) -> NDArray[np.bool_]:
    """The most rows whose mean doubt is at most ``max_error``, the most confident first.

    Parameters
    ----------
    confidence : array-like of shape (n_rows,)
        Chance that each label is right.
    max_error : float in [0, 1]

    Returns
    -------
    accepted : ndarray of bool of shape (n_rows,)
        Rows that are accepted for an error are accepted for every larger one.

    See Also
    --------
    accept_threshold : for new rows.

    Examples
    --------
    >>> accept_mask([0.6, 0.99, 0.9, 0.97], 0.05).tolist()
    [False, True, True, True]
    """
    c = _checked(confidence)
    return np.asarray(c >= accept_threshold(c, max_error))


def threshold_among(steps: Floats, max_error: float) -> float:
    """The confidence of the last of :func:`acceptance_steps` that an error allows, or infinity."""
    if not (isinstance(max_error, Real) and 0.0 <= float(max_error) <= 1.0):
        raise ValueError(
            f"max_error must be a share of wrong labels in [0, 1], such as 0.05. Got {max_error!r} "
            f"instead."
        )
    # The slack of a rounding error: 1 - 0.95 is a little more than 0.05.
    n_fitting = int(np.searchsorted(steps[:, 0], max_error + 1e-12, side="right"))
    return float(steps[n_fitting - 1, 1]) if n_fitting else float("inf")


def _checked(confidence: ArrayLike) -> Floats:
    c = np.asarray(confidence, dtype=np.float64)
    if c.ndim != 1 or not ((c >= 0).all() and (c <= 1 + 1e-9).all()):
        raise ValueError("confidence must be a vector of probabilities, one for each row.")
    return c
