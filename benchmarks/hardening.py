"""What was tried against the commands, for SECURITY.md: inputs, kills, mutants, versions.

``make fuzz``, ``make kill``, ``make mutation`` and ``make matrix`` add a line each to the records;

    python -m benchmarks.hardening page

writes the table from them, and ``versions FOLDER`` adds the tests of an environment of the matrix.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from benchmarks import _page

RECORDS = Path("results/hardening.jsonl")
PAGE = Path("SECURITY.md")
_PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "pyarrow")
_WHAT_RUNS = """
import json, platform
from importlib.metadata import version
print(json.dumps({"Python": platform.python_version()} | {p: version(p) for p in %r}))
"""


def note(file: Path | None, part: str, **figures: Any) -> None:
    """Add what was found to the records; nothing without a file."""
    if file is not None:
        with file.open("a", encoding="utf-8") as records:
            records.write(json.dumps({"part": part} | figures) + "\n")


def note_versions(environment: Path, records: Path) -> None:
    """Add how many tests passed in an environment, from its tests.xml, and with which versions."""
    suites = ElementTree.parse(environment / "tests.xml").getroot().iter("testsuite")
    counts = [{key: int(suite.get(key, 0)) for key in _COUNTS} for suite in suites]
    total = {key: sum(count[key] for count in counts) for key in _COUNTS}
    total["failures"] += total.pop("errors")
    command = [environment / "bin" / "python", "-c", _WHAT_RUNS % (_PACKAGES,)]
    versions = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    name = environment.name.removeprefix(".venv-")
    note(records, "matrix", name=name, versions=versions, **total)


_COUNTS = ("tests", "skipped", "failures", "errors")


# --- the table -------------------------------------------------------------------------------


def table(records: list[dict[str, Any]]) -> str:
    """Commands, what they tried and what they found; of runs that were repeated, the last."""
    rows = [*_fuzz(records), *_kill(records), *_mutation(records), *_matrix(records)]
    return _page.table(rows) if rows else "No run has been recorded."


def _last(records: list[dict[str, Any]], part: str, *keys: str) -> list[dict[str, Any]]:
    found = [record for record in records if record["part"] == part]
    return list({tuple(record[key] for key in keys): record for record in found}.values())


def _row(command: str, tried: str, found: str) -> dict[str, str]:
    return {"command": f"`make {command}`", "tried": tried, "found": found}


def _fuzz(records: list[dict[str, Any]]) -> list[dict[str, str]]:
    if not (runs := _last(records, "fuzz", "seed", "first")):
        return []
    inputs, bad = (sum(run[key] for run in runs) for key in ("inputs", "bad"))
    slowest = max(run["slowest"] for run in runs)
    seeds = ", ".join(str(seed) for seed in sorted({run["seed"] for run in runs}))
    found = f"{bad} bad; the slowest took {slowest:.1f} s of the processor"
    return [_row("fuzz", f"{inputs:,} inputs (seeds {seeds})", found)]


def _kill(records: list[dict[str, Any]]) -> list[dict[str, str]]:
    runs = _last(records, "kill", "seed")
    return [
        _row("kill", f"{run['kills']} kills, {run['disks']} full disks", f"{run['bad']} bad")
        for run in runs
    ]


def _mutation(records: list[dict[str, Any]]) -> list[dict[str, str]]:
    rows = []
    for run in _last(records, "mutation", "seed"):
        share = run["killed"] / run["mutants"]
        found = f"{run['killed']} noticed ({share:.1%}); {run['equivalent']} more change nothing"
        rows.append(_row("mutation", f"{run['mutants']} mutants (seed {run['seed']})", found))
    return rows


def _matrix(records: list[dict[str, Any]]) -> list[dict[str, str]]:
    rows = []
    for run in _last(records, "matrix", "name"):
        versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
        passed = run["tests"] - run["skipped"] - run["failures"]
        found = f"{passed:,} tests passed, {run['skipped']} skipped, {run['failures']} failed"
        rows.append(_row("matrix", versions, found))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=Path, default=RECORDS)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("page")
    versions = commands.add_parser("versions")
    versions.add_argument("environment", type=Path)
    options = parser.parse_args()
    if options.command == "page":
        _page.put(PAGE, "tried", table(_page.records(options.records)))
    else:
        note_versions(options.environment, options.records)


if __name__ == "__main__":
    main()
