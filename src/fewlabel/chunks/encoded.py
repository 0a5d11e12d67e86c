"""Chunks of a table with texts, categories and dates as numbers, by an encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewlabel._core.scikit import n_rows
from fewlabel.encoding.columns import MOSTLY_IN_PART
from fewlabel.encoding.encoder import TableEncoder


@dataclass(frozen=True)
class _LayoutOfNumbers:
    """What layouts that make numbers of chunks have in common."""

    layout: Any

    @property
    def target(self) -> str | None:
        """Column whose missing values mark unlabelled rows."""
        target: str | None = getattr(self.layout, "target", None)
        return target

    def truth_of(self, raw: Any, rows: NDArray[np.intp]) -> Any:
        """True labels of the unlabelled rows, None if they are not known."""
        truth = getattr(self.layout, "truth_of", None)
        return None if truth is None else truth(raw, rows)


@dataclass(frozen=True)
class EncodedLayout(_LayoutOfNumbers):
    """Brings chunks into the layout of the labelled rows, and encodes them.

    Attributes
    ----------
    layout : object with ``conform``
        As the labelled rows were given.
    encoder : TableEncoder
        Fitted on the labelled rows and a sample of the others.
    """

    encoder: TableEncoder

    def conform(self, raw: Any) -> tuple[Any, NDArray[np.intp]]:
        """The unlabelled rows of a chunk as numbers, and their positions in the chunk."""
        X, rows = self.layout.conform(raw)
        if n_rows(X) == 0:  # transformers refuse to transform nothing
            width = len(self.encoder.get_feature_names_out())
            return np.empty((0, width), dtype=np.float32), rows
        return self.encoder.encode(X, readable=MOSTLY_IN_PART)[0], rows


@dataclass(frozen=True)
class NumberLayout(_LayoutOfNumbers):
    """Chunks as matrices of numbers, whatever they were."""

    def conform(self, raw: Any) -> tuple[Any, NDArray[np.intp]]:
        """The unlabelled rows of a chunk as a matrix, and their positions in the chunk."""
        X, rows = self.layout.conform(raw)
        if hasattr(X, "dtype") and X.dtype.kind == "f":
            return X, rows
        # As in memory: frames of single precision stay so. A machine's vote can turn on a rounding.
        kinds = list(getattr(X, "dtypes", ()))
        single = bool(kinds) and all(kind == np.float32 for kind in kinds)
        return np.asarray(X, dtype=np.float32 if single else np.float64), rows
