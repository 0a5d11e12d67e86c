"""docs/promise.md from the records of ``benchmarks.promise``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._page import table
from fewlabel._core.atomic import replaced

Record = dict[str, Any]
GOALS = (
    ("truth above the upper limit, all fits", "at most 4 %"),
    ("truth above the upper limit, worst data set", "at most 12 %"),
    ("bias of the estimate", "within ±.01"),
    ("mean distance at 10 labels a class", "at most .045"),
    ("width over Clopper-Pearson's", "at most 1"),
)

INTRO = """# Does the promise hold?

Made by `python -m benchmarks.promise page` from `results/promise.jsonl`; `python -m
benchmarks.promise run` measures anew.

After every fit `clf.error_` says about how many labels of the unlabelled rows are wrong, with 95 %
limits, and `clf.accept(max_error=0.05)` says which of them can be taken as they are. Here both are
compared with the truth, on {fits:,} fits: {sets} data sets, {seeds} random splits, {sizes} labels
a class, {bases} classifiers. The constants of the estimate were chosen on other splits.
"""


def write_page(records: list[Record], path: Path) -> None:
    """Write the page; an error if there is no record."""
    fits = [record for record in records if "truth" in record]
    if not fits:
        raise ValueError("There is no record: measure first (python -m benchmarks.promise run).")
    with replaced(path) as part:
        part.write_text(page(fits), encoding="utf-8")


def page(fits: list[Record]) -> str:
    """The page as Markdown."""
    sizes = sorted({f["per_class"] for f in fits})
    intro = INTRO.format(
        fits=len(fits),
        sets=len({f["data"] for f in fits}),
        seeds=len({f["seed"] for f in fits}),
        sizes=", ".join(map(str, sizes)),
        bases=len({f["base"] for f in fits}),
    )
    parts = [
        intro,
        "## Is the estimate right?\n\n" + table(_goals(fits)),
        "By classifier and labels a class:\n\n"
        + table(_grouped(fits, ("base", "per_class"), _estimate)),
        "By data set:\n\n" + table(_grouped(fits, ("data",), _estimate)),
        "*Above* and *below*: share of fits whose true error is above the upper or below the lower "
        "limit. *Distance*: mean absolute difference of estimate and truth; about as much is left "
        "if the labelled rows were a test set that no classifier has seen (*by chance*).",
        "## Which labels can be taken?\n\n"
        "Rows accepted for an error of 5 %, beside rows that became pseudo-labels by the "
        "thresholds of the paper, and a fixed vote of .95. *Wrong*: mean error of the rows taken, "
        "over fits that take any.",
        table(_grouped(fits, ("base", "per_class"), _accepted)),
        "## Is the confidence calibrated?\n\n"
        + table(_grouped(fits, ("base", "per_class"), _calibration)),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _above(fits: list[Record]) -> float:
    return float(np.mean([f["truth"] > f["high"] for f in fits]))


def _by(fits: list[Record], key: tuple[str, ...]) -> dict[tuple[Any, ...], list[Record]]:
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for fit in fits:
        groups.setdefault(tuple(fit[k] for k in key), []).append(fit)
    return groups


def _goals(fits: list[Record]) -> list[dict[str, Any]]:
    ten = [f for f in fits if f["per_class"] == 10] or fits
    ratio = np.mean([f["high"] - f["low"] for f in fits]) / np.mean(
        [f["clopper_pearson_width"] for f in fits]
    )
    found = (
        f"{100 * _above(fits):.1f} %",
        f"{100 * max(_above(group) for group in _by(fits, ('data',)).values()):.1f} %",
        f"{np.mean([f['value'] - f['truth'] for f in fits]):+.3f}",
        f"{_distance(ten):.3f} (by chance {_chance(ten):.3f})",
        f"{ratio:.2f}",
    )
    return [{"": what, "goal": goal, "found": value} for (what, goal), value in zip(GOALS, found)]


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
        "by chance": f"{_chance(fits):.3f}",
        "above": f"{100 * _above(fits):.1f} %",
        "below": f"{100 * np.mean([f['truth'] < f['low'] for f in fits]):.1f} %",
        "width": f"{np.mean([f['high'] - f['low'] for f in fits]):.3f}",
        "Clopper-Pearson": f"{np.mean([f['clopper_pearson_width'] for f in fits]):.3f}",
    }


def _accepted(fits: list[Record]) -> dict[str, Any]:
    row: dict[str, Any] = {"all wrong": f"{np.mean([f['truth'] for f in fits]):.3f}"}
    for way in ("accept", "pseudo-labelled", "vote .95"):
        taken = [f[way]["rows"] / f["unlabeled"] for f in fits]
        errors = np.array([f[way]["wrong"] / f[way]["rows"] for f in fits if f[way]["rows"]])
        row[f"{way}: rows"] = f"{100 * np.mean(taken):.0f} %"
        row[f"{way}: wrong"] = f"{errors.mean():.3f}" if len(errors) else "–"
        if way == "accept":
            row["accept: wrong over 8 %"] = f"{100 * np.sum(errors > 0.08) / len(fits):.1f} %"
    return row


def _calibration(fits: list[Record]) -> dict[str, Any]:
    return {
        "calibration error": f"{np.mean([f['calibration_error'] for f in fits]):.3f}",
        "Brier score": f"{np.mean([f['brier'] for f in fits]):.3f}",
    }


def _grouped(
    fits: list[Record], key: tuple[str, ...], summarise: Callable[[list[Record]], dict[str, Any]]
) -> list[dict[str, Any]]:
    names = {"base": "classifier", "per_class": "labels a class", "data": "data set"}
    return [
        {**{names[k]: value for k, value in zip(key, group)}, **summarise(members)}
        for group, members in sorted(_by(fits, key).items())
    ]
