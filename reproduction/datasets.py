r"""The data sets of Section 6.1: load, split, mask labels.

A data set is looked for as ``NAME.npz`` (arrays ``X`` and ``y``) in the folder given by argument or
by the environment variable ``FEWLABEL_DATA``, then in the cache folder (``FEWLABEL_CACHE``, by
default ``~/.cache/fewlabel``), into which :func:`fetch_dataset` downloads it from OpenML.

The paper's own splits can be had exactly: :func:`paper_split`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewlabel._core.targets import UNLABELED

__all__ = [
    "BUNDLED",
    "PAPER_SETS",
    "Dataset",
    "DatasetInfo",
    "Split",
    "fetch_dataset",
    "load_dataset",
    "mask_labels",
    "missing_sets",
    "paper_split",
]


@dataclass(frozen=True)
class DatasetInfo:
    """One row of the paper's Table 1 and where the data come from."""

    title: str
    n_samples: int
    n_features: int
    n_classes: int
    n_labeled: int
    openml_id: int
    openml_name: str
    drop: tuple[str, ...] = ()
    checksum: str = ""
    note: str = ""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, features and classes."""
        return self.n_samples, self.n_features, self.n_classes


RECOMPUTED = "features recomputed"

PAPER_SETS: dict[str, DatasetInfo] = {
    "vowel": DatasetInfo(
        "Vowel", 990, 10, 11, 99, 307, "vowel",
        ("Train_or_Test", "Speaker_Number", "Sex"), "1e6cce8fe137e295",
    ),
    "protein": DatasetInfo(
        "Protein", 1080, 77, 8, 129, 40966, "MiceProtein",
        ("MouseID", "Genotype", "Treatment", "Behavior"), "a9df3a464270c62e",
        "missing values replaced by the column mean, as the paper's authors did",
    ),
    "dna": DatasetInfo("DNA", 3186, 180, 3, 31, 40670, "dna", (), "c98ea6fdc192e8eb"),
    "pageblocks": DatasetInfo(
        "PageBlocks", 5473, 10, 5, 1094, 30, "page-blocks", (), "136c170ac24d634e"
    ),
    "isolet": DatasetInfo("Isolet", 7797, 617, 26, 389, 300, "isolet", (), "5ae6c5430edf85c6"),
    "har": DatasetInfo("HAR", 10299, 561, 6, 102, 1478, "har"),
    "pendigits": DatasetInfo(
        "Pendigits", 10992, 16, 10, 109, 32, "pendigits", (), "2c0315318a4e5da3"
    ),
    "letter": DatasetInfo("Letter", 20000, 16, 26, 400, 6, "letter", (), "84d495f138f3a6d1"),
    "fashion": DatasetInfo(
        "Fashion", 70000, 784, 10, 175, 40996, "Fashion-MNIST", (), "f3f837a34b7cf3b4"
    ),
    "mnist": DatasetInfo("MNIST", 70000, 784, 10, 175, 554, "mnist_784", (), "409118efb571f49d"),
    "sensit": DatasetInfo("SensIT", 98528, 100, 3, 49, 1593, "SensIT-Vehicle-Combined"),
}  # fmt: skip
"""The eleven of Table 1 by the name of their file, in the paper's order.

