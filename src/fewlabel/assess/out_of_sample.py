"""Labelled rows judged by a mixed vote that did not learn from them, neither its voters nor Q."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewlabel.assess.calibration import calibrated_by
from fewlabel.bounds.statistics import Floats, Ints

WeightRule = Callable[[Floats, Ints], Floats]
"""From held-out votes (n_voters, n, K) and codes (n,) to the weights Q of the voters."""


class JudgedRows(NamedTuple):
    """Labelled rows and what held-out votes say of them.

    Attributes
    ----------
    y : ndarray of int of shape (n_labeled,)
    votes : ndarray of shape (n_labeled, n_classes)
        Mixed held-out votes; zeros for a row without vote.
    errors : ndarray of shape (n_labeled,)
        See :func:`out_of_sample_errors`.
    """

    y: Ints
    votes: Floats
    errors: Floats

    def take(self, mask: NDArray[np.bool_]) -> JudgedRows:
        """Some of the rows."""
        return JudgedRows(self.y[mask], self.votes[mask], self.errors[mask])

    @property
    def voted(self) -> NDArray[np.bool_]:
        """Rows that have a vote."""
        return has_vote(self.votes)

    @property
    def winner(self) -> Ints:
        """Codes of the classes with most votes; -1 for a row without vote."""
        return np.where(self.voted, self.votes.argmax(axis=1), -1)

    @property
    def power(self) -> float:
        """The most likely calibration power of the votes, see :func:`calibrated_by`."""
        voted = self.voted
        return calibrated_by(self.votes[voted], self.y[voted])


def judge(held_out: Floats, y: Ints, weights: WeightRule | None, **options: int) -> JudgedRows:
    """Mix held-out votes of several voters, and judge each row by a Q learned without it."""
    if weights is None:
        if len(held_out) > 1:
            raise ValueError(f"weights is needed: there are {len(held_out)} voters to be mixed.")
        return JudgedRows(y, held_out[0], wrong_rows(held_out[0], y).astype(np.float64))
    mixed = mix_held_out(held_out, weights(held_out, y))
    return JudgedRows(y, mixed, out_of_sample_errors(held_out, y, weights, **options))


def out_of_sample_errors(
    held_out: Floats,
    y: Ints,
    weights: WeightRule,
    *,
    n_resamples: int = 300,
    random_state: int = 0,
) -> Floats:
    r"""Chance that a mixed vote gets each labelled row wrong, with Q learned without that row.

    .. math:: e_x = \frac{\sum_b 1\{x\notin S_b\}\,1\{\arg\max_c v_{Q(S_b)}(x,c)\ne y\}}
        {\sum_b 1\{x\notin S_b\}}

    with bootstrap samples :math:`S_b` of the labelled rows, :math:`Q(S)` learned on S.

    Parameters
    ----------
    held_out : ndarray of shape (n_voters, n_labeled, n_classes)
        A row of zeros: this voter has no vote for it.
    y : ndarray of int of shape (n_labeled,)
    weights : callable
        ``weights(held_out, y)``, see :data:`WeightRule`.
    n_resamples : int, default=300
    random_state : int, default=0

    Returns
    -------
    errors : ndarray of shape (n_labeled,)
        In [0, 1]. 1 for a row nobody has a vote for.

    References
    ----------
    Tsamardinos, Greasidou and Borboudakis (2018), Bootstrapping the out-of-sample predictions for
    efficient and accurate cross-validation. Machine Learning 107.
    """
    n_voters, n, n_classes = held_out.shape
    if n_voters == 1:
        return wrong_rows(held_out[0], y).astype(np.float64)
    voted = has_vote(held_out)
    filled = np.where(voted[:, :, None], held_out, 1.0 / n_classes)
    rng = np.random.default_rng(random_state)
    wrong, outside = np.zeros(n), np.zeros(n)
    for _ in range(n_resamples):
        sample = rng.integers(n, size=n)
        rest = np.setdiff1d(np.arange(n), sample)
        if len(rest) == 0:
            continue
        q = weights(held_out[:, sample], y[sample])
        winner = np.tensordot(q, filled[:, rest], axes=1).argmax(axis=1)
        wrong[rest] += (winner != y[rest]) | ~voted[q > 0][:, rest].any(axis=0)
        outside[rest] += 1
    never = outside == 0  # only with very few rows: their own Q must do
    if never.any():
        mixed = mix_held_out(held_out, weights(held_out, y))
        wrong[never], outside[never] = wrong_rows(mixed, y)[never], 1.0
    return wrong / outside


def has_vote(votes: Floats) -> NDArray[np.bool_]:
    """Where there is a vote; zeros are none. The classes are the last axis."""
    return np.asarray(votes.any(axis=-1))


def wrong_rows(votes: Floats, y: Ints) -> NDArray[np.bool_]:
    """Rows whose vote is not for their label; no vote is wrong."""
    return np.asarray((votes.argmax(axis=1) != y) | ~has_vote(votes))


def mix_held_out(held_out: Floats, weights: Floats) -> Floats:
    """The mixed vote for each row; zeros where no voter with weight has a vote."""
    voted = has_vote(held_out)
    filled = np.where(voted[:, :, None], held_out, 1.0 / held_out.shape[2])
    mixed = np.tensordot(weights, filled, axes=1)
    mixed[~voted[weights > 0].any(axis=0)] = 0.0
    return mixed
