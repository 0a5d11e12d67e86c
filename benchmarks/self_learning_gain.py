"""Is what self-learning is said to have added true? ``python -m benchmarks.self_learning_gain``

Fits both classifiers, compares the estimate of how many more labels are right than by the first
vote (:mod:`fewlabel.assess.changes`) with the truth, and writes docs/self_learning_gain.md. Each
fit leaves a record; fits that have one are not repeated. The constants of the estimate were chosen
on smaller seeds, which the page does not show.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _page
from benchmarks.promise_data import make, split
from fewlabel.assess.changes import gain_of_changes

RECORDS = Path("results/self_learning_gain.jsonl")
PAGE = Path("docs/self_learning_gain.md")
SETS = (
    "digits", "breast_cancer", "wine", "overlap, 3 classes", "8 unequal classes", "noisy moons",
)  # fmt: skip
BASES = {"mixed vote": "FewLabelClassifier", "forest": "SelfLearningClassifier"}
SEEDS = range(1105, 1115)
PER_CLASS, MOST_UNLABELED = 10, 600

NOTE = f"""
Both classifiers with their defaults on {len(SETS)} data sets that come with scikit-learn or are
drawn anew, {PER_CLASS} random labels a class and at most {MOST_UNLABELED} other rows. *changed*:
labels that differ from those of the first vote. *estimate*: how many more of them are right, as
`fewlabel fit` says it; *truth*: how many are; both are means over the fits, the truth with its
standard error. *within*: fits whose truth is within the 95 % limits of the estimate. A single
estimate is rough: its limits are about as far apart as *width* says.
"""


def run(base: str, name: str, seed: int) -> dict[str, Any]:
    """One fit: how many labels were changed, and how many more are right in truth."""
    rows = split(name, PER_CLASS, seed, MOST_UNLABELED)
    assert rows is not None
    clf = make(base, seed).fit(rows.X, np.where(rows.labeled, rows.y, -1))
    labels = clf._transduction
    truth = np.searchsorted(clf.classes_, rows.y[~rows.labeled])
    truth[~np.isin(rows.y[~rows.labeled], clf.classes_)] = -1  # a class without any label
    first = labels.initial.argmax(axis=1)
    right = int((labels.labels == truth).sum() - (first == truth).sum())
    changed = int((first != labels.labels).sum())
    return {"base": base, "data": name, "seed": seed, "changed": changed, "truth": right}


def page(records: list[dict[str, Any]]) -> str:
    """The page of the documentation, from the fits that no constant was chosen on."""
    shown, lines = [record for record in records if record["seed"] in SEEDS], []
    head = f"# What did self-learning add?\n\n{_result(shown)}Made by `make self-learning-gain`.\n"
    for base, title in BASES.items():
        for name in (*SETS, "all"):
            fits = [r for r in shown if r["base"] == base and name in (r["data"], "all")]
            if fits:
                lines.append({"classifier": f"`{title}`", "data": name, **_line(fits)})
    return head + NOTE + "\n" + _page.table(lines)


def _result(shown: list[dict[str, Any]]) -> str:
    """What it added in truth and by the estimate, in a sentence."""
    told = []
    for base, title in BASES.items():
        fits = [record for record in shown if record["base"] == base]
        if fits:
            value = np.mean([gain_of_changes(fit["changed"]).value for fit in fits])
            truth = np.mean([fit["truth"] for fit in fits])
            told.append(f"{truth:+.1f} with `{title}` (estimate {value:+.1f})")
    return f"Right labels that a fit gained on average: {', '.join(told)}.\n\n" if told else ""


def _line(fits: list[dict[str, Any]]) -> dict[str, Any]:
    truth = np.array([fit["truth"] for fit in fits])
    error = truth.std(ddof=1) / np.sqrt(len(fits)) if len(fits) > 1 else float("nan")
    gains = [gain_of_changes(fit["changed"]) for fit in fits]
    within = sum(gain.low <= fit["truth"] <= gain.high for gain, fit in zip(gains, fits))
    value, low, high = np.mean(gains, axis=0)
    return {
        "fits": len(fits),
        "changed": f"{np.mean([fit['changed'] for fit in fits]):.1f}",
        "estimate": f"{value:+.1f}",
        "truth": f"{truth.mean():+.1f} ± {error:.1f}",
        "within": f"{within} of {len(fits)}",
        "width": f"{high - low:.0f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.self_learning_gain", description=__doc__
    )
    parser.add_argument("--no-run", action="store_true", help="only write the page")
    options = parser.parse_args()
    records = {(r["base"], r["data"], r["seed"]): r for r in _page.records(RECORDS)}
    plan = [(base, name, seed) for seed in SEEDS for base in BASES for name in SETS]
    warnings.simplefilter("ignore")
    for key in plan if not options.no_run else ():
        if key not in records:
            records[key] = run(*key)
            with RECORDS.open("a") as file:
                file.write(json.dumps(records[key]) + "\n")
    _page.write(PAGE, page(list(records.values())))


if __name__ == "__main__":
    main()
