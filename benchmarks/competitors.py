"""The competitors on the paper's data sets: run the trials, write docs/baselines.md from them.

``run`` resumes: trials that have a record are not run again. ``full-size`` runs one trial of each
method on MNIST and Fashion at 70,000 rows, ``scaling`` times the methods against the number of
rows. ``page`` only reads what these wrote. RF is run with the rest of Table 2, by the experiments.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path

from fewlabel._core.atomic import replaced
from reproduction.methods import METHODS, VARIANTS
from reproduction.plan import Scope
from reproduction.run import Limits, Progress, run
from reproduction.spec import Trial

RECORDS = Path("results/baselines.jsonl")
SCALING = Path("results/baselines_scaling.json")
SETS = ("vowel", "protein", "dna", "pageblocks", "pendigits", "isolet")
COLUMNS = ("RF", "LS", "QN-S3VM", "Semi-LDA", "DAS-RF")

SIGNS = "benchmarks.sign_votes:SIGNS"

# Splits for each cell of a variant; 5 where nothing else is said.
SPLITS = {
    "LS raw": {"pageblocks": 1, "pendigits": 1, "isolet": 0},
    "LS standard": {"pageblocks": 1, "pendigits": 0, "isolet": 0},
    "QN-S3VM raw": {"pageblocks": 1, "isolet": 0},
    "QN-S3VM early": {"isolet": 2},
    SIGNS: {"isolet": 2},
    "SVM": {"isolet": 2},
    "Semi-LDA unshrunk": {"pageblocks": 0, "pendigits": 0, "isolet": 0},
    "LDA plain": dict.fromkeys((*SETS, "letter"), 20),
}
# Beyond the page's sets: what a reason in docs/reproduction.md compares with.
BESIDES = (("letter", "LDA plain"),)
# Variants at one point instead of the paper's grid, because a trial takes minutes.
ONE_POINT: dict[tuple[str, str], dict[str, float]] = {
    ("isolet", SIGNS): {"lam": 0.01, "lam_u": 0.1},
}
ORDER = (
    "Semi-LDA", "LDA", "LDA plain", "LS k-NN", "QN-S3VM", "LS", "LS raw", "LS standard",
    "QN-S3VM raw", "QN-S3VM early", SIGNS, "Semi-LDA converged", "Semi-LDA unshrunk", "SVM",
    "DAS-RF",
)  # fmt: skip

VARIANT_COLUMNS = {
    "LS raw": "LS raw",
    "LS standard": "LS standard",
    "LS k-NN": "LS k-NN",
    "QN-S3VM raw": "QN-S3VM raw",
    "QN-S3VM early": "QN-S3VM early",
    "QN-S3VM signs": SIGNS,
    "SVM": "SVM",
    "LDA": "LDA",
    "LDA plain": "LDA plain",
    "Semi-LDA converged": "Semi-LDA converged",
    "Semi-LDA unshrunk": "Semi-LDA unshrunk",
}
"""Head of the column → method."""

FULL_SETS = ("mnist", "fashion")


def trials(dataset: str, method: str, *, planned: bool = False) -> list[Trial]:
    """Every split at every point of the method's grid: for a column of Table 2, its plan's.

    ``planned``: of a variant only the splits that are run here. Others may have records too,
    because the page about the reproduction compares with them.
    """
    if method in METHODS:
        return Scope().cell(dataset, method)
    scope = Scope(n_trials=SPLITS.get(method, {}).get(dataset, 5)) if planned else Scope()
    wanted = scope.grid(dataset, method)
    point = ONE_POINT.get((dataset, method))
    return [trial for trial in wanted if point is None or dict(trial.params) == point]


def full_size_trials() -> list[Trial]:
    """One trial of each method at 70,000 rows, in the smaller setting of Table 2's plan."""
    plan = Scope(n_trials=1)
    return [trial for row in FULL_SETS for column in COLUMNS for trial in plan.cell(row, column)]


def run_all(wanted: Iterable[Trial], data: Path | None, seconds: float, jobs: int) -> None:
    """Run what has no record, within 24 GiB."""

    def report(progress: Progress) -> None:
        record = progress.record
        trial = record["trial"]
        score = record.get("scores", {}).get("accuracy", record.get("error", ""))
        print(
            f"{progress.done}/{progress.total} {trial['dataset']} {trial['method']} "
            f"{trial.get('params', '')} {record['status']} {score} {record['total_seconds']:.1f} s",
            flush=True,
        )

    limits = Limits(seconds=seconds, memory_mib=24 * 1024 / jobs)
    run(wanted, RECORDS, data_dir=data, limits=limits, jobs=jobs, report=report)


def run_scaling() -> None:
    """Time the methods on this machine and keep the figures with its description."""
    from benchmarks.baselines import measure
    from reproduction.run import machine, versions

    found = {"machine": machine(), "versions": versions(), "rows": measure(quick=False)}
    with replaced(SCALING) as part:
        part.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.competitors", description=__doc__)
    parser.add_argument("what", choices=["run", "full-size", "scaling", "page"])
    parser.add_argument("--data", type=Path, help="folder of the data sets (or FEWLABEL_DATA)")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--methods", nargs="+", choices=[*METHODS, *VARIANTS, SIGNS], default=ORDER)
    parser.add_argument("--seconds", type=float, default=4 * 3600.0, help="limit of one trial")
    parser.add_argument("--jobs", type=int, default=1, help="trials at a time")
    options = parser.parse_args(arguments)
    if options.what == "run":
        cells = [(s, m) for m in options.methods for s in options.sets]
        cells += [(s, m) for s, m in BESIDES if m in options.methods]
        wanted = [
            trial for dataset, method in cells for trial in trials(dataset, method, planned=True)
        ]
        run_all(wanted, options.data, options.seconds, options.jobs)
    elif options.what == "full-size":
        wanted = [t for t in full_size_trials() if t.method in options.methods]
        run_all(wanted, options.data, options.seconds, options.jobs)
    elif options.what == "scaling":
        run_scaling()
    else:
        from benchmarks.competitors_page import write

        write(Path("docs/baselines.md"))


if __name__ == "__main__":
    main(sys.argv[1:])
