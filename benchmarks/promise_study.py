"""How the error estimate was chosen: ``python -m benchmarks.promise_study collect|compare``.

``collect`` fits once and keeps the votes (one .npz a fit); ``compare`` tries ways to estimate the
error on these votes, without any further fit.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import promise_data as data
from fewlabel import FewLabelClassifier
from fewlabel.assess.held_out import held_out_votes
from fewlabel.ensemble.mixed_vote import Mixer, Trained

MAX_UNLABELED = 800


class _Mixer(Mixer):
    """Keeps the held-out votes of every family."""

    def train_families(self, training: Any) -> list[Trained]:
        self.trained = super().train_families(training)
        return self.trained


class _Recording(FewLabelClassifier):
    def _base_estimator(self, seed: int) -> Mixer:
        base = super()._base_estimator(seed)
        self.mixer = _Mixer(base.families, self, seed)
        return self.mixer


def collect(name: str, per_class: int, seed: int, base: str) -> dict[str, Any] | None:
    """Votes of one fit: held-out for labelled rows, first and final for unlabelled rows."""
    split = data.split(name, per_class, seed, MAX_UNLABELED)
    if split is None:
        return None
    X, y, labeled = split
    clf = _Recording(random_state=seed) if base == "mixed vote" else data.make(base, seed)
    start = time.process_time()
    clf.fit(X, np.where(labeled, y, -1))
    seconds = time.process_time() - start
    given = np.searchsorted(clf.classes_, y[labeled])
    truth = np.searchsorted(clf.classes_, y[~labeled])
    known = np.isin(y[~labeled], clf.classes_)
    if base == "mixed vote":
        each = np.stack([t.held_out for t in clf.mixer.trained])
        weights = clf.posterior_.weights
    else:
        each = held_out_votes(clf.initial_estimator_, X[labeled], y[labeled])[None]
        weights = np.ones(1)
    return {
        "each": each.astype(np.float32),
        "weights": weights,
        "y": given,
        "first": clf.initial_votes_.astype(np.float32),
        "final": clf.transduction_proba_[~labeled].astype(np.float32),
        "round": clf.labeled_iter_[~labeled],
        "truth": np.where(known, truth, -1),
        "seconds": seconds,
    }


def collect_all(folder: Path, options: argparse.Namespace) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for seed, per, name, base in itertools.product(
        options.seeds, options.per_class, options.data, options.bases
    ):
        path = folder / f"{name}_{per}_{seed}_{base}.npz".replace(" ", "-")
        if path.exists():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            votes = collect(name, per, seed, base)
        if votes is not None:
            np.savez(path, **votes)
            print(f"{path.stem} {votes['seconds']:.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["collect", "compare"])
    parser.add_argument("--folder", type=Path, default=Path("/tmp/promise_study"))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(1000, 1005)))
    parser.add_argument("--per-class", type=int, nargs="+", default=list(data.PER_CLASS))
    parser.add_argument("--data", nargs="+", default=list(data.NAMES))
    parser.add_argument("--bases", nargs="+", default=list(data.BASES))
    options = parser.parse_args()
    collect_all(options.folder, options)


if __name__ == "__main__":
    main()
