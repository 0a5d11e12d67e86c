"""What each voter says of the rows, a matrix of votes for each: from this Q is learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewlabel._core.arrays import Floats, Ints
from fewlabel._core.checks import check_codes, check_proba
from fewlabel.assess.limits import kish_size


@dataclass(frozen=True, eq=False)
class VoterVotes:
    """What each voter says of the rows from which Q is learned.

    Attributes
    ----------
    held_out : ndarray of shape (n_voters, n_labeled, n_classes)
        Votes for the labelled rows by voters that did not see their labels: out-of-bag or
        :func:`fewlabel.cross_fitted_votes`. A row of zeros: this voter has no vote for it.
    y : ndarray of int of shape (n_labeled,)
        Class codes, the columns of the votes.
    unlabeled : ndarray of shape (n_voters, n_unlabeled, n_classes), or None
        Votes on (a sample of) the unlabelled rows.
    balanced : bool, default=False
        Whether errors are means over classes: each class counts the same, however rare it is.

    Examples
    --------
    >>> evidence = VoterVotes([[[1, 0], [0, 1]], [[0, 1], [0, 0]]], [0, 1])
    >>> evidence.errors.tolist()
    [0.0, 1.0]
    """

    held_out: Floats
    y: NDArray[Any]
    unlabeled: Floats | None = None
    balanced: bool = False

    def __post_init__(self) -> None:
        held_out = check_voters(self.held_out, "held_out")
        n_voters, n_labeled, n_classes = held_out.shape
        object.__setattr__(self, "held_out", np.asarray(self.held_out, dtype=np.float64))
        object.__setattr__(self, "y", check_codes(self.y, n_classes, n_labeled))
        if self.unlabeled is None:
            return
        unlabeled = check_voters(self.unlabeled, "unlabeled")
        if (len(unlabeled), unlabeled.shape[2]) != (n_voters, n_classes):
            raise ValueError(
                f"held_out and unlabeled must have the same voters and classes. Got shapes "
                f"{held_out.shape} and {unlabeled.shape}: stack the same voters in both, with a "
                f"column for each class, also for those a voter has not seen."
            )
        object.__setattr__(self, "unlabeled", unlabeled)

    @property
    def errors(self) -> Floats:
        """Share of the labelled rows that each voter gets wrong; no vote counts as wrong."""
        right = (self.held_out.argmax(axis=2) == self.y) & self.held_out.any(axis=2)
        if not self.balanced:
            return 1.0 - right.mean(axis=1)
        return 1.0 - right @ self.row_weights

    @property
    def n_rows(self) -> float:
        """Rows behind the errors; balanced ones rest on as many as count alike (Kish)."""
        return kish_size(self.row_weights) if self.balanced else float(len(self.y))

    @property
    def row_weights(self) -> Floats:
        """What each row counts in errors; all of them 1 together."""
        if not self.balanced:
            return np.full(len(self.y), 1.0 / len(self.y))
        counts = np.bincount(self.y)
        return 1.0 / ((counts > 0).sum() * counts[self.y])


def quadratic_losses(held_out: Floats, y: Ints, weights: Floats | None = None) -> Floats:
    r"""Half the Brier score of each voter's held-out votes, between 0 and 1.

    .. math:: \frac{1}{2l}\sum_x\sum_c \bigl(v_h(x, c) - [y = c]\bigr)^2

    It tells voters apart that err on the same rows: few rows suffice.

    Parameters
    ----------
    held_out : ndarray of shape (n_voters, n_labeled, n_classes)
        Validated, see :func:`check_voters`.
    y : ndarray of int of shape (n_labeled,)
    weights : ndarray of shape (n_labeled,), optional
        What each row counts, all of them 1 together; all the same by default.

    Returns
    -------
    losses : ndarray of shape (n_voters,)
    """
    own = np.take_along_axis(held_out, y[None, :, None], axis=2)[..., 0]
    each = ((held_out**2).sum(axis=2) - 2.0 * own + 1.0) / 2.0
    losses: Floats = each.mean(axis=1) if weights is None else each @ weights
    return losses


def check_voters(votes: ArrayLike, name: str) -> Floats:
    """The votes, validated; a voter without a vote for a row gives every class the same.

    Parameters
    ----------
    voter_votes : array-like of shape (n_voters, n_samples, n_classes)
    name : str
        Of the argument, for the message.

    Returns
    -------
    voter_votes : ndarray of float
    """
    array = np.array(votes, dtype=np.float64)
    if array.ndim != 3 or 0 in array.shape:
        raise ValueError(
            f"{name} must have shape (n_voters, n_samples, n_classes), none of them 0. Got "
            f"{array.shape} instead. Stack one matrix of votes for each voter: np.stack([...])."
        )
    # The mixed vote stays a distribution and linear in Q.
    array[~array.any(axis=2)] = 1.0 / array.shape[2]
    for h, vote in enumerate(array):
        check_proba(vote, f"{name}[{h}]")
    return array


def mix_votes(weights: ArrayLike, voter_votes: ArrayLike) -> Floats:
    r"""Votes of the voters together, :math:`v_Q(x, c) = \sum_h Q(h)\,v_h(x, c)`.

    Parameters
    ----------
    weights : array-like of shape (n_voters,)
        Q, normalised here.
    voter_votes : array-like of shape (n_voters, n_samples, n_classes)
        A row of zeros is a voter without a vote: it gives every class the same.

    Returns
    -------
    votes : ndarray of shape (n_samples, n_classes)

    See Also
    --------
    learn_posterior : Weights learned from held-out votes.
    vote_matrix : Votes of a fitted ensemble.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Section 3.

    Examples
    --------
    >>> mix_votes([0.75, 0.25], [[[1.0, 0.0]], [[0.0, 1.0]]]).tolist()
    [[0.75, 0.25]]
    """
    voters = check_voters(voter_votes, "voter_votes")
    return np.tensordot(check_weighting(weights, len(voters), "weights"), voters, axes=1)


def has_votes(weights: Floats, voter_votes: Floats) -> NDArray[np.bool_]:
    """Rows for which a voter that has weight voted.

    The mixed vote for the others is the same for every class: its winner means nothing.

    Parameters
    ----------
    weights : ndarray of shape (n_voters,)
    voter_votes : ndarray of shape (n_voters, n_samples, n_classes)

    Returns
    -------
    voted : ndarray of bool of shape (n_samples,)
    """
    return np.asarray(voter_votes[weights > 0].any(axis=(0, 2)))


def check_weighting(weights: ArrayLike | None, n_voters: int, name: str) -> Floats:
    """Return weights of voters, normalised to sum to 1; uniform without any.

    Parameters
    ----------
    weights : array-like of shape (n_voters,), or None
    n_voters : int
    name : str
        Of the argument, for the message.

    Returns
    -------
    weights : ndarray of shape (n_voters,)
    """
    if weights is None:
        return np.full(n_voters, 1.0 / n_voters)
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (n_voters,):
        raise ValueError(
            f"{name} must have shape ({n_voters},), one for each voter. Got {w.shape} instead."
        )
    if not (np.isfinite(w).all() and (w >= 0).all() and w.sum() > 0):
        raise ValueError(f"{name} must be finite, non-negative and not all zero. Got {w} instead.")
    return w / w.sum()
