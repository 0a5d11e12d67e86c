"""How often pseudo-labels are wrong, class by class: the mislabelling matrix, estimated.

From votes that did not see the labels of a few rows, and from what stands for P(Y|x) elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewlabel.bounds.margins import Floats
from fewlabel.bounds.mislabeling import (
    anchor_counts,
    confident_counts,
    expected_counts,
    held_out_counts,
    mislabeling_matrix,
)
from fewlabel.bounds.table import Bound


class Evidence(NamedTuple):
    """What is known after a fit: l labelled and u unlabelled rows, K classes.

    Attributes
    ----------
    y : codes of the given labels, shape (l,), without the only rows of a class and rows of weight 0
    held_out : votes for the labelled rows that did not see their labels, shape (l, K)
    label_proba : what stands for P(Y|x) of the unlabelled rows, shape (u, K)
    votes : votes of the final classifier for them, shape (u, K); its winners are the labels Ŷ
    """

    y: NDArray[np.intp]
    held_out: Floats
    label_proba: Floats
    votes: Floats

    @property
    def counts(self) -> Floats:
        """Counts over the labelled rows."""
        return held_out_counts(self.y, self.held_out.argmax(axis=1), self.votes.shape[1])


# --- the mislabelling matrix of the pseudo-labels --------------------------------------------


def _soft(e: Evidence) -> Floats:
    return e.counts + expected_counts(e.votes.argmax(axis=1), e.label_proba, max_iter=0)


METHODS: dict[str, Callable[[Evidence], Floats]] = {
    "held-out": lambda e: e.counts,
    "confident": lambda e: confident_counts(e.votes.argmax(axis=1), e.label_proba),
    "em": lambda e: expected_counts(e.votes.argmax(axis=1), e.label_proba, e.counts),
    "anchor": lambda e: anchor_counts(e.votes, e.label_proba, e.counts),
    "soft": _soft,
}
"""Ways to count (imperfect label, true label), see :mod:`fewlabel.bounds.mislabeling`.

"soft" adds to the held-out counts those expected under ``label_proba`` alone. Unlike EM it does not
take the pseudo-labels to be independent of x given Y, which they are not: the same votes made them.
"""

# Among the nearest to the true matrix on the paper's data: docs/mislabeling.md (make mislabeling).
DEFAULT_METHOD = "soft"


def estimate_mislabeling(
    evidence: Evidence, method: str = DEFAULT_METHOD, *, smoothing: float = 1.0
) -> Floats:
    """Estimate P(Ŷ=i | Y=j) of the pseudo-labels; one of :data:`METHODS`."""
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}. Got {method!r} instead.")
    return mislabeling_matrix(METHODS[method](evidence), smoothing=smoothing)


def supervised_estimate(held_out: Floats, y: NDArray[np.intp], error: float | None) -> Bound:
    """The first row of the table: what the labelled rows say of the initial classifier."""
    wrong = held_out.argmax(axis=1) != y
    value = float(wrong.mean()) if len(y) else float("nan")
    return Bound(
        "supervised estimate",
        value,
        "estimate",
        len(y) > 0,
        "no bound: held-out error of the initial classifier on the labelled rows",
        None if error is None else value - error,
    )
