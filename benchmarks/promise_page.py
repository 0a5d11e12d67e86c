"""docs/promise.md from the records of ``benchmarks.promise``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import promise_data as data
from benchmarks._page import table
from fewlabel._core.atomic import replaced

Record = dict[str, Any]
GOALS = (
    ("truth outside the 95 % limits", "about 5 %"),
    ("truth above the upper limit", "at most 4 %"),
    ("truth above the upper limit, worst data set", "at most 12 %"),
    ("bias of the estimate", "within ±.01"),
    ("mean distance at 10 labels a class", "at most .045"),
    ("width over Clopper-Pearson's", "at most 1"),
)

INTRO = """# Is the estimate of the error right?

{result}

`clf.error_` says about how many labels are wrong, with 95 % limits; `clf.accept(max_error=0.05)`
says which of them can be taken as they are. Here both are compared with the truth on {fits:,} fits
with random labels: {sets} data sets ({synthetic} of them synthetic and hard), {sizes} labels a
class, {bases} classifiers, at most {rows:,} unlabelled rows. {seeds} The constants of the estimate
were chosen on other splits (seeds below 4000, `python -m benchmarks.promise_study`).{left}

Made by `make promise` from `results/promise.jsonl`; `make promise-run` measures what has no record.
*Mixed vote* is `FewLabelClassifier()`, *forest* is `SelfLearningClassifier()`; the others are
`SelfLearningClassifier` around another classifier.
"""

LEFT = """

