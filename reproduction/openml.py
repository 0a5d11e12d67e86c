"""Fetch one data set from OpenML: description, download with checksum and progress, ARFF.

scikit-learn's ``fetch_openml`` shows no progress and cannot be pointed at a mirror; what is needed
here is small: numeric columns and one class column, dense or sparse.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewlabel._core.atomic import replaced

SERVER = "https://api.openml.org"
"""Where the descriptions are; the environment variable FEWLABEL_OPENML names a mirror."""

Progress = Callable[[int, int | None], None]
"""Called with the bytes read so far and, if the server says, the total."""

_NEEDED = ("name", "url", "md5_checksum", "default_target_attribute")
_TIMEOUT_SECONDS = 60
_BLOCK_BYTES = 1 << 18
_ATTRIBUTE = re.compile(r"@attribute\s+('(?:[^'\\]|\\.)*'|\"[^\"]*\"|\S+)\s+(.+)", re.IGNORECASE)


class DownloadError(OSError):
    """A data set could not be fetched; the message says what to do instead."""


def describe(data_id: int, server: str | None = None) -> dict[str, Any]:
    """Return OpenML's description of a data set (name, address, MD5, target column)."""
    base = (server or os.environ.get("FEWLABEL_OPENML") or SERVER).rstrip("/")
    address = f"{base}/api/v1/json/data/{data_id}"
    try:
        with urllib.request.urlopen(address, timeout=_TIMEOUT_SECONDS) as answer:
            description: dict[str, Any] = dict(json.load(answer)["data_set_description"])
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
        raise DownloadError(f"no description at {address} ({error})") from error
    if missing := [field for field in _NEEDED if not isinstance(description.get(field), str)]:
        raise DownloadError(f"the description at {address} lacks {missing}")
    return description


def download(description: dict[str, Any], target: Path, progress: Progress | None = None) -> Path:
    """Download a description's file to ``target``; verify its MD5 before it gets that name."""
    with replaced(target) as part:
        digest = _stream(description["url"], part, progress)
        expected = description["md5_checksum"].lower()
        if digest != expected:
            raise DownloadError(
                f"the file at {description['url']} has MD5 {digest}, but OpenML lists {expected}: "
                f"the download is incomplete or the file was changed. Nothing was kept"
            )
    return target


def _stream(address: str, part: Path, progress: Progress | None) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    try:
        with (
            urllib.request.urlopen(address, timeout=_TIMEOUT_SECONDS) as answer,
            part.open("wb") as file,
        ):
            size = answer.headers.get("Content-Length")
            total, read = int(size) if size else None, 0
            while block := answer.read(_BLOCK_BYTES):
                file.write(block)
                digest.update(block)
                read += len(block)
                if progress:
                    progress(read, total)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise DownloadError(f"could not download {address} ({error})") from error
    return digest.hexdigest()


def read_arff(
    path: Path, target: str, drop: Iterable[str] = ()
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Read numeric columns and class codes from an ARFF file.

    Parameters
    ----------
    path : Path
    target : str
        Name of the class column. Its values, sorted (as numbers if they all are), get 0..K-1.
    drop : iterable of str
        Columns to leave out, as far as they are there.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features), float32, NaN where a value is missing
    y : ndarray of shape (n_samples,), int64
    """
    with path.open(encoding="utf-8", errors="replace") as file:
        names, nominal = _read_header(file)
        unwanted = {target, *drop}
        if target not in names:
            raise ValueError(f"{path} has no column {target!r}. It has {names}.")
        columns = [i for i, name in enumerate(names) if name not in unwanted]
        rows = (line for line in file if line.strip() and not line.startswith("%"))
        features, labels = _read_rows(rows, columns, names.index(target), nominal)
    return features, _codes(labels)


def _read_header(file: Iterable[str]) -> tuple[list[str], list[str | None]]:
    # Beside the names: the first declared value of each nominal column, which a sparse row omits.
    names: list[str] = []
    first_values: list[str | None] = []
    for line in file:
        text = line.strip()
        if text.lower().startswith("@data"):
            break
        if match := _ATTRIBUTE.match(text):
            names.append(_unquote(match[1]))
            kind = match[2].strip()
            first_values.append(
                _unquote(kind[1:].split(",")[0].rstrip("}")) if "{" in kind else None
            )
    return names, first_values


def _read_rows(
    rows: Iterator[str], columns: list[int], target: int, nominal: list[str | None]
) -> tuple[NDArray[np.float32], list[str]]:
    features: list[NDArray[np.float32]] = []
    labels: list[str] = []
    for row in rows:
        text = row.strip()
        if text.startswith("{"):
            # A sparse row leaves out zeros, and a nominal column's first value counts as zero.
            values = ["0"] * len(nominal)
            values[target] = nominal[target] or "0"
            for entry in filter(None, map(str.strip, text.strip("{}").split(","))):
                index, value = entry.split(maxsplit=1)
                values[int(index)] = value
        else:
            values = text.split(",")
        labels.append(_unquote(values[target]))
        features.append(np.array([_number(values[i]) for i in columns], dtype=np.float32))
    return np.vstack(features), labels


def _number(text: str) -> float:
    value = _unquote(text)
    return float("nan") if value == "?" else float(value)


def _unquote(text: str) -> str:
    stripped = text.strip()
    if len(stripped) > 1 and stripped[0] == stripped[-1] and stripped[0] in "'\"":
        return stripped[1:-1]
    return stripped


def _codes(labels: list[str]) -> NDArray[np.int64]:
    try:
        values: NDArray[Any] = np.array(labels, dtype=float)
    except ValueError:
        values = np.array(labels)
    return np.unique(values, return_inverse=True)[1].astype(np.int64)
