"""Rows on disk for the measurements of docs/scaling.md, and fits on them in fresh processes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fewlabel import FewLabelClassifier, UnlabeledRows

FEATURES = [f"x{k}" for k in range(20)]
FILE_ROWS = 250_000
LABELED = 1_000
CLASSES = 5


def blobs(n: int, part: int) -> tuple[Any, Any]:
    """Rows of 5 classes of 3 clusters each in 8 of 20 columns; 2 % of the labels are random."""
    world = np.random.default_rng(0)
    centres = world.normal(scale=1.7, size=(CLASSES, 3, 8))
    rng = np.random.default_rng([1, part])
    y = rng.integers(CLASSES, size=n)
    X = rng.standard_normal((n, len(FEATURES)), dtype=np.float32)
    X[:, :8] += centres[y, rng.integers(3, size=n)]
    noisy = rng.random(n) < 0.02
    return X, np.where(noisy, rng.integers(CLASSES, size=n), y)


def write(folder: Path, n: int, file_rows: int = FILE_ROWS) -> None:
    """The unlabelled rows as Parquet files, with the true label in a column of its own."""
    for part, start in enumerate(range(0, n, file_rows)):
        X, y = blobs(min(file_rows, n - start), part + 1)
        columns = {name: X[:, k] for k, name in enumerate(FEATURES)}
        pq.write_table(pa.table(columns | {"truth": y}), folder / f"{part:04d}.parquet")


def classifier(voters: list[str], **options: Any) -> FewLabelClassifier:
    """The classifier that is measured: no family is left out for its time."""
    return FewLabelClassifier(list(voters), random_state=0, n_jobs=1, time_budget=None, **options)


def labeled() -> tuple[pd.DataFrame, Any]:
    """The labelled rows."""
    X, y = blobs(LABELED, 0)
    return pd.DataFrame(X, columns=FEATURES), y


def fit_in_memory(folder: Path, voters: list[str]) -> dict[str, Any]:
    """A fit on all rows at once."""
    frame = pd.read_parquet(folder)
    X, target = _all_rows(frame)
    start, used = time.perf_counter(), time.process_time()
    clf = classifier(voters).fit(X, target)
    unlabeled = clf.transduction_[LABELED:]
    return _told(clf, start, used, float((unlabeled != frame["truth"].to_numpy()).mean()))


def _all_rows(frame: pd.DataFrame) -> tuple[pd.DataFrame, Any]:
    X, y = labeled()
    target = np.concatenate([y, np.full(len(frame), -1)])
    return pd.concat([X, frame[FEATURES]], ignore_index=True), target


def fit_out_of_core(folder: Path, voters: list[str], out: Path) -> dict[str, Any]:
    """A fit on the same rows in chunks, with the labels in a folder."""
    X, y = labeled()
    rows = UnlabeledRows(folder, out=out, scratch=out.parent, truth="truth")
    start, used = time.perf_counter(), time.process_time()
    clf = classifier(voters).fit(X, y, unlabeled=rows)
    _, sums = clf.label_sums()
    assert sums.truth is not None
    return _told(clf, start, used, sums.truth.wrong.sum() / sums.truth.n_known)


def compare(folder: Path, voters: list[str], rounds: int, out: Path) -> dict[str, Any]:
    """How far the votes of a fit out of core are from those of the same fit in memory."""
    frame = pd.read_parquet(folder)
    same = classifier(voters, max_iter=rounds).fit(*_all_rows(frame))
    X, y = labeled()
    rows = UnlabeledRows(folder, out=out, scratch=out.parent)
    classifier(voters, max_iter=rounds).fit(X, y, unlabeled=rows)
    found = pd.read_parquet(out).sort_values("row")
    votes = found[[f"vote_{label}" for label in same.classes_]].to_numpy()
    expected, truth = same.transduction_[LABELED:], frame["truth"].to_numpy()
    return {
        "equal_labels": float((found["label"].to_numpy() == expected).mean()),
        "largest_difference": float(np.abs(votes - same.transduction_proba_[LABELED:]).max()),
        "error": float((found["label"].to_numpy() != truth).mean()),
        "error_in_memory": float((expected != truth).mean()),
    }


def _told(clf: FewLabelClassifier, start: float, used: float, error: float) -> dict[str, Any]:
    return {
        "seconds": time.perf_counter() - start,
        "processor_seconds": time.process_time() - used,
        "rounds": clf.n_iter_,
        "error": float(error),
        "estimate": [clf.error_.value, clf.error_.low, clf.error_.high],
    }
