"""The demonstration: handwritten digits with a few labels, checked against the truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewlabel.ensemble.few_label import FewLabelClassifier


@dataclass(frozen=True)
class Demo:
    """A fit on scikit-learn's digits, and the truth."""

    clf: FewLabelClassifier
    X: NDArray[Any]
    target: NDArray[Any]
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

    def rounds(self) -> list[list[str]]:
        """Lines of a table: what was pseudo-labelled in each round, and how much of it is right."""
        lines = []
        # The labels that the rounds gave, not those of the vote that learned from them.
        rows = np.flatnonzero(self.clf.labeled_iter_ > 0)
        right_label = self.clf.pseudo_labels_ == self.truth[rows]
        for record in self.clf.history_:
            right = right_label[self.clf.labeled_iter_[rows] == record["iteration"]].mean()
            low, high = min(record["thresholds"]), max(record["thresholds"])
            lines.append(
                [
                    str(record["iteration"]),
                    f"{record['n_unlabeled']:,}",
                    f"{record['n_selected']:,}",
                    f"{right:.1%}",
                    f"{low:.2f}–{high:.2f}",
                ]
            )
        return lines


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
    clf = FewLabelClassifier(random_state=seed, n_jobs=jobs, callback=on_round).fit(X, target)
    return Demo(clf, X, target, y)
