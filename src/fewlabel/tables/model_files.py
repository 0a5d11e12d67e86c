"""Model files: a fitted classifier for new rows, in a file that runs no code when it is read.

:mod:`fewlabel.tables.model_archive` says how such a file is written and checked,
:mod:`fewlabel.tables.allowed_types` what it may contain.
"""

from __future__ import annotations

import copy
import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fewlabel._core.atomic import replaced
from fewlabel._core.errors import UserError, shorten
from fewlabel._core.optional import pa
from fewlabel.assess.assessment import FitAssessment
from fewlabel.assess.promise import Promise, error_from_dict
from fewlabel.bounds.votes import vote_matrix
from fewlabel.encoding.cells import numbers, plain_column
from fewlabel.encoding.columns import Column
from fewlabel.encoding.encoder import TableEncoder
from fewlabel.encoding.plan import require_name
from fewlabel.tables.allowed_types import CLASSES
from fewlabel.tables.model_archive import read_archive, refused, write_archive

# What training leaves in a voter and votes on new rows do not need: a graph of all rows, their
# labels, the models on the way to the last one.
_ONLY_FOR_TRAINING = {
    "LabelSpreadingClassifier": ("_codes", "graph_", "transduction_"),
    "MetricSpreadingClassifier": ("transduction_",),
    "PriorNetworkClassifier": ("_pool", "label_distributions_", "transduction_"),
    "QNS3VMClassifier": ("transduction_",),
    "SemiLDAClassifier": ("label_distributions_", "model_", "supervised_model_", "transduction_"),
}
# Parameters that a file cannot keep, or that mean nothing without the rows of the fit.
_NOT_KEPT = ("estimator", "table", "callback")


# --- the two functions for everybody ----------------------------------------------------------


def save(clf: Any, path: str | Path, *, target: str = "target") -> None:
    """Write a fitted classifier to a file that runs no code when it is read, unlike a pickle.

    It is the file of ``fewlabel fit --model``: ``fewlabel predict`` labels tables with it.

    Parameters
    ----------
    clf : fitted FewLabelClassifier, SelfLearningClassifier or classifier of ``fewlabel``
        A self-learning classifier is kept for new rows: what to predict them, how confident to be,
        and which labels to accept. Attributes with an entry for each row of ``fit`` are not kept.
    path : str or Path
        Usually ends in ``.skops``. An existing file is replaced.
    target : str, default="target"
        What ``fewlabel predict`` names its columns after.

    See Also
    --------
    load : The classifier again.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> import fewlabel
    >>> X = np.r_[np.zeros((20, 2)), np.ones((20, 2))] + 0.1 * np.eye(2)[np.arange(40) % 2]
    >>> y = np.where(np.arange(40) % 5 == 0, np.arange(40) // 20, -1)
    >>> clf = fewlabel.SelfLearningClassifier(random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fewlabel.save(clf, pathlib.Path(folder, "model.skops"))
    ...     again = fewlabel.load(pathlib.Path(folder, "model.skops"))
    >>> bool((again.predict(X) == clf.predict(X)).all())
    True
    """
    check_is_fitted(clf)
    path = Path(path)
    with replaced(path) as part:
        if hasattr(clf, "assessment_"):
            save_model(TableModel.of(clf, target=target), part)
            return
        if f"{type(clf).__module__}.{type(clf).__qualname__}" not in CLASSES.values():
            raise UserError(
                f"A model file cannot hold a {type(clf).__name__}.",
                "Save a classifier of fewlabel, or use pickle.",
            )
        write_archive({"estimator": clf}, part)


def load(path: str | Path) -> Any:
    """Read a classifier from a file of :func:`save` or of ``fewlabel fit --model``.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    clf : FewLabelClassifier, SelfLearningClassifier or another classifier of ``fewlabel``
        Fitted: ``predict``, ``predict_proba``, ``confidence``, ``accept(max_error, X)`` and
        ``error_`` work.

    Raises
    ------
    ValueError
        If the file is damaged, or holds anything that such a file never has.

    See Also
    --------
    save : Writes it.

    Examples
    --------
    >>> import fewlabel
    >>> clf = fewlabel.load("model.skops")  # doctest: +SKIP
    >>> clf.predict(X_new)  # doctest: +SKIP
    """
    path = Path(path)
    content = read_archive(path)
    if isinstance(content, dict) and "estimator" in content:
        clf = content["estimator"]
        try:
            check_is_fitted(clf)
        except Exception as error:
            raise refused(path, f"it holds no classifier ({shorten(error, 100)})") from error
        return clf
    return _model_of(content, path).classifier()


