"""Unlabelled rows in chunks: what a fit asks of them, wherever they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from fewlabel.chunks.executor import Executor
from fewlabel.chunks.finish import PartWriter
from fewlabel.chunks.progress import Report
from fewlabel.chunks.source import Layout, first_columns


class Rows(ABC):
    """Unlabelled rows in chunks.

    Parameters
    ----------
    out : path, optional
        Folder for the results of ``fit``: Parquet files with the columns ``row`` (position in the
        source), ``round`` (that pseudo-labelled it; -1: none), ``label``, ``confidence``,
        ``cautious`` (the confidence by which labels are accepted), ``accepted`` and a ``vote_…``
        for each class.
        It must not exist, and appears only when it is complete.
    target : str, optional
        Column of the source that holds labels: only rows without one are used.
    missing_label : object, default="auto"
        What marks an unlabelled row in ``target``.
    truth : str, optional
        Column with true labels as far as they are known: used to check the result only.
    max_error : float, default=0.05
        The share of wrong labels that is allowed: labels are accepted for it.
    resolution : int, optional
        Bins for the votes of each class. By default statistics are exact up to 4,096 distinct
        votes a class (a forest of fully grown trees has one more than it has trees) and have
        1,000 bins where there are more; those for a policy with a resolution have that one.
    train : {"sample", "partitions"}
        "sample": one training set of at most ``max_train`` pseudo-labelled rows, drawn from all
        chunks.
        "partitions": each chunk grows its share of a forest's trees on the labelled rows and its
        own pseudo-labelled rows (at most ``max_train``); rows never leave their chunk.
    layout : object, optional
        Own preparation of chunks: its method ``conform(chunk)`` returns the unlabelled rows in the
        form of the classifier's input, and their positions in the chunk. By default chunks are
        brought into the form of the labelled rows.
    writer : PartWriter, optional
        Who writes ``out``, if it shall have other columns.
    progress : callable, optional
        Called now and then with a :class:`fewlabel.chunks.progress.Progress`, whose text says how
        many rows of a pass are done and how long the rest will take.
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
        truth: str | None = None,
        max_error: float = 0.05,
        writer: PartWriter | None = None,
        progress: Report | None = None,
    ) -> None:
        if train not in ("sample", "partitions"):
            raise ValueError(f"train must be 'sample' or 'partitions'. Got {train!r} instead.")
        self.out, self.target, self.missing_label = out, target, missing_label
        self.resolution, self.train, self.layout = resolution, train, layout
        self.truth, self.max_error, self.writer = truth, max_error, writer
        self.progress = progress
        self.n_unlabeled: int | None = None  # not known before the rows were read

    def layout_like(self, X: Any) -> Any:
        """What brings chunks into the form of these rows."""
        if self.layout is not None:
            return self.layout
        return self.ordered_by_name(Layout.of(X, self.target, self.missing_label, self.truth))

    def ordered_by_name(self, layout: Layout) -> Layout:
        """The layout with columns in the order of the first chunk."""
        # Without names in the labelled rows, the first chunk says in which order columns come. That
        # of a function is seen only when the first pass begins.
        as_it_is = layout.kind != "array" or callable(self.source)
        return layout if as_it_is else layout.in_order_of(first_columns(self.source))

    @property
    def n_workers(self) -> int:
        """How many chunks are worked on at once."""
        return 1

    @abstractmethod
    def opened(self, layout: Any) -> AbstractContextManager[Executor]:
        """Context with an executor that runs steps over the chunks, brought into this layout."""


def layout_for(rows: Rows, classifier: Any, like: Any) -> Any:
    """The form in which a fitted classifier wants rows; ``like``: some rows in that form."""
    return classifier._chunk_layout(_raw_layout(rows, classifier, like))


def _raw_layout(rows: Rows, classifier: Any, like: Any) -> Any:
    if rows.layout is not None or like is not None:
        return rows.layout_like(like)
    named = getattr(classifier, "table_encoder_", None) or classifier
    names = getattr(named, "feature_names_in_", None)
    if names is not None:
        columns = tuple(str(name) for name in names)
        return Layout("pandas", columns, target=rows.target, missing_label=rows.missing_label)
    width = getattr(classifier, "n_features_in_", None)
    layout = Layout("array", None, np.float64, width, rows.target, rows.missing_label)
    return rows.ordered_by_name(layout)
