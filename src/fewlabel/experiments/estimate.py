"""How long the rest of a run will take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean
from typing import Any

from fewlabel.experiments.records import Record
from fewlabel.experiments.spec import Trial


def seconds_left(todo: Iterable[Trial], records: list[Record], jobs: int) -> float | None:
    """Estimated wall time of the trials without a record, or None if nothing is known yet.

    A trial is expected to take as long as those of its method on its data set did; failing that,
    those on its data set; failing that, all.
    """
    known = {record["key"] for record in records}
    times: dict[Any, list[float]] = defaultdict(list)
    for record in records:
        trial = record["trial"]
        for group in ((trial["dataset"], trial["method"]), trial["dataset"], None):
            times[group].append(record["total_seconds"])
    if not times:
        return None
    means = {group: fmean(values) for group, values in times.items()}
    expected = [
        means.get((trial.dataset, trial.method), means.get(trial.dataset, means[None]))
        for trial in todo
        if trial.key not in known
    ]
    return sum(expected) / jobs
