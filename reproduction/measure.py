"""What happens inside one trial: load, split, fit, score."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduction.datasets import Dataset, Split, load_dataset, mask_labels, paper_split
from reproduction.methods import method_named, scaled
from reproduction.spec import Trial

DESCRIBE = "describe"
"""The "method" whose records hold a row of Table 1."""

_SUBSAMPLE_SEED = 0  # one subsample for all trials, as in the paper's Figure 1


def measure(trial: Trial, data_dir: Path | None = None) -> dict[str, Any]:
    """Run one trial and return its scores; everything in the answer can be written as JSON."""
    dataset = load_dataset(trial.dataset, data_dir)
    about = {
        "checksum": dataset.checksum,
        "verified": dataset.verified,
        "note": dataset.note,
    }
    if trial.method == DESCRIBE:
        return {"data": about, "scores": describe(dataset)}
    X, y = _rows(dataset, trial)
    n_labeled = trial.n_labeled or dataset.info.n_labeled
    split = paper_split(y, n_labeled, seed=trial.seed, stratify=trial.stratify, n_test=trial.n_test)
    return {"data": about, **_fit_and_score(trial, X, y, split)}


def describe(dataset: Dataset) -> dict[str, Any]:
    """A row of Table 1, counted in the data."""
    l = dataset.info.n_labeled  # noqa: E741 - the paper's letter
    counts = np.bincount(dataset.y)
    return {
        "l": l,
        "u": len(dataset.y) - l,
        "d": dataset.X.shape[1],
        "K": int((counts > 0).sum()),
        "class_counts": counts.tolist(),
    }


def _rows(dataset: Dataset, trial: Trial) -> tuple[NDArray[Any], NDArray[np.int64]]:
    if trial.n_rows is None or trial.n_rows >= len(dataset.y):
        return dataset.X, dataset.y
    rows = paper_split(dataset.y, trial.n_rows, seed=_SUBSAMPLE_SEED).labeled
    return dataset.X[rows], dataset.y[rows]


def label_proba_setting(trial: Trial, y: NDArray[np.int64], split: Split) -> Any:
    """What the self-learner's ``label_proba`` is set to: a name, or the true labels."""
    if trial.label_proba != "oracle":
        return trial.label_proba
    # Columns are the classes of the labelled part. A row of a class that is not among them cannot
    # be given its true distribution; every known class is equally wrong for it.
    classes = np.unique(y[split.labeled])
    rows = np.concatenate([split.labeled, split.unlabeled])
    truth = (y[rows][:, None] == classes).astype(np.float64)
    truth[truth.sum(axis=1) == 0] = 1 / len(classes)
    return truth


def _fit_and_score(
    trial: Trial, X: NDArray[Any], y: NDArray[np.int64], split: Split
) -> dict[str, Any]:
    method = method_named(trial.method)
    features = scaled(X, method.scaling, split.test)
    model = method.make(trial, dict(trial.params), label_proba_setting(trial, y, split))
    # The test part must not be seen in training: only labelled and unlabelled rows go in.
    rows = split.labeled if method.supervised else np.concatenate([split.labeled, split.unlabeled])
    train, target = features[rows], mask_labels(y, split.labeled)[rows]
    start, cpu = time.perf_counter(), time.process_time()
    model.fit(train, target)
    fitted = time.perf_counter()
    if hasattr(model, "transduction_"):
        predicted = np.asarray(model.transduction_)[len(split.labeled) :]
    else:
        predicted = model.predict(features[split.unlabeled])
    seconds = {
        "fit": fitted - start,
        "predict": time.perf_counter() - fitted,
        "cpu": time.process_time() - cpu,
    }
    truth = y[split.unlabeled]
    scores: dict[str, Any] = {
        "accuracy": _accuracy(predicted, truth),
        "missing_classes": len(np.unique(y)) - len(np.unique(y[split.labeled])),
    }
    if len(split.test):
        scores["test_accuracy"] = _accuracy(model.predict(features[split.test]), y[split.test])
    if hasattr(model, "n_iter_"):
        scores["n_iter"] = int(np.max(model.n_iter_))
    answer = {"scores": scores, "seconds": {k: round(v, 3) for k, v in seconds.items()}}
    if trial.method == "MSLA":
        from reproduction.observe import observe

        answer["observed"] = observe(model, truth)
    return answer


def _accuracy(predicted: NDArray[Any], truth: NDArray[np.int64]) -> float:
    return round(float(np.mean(predicted == truth)), 6)
