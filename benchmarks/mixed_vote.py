"""What each part of the mixed vote brings: ``python -m benchmarks.mixed_vote run|cost|page``.

``run`` trains every family on splits that are not the paper's (seeds from 2000 on; 4, 10 and 25
labels a class) and mixes their votes in many ways; the defaults of ``FewLabelClassifier`` were
chosen from it. ``cost`` times it on whole data sets. Both append a line for each split to
``results/`` and go on where they were. ``page`` writes docs/mixed_vote.md from these lines.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.datasets import make_classification

from benchmarks import mixed_vote_page
from benchmarks._page import records
from fewlabel import FewLabelClassifier, LabelSpreadingClassifier, SelfLearningClassifier
from fewlabel._core.arrays import Floats, Ints
from fewlabel._core.targets import UNLABELED
from fewlabel.assess.held_out import CANNOT_LEARN
from fewlabel.ensemble import kept_rounds
from fewlabel.ensemble.families import FAMILIES, OPTIONAL, Family
from fewlabel.ensemble.family_trainer import FamilyTrainer
from fewlabel.ensemble.learner import gibbs_weights, without_light_voters
from fewlabel.ensemble.posterior import VoterVotes, gibbs_posterior, mix_votes
from fewlabel.network.classifier import PriorNetworkClassifier
from reproduction.datasets import load_dataset, mask_labels, paper_split
from reproduction.records import RecordWriter

ABLATION, COST = Path("results/mixed_vote.jsonl"), Path("results/mixed_vote_cost.jsonl")
ROUNDS = Path("results/mixed_vote_rounds.jsonl")
PAPER = (
    "vowel", "protein", "dna", "pageblocks", "isolet", "har_recomputed", "pendigits", "letter",
    "fashion", "mnist",
)  # fmt: skip
BUNDLED = ("digits", "iris", "wine", "breast_cancer")
MILLION = "synthetic"
SEEDS = (2000, 2001, 2002, 2003, 2004)
PER_CLASS = (4, 10, 25)
MOST_UNLABELED = 2_000  # rows in one trial of the ablation
TEMPERATURE = FewLabelClassifier().inverse_temperature


def _knn(seed: int, n_jobs: int | None) -> Any:
    return LabelSpreadingClassifier(random_state=seed, n_jobs=n_jobs)


CANDIDATES: dict[str, Family] = {
    **FAMILIES,
    **{name: OPTIONAL[name] for name in ("lda", "spreading_standard")},
    "knn": Family("knn", "label spreading, equal weights", _knn, "range", graph=True),
    "knn_standard": Family("knn_standard", "the same, standardised", _knn, "standard", graph=True),
    "network": replace(
        OPTIONAL["network"], make=lambda s, j: PriorNetworkClassifier(2, random_state=s)
    ),
}
"""Families of today and those that were tried; the network with two views."""
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
    trainer = FamilyTrainer(X, codes, int(codes.max()) + 1, seed, 1)
    votes, held_out, families = {}, {}, {}
    for family in CANDIDATES.values():
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
    given = codes[trainer.labeled]
    record |= {"labeled": len(given), "families": families}
    record["mixtures"] = {
        name: _share(mix_votes(rule(np.stack([held_out[n] for n in of]), given),
                               np.stack([votes[n] for n in of])), truth)
        for name, of, rule in mixtures(list(votes))
    }  # fmt: skip
    return record | rounds(X, codes, truth, seed)


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


def rounds_of(dataset: str, seed: int, per_class: int) -> dict[str, Any]:
    """What the round brings on one split; nothing if it has one class."""
    record: dict[str, Any] = {"dataset": dataset, "seed": seed, "per_class": per_class}
    split = split_of(dataset, per_class, seed)
    return record if split is None else record | rounds(*split, seed)


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
    network = [*default, "network"]
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
    if "network" in known:
        yield "network, Q error 3", network, by_error(3.0)
        yield "network, Q stacked", network, stacked


# --- cost --------------------------------------------------------------------------------------


def _million(seed: int) -> tuple[Any, Any]:
    X, y = make_classification(
        1_000_000, 20, n_informative=10, n_classes=4, class_sep=1.5, random_state=seed
    )
    return X.astype(np.float32), y


def cost(dataset: str, seed: int, compare: bool = True) -> dict[str, Any]:
    """Processor seconds on one whole data set, beside SelfLearningClassifier's if wanted."""
    if dataset == MILLION:
        (X, y), n_labeled = _million(seed), 500
    else:
        data = load_dataset(dataset)
        X, y, n_labeled = data.X, data.y, data.info.n_labeled
    split = paper_split(y, n_labeled, seed=seed)
    target = mask_labels(y, split.labeled)
    record: dict[str, Any] = {"dataset": dataset, "seed": seed, "rows": len(target)}
    for cls in (SelfLearningClassifier, FewLabelClassifier)[not compare :]:
        clf = cls(random_state=seed, n_jobs=1)
        if dataset == MILLION and cls is SelfLearningClassifier:
            clf.set_params(max_train=20_000)  # as docs/benchmarks.md has it at this size
        start, wall = time.process_time(), time.perf_counter()
        clf.fit(X, target)
        right = clf.transduction_[split.unlabeled] == y[split.unlabeled]
        record[cls.__name__] = {
            "cpu": round(time.process_time() - start, 2),
            "wall": round(time.perf_counter() - wall, 2),
            "accuracy": round(float(right.mean()), 5),
        }
    first = clf.classes_[clf.initial_votes_.argmax(axis=1)]
    record["first"] = round(float((first == y[target == UNLABELED]).mean()), 5)
    record["left_out"] = {v.name: v.left_out for v in clf.voters_ if v.left_out}
    return record


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
    parser.add_argument("what", choices=["run", "rounds", "cost", "page"])
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--seeds", nargs="+", type=int)
    parser.add_argument("--per-class", nargs="+", type=int, default=PER_CLASS)
    parser.add_argument("--alone", action="store_true", help="cost of FewLabelClassifier only")
    args = parser.parse_args()
    if args.what in {"run", "rounds"}:
        sets = args.sets or (*BUNDLED, *PAPER)
        trials = [
            (name, seed, n) for seed in args.seeds or SEEDS for n in args.per_class for name in sets
        ]
        run(*((ABLATION, ablate) if args.what == "run" else (ROUNDS, rounds_of)), trials)
    elif args.what == "cost":
        sets, seeds = args.sets or (*PAPER, MILLION), args.seeds or (1000,)
        trial = (lambda *of: cost(*of, compare=False)) if args.alone else cost
        run(COST, trial, [(name, seed) for seed in seeds for name in sets])
    else:
        mixed_vote_page.write(records(ABLATION), records(COST), records(ROUNDS))


if __name__ == "__main__":
    main()
