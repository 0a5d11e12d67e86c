"""The tables of docs/prior_network.md, from records."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._page import put, records, table
from benchmarks.prior_network_data import MOST_UNLABELED, UNTOUCHED
from fewlabel.ensemble.families import FAMILIES, OPTIONAL

RESULTS = Path("results/prior_network.jsonl")
ABLATION = Path("results/prior_network_ablation.jsonl")
SPEED = Path("results/prior_network_speed.jsonl")
PSEUDO = Path("results/prior_network_pseudo.jsonl")
TABPFN = Path("results/prior_network_tabpfn.jsonl")
VIEWS = Path("results/prior_network_views.jsonl")
TRAINING = Path("results/prior_network_training.jsonl")
PAGE = Path("docs/prior_network.md")
BEFORE = "weights before version 3 of the prior"
PACKAGED_RUN = "version-3"  # of the records of training: the one that made the packaged weights


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
    return {name: title for name, title in known.items() if name in lines[0]["accuracy"]}


def overall_table(lines: list[dict[str, Any]], families: bool = True) -> str:
    """Mean accuracy of every voter and vote that all records have."""
    titles = families_in(lines) if families else {}
    titles["network"] = "**the network alone**"
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
    rows, families = [], families_in(lines)
    for name in dict.fromkeys(r["set"] for r in lines if r["per_class"] == per_class):
        values = {v: mean_of(lines, v, per_class, name) for v in lines[0]["accuracy"]}
        best = max(families, key=values.__getitem__)
        network, mixed = values["network"], values["gibbs_without"]
        rows.append(
            {
                "set": name,
                "splits": sum(r["set"] == name and r["per_class"] == per_class for r in lines),
                "network": f"{network:.3f}",
                "best family": f"{values[best]:.3f} ({families[best]})",
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
    n_voters = len(families_in(lines)) + 1
    wins = sum(r["accuracy"]["network"] > r["accuracy"]["gibbs_without"] for r in lines)
    return (
        f"{len(lines)} splits of {len({r['set'] for r in lines})} sets (seeds {seeds[0]} to "
        f"{seeds[-1]}), at most {MOST_UNLABELED:,} unlabelled rows. The network alone beats "
        f"the mixed vote of the families on {wins} of them. As one of {n_voters} voters "
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


def views_table(lines: list[dict[str, Any]]) -> str:
    """Weights before and packaged ones on the splits on which views were chosen, set by set."""
    rows = []
    for name in [*dict.fromkeys(r["set"] for r in lines), ""]:
        row: dict[str, Any] = {"set": name or "**mean of sets**"}
        row["splits"] = sum(name in ("", r["set"]) for r in lines)
        for c in sorted({r["per_class"] for r in lines}):
            then, now = (mean_of(lines, f"{v}: together", c, name) for v in ("before", "now"))
            row |= {f"{c} a class, before": f"{then:.3f}", f"{c} a class, now": f"{now:.3f}"}
            row[f"{c} a class, gain"] = f"{now - then:+.3f}"
        rows.append(row)
    return table(rows)


def versions_table(before: list[dict[str, Any]], lines: list[dict[str, Any]]) -> str:
    """The packaged weights and those before them, set by set, on the splits that both have."""
    of = {(r["set"], r["per_class"], r["seed"]): r for r in lines}
    both = [
        r | {"accuracy": r["accuracy"] | {"now": of[key]["accuracy"]["network"]}}
        for r in before
        if (key := (r["set"], r["per_class"], r["seed"])) in of
    ]
    counts = sorted({r["per_class"] for r in both})
    rows = []
    for name in [*dict.fromkeys(r["set"] for r in both), ""]:
        row: dict[str, Any] = {"set": name or "**mean of sets**"}
        row["splits"] = sum(name in ("", r["set"]) for r in both)
        for c in counts:
            then, now = (mean_of(both, v, c, name) for v in (BEFORE, "now"))
            row |= {f"{c} a class, before": f"{then:.3f}", f"{c} a class, now": f"{now:.3f}"}
            row[f"{c} a class, gain"] = f"{now - then:+.3f}"
        rows.append(row)
    return table(rows)


def write_page() -> None:
    """Replace the tables of the page."""
    everything = records(RESULTS)
    lines = [r for r in everything if r["set"] not in UNTOUCHED]
    untouched = [r for r in everything if r["set"] in UNTOUCHED]
    _put_sets("", lines)
    if untouched:
        _put_sets("untouched-", untouched)
    with_prior = [r for r in lines if "half_with" in r["accuracy"]]
    put(PAGE, "weights-splits", f"{len(with_prior)} of the splits:")
    put(PAGE, "weights", overall_table(with_prior, families=False))
    other = records(ABLATION)
    put(PAGE, "ablation", ablation_table([r for r in other if r["name"] != BEFORE]))
    if before := [r for r in other if r["name"] == BEFORE]:
        put(PAGE, "versions", versions_table(before, lines))
    if peers := records(TABPFN):
        put(PAGE, "tabpfn", tabpfn_table(peers, everything))
    if pseudo := records(PSEUDO):
        put(PAGE, "pseudo", pseudo_table(pseudo))
    put(PAGE, "views", views_table(records(VIEWS)))
    put(PAGE, "training", training_table(records(TRAINING)))
    put(PAGE, "speed", speed_table())


def _put_sets(prefix: str, lines: list[dict[str, Any]]) -> None:
    put(PAGE, f"{prefix}summary", summary(lines))
    put(PAGE, f"{prefix}overall", overall_table(lines))
    for per_class in sorted({r["per_class"] for r in lines}):
        put(PAGE, f"{prefix}sets-{per_class}", set_table(lines, per_class))
