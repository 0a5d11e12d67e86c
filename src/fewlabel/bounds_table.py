"""Bounds of given votes: the ``fewlabel bounds`` command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fewlabel._errors import UserError, listing, shorten
from fewlabel.model_files import load_model
from fewlabel.preprocessing import to_frame
from fewlabel.report.truth import GUARANTEE
from fewlabel.statistics import Floats
from fewlabel.tables import read_table
from fewlabel.thresholds import search_thresholds
from fewlabel.transductive import transductive_bound
from fewlabel.votes import bayes_risk, vote_matrix
from fewlabel.workflow import require_column, target_labels

if TYPE_CHECKING:
    import pyarrow as pa

EXACT = "A guarantee for these rows if the given label probabilities are the true ones, as stated."
GIVEN = "An estimate: it would be a guarantee if the given label probabilities were the true ones."
VOTES = (
    "An estimate: the votes themselves stand for the unknown label probabilities P(Y|x). It would "
    "be a guarantee if they were the true ones."
)


def bounds_of_table(
    path: Path,
    *,
    model: Path | None = None,
    truth: str | None = None,
    proba: Path | None = None,
    exact: bool = False,
    encoding: str = "utf-8",
) -> dict[str, Any]:
    """Bounds of the votes in a table, or of a model's votes for the rows of a table.

    Parameters
    ----------
    path : Path
        A column of votes for each class; with ``model``, a table like the one it was trained on.
    model : Path, optional
    truth : str, optional
        Column with the true labels.
    proba : Path, optional
        Table with a column of label probabilities for each class.
    exact : bool, default=False
        Whether the probabilities are known to be the true ones.
    """
    if truth is not None and proba is not None:
        raise UserError("--truth and --proba exclude each other.", "Give the one that is known.")
    if exact and proba is None:
        raise UserError("--exact speaks of the probabilities of --proba.", "Add --proba FILE.")
    table = read_table(path, encoding=encoding)
    if truth is not None:
        require_column(table.column_names, truth, "--truth")
    votes, classes = _votes(table, model, truth, path)
    label_proba, assumption = votes, VOTES
    if truth is not None:
        votes, label_proba = _with_truth(table, truth, votes, classes)
        assumption = GUARANTEE
    elif proba is not None:
        label_proba = _proba(read_table(proba, encoding=encoding), classes, len(votes), proba)
        assumption = EXACT if exact else GIVEN
    return _bounds(votes, label_proba, classes, assumption, truth is not None)


def _bounds(
    votes: Floats, label_proba: Floats, classes: list[str], assumption: str, is_truth: bool
) -> dict[str, Any]:
    kind = "guarantee" if assumption.startswith("A guarantee") else "estimate"
    everything = transductive_bound(votes, label_proba, tight=True)
    thresholds, errors = search_thresholds(votes, label_proba)
    trusted = transductive_bound(votes, label_proba, thresholds=thresholds)

    def stated(value: float) -> dict[str, Any]:
        number = float(value) if np.isfinite(value) else None
        return {"value": number, "kind": kind, "assumption": assumption}

    answer: dict[str, Any] = {
        "n_rows": len(votes),
        "error": stated(everything.risk),
        "trusted_error": stated(trusted.conditional_error),
        "trusted_share": trusted.trusted_share,
        "classes": [
            {"name": name, "threshold": float(theta), "error": stated(error)}
            for name, theta, error in zip(classes, thresholds, errors)
        ],
        "confusion": {
            "names": classes,
            "matrix": everything.confusion.tolist(),
            "kind": kind,
            "assumption": assumption,
        },
    }
    if is_truth:
        answer["true_error"] = bayes_risk(votes, label_proba)
    return answer


def _votes(
    table: pa.Table, model: Path | None, truth: str | None, path: Path
) -> tuple[Floats, list[str]]:
    if model is not None:
        loaded = load_model(model)
        X = loaded.transformer.transform(to_frame(table, loaded.plan))
        return vote_matrix(loaded.final, X), [str(name) for name in loaded.final.classes_]
    names = [name for name in table.column_names if name != truth]
    if len(names) < 2:
        raise UserError(
            f"'{shorten(path)}' has a single column of votes.",
            "Votes need a column for each class.",
        )
    return _distributions(table, names, path, "votes"), names


def _distributions(table: pa.Table, names: list[str], path: Path, what: str) -> Floats:
    import pyarrow as pa

    columns = []
    for name in names:
        try:
            column = table.column(name).cast(pa.float64()).to_numpy()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise UserError(
                f"Column '{shorten(name)}' of '{shorten(path)}' holds something else than numbers.",
                f"A table of {what} has a column of numbers for each class (and --truth names the "
                f"column of true labels).",
            ) from error
        columns.append(np.asarray(column, dtype=np.float64))
    matrix = np.column_stack(columns)
    sums = matrix.sum(axis=1)
    wrong = ~((matrix >= 0).all(axis=1) & (np.abs(sums - 1) < 1e-4))
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        raise UserError(
            f"The {what} of {int(wrong.sum())} rows of '{shorten(path)}' are not shares that sum "
            f"to 1 (first: row {first + 1}, sum {sums[first]:g}).",
            "Each row needs one number from 0 to 1 for each class.",
        )
    return np.minimum(matrix, 1.0)  # rounding may go beyond


def _with_truth(
    table: pa.Table, truth: str, votes: Floats, classes: list[str]
) -> tuple[Floats, Floats]:
    labels: NDArray[Any] = target_labels(table.column(truth), "")
    known = np.array([label is not None for label in labels])
    unknown = sorted({label for label in labels if label is not None} - set(classes))
    if unknown:
        raise UserError(
            f"The true labels {listing(unknown)} are no classes of the votes.",
            f"The classes are {listing(classes, 12)}.",
        )
    if not known.any():
        raise UserError(f"Column '{shorten(truth)}' holds no label.", "Fill in true labels.")
    codes = [classes.index(label) for label in labels[known]]
    return votes[known], np.eye(len(classes))[codes]


def _proba(table: pa.Table, classes: list[str], n: int, path: Path) -> Floats:
    absent = [name for name in classes if name not in table.column_names]
    if absent:
        raise UserError(
            f"'{shorten(path)}' lacks the classes {listing(absent)}.",
            "It needs a column for each class of the votes, with the same name.",
        )
    if table.num_rows != n:
        raise UserError(
            f"'{shorten(path)}' has {table.num_rows:,} rows and the votes have {n:,}.",
            "Rows must correspond.",
        )
    return _distributions(table, classes, path, "probabilities")
