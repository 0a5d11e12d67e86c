"""The page about the mixed vote, written from records and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import mannwhitneyu

from benchmarks import _page
from benchmarks._page import table
from fewlabel.ensemble.families import FAMILIES
from reproduction.notation import number, row_title
from reproduction.paper_values import TABLE_2
from reproduction.plan import ROWS, Scope
from reproduction.records import OK, read_records
from reproduction.summary import LEVEL, Cell, by_key
from reproduction.tables import accuracy_cells

PAGE = Path("docs/mixed_vote.md")
OURS = "FewLabel"
MADE, MADE_TITLE = "made", "20 columns, 10 classes, 100 labels (`make_classification`)"
Line = dict[str, Any]

INTRO = """# The mixed vote

{result}

It is a vote of several families of classifiers. Their weights Q are learned from the labels, and a
round of Algorithm 1 trains them again. This page says what is in the vote and what each part
brings. `make mixed-vote` writes it from the records in `results/`.

## What is in it
"""
HOW = """
- **Graphs**: label spreading among ten neighbours with weights exp(−d²/(s_i s_j)), s the distance
  of the tenth neighbour, α = 0.9, the labels of a class sharing a weight of 1. The metric is that
  of the features in [-1, 1] (wide rows: 50 principal components), of 20 whitened components, of
  the leaves of extra trees (100 singular vectors), or of the discriminants of shrunk LDA.
- **Many rows**: from 5,000 rows on neighbours are looked for in the cells of k-means around a row,
  which finds nearly all of them ([how many](benchmarks.md)); `faiss`
  (`pip install 'fewlabel[graph]'`) does it where it is installed. Up to 100,000 unlabelled rows
  (20,000 where rows are read in chunks) carry the graphs; other rows, and new ones, vote by their
  ten nearest neighbours among them.
- **Overfitted metrics**: with few labels in many columns (rare words, say) a learned metric may put
  the labelled rows close to each other only. If the labels of one class then lead out of that
  crowd, they would get all other rows. Such a graph is left out, and `voters_` says so.
- **Many columns**: with more than ten columns for each labelled row, LDA on screened columns
  (`screened_lda`) joins the nine families.
- **Held-out votes**: out of bag for the forest, cross-fitted on five folds for the others.
- **Q**: Q(h) ∝ exp(−5·√l·loss(h)), the Gibbs posterior of half the Brier score of the held-out
  votes. Families with Q below 0.03 and below a tenth of the largest Q are dropped.
- **Self-learning**: one round with thresholds by the paper's bound. Families that can be trained
  again learn from the labelled and at most 5,000 pseudo-labelled rows; Q stays. Pseudo-labels
  spread on the graphs of given features. The two learned metrics are trained again on them, too; on
  their graphs only given labels spread. A round that does not help is not kept (see below).
- **On request**: `voters=["default", "network"]` adds the prior network, `"tabicl"` TabICL
  (`pip install 'fewlabel[foundation]'`); any classifier can be added as an instance.

