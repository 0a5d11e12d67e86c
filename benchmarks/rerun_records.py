"""Do the recorded scores come out again? ``python -m benchmarks.rerun_records --data DIR``

Runs a sample of the records in ``results/`` again, of as many methods and data sets as there are,
each of which took at most ``--seconds``, and compares the scores exactly. Exits with 1 if one of
them differs.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import warnings
from collections import defaultdict
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from benchmarks._page import records
from reproduction.measure import measure
from reproduction.records import OK, Record
from reproduction.spec import trial_from

FILES = ("records.jsonl", "baselines.jsonl")


def sample(found: list[Record], n: int, seconds: float, seed: int) -> list[Record]:
    """Records to run again: in turns from every method, and there from other data sets first."""
    rng = random.Random(seed)
    groups: dict[str, dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in found:
        if record["status"] == OK and record["total_seconds"] <= seconds:
            trial = record["trial"]
            setting = f"{trial['dataset']} {trial.get('label_proba')}"
            groups[trial["method"]][setting].append(record)
    turns = []
    for settings in groups.values():
        chosen = [rng.choice(group) for group in settings.values()]
        rng.shuffle(chosen)
        turns.append(chosen)
    return [r for r in chain.from_iterable(zip_longest(*turns)) if r is not None][:n]


def differences(record: Record, answer: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Scores that are not the same: recorded and now."""
    old, new = record["scores"], answer["scores"]
    return {
        name: (old.get(name), new.get(name))
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rerun_records", description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with NAME.npz (default: FEWLABEL_DATA)")
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("-n", type=int, default=60, help="how many records")
    parser.add_argument("--seconds", type=float, default=10.0, help="that a record may have taken")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    options = parser.parse_args()
    found = [record for name in FILES for record in records(options.results / name)]
    chosen = sample(found, options.n, options.seconds, options.seed)
    warnings.simplefilter("ignore")
    failed = 0
    for k, record in enumerate(chosen, 1):
        trial, start = trial_from(record["trial"]), time.perf_counter()
        changed = differences(record, measure(trial, options.data))
        failed += bool(changed)
        took = f"{time.perf_counter() - start:.1f} s (then {record['total_seconds']:.1f} s)"
        verdict = f"DIFFERENT {changed}" if changed else "same"
        print(f"[{k}/{len(chosen)}] {record['trial']}: {verdict}, {took}", flush=True)
    methods = len({record["trial"]["method"] for record in chosen})
    print(
        f"{len(chosen)} records of {methods} methods: {len(chosen) - failed} with the same scores."
    )
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
