"""Which views the prior network should have: ``python -m benchmarks.prior_network_views OLD.npz``.

Votes of single views, and of some together, with the packaged weights and with those of another
file, on splits of seeds 2000 to 2002: one line for each in results/prior_network_views.jsonl. Only
rows of one small context are asked about, the same for every view. With ``--versions NAME`` only
the chosen views are asked, of both files: results/prior_network_versions.jsonl, where the other
weights have that name.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.decomposition import PCA

from benchmarks._page import records
from benchmarks.prior_network_data import SETS, Split, split_of
from fewlabel._core.arrays import Floats, Ints
from fewlabel.network.forward import read_context
from fewlabel.network.views import LARGEST, NARROW, WIDE, Kind, Scaler, importance
from fewlabel.network.weights import Weights, load_weights

RESULTS = Path("results/prior_network_views.jsonl")
VERSIONS = Path("results/prior_network_versions.jsonl")
SEEDS = range(2000, 2003)
MOST_UNLABELED = 1_500
CONTEXT = 512
COLUMNS = {"before": 32, "now": 64}  # slots; tables with more are wide
KINDS = {
    ("before", "narrow"): (Kind("standard"), Kind("ranks"), Kind("raw", 32)),
    ("before", "wide"): (
        Kind("raw", 32), Kind("standard", 10), Kind("ranks", 32), Kind("raw", 10),
        Kind("standard", 32), Kind("ranks", 10),
    ),
    ("now", "narrow"): (
        Kind("standard"), Kind("ranks"), Kind("raw", 64), Kind("raw", 64, 0.5),
        Kind("raw", 64, 1.0), Kind("standard", 64, 0.5),
    ),
    ("now", "wide"): (
        Kind("raw", 64), Kind("raw", 64, 0.5), Kind("raw", 64, 1.0), Kind("standard", 64),
        Kind("standard", 64, 0.5), Kind("ranks", 64, 0.5), Kind("raw", 10), Kind("standard", 10),
        Kind("ranks", 10), Kind("raw", 32, 0.5),
    ),
}  # fmt: skip
SMALLEST_VOTE = 1e-6  # for the log loss
FEW_COLUMNS, LEFT_OUT = 10, Kind("standard", 64, 0.5)  # not measured on tables so narrow
CHOSEN = {"narrow": NARROW, "wide": WIDE}


def width(weights: str, n_columns: int) -> str:
    """Whether a table is narrow or wide for these weights."""
    return "narrow" if n_columns <= COLUMNS[weights] else "wide"


class Shown:
    """A table as views show it; components are computed once for each scaling."""

    def __init__(self, X: Floats) -> None:
        self.X = X
        self.scaled: dict[str, Any] = {}
        self.components: dict[str, Any] = {}

    def rows(self, kind: Kind) -> Any:
        """All rows as a view shows them."""
        if kind.scaling not in self.scaled:
            self.scaled[kind.scaling] = Scaler(kind.scaling, self.X).transform(self.X)
        z = self.scaled[kind.scaling]
        if kind.n_components:
            if kind.scaling not in self.components:
                pca = PCA(min(COLUMNS["now"], *z.shape), random_state=0)
                self.components[kind.scaling] = pca.fit_transform(z)
            z = self.components[kind.scaling][:, : kind.n_components]
        spread = z.std(axis=0)
        factor = np.where(spread > 1e-6, 1.0 / np.maximum(spread, 1e-6), 0.0)
        z = np.clip((z - z.mean(axis=0)) * factor, -LARGEST, LARGEST)
        return z * importance(spread, kind.power)


def votes_of(shown: Any, split: Split, rows: Ints, weights: Weights, rng: Any) -> Floats:
    """Votes of one view for the unlabelled ones of some rows, which are its context."""
    columns = rng.permutation(weights.features)[: shown.shape[1]]
    classes = rng.permutation(weights.classes)[: split.n_classes]
    x = np.zeros((len(rows), weights.features), dtype=np.float32)
    x[:, columns] = shown[rows]
    present = np.zeros(weights.features, dtype=np.float32)
    present[columns] = 1.0
    codes = split.codes[rows]
    slots = np.where(codes < 0, -1, classes[codes])
    context, logits = read_context(weights, x, present, slots)
    votes = np.zeros((int((codes < 0).sum()), split.n_classes))
    code_of = np.argsort(classes)[np.searchsorted(np.sort(classes), context.known)]
    votes[:, code_of] = softmax(logits[codes < 0], axis=1)
    return votes


def context_of(split: Split, rng: Any) -> Ints:
    """At most ``CONTEXT`` rows of a split, labelled ones first, at most half of them."""
    n = len(split.given)
    labeled = np.arange(n) if n <= CONTEXT // 2 else rng.permutation(n)[: CONTEXT // 2]
    others = rng.permutation(np.arange(n, len(split.X)))
    return np.concatenate([labeled, others[: CONTEXT - len(labeled)]])


def measure(split: Split, networks: dict[str, Weights]) -> dict[str, float]:
    """Accuracies of single views, of all views before, and of the chosen ones."""
    rng = np.random.RandomState(split.seed)
    rows = context_of(split, rng)
    truth = split.hidden[rows[split.codes[rows] < 0] - len(split.given)]
    found: dict[str, float] = {}
    shown = Shown(split.X)
    for name, weights in networks.items():
        kinds = KINDS[name, width(name, split.X.shape[1])]
        if split.X.shape[1] <= FEW_COLUMNS:
            kinds = tuple(kind for kind in kinds if kind != LEFT_OUT)
        votes = {kind: votes_of(shown.rows(kind), split, rows, weights, rng) for kind in kinds}
        for kind, vote in votes.items():
            label = f"{name}: {kind.scaling}, {kind.n_components}, {kind.power}"
            found[label] = float((vote.argmax(axis=1) == truth).mean())
        together = kinds if name == "before" else CHOSEN[width(name, split.X.shape[1])]
        votes_together = sum(votes[kind] for kind in together if kind in votes)
        found[f"{name}: together"] = float((np.argmax(votes_together, axis=1) == truth).mean())
    return found


def compare(split: Split, networks: dict[str, Weights]) -> dict[str, float]:
    """Accuracy and mean log loss of networks with the chosen views and the same random slots."""
    kinds = CHOSEN[width("now", split.X.shape[1])]
    found, shown = {}, Shown(split.X)
    for name, weights in networks.items():
        rng = np.random.RandomState(split.seed)
        rows = context_of(split, rng)
        truth = split.hidden[rows[split.codes[rows] < 0] - len(split.given)]
        votes = [votes_of(shown.rows(kind), split, rows, weights, rng) for kind in kinds]
        mean = np.mean(votes, axis=0)
        known = truth >= 0
        found[name] = float((mean.argmax(axis=1) == truth).mean())
        own = mean[known, truth[known]]
        found[f"{name}, log loss"] = float(-np.log(np.maximum(own, SMALLEST_VOTE)).mean())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prior_network_views")
    parser.add_argument("before", type=Path, help="other weights (npz), 32 slots but for versions")
    parser.add_argument("--versions", metavar="NAME", help="only the chosen views, of both")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    options = parser.parse_args()
    name = options.versions or "before"
    networks = {name: load_weights(options.before), "now": load_weights()}
    path, measured = (VERSIONS, compare) if options.versions else (RESULTS, measure)
    done = {(r["set"], r["per_class"], r["seed"]) for r in records(path) if name in r["accuracy"]}
    for key in ((n, c, s) for s in options.seeds for n in options.sets for c in (4, 10)):
        split = None if key in done else split_of(*key, MOST_UNLABELED)
        if split is None:
            continue
        record = dict(zip(("set", "per_class", "seed"), key, strict=True))
        record |= {"columns": split.X.shape[1], "accuracy": measured(split, networks)}
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
