"""The estimators of the mislabelling matrix on real data: ``python -m benchmarks.mislabeling``.

Self-learning on the paper's splits; the true matrix is counted with the true labels of the
unlabelled rows. Writes the page that the choice of the default rests on.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _page
from fewlabel import (
    SelfLearningClassifier,
    bounds_table,
    cross_fitted_votes,
    held_out_counts,
    imperfect_proba,
    mislabeling_matrix,
)
from fewlabel.assess.held_out import can_be_judged
from fewlabel.assess.pseudo_label_errors import (
    DEFAULT_METHOD,
    METHODS,
    Evidence,
    estimate_mislabeling,
)
from fewlabel.self_learning.bounds_of_fit import gather
from reproduction.datasets import PAPER_SETS, load_dataset, mask_labels, paper_split

SETS = ["vowel", "protein", "dna", "pageblocks", "pendigits", "letter", "isolet"]
Array = np.ndarray[Any, Any]
Row = dict[str, Any]


def cbil(votes: Array, imperfect: Array, matrix: Array) -> float:
    """CBIL with the best λ, as the table of bounds has it, clipped to 1 for display."""
    table = bounds_table(votes, votes, imperfect_proba=imperfect, mislabeling=matrix)
    return min(1.0, next(bound.value for bound in table if bound.name == "CBIL"))


def matrices(raw: Evidence, calibrated: Evidence, cross_fitted: Array) -> dict[str, Array]:
    """Every estimate: held-out counts need no probabilities, the others come with both."""
    n_classes = raw.votes.shape[1]
    found = {
        "none (labels right)": np.eye(n_classes),
        "held-out, out-of-bag": estimate_mislabeling(raw, "held-out"),
        "held-out, cross-fitted": estimate_mislabeling(
            raw._replace(held_out=cross_fitted), "held-out"
        ),
    }
    for method in METHODS:
        if method != "held-out":
            found[f"{method}, raw votes"] = estimate_mislabeling(raw, method)
            found[f"{method}, calibrated"] = estimate_mislabeling(calibrated, method)
    return found


def one_split(name: str, trial: int, data_dir: str | None) -> tuple[list[Row], list[Row]]:
    data = load_dataset(name, data_dir)
    split = paper_split(data.y, PAPER_SETS[name].n_labeled, 10 * trial)
    y = mask_labels(data.y, split.labeled)
    classifier = SelfLearningClassifier(random_state=trial, n_jobs=1).fit(data.X, y)
    unlabeled = np.flatnonzero(y == -1)
    error = float(np.mean(classifier.transduction_[unlabeled] != data.y[unlabeled]))
    raw = gather(classifier, calibrate=False)
    calibrated = gather(classifier)
    labeled = np.flatnonzero(y != -1)
    cross_fitted = cross_fitted_votes(classifier.initial_estimator_, data.X[labeled], y[labeled])
    judged = can_be_judged(np.searchsorted(classifier.classes_, y[labeled]))  # as `gather` does
    # Rows of a class without a labelled row have no column in any matrix.
    known = np.isin(data.y[unlabeled], classifier.classes_)
    truth = np.searchsorted(classifier.classes_, data.y[unlabeled][known])
    votes = raw.votes[known]
    true = _true_matrix(truth, votes)
    share = np.bincount(truth, minlength=votes.shape[1]) / len(truth)
    oracle = cbil(votes, true[:, truth].T, true)
    estimates = [
        {
            "set": name,
            "method": method,
            "distance": float(np.abs(matrix - true).sum(axis=0) / 2 @ share),
            "cbil": abs(cbil(votes, matrix[:, truth].T, matrix) - oracle),
        }
        for method, matrix in matrices(raw, calibrated, cross_fitted[judged]).items()
    ]
    return estimates, [
        row
        for kind, evidence in (("raw", raw), ("calibrated", calibrated))
        for row in _seen_by_the_user(name, kind, evidence, error)
    ]


def _true_matrix(truth: Array, votes: Array) -> Array:
    counts = held_out_counts(truth, votes.argmax(axis=1), votes.shape[1])
    return mislabeling_matrix(counts, smoothing=1e-9)


def _seen_by_the_user(name: str, kind: str, evidence: Evidence, error: float) -> Iterator[Row]:
    matrix = estimate_mislabeling(evidence)
    for bound in bounds_table(
        evidence.votes,
        evidence.label_proba,
        imperfect_proba=imperfect_proba(evidence.label_proba, matrix),
        mislabeling=matrix,
        error=error,
    ):
        yield {
            "set": name,
            "probabilities": kind,
            "bound": bound.name,
            "excess": min(1.0, bound.value) - error,
            "below": bound.value < error,
            "informative": bound.applies and bound.value < 1,
        }


def _by_method(rows: list[Row]) -> list[Row]:
    """One row for each method: means over the splits, over all sets and of the worst."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    names = list(dict.fromkeys(row["set"] for row in rows))
    columns: dict[str, list[str]] = {"method": methods}
    for title, value in (("matrix", "distance"), ("CBIL", "cbil")):
        cells: dict[tuple[str, str], list[float]] = defaultdict(list)
        for row in rows:
            cells[row["method"], row["set"]].append(row[value])
        means = np.array([[np.mean(cells[m, name]) for name in names] for m in methods])
        columns[f"{title}: mean distance"] = [f"{mean:.3f}" for mean in means.mean(axis=1)]
        columns[f"{title}: largest of a set"] = [f"{most:.3f}" for most in means.max(axis=1)]
    return [dict(zip(columns, line)) for line in zip(*columns.values())]


