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
from fewlabel.bounds.thresholds import threshold_curves
from reproduction.records import RecordWriter

RECORDS, PAGE = Path("results/promise.jsonl"), Path("docs/promise.md")
MAX_ERROR = 0.05
Spec = tuple[str, int, int, str, str]
KEYS = ("data", "per_class", "seed", "base", "draw")


def measure(spec: Spec) -> dict[str, Any]:
    """One fit: what the classifier says of its labels, and the truth."""
    name, per_class, seed, base, draw = spec
    record: dict[str, Any] = dict(zip(KEYS, spec))
    split = data.split(name, per_class, seed, draw=draw)
    if split is None:
        return {**record, "left_out": "too few rows, or one class only"}
    X, y, labeled = split
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = data.make(base, seed).set_params(labels=draw).fit(X, np.where(labeled, y, -1))
        fitted = time.process_time()
        stated = statement(clf, y[~labeled], labeled)
        assessed = time.process_time()
        if draw == "per class":  # the same labels, taken for a random sample, which they are not
            clf.labels, clf._assessment = "random", None
            stated["as random"] = statement(clf, y[~labeled], labeled)
    return {
        **record,
        "labeled": int(labeled.sum()),
        "unlabeled": int((~labeled).sum()),
        **stated,
        "seconds": round(fitted - start, 2),
        "assess_seconds": round(assessed - fitted, 2),
    }


def statement(clf: Any, truth: Any, labeled: Any) -> dict[str, Any]:
    """What a fitted classifier says of the labels of the unlabelled rows, beside the truth."""
    said, error = clf.transduction_[~labeled], clf.error_
    wrong, votes = said != truth, clf.transduction_proba_[~labeled].max(axis=1)
    confidence = clf.confidence_[~labeled]
    low, high = share_limits(error.value, labeled.sum())
    precision = [np.mean(wrong[said == c]) if (said == c).any() else None for c in clf.classes_]
    return {
        "truth": _rounded(wrong.mean()),
        "value": _rounded(error.value),
        "low": _rounded(error.low),
        "high": _rounded(error.high),
        "safe": bool(error.safe),
        "bound": _rounded(clf.risk_bound_),
        "clopper_pearson_width": _rounded(high - low),
        "calibration_error": _rounded(calibration_error(confidence, ~wrong)),
        "brier": _rounded(np.mean((confidence - ~wrong) ** 2)),
        "classes": _shares(error.per_class, precision),
        "prevalence": _shares(error.prevalence, [np.mean(truth == c) for c in clf.classes_]),
        "accept": _taken(clf.accept(max_error=MAX_ERROR)[~labeled], wrong),
        "vote .95": _taken(votes >= 0.95, wrong),
        "paper": _taken(_above_thresholds(clf), wrong),
    }


def _above_thresholds(clf: Any) -> Any:
    """Rows whose initial vote reaches the thresholds that the paper's bound chooses for it."""
    votes = clf.initial_votes_
    curves = threshold_curves(votes, clf.label_proba_)
    best = [c.best() for c in curves]
    thresholds = [1.0 if b is None else float(c.thresholds[b]) for b, c in zip(best, curves)]
    return votes.max(axis=1) >= np.array(thresholds)[votes.argmax(axis=1)]


def _shares(stated: Any, truth: list[Any]) -> dict[str, Any]:
    """How often true shares of the classes are outside their limits, and how far off."""
    pairs = [(s, t) for s, t in zip(stated, truth) if t is not None and np.isfinite(s.value)]
    return {
        "n": len(pairs),
        "above": sum(bool(t > s.high) for s, t in pairs),
        "below": sum(bool(t < s.low) for s, t in pairs),
        "distance": _rounded(sum(abs(s.value - t) for s, t in pairs)),
        "width": _rounded(sum(s.high - s.low for s, _ in pairs)),
    }


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
    return tuple(record[key] for key in KEYS)  # type: ignore[return-value]


def run(specs: Iterable[Spec], jobs: int, path: Path = RECORDS) -> None:
    """Measure what has no record yet; a fit that fails stops the run."""
    done = {_key(record) for record in [*read_records(), *read_records(path)]}
    left = [spec for spec in specs if spec not in done]
    # A fresh process each: one thread, and memory that goes back.
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
    with RecordWriter(path) as writer, pool:
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
    parser.add_argument("--seeds", type=int, nargs="+", default=list(data.SEEDS))
    parser.add_argument("--per-class", type=int, nargs="+", default=list(data.PER_CLASS))
    parser.add_argument("--data", nargs="+", default=list(data.NAMES))
    parser.add_argument("--bases", nargs="+", default=list(data.BASES))
    parser.add_argument("--draws", nargs="+", default=list(data.DRAWS))
    parser.add_argument("--records", type=Path, default=RECORDS, help="where new records go")
    options = parser.parse_args(arguments)
    if options.command == "page":
        write_page(read_records(), PAGE)
        return
    specs = itertools.product(
        options.data, options.per_class, options.seeds, options.bases, options.draws
    )
    wanted = [spec for spec in specs if spec[4] == "random" or spec[2] in data.FEWER_SEEDS]
    # All sets for one seed before the next: a run that is stopped has something of everything.
    run(sorted(wanted, key=lambda spec: spec[2]), options.jobs, options.records)


if __name__ == "__main__":
    main()
