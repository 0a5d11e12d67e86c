"""What a fitted classifier says of rows in chunks: their labels, and bounds of its error."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from fewlabel._core.arrays import Floats
from fewlabel._core.scikit import n_rows
from fewlabel._core.targets import UNLABELED, encode_target
from fewlabel.assess.calibration import bounding_power
from fewlabel.assess.label_proba import CHOICES, label_proba_of
from fewlabel.assess.label_sums import LabelRule
from fewlabel.assess.pseudo_label_errors import supervised_estimate
from fewlabel.assess.shifts import Shifts
from fewlabel.bounds.cells import Statistics
from fewlabel.bounds.margins import MarginSums, margin_sums
from fewlabel.bounds.mislabeling import (
    expected_counts,
    held_out_counts,
    imperfect_proba,
    mislabeling_matrix,
)
from fewlabel.bounds.table import Bound, table_of_sums
from fewlabel.bounds.transductive import risk_bound
from fewlabel.bounds.votes import vote_matrix
from fewlabel.chunks import steps
from fewlabel.chunks.executor import first_look, total
from fewlabel.chunks.finish import add_margins
from fewlabel.chunks.results import check_out, result_folder
from fewlabel.chunks.rows import Rows, layout_for
from fewlabel.chunks.survey import offsets_of


def predict_rows(classifier: Any, rows: Rows, out: str | Path, *, like: Any = None) -> int:
    """Write labels and votes of all rows into a new folder, as Parquet; return their number.

    The columns are ``row``, ``label``, ``confidence``, ``accepted`` (for ``rows.max_error``) and a
    ``vote_…`` for each class.

    Parameters
    ----------
    classifier : fitted self-learning classifier
    rows : UnlabeledRows or DaskRows
    out : path
        It must not exist, and appears only when it is complete.
    like : optional
        Some rows in the form that the classifier was fitted on (its labelled rows), if that was
        not a NumPy array and the chunks are not in that form themselves.

    See Also
    --------
    UnlabeledRows, DaskRows : The rows.
    bounds_of_rows : The bounds for them.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Algorithm 1.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from fewlabel import SelfLearningClassifier, UnlabeledRows, predict_rows
    >>> X, y = load_iris(return_X_y=True)
    >>> rows = UnlabeledRows([X[1::2], X[::2]])
    >>> forest = RandomForestClassifier(25, random_state=0)
    >>> clf = SelfLearningClassifier(forest, max_iter=1).fit(X[::6], y[::6], unlabeled=rows)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(predict_rows(clf, rows, Path(folder) / "labels"))
    150
    """
    check_is_fitted(classifier)
    check_out(out)
    layout = layout_for(rows, classifier, like)
    with rows.opened(layout) as executor, result_folder(out) as folder:
        offsets = offsets_of(first_look(executor, rows.missing_label))
        n_labeled: int = executor.run(
            steps.label,
            total,
            ("X",),
            each={"offset": offsets},
            models=executor.call(_pair, classifier.estimator_, classifier.initial_estimator_),
            rule=LabelRule.of(classifier.assessment_.promise, rows.max_error),
            classes=classifier.classes_,
            folder=folder,
        )
    return n_labeled


def _pair(final: Any, initial: Any) -> tuple[Any, Any]:
    """As a function to ``call``: put both models where the steps run."""
    return final, initial


# --- bounds ------------------------------------------------------------------------------------


class Sums(NamedTuple):
    """What the table of bounds needs of some rows."""

    statistics: Statistics | None
    margins: MarginSums
    counts: Floats


class Assessor(NamedTuple):
    """The classifiers whose votes are compared.

    ``power`` and ``shifts`` make initial votes stand for P(Y|x).
    """

    final: Any
    initial: Any
    label_proba: str
    power: float
    shifts: Shifts
    resolution: int | None

    def votes_and_proba(self, X: Any) -> tuple[Floats, Floats]:
        """Final votes on rows, and what stands for their label probabilities."""
        votes = vote_matrix(self.final, X)
        initial = votes
        if self.label_proba == "supervised":
            initial = self.shifts.label_proba(vote_matrix(self.initial, X), self.power)
        return votes, label_proba_of(self.label_proba, votes, initial)


def assess(chunk: steps.Chunk, *, assessor: Assessor) -> tuple[steps.Made, Sums | None]:
    """Sums of the bounds that take ``label_proba`` as it is, and counts for the matrix."""
    if n_rows(chunk["X"]) == 0:
        return {}, None
    votes, proba = assessor.votes_and_proba(chunk["X"])
    return {}, Sums(
        steps.chunk_statistics(votes, proba, assessor.resolution),
        margin_sums(votes, proba),
        expected_counts(votes.argmax(axis=1), proba, max_iter=0),
    )


def assess_imperfect(
    chunk: steps.Chunk, *, assessor: Assessor, matrix: Floats
) -> tuple[steps.Made, MarginSums | None]:
    """Sums of the bounds for imperfect labels."""
    if n_rows(chunk["X"]) == 0:
        return {}, None
    votes, proba = assessor.votes_and_proba(chunk["X"])
    return {}, margin_sums(votes, imperfect_proba(proba, matrix))


def merge_sums(parts: Sequence[Sums | None]) -> Sums | None:
    """Sums over the rows of all chunks."""
    present = [part for part in parts if part is not None]
    if not present:
        return None
    return Sums(
        steps.merge_statistics([part.statistics for part in present]),
        add_margins([part.margins for part in present]),
        np.sum([part.counts for part in present], axis=0),
    )


def merge_margins(parts: Sequence[MarginSums | None]) -> MarginSums | None:
    """Sums of margins over the rows of all chunks."""
    present = [part for part in parts if part is not None]
    return add_margins(present) if present else None


def bounds_of_rows(classifier: Any, rows: Rows, X: Any, y: ArrayLike) -> list[Bound]:
    """The table of ``SelfLearningClassifier.bounds`` from sums over chunks, in two passes.

    Parameters
    ----------
    classifier : fitted self-learning classifier
    rows : UnlabeledRows or DaskRows
    X, y : the labelled rows of ``fit``

    See Also
    --------
    predict_rows : The labels of the rows.
    fewlabel.bounds_table : The same for rows in memory.

    References
    ----------
    .. [1] Feofanov, Devijver and Amini (2021), Sections 4 and 5.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from fewlabel import SelfLearningClassifier, UnlabeledRows, bounds_of_rows
    >>> X, y = load_iris(return_X_y=True)
    >>> rows = UnlabeledRows([X[1::2], X[::2]])
    >>> forest = RandomForestClassifier(25, random_state=0)
    >>> clf = SelfLearningClassifier(forest, max_iter=1).fit(X[::6], y[::6], unlabeled=rows)
    >>> {bound.kind for bound in bounds_of_rows(clf, rows, X[::6], y[::6])}
    {'estimate'}
    """
    check_is_fitted(classifier)
    _check_labeled_rows(classifier, X, y)
    label_proba = named_label_proba(classifier.label_proba)
    layout = classifier._chunk_layout(rows.layout_like(X))
    with rows.opened(layout) as executor:
        first_look(executor, rows.missing_label)
        judged = classifier._held_out()
        (codes, held_out), shifts = judged.judged, judged.shifts(len(classifier.classes_))
        power = 1.0
        if label_proba == "supervised":
            power = bounding_power(shifts.before_calibration(held_out), codes)
        voters = classifier.estimator_, classifier.initial_estimator_
        assessor = executor.call(Assessor, *voters, label_proba, power, shifts, rows.resolution)
        sums: Sums | None = executor.run(assess, merge_sums, ("X",), assessor=assessor)
        if sums is None or sums.statistics is None:
            raise ValueError("There is no unlabelled row whose error could be bounded.")
        known = held_out_counts(codes, held_out.argmax(axis=1), held_out.shape[1])
        matrix = mislabeling_matrix(known + sums.counts)
        imperfect = executor.run(
            assess_imperfect, merge_margins, ("X",), assessor=assessor, matrix=matrix
        )
    tb = risk_bound(sums.statistics, tight=True)
    first = supervised_estimate(held_out, codes, None)
    return [first, *table_of_sums(sums.margins, tb, imperfect, matrix)]


def _check_labeled_rows(classifier: Any, X: Any, y: ArrayLike) -> None:
    codes, classes = encode_target(y, classifier.missing_label)
    if len(codes) != n_rows(X) or (codes == UNLABELED).any():
        raise ValueError(
            "X and y must be the labelled rows of `fit`, one label for each. Got "
            f"{n_rows(X)} rows and {len(codes)} labels, {int((codes == UNLABELED).sum())} of "
            f"them missing."
        )
    if not np.array_equal(classes, classifier.classes_):
        raise ValueError(
            f"y must have the classes of `fit`, {classifier.classes_}. Got {classes} instead."
        )


def named_label_proba(choice: Any) -> str:
    """The parameter ``label_proba`` for rows in chunks: a name, no array."""
    if isinstance(choice, str):
        return choice
    raise ValueError(
        f"label_proba must be one of {', '.join(CHOICES)} for rows in chunks: an array of "
        f"probabilities belongs to rows in memory. Got {type(choice).__name__}."
    )
