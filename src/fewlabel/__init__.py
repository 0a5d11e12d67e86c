"""Classify a table when only a few rows are labelled, and know how wrong the result can be."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Public name → module. Modules are imported on first use, so that `import fewlabel` is instant
# and the command line can print its help without loading scikit-learn.
_HOME = {
    "BoundPolicy": "policies",
    "Curriculum": "policies",
    "DASForestClassifier": "baselines.das_forest",
    "FixedThreshold": "policies",
    "LabelSpreadingClassifier": "baselines.label_spreading",
    "LabeledKFold": "model_selection",
    "QNS3VMClassifier": "baselines.qns3vm",
    "Selection": "policies",
    "SelfLearningClassifier": "self_learning",
    "SemiLDAClassifier": "baselines.semi_lda",
    "VoteStatistics": "statistics",
    "bayes_confusion": "votes",
    "bayes_risk": "votes",
    "conditional_error_bound": "transductive",
    "confusion_bound": "transductive",
    "gibbs_confusion": "votes",
    "gibbs_risk": "votes",
    "labeled_scorer": "model_selection",
    "majority_vote": "votes",
    "margin": "votes",
    "optimal_thresholds": "thresholds",
    "risk_bound": "transductive",
    "search_thresholds": "thresholds",
    "threshold_curves": "thresholds",
    "tightness": "transductive",
    "transductive_bound": "transductive",
    "vote_matrix": "votes",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"fewlabel.{_HOME[name]}"), name)
    raise AttributeError(f"module 'fewlabel' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
