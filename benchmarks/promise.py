"""Does the promise hold? ``python -m benchmarks.promise run|page``.

``run`` fits classifiers on many splits, and compares what they say of their own labels with the
truth; a line for each fit goes to results/promise.jsonl, and a second run goes on where the first
was stopped. ``page`` writes docs/promise.md from these lines.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import warnings
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import promise_data as data
from benchmarks.promise_page import write_page
from fewlabel.assess.limits import share_limits
from reproduction.records import RecordWriter

RECORDS, PAGE = Path("results/promise.jsonl"), Path("docs/promise.md")
SEEDS = tuple(range(4000, 4020))  # constants were chosen on smaller seeds
MAX_ERROR = 0.05
Spec = tuple[str, int, int, str]


def measure(spec: Spec) -> dict[str, Any]:
    """One fit: what the classifier says of its labels, and the truth."""
    name, per_class, seed, base = spec
    record: dict[str, Any] = dict(zip(("data", "per_class", "seed", "base"), spec))
    split = data.split(name, per_class, seed)
    if split is None:
        return {**record, "left_out": "too few rows, or one class only"}
    X, y, labeled = split
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = data.make(base, seed).fit(X, np.where(labeled, y, -1))
        seconds = time.process_time() - start
        accepted = _of_unlabeled(clf.accept(max_error=MAX_ERROR), labeled)
        confidence = _of_unlabeled(clf.confidence_, labeled)
    wrong = clf.transduction_[~labeled] != y[~labeled]
    error, votes = clf.error_, clf.transduction_proba_[~labeled].max(axis=1)
    low, high = share_limits(error.value, labeled.sum())
    return {
        **record,
        "labeled": int(labeled.sum()),
        "unlabeled": int((~labeled).sum()),
        "truth": _rounded(wrong.mean()),
        "value": _rounded(error.value),
        "low": _rounded(error.low),
        "high": _rounded(error.high),
        "safe": bool(error.safe),
        "clopper_pearson_width": _rounded(high - low),
        "calibration_error": _rounded(calibration_error(confidence, ~wrong)),
        "brier": _rounded(np.mean((confidence - ~wrong) ** 2)),
        "accept": _taken(accepted, wrong),
        "vote .95": _taken(votes >= 0.95, wrong),
        "pseudo-labelled": _taken(clf.labeled_iter_[~labeled] > 0, wrong),
        "seconds": round(seconds, 2),
    }


def _of_unlabeled(values: Any, labeled: Any) -> Any:
    array = np.asarray(values)
    return array[~labeled] if len(array) == len(labeled) else array


def _taken(mask: Any, wrong: Any) -> dict[str, Any]:
    """How many rows are taken, and how many of them are wrong."""
    return {"rows": int(mask.sum()), "wrong": int(wrong[mask].sum())}


def _rounded(value: Any) -> float:
    return round(float(value), 5)


def calibration_error(confidence: Any, right: Any, n_bins: int = 10) -> float:
    """Mean difference of confidence and share of right labels, over bins of equal size."""
    order = np.argsort(confidence, kind="stable")
    bins = [b for b in np.array_split(order, n_bins) if len(b)]
    return sum(len(b) / len(order) * abs(confidence[b].mean() - right[b].mean()) for b in bins)


def read_records(path: Path = RECORDS) -> list[dict[str, Any]]:
    """Complete lines of the file; a line that was cut off is none."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found


def _key(record: dict[str, Any]) -> Spec:
    return record["data"], record["per_class"], record["seed"], record["base"]


def run(specs: Iterable[Spec], jobs: int) -> None:
    """Measure what has no record yet; a fit that fails stops the run."""
    done = {_key(record) for record in read_records()}
    left = [spec for spec in specs if spec not in done]
    # A fresh process each: one thread, and memory that goes back.
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
    with RecordWriter(RECORDS) as writer, pool:
        futures = [pool.submit(measure, spec) for spec in left]
        try:
            for n, future in enumerate(as_completed(futures), 1):
                record = future.result()
                writer.append(record)
                print(f"{n}/{len(left)} {' '.join(map(str, _key(record)))}", flush=True)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.promise", description=__doc__)
    parser.add_argument("command", choices=["run", "page"])
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time, one thread each")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--per-class", type=int, nargs="+", default=list(data.PER_CLASS))
    parser.add_argument("--data", nargs="+", default=list(data.NAMES))
    parser.add_argument("--bases", nargs="+", default=list(data.BASES))
    options = parser.parse_args(arguments)
    if options.command == "page":
        write_page(read_records(), PAGE)
        return
    specs = itertools.product(options.data, options.per_class, options.seeds, options.bases)
    # All sets for one seed before the next: a run that is stopped has something of everything.
    run(sorted(specs, key=lambda spec: spec[2]), options.jobs)


if __name__ == "__main__":
    main()
