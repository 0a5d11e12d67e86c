"""Model files: all that is needed to label the rows of a new table, in a file that runs no code.

:mod:`fewlabel.tables.model_archive` says how such a file is written and checked,
:mod:`fewlabel.tables.allowed_types` what it may contain.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fewlabel._core.errors import shorten
from fewlabel.assess.promise import Promise
from fewlabel.bounds.votes import vote_matrix
from fewlabel.encoding.columns import Column
from fewlabel.encoding.encoder import TableEncoder
from fewlabel.tables.model_archive import read_archive, refused, write_archive

# What training leaves in a voter and votes on new rows do not need: a graph of all rows, their
# labels, the models on the way to the last one.
_ONLY_FOR_TRAINING = {
    "LabelSpreadingClassifier": ("_codes", "graph_", "transduction_"),
    "MetricSpreadingClassifier": ("transduction_",),
    "QNS3VMClassifier": ("transduction_",),
    "SemiLDAClassifier": ("label_distributions_", "model_", "supervised_model_", "transduction_"),
}


@dataclass(frozen=True)
class TableModel:
    """All that is needed to label the rows of a new table.

    Attributes
    ----------
    encoder : fitted TableEncoder
        From the columns of a table to numbers.
    first, final : fitted RandomForestClassifier or MixedVote
        Trained on the labelled rows only, and after self-learning.
    promise : Promise
        How confident it is in a label, and which labels to accept.
    target : str
        Name of the target column.
    summary : dict
        The report's summary, without cells of the training table.
    """

    encoder: TableEncoder
    first: Any
    final: Any
    promise: Promise
    target: str
    summary: dict[str, Any]

    @property
    def plan(self) -> list[Column]:
        """What the columns of a table are taken for."""
        return self.encoder.plan_


def save_model(model: TableModel, path: Path) -> None:
    """Write a model file."""
    content = {
        "encoder": model.encoder,
        "first": _for_new_rows(model.first),
        "final": _for_new_rows(model.final),
        "promise": json.dumps(model.promise.to_dict()),
        "target": model.target,
        "summary": json.dumps(model.summary),
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
        voters.append(Voter(voter.name, voter.scaler, model, voter.n_classes, voter.power))
    return MixedVote(voters, classifier.weights, classifier.classes)


def _without_training(model: Any) -> Any:
    model = copy.copy(model)
    for name in _ONLY_FOR_TRAINING.get(type(model).__name__, ()):
        delattr(model, name)
    if hasattr(model, "spreading_"):
        model.spreading_ = _without_training(model.spreading_)
        model.metric = model.metric_  # the unfitted one may hold a forest of its own
    return model


def load_model(path: Path) -> TableModel:
    """Read a model file, or say in a :class:`UserError` why it is refused."""
    content = read_archive(path)
    try:
        model = TableModel(
            encoder=content["encoder"],
            first=content["first"],
            final=content["final"],
            promise=Promise.from_dict(json.loads(content["promise"])),
            target=str(content["target"]),
            summary=json.loads(content["summary"]),
        )
        _check_model(model)
    except Exception as error:  # parts that do not fit each other fail in any way
        raise refused(path, f"its parts do not fit together ({shorten(error, 100)})") from error
    return model


def _check_model(model: TableModel) -> None:
    """Label a row of empty cells: what does not fit together is found now, not in a table."""
    import pyarrow as pa

    if not isinstance(model.summary, dict):
        raise TypeError("no summary")
    row = pa.table({column.name: pa.nulls(1, pa.string()) for column in model.plan})
    X, _ = model.encoder.encode(row)
    n_classes = len(model.final.classes_)
    if n_classes < 2:
        raise ValueError("a single class")
    if list(model.first.classes_) != list(model.final.classes_):
        raise ValueError("classes")
    for classifier in (model.first, model.final):
        votes = vote_matrix(classifier, X)
        if votes.shape != (1, n_classes) or not np.isfinite(votes).all():
            raise ValueError("votes")
        label = votes.argmax(axis=1)
        if not np.isfinite(model.promise.confidence(votes, label)).all():
            raise ValueError("confidence")
        model.promise.accepted(votes, label)
