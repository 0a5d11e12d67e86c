"""Label a table of which only a few rows are labelled, and know how wrong the labels are."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Public name → module. Modules are imported on first use, so that `import fewlabel` is instant
# and the command line can print its help without loading scikit-learn.
_HOME = {
    "Audit": "assess.audit",
    "AuditedAcceptance": "assess.audit_acceptance",
    "Bound": "bounds.table",
    "BoundPolicy": "selection.policies",
    "Curriculum": "selection.policies",
    "DASForestClassifier": "baselines.das_forest",
    "DaskRows": "chunks.dask_rows",
    "FewLabelClassifier": "ensemble.few_label",
    "FixedThreshold": "selection.policies",
    "LabelSpreadingClassifier": "baselines.label_spreading",
    "LabeledKFold": "assess.cross_validation",
    "PriorNetworkClassifier": "network.classifier",
    "QNS3VMClassifier": "baselines.qns3vm",
    "Selection": "selection.policies",
    "SelfLearningClassifier": "self_learning.classifier",
    "SemiLDAClassifier": "baselines.semi_lda",
    "TableEncoder": "encoding.encoder",
    "TrivialBoundWarning": "bounds.cbound",
    "UnlabeledRows": "chunks.local",
    "VoteStatistics": "bounds.statistics",
    "accept_with_audit": "assess.audit_acceptance",
    "anchor_counts": "bounds.mislabeling",
    "audit": "assess.audit",
    "audit_confidence_sequence": "assess.audit_limits",
    "audit_sample": "assess.audit_draws",
    "bayes_confusion": "bounds.votes",
    "bayes_risk": "bounds.votes",
    "bounds_of_rows": "chunks.labeling",
    "bounds_table": "bounds.table",
    "c_bound": "bounds.cbound",
    "c_bound_imperfect": "bounds.cbound",
    "checks_needed": "assess.audit_plans",
    "chittineni_bound": "bounds.mislabeled_error",
    "conditional_error_bound": "bounds.transductive",
    "confident_counts": "bounds.mislabeling",
    "confusion_bound": "bounds.transductive",
    "cross_fitted_votes": "assess.held_out",
    "expected_counts": "bounds.mislabeling",
    "gibbs_bound": "bounds.markov",
    "gibbs_confusion": "bounds.votes",
    "gibbs_posterior": "ensemble.posterior",
    "gibbs_risk": "bounds.votes",
    "held_out_counts": "bounds.mislabeling",
    "hypergeometric_limits": "assess.audit_limits",
    "imperfect_proba": "bounds.mislabeling",
    "kl_divergence": "bounds.concentration",
    "labeled_rows": "chunks.local",
    "labeled_scorer": "assess.cross_validation",
    "learn_posterior": "ensemble.posterior",
    "load": "tables.model_files",
    "majority_vote": "bounds.votes",
    "margin": "bounds.votes",
    "margin_moments": "bounds.margins",
    "mislabeling_interval": "bounds.pac_bayes",
    "mislabeling_matrix": "bounds.mislabeling",
    "mislabeling_radius": "bounds.pac_bayes",
    "mislabeling_report": "bounds.mislabeled_error",
    "one_example_bound": "bounds.mislabeled_error",
    "optimal_thresholds": "bounds.thresholds",
    "out_of_bag_votes": "assess.held_out",
    "pac_bayes_c_bound": "bounds.pac_bayes",
    "predict_rows": "chunks.labeling",
    "realised_error_quantile": "bounds.realised",
    "relaxation_trace": "bounds.cbound",
    "risk_bound": "bounds.transductive",
    "save": "tables.model_files",
    "search_thresholds": "bounds.thresholds",
    "smallest_relaxation": "bounds.cbound",
    "tandem_bound": "bounds.markov",
    "threshold_curves": "bounds.thresholds",
    "tightness": "bounds.transductive",
    "transductive_bound": "bounds.transductive",
    "vote_matrix": "bounds.votes",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"fewlabel.{_HOME[name]}"), name)
    raise AttributeError(f"module 'fewlabel' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
