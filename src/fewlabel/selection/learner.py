"""What self-learning asks of who learns: train on a training set, vote on rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Protocol

from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from fewlabel._core.arrays import Floats
from fewlabel._core.scikit import fit_weight_name
from fewlabel.bounds.votes import vote_matrix
from fewlabel.selection.training_set import TrainingSet

N_TREES = 200  # the paper's forest


class Learner(Protocol):
    """A plain classifier and a mixed vote are the same to the loop.

    A learner keeps no state between rounds: what it learned is the model that it returns.
    """

    def train(self, training: TrainingSet, previous: Any | None) -> Any:
        """A fitted model; ``previous`` is that of the round before, None in the first."""
        ...

    def votes(self, model: Any, X: Any) -> Floats:
        """Votes of a model for rows, shape (n_rows, n_classes)."""
        ...


@dataclass(frozen=True)
class EstimatorLearner:
    """Any scikit-learn classifier: a clone is trained in every round.

    Attributes
    ----------
    base : unfitted classifier with ``predict_proba``
    """

    base: Any

    def train(self, training: TrainingSet, previous: Any | None) -> Any:
        """A clone, fitted; earlier models are not used."""
        return training.fit(clone(self.base))

    def votes(self, model: Any, X: Any) -> Floats:
        """Class probabilities of the classifier."""
        return vote_matrix(model, X)

    @property
    def is_forest(self) -> bool:
        """Whether its trees can be grown apart and put together."""
        return isinstance(self.base, (RandomForestClassifier, ExtraTreesClassifier))


def default_forest(seed: int, n_jobs: int | None) -> RandomForestClassifier:
    """The paper's base classifier: a random forest of 200 full trees."""
    return RandomForestClassifier(N_TREES, random_state=seed, n_jobs=n_jobs)


def warn_if_unweighted(estimator: Any) -> None:
    """Say that pseudo-labels cannot be weighted down, for an estimator that takes no weights."""
    if fit_weight_name(estimator) is None:
        warnings.warn(
            f"{type(estimator).__name__} takes no sample_weight, so pseudo-labelled rows weigh as "
            f"much as labelled ones. Use an estimator that takes weights, or set "
            f"pseudo_weight='uniform' if that is meant.",
            stacklevel=3,
        )
