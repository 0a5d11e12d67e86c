r"""Moments of the margin and the other sums over rows that the bounds of Section 5 are made of.

Every bound of :mod:`fewlabel.bounds.cbound` needs the same few sums, one for each predicted class:
they are accumulated once and add up over parts of the data.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fewlabel._core.arrays import Floats
from fewlabel._core.checks import check_label_distribution, check_same_shape, check_votes

# Rows of one pass of the kernel: the temporaries of that many rows stay in the processor's cache.
_CHUNK_ROWS = 8192


@dataclass(frozen=True)
class MarginSums:
    r"""Sums over rows, each an array of shape (n_classes,) indexed by the predicted class B_Q(x).

    Attributes
    ----------
    rows : number of rows
    error : :math:`\sum_x 1 - P(Y=B_Q(x)\mid x)`
    loss : :math:`\sum_x\sum_c P(Y=c\mid x)(1-v_c)`, the loss of the Gibbs classifier
    tandem : :math:`\sum_x\sum_c P(Y=c\mid x)(1-v_c)^2`, the loss of two voters at once
    margin : :math:`\sum_x\sum_c P(Y=c\mid x) M_Q(x,c)`
    margin2 : :math:`\sum_x\sum_c P(Y=c\mid x) M_Q(x,c)^2`
    binary, binary2 : the same with the binary margin :math:`2v_c-1`
    """

    rows: Floats
    error: Floats
    loss: Floats
    tandem: Floats
    margin: Floats
    margin2: Floats
    binary: Floats
    binary2: Floats

    def __add__(self, other: MarginSums) -> MarginSums:
        return MarginSums(*(a + b for a, b in zip(astuple(self), astuple(other))))

    @property
    def share(self) -> Floats:
        """Share of the rows that are predicted to be of each class."""
        return self.rows / self.rows.sum()

    def moments(self, weights: Floats, margin: str = "multiclass") -> tuple[float, float]:
        """First and second margin moment, the rows predicted c weighing ``weights[c]``."""
        n = self.rows.sum()
        first, second = (
            (self.margin, self.margin2) if margin == "multiclass" else (self.binary, self.binary2)
        )
        return float(weights @ first / n), float(weights @ second / n)


def margin_sums(votes: ArrayLike, label_proba: ArrayLike) -> MarginSums:
    """Accumulate :class:`MarginSums`; those of two parts of the rows add up.

    Parameters
    ----------
    votes : array-like of shape (n_samples, n_classes)
    label_proba : array-like of shape (n_samples, n_classes), or class codes of shape (n_samples,)

    Returns
    -------
    sums : MarginSums

    See Also
    --------
    margin_moments : Moments of the margin from these sums.

    Examples
    --------
    >>> sums = margin_sums([[0.75, 0.25], [0.25, 0.75]], [0, 0])
    >>> sums.error.tolist(), sums.margin.tolist()
    ([0.0, 1.0], [0.5, -0.5])
    """
    v = check_votes(votes)
    proba = check_label_distribution(label_proba, v)
    starts = range(0, len(v), _CHUNK_ROWS)
    parts = (_chunk_sums(v[s : s + _CHUNK_ROWS], proba[s : s + _CHUNK_ROWS]) for s in starts)
    return MarginSums(*sum(parts, start=np.zeros((8, v.shape[1]))))


def _chunk_sums(votes: Floats, proba: Floats) -> Floats:
    best = votes.argmax(axis=1)
    highest, second = _two_highest(votes)
    p_best = proba[np.arange(len(votes)), best]
    mass = np.einsum("ij->i", proba)
    # Everything from what a vote lacks to the highest one, and its square: near a tie of the votes
    # all margins are tiny, and a difference of squares of the votes would be rounding error alone.
    lacks = highest[:, None] - votes
    p_lacks = proba * lacks
    lack, lack2 = np.einsum("ij->i", p_lacks), np.einsum("ij,ij->i", p_lacks, lacks)
    gap = highest - second
    rest, lead = 1.0 - highest, 2.0 * highest - 1.0  # 1 − v = rest + lacks, 2v − 1 = lead − 2 lacks
    columns = (
        None,
        mass - p_best,
        rest * mass + lack,
        rest**2 * mass + 2.0 * rest * lack + lack2,
        # M(x,c) is v_c − highest for every class but the best one, whose margin is the gap.
        p_best * gap - lack,
        p_best * gap**2 + lack2,
        lead * mass - 2.0 * lack,
        lead**2 * mass - 4.0 * lead * lack + 4.0 * lack2,
    )
    return np.array([np.bincount(best, column, votes.shape[1]) for column in columns])


def _two_highest(votes: Floats) -> tuple[Floats, Floats]:
    # A running maximum over contiguous classes: several times faster than sorting short rows.
    by_class = np.ascontiguousarray(votes.T)
    highest, second = by_class[0].copy(), np.zeros(len(votes))
    for vote in by_class[1:]:
        np.maximum(second, np.minimum(highest, vote), out=second)
        np.maximum(highest, vote, out=highest)
    return highest, second


def margin_moments(
    votes: ArrayLike,
    label_proba: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    margin: Literal["multiclass", "binary"] = "multiclass",
) -> tuple[float, float]:
    r"""First two moments of the probabilistic margin (Section 5.1).

    .. math:: \mu_k = \frac1n\sum_x w_{B_Q(x)} \sum_c P(Y=c\mid x)\, M_Q(x,c)^k

    Parameters
    ----------
    votes : array-like of shape (n_samples, n_classes)
    label_proba : array-like of shape (n_samples, n_classes), or class codes of shape (n_samples,)
        Codes are the deterministic special case: all probability on one class.
    weights : array-like of shape (n_classes,), optional
        :math:`w_c`, the weight of rows predicted to be of class c; for CBIL it is
        :math:`1/\delta_c` (Section 5.3). One by default.
    margin : {"multiclass", "binary"}
        :math:`M_Q(x,c) = v_c - \max_{k\ne c} v_k`, or :math:`2v_c - 1`, which is never larger and
        is the expectation of the voters' own margins.

    Returns
    -------
    first, second : float

    See Also
    --------
    c_bound : The bound made of them.
    margin : The margin of each row.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Sections 5.1 and 5.3.

    Examples
    --------
    >>> margin_moments([[0.75, 0.25], [0.5, 0.5]], [[1.0, 0.0], [1.0, 0.0]])
    (0.25, 0.125)
    """
    if margin not in ("multiclass", "binary"):
        raise ValueError(f"margin must be 'multiclass' or 'binary'. Got {margin!r} instead.")
    sums = margin_sums(votes, label_proba)
    w = np.ones(len(sums.rows)) if weights is None else np.asarray(weights, dtype=np.float64)
    check_same_shape(w, sums.rows, "weights", "a row of votes")
    if not (np.isfinite(w).all() and (w >= 0).all()):
        raise ValueError("weights must be finite and not negative.")
    return sums.moments(w, margin)
