"""From records to cells: means, deviations, the best of a row and what is worse than it."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reproduction.paper_values import N_TRIALS, Reported
from reproduction.records import MEMORY_LIMIT, OK, TIME_LIMIT, Record
from reproduction.spec import Trial

LEVEL = 0.01
"""Level of the Mann-Whitney test, as in the paper."""

COMPARED = 5
"""Fewer trials than this are not compared with the rest of their row, if others have them."""

FAR = 2.0
"""A cell further than this many standard errors from the paper's is discussed."""


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
    limited : int
        Trials that hit a limit and have no score.
    limit : str
        That limit.
    paper : Reported or None
    note : str
        In which way its setting is not the paper's.
    test_values : tuple of float
        Scores on the extra test part, if there was one.
    best, worse, better : bool
        Best mean of its row; significantly worse than that one, or better (if it stands outside).
    """

    values: tuple[float, ...] = ()
    seeds: tuple[int, ...] = ()
    params: tuple[tuple[str, Any], ...] = ()
    limited: int = 0
    limit: str = ""
    paper: Reported | None = None
    note: str = ""
    test_values: tuple[float, ...] = ()
    best: bool = False
    worse: bool = False
    better: bool = False

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
        """Ours minus the paper's mean, in standard errors of that difference.

        A single trial has no deviation of its own; it is given that of the paper's trials.
        """
        if self.paper is None or not self.n:
            return None
        papers = self.paper.std**2 / (N_TRIALS - 1)
        ours = self.std**2 / (self.n - 1) if self.n > 1 else N_TRIALS * papers
        variance = ours + papers
        return (self.mean - self.paper.mean) / math.sqrt(variance) if variance else None

    @property
    def far(self) -> bool:
        """Whether the distance needs an explanation."""
        return self.distance is not None and abs(self.distance) > FAR


def cell(
    trials: Iterable[Trial], records: dict[str, Record], paper: Reported | None = None
) -> Cell:
    """The cell that the records of some trials make; the best point of the grid is shown."""
    wanted = [(trial, records[trial.key]) for trial in trials if trial.key in records]
    limited, limit = limits_hit(record for _, record in wanted)
    points: dict[Any, list[Record]] = defaultdict(list)
    for trial, record in wanted:
        if record["status"] == OK:
            points[trial.params].append(record)
    if not points:
        return Cell(limited=limited, limit=limit, paper=paper)
    # A point that ran on more splits is not beaten by one that had a few easy ones.
    most = max(map(len, points.values()))
    complete = {params: made for params, made in points.items() if len(made) == most}
    params, made = max(complete.items(), key=lambda item: np.mean(_scores(item[1], "accuracy")))
    made = sorted(made, key=lambda record: record["trial"]["seed"])
    return Cell(
        _scores(made, "accuracy"),
        tuple(record["trial"]["seed"] for record in made),
        params if len(points) > 1 else (),
        limited,
        limit,
        paper,
        test_values=_scores(made, "test_accuracy"),
    )


def limits_hit(records: Iterable[Record]) -> tuple[int, str]:
    """How many trials hit a limit, and which: "over 4.0 h"."""
    hit = [record for record in records if record["status"] in _LIMITS]
    texts = {_LIMITS[r["status"]](r["limits"]) for r in hit}
    return len(hit), ", ".join(sorted(texts))


def duration(seconds: float) -> str:
    """A time as in the paper's Table 4: 0.4 s, 12 s, 3 m, 2 h."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} m"
    return f"{seconds / 3600:.1f} h"


_LIMITS: dict[str, Callable[[dict[str, float]], str]] = {
    TIME_LIMIT: lambda limits: f"over {duration(limits['seconds'])}",
    MEMORY_LIMIT: lambda limits: f"over {limits['memory_mib']:,.0f} MiB",
}


def _scores(records: Iterable[Record], name: str) -> tuple[float, ...]:
    return tuple(r["scores"][name] for r in records if name in r["scores"])


def ranked(row: dict[str, Cell], outside: Collection[str] = ()) -> dict[str, Cell]:
    """Mark the best mean of a row and, by Mann-Whitney, what is significantly worse.

    Cells are compared on the splits that all of them have: means over a few splits and over all
    twenty are not of the same splits. Cells with fewer than ``COMPARED`` splits stay out. Columns
    ``outside`` are compared with the best of the others and leave their marks alone.
    """
    inside = {name: c for name, c in row.items() if name not in outside}
    enough = min(COMPARED, max((c.n for c in inside.values()), default=0))
    rivals = {name: c for name, c in inside.items() if c.n >= enough > 0}
    shared = set.intersection(*(set(c.seeds) for c in rivals.values())) if rivals else set()
    if not shared:
        return row
    means = {name: float(np.mean(_on(c, shared))) for name, c in rivals.items()}
    best = max(means, key=lambda name: means[name])
    marked = dict(row)
    for name, c in rivals.items():
        if len(rivals) > 1:  # else there is nothing to be better than
            # Compared as they are printed: two cells that show one number are both best.
            is_best = round(means[name], 3) == round(means[best], 3)
            worse = _differ(_on(c, shared), _on(rivals[best], shared))
            marked[name] = replace(c, best=is_best, worse=worse)
    for name in outside:
        common = shared & set(row[name].seeds)
        ours, theirs = _on(row[name], common), _on(rivals[best], common)
        if len(common) >= enough and _differ(ours, theirs):
            above = float(np.mean(ours)) > float(np.mean(theirs))
            marked[name] = replace(row[name], better=above, worse=not above)
    return marked


def _on(c: Cell, seeds: Collection[int]) -> list[float]:
    """Scores of a cell on some splits."""
    return [value for seed, value in zip(c.seeds, c.values, strict=True) if seed in seeds]


def _differ(values: list[float], others: list[float]) -> bool:
    from scipy.stats import mannwhitneyu

    return len(values) > 1 and bool(mannwhitneyu(values, others).pvalue < LEVEL)


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
