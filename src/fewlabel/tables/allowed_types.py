"""What a model file may contain. Every other type is refused before anything is built.

To store a class of ours, give it a key in ``CLASSES``; to store one of a library, add its path to
``LIBRARY_TYPES``, or to ``UNKNOWN_TO_SKOPS`` if skops does not allow it by itself. Types whose
methods run compiled code on unchecked indices need a check in
:mod:`fewlabel.tables.model_checks`, too.
"""

from __future__ import annotations

CLASSES: dict[str, str] = {
    "category-features": "fewlabel.encoding.features.CategoryFeatures",
    "column": "fewlabel.encoding.columns.Column",
    "date-features": "fewlabel.encoding.features.DateFeatures",
    "level-features": "fewlabel.encoding.features.LevelFeatures",
    "number-features": "fewlabel.encoding.features.NumberFeatures",
    "table-encoder": "fewlabel.encoding.encoder.TableEncoder",
    "text-features": "fewlabel.encoding.features.TextFeatures",
    "discriminants": "fewlabel.ensemble.graphs.Discriminants",
    "leaf-proximity": "fewlabel.ensemble.graphs.LeafProximity",
    "metric-spreading": "fewlabel.ensemble.graphs.MetricSpreadingClassifier",
    "label-spreading": "fewlabel.baselines.label_spreading.LabelSpreadingClassifier",
    "mixed-vote": "fewlabel.ensemble.mixed_vote.MixedVote",
    "network-projection": "fewlabel.network.views.Projection",
    "network-scaler": "fewlabel.network.views.Scaler",
    "network-view": "fewlabel.network.views.View",
    "prior-network": "fewlabel.network.classifier.PriorNetworkClassifier",
    "qn-s3vm": "fewlabel.baselines.qns3vm.QNS3VMClassifier",
    "range-scaler": "fewlabel.ensemble.families.RangeScaler",
    "screened": "fewlabel.baselines._wide.ScreenedClassifier",
    "semi-lda": "fewlabel.baselines.semi_lda.SemiLDAClassifier",
    "wide-lda": "fewlabel.baselines._wide.WideLDA",
    "trees": "fewlabel.tables.packed_trees.PackedTrees",
    "voter": "fewlabel.ensemble.families.Voter",
}
"""Our classes, by the key that stands in the file: a class may move, its key may not change."""

LIBRARY_TYPES = frozenset(
    {
        "builtins.bool",
        "builtins.dict",
        "builtins.float",
        "builtins.int",
        "builtins.list",
        "builtins.slice",
        "builtins.str",
        "builtins.tuple",
        "builtins.type",
        "numpy.bool",
        "numpy.bool_",
        "numpy.float32",
        "numpy.float64",
        "numpy.int64",
        "numpy.ndarray",
        "sklearn.decomposition._pca.PCA",
        "sklearn.decomposition._truncated_svd.TruncatedSVD",
        "sklearn.ensemble._forest.ExtraTreesClassifier",
        "sklearn.ensemble._forest.RandomForestClassifier",
        "sklearn.feature_extraction.text.TfidfTransformer",
        "sklearn.feature_extraction.text.TfidfVectorizer",
        "sklearn.impute._base.SimpleImputer",
        "sklearn.linear_model._logistic.LogisticRegression",
        "sklearn.pipeline.Pipeline",
        "sklearn.preprocessing._data.StandardScaler",
        "sklearn.svm._classes.SVC",
        "sklearn.tree._classes.DecisionTreeClassifier",
        "sklearn.tree._classes.ExtraTreeClassifier",
    }
)
"""Types of libraries, under the names that skops gives them."""

UNKNOWN_TO_SKOPS = frozenset(
    {
        "numpy.dtype",
        "scipy.sparse._csr.csr_array",
        "scipy.sparse._csr.csr_matrix",
        "skrub._string_encoder.StringEncoder",
        "skrub._to_str.ToStr",
    }
)
"""The same; skops asks to be told of them."""

LOADERS = frozenset(
    {
        "DTypeNode",
        "DictNode",
        "JsonNode",
        "ListNode",
        "NdArrayNode",
        "ObjectNode",
        "SliceNode",
        "SparseMatrixNode",
        "TupleNode",
        "TypeNode",
    }
)
"""How skops may rebuild them; loaders of functions, methods, partials and trees are not here."""

ALLOWED = LIBRARY_TYPES | UNKNOWN_TO_SKOPS
TRUSTED_TYPES = [*CLASSES.values(), *sorted(UNKNOWN_TO_SKOPS)]
KEYS = {path: key for key, path in CLASSES.items()}
