"""What stands for the unknown P(Y|x) in the bounds."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fewlabel._core.arrays import Floats, Ints
from fewlabel._core.checks import check_proba

CHOICES = ("supervised", "current", "uniform")


def label_proba_of(choice: str, votes: Floats, initial: Floats) -> Floats:
    """Label probabilities of rows: the initial votes (or given ones), the current votes, or 1/K."""
    if choice == "uniform":
        return np.full_like(votes, 1.0 / votes.shape[1])
    return votes if choice == "current" else initial


def given_label_proba(given: ArrayLike, unlabeled: Ints, n_samples: int, n_classes: int) -> Floats:
    """Probabilities that the user gave, of the unlabelled rows; raise if they are none."""
    proba = np.asarray(given, dtype=np.float64)
    if proba.shape != (n_samples, n_classes):
        raise ValueError(
            f"label_proba must have shape (n_samples, n_classes) = {(n_samples, n_classes)}. "
            f"Got {proba.shape} instead."
        )
    return check_proba(proba[unlabeled], "label_proba") if len(unlabeled) else proba[unlabeled]