# --- what a file keeps ------------------------------------------------------------------------


@dataclass(frozen=True)
class TableModel:
    """All that is needed to label new rows.

    Attributes
    ----------
    encoder : fitted TableEncoder, or None
        From the columns of a table to numbers; None if the rows were numbers.
    first, final : fitted classifiers
        Trained on the labelled rows only, and after self-learning.
    promise : Promise
        How confident it is in a label, and which labels to accept.
    target : str
        Name of the target column.
    summary : dict
        The report's summary, without cells of the training table; empty if there is none.
    facts : dict
        Class and parameters of the estimator, its error estimate and voters, in JSON types.
    """

    encoder: TableEncoder | None
    first: Any
    final: Any
    promise: Promise
    target: str
    summary: dict[str, Any]
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        clf: Any,
        *,
        target: str,
        max_error: float = 0.05,
        summary: dict[str, Any] | None = None,
    ) -> Self:
        """The part of a fitted self-learning classifier that labels new rows."""
        names = getattr(clf, "feature_names_in_", None)
        facts: dict[str, Any] = {
            "class": type(clf).__name__,
            "params": {k: v for k, v in clf.get_params(deep=False).items() if _is_kept(k, v)},
            "n_features": getattr(clf, "n_features_in_", None),
            "feature_names": None if names is None else list(names),
            "error": asdict(clf.error_),
            "voters": [voter._asdict() for voter in getattr(clf, "voters_", ())],
        }
        return cls(
            encoder=getattr(clf, "table_encoder_", None),
            first=clf.initial_estimator_,
            final=clf.estimator_,
            promise=replace(clf.assessment_.promise, max_error=max_error),
            target=target,
            summary=summary or {},
            facts=facts,
        )

    @property
    def plan(self) -> list[Column]:
        """What the columns of a table are taken for."""
        return [] if self.encoder is None else self.encoder.plan_

    @property
    def classes(self) -> Any:
        """Labels of the classes."""
        return self.final.classes_

    def features(self, table: pa.Table) -> tuple[Any, list[str]]:
        """Rows of a table as the classifiers want them, and what to tell of its cells."""
        if self.encoder is not None:
            return self.encoder.encode(table)
        names = self.facts.get("feature_names")
        if not names:
            raise UserError(
                "The model learned from an array, whose columns have no names.",
                "Use it in Python (fewlabel.load), or fit it on a table.",
            )
        for name in names:
            require_name(table.column_names, name, "the model")
        return np.column_stack([numbers(plain_column(table.column(n))) for n in names]), []

    def classifier(self) -> Any:
        """The fitted estimator again."""
        from fewlabel.ensemble.few_label import FewLabelClassifier
        from fewlabel.ensemble.mixed_vote import MixedVote, VoterRecord
        from fewlabel.self_learning.classifier import SelfLearningClassifier

        mixed = isinstance(self.final, MixedVote)
        kind: Any = FewLabelClassifier if mixed else SelfLearningClassifier
        clf = kind(**self.facts.get("params", {}))
        clf.table_encoder_, clf.classes_ = self.encoder, self.final.classes_
        clf.initial_estimator_, clf.estimator_ = self.first, self.final
        clf.n_features_in_ = self.facts.get("n_features") or _width(self)
        if self.facts.get("feature_names"):
            clf.feature_names_in_ = np.asarray(self.facts["feature_names"], dtype=object)
        if mixed:
            clf.voters_ = [VoterRecord(**record) for record in self.facts.get("voters", ())]
        error = error_from_dict(self.facts.get("error") or {})
        clf._assessment = FitAssessment(error, self.promise, np.empty(0))
        return clf


