"""What do the last rounds of self-learning bring? ``python -m benchmarks.min_gain --data DIR``

Algorithm 1 ends when no row is left or none is selected; on large data its last rounds refit a
whole forest for a handful of rows. This measures, on splits that are not the paper's, the accuracy
on the unlabelled rows and the number of refits

- after all rounds (the paper's rule),
- if the loop stops at the first round that selects less than a share g of the unlabelled rows, and
- if such rounds are joined: selections are repeated with the same votes until they amount to g.

Stopping is a prefix of the paper's run, so one run with a record of every round gives all of it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from fewlabel import SelfLearningClassifier
from fewlabel.policies import BoundPolicy, Selection

N_LABELED = {
    "vowel": 99,
    "protein": 129,
    "dna": 31,
    "pageblocks": 1094,
    "pendigits": 109,
    "letter": 400,
    "mnist": 175,
}
GAINS = (0.001, 0.003, 0.01, 0.03, 0.1)


class JoinedRounds:
    """Repeat a policy on the rows it left, with the same votes, until enough rows are selected."""

    def __init__(self, gain: float, n_unlabeled: int) -> None:
        self.enough = gain * n_unlabeled

    def select(self, votes: Any, label_proba: Any, iteration: int) -> Selection:
        left = np.arange(len(votes))
        thresholds = np.ones(votes.shape[1])
        while len(left):
            part = BoundPolicy().select(votes[left], label_proba[left], iteration)
            thresholds = np.minimum(thresholds, part.thresholds)
            left = left[~part.mask]
            if not part.mask.any() or len(votes) - len(left) >= self.enough:
                break
        mask = np.ones(len(votes), dtype=bool)
        mask[left] = False
        return Selection(mask, thresholds)


class RoundByRound(SelfLearningClassifier):
    """Keeps the classifier's accuracy on the unlabelled rows after every refit."""

    def _record(self, selection: Any, pseudo: Any, n_left: int, seconds: Any) -> None:
        self.scores.append(self.score_now())
        super()._record(selection, pseudo, n_left, seconds)


def trial(name: str, X: Any, y: Any, seed: int) -> list[dict[str, Any]]:
    labeled, unlabeled = train_test_split(
        np.arange(len(y)), train_size=N_LABELED[name], random_state=seed
    )
    target = np.full(len(y), -1)
    target[labeled] = y[labeled]

    def accuracy(clf: Any) -> float:
        truth = y[unlabeled]
        votes = clf.estimator_.predict_proba(X[unlabeled])
        return float((clf.classes_[votes.argmax(axis=1)] == truth).mean())

    clf = RoundByRound(min_gain=0.0, random_state=seed, n_jobs=2)
    clf.scores, clf.score_now = [], lambda: accuracy(clf)
    start = time.perf_counter()
    clf.fit(X, target)
    seconds = time.perf_counter() - start
    after = [*clf.scores, accuracy(clf)]  # after[r]: accuracy once r rounds are complete
    selected = [record["n_selected"] for record in clf.history_]
    rows = [row(name, seed, "paper's rule", 0.0, after[-1], clf.n_iter_, seconds)]
    share_of_rounds = [0.0, *np.cumsum([r["seconds_fit"] for r in clf.history_])]
    for gain in GAINS:
        small = [r for r, n in enumerate(selected) if r and n < gain * len(unlabeled)]
        stop = small[0] if small else len(selected)
        part = share_of_rounds[stop] / max(share_of_rounds[-1], 1e-9) * seconds
        rows.append(row(name, seed, "stop", gain, after[stop], stop, part))
        start = time.perf_counter()
        policy = JoinedRounds(gain, len(unlabeled))
        joined = SelfLearningClassifier(policy=policy, min_gain=0.0, random_state=seed, n_jobs=2)
        joined.fit(X, target)
        seconds_joined = time.perf_counter() - start
        score = accuracy(joined)
        rows.append(row(name, seed, "join", gain, score, joined.n_iter_, seconds_joined))
    return rows


def row(name: str, seed: int, rule: str, gain: float, acc: float, n: int, s: float) -> dict:
    keys = ("set", "seed", "rule", "gain", "accuracy", "refits", "seconds")
    return dict(zip(keys, (name, seed, rule, gain, acc, n, s)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with NAME.npz files")
    parser.add_argument("--sets", nargs="+", default=["vowel", "protein", "dna", "pendigits"])
    parser.add_argument("--trials", type=int, default=5)
    options = parser.parse_args()
    rows: list[dict] = []
    for name in options.sets:
        with np.load(options.data / f"{name}.npz") as data:
            X, y = data["X"], data["y"]
        for t in range(options.trials):
            rows += trial(name, X, y, seed=1000 + t)
            print("...", name, t, flush=True)
    print(
        f"\nMeans of {options.trials} trials.\n\n"
        "| set | rule | accuracy | refits | seconds |\n|---|---|---|---|---|"
    )
    for name in options.sets:
        for rule, gain in [
            ("paper's rule", 0.0),
            *((r, g) for r in ("stop", "join") for g in GAINS),
        ]:
            mine = [r for r in rows if (r["set"], r["rule"], r["gain"]) == (name, rule, gain)]
            mean = {k: np.mean([r[k] for r in mine]) for k in ("accuracy", "refits", "seconds")}
            print(
                f"| {name} | {rule} {gain or ''} | {mean['accuracy']:.4f} | {mean['refits']:.1f} "
                f"| {mean['seconds']:.2f} |"
            )


if __name__ == "__main__":
    main()
