"""The demonstration: handwritten digits with a few labels, checked against the truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewlabel.ensemble.few_label import FewLabelClassifier
from fewlabel.report import Report
from fewlabel.report.words import (
    about,
    accepted_words,
    error_words,
    goal,
    percent,
    proof_words,
    truth_words,
    upper_limit,
)


@dataclass(frozen=True)
class Demo:
    """A fit on scikit-learn's digits, and the truth."""

    clf: FewLabelClassifier
    truth: NDArray[Any]

    def voters(self) -> list[list[str]]:
        """Lines of a table: the families, the heaviest first."""
        return [
            [
                record.title,
                f"{record.weight:.1%}",
                "–" if np.isnan(record.accuracy) else f"{record.accuracy:.1%}",
            ]
            for record in sorted(self.clf.voters_, key=lambda record: -record.weight)
        ]

    def report(self) -> Report:
        """The report, with the truth beside the estimates."""
        title = f"Handwritten digits from {int((self.clf.labeled_iter_ == 0).sum())} labels"
        return self.clf.report(y_true=self.truth, title=title)

    def rounds(self, summary: dict[str, Any]) -> list[list[str]]:
        """Lines of a table: what was pseudo-labelled in each round, and how much of it is wrong."""
        return [
            [
                str(entry["round"]),
                f"{entry['n_left']:,}",
                f"{entry['n_selected']:,}",
                about(entry["estimated_error"]),
                percent(entry["true_error"]),
                f"{entry['threshold_low']:.2f}–{entry['threshold_high']:.2f}",
            ]
            for entry in summary["rounds"]
        ]

    def lines(self, summary: dict[str, Any]) -> list[str]:
        """What came of it: the promise, and the truth that a user would not have."""
        accepted, truth = summary["promise"]["accepted"], summary["truth"]
        asked = f"{goal(accepted['max_error'])} was asked for"
        return [
            error_words(summary),
            accepted_words(accepted, asked, upper_limit(summary)),
            proof_words(accepted),
            truth_words(summary),
            f"by the first vote alone {percent(truth['initial_error'])} would be wrong",
            *(f"! {text}" for text in summary["broken"]),
        ]


def run_demo(
    labels: int, seed: int, jobs: int, on_round: Callable[[dict[str, Any]], None] | None = None
) -> Demo:
    """Self-learn with this many labels of each digit."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    given = np.concatenate([rng.choice(np.flatnonzero(y == c), labels, False) for c in range(10)])
    target = np.full(len(y), -1)
    target[given] = y[given]
    clf = FewLabelClassifier(
        labels="per class", random_state=seed, n_jobs=jobs, callback=on_round
    ).fit(X, target)
    return Demo(clf, y)
