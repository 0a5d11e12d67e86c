"""The prior network beside every family: ``python -m benchmarks.prior_network --help``.

``run`` measures the network, every family and their mixed first vote, one line for each split in
results/prior_network.jsonl. The votes of the families are kept in a folder (``--votes``): they do
not depend on the network. ``alone`` measures other weights of the network (an ablation, a shorter
training) into results/prior_network_ablation.jsonl, ``pseudo`` a second fit with pseudo-labels and
``tabpfn`` TabPFN v1 beside the network (``--python`` and ``--models`` say where). All go on where
they were. ``speed`` takes the processor time of one fit. ``page`` writes the tables of
docs/prior_network.md from these lines. Seeds start at 5000; none is the paper's.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.datasets
from scipy.optimize import minimize
from scipy.special import softmax

from benchmarks._measure import in_child
from benchmarks._page import records
from benchmarks.prior_network_data import MOST_UNLABELED, SETS, UNTOUCHED, Split, split_of
from benchmarks.prior_network_page import ABLATION, PSEUDO, RESULTS, SPEED, TABPFN, write_page
from benchmarks.prior_network_peers import answer, within_limits
from fewlabel._core.arrays import Floats, Ints
from fewlabel.assess.held_out import CANNOT_LEARN, folds_of, seen_in_training
from fewlabel.ensemble.families import FAMILIES
from fewlabel.ensemble.family_trainer import N_FOLDS, FamilyTrainer
from fewlabel.ensemble.few_label import FewLabelClassifier
from fewlabel.ensemble.learner import gibbs_weights
from fewlabel.ensemble.posterior import gibbs_posterior
from fewlabel.ensemble.voter_votes import quadratic_losses
from fewlabel.network import PriorNetworkClassifier

PER_CLASS = (4, 10, 25)
SEEDS = range(5000, 5010)
N_VIEWS = PriorNetworkClassifier().n_views
INVERSE_TEMPERATURE = FewLabelClassifier().inverse_temperature
PSEUDO_SHARES = (0.1, 0.3)
BRIER_PENALTY = 0.02  # price of leaving the Gibbs weights, as the first measurements had it


def family_votes(split: Split) -> dict[str, Any]:
    """First votes of every family that can learn: on unlabelled rows, and held out on labelled."""
    trainer = FamilyTrainer(split.X, split.codes, split.n_classes, split.seed)
    unlabeled = np.flatnonzero(split.codes < 0)
    found: dict[str, Any] = {}
    for family in FAMILIES.values():
        start = time.perf_counter()
        try:
            voter = trainer.train(family, trainer.labeled, split.given)
        except CANNOT_LEARN:
            continue
        found[f"held_out/{family.name}"] = trainer.held_out(family, voter).astype(np.float32)
        found[f"votes/{family.name}"] = trainer.vote(voter, family, unlabeled).astype(np.float32)
        found[f"seconds/{family.name}"] = time.perf_counter() - start
    return found


def kept_family_votes(split: Split, folder: Path) -> dict[str, Any]:
    """Votes of the families, which are trained on a split once."""
    path = folder / f"{split.key}.npz"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part.npz")
        np.savez_compressed(part, **family_votes(split))
        part.replace(path)
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


# --- the network, and the mixed first vote -----------------------------------------------------


def network_votes(split: Split, weights: Path | None) -> tuple[Floats, Floats, dict[str, float]]:
    """Votes of the network on unlabelled rows, held-out ones on labelled rows, and seconds."""
    start = time.perf_counter()
    network = PriorNetworkClassifier(weights=weights, random_state=split.seed)
    network.fit(split.X, split.codes)
    fitted = time.perf_counter()
    folds = folds_of(len(split.given), N_FOLDS, split.seed)  # those of the families
    held_out = network.held_out_votes(folds)
    seconds = {"fit": fitted - start, "held_out": time.perf_counter() - fitted}
    return network.label_distributions_[split.codes < 0], held_out, seconds


def weightings(held_out: Floats, y: Ints) -> dict[str, Floats]:
    """Weights of voters: Gibbs, least Brier score near these, Gibbs with P(last) = 1/2 ("half")."""
    n_voters, n_rows, n_classes = held_out.shape
    losses = quadratic_losses(held_out, y)
    gibbs = gibbs_weights(held_out, y, inverse_temperature=INVERSE_TEMPERATURE)
    columns = held_out.transpose(1, 2, 0).reshape(-1, n_voters)
    truth = np.eye(n_classes)[y].ravel()

    def brier(z: Floats) -> float:
        q = softmax(z)
        far = np.square(q - gibbs).sum() * n_voters / 4
        return float(np.square(columns @ q - truth).sum() / n_rows + BRIER_PENALTY * far)

    found = minimize(brier, np.log(gibbs + 1e-3), method="L-BFGS-B")
    prior = np.append(np.full(n_voters - 1, 0.5 / (n_voters - 1)), 0.5)
    half = gibbs_posterior(losses, n_rows, inverse_temperature=INVERSE_TEMPERATURE, prior=prior)
    return {"gibbs": gibbs, "brier": softmax(found.x), "half": half}


def accuracy(votes: Floats, split: Split) -> float:
    """Share of unlabelled rows that are right; rows of classes without label are wrong."""
    return float((votes.argmax(axis=1) == split.hidden).mean())


def measure(split: Split, options: argparse.Namespace) -> dict[str, Any]:
    """One record: the network, every family, and the mixed vote without and with the network."""
    families = kept_family_votes(split, options.votes)
    names = [name for name in FAMILIES if f"votes/{name}" in families]
    votes, held_out, seconds = network_votes(split, options.weights)
    all_votes = np.stack([*(families[f"votes/{n}"] for n in names), votes])
    all_held_out = np.stack([*(families[f"held_out/{n}"] for n in names), held_out])
    judged = seen_in_training(split.given, folds_of(len(split.given), N_FOLDS, split.seed))
    result = {name: accuracy(v, split) for name, v in zip([*names, "network"], all_votes)}
    weight = {}
    for label, voters in (("without", slice(0, -1)), ("with", slice(None))):
        for rule, q in weightings(all_held_out[voters, judged], split.given[judged]).items():
            if (rule, label) == ("half", "without"):
                continue  # the last voter is no network there
            result[f"{rule}_{label}"] = accuracy(np.tensordot(q, all_votes[voters], 1), split)
            if label == "with":
                weight[rule] = float(q[-1])
    return {"accuracy": result, "weight": weight, "seconds": seconds}


def measure_alone(split: Split, options: argparse.Namespace) -> dict[str, Any]:
    """One record of other weights: accuracy of the network."""
    network = PriorNetworkClassifier(weights=options.weights, random_state=split.seed)
    network.fit(split.X, split.codes)
    return {
        "accuracy": {options.name: accuracy(network.label_distributions_[split.codes < 0], split)}
    }


def measure_pseudo(split: Split, options: argparse.Namespace) -> dict[str, Any]:
    """One record of self-learning: the surest rows of each class get their labels, a second fit."""
    unlabeled = np.flatnonzero(split.codes < 0)
    network = PriorNetworkClassifier(weights=options.weights, random_state=split.seed)
    first = network.fit(split.X, split.codes).label_distributions_[unlabeled]
    found = {"network": accuracy(first, split)}
    for share in PSEUDO_SHARES:
        sure = surest(first, share)
        codes = split.codes.copy()
        codes[unlabeled[sure]] = first[sure].argmax(axis=1)
        second = network.fit(split.X, codes).label_distributions_[unlabeled]
        found[f"{share:.0%} pseudo-labels"] = accuracy(second, split)
    return {"accuracy": found}


def surest(votes: Floats, share: float) -> Ints:
    """Of the rows voted for each class, the share with the largest votes."""
    code, size = votes.argmax(axis=1), votes.max(axis=1)
    found = []
    for c in np.unique(code):
        rows = np.flatnonzero(code == c)
        found.append(rows[np.argsort(-size[rows])[: int(np.ceil(share * len(rows)))]])
    return np.concatenate(found)


def measure_tabpfn(split: Split, options: argparse.Namespace) -> dict[str, Any] | None:
    """One record of TabPFN v1, or None where its limits are passed."""
    if not within_limits(split):
        return None
    found = answer(split, options.python, options.models)
    right = float((found["codes"] == split.hidden).mean())
    return {"accuracy": {"TabPFN v1": right}, "seconds": found["seconds"]}


def speed(n_rows: int, n_views: int) -> dict[str, Any]:
    """Processor seconds (set OMP_NUM_THREADS=1) for 20 columns and 100 labels, and peak memory."""
    X, y = sklearn.datasets.make_classification(
        n_rows, 20, n_informative=10, n_classes=5, random_state=0
    )
    codes = np.where(np.arange(n_rows) < 100, y, -1)
    network = PriorNetworkClassifier(n_views, random_state=0)
    network.fit(X[:200], codes[:200])  # reads the weights
    seconds = {}
    for name, call in (
        ("fit", lambda: network.fit(X, codes)),
        ("predict", lambda: network.predict_proba(X[:1_000])),
        ("held_out", network.held_out_votes),
    ):
        start = time.process_time()
        call()
        seconds[name] = time.process_time() - start
    return {"rows": n_rows, "views": n_views, "seconds": seconds}


def measure_speed() -> None:
    """Replace the file of timings; each is made in a process of its own."""
    lines = []
    for n_rows, n_views in ((1_000, N_VIEWS), (2_000, N_VIEWS), (70_000, N_VIEWS)):
        record, peak = in_child(speed, n_rows, n_views)
        lines.append(json.dumps(record | {"peak_mib": peak}))
    SPEED.write_text("\n".join(lines) + "\n", encoding="utf-8")


# --- the commands ------------------------------------------------------------------------------


def splits(options: argparse.Namespace) -> Iterator[tuple[str, int, int]]:
    """Set, labels a class and seed of the splits that were asked for, seed by seed."""
    for seed in options.seeds:
        for name in options.sets:
            for per_class in options.per_class:
                yield name, per_class, seed


def run(options: argparse.Namespace) -> None:
    """Measure what the file does not have yet."""
    path, measured_by = {
        "run": (RESULTS, measure),
        "alone": (ABLATION, measure_alone),
        "pseudo": (PSEUDO, measure_pseudo),
        "tabpfn": (TABPFN, measure_tabpfn),
    }[options.command]
    done = {(r["set"], r["per_class"], r["seed"], r.get("name")) for r in records(path)}
    for key in splits(options):
        if (*key, options.name) in done:
            continue
        split = split_of(*key, options.most_unlabeled)
        if split is None:
            continue
        head = dict(zip(("set", "per_class", "seed", "name"), (*key, options.name), strict=True))
        shape = {"rows": len(split.X), "unlabeled": len(split.hidden)}
        shape |= {"columns": split.X.shape[1], "classes": split.n_classes}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            measured = measured_by(split, options)
        if measured is None:
            continue
        record = head | shape | measured
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        print(split.key, record["accuracy"], flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prior_network", description=__doc__)
    parser.add_argument("command", choices=("run", "alone", "pseudo", "tabpfn", "speed", "page"))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--sets", nargs="+", choices=(*SETS, *UNTOUCHED), default=SETS)
    parser.add_argument("--per-class", type=int, nargs="+", default=PER_CLASS)
    parser.add_argument("--most-unlabeled", type=int, default=MOST_UNLABELED)
    parser.add_argument("--votes", type=Path, default=Path("results/family_votes"))
    parser.add_argument("--weights", type=Path, help="other weights than the packaged ones")
    parser.add_argument("--name", help="what to call these weights, for `alone`")
    parser.add_argument("--python", type=Path, help="interpreter with tabpfn 0.1.11")
    parser.add_argument("--models", type=Path, help="folder with models_diff, for `tabpfn`")
    options = parser.parse_args()
    if (options.command == "alone") != bool(options.name):
        parser.error("--name goes with `alone`, and `alone` needs it.")
    if options.command == "tabpfn" and not (options.python and options.models):
        parser.error("`tabpfn` needs --python and --models.")
    if options.command == "page":
        write_page()
    elif options.command == "speed":
        measure_speed()
    else:
        run(options)


if __name__ == "__main__":
    main()
