"""What a fitted self-learning classifier says of its own error by the paper's bounds.

Gathers the evidence that a fit leaves behind and puts every bound in one table. All of it is
estimated, none guaranteed: the label probabilities are votes, and the mislabelling matrix is
counted on few rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewlabel._core.scikit import n_rows
from fewlabel._core.targets import as_column, encode_target
from fewlabel.assess.label_sums import KnownLabels
from fewlabel.assess.pseudo_label_errors import (
    DEFAULT_METHOD,
    Evidence,
    estimate_mislabeling,
    supervised_estimate,
)
from fewlabel.assess.true_labels import check_some_known, known_labels
from fewlabel.bounds.mislabeling import imperfect_proba
from fewlabel.bounds.table import Bound, bounds_table

if TYPE_CHECKING:
    from fewlabel.self_learning.base import SelfLearner
    from fewlabel.self_learning.statement import LabelStatements


def gather(classifier: SelfLearner, *, calibrate: bool = True) -> Evidence:
    """Evidence that a fit on rows in memory left behind.

    ``calibrate``: whether votes that stand for P(Y|x) are raised to the least power that the
    held-out votes demand, see :func:`fewlabel.assess.calibration.least_power`.
    """
    rows, paper = classifier._transduction, classifier.paper_bounds_
    if len(rows.votes) == 0:
        raise ValueError("There is no unlabelled row whose error could be bounded.")
    given, held_out = paper.held_out.judged
    label_proba = paper.label_proba
    if not calibrate and rows.label_proba == "supervised":
        label_proba = rows.initial
    return Evidence(given, held_out, label_proba, rows.votes)


def check_rows_of_fit(classifier: SelfLearner, X: Any, y: ArrayLike | None) -> None:
    """Raise if X and y, where they are given, are not those of the fit."""
    n = len(classifier.transduction_)
    if y is None:
        sizes, classes = {n_rows(X)} - {n} if X is not None else set(), classifier.classes_
    else:
        codes, classes = encode_target(y, classifier.missing_label)
        sizes = {len(codes), *([] if X is None else [n_rows(X)])} - {n}
    if sizes or not np.array_equal(classes, classifier.classes_):
        raise ValueError(
            "X and y must be those that the classifier was fitted on: they have "
            f"{next(iter(sizes), n)} rows and classes {classes}, it saw {n} rows and classes "
            f"{classifier.classes_}."
        )


def true_codes(
    classifier: LabelStatements, y_true: ArrayLike, rows: NDArray[np.intp]
) -> KnownLabels:
    """Which of these rows of ``fit`` have a known true label, and its code."""
    column, n_samples = as_column(y_true), len(classifier.labeled_iter_)
    if column.shape != (n_samples,):
        raise ValueError(
            f"y_true must have one entry for each of the {n_samples} rows of fit. "
            f"Got shape {column.shape} instead."
        )
    known = known_labels(column[rows], classifier.classes_, classifier.missing_label)
    check_some_known(known, column, classifier.classes_)
    return known


def transduction_bounds(
    classifier: SelfLearner,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    y_true: ArrayLike | None = None,
    X_test: Any = None,
    y_test: ArrayLike | None = None,
    method: str = DEFAULT_METHOD,
    smoothing: float = 1.0,
    calibrate: bool = True,
) -> list[Bound]:
    r"""Estimated bounds on the error of the transduction; see ``SelfLearningClassifier.bounds``.

    The imperfect labels of CBIL follow the mislabelling model,
    :math:`P(\hat Y=i\mid x)=\sum_j\hat p_{i,j}P(Y=j\mid x)`. The pseudo-labels themselves would
    contradict it: they always agree with the vote that made them.
    """
    check_rows_of_fit(classifier, X, y)
    evidence = gather(classifier, calibrate=calibrate)
    matrix = estimate_mislabeling(evidence, method, smoothing=smoothing)
    error = None
    if y_true is not None:
        unlabeled = np.flatnonzero(classifier.labeled_iter_ != 0)
        known, codes, _ = true_codes(classifier, y_true, unlabeled)
        if len(known) == 0:
            raise ValueError("y_true has no label for any unlabelled row.")
        error = float(np.mean(evidence.votes[known].argmax(axis=1) != codes))
    elif y_test is not None:
        error = 1.0 - float(classifier.score(X_test, y_test))
    return [supervised_estimate(evidence.held_out, evidence.y, error)] + bounds_table(
        evidence.votes,
        evidence.label_proba,
        imperfect_proba=imperfect_proba(evidence.label_proba, matrix),
        mislabeling=matrix,
        error=error,
    )
