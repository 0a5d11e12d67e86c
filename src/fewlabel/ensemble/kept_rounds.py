"""Whether a round of self-learning is kept: the vote shall not be worse than where it started."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fewlabel._core.arrays import Floats
from fewlabel.ensemble.mixed_vote import MixedVote

COMPARED_ROWS = 5_000
"""Unlabelled rows on which two votes are compared: enough to see which of them is surer."""
_SURER = 1.2
"""So many times surer must the new vote be; chosen on the seeds 1000 and 1001."""


def prefers_new_labels(votes: Floats, new_votes: Floats) -> bool:
    r"""Whether the new vote is clearly surer than the old one, on the rows where labels change.

    .. math:: \sum_{x:\,c'\ne c} \bigl(v'(x,c') - v'(x,c)\bigr) \ge
              1.2 \sum_{x:\,c'\ne c} \bigl(v(x,c) - v(x,c')\bigr)

    with the winners c of v and c' of v'. A round makes a vote surer of whatever it says, right or
    wrong: that it is as sure as before is not enough.

    Parameters
    ----------
    votes, new_votes : ndarray of shape (n_rows, n_classes)
        v and v'.

    Examples
    --------
    >>> votes = np.array([[0.6, 0.4], [0.9, 0.1]])
    >>> prefers_new_labels(votes, np.array([[0.1, 0.9], [0.9, 0.1]]))
    True
    >>> prefers_new_labels(votes, np.array([[0.45, 0.55], [0.4, 0.6]]))
    False
    """
    old, new = votes.argmax(axis=1), new_votes.argmax(axis=1)
    rows = np.flatnonzero(old != new)
    gained = new_votes[rows, new[rows]] - new_votes[rows, old[rows]]
    lost = votes[rows, old[rows]] - votes[rows, new[rows]]
    return bool(gained.sum() >= _SURER * lost.sum())


def kept_vote(
    previous: MixedVote, vote: MixedVote, votes_of: Callable[[MixedVote], Any]
) -> MixedVote:
    """The vote after a round, or the one before it if the round does not help.

    Parameters
    ----------
    previous, vote : MixedVote
        Before and after the round.
    votes_of : callable
        From a mixed vote to its votes for unlabelled rows, the same for both.
    """
    helps = prefers_new_labels(votes_of(previous), votes_of(vote))
    return vote if helps else previous
