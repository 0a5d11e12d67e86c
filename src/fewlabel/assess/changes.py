r"""What self-learning added: of the labels that it changed, how many more are right than before.

A changed label is right by the first vote, right by the last one, or wrong by both. The rows do not
tell: the first vote doubts each change and the last vote prefers it, always. So the estimate rests
on what changes are worth elsewhere, and on held-out rows where self-learning as a whole was held
out: with k of n rows that one of the two got right in favour of the last,

.. math:: \hat g = 0.58\,c\,(2\hat\pi - 1), \qquad \hat\pi = \frac{k + 4\cdot 0.62}{n + 4}

for c changed labels. ``python -m benchmarks.self_learning_gain`` measures how far off that is.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from fewlabel._core.arrays import Bools

# From 76 fits on 11 data sets, seeds 1000 to 1003: the share of changed labels that one of both
# votes gets right, how often it is the last one, and how many rows that counts for.
_ONE_RIGHT = 0.58
_LAST_RIGHT, _ROWS = 0.62, 4.0


class Gain(NamedTuple):
    """How many more labels are right after self-learning than by the first vote.

    Attributes
    ----------
    value, low, high : float
        The estimate, and its 95 % limits; negative where self-learning does harm.
    """

    value: float
    low: float
    high: float


class Changes(NamedTuple):
    """Held-out rows that tell what changes of self-learning are worth.

    Attributes
    ----------
    n : int
        Rows that either the first vote or self-learning as a whole gets right, not both.
    n_better : int
        Those of them that self-learning gets right.

    Examples
    --------
    >>> gain = Changes().gain(31)
    >>> round(gain.value), round(gain.low), round(gain.high)
    (4, -13, 22)
    >>> Changes(n=10, n_better=9).gain(31).value > gain.value
    True
    """

    n: int = 0
    n_better: int = 0

    @classmethod
    def of(cls, first_wrong: Bools, last_wrong: Bools) -> Self:
        """From what both get wrong among held-out rows."""
        return cls(int((first_wrong != last_wrong).sum()), int((first_wrong & ~last_wrong).sum()))

    def gain(self, n_changed: int) -> Gain:
        """Estimate how many more labels are right, of those that self-learning changed."""
        right = (self.n_better + _ROWS * _LAST_RIGHT) / (self.n + _ROWS)
        n_one = _ONE_RIGHT * n_changed
        # Of the share that is not known, and of the rows that happen to be changed.
        spread = right * (1.0 - right) * (4.0 * n_one**2 / (self.n + _ROWS + 1.0) + 4.0 * n_one)
        value, far = n_one * (2.0 * right - 1.0), 1.96 * float(np.sqrt(spread))
        return Gain(value, max(value - far, -n_changed), min(value + far, n_changed))
