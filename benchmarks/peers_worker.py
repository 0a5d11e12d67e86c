"""Fits one entrant after another on files, for :mod:`benchmarks.peers`.

It runs as a script in the entrant's own environment, which may have neither fewlabel nor anything
else of this project. Each line of standard input is a task ``{"entrant", "data", "labels", "seed",
"limit"}``; ``data`` is an ``npz`` with standardised ``X`` and ``y`` (-1: unlabelled), and the
predicted codes of the unlabelled rows are written to ``labels``. One line of JSON answers. A fit of
more than ``limit`` processor seconds ends the process by ``SIGPROF``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

Entrant = Callable[[Any, Any, int], Any]
"""From rows, codes with -1 for unlabelled rows, and a seed to the codes of the unlabelled rows."""


def _semi_supervised(build: Callable[[int], Any]) -> Entrant:
    """An estimator that takes unlabelled rows as -1."""

    def fit(X: Any, y: Any, seed: int) -> Any:
        return build(seed).fit(X, y).predict(X[y == -1])

    return fit


def _supervised(build: Callable[[int], Any]) -> Entrant:
    """An estimator that learns from the labelled rows alone."""

    def fit(X: Any, y: Any, seed: int) -> Any:
        return build(seed).fit(X[y != -1], y[y != -1]).predict(X[y == -1])

    return fit


def _mixed_vote(seed: int) -> Any:
    from fewlabel import FewLabelClassifier

    return FewLabelClassifier(random_state=seed)


def _self_learning_forest(seed: int) -> Any:
    from fewlabel import SelfLearningClassifier

    return SelfLearningClassifier(random_state=seed)


def _random_forest(seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(random_state=seed)


def _extra_trees(seed: int) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier

    return ExtraTreesClassifier(random_state=seed)


def _boosting(seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=seed)


def _logistic(seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=2_000, random_state=seed)


def _svm(seed: int) -> Any:
    from sklearn.svm import SVC

    return SVC(random_state=seed)


def _self_training_forest(seed: int) -> Any:
    from sklearn.semi_supervised import SelfTrainingClassifier

    return SelfTrainingClassifier(_random_forest(seed))


def _self_training_svm(seed: int) -> Any:
    from sklearn.semi_supervised import SelfTrainingClassifier
    from sklearn.svm import SVC

    return SelfTrainingClassifier(SVC(probability=True, random_state=seed))


def _label_spreading(seed: int) -> Any:
    from sklearn.semi_supervised import LabelSpreading

    return LabelSpreading()


def _label_propagation(seed: int) -> Any:
    from sklearn.semi_supervised import LabelPropagation

    return LabelPropagation()


def _tri_training(seed: int) -> Any:
    from sslearn.wrapper import TriTraining

    return TriTraining(random_state=seed)


def _co_forest(seed: int) -> Any:
    from sslearn.wrapper import CoForest

    return CoForest(random_state=seed)


def _democratic(seed: int) -> Any:
    from sslearn.wrapper import DemocraticCoLearning

    return DemocraticCoLearning(random_state=seed)


def _tabpfn(seed: int) -> Any:
    """TabPFN v1; the environment variable names the folder that holds its weights."""
    from tabpfn import TabPFNClassifier

    folder = os.environ["FEWLABEL_TABPFN"]
    return TabPFNClassifier(device="cpu", base_path=folder, seed=seed)


def _assemble(X: Any, y: Any, seed: int) -> Any:
    from LAMDA_SSL.Algorithm.Classification.Assemble import Assemble

    np.random.seed(seed)  # noqa: NPY002 - the only way to seed it
    model = Assemble()
    model.fit(X=X[y != -1], y=y[y != -1], unlabeled_X=X[y == -1])
    return model.predict(X=X[y == -1])


def _autogluon(X: Any, y: Any, seed: int) -> Any:
    import tempfile

    import pandas as pd
    from autogluon.tabular import TabularPredictor

    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    train, rest = frame[y != -1].assign(label=y[y != -1]), frame[y == -1]
    with tempfile.TemporaryDirectory() as folder:
        predictor = TabularPredictor("label", path=folder, verbosity=0, problem_type="multiclass")
        limits = {"time_limit": 25, "num_cpus": 1}
        predictor.fit(train, **limits)
        predictor, proba = predictor.fit_pseudolabel(rest, return_pred_prob=True, **limits)
        return proba.idxmax(axis=1).to_numpy()


ENTRANTS: dict[str, Entrant] = {
    "mixed vote": _semi_supervised(_mixed_vote),
    "self-learning forest": _semi_supervised(_self_learning_forest),
    "self-training, forest": _semi_supervised(_self_training_forest),
    "self-training, SVM": _semi_supervised(_self_training_svm),
    "label spreading": _semi_supervised(_label_spreading),
    "label propagation": _semi_supervised(_label_propagation),
    "random forest": _supervised(_random_forest),
    "extra trees": _supervised(_extra_trees),
    "gradient boosting": _supervised(_boosting),
    "logistic regression": _supervised(_logistic),
    "SVM": _supervised(_svm),
    "tri-training": _semi_supervised(_tri_training),
    "co-forest": _semi_supervised(_co_forest),
    "democratic co-learning": _semi_supervised(_democratic),
    "TabPFN v1": _supervised(_tabpfn),
    "Assemble (LAMDA-SSL)": _assemble,
    "AutoGluon, pseudo-labels": _autogluon,
}


def answer(task: dict[str, Any]) -> dict[str, Any]:
    """Fit and predict; the codes go to a file, processor seconds or the error are returned."""
    with np.load(task["data"]) as data:
        X, y = data["X"], data["y"]
    start = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, task["limit"])
    try:
        labels = ENTRANTS[task["entrant"]](X, y, task["seed"])
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    seconds = time.process_time() - start
    np.save(task["labels"], np.asarray(labels, dtype=np.int64))
    return {"seconds": round(seconds, 3)}


def main() -> None:
    """Answer each line of standard input; whatever an entrant prints goes to standard error."""
    warnings.simplefilter("ignore")
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        out.write(json.dumps(answer(json.loads(line))) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
