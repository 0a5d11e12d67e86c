r"""The mixed majority vote: fitted voters of several families under one Q (Section 7).

Every method wins somewhere and loses elsewhere, and few labels do not suffice to pick one. So all
of them vote, each with the weight :math:`Q(h)` that its held-out votes earn,

.. math:: v_Q(x, c) = \sum_h Q(h)\, v_h(x, c).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from fewlabel._core.arrays import Floats, Ints
from fewlabel.ensemble.families import Voter
from fewlabel.ensemble.posterior import Posterior


class VoterRecord(NamedTuple):
    """What is known of one family after the first round; a row of ``voters_``.

    Attributes
    ----------
    name, title : str
    weight : float
        Q(h); 0 if it was left out or too light to count.
    accuracy : float
        Share of labelled rows that held-out votes get right, without rows whose class has no other
        row outside their fold; NaN if there are no others, or if left out. **An estimate** from few
        rows; Q was chosen by the same rows.
    seconds : float
    left_out : str
        Why it has no vote; empty if it has.
    row_seconds : float
        What a vote on one row takes, if it was measured: for rows in chunks.
    """

    name: str
    title: str
    weight: float
    accuracy: float
    seconds: float
    left_out: str = ""
    row_seconds: float = float("nan")


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the first round learned of the families.

    Attributes
    ----------
    records : list of VoterRecord
        Every family, those that were left out too.
    posterior : Posterior
        Q over the families that were trained.
    held_out : ndarray of shape (n_trained, n_labeled, n_classes)
        Votes of each trained family for the labelled rows without their labels.
    scored : ndarray of int
        Positions of the labelled rows that count in held-out errors.
    """

    records: list[VoterRecord]
    posterior: Posterior
    held_out: Floats
    scored: Ints


class MixedVote(ClassifierMixin, BaseEstimator):
    """A majority vote over fitted voters under Q; what ``FewLabelClassifier`` trains.

    Parameters
    ----------
    estimators : list of Voter
    weights : ndarray of shape (n_voters,)
        Q.
    classes : ndarray of shape (n_classes,)
    held_out_votes : ndarray of shape (n_labeled, n_classes), optional
        Votes for the labelled rows by voters that did not see their labels; a row of zeros if
        none could vote.

    Attributes
    ----------
    evidence_ : Evidence
        What Q was learned from, in the first round only. Model files leave it out.

    See Also
    --------
    fewlabel.ensemble.learner.MixedVoteLearner : trains mixed votes.
    """

    def __init__(
        self,
        estimators: list[Voter],
        weights: Floats,
        classes: NDArray[Any],
        held_out_votes: Floats | None = None,
    ) -> None:
        self.estimators = estimators
        self.weights = weights
        self.classes = classes
        self.held_out_votes = held_out_votes

    @property
    def estimators_(self) -> list[Voter]:
        """The voters, as :func:`fewlabel.bounds.votes.vote_matrix` looks for them."""
        return self.estimators

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the classes."""
        return self.classes

    @property
    def held_out_votes_(self) -> Floats | None:
        """Mixed votes for the labelled rows by voters that did not see their labels."""
        return self.held_out_votes

    def predict_proba(self, X: Any) -> Floats:
        """The mixed vote, shape (n_samples, n_classes)."""
        votes: Floats = sum(
            (q * voter.predict_proba(X) for q, voter in zip(self.weights, self.estimators)),
            start=np.zeros(1),
        )
        return votes

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels of the winning classes."""
        return self.classes[self.predict_proba(X).argmax(axis=1)]