def _is_kept(name: str, value: Any) -> bool:
    """Whether a parameter can be written as JSON and means something without the rows."""
    try:
        return name not in _NOT_KEPT and json.loads(json.dumps(value)) == value
    except TypeError:
        return False


def save_model(model: TableModel, path: Path) -> None:
    """Write a model file."""
    content = {
        "encoder": model.encoder,
        "first": _for_new_rows(model.first),
        "final": _for_new_rows(model.final),
        "promise": json.dumps(model.promise.to_dict()),
        "target": model.target,
        "summary": json.dumps(model.summary),
        "facts": json.dumps(model.facts, default=lambda value: value.tolist()),
    }
    write_archive(content, path)


def _for_new_rows(classifier: Any) -> Any:
    """A mixed vote without what only its training needed; any other classifier as it is.

    The copies are shallow: arrays that the first and the final vote share are written once.
    """
    from fewlabel.ensemble.families import Voter
    from fewlabel.ensemble.mixed_vote import MixedVote

    if not isinstance(classifier, MixedVote):
        return classifier
    voters = []
    for voter in classifier.estimators:
        model = _without_training(voter.model)
        parts = (voter.name, voter.scaler, model, voter.n_classes, voter.power, voter.shift)
        voters.append(Voter(*parts))
    return MixedVote(voters, classifier.weights, classifier.classes)


def _without_training(model: Any) -> Any:
    model = copy.copy(model)
    for name in _ONLY_FOR_TRAINING.get(type(model).__name__, ()):
        vars(model).pop(name, None)
    if hasattr(model, "spreading_"):
        model.spreading_ = _without_training(model.spreading_)
        model.metric_ = copy.copy(model.metric_)
        model.metric_.teacher = None  # what it has taught is in the metric
        model.metric = model.metric_
    return model


def load_model(path: Path) -> TableModel:
    """Read a model file, or say in a :class:`UserError` why it is refused."""
    content = read_archive(path)
    if isinstance(content, dict) and isinstance(content.get("estimator"), BaseEstimator):
        raise UserError(
            f"'{shorten(path)}' holds a {type(content['estimator']).__name__}, which says nothing "
            f"of its errors.",
            "Use it in Python (fewlabel.load), or name a model that `fewlabel fit --model` wrote.",
        )
    return _model_of(content, path)


def _model_of(content: Any, path: Path) -> TableModel:
    try:
        model = TableModel(
            encoder=content["encoder"],
            first=content["first"],
            final=content["final"],
            promise=Promise.from_dict(json.loads(content["promise"])),
            target=str(content["target"]),
            summary=json.loads(content["summary"]),
            facts=json.loads(content["facts"]),
        )
        _check_model(model)
    except Exception as error:  # parts that do not fit each other fail in any way
        raise refused(path, f"its parts do not fit together ({shorten(error, 100)})") from error
    return model


def _check_model(model: TableModel) -> None:
    """Label a row of empty cells: what does not fit together is found now, not in a table."""
    if not isinstance(model.summary, dict) or not isinstance(model.facts, dict):
        raise TypeError("no summary")
    if model.encoder is None:
        X = np.zeros((1, _width(model)))
    else:
        row = pa.table({column.name: pa.nulls(1, pa.string()) for column in model.plan})
        X, _ = model.encoder.encode(row)
    n_classes = len(model.classes)
    if n_classes < 2:
        raise ValueError("a single class")
    if list(model.first.classes_) != list(model.classes):
        raise ValueError("classes")
    for classifier in (model.first, model.final):
        votes = vote_matrix(classifier, X)
        if votes.shape != (1, n_classes) or not np.isfinite(votes).all():
            raise ValueError("votes")
        label = votes.argmax(axis=1)
        if not np.isfinite(model.promise.confidence(votes, label)).all():
            raise ValueError("confidence")
        model.promise.accepted(votes, label)
    model.classifier()


def _width(model: TableModel) -> int:
    """Columns of the rows that the classifiers learned from."""
    if model.encoder is not None:
        return len(model.encoder.get_feature_names_out())
    return int(model.facts["n_features"])
