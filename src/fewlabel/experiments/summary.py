"""From records to cells: means, deviations, the best of a row and what is worse than it."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fewlabel.experiments.paper_values import N_TRIALS, Reported
from fewlabel.experiments.records import MEMORY_LIMIT, OK, TIME_LIMIT, Record
from fewlabel.experiments.spec import Trial

LEVEL = 0.01
"""Level of the Mann-Whitney test, as in the paper."""

COMPARED = 5
"""Fewer trials than this are not compared with the rest of their row, if others have them."""

FAR = 2.0
"""A cell further than this many standard errors from the paper's is discussed."""

LIMITS = {TIME_LIMIT: ("seconds", "s"), MEMORY_LIMIT: ("memory_mib", "MiB")}


@dataclass(frozen=True)
class Cell:
    """One cell of Table 2 or 3.

    Attributes
    ----------
    values : tuple of float
        One score for each trial, in the order of the seeds.
    seeds : tuple of int
        Of these trials.
    params : dict
        The point of the grid that is shown, if there was a choice.
    limit : str
        The limit that was hit, if there is no value because of it.
    paper : Reported or None
    note : str
        In which way its setting is not the paper's.
    best, worse : bool
        Best mean of its row; significantly worse than that one.
    """

    values: tuple[float, ...] = ()
    seeds: tuple[int, ...] = ()
    params: tuple[tuple[str, Any], ...] = ()
    limit: str = ""
    paper: Reported | None = None
    note: str = ""
    best: bool = False
    worse: bool = False

    @property
    def n(self) -> int:
        """Number of trials behind the cell."""
        return len(self.values)

    @property
    def mean(self) -> float:
        """Mean over the trials."""
        return float(np.mean(self.values))

    @property
    def std(self) -> float:
        """Deviation with the divisor n; the paper does not say which it used."""
        return float(np.std(self.values))

    @property
    def distance(self) -> float | None:
        """Ours minus the paper's mean, in standard errors of that difference."""
        if self.paper is None or self.n < 2:
            return None
        variance = self.std**2 / (self.n - 1) + self.paper.std**2 / (N_TRIALS - 1)
        return (self.mean - self.paper.mean) / math.sqrt(variance) if variance else None

    @property
    def far(self) -> bool:
        """Whether the distance needs an explanation."""
        return self.distance is not None and abs(self.distance) > FAR


def cell(
    trials: Iterable[Trial], records: dict[str, Record], paper: Reported | None = None
) -> Cell:
    """The cell that the records of some trials make; the best point of the grid is shown."""
    points: dict[Any, list[Record]] = defaultdict(list)
    limits: set[str] = set()
    for trial in trials:
        record = records.get(trial.key)
        if record is None:
            continue
        if record["status"] == OK:
            points[trial.params].append(record)
        elif record["status"] in LIMITS:
            name, unit = LIMITS[record["status"]]
            limits.add(f"over {record['limits'][name]:g} {unit}")
    if not points:
        return Cell(limit=", ".join(sorted(limits)), paper=paper)
    # A point that ran on more splits is not beaten by one that had a few easy ones.
    most = max(map(len, points.values()))
    complete = {params: _by_seed(found) for params, found in points.items() if len(found) == most}
    params, scores = max(complete.items(), key=lambda item: np.mean(list(item[1].values())))
    shown = params if len(points) > 1 else ()
    return Cell(tuple(scores.values()), tuple(scores), shown, paper=paper)


def _by_seed(records: Iterable[Record]) -> dict[int, float]:
    scores = {record["trial"]["seed"]: record["scores"]["accuracy"] for record in records}
    return dict(sorted(scores.items()))


def ranked(row: dict[str, Cell]) -> dict[str, Cell]:
    """Mark the best mean of a row and, by Mann-Whitney, what is significantly worse.

    Cells are compared on the splits that all of them have: means over a few splits and over all
    twenty are not of the same splits. Cells with fewer than ``COMPARED`` splits stay out.
    """
    from scipy.stats import mannwhitneyu

    enough = min(COMPARED, max(c.n for c in row.values()))
    filled = {name: c for name, c in row.items() if c.n >= enough > 0}
    shared = set.intersection(*(set(c.seeds) for c in filled.values())) if filled else set()
    if len(filled) < 2 or not shared:  # nothing to be better than
        return row
    scores = {
        name: [value for seed, value in zip(c.seeds, c.values, strict=True) if seed in shared]
        for name, c in filled.items()
    }
    means = {name: float(np.mean(values)) for name, values in scores.items()}
    best = max(means, key=lambda name: means[name])
    marked = dict(row)
    for name, values in scores.items():
        p = mannwhitneyu(values, scores[best]).pvalue if len(shared) > 1 else 1.0
        # Compared as they are printed: two cells that show one number are both best.
        is_best = round(means[name], 3) == round(means[best], 3)
        marked[name] = replace(row[name], best=is_best, worse=bool(p < LEVEL))
    return marked


def by_key(records: Iterable[Record]) -> dict[str, Record]:
    """Records by the key of their trial."""
    return {record["key"]: record for record in records}


def trials_text(cells: Iterable[Cell]) -> str:
    """ "20 trials", or "5 to 20 trials" where cells differ."""
    counts = sorted({c.n for c in cells if c.n})
    if not counts:
        return "no trials"
    if len(counts) == 1:
        return f"{counts[0]} trial{'s' * (counts[0] > 1)}"
    return f"{counts[0]} to {counts[-1]} trials"


def params_text(params: Iterable[tuple[str, Any]]) -> str:
    """Hyperparameters in few characters."""
    return ", ".join(f"{name}={json.dumps(value)}" for name, value in params)
