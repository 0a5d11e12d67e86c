"""The simulation's table and picture of docs/labeling.md, from the records."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression

from benchmarks._page import put, table

PICTURE = Path("docs/images/labeling.svg")
REFERENCE = "chance"
SHOWN_AT = (3, 5, 10, 20)
OURS = "fewlabel, every fourth row at random"  # what the page does
MEASURES = ("table", "predicted", "new rows")
"""Shares of right labels that are counted: in the whole table that is labelled, given labels among
them; among the labels that were predicted; of rows that nobody may ask for. The first is what
somebody with a table gets, and counts the same rows for every strategy; it is the headline."""

Curves = dict[tuple[str, str], tuple[NDArray[Any], NDArray[Any]]]


def curves(records: list[dict[str, Any]], measure: str = MEASURES[0]) -> Curves:
    """For each set and strategy: labels a class, and share of right labels, the mean over seeds.

    Only seeds for which every strategy has a session on the set are counted, so that all are
    compared on the same rows. Smoothed: the share does not fall with more labels.
    """
    place = MEASURES.index(measure)
    strategies = {r["strategy"] for r in records}
    by: dict[tuple[str, int], dict[str, dict[str, Any]]] = defaultdict(dict)
    for record in records:
        by[record["set"], record["seed"]][record["strategy"]] = record
    found: dict[tuple[str, str], list[dict[float, float]]] = defaultdict(list)
    for (name, _), sessions in by.items():
        if set(sessions) != strategies:
            continue
        for strategy, record in sessions.items():
            points = {
                n / record["n_classes"]: shares[place]
                for n, shares in record["curve"]
                if shares is not None
            }
            found[name, strategy].append(points)
    return {key: _smoothed(points) for key, points in found.items()}


def _counted(records: list[dict[str, Any]]) -> tuple[int, int]:
    """Samples on which every strategy was tried, and their sessions."""
    strategies = {r["strategy"] for r in records}
    by: dict[tuple[str, int], set[str]] = defaultdict(set)
    for r in records:
        by[r["set"], r["seed"]].add(r["strategy"])
    whole = sum(found == strategies for found in by.values())
    return whole, whole * len(strategies)


def _smoothed(sessions: list[dict[float, float]]) -> tuple[NDArray[Any], NDArray[Any]]:
    x = np.array(sorted(set.intersection(*(set(points) for points in sessions))))
    mean = np.array([np.mean([points[n] for points in sessions]) for n in x])
    return x, IsotonicRegression().fit_transform(np.log(x), mean)


def labels_needed(curve: tuple[NDArray[Any], NDArray[Any]], goal: float) -> float:
    """Labels a class for a share, between batches along the logarithm; inf if never."""
    x, y = curve
    if y[-1] < goal:
        return float("inf")
    first = int(np.argmax(y >= goal))
    if first == 0:
        return float(x[0])
    share = (goal - y[first - 1]) / (y[first] - y[first - 1])
    return float(np.exp(np.log(x[first - 1]) + share * np.log(x[first] / x[first - 1])))


def summary(records: list[dict[str, Any]], measure: str = MEASURES[0]) -> list[dict[str, Any]]:
    """For each strategy: labels needed beside chance, and right labels; the best first."""
    found = curves(records, measure)
    names = sorted({name for name, _ in found})
    rows = []
    for strategy in dict.fromkeys(r["strategy"] for r in records):
        ratios, shares = {}, []
        for name in names:
            x, y = found[name, REFERENCE]
            # The smoothed curve of chance may be flat at its end: it needs its last batch.
            needed = labels_needed(found[name, strategy], float(y[-1])) / x[-1]
            ratios[name] = 1.0 if strategy == REFERENCE else min(needed, 1.0)
            own = found[name, strategy]
            shares.append([np.interp(np.log(n), np.log(own[0]), own[1]) for n in SHOWN_AT])
        worst = max(ratios, key=lambda name: ratios[name])
        rows.append(
            {
                "strategy": strategy,
                "ratio": float(np.mean(list(ratios.values()))),
                "worst": ratios[worst],
                "worst set": worst,
                "shares": np.mean(shares, axis=0),
                "ratios": ratios,
            }
        )
    return sorted(rows, key=lambda row: row["ratio"])


def tables(records: list[dict[str, Any]]) -> str:
    """The tables, and what they count."""
    if not records:
        return ""
    by_measure = {measure: summary(records, measure) for measure in MEASURES}
    found = by_measure[MEASURES[0]]
    sets = sorted(found[0]["ratios"])
    samples, sessions = _counted(records)
    columns = {row["strategy"]: row["ratios"] for row in found}
    lines = [
        f"{len(sets)} data sets, {samples} sample{'' if samples == 1 else 's'} of them, "
        f"{sessions} sessions." + _caution(samples, len(sets)) + _late(records),
        "",
        table([_summary_row(row["strategy"], by_measure) for row in found]),
        "",
        "Right labels in the table (mean over the sets):",
        "",
        table([_shares_row(row) for row in found]),
        "",
        "Labels needed for the table on each set (1: as many as chance, or more):",
        "",
        table([{"data set": n, **{s: f"{columns[s][n]:.2f}" for s in columns}} for n in sets]),
    ]
    return "\n".join(lines)


def _summary_row(strategy: str, by_measure: dict[str, list[dict[str, Any]]]) -> dict[str, str]:
    """Labels needed by each measure, with the worst set."""
    cells = {"rows chosen by": _bold(strategy, strategy)}
    for measure, rows in by_measure.items():
        row = next(row for row in rows if row["strategy"] == strategy)
        cells[measure] = _bold(strategy, f"{row['ratio']:.2f}")
        cells[f"{measure}, worst set"] = f"{row['worst']:.2f} ({row['worst set']})"
    return cells


def _shares_row(row: dict[str, Any]) -> dict[str, str]:
    """Right labels after some numbers of labels."""
    values = {f"{n} a class": f"{value:.3f}" for n, value in zip(SHOWN_AT, row["shares"])}
    return {"rows chosen by": _bold(row["strategy"], row["strategy"]), **values}


def _caution(samples: int, sets: int) -> str:
    if samples > sets:
        return ""
    return " One sample of each: differences of a few hundredths between strategies are chance."


def _late(records: list[dict[str, Any]]) -> str:
    """Where nothing could be learned from the first batches."""
    late = sorted({r["set"] for r in records if any(shares is None for _, shares in r["curve"])})
    if not late:
        return ""
    return (
        f" Some strategies had found one class only in their first batches ({', '.join(late)}): "
        f"what they reached after these stands for them, which flatters them, and their lines "
        f"in the picture begin later."
    )


def _bold(strategy: str, text: str) -> str:
    return f"**{text}**" if strategy == OURS else text


def draw(records: list[dict[str, Any]], path: Path) -> None:
    """Right labels in the table, the mean over the sets, against labels a class."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    found = curves(records)
    names = sorted({name for name, _ in found})
    order = [row["strategy"] for row in summary(records)]
    settings = {"svg.hashsalt": "fewlabel", "svg.fonttype": "none", "font.size": 11}
    with mpl.rc_context(settings):
        figure, axes = plt.subplots(figsize=(7.2, 4.4))
        for place, strategy in enumerate(order):
            x = np.array(sorted(set.intersection(*(set(found[n, strategy][0]) for n in names))))
            y = np.mean(
                [np.interp(np.log(x), np.log(found[n, strategy][0]), found[n, strategy][1])
                 for n in names], axis=0,
            )  # fmt: skip
            own = strategy == OURS
            axes.plot(
                x, y, label=strategy, color="#0d7a70" if own else f"C{place + 1}",
                linewidth=2.6 if own else 1.3, linestyle="--" if strategy == REFERENCE else "-",
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_xticks([1, 2, 3, 5, 10, 20], ["1", "2", "3", "5", "10", "20"])
        axes.minorticks_off()
        axes.set_xlabel("labels a class")
        axes.set_ylabel("right labels in the table")
        axes.grid(alpha=0.25)
        axes.legend(frameon=False, fontsize=9)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", bbox_inches="tight", metadata={"Date": None})
        plt.close(figure)


def write_page(records: list[dict[str, Any]], path: Path) -> None:
    """Write the tables and the picture."""
    if not records:
        raise ValueError("There are no records of sessions. Run 'make labeling-run' first.")
    picture = f"![Right labels in the table against labels a class](images/{PICTURE.name})"
    put(path, "simulation", f"{tables(records)}\n\n{picture}")
    draw(records, PICTURE)
