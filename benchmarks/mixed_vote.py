"""What each part of the mixed vote brings: ``python -m benchmarks.mixed_vote run|cost|page``.

``run`` trains every family on splits that are not the paper's (seeds from 2000 on; 4, 10 and 25
labels a class) and mixes their votes in many ways; the defaults of ``FewLabelClassifier`` were
chosen on the first seed. ``cost`` times a fit on whole data sets, side by side with the code of the
commit before graphs in learned metrics. Both append a line for each split to ``results/`` and go on
where they were. ``page`` writes docs/mixed_vote.md from these lines.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import make_classification

from benchmarks import mixed_vote_page
from benchmarks._page import records
from benchmarks.before_after import ROOT, measure, tree_of
from fewlabel import FewLabelClassifier, LabelSpreadingClassifier
from fewlabel._core.arrays import Floats, Ints
from fewlabel._core.targets import UNLABELED
from fewlabel.assess.held_out import CANNOT_LEARN
from fewlabel.ensemble import kept_rounds
from fewlabel.ensemble.families import FAMILIES, OPTIONAL, Family
from fewlabel.ensemble.family_trainer import FamilyTrainer
from fewlabel.ensemble.graphs import LeafProximity, MetricSpreadingClassifier, local_spreading
from fewlabel.ensemble.learner import gibbs_weights, without_light_voters
from fewlabel.ensemble.posterior import VoterVotes, gibbs_posterior, mix_votes
from reproduction.datasets import load_dataset, mask_labels, paper_split
from reproduction.records import RecordWriter

ABLATION, COST = Path("results/mixed_vote.jsonl"), Path("results/mixed_vote_cost.jsonl")
BEFORE_GRAPHS = "4a1d88b^"
"""The commit before graphs in learned metrics."""
PAPER = (
    "vowel", "protein", "dna", "pageblocks", "isolet", "har_recomputed", "pendigits", "letter",
    "fashion", "mnist",
)  # fmt: skip
MADE = mixed_vote_page.MADE
BUNDLED = ("digits", "iris", "wine", "breast_cancer")
SEEDS = (2000, 2001, 2002, 2003, 2004)
PER_CLASS = (4, 10, 25)
MOST_UNLABELED = 2_000  # rows in one trial of the ablation
TEMPERATURE = FewLabelClassifier().inverse_temperature


def _knn(seed: int, n_jobs: int | None) -> Any:
    return LabelSpreadingClassifier(random_state=seed, n_jobs=n_jobs)


class SubspaceSpreading(MetricSpreadingClassifier):
    """Label spreading on five graphs, each of a random half of the columns."""

    def _fit(self, X: Any, codes: Ints) -> Floats:
        rng = np.random.default_rng(self.spreading.random_state)
        n = X.shape[1]
        self.columns_ = [rng.permutation(n)[: (n + 1) // 2] for _ in range(5)]
        self.graphs_ = [clone(self.spreading).fit(X[:, some], codes) for some in self.columns_]
        return self.label_distributions_

    @property
    def label_distributions_(self) -> Floats:
        """Votes for the rows of ``fit``."""
        return np.mean([graph.label_distributions_ for graph in self.graphs_], axis=0)


def _subspaces(seed: int, n_jobs: int | None) -> Any:
    return SubspaceSpreading(None, local_spreading(n_components=50, random_state=seed))


def _neighbours(k: int) -> Callable[[int, int | None], Any]:
    return lambda seed, n_jobs: local_spreading(k, n_components=50, random_state=seed)


def _leaf_neighbours(seed: int, n_jobs: int | None) -> Any:
    return MetricSpreadingClassifier(LeafProximity(random_state=seed), local_spreading(20))


TRIED = (
    Family("knn", "label spreading, equal weights", _knn, "range", graph=True),
    Family("knn_standard", "the same, standardised", _knn, "standard", graph=True),
    Family("spreading_5", "label spreading, 5 neighbours", _neighbours(5), "range", graph=True),
    Family("spreading_20", "label spreading, 20 neighbours", _neighbours(20), "range", graph=True),
    Family(
        "leaves_20",
        "label spreading, forest proximity, 20 neighbours",
        _leaf_neighbours,
        graph=True,
        teacher="extra_trees",
    ),
    Family("subspaces", "label spreading, five random subspaces", _subspaces, "range", graph=True),
)
CANDIDATES: dict[str, Family] = {
    **FAMILIES,
    **{name: OPTIONAL[name] for name in ("lda", "spreading_standard")},
    **{family.name: family for family in TRIED},
}
"""Families of today and those that were tried (docs/prior_network.md has the network)."""
BEFORE = ("forest", "extra_trees", "svm", "lda", "semi_lda", "s3vm", "knn", "knn_standard")
"""The families of the vote before graphs in learned metrics."""


# --- the ablation ------------------------------------------------------------------------------


def split_of(dataset: str, per_class: int, seed: int) -> tuple[Any, Ints, Ints] | None:
    """Rows, class codes of the labelled ones, and those of the others; None with one class."""
    data = load_dataset(dataset)
    n_labeled = min(per_class * len(np.unique(data.y)), len(data.y) // 2)
    split = paper_split(data.y, n_labeled, seed=seed)
    hidden = np.random.default_rng(seed).permutation(split.unlabeled)[:MOST_UNLABELED]
    classes, given = np.unique(data.y[split.labeled], return_inverse=True)
    if len(classes) < 2:
        return None
    code = np.full(int(data.y.max()) + 1, UNLABELED)
    code[classes] = np.arange(len(classes))
    codes = np.concatenate([given, np.full(len(hidden), UNLABELED)])
    X = np.asarray(data.X[np.concatenate([split.labeled, hidden])], dtype=np.float64)
    return X, codes, code[data.y[hidden]]


def ablate(dataset: str, seed: int, per_class: int) -> dict[str, Any]:
    """Accuracies of every family and mixture on one split; nothing if it has one class."""
    record: dict[str, Any] = {"dataset": dataset, "seed": seed, "per_class": per_class}
    split = split_of(dataset, per_class, seed)
    if split is None:
        return record
    X, codes, truth = split
    votes, held_out, families = each_family(X, codes, truth, seed, CANDIDATES)
    given = codes[codes != UNLABELED]
    record |= {"labeled": len(given), "families": families}
    record["mixtures"] = {
        name: _share(mix_votes(rule(np.stack([held_out[n] for n in of]), given),
                               np.stack([votes[n] for n in of])), truth)
        for name, of, rule in mixtures(list(votes))
    }  # fmt: skip
    return record | rounds(X, codes, truth, seed)


Votes = dict[str, Floats]


def each_family(
    X: Any, codes: Ints, truth: Ints, seed: int, candidates: Mapping[str, Family]
) -> tuple[Votes, Votes, dict[str, dict[str, float]]]:
    """Votes of families for unlabelled and for labelled rows, the latter held out; and a record."""
    trainer = FamilyTrainer(X, codes, int(codes.max()) + 1, seed, 1)
    votes, held_out, families = {}, {}, {}
    for family in candidates.values():
        start = time.process_time()
        try:
            voter = trainer.train(family, trainer.labeled, codes[trainer.labeled])
            held_out[family.name] = trainer.held_out(family, voter)
            votes[family.name] = trainer.vote(voter, family, np.flatnonzero(codes == UNLABELED))
        except CANNOT_LEARN:
            continue
        families[family.name] = {
            "accuracy": _share(votes[family.name], truth),
            "held_out": round(trainer.accuracy(held_out[family.name]), 5),
            "cpu": round(time.process_time() - start, 3),
        }
    return votes, held_out, families


def rounds(X: Any, codes: Ints, truth: Ints, seed: int) -> dict[str, Any]:
    """Accuracy of the first vote, after the round, of the kept one, and seconds of the fit."""
    start = time.process_time()
    clf = FewLabelClassifier(random_state=seed, n_jobs=1).fit(X, codes)
    seconds = time.process_time() - start
    unlabeled = codes == UNLABELED
    found = {
        "first": _share(clf.initial_votes_, truth),
        "final": _share(clf.transduction_proba_[unlabeled], truth),
        "n_rounds": clf.n_iter_,
        "cpu": round(seconds, 2),
        "kept": clf.estimator_ is not clf.initial_estimator_,
    }
    if not found["kept"]:  # what it would have been
        with mock.patch.object(kept_rounds, "prefers_new_labels", return_value=True):
            clf.fit(X, codes)
    return found | {"after": _share(clf.transduction_proba_[unlabeled], truth)}


def _share(votes: Floats, truth: Ints) -> float:
    return round(float((votes.argmax(axis=1) == truth).mean()), 5)


Rule = Callable[[Floats, Ints], Floats]


def by_loss(temperature: float = TEMPERATURE) -> Rule:
    """The rule of FewLabelClassifier."""
    return lambda held_out, y: gibbs_weights(held_out, y, inverse_temperature=temperature)


def by_error(temperature: float) -> Rule:
    """Gibbs with held-out errors instead of quadratic losses."""

    def weights(held_out: Floats, y: Ints) -> Floats:
        errors = VoterVotes(held_out, y).errors
        q = gibbs_posterior(errors, len(y), inverse_temperature=temperature)
        return without_light_voters(q)

    return weights


def stacked(held_out: Floats, y: Ints) -> Floats:
    """Weights with the least Brier score of the mixed vote, not far from equal ones."""
    columns = held_out.reshape(len(held_out), -1)
    truth = np.eye(held_out.shape[2])[y].ravel()
    penalty = 0.1 / np.sqrt(len(y))

    def loss(z: Floats) -> float:
        q = softmax(z)
        far = float((q * np.log(q * len(q) + 1e-12)).sum())
        return float(np.square(q @ columns - truth).sum() / len(y) + penalty * far)

    found = minimize(loss, np.zeros(len(held_out)), method="L-BFGS-B")
    return without_light_voters(softmax(found.x))


def mixtures(known: list[str]) -> Iterator[tuple[str, list[str], Rule]]:
    """Name, families and rule of each mixture that is tried."""
    default = [name for name in FAMILIES if name in known]
    yield "default", default, by_loss()
    before = [name for name in BEFORE if name in known]
    yield "before", before, by_error(3.0)
    yield "before, quadratic loss", before, by_loss()
    for name in default:
        yield f"without {name}", [other for other in default if other != name], by_loss()
    for name in known:
        if name not in FAMILIES:
            yield f"with {name}", [*default, name], by_loss()
    for temperature in (3.0, 4.0, 8.0):
        yield f"Q loss {temperature:g}", default, by_loss(temperature)
    for temperature in (3.0, 6.0):
        yield f"Q error {temperature:g}", default, by_error(temperature)
    yield "Q uniform", default, lambda held_out, y: np.full(len(held_out), 1 / len(held_out))
    yield "Q stacked", default, stacked


# --- cost --------------------------------------------------------------------------------------


FIT = """
import json, sys, time, warnings
import numpy as np
from fewlabel import FewLabelClassifier
warnings.simplefilter("ignore")
rows = np.load(sys.argv[1])
X, target, y, seed = rows["X"], rows["target"], rows["y"], int(sys.argv[2])
clf = FewLabelClassifier(random_state=seed, n_jobs=1)
start = time.process_time()
clf.fit(X, target)
cpu, hidden = time.process_time() - start, target == -1
first = clf.classes_[clf.initial_votes_.argmax(axis=1)] == y[hidden]
print(json.dumps({
    "cpu": round(cpu, 2),
    "first": round(float(first.mean()), 5),
    "accuracy": round(float((clf.transduction_ == y)[hidden].mean()), 5),
    "left_out": [voter.name for voter in clf.voters_ if voter.left_out],
}))
"""
FEW_ROWS = 6_000
"""Data sets up to this size are timed three times, the median counts."""


def cost(dataset: str, seed: int) -> dict[str, Any]:
    """Fits of one whole data set by the code of before and of today, alternately."""
    X, y, n_labeled = _whole(dataset, seed)
    target = mask_labels(y, paper_split(y, n_labeled, seed=seed).labeled)
    record: dict[str, Any] = {"dataset": dataset, "seed": seed, "rows": len(y)}
    repeats = 3 if len(y) <= FEW_ROWS else 1
    with tempfile.TemporaryDirectory() as folder, tree_of(BEFORE_GRAPHS) as before:
        rows = Path(folder) / "rows.npz"
        np.savez(rows, X=X, target=target, y=y)
        pairs = [
            [measure(tree, FIT, str(rows), str(seed)) for tree in (before, ROOT)]
            for _ in range(repeats)
        ]
    for name, fits in zip(("before", "now"), zip(*pairs)):
        record[name] = {**fits[0], "cpu": median(fit["cpu"] for fit in fits)}
    return record | {"repeats": repeats}


def _whole(dataset: str, seed: int) -> tuple[Any, Ints, int]:
    if dataset == MADE:
        made = {"n_informative": 10, "n_classes": 10, "random_state": seed}
        return *make_classification(1_000, 20, **made), 100
    data = load_dataset(dataset)
    return data.X, data.y, data.info.n_labeled


def run(path: Path, trial: Callable[..., dict[str, Any]], trials: list[tuple[Any, ...]]) -> None:
    """Append the trials that have no record yet: data set, seed and perhaps labels a class."""
    done = {(r["dataset"], r["seed"], r.get("per_class")) for r in records(path)}
    with RecordWriter(path) as writer:
        for arguments in trials:
            if (*arguments, None)[:3] in done:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                writer.append(trial(*arguments))
            print(*arguments, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["run", "cost", "page"])
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--seeds", nargs="+", type=int)
    parser.add_argument("--per-class", nargs="+", type=int, default=PER_CLASS)
    args = parser.parse_args()
    if args.what == "run":
        sets = args.sets or (*BUNDLED, *PAPER)
        trials = [
            (name, seed, n) for seed in args.seeds or SEEDS for n in args.per_class for name in sets
        ]
        run(ABLATION, ablate, trials)
    elif args.what == "cost":
        seeds = args.seeds or (1000,)
        run(COST, cost, [(name, seed) for seed in seeds for name in args.sets or (MADE, *PAPER)])
    else:
        mixed_vote_page.write(records(ABLATION), records(COST))


if __name__ == "__main__":
    main()