def _best(table: list[Row], column: str) -> str:
    return str(min(table, key=lambda row: float(row[column]))["method"])


def _user_table(rows: list[Row]) -> list[Row]:
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["bound"], row["probabilities"]].append(row)
    return [
        {
            "bound": bound,
            "probabilities": kind,
            "mean excess": f"{np.mean([row['excess'] for row in group]):.3f}",
            "informative (< 1)": f"{sum(row['informative'] for row in group)} of {len(group)}",
            "below the true error": f"{sum(row['below'] for row in group)} of {len(group)}",
        }
        for (bound, kind), group in sorted(groups.items())
    ]


def page(sets: list[str], splits: int, data_dir: str | None) -> str:
    estimates: list[Row] = []
    seen: list[Row] = []
    for name in sets:
        start = time.perf_counter()
        for trial in range(splits):
            one, other = one_split(name, trial, data_dir)
            estimates += one
            seen += other
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    table = _by_method(estimates)
    return "\n".join(
        [
            "# Estimating the mislabelling matrix",
            "",
            f"Made by `make mislabeling`: self-learning on the paper's splits 0..{splits - 1} of "
            f"{', '.join(sets)} ({_page.machine()}). Ŷ is the label that the final classifier "
            "gives an unlabelled row; the true matrix is counted with the true labels of these "
            f"rows. Nearest on average: {_best(table, 'matrix: mean distance')} (matrix), "
            f"{_best(table, 'CBIL: mean distance')} (CBIL). The default is **{DEFAULT_METHOD}, "
            "calibrated**; it was chosen on five other splits, where it was the nearest by both.",
            "",
            "*matrix*: total variation between the columns, ½ Σ_i |p̂_ij − p_ij|, averaged over the "
            "true classes. *CBIL*: distance to CBIL with the true matrix, with P(Ŷ=i|x) = p_iy and "
            "the best λ; values above 1 count as 1.",
            "",
            _page.table(table),
            "",
            "## What a user sees",
            "",
            "`SelfLearningClassifier.bounds` with the default matrix: value (at most 1) minus the "
            "true error on the unlabelled rows, over all sets and splits. *Raw*: the votes of the "
            "initial forest stand for P(Y|x), as in the paper. *Calibrated*: raised to the power "
            "that fits the held-out votes. All are estimates.",
            "",
            _page.table(_user_table(seen)),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mislabeling", description=__doc__)
    parser.add_argument("--data", help="folder with NAME.npz; by default FEWLABEL_DATA")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--write", type=Path, help="also write the page to this file")
    options = parser.parse_args()
    text = page(options.sets, options.splits, options.data)
    print(text)
    if options.write:
        _page.write(options.write, text)


if __name__ == "__main__":
    main()
