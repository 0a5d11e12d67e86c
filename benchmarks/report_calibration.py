"""Does the report promise too much? ``python -m benchmarks.report_calibration --write FILE``

The report bounds the error among selected rows, and among all, with the first classifier's votes in
place of P(Y|x), raised to the least power that held-out labels demand. This compares it, on many
random splits, for the forest and for the mixed vote, with votes as they are and with the most
likely power: how many rows are selected, what the bounds say, what the true errors are, and in
which share of the splits they exceed the estimated bounds.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification

from benchmarks import _page
from fewlabel import (
    FewLabelClassifier,
    SelfLearningClassifier,
    conditional_error_bound,
    optimal_thresholds,
    risk_bound,
)
from fewlabel.assess.calibration import calibrated, calibration_power, least_power
from fewlabel.assess.transduction_bounds import judged_votes

NOTE = """
The first classifier: the forest of `SelfLearningClassifier` (200 trees) or the mixed vote of
`FewLabelClassifier`. Random labelled rows (about 3 % of the rows; wine: 12 %), the rest unlabelled.
*Selected* are the unlabelled rows whose first vote reaches the threshold that minimises the bound;
they keep the first vote's label, all others get that of the vote after self-learning.
*Too small* is the share of splits in which the true error exceeds the bound: it is an estimate, and
this is how often it misleads. The report uses "least power".
"""


def data_sets() -> dict[str, tuple[Any, Any, float]]:
    """Rows, labels and the labelled share of each data set."""
    five = make_classification(
        2000, 20, n_informative=8, n_classes=5, class_sep=1.6, random_state=0
    )
    three = make_classification(
        2000, 20, n_informative=8, n_classes=3, class_sep=1.5, flip_y=0.02, random_state=0
    )
    return {
        "digits": (*load_digits(return_X_y=True), 0.03),
        "breast cancer": (*load_breast_cancer(return_X_y=True), 0.03),
        "wine": (*load_wine(return_X_y=True), 0.12),
        "synthetic, 5 classes": (*five, 0.03),
        "synthetic, 3 classes": (*three, 0.03),
    }


LEARNERS = {"forest": SelfLearningClassifier, "mixed vote": FewLabelClassifier}
POWERS: dict[str, Callable[[Any, Any], float]] = {
    "as they are": lambda held_out, codes: 1.0,
    "least power": least_power,
    "most likely power": calibration_power,
}


def one_split(
    learner: str, X: Any, y: Any, share: float, seed: int
) -> dict[str, tuple[float, ...]]:
    """Selected share, bounds and true errors for each way to calibrate."""
    given = np.random.default_rng(seed).random(len(y)) < share
    target = np.where(given, y, -1)
    clf = LEARNERS[learner](n_jobs=2, random_state=seed).fit(X, target)
    codes = np.searchsorted(clf.classes_, y)
    judged, held_out = judged_votes(clf, X[given], codes[given])
    first, final = clf.initial_votes_, clf.transduction_proba_[~given]
    answer = {}
    for name, power in POWERS.items():
        proba = calibrated(first, power(held_out, judged))
        thresholds = optimal_thresholds(first, proba)
        selected = first.max(axis=1) >= thresholds[first.argmax(axis=1)]
        votes = np.where(selected[:, None], first, final)
        wrong = clf.classes_[votes.argmax(axis=1)] != y[~given]
        answer[name] = (
            float(selected.mean()),
            conditional_error_bound(first, proba, thresholds=thresholds),
            float(wrong[selected].mean()),
            risk_bound(votes, proba, tight=True),
            float(wrong.mean()),
        )
    return answer


def measure(n_splits: int) -> list[dict[str, object]]:
    """Lines of the table."""
    lines = []
    for learner, (data, (X, y, share)) in itertools.product(LEARNERS, data_sets().items()):
        splits = [one_split(learner, X, y, share, seed) for seed in range(n_splits)]
        for name in POWERS:
            values = np.array([split[name] for split in splits])
            selected, bound, error, bound_all, error_all = values.mean(axis=0)
            lines.append(
                {
                    "learner": learner,
                    "data": data,
                    "votes": name,
                    "selected": f"{selected:.0%}",
                    "bound": f"{bound:.3f}",
                    "true error": f"{error:.3f}",
                    "too small": f"{(values[:, 2] > values[:, 1]).mean():.0%}",
                    "bound, all rows": f"{bound_all:.3f}",
                    "true error, all rows": f"{error_all:.3f}",
                    "too small, all rows": f"{(values[:, 4] > values[:, 3]).mean():.0%}",
                }
            )
            print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.report_calibration", description=__doc__
    )
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--write", type=Path, help="also write the page to this file")
    options = parser.parse_args()
    table = _page.table(measure(options.splits))
    if options.write:
        _page.write(
            options.write,
            "# Does the report promise too much?\n\n"
            f"Made by `make report-calibration`: {options.splits} splits ({_page.machine()}).\n"
            f"{NOTE}\n{table}\n",
        )


if __name__ == "__main__":
    main()
