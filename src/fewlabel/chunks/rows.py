"""Unlabelled rows in chunks: what a fit asks of them, wherever they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from fewlabel._core.scikit import indexable_rows, n_rows
from fewlabel._core.targets import UNLABELED, encode_target
from fewlabel.bounds.table import Bound
from fewlabel.chunks import steps
from fewlabel.chunks.chunked_bounds import chunked_bounds
from fewlabel.chunks.source import Layout, check_markers, check_out, first_columns, result_folder


class Rows(ABC):
    """Unlabelled rows in chunks, and the means to run a step over all of them.

    Parameters
    ----------
    out : path, optional
        Folder for the results of ``fit``: Parquet files with the columns ``row`` (position in the
        source), ``round`` (that trusted it; -1: none), ``label`` and a ``vote_…`` for each class.
        It must not exist, and appears only when it is complete.
    target : str, optional
        Column of the source that holds labels: only rows without one are used.
    missing_label : object, default="auto"
        What marks an unlabelled row in ``target``.
    resolution : int, optional
        Bins for the votes of each class. By default statistics are exact up to 4,096 distinct
        votes a class (a forest of fully grown trees has one more than it has trees) and have
        1,000 bins where there are more; those for a policy with a resolution have that one.
    train : {"sample", "partitions"}
        "sample": one training set of at most ``max_train`` trusted rows, drawn from all chunks.
        "partitions": each chunk grows its share of a forest's trees on the labelled rows and its
        own trusted rows (at most ``max_train``); rows never leave their chunk.
    layout : object, optional
        Own preparation of chunks: its method ``conform(chunk)`` returns the unlabelled rows in the
        form of the classifier's input, and their positions in the chunk. By default chunks are
        brought into the form of the labelled rows.
    """

    source: Any

    def __init__(
        self,
        *,
        out: str | Path | None = None,
        target: str | None = None,
        missing_label: Any = "auto",
        resolution: int | None = None,
        train: str = "sample",
        layout: Any = None,
    ) -> None:
        if train not in ("sample", "partitions"):
            raise ValueError(f"train must be 'sample' or 'partitions'. Got {train!r} instead.")
        self.out, self.target, self.missing_label = out, target, missing_label
        self.resolution, self.train, self.layout = resolution, train, layout
        self.n_unlabeled: int | None = None  # not known before the rows were read

    def layout_like(self, X: Any) -> Any:
        """What brings chunks into the form of these rows."""
        if self.layout is not None:
            return self.layout
        return self._by_name(Layout.of(X, self.target, self.missing_label))

    def _by_name(self, layout: Layout) -> Layout:
        # Without names in the labelled rows, the first chunk says in which order columns come. That
        # of a function is seen only when the first pass begins.
        as_it_is = layout.kind != "array" or callable(self.source)
        return layout if as_it_is else layout.in_order_of(first_columns(self.source))

    @abstractmethod
    def opened(self, layout: Any) -> Any:
        """Context in which steps can be run."""

    @abstractmethod
    def run(
        self,
        step: Callable[..., tuple[dict[str, Any], Any]],
        merge: Callable[[Sequence[Any]], Any],
        uses: tuple[str, ...],
        makes: tuple[str, ...] = (),
        *,
        each: dict[str, Sequence[Any]] | None = None,
        keep: bool = False,
        **arguments: Any,
    ) -> Any:
        """Run a step on every chunk, keep the pieces it makes, return the merged summaries.

        ``uses`` and ``makes`` name the pieces of a chunk that go into the step and come out of it.
        ``each`` holds arguments that differ from chunk to chunk. With ``keep`` the result stays
        where it was made and a handle to it is returned, which later steps take as an argument.
        """

    @abstractmethod
    def call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Handle to the result of one function of values and handles."""

    @abstractmethod
    def fetch(self, handle: Any) -> Any:
        """The value behind a handle."""

    def predict(self, classifier: Any, out: str | Path, *, like: Any = None) -> int:
        """Write labels and votes of all rows into a new folder, as Parquet; return their number.

        ``like``: some rows in the form that the classifier was fitted on (its labelled rows), if
        that was not a NumPy array and the chunks are not in that form themselves.
        """
        check_is_fitted(classifier)
        check_out(out)
        with self.opened(_layout_for(self, classifier, like)), result_folder(out) as folder:
            offsets, n_unlabeled = begin(self)
            estimator = self.call(same, classifier.estimator_)
            self.run(
                steps.label,
                total,
                ("X",),
                each={"offset": offsets},
                estimator=estimator,
                classes=classifier.classes_,
                folder=folder,
            )
        return n_unlabeled

    def bounds(self, classifier: Any, X: Any, y: ArrayLike) -> list[Bound]:
        """Estimates and bounds of the error on these rows; X, y: the labelled rows of ``fit``.

        The table of :meth:`SelfLearningClassifier.bounds`, from sums over the chunks.
        """
        check_is_fitted(classifier)
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
        label_proba = steps.named_label_proba(classifier)
        with self.opened(self.layout_like(X)):
            begin(self)
            return chunked_bounds(self, classifier, indexable_rows(X), codes, label_proba)


def same(value: Any) -> Any:
    """As a function to ``call``: put a value where the steps run."""
    return value


def _layout_for(rows: Rows, classifier: Any, like: Any) -> Any:
    if rows.layout is not None or like is not None:
        return rows.layout_like(like)
    names = getattr(classifier, "feature_names_in_", None)
    if names is not None:
        columns = tuple(str(name) for name in names)
        return Layout("pandas", columns, target=rows.target, missing_label=rows.missing_label)
    width = getattr(classifier, "n_features_in_", None)
    layout = Layout("array", None, np.float64, width, rows.target, rows.missing_label)
    return rows._by_name(layout)


def total(counts: Sequence[int]) -> int:
    """Merge counts."""
    return sum(counts)


def join(parts: Sequence[dict[int, Any]]) -> dict[int, Any]:
    """Merge what is told apart by the position of the chunk."""
    return {position: value for part in parts for position, value in part.items()}


def begin(rows: Rows) -> tuple[list[int], int]:
    """Position in the source of each chunk's first row, and the number of unlabelled rows."""
    seen: dict[int, steps.Seen] = rows.run(steps.begin, join, ("X",), ("marks",))
    chunks = [seen[position] for position in range(len(seen))]
    check_markers([marker for chunk in chunks for marker in chunk.markers], rows.missing_label)
    n_read = [chunk.n_read for chunk in chunks]
    offsets = np.concatenate([[0], np.cumsum(n_read)[:-1]]).astype(int).tolist() if n_read else []
    rows.n_unlabeled = sum(chunk.n_unlabeled for chunk in chunks)
    return offsets, rows.n_unlabeled