Families, constants and defaults were chosen on our own splits, seed 2000 (the constant of Q also on
PageBlocks with 2001 and 2002; all that concerns rounds, overfitted metrics and the number of
singular vectors on seeds from 1000 to 1999). The paper's splits were used for the next table only.
"""


def write(ablation: list[Line], cost: list[Line]) -> None:
    """Write docs/mixed_vote.md."""
    _page.write(PAGE, text(ablation, cost, Path("results")))


def text(ablation: list[Line], cost: list[Line], results: Path) -> str:
    """The whole page."""
    records = [r for r in read_records(results) if r["status"] == OK]
    splits = [x for x in ablation if "mixtures" in x]
    parts = [
        INTRO.format(result=_result([x for x in splits if x["per_class"] <= 25], cost)),
        _families(),
        HOW,
        "## How accurate is it on the paper's data sets?\n",
        *_final(accuracy_cells("table2", Scope(), by_key(records))),
        *_ablation([x for x in splits if x["per_class"] <= 25]),
        *_rounds(_fresh([x for x in splits if x["per_class"] <= 25])),
        *_forests(splits),
        *_cost(cost),
    ]
    return "\n".join(parts) + "\n"


def _result(lines: list[Line], cost: list[Line]) -> str:
    """How right it is, beside the vote before graphs in learned metrics."""
    fresh = _fresh(lines)
    if not fresh or not cost:
        return ""
    final, first = _means(fresh, lambda line: line["final"]), _means(fresh, _mixture("default"))
    before = _means(fresh, _mixture("before"))
    fewest = next(name for name in final if name != "mean")
    ratios = [line["now"]["cpu"] / line["before"]["cpu"] for line in cost]

    def share(means: dict[str, float]) -> str:
        return f"{100 * means['mean']:.1f} % ({100 * means[fewest]:.1f} % at {fewest})"

    return (
        f"`FewLabelClassifier()` labels {share(final)} of the unlabelled rows correctly, on "
        f"{len(fresh)} splits that nothing was chosen on. Its first vote, before self-learning: "
        f"{share(first)}; the first vote without graphs in learned metrics: {share(before)}. A fit "
        f"takes {min(ratios):.2f} to {max(ratios):.2f} times the processor time of that one."
    )


def _families() -> str:
    rows = [
        {
            "family": f.title,
            "name": f"`{f.name}`",
            "features": {"none": "as they are", "standard": "mean 0, variance 1"}.get(
                f.scaling, "to [-1, 1]"
            ),
            "sees unlabelled rows": "all"
            if f.graph and f.learns_from is None
            else f"{f.learns_from:,}"
            if f.learns_from
            else "no",
            "trained again": "yes" if f.refitted else "no",
        }
        for f in FAMILIES.values()
    ]
    return table(rows)


# --- the final table -------------------------------------------------------------------------


def _final(cells: dict[str, dict[str, Cell]]) -> Iterator[str]:
    rows, missed, significant = [], [], []
    for name, row in cells.items():
        ours = row[OURS]
        if not ours.n:
            continue
        printed = {m: r.mean for m, r in TABLE_2[ROWS[name].paper or ""].items() if r}
        best = max(printed, key=lambda m: printed[m])
        if round(ours.mean, 3) < printed[best]:
            missed.append(name)
        rival, theirs, own = _rival(row)
        p = mannwhitneyu(own, theirs).pvalue if len(own) > 1 else 1.0
        if p < LEVEL and np.mean(own) < np.mean(theirs):
            significant.append(name)
        rows.append(
            {
                "data set": row_title(name),
                "FewLabelClassifier": f"**{number(ours.mean)}** ± {number(ours.std)} ({ours.n})",
                "best of the paper": f"{number(printed[best])} {best}",
                "best competitor that we ran": f"{number(float(np.mean(theirs)))} {rival}",
                "ours on the same splits": f"{number(float(np.mean(own)))} ({len(own)})",
                "Mann-Whitney p": f"{p:.4f}" if len(own) > 1 else "–",
            }
        )
    yield table(rows)
    yield (
        "\nAccuracy on the unlabelled rows, mean ± standard deviation; in brackets the number of "
        "splits. LS, QN-S3VM, Semi-LDA and DAS-RF are tuned on the labels they are scored on; "
        "FewLabelClassifier is not tuned. The best competitor has the largest lead, or least lag, "
        "on the splits that both were run on; p is two-sided.\n"
    )
    names = ", ".join(row_title(n) for n in missed)
    yield (
        f"At least as accurate as the best method of the paper on {len(rows) - len(missed)} of "
        f"{len(rows)} data sets" + (f"; **missed: {names}**." if missed else ".")
    )
    worse = ", ".join(row_title(n) for n in significant)
    yield (
        f"Significantly worse (p < {LEVEL}) than the best competitor that we ran: "
        f"{worse or 'nowhere'}.\n"
    )


def _rival(row: dict[str, Cell]) -> tuple[str, list[float], list[float]]:
    """The competitor with the largest lead, and both scores on the splits that they share.

    Trials are in the order of the seeds 0, 10, ..., so the first n splits are shared.
    """
    ours = row[OURS].values
    pairs = {
        name: (list(c.values[: len(ours)]), list(ours[: c.n]))
        for name, c in row.items()
        if name != OURS and c.n
    }
    name = max(pairs, key=lambda m: np.mean(pairs[m][0]) - np.mean(pairs[m][1]))
    return name, *pairs[name]


# --- the ablation ----------------------------------------------------------------------------

FORESTS = ("forest", "extra_trees")
CHOSEN_ON = 2000
"""The seed of the splits that families and constants were chosen on."""
ALSO_CHOSEN_ON = {("pageblocks", 2001), ("pageblocks", 2002)}
"""Splits of other seeds on which the constant of Q was chosen, too."""
Value = Callable[[Line], float]


def _fresh(lines: list[Line]) -> list[Line]:
    """The splits that nothing was chosen on."""
    later = [line for line in lines if line["seed"] > CHOSEN_ON]
    return [x for x in later if (x["dataset"], x["seed"]) not in ALSO_CHOSEN_ON]


def _means(lines: list[Line], value: Value) -> dict[str, float]:
    """Mean over the data sets for each number of labels a class, and their mean."""
    found: dict[str, float] = {}
    for n in sorted({line["per_class"] for line in lines}):
        own = [line for line in lines if line["per_class"] == n]
        sets = dict.fromkeys(line["dataset"] for line in own)
        found[f"{n} a class"] = float(
            np.mean([np.mean([value(x) for x in own if x["dataset"] == s]) for s in sets])
        )
    return {"mean": float(np.mean(list(found.values()))), **found}


def _row(lines: list[Line], title: str, value: Value, digits: int = 4) -> Line:
    means = _means([x for x in lines if value(x) is not None], value)
    return {"": title} | {name: f"{mean:.{digits}f}" for name, mean in means.items()}


def _mixture(name: str) -> Value:
    return lambda line: line["mixtures"].get(name)


def _mixture_or_default(name: str) -> Value:
    """Where the family could not learn, there is nothing without it, or with it."""
    return lambda line: line["mixtures"].get(name, line["mixtures"]["default"])


def _family(name: str, field: str) -> Value:
    return lambda line: line["families"].get(name, {}).get(field)


def _ablation(lines: list[Line]) -> Iterator[str]:
    if not lines:
        return
    seeds = sorted({line["seed"] for line in lines})
    sets = list(dict.fromkeys(line["dataset"] for line in lines))
    titles = _titles()
    yield "## What each part brings\n"
    yield (
        f"Accuracy on the unlabelled rows, {len(lines)} splits of {len(sets)} data sets, seeds "
        f"{', '.join(map(str, seeds))}, labels drawn at random, 4, 10 or 25 a class on average, at "
        "most 2,000 unlabelled rows. Means over the data sets.\n"
    )
    yield "### First vote: before and now\n"
    rows = {
        "the previous eight families, Q from errors, 3": "before",
        "the same families, Q from the quadratic loss, 5": "before, quadratic loss",
        "**the present families**": "default",
    }
    table_rows = [_row(lines, title, _mixture(name)) for title, name in rows.items()]
    fresh = _fresh(lines)
    if fresh:
        title = "{}, the " + f"{len(fresh)} splits that nothing was chosen on"
        table_rows += [
            _row(fresh, title.format(name), _mixture(of))
            for name, of in (("previous", "before"), ("present", "default"))
        ]
    yield table(table_rows)
    yield "\n### Each family: alone, and what the vote loses without it\n"
    default = _means(lines, _mixture("default"))
    rows_of_families = []
    for name in FAMILIES:
        row = _row(lines, titles[name], _family(name, "accuracy"))
        lost = _means(lines, _mixture_or_default(f"without {name}"))
        row |= {f"lost without it, {k}": f"{default[k] - v:+.4f}" for k, v in lost.items()}
        rows_of_families.append(row | {SECONDS: _seconds(lines, name)})
    yield table(rows_of_families)
    yield (
        "\n*Lost without it*: accuracy of the vote of all families less that of all others; "
        "negative: the vote is better without it."
    )
    yield "\n### What was tried and is not in it\n"
    rows_of_others, gains = [], {}
    for name in (n for n in titles if n not in FAMILIES):
        row = _row(lines, titles[name], _family(name, "accuracy"))
        gained = _means(lines, _mixture_or_default(f"with {name}"))
        gains[name] = gained["mean"] - default["mean"]
        row |= {f"gained with it, {k}": f"{v - default[k]:+.4f}" for k, v in gained.items()}
        rows_of_others.append(row | {SECONDS: _seconds(lines, name)})
    yield table(rows_of_others)
    best = max(gains, key=gains.__getitem__)
    yield (
        f"\n{titles[best].capitalize()} would bring the most, {gains[best]:+.4f}. It was measured "
        "after the paper's splits had been used, so it is not taken in on these splits alone."
    )
    yield from _weights(lines)


SECONDS = "processor seconds, mean (largest)"


def _titles() -> dict[str, str]:
    from benchmarks.mixed_vote import CANDIDATES

    return {name: family.title for name, family in CANDIDATES.items()}


def _seconds(lines: list[Line], name: str) -> str:
    found = [x["families"][name]["cpu"] for x in lines if name in x["families"]]
    return f"{np.mean(found):.2f} ({np.max(found):.1f})"


def _weights(lines: list[Line]) -> Iterator[str]:
    yield "\n### Weights\n"
    rows = {
        "Gibbs, quadratic loss, 5 (default)": "default",
        "Gibbs, quadratic loss, 3": "Q loss 3",
        "Gibbs, quadratic loss, 4": "Q loss 4",
        "Gibbs, quadratic loss, 8": "Q loss 8",
        "Gibbs, errors, 3": "Q error 3",
        "Gibbs, errors, 6": "Q error 6",
        "stacking: least Brier score of the mixed vote": "Q stacked",
        "equal weights": "Q uniform",
    }
    yield table([_row(lines, title, _mixture(name)) for title, name in rows.items()])
    yield ""


def _rounds(lines: list[Line]) -> Iterator[str]:
    if not lines:
        return
    seeds = sorted({line["seed"] for line in lines})
    yield "### When is the round kept?\n"
    yield (
        "The vote after the round replaces the first one if it is clearly surer on the rows where "
        "labels change: its lead of the new labels over the old ones, summed over these rows, must "
        "be 1.2 times the lead that the first vote gave to the old ones. The rule was chosen on "
        f"the seeds 1000 and 1001; these are {len(lines)} splits of the seeds {seeds[0]} to "
        f"{seeds[-1]} (`python -m benchmarks.mixed_vote run`). Here the first vote is that of "
        "`FewLabelClassifier` itself; the tables above mix families that were trained one by one, "
        "with other random numbers.\n"
    )
    kinds = {"the round always": "after", "**by the rule** (default)": "final"}
    yield table(
        [
            _row(lines, "first vote", lambda x: x["first"]),
            *(_row(lines, title, lambda x, of=of: x[of]) for title, of in kinds.items()),
        ]
    )
    yield ""
    yield table([{"": title} | _gains(lines, of) for title, of in kinds.items()])
    dropped = sum(not line["kept"] for line in lines)
    yield (
        f"\nThe rule keeps the first vote on {dropped} of {len(lines)} splits. It cannot see every "
        "round that does harm: on a synthetic table with 1,000 labels [a round was surer, and a "
        "little worse](benchmarks.md), by less than the sampling error of so many held-out "
        "labels.\n"
    )


def _gains(lines: list[Line], of: str) -> dict[str, str]:
    """How often, and by how much, a vote differs from the first one."""
    gains = np.array([x[of] - x["first"] for x in lines])
    worst = lines[int(gains.argmin())]
    return {
        "better": str((gains > 0).sum()),
        "worse": str((gains < 0).sum()),
        "better by more than .005": str((gains > 0.005).sum()),
        "worse by more than .005": str((gains < -0.005).sum()),
        "best": f"{gains.max():+.4f}",
        "worst": f"{gains.min():+.4f} ({worst['dataset']}, {worst['per_class']} a class)",
    }


def _forests(lines: list[Line]) -> Iterator[str]:
    rows = []
    for dataset, n in sorted({(line["dataset"], line["per_class"]) for line in lines}):
        own = [line for line in lines if (line["dataset"], line["per_class"]) == (dataset, n)]
        known = [f for f in FAMILIES if all(f in line["families"] for line in own)]
        alone = {f: np.mean([x["families"][f]["accuracy"] for x in own]) for f in known}
        best = max(known, key=lambda f: alone[f])
        if best in FORESTS:
            rows.append(
                {
                    "data set": f"{dataset} ({len(own)} splits)",
                    "labels": f"{np.mean([line['labeled'] for line in own]):,.0f}",
                    "best family": f"{alone[best]:.4f} {FAMILIES[best].title}",
                    "previous vote": f"{np.mean([x['mixtures']['before'] for x in own]):.4f}",
                    "first vote": f"{np.mean([x['first'] for x in own]):.4f}",
                    "after the round": f"{np.mean([x['final'] for x in own]):.4f}",
                }
            )
    if rows:
        yield "### Where is a forest the best family?\n"
        yield (
            "All data sets and numbers of labels on which it turns out to be; this cannot be known "
            "beforehand.\n"
        )
        yield table(rows)
        yield ""


# --- cost ------------------------------------------------------------------------------------


def _cost(lines: list[Line]) -> Iterator[str]:
    if not lines:
        return
    yield "## How long does a fit take?\n"
    rows = [
        {
            "data set": MADE_TITLE if line["dataset"] == MADE else row_title(line["dataset"]),
            "rows": f"{line['rows']:,}",
            "previous vote": f"{line['before']['cpu']:.1f} s",
            "present vote": f"**{line['now']['cpu']:.1f} s**",
            "ratio": f"{line['now']['cpu'] / line['before']['cpu']:.2f}",
            "previous accuracy": number(line["before"]["accuracy"]),
            "present accuracy": f"**{number(line['now']['accuracy'])}**",
            "before its round": number(line["now"]["first"]),
            "left out": ", ".join(line["now"]["left_out"]) or "none",
        }
        for line in lines
    ]
    yield table(rows)
    yield (
        "\nProcessor seconds of `fit` at the defaults on the whole data set (one split, seed "
        f"{lines[0]['seed']}), one thread, both votes alternately in processes of their own; sets "
        "with few rows three times, of which this is the median. Seconds of a busy machine vary by "
        "a tenth from run to run.\n"
    )
