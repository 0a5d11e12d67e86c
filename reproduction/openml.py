"""Fetch a data set of the paper from OpenML, by scikit-learn, which verifies the checksum."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fewlabel._core.atomic import replaced

if TYPE_CHECKING:
    from reproduction.datasets import DatasetInfo


class DownloadError(OSError):
    """A data set could not be fetched."""


def fetch(info: DatasetInfo, target: Path) -> Path:
    """Download a data set and write it to ``target`` as .npz with the arrays X and y.

    Parameters
    ----------
    info : DatasetInfo
        The data set; a download of another name or shape is refused.
    target : Path
        Written when everything is there, not before.
    """
    from sklearn.datasets import fetch_openml

    with tempfile.TemporaryDirectory() as folder:
        try:
            found = fetch_openml(
                data_id=info.openml_id, as_frame="auto", parser="auto", data_home=folder
            )
        except (OSError, ValueError) as error:
            raise DownloadError(f"OpenML {info.openml_id} could not be fetched: {error}") from error
    if found.details["name"].lower() != info.openml_name.lower():
        raise DownloadError(f"OpenML {info.openml_id} is {found.details['name']!r} now")
    X, y = _features(found, info), _codes(found.target)
    shape, expected = (*X.shape, len(np.unique(y))), info.shape
    if shape != expected:
        raise DownloadError(
            f"OpenML's {info.openml_name} has (rows, columns, classes) {shape}, the paper's "
            f"Table 1 {expected}: it is another version"
        )
    with replaced(target) as part, part.open("wb") as file:
        np.savez_compressed(file, X=X, y=y)
    return target


def _features(found: Any, info: DatasetInfo) -> NDArray[np.float32]:
    if found.frame is None:  # a sparse file, without columns to drop
        return np.asarray(found.data.toarray(), dtype=np.float32)
    import pandas as pd

    columns = found.data.drop(columns=list(info.drop), errors="ignore")
    # Numbers that are declared as categories come as text.
    numbers = columns.apply(lambda column: pd.to_numeric(column.astype(object)))
    return numbers.to_numpy(dtype=np.float32)


def _codes(labels: Any) -> NDArray[np.int64]:
    """Class codes in the order of the values, by number if they all are numbers."""
    values: NDArray[Any] = np.asarray(labels).astype(str)
    with suppress(ValueError):
        values = values.astype(float)
    return np.unique(values, return_inverse=True)[1].astype(np.int64)
