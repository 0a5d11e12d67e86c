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
    params : dict
        The point of the grid that is shown, if there was a choice.
    limit : str
        The limit that was hit, if there is no value because of it.
    paper : Reported or None
    best, worse : bool
        Best mean of its row; significantly worse than that one.
    """

    values: tuple[float, ...] = ()
    params: tuple[tuple[str, Any], ...] = ()
    limit: str = ""
    paper: Reported | None = None
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
    complete = {params: found for params, found in points.items() if len(found) == most}
    params, found = max(complete.items(), key=lambda item: np.mean(_accuracies(item[1])))
    return Cell(tuple(_accuracies(found)), params if len(points) > 1 else (), "", paper)


def _accuracies(records: Iterable[Record]) -> list[float]:
    ordered = sorted(records, key=lambda record: record["trial"]["seed"])
    return [record["scores"]["accuracy"] for record in ordered]


def ranked(row: dict[str, Cell]) -> dict[str, Cell]:
    """Mark the best mean of a row and, by Mann-Whitney, what is significantly worse.

    Only cells with as many trials as any in the row are compared: means over a few splits and over
    all twenty are not of the same splits.
    """
    from scipy.stats import mannwhitneyu

    most = max(c.n for c in row.values())
    filled = {name: c for name, c in row.items() if c.n == most > 0}
    if len(filled) < 2:  # nothing to be better than
        return row
    top = max(c.mean for c in filled.values())
    best = next(c for c in filled.values() if c.mean == top)
    marked = dict(row)
    for name, c in filled.items():
        p = mannwhitneyu(c.values, best.values).pvalue if c.n > 1 and best.n > 1 else 1.0
        # Compared as they are printed: two cells that show one number are both best.
        is_best = round(c.mean, 3) == round(top, 3)
        marked[name] = replace(c, best=is_best, worse=bool(p < LEVEL))
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
