"""Classify a table when only a few rows are labelled, and know how wrong the result can be."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Public name → module. Modules are imported on first use, so that `import fewlabel` is instant
# and the command line can print its help without loading scikit-learn.
_HOME = {
    "Bound": "bounds",
    "BoundPolicy": "policies",
    "Curriculum": "policies",
    "DASForestClassifier": "baselines.das_forest",
    "DaskRows": "distributed",
    "FewLabelClassifier": "mixed_vote",
    "FixedThreshold": "policies",
    "LabelSpreadingClassifier": "baselines.label_spreading",
    "LabeledKFold": "model_selection",
    "QNS3VMClassifier": "baselines.qns3vm",
    "Selection": "policies",
    "SelfLearningClassifier": "self_learning",
    "SemiLDAClassifier": "baselines.semi_lda",
    "TrivialBoundWarning": "cbound",
    "UnlabeledRows": "out_of_core",
    "VoteStatistics": "statistics",
    "anchor_counts": "mislabeling",
    "bayes_confusion": "votes",
    "bayes_risk": "votes",
    "bounds_table": "bounds",
    "c_bound": "cbound",
    "c_bound_imperfect": "cbound",
    "chittineni_bound": "mislabeling",
    "conditional_error_bound": "transductive",
    "confident_counts": "mislabeling",
    "confusion_bound": "transductive",
    "cross_fitted_votes": "held_out",
    "expected_counts": "mislabeling",
    "gibbs_bound": "cbound",
    "gibbs_confusion": "votes",
    "gibbs_posterior": "posterior",
    "gibbs_risk": "votes",
    "held_out_counts": "mislabeling",
    "imperfect_proba": "mislabeling",
    "kl_divergence": "pac_bayes",
    "labeled_rows": "out_of_core",
    "labeled_scorer": "model_selection",
    "learn_posterior": "posterior",
    "majority_vote": "votes",
    "margin": "votes",
    "margin_moments": "margins",
    "mislabeling_interval": "pac_bayes",
    "mislabeling_matrix": "mislabeling",
    "mislabeling_radius": "pac_bayes",
    "mislabeling_report": "mislabeling",
    "one_example_bound": "mislabeling",
    "optimal_thresholds": "thresholds",
    "out_of_bag_votes": "held_out",
    "pac_bayes_c_bound": "pac_bayes",
    "relaxation_trace": "cbound",
    "risk_bound": "transductive",
    "search_thresholds": "thresholds",
    "smallest_relaxation": "cbound",
    "tandem_bound": "cbound",
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
