"""The prior network beside every family: ``python -m benchmarks.prior_network --help``.

``run`` measures the network, every family and their mixed first vote, one line for each split in
results/prior_network.jsonl. The votes of the families are kept in a folder (``--votes``): they do
not depend on the network. ``alone`` measures other weights of the network (an ablation, a shorter
training) into results/prior_network_ablation.jsonl. Both go on where they were. ``speed`` takes the
processor time of one fit. ``page`` writes the tables of docs/prior_network.md from these lines.
Seeds start at 5000; none is the paper's.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.datasets
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.model_selection import train_test_split

from benchmarks._measure import in_child
from benchmarks._page import put, table
from fewlabel._core.arrays import Floats, Ints
from fewlabel.assess.held_out import folds_of, seen_in_training
from fewlabel.ensemble.families import FAMILIES
from fewlabel.ensemble.family_trainer import N_FOLDS, FamilyTrainer
from fewlabel.ensemble.posterior import gibbs_posterior
from fewlabel.network import PriorNetworkClassifier

RESULTS = Path("results/prior_network.jsonl")
ABLATION = Path("results/prior_network_ablation.jsonl")
SPEED = Path("results/prior_network_speed.jsonl")
PAGE = Path("docs/prior_network.md")
BUNDLED = ("wine", "breast_cancer", "iris", "digits")
SETS = (
    *BUNDLED, "vowel", "protein", "dna", "pageblocks", "pendigits", "har_recomputed", "mnist",
    "fashion", "letter", "isolet",
)  # fmt: skip
PER_CLASS = (4, 10)
SEEDS = range(5000, 5010)
MOST_ROWS, MOST_UNLABELED = 7_000, 1_500
MOST_LABELED_SHARE = 0.4  # of a set; a split with more labels is left out
BRIER_PENALTY = 0.02  # price of leaving the Gibbs weights, as the first measurements had it


@dataclass(frozen=True)
class Split:
    """Labelled rows first, unlabelled ones after them."""

    name: str
    per_class: int
    seed: int
    X: Floats
    codes: Ints
    hidden: Ints  # true codes of the unlabelled rows; -1 where no labelled row has the class
    n_classes: int

    @property
    def key(self) -> str:
        return f"{self.name}-{self.per_class}-{self.seed}"

    @property
    def given(self) -> Ints:
        return self.codes[self.codes >= 0]


def load(name: str) -> tuple[Floats, Ints]:
    """Rows and class codes of a set, at most ``MOST_ROWS``; missing cells get the column mean."""
    if name in BUNDLED:
        X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    else:
        with np.load(Path(os.environ["FEWLABEL_DATA"], f"{name}.npz")) as file:
            X, y = file["X"], file["y"]
    rows = np.arange(len(y))
    if len(y) > MOST_ROWS:
        rows = np.random.RandomState(7).permutation(len(y))[:MOST_ROWS]
    X = X[rows].astype(np.float32)
    X = np.where(np.isnan(X), np.nanmean(X, axis=0), X).astype(np.float64)
    return X, np.unique(y[rows], return_inverse=True)[1]


def split_of(name: str, per_class: int, seed: int) -> Split | None:
    """A random split, or None if the set is too small or the labels are of one class."""
    X, y = load(name)
    n_labeled = per_class * (y.max() + 1)
    if n_labeled > MOST_LABELED_SHARE * len(y):
        return None
    given, rest, y_given, y_rest = train_test_split(X, y, train_size=n_labeled, random_state=seed)
    rest, y_rest = rest[:MOST_UNLABELED], y_rest[:MOST_UNLABELED]
    known = np.unique(y_given)
    if len(known) < 2:
        return None
    code = np.full(y.max() + 1, -1)
    code[known] = np.arange(len(known))
    codes = np.concatenate([code[y_given], np.full(len(y_rest), -1)])
    rows = np.concatenate([given, rest])
    return Split(name, per_class, seed, rows, codes, code[y_rest], len(known))


def family_votes(split: Split) -> dict[str, Any]:
    """First votes of every family: on unlabelled rows, and held out on labelled ones."""
    trainer = FamilyTrainer(split.X, split.codes, split.n_classes, split.seed)
    unlabeled = np.flatnonzero(split.codes < 0)
    found: dict[str, Any] = {}
    for family in FAMILIES.values():
        start = time.perf_counter()
        voter = trainer.train(family, trainer.labeled, split.given)
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
    errors = (held_out.argmax(axis=2) != y).mean(axis=1)
    gibbs = gibbs_posterior(errors, n_rows)
    columns = held_out.transpose(1, 2, 0).reshape(-1, n_voters)
    truth = np.eye(n_classes)[y].ravel()

    def brier(z: Floats) -> float:
        q = softmax(z)
        far = np.square(q - gibbs).sum() * n_voters / 4
        return float(np.square(columns @ q - truth).sum() / n_rows + BRIER_PENALTY * far)

    found = minimize(brier, np.log(gibbs + 1e-3), method="L-BFGS-B")
    prior = np.append(np.full(n_voters - 1, 0.5 / (n_voters - 1)), 0.5)
    half = gibbs_posterior(errors, n_rows, prior=prior)
    return {"gibbs": gibbs, "brier": softmax(found.x), "half": half}


def accuracy(votes: Floats, split: Split) -> float:
    """Share of unlabelled rows that are right; rows of classes without label are wrong."""
    return float((votes.argmax(axis=1) == split.hidden).mean())


def measure(split: Split, options: argparse.Namespace) -> dict[str, Any]:
    """One record: the network, every family, and the mixed vote without and with the network."""
    families = kept_family_votes(split, options.votes)
    names = list(FAMILIES)
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
        ("predict", lambda: network.predict_proba(X)),
        ("held_out", network.held_out_votes),
    ):
        start = time.process_time()
        call()
        seconds[name] = time.process_time() - start
    return {"rows": n_rows, "views": n_views, "seconds": seconds}


def measure_speed() -> None:
    """Replace the file of timings; each is made in a process of its own."""
    lines = []
    for n_rows, n_views in ((1_000, 6), (20_000, 1)):
        record, peak = in_child(speed, n_rows, n_views)
        lines.append(json.dumps(record | {"peak_mib": peak}))
    SPEED.write_text("\n".join(lines) + "\n", encoding="utf-8")


# --- the page ----------------------------------------------------------------------------------


def mean_of(lines: list[dict[str, Any]], voter: str, per_class: int, name: str = "") -> float:
    """Mean over sets of the mean over splits of an accuracy; of one set if it is named."""
    by_set: dict[str, list[float]] = {}
    for r in lines:
        if r["per_class"] == per_class and name in ("", r["set"]) and voter in r["accuracy"]:
            by_set.setdefault(r["set"], []).append(r["accuracy"][voter])
    return float(np.mean([np.mean(v) for v in by_set.values()])) if by_set else float("nan")


def overall_table(lines: list[dict[str, Any]]) -> str:
    """Mean accuracy of every voter and vote that all records have."""
    titles = {n: f.title for n, f in FAMILIES.items()} | {"network": "**the network alone**"}
    for rule, shown in (("gibbs", "Gibbs weights"), ("brier", "Brier weights")):
        titles[f"{rule}_without"] = f"mixed first vote of the families, {shown}"
        titles[f"{rule}_with"] = f"the same with the network as one more voter, {shown}"
    titles["half_with"] = "the same with the network, Gibbs weights with prior 1/2 for the network"
    counts = sorted({r["per_class"] for r in lines})
    return table(
        [
            {"voter": title} | {f"{c} a class": f"{mean_of(lines, v, c):.3f}" for c in counts}
            for v, title in titles.items()
            if all(v in r["accuracy"] for r in lines)
        ]
    )


def set_table(lines: list[dict[str, Any]], per_class: int) -> str:
    """Accuracies by set: the network, the best single family there, and the mixed votes."""
    rows = []
    for name in dict.fromkeys(r["set"] for r in lines if r["per_class"] == per_class):
        values = {v: mean_of(lines, v, per_class, name) for v in lines[0]["accuracy"]}
        best = max(FAMILIES, key=values.__getitem__)
        network, mixed = values["network"], values["gibbs_without"]
        rows.append(
            {
                "set": name,
                "splits": sum(r["set"] == name and r["per_class"] == per_class for r in lines),
                "network": f"{network:.3f}",
                "best family": f"{values[best]:.3f} ({FAMILIES[best].title})",
                "mixed": f"{mixed:.3f}",
                "network − mixed": f"{network - mixed:+.3f}",
                "mixed with network": f"{values['gibbs_with']:.3f}",
                "gain": f"{values['gibbs_with'] - mixed:+.3f}",
            }
        )
    return table(rows)


def ablation_table(lines: list[dict[str, Any]]) -> str:
    """Other weights of the network on the same splits."""
    names = list(dict.fromkeys(r["name"] for r in lines))
    measured = Counter((r["set"], r["per_class"], r["seed"]) for r in lines)
    shared = {key for key, count in measured.items() if count == len(names)}
    same = [r for r in lines if (r["set"], r["per_class"], r["seed"]) in shared]
    counts = sorted({r["per_class"] for r in same})
    return table(
        [
            {"weights": name, "splits": len(shared)}
            | {f"{c} a class": f"{mean_of(same, name, c):.3f}" for c in counts}
            for name in names
        ]
    )


def summary(lines: list[dict[str, Any]]) -> str:
    """What was measured, in words."""
    weight = {rule: np.mean([r["weight"][rule] for r in lines]) for rule in ("gibbs", "brier")}
    seeds = sorted({r["seed"] for r in lines})
    wins = sum(r["accuracy"]["network"] > r["accuracy"]["gibbs_without"] for r in lines)
    return (
        f"{len(lines)} splits of {len({r['set'] for r in lines})} sets (seeds {seeds[0]} to "
        f"{seeds[-1]}), at most {MOST_UNLABELED:,} unlabelled rows. The network alone beats "
        f"the mixed vote of the families on {wins} of them. As one of {len(FAMILIES) + 1} voters "
        f"it got {weight['gibbs']:.2f} of the vote by Gibbs weights and {weight['brier']:.2f} by "
        f"Brier weights, on average."
    )


def speed_table() -> str:
    """Processor seconds and memory by table size."""
    return table(
        [
            {"rows": f"{r['rows']:,}", "views": r["views"]}
            | {name: f"{value:.1f} s" for name, value in r["seconds"].items()}
            | {"peak memory": f"{r['peak_mib']:.0f} MiB"}
            for r in records(SPEED)
        ]
    )


def write_page() -> None:
    """Replace the tables of the page."""
    lines = records(RESULTS)
    put(PAGE, "summary", summary(lines))
    put(PAGE, "overall", overall_table(lines))
    with_prior = [r for r in lines if "half_with" in r["accuracy"]]
    put(PAGE, "weights-splits", f"{len(with_prior)} of the splits:")
    put(PAGE, "weights", overall_table(with_prior))
    for per_class in sorted({r["per_class"] for r in lines}):
        put(PAGE, f"sets-{per_class}", set_table(lines, per_class))
    put(PAGE, "ablation", ablation_table(records(ABLATION)))
    put(PAGE, "speed", speed_table())


# --- the commands ------------------------------------------------------------------------------


def splits(options: argparse.Namespace) -> Iterator[tuple[str, int, int]]:
    """Set, labels a class and seed of the splits that were asked for, seed by seed."""
    for seed in options.seeds:
        for name in options.sets:
            for per_class in options.per_class:
                yield name, per_class, seed


def records(path: Path) -> list[dict[str, Any]]:
    """Lines of a file of results."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(options: argparse.Namespace) -> None:
    """Measure what the file does not have yet."""
    path, measured_by = (ABLATION, measure_alone) if options.name else (RESULTS, measure)
    done = {(r["set"], r["per_class"], r["seed"], r.get("name")) for r in records(path)}
    for key in splits(options):
        if (*key, options.name) in done:
            continue
        split = split_of(*key)
        if split is None:
            continue
        head = dict(zip(("set", "per_class", "seed", "name"), (*key, options.name), strict=True))
        shape = {"rows": len(split.X), "columns": split.X.shape[1], "classes": split.n_classes}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            record = head | shape | measured_by(split, options)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        print(split.key, record["accuracy"], flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prior_network", description=__doc__)
    parser.add_argument("command", choices=("run", "alone", "speed", "page"))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--per-class", type=int, nargs="+", default=PER_CLASS)
    parser.add_argument("--votes", type=Path, default=Path("results/family_votes"))
    parser.add_argument("--weights", type=Path, help="other weights than the packaged ones")
    parser.add_argument("--name", help="what to call these weights, for `alone`")
    options = parser.parse_args()
    if (options.command == "alone") != bool(options.name):
        parser.error("--name goes with `alone`, and `alone` needs it.")
    if options.command == "page":
        write_page()
    elif options.command == "speed":
        measure_speed()
    else:
        run(options)


if __name__ == "__main__":
    main()
