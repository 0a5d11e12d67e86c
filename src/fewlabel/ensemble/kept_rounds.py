"""Whether a round of self-learning is kept: the vote shall not be worse than where it started."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fewlabel._core.arrays import Floats, Ints
from fewlabel.assess.calibration import bounding_power, for_bounds
from fewlabel.ensemble.mixed_vote import MixedVote
from fewlabel.ensemble.voter_votes import has_votes, mix_votes

COMPARED_ROWS = 5_000
"""Unlabelled rows on which two votes are compared: enough to see which of them is surer."""


def prefers_new_labels(known: Floats, votes: Floats, new_votes: Floats) -> bool:
    r"""Whether old and new vote together prefer the new labels, on the rows where these differ.

    .. math:: \sum_{x:\,c'\ne c} \bigl(v'(x,c') - v'(x,c)\bigr) \ge
              \sum_{x:\,c'\ne c} \bigl(p(x,c) - p(x,c')\bigr)

    with the winners c of v and c' of v'. A round that changes labels against the calibrated doubts
    of the vote before it has to be the surer of the two.

    Parameters
    ----------
    known : ndarray of shape (n_rows, n_classes)
        p, the old votes as label probabilities.
    votes, new_votes : ndarray of shape (n_rows, n_classes)
        v and v'.

    Examples
    --------
    >>> votes = np.array([[0.6, 0.4], [0.9, 0.1]])
    >>> prefers_new_labels(votes, votes, np.array([[0.1, 0.9], [0.9, 0.1]]))
    True
    >>> prefers_new_labels(votes, votes, np.array([[0.45, 0.55], [0.4, 0.6]]))
    False
    """
    old, new = votes.argmax(axis=1), new_votes.argmax(axis=1)
    rows = np.flatnonzero(old != new)
    gained = new_votes[rows, new[rows]] - new_votes[rows, old[rows]]
    lost = known[rows, old[rows]] - known[rows, new[rows]]
    return bool(gained.sum() >= lost.sum())


def kept_vote(
    previous: MixedVote, vote: MixedVote, y: Ints, votes_of: Callable[[MixedVote], Any]
) -> MixedVote:
    """The vote after a round, or the one before it if the round does not help.

    Parameters
    ----------
    previous, vote : MixedVote
        Before and after the round.
    y : ndarray of int of shape (n_scored,)
        Labels of the rows that count in held-out errors: they calibrate the votes before it.
    votes_of : callable
        From a mixed vote to its votes for unlabelled rows, the same for both.
    """
    evidence = previous.evidence_
    weights, each = evidence.posterior.weights, evidence.held_out[:, evidence.scored]
    judged = has_votes(weights, each)
    power = bounding_power(mix_votes(weights, each)[judged], y[judged])
    votes, new_votes = votes_of(previous), votes_of(vote)
    helps = prefers_new_labels(for_bounds(votes, power), votes, new_votes)
    return vote if helps else previous
