"""How long the rest of a run will take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

from reproduction.records import ERROR, Record
from reproduction.spec import Trial, trial_from


def seconds_left(ahead: Sequence[Trial], records: Iterable[Record], jobs: int) -> float | None:
    """Estimated wall time of the trials ahead, or None if nothing is known yet.

    A trial is expected to take as long as those of its method on as many rows of its data set, with
    as many trees, did; failing that, those of any method there; failing that, on any number of its
    rows; failing that, all. Trials that failed do not count: most fail early.

    Parameters
    ----------
    ahead : sequence of Trial
        All that have still to run, also those that have a record of an earlier run.
    records : iterable of dict
    jobs : int
        Trials at a time.
    """
    times: dict[Any, list[float]] = defaultdict(list)
    for record in records:
        if record["status"] != ERROR:
            for group in _groups(trial_from(record["trial"])):
                times[group].append(record["total_seconds"])
    if ahead and not times:
        return None
    means = {group: fmean(values) for group, values in times.items()}
    expected = [next(means[group] for group in _groups(trial) if group in means) for trial in ahead]
    return sum(expected) / jobs


def _groups(trial: Trial) -> list[tuple[Any, ...]]:
    """Trials that are like this one, the most alike first."""
    size = (trial.dataset, trial.n_rows)
    return [(*size, trial.n_trees, trial.method), size, (trial.dataset,), ()]
