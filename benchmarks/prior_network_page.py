"""The tables of docs/prior_network.md, from records."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._page import put, records, table
from benchmarks.prior_network_data import UNTOUCHED
from fewlabel.ensemble.families import FAMILIES, OPTIONAL

RESULTS = Path("results/prior_network.jsonl")
ABLATION = Path("results/prior_network_ablation.jsonl")
SPEED = Path("results/prior_network_speed.jsonl")
PSEUDO = Path("results/prior_network_pseudo.jsonl")
TABPFN = Path("results/prior_network_tabpfn.jsonl")
VERSIONS = Path("results/prior_network_versions.jsonl")
TRAINING = Path("results/prior_network_training.jsonl")
PAGE = Path("docs/prior_network.md")
RULES = {
    "gibbs_with": "Gibbs weights",
    "half_with": "Gibbs weights, prior 1/2 for the network",
    "brier_with": "Brier weights",
}
"""Votes with the network as one more voter; each is compared with ``gibbs_without``."""
GOALS = {4: 0.02, 10: 0.01}  # of the vote with the network over the one without it
GOAL_ALONE, MOST_LOST = 0.01, 0.005
_NEARLY_ALL = 0.9
PACKAGED_RUN = (
    "version-3-longer"  # of the records of training: the one that made the packaged weights
)


def mean_of(lines: list[dict[str, Any]], voter: str, per_class: int, name: str = "") -> float:
    """Mean over sets of the mean over splits of an accuracy; of one set if it is named."""
    by_set: dict[str, list[float]] = {}
    for r in lines:
        if r["per_class"] == per_class and name in ("", r["set"]) and voter in r["accuracy"]:
            by_set.setdefault(r["set"], []).append(r["accuracy"][voter])
    return float(np.mean([np.mean(v) for v in by_set.values()])) if by_set else float("nan")


def families_in(lines: list[dict[str, Any]]) -> dict[str, str]:
    """Names and titles of the families in the records; the default ones may be others by now."""
    known = {name: f.title for name, f in (FAMILIES | OPTIONAL).items() if name != "network"}
    return {name: t for name, t in known.items() if any(name in r["accuracy"] for r in lines)}


def overall_table(lines: list[dict[str, Any]]) -> str:
    """Mean accuracy of every voter and vote that nearly all records have.

    A family counts on the splits that it could learn.
    """
    titles = families_in(lines) | {"network": "**the network alone**"}
    titles["gibbs_without"] = "mixed first vote of the families, Gibbs weights"
    titles["brier_without"] = "the same, Brier weights"
    titles |= {rule: f"mixed first vote with the network, {how}" for rule, how in RULES.items()}
    counts = sorted({r["per_class"] for r in lines})
    return table(
        [
            {"voter": title} | {f"{c} a class": f"{mean_of(lines, v, c):.3f}" for c in counts}
            for v, title in titles.items()
            if sum(v in r["accuracy"] for r in lines) >= _NEARLY_ALL * len(lines)
        ]
    )


def set_table(lines: list[dict[str, Any]]) -> str:
    """Accuracies by set: the mixed vote, the network, and what it adds to the vote."""
    rows = []
    for name in dict.fromkeys(r["set"] for r in lines):
        own = [r for r in lines if r["set"] == name]
        row: dict[str, Any] = {"set": name, "splits": len(own)}
        for c in sorted({r["per_class"] for r in lines}):
            if all(r["per_class"] != c for r in own):
                continue
            mixed = mean_of(own, "gibbs_without", c)
            row[f"{c} a class: mixed"] = f"{mixed:.3f}"
            row[f"{c}: network"] = f"{mean_of(own, 'network', c):.3f}"
            row[f"{c}: gain"] = f"{mean_of(own, 'gibbs_with', c) - mixed:+.3f}"
        rows.append(row)
    widest = max(rows, key=len)
    return table([dict.fromkeys(widest, "") | row for row in rows])


def gains(lines: list[dict[str, Any]], rule: str, per_class: int) -> dict[str, float]:
    """What the network adds to the vote without it, set by set."""
    own = [r for r in lines if r["per_class"] == per_class]
    return {
        name: mean_of(own, rule, per_class, name) - mean_of(own, "gibbs_without", per_class, name)
        for name in dict.fromkeys(r["set"] for r in own)
    }


def goals_table(lines: list[dict[str, Any]]) -> str:
    """What was hoped for, and what was reached, for each way to weigh the voters."""
    rows: list[dict[str, Any]] = []
    for per_class, wanted in GOALS.items():
        reached = {
            how: f"{np.mean([*gains(lines, rule, per_class).values()]):+.3f}"
            for rule, how in RULES.items()
        }
        rows.append(
            {"goal": f"gain of the vote, {per_class} a class", "wanted": f"+{wanted:.3f}"} | reached
        )
    lowest = {}
    for rule, how in RULES.items():
        found = all_gains(lines, rule)
        lost = sum(gain < -MOST_LOST for gain in found.values())
        lowest[how] = f"{min(found.values()):+.3f}; {lost} of {len(found)} lower"
    rows.append({"goal": "lowest gain of a set", "wanted": f"-{MOST_LOST:.3f}"} | lowest)
    alone = np.mean([*gains(lines, "network", 4).values()])
    return (
        table([dict.fromkeys(rows[-1], "") | row for row in rows])
        + f"\n\nAlone, at 4 labels a class, the network gains {alone:+.3f} over the vote without "
        f"it (wanted: +{GOAL_ALONE:.3f})."
    )


def all_gains(lines: list[dict[str, Any]], rule: str) -> dict[tuple[int, str], float]:
    """What the network adds, by labels a class and set."""
    return {
        (c, name): gain
        for c in sorted({r["per_class"] for r in lines})
        for name, gain in gains(lines, rule, c).items()
    }


def losses(lines: list[dict[str, Any]]) -> str:
    """Where the vote with the network, Gibbs weights, loses more than ``MOST_LOST``, in words."""
    found = all_gains(lines, "gibbs_with")
    low = [f"{name} ({c} a class)" for (c, name), gain in found.items() if gain < -MOST_LOST]
    return (
        f"With Gibbs weights the vote with the network is more than {MOST_LOST} below the one "
        f"without it on: {', '.join(low) or 'no set'}."
    )


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
    weight = {
        rule: np.mean([r["weight"][rule] for r in lines]) for rule in ("gibbs", "half", "brier")
    }
    seeds = sorted({r["seed"] for r in lines})
    each = Counter((r["set"], r["per_class"]) for r in lines).values()
    times = f"{min(each)} to {max(each)}" if min(each) < max(each) else f"{min(each)}"
    n_voters, most = len(families_in(lines)) + 1, max(r["unlabeled"] for r in lines)
    wins = sum(r["accuracy"]["network"] > r["accuracy"]["gibbs_without"] for r in lines)
    return (
        f"{len(lines)} splits of {len({r['set'] for r in lines})} sets (seeds {seeds[0]} to "
        f"{seeds[-1]}; {times} for each set and number of labels), at most "
        f"{most:,} unlabelled rows. The network alone beats "
        f"the mixed vote of the families on {wins} of them. As one of {n_voters} voters "
        f"it got {weight['gibbs']:.2f} of the vote by Gibbs weights, {weight['half']:.2f} with a "
        f"prior of 1/2 and {weight['brier']:.2f} by Brier weights, on average."
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


def pseudo_table(lines: list[dict[str, Any]]) -> str:
    """The network, and a second fit with pseudo-labels, on the same splits."""
    counts = sorted({r["per_class"] for r in lines})
    return table(
        [
            {"fit": name, "splits": len(lines)}
            | {f"{c} a class": f"{mean_of(lines, name, c):.3f}" for c in counts}
            for name in lines[0]["accuracy"]
        ]
    )


def tabpfn_table(peers: list[dict[str, Any]], lines: list[dict[str, Any]]) -> str:
    """TabPFN v1, the network and the mixed vote on the splits that all of them have."""
    of = {(r["set"], r["per_class"], r["seed"]): r for r in lines}
    both = [
        r | {"accuracy": of[key]["accuracy"] | r["accuracy"]}
        for r in peers
        if (key := (r["set"], r["per_class"], r["seed"])) in of
    ]
    titles = {
        "TabPFN v1": "TabPFN v1 (labelled rows only, 8 configurations)",
        "network": "**the network alone**",
        "gibbs_without": "mixed first vote of the families",
        "gibbs_with": "the same with the network",
    }
    counts = sorted({r["per_class"] for r in both})
    return table(
        [
            {"voter": title, "splits": len(both)}
            | {f"{c} a class": f"{mean_of(both, v, c):.3f}" for c in counts}
            for v, title in titles.items()
        ]
    )


def training_table(lines: list[dict[str, Any]]) -> str:
    """Accuracy on held-out synthetic tasks against steps, about eight lines of a run."""
    lines = [r for r in lines if r["run"] == PACKAGED_RUN]
    steps = np.linspace(0, len(lines) - 1, 8).round().astype(int)
    return table(
        [
            {
                "steps": f"{lines[i]['step']:,}",
                "seconds": f"{lines[i]['seconds']:.0f}",
                "accuracy": f"{lines[i]['accuracy']:.4f}",
                "at most 32 columns": f"{lines[i]['accuracy_32_columns']:.4f}",
                "128 columns": f"{lines[i]['accuracy_128_columns']:.4f}",
            }
            for i in steps
        ]
    )


def versions_table(lines: list[dict[str, Any]], training: list[dict[str, Any]]) -> str:
    """The packaged weights, those before and after, on the splits on which views were chosen."""
    counts = sorted({r["per_class"] for r in lines})
    titles = {
        "before": "20,336 steps on version 3",
        "now": "33,360 more steps (packaged)",
        "after": "30,912 more steps after these",
    }
    of = {name: [r for r in lines if name in r["accuracy"]] for name in titles}
    of["now"] = of["before"]  # measured again, with equal results, beside those after them
    ends = {r["run"]: f"{r['accuracy']:.4f}" for r in training}  # the last line of each run
    runs = {"before": "version-3", "now": PACKAGED_RUN, "after": "version-3-longest"}
    return table(
        [
            {"weights": title, "synthetic tasks": ends.get(runs[name], "")}
            | {"splits": len(of[name])}
            | {f"{c} a class": f"{mean_of(of[name], name, c):.4f}" for c in counts}
            | {f"log loss, {c}": f"{mean_of(of[name], f'{name}, log loss', c):.3f}" for c in counts}
            for name, title in titles.items()
            if of[name]
        ]
    )


def write_page() -> None:
    """Replace the tables of the page."""
    everything = records(RESULTS)
    lines = [r for r in everything if r["set"] not in UNTOUCHED]
    put(PAGE, "summary", summary(lines))
    put(PAGE, "overall", overall_table(lines))
    put(PAGE, "goals", goals_table(lines))
    put(PAGE, "sets", set_table(lines))
    put(PAGE, "losses", losses(lines))
    put(PAGE, "ablation", ablation_table(records(ABLATION)))
    put(PAGE, "versions", versions_table(records(VERSIONS), records(TRAINING)))
    put(PAGE, "training", training_table(records(TRAINING)))
    put(PAGE, "speed", speed_table())
    if peers := records(TABPFN):
        put(PAGE, "tabpfn", tabpfn_table(peers, lines))
    if pseudo := records(PSEUDO):
        put(PAGE, "pseudo", pseudo_table(pseudo))
    if untouched := [r for r in everything if r["set"] in UNTOUCHED]:
        put(PAGE, "untouched", overall_table(untouched))
