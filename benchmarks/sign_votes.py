"""One-versus-all from the machines' yes or no instead of their outputs, to compare with the paper.

If no machine claims a row, or several do, the first class of those wins.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fewlabel.baselines.qns3vm import QNS3VMClassifier
from reproduction.methods import METHODS, Method, Params
from reproduction.spec import Trial


class SignVotes(QNS3VMClassifier):
    """QN-S3VM whose class scores are 1 where a machine says yes and 0 elsewhere."""

    def _scores_of(self, outputs: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
        return (super()._scores_of(outputs) > 0).astype(np.float64)


def _make(trial: Trial, params: Params, label_proba: Any) -> SignVotes:
    settings: dict[str, Any] = dict(params)
    return SignVotes(random_state=trial.seed, **settings)


SIGNS = Method(_make, "", METHODS["QN-S3VM"].grid, scaling="minmax")