``checksum`` is the start of the SHA-256 of the .npz file on which the committed results were
computed; a file with another one is used too, but :attr:`Dataset.verified` says so.
"""

HAR_RECOMPUTED = "har_recomputed"

_HAR_RECOMPUTED = DatasetInfo("HAR", 10299, 561, 6, 102, 0, "", (), "f882576fe785c771", RECOMPUTED)

BUNDLED: dict[str, DatasetInfo] = {
    "digits": DatasetInfo("Digits", 1797, 64, 10, 50, 0, ""),
    "iris": DatasetInfo("Iris", 150, 4, 3, 15, 0, ""),
    "wine": DatasetInfo("Wine", 178, 13, 3, 18, 0, ""),
    "breast_cancer": DatasetInfo("Breast cancer", 569, 30, 2, 20, 0, ""),
}
"""Data sets that scikit-learn brings along: no folder and no network needed."""


@dataclass(frozen=True)
class Dataset:
    """A loaded data set.

    Attributes
    ----------
    name : str
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of int64 of shape (n_samples,), class codes 0..K-1
    info : DatasetInfo
        What the paper's Table 1 says about it (for bundled sets: their size).
    source : str
        File or OpenML address.
    checksum : str
        First 16 hex digits of the SHA-256 of the file; empty for bundled sets.
    """

    name: str
    X: NDArray[Any]
    y: NDArray[np.int64]
    info: DatasetInfo
    source: str
    checksum: str = ""

    @property
    def verified(self) -> bool:
        """Whether this is, byte for byte, the file that the committed results used."""
        return bool(self.info.checksum) and self.checksum == self.info.checksum

    @property
    def note(self) -> str:
        """What must be said wherever a figure for this data set is shown."""
        return self.info.note


@dataclass(frozen=True)
class Split:
    """Row numbers of the labelled, the unlabelled and the (perhaps empty) test part."""

    labeled: NDArray[np.intp]
    unlabeled: NDArray[np.intp]
    test: NDArray[np.intp]


def load_dataset(name: str, data_dir: str | os.PathLike[str] | None = None) -> Dataset:
    """Load a data set of the paper's Table 1, or one that scikit-learn brings along.

    Parameters
    ----------
    name : str
        A key of ``PAPER_SETS`` or ``BUNDLED``, or "har_recomputed": the genuine windows and labels
        of HAR with the 561 features computed anew (its ``note`` says so; only from a folder).
    data_dir : path, optional
        Folder with ``NAME.npz``. By default the environment variable ``FEWLABEL_DATA``.

    Returns
    -------
    dataset : Dataset
        Rows in the order of the source, missing values replaced by the mean of their column.

    Examples
    --------
    >>> load_dataset("iris").X.shape
    (150, 4)
    """
    if name in BUNDLED:
        return _load_bundled(name)
    if name not in (*PAPER_SETS, HAR_RECOMPUTED):
        known = ", ".join([*PAPER_SETS, HAR_RECOMPUTED, *BUNDLED])
        raise ValueError(f"The 'name' parameter must be one of {known}. Got {name!r} instead.")
    folders = _folders(data_dir)
    for folder in folders:
        if (path := folder / f"{name}.npz").is_file():
            return _load_file(path, folders)
    raise FileNotFoundError(f"The data set {name!r} was not found. {_how_to_supply(name, folders)}")


def missing_sets(names: Iterable[str], data_dir: str | os.PathLike[str] | None = None) -> list[str]:
    """Names of the sets that :func:`load_dataset` would not find."""
    folders = _folders(data_dir)
    return [
        name
        for name in dict.fromkeys(names)
        if name not in BUNDLED and not any((f / f"{name}.npz").is_file() for f in folders)
    ]


def fetch_dataset(name: str) -> Path:
    """Download a set of ``PAPER_SETS`` from OpenML into the cache folder; return its path."""
    from reproduction.openml import fetch

    return fetch(PAPER_SETS[name], cache_dir() / f"{name}.npz")


def cache_dir() -> Path:
    """Folder into which downloads go."""
    named = os.environ.get("FEWLABEL_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "fewlabel"


def _folders(data_dir: str | os.PathLike[str] | None) -> list[Path]:
    given = data_dir or os.environ.get("FEWLABEL_DATA")
    if not given:
        return [cache_dir()]
    if not Path(given).is_dir():
        raise FileNotFoundError(f"The data folder {os.fspath(given)!r} does not exist.")
    return [Path(given), cache_dir()]


def _how_to_supply(name: str, folders: list[Path]) -> str:
    info = PAPER_SETS.get(name, _HAR_RECOMPUTED)
    message = (
        f"Put a file {name}.npz into {' or '.join(map(str, folders))}, with X of shape "
        f"({info.n_samples}, {info.n_features}) and y holding the class codes "
        f"0..{info.n_classes - 1}, or name its folder by data_dir or FEWLABEL_DATA"
    )
    if name == HAR_RECOMPUTED:
        return f"{message}. The published features are the data set 'har'."
    if any((folder / f"{name}_recomputed.npz").is_file() for folder in folders):
        message += f" (a folder has {name}_recomputed: ask for it by that name)"
    return (
        f"{message}, or fetch it from OpenML ({info.openml_name}, number {info.openml_id}): "
        f"python -m reproduction table1 --sets {name} --fetch."
    )


def _load_bundled(name: str) -> Dataset:
    import sklearn.datasets

    bunch = getattr(sklearn.datasets, f"load_{name}")()
    return Dataset(name, bunch.data, bunch.target.astype(np.int64), BUNDLED[name], "scikit-learn")


def _load_file(path: Path, folders: list[Path]) -> Dataset:
    name = path.stem
    info = PAPER_SETS.get(name, _HAR_RECOMPUTED)
    arrays = _read_arrays(path, folders)
    if missing := {"X", "y"} - set(arrays):
        raise ValueError(f"{path} must hold the arrays X and y; it lacks {sorted(missing)}.")
    X, y = arrays["X"], arrays["y"].astype(np.int64)
    if X.ndim != 2 or y.shape != (len(X),):
        raise ValueError(
            f"{path} must hold X of shape (n_samples, n_features) and y of shape (n_samples,). "
            f"Got {X.shape} and {y.shape} instead."
        )
    return Dataset(name, _fill_missing(X), y, info, str(path), _sha256(path))


def _read_arrays(path: Path, folders: list[Path]) -> dict[str, NDArray[Any]]:
    try:
        # Opened here, since np.load leaves a damaged archive open.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in ("X", "y") if name in arrays.files}
    except (OSError, MemoryError):  # the file may be sound
        raise
    except Exception as error:  # a damaged file raises BadZipFile, EOFError, zlib.error and more
        raise ValueError(
            f"{path} is damaged or no .npz file ({error}). Remove or replace it. "
            f"{_how_to_supply(path.stem, folders)}"
        ) from error


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _fill_missing(X: NDArray[Any]) -> NDArray[Any]:
    if X.dtype.kind != "f" or not (missing := np.isnan(X)).any():
        return X
    # Over all rows, labelled or not: no label is used.
    means = np.nanmean(X, axis=0, keepdims=True, dtype=np.float64)
    return np.where(missing, means, X).astype(X.dtype)


def paper_split(
    y: ArrayLike,
    n_labeled: int,
    trial: int = 0,
    *,
    seed: int | None = None,
    stratify: bool = False,
    n_test: int = 0,
) -> Split:
    """Split rows at random into a labelled and an unlabelled part, as the paper does.

    Trial n of the paper is ``train_test_split(X, y, train_size=l, random_state=10 * n)``: plain,
    not stratified, so that a class may be missing from the labelled part.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Class codes (used to stratify only).
    n_labeled : int
        Number of labelled rows.
    trial : int, default=0
        The paper's trials are 0..19.
    seed : int, optional
        Another seed than the paper's ``10 * trial``.
    stratify : bool, default=False
        Give every class its share of the labelled rows. Makes small sets look better.
    n_test : int, default=0
        Rows taken from the end of the unlabelled part as an extra test part, so that the labelled
        part stays that of the paper.

    Examples
    --------
    >>> split = paper_split([0, 1] * 10, 4)
    >>> len(split.labeled), len(split.unlabeled), len(split.test)
    (4, 16, 0)
    """
    from sklearn.model_selection import train_test_split

    codes = np.asarray(y)
    labeled, rest = train_test_split(
        np.arange(len(codes)),
        train_size=n_labeled,
        random_state=10 * trial if seed is None else seed,
        stratify=codes if stratify else None,
    )
    if not 0 <= n_test < len(rest):
        raise ValueError(f"n_test must leave an unlabelled row of {len(rest)}. Got {n_test}.")
    cut = len(rest) - n_test
    return Split(labeled, rest[:cut], rest[cut:])


def mask_labels(y: ArrayLike, labeled: NDArray[np.intp] | list[int]) -> NDArray[np.int64]:
    """Return a copy of ``y`` that keeps the labels of the rows ``labeled`` and has -1 elsewhere.

    Examples
    --------
    >>> mask_labels([0, 1, 2], [1]).tolist()
    [-1, 1, -1]
    """
    codes = np.asarray(y, dtype=np.int64)
    masked = np.full_like(codes, UNLABELED)
    masked[labeled] = codes[labeled]
    return masked
