"""The methods the paper compares with (Section 6), as scikit-learn classifiers.

Each takes all rows at once, the unlabelled ones marked in ``y``, and predicts for new rows:

- :class:`fewlabel.baselines.label_spreading.LabelSpreadingClassifier` (LS)
- :class:`fewlabel.baselines.qns3vm.QNS3VMClassifier` (QN-S3VM)
- :class:`fewlabel.baselines.semi_lda.SemiLDAClassifier` (Semi-LDA)
- :class:`fewlabel.baselines.das_forest.DASForestClassifier` (DAS-RF)

FSLA and CSLA are policies of :mod:`fewlabel.self_learning`, and RF is scikit-learn's forest.
"""

from fewlabel.baselines.das_forest import DASForestClassifier
from fewlabel.baselines.label_spreading import LabelSpreadingClassifier
from fewlabel.baselines.qns3vm import QNS3VMClassifier
from fewlabel.baselines.semi_lda import SemiLDAClassifier

__all__ = [
    "DASForestClassifier",
    "LabelSpreadingClassifier",
    "QNS3VMClassifier",
    "SemiLDAClassifier",
]