**The run is not complete:** {planned:,} fits on {splits} splits are planned."""
OURS = "mixed vote"

OUTSIDE = (
    "*Above* and *below*: share of fits whose true error is above the upper or below the lower "
    "limit. *Distance*: mean absolute difference of estimate and truth; *of a test set*: that of "
    "a test set of as many rows as are labelled. *TB above*: share of fits whose true error is "
    "above the paper's bound (`risk_bound_`), which assumes that the calibrated probabilities are "
    "true."
)

PER_CLASS = (
    "`error_.per_class` says how many labels of a class are wrong, `error_.prevalence` how large "
    "its share of the unlabelled rows is. Counted are all classes of all fits."
)

STRATIFIED = (
    'As many labels of each class, whatever its share: the same fits, with `labels="per class"` '
    "and without it."
)

ACCEPT = (
    "Rows accepted for an error of 5 %, beside rows above the paper's thresholds and above a fixed "
    "vote of .95. *Wrong*: mean error of the rows taken. *Over 8 %*: share of fits that take rows "
    "of which more than 8 % are wrong."
)


def write_page(records: list[Record], path: Path) -> None:
    """Write the page; an error if there is no record."""
    fits = [record for record in records if "truth" in record]
    if not fits:
        raise ValueError("There is no record: measure first (python -m benchmarks.promise run).")
    with replaced(path) as part:
        part.write_text(page(fits), encoding="utf-8")


def page(records: list[Record]) -> str:
    """The page as Markdown."""
    fits = [record for record in records if record["draw"] == "random"]
    stratified = [record for record in records if record["draw"] == "per class"]
    seeds = sorted({f["seed"] for f in fits})
    intro = INTRO.format(
        result=_result(fits),
        fits=len(fits),
        sets=len({f["data"] for f in fits}),
        synthetic=len({f["data"] for f in fits} & set(data.SYNTHETIC)),
        seeds=_splits(fits),
        sizes=", ".join(map(str, sorted({f["per_class"] for f in fits}))),
        bases=len({f["base"] for f in fits}),
        rows=data.MAX_UNLABELED,
        left=_left(len(seeds), len({(f["seed"], f["base"]) for f in fits})),
    )
    by_size = ("base", "per_class")
    parts = [
        intro,
        "## Does it meet its goals?\n\n" + table(_goals(fits)),
        "By classifier and labels a class:\n\n" + table(_grouped(fits, by_size, _estimate)),
        "By data set:\n\n" + table(_grouped(fits, ("data",), _estimate)),
        OUTSIDE,
        "## Is it right for each class?\n\n" + PER_CLASS,
        table(_grouped(fits, ("base",), _classes)),
        *_stratified(stratified),
        "## Which labels can be taken?\n\n" + ACCEPT,
        table(_grouped(fits, by_size, _accepted)),
        "## Is the confidence calibrated, and what does it cost?\n\nMeans; processor seconds of "
        "the fit and of the statement of error, which is made when somebody asks for it.",
        table(_grouped(fits, ("base",), _calibration_and_cost)),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _result(fits: list[Record]) -> str:
    """How often the limits hold, in two sentences."""
    own = [fit for fit in fits if fit["base"] == OURS]
    if not own:
        return ""
    return (
        f"Of {len(own):,} fits of `FewLabelClassifier` {_percent(_above(own))} had more wrong "
        f"labels than the upper limit says, {_percent(_below(own))} fewer than the lower one; the "
        f"estimate was off by {_distance(own):.3f} on average, where {_chance(own):.3f} is chance "
        f"alone. Of all {len(fits):,} fits it was {_percent(_above(fits))} and "
        f"{_percent(_below(fits))}."
    )


def _splits(fits: list[Record]) -> str:
    """How many splits stand behind each classifier."""
    by_count: dict[int, list[str]] = {}
    for (base,), own in sorted(_by(fits, ("base",)).items()):
        by_count.setdefault(len({f["seed"] for f in own}), []).append(base)
    counts = [f"{n} for {', '.join(bases)}" for n, bases in sorted(by_count.items(), reverse=True)]
    each = "; ".join(counts) if len(counts) > 1 else f"{next(iter(by_count))} for each classifier"
    first, last = (pick(f["seed"] for f in fits) for pick in (min, max))
    return f"Splits of each data set (seeds {first} to {last}): {each}."


def _left(n_seeds: int, n_runs: int) -> str:
    """A word of caution while splits or classifiers are missing."""
    if n_seeds >= len(data.SEEDS) and n_runs >= len(data.SEEDS) * len(data.BASES):
        return ""
    planned = len(data.NAMES) * len(data.PER_CLASS) * len(data.SEEDS) * len(data.BASES)
    return LEFT.format(planned=planned, splits=len(data.SEEDS))


def _stratified(records: list[Record]) -> list[str]:
    if not records:
        return []
    rows = []
    for (base, per_class), fits in sorted(_by(records, ("base", "per_class")).items()):
        row = {"classifier": base, "labels a class": per_class, "fits": len(fits)}
        row["truth"] = f"{np.mean([f['truth'] for f in fits]):.3f}"
        for name, stated in (("per class", fits), ("random", [f["as random"] for f in fits])):
            row[f"{name}: estimate"] = f"{np.mean([f['value'] for f in stated]):.3f}"
            row[f"{name}: distance"] = f"{_distance(stated):.3f}"
            row[f"{name}: above"] = _percent(_above(stated))
            shares = _outside(stated, "prevalence")
            row[f"{name}: shares outside"] = shares
        rows.append(row)
    above = [_percent(_above(part)) for part in (records, [f["as random"] for f in records])]
    text = (
        f"{STRATIFIED} Over all {len(records):,} fits the truth is above the upper limit in "
        f'{above[0]} with `labels="per class"`, in {above[1]} without. *Shares outside*: classes '
        f"whose share of the unlabelled rows is outside its limits."
    )
    return [f"## And if some of each class were labelled?\n\n{text}", table(rows)]


def _above(fits: list[Record]) -> float:
    return float(np.mean([f["truth"] > f["high"] for f in fits]))


def _below(fits: list[Record]) -> float:
    return float(np.mean([f["truth"] < f["low"] for f in fits]))


def _by(fits: list[Record], key: tuple[str, ...]) -> dict[tuple[Any, ...], list[Record]]:
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for fit in fits:
        groups.setdefault(tuple(fit[k] for k in key), []).append(fit)
    return groups


def _goals(fits: list[Record]) -> list[dict[str, Any]]:
    groups = {"all": fits, OURS: [fit for fit in fits if fit["base"] == OURS]}
    columns = {name: _found(group) for name, group in groups.items() if group}
    return [
        {"": what, "goal": goal, **{name: found[i] for name, found in columns.items()}}
        for i, (what, goal) in enumerate(GOALS)
    ]


def _found(fits: list[Record]) -> tuple[str, ...]:
    """What was found, in the order of the goals."""
    ten = [f for f in fits if f["per_class"] == 10] or fits
    ratio = np.mean([f["high"] - f["low"] for f in fits]) / np.mean(
        [f["clopper_pearson_width"] for f in fits]
    )
    return (
        _percent(_above(fits) + _below(fits)),
        _percent(_above(fits)),
        _percent(max(_above(group) for group in _by(fits, ("data",)).values())),
        f"{np.mean([f['value'] - f['truth'] for f in fits]):+.3f}",
        f"{_distance(ten):.3f} (of a test set {_chance(ten):.3f})",
        f"{ratio:.2f}",
    )


def _distance(fits: list[Record]) -> float:
    return float(np.mean([abs(f["value"] - f["truth"]) for f in fits]))


def _chance(fits: list[Record]) -> float:
    """Mean absolute deviation of a share of the labelled rows, in the normal approximation."""
    variance = [f["truth"] * (1 - f["truth"]) / f["labeled"] for f in fits]
    return float(np.mean(np.sqrt(2 / np.pi * np.array(variance))))


def _estimate(fits: list[Record]) -> dict[str, Any]:
    return {
        "fits": len(fits),
        "truth": f"{np.mean([f['truth'] for f in fits]):.3f}",
        "estimate": f"{np.mean([f['value'] for f in fits]):.3f}",
        "distance": f"{_distance(fits):.3f}",
        "of a test set": f"{_chance(fits):.3f}",
        "above": _percent(_above(fits)),
        "below": _percent(_below(fits)),
        "width": f"{np.mean([f['high'] - f['low'] for f in fits]):.3f}",
        "Clopper-Pearson": f"{np.mean([f['clopper_pearson_width'] for f in fits]):.3f}",
        "TB above": _percent(np.mean([f["truth"] > f["bound"] for f in fits])),
    }


def _percent(share: Any) -> str:
    return f"{100 * share:.1f} %"


def _outside(fits: list[Record], what: str) -> str:
    counts = [f[what] for f in fits]
    return _percent(sum(c["above"] + c["below"] for c in counts) / sum(c["n"] for c in counts))


def _classes(fits: list[Record]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for what, name in (("classes", "wrong labels"), ("prevalence", "share")):
        total = {k: sum(f[what][k] for f in fits) for k in fits[0][what]}
        row |= {
            f"{name}: classes": f"{total['n']:,}",
            f"{name}: above": _percent(total["above"] / total["n"]),
            f"{name}: below": _percent(total["below"] / total["n"]),
            f"{name}: distance": f"{total['distance'] / total['n']:.3f}",
            f"{name}: width": f"{total['width'] / total['n']:.3f}",
        }
    return row


def _accepted(fits: list[Record]) -> dict[str, Any]:
    row: dict[str, Any] = {"all wrong": f"{np.mean([f['truth'] for f in fits]):.3f}"}
    for way in ("accept", "paper", "vote .95"):
        taken = [f[way]["rows"] / f["unlabeled"] for f in fits]
        errors = np.array([f[way]["wrong"] / f[way]["rows"] for f in fits if f[way]["rows"]])
        row[f"{way}: rows"] = f"{100 * np.mean(taken):.0f} %"
        row[f"{way}: wrong"] = f"{errors.mean():.3f}" if len(errors) else "–"
        row[f"{way}: over 8 %"] = _percent(np.sum(errors > 0.08) / len(fits))
    return row


def _calibration_and_cost(fits: list[Record]) -> dict[str, Any]:
    return {
        "calibration error": f"{np.mean([f['calibration_error'] for f in fits]):.3f}",
        "Brier score": f"{np.mean([f['brier'] for f in fits]):.3f}",
        "fit": f"{np.mean([f['seconds'] for f in fits]):.2f}",
        "statement": f"{np.mean([f['assess_seconds'] for f in fits]):.2f}",
    }


def _grouped(
    fits: list[Record], key: tuple[str, ...], summarise: Callable[[list[Record]], dict[str, Any]]
) -> list[dict[str, Any]]:
    names = {"base": "classifier", "per_class": "labels a class", "data": "data set"}
    return [
        {**{names[k]: value for k, value in zip(key, group)}, **summarise(members)}
        for group, members in sorted(_by(fits, key).items())
    ]
