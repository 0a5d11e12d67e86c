"""Change the mathematics in small ways and see whether a test notices.

A mutant is a copy of one module with one operator, comparison or constant changed. It is killed if
a test fails (or runs for minutes); one that survives shows a line that no test holds in place, or a
change that changes nothing. The latter are listed with a reason in ``mutation_equivalent.json``, by
the text of the line and the change.

    python -m benchmarks.mutation --sample 150 --seed 0 --record mutants.jsonl

A mutant is tried with the tests of its room and of ``self_learning`` that execute its statement,
the quickest file first; with all that execute its module if the change acts on import. Which they
are is measured once for each file of tests, and kept in ``build/mutation`` until that file or the
library changes.

With a record a run that was stopped goes on, and mutants that were killed once are not tried again;
those that survived are, as there may be a new test.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import math
import os
import random
import resource
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

from benchmarks.mutants import SOURCE, Mutant, mutants_of

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
ROOMS = ("bounds", "assess", "selection", "ensemble")
EQUIVALENT = Path(__file__).with_name("mutation_equivalent.json")
MEASURED = ROOT / "build" / "mutation"
# Tests outside a room that were written for modules of it.
ALSO = {
    "assess": ("bounds/test_mislabeling.py", "ensemble/test_class_shares.py"),
    "baselines": ("ensemble/test_graphs.py", "ensemble/test_families.py"),
    "ensemble": ("chunks/test_mixed_chunks.py",),
}
# A mutant is taken for an endless loop after so many times the seconds of the unchanged code (of
# the processor: a busy machine kills nothing), and some more.
_TIMES, _MORE = 4, 10
_WAITING = 10
_PROFILE = "mutation"  # of hypothesis, see tests/conftest.py
_SHARED = "shared fixtures"
_LOADED = ("pandas", "polars", "pytest", "hypothesis.extra.numpy", "scipy.optimize", "scipy.stats")
_LOADED += ("sklearn.datasets", "sklearn.discriminant_analysis", "sklearn.ensemble")
_LOADED += ("sklearn.linear_model", "sklearn.model_selection", "sklearn.naive_bayes")
_LOADED += ("sklearn.pipeline", "sklearn.svm", "sklearn.utils.estimator_checks")


@dataclass(frozen=True)
class Test:
    """A test that passes without a change."""

    file: Path
    name: str
    seconds: float
    executes: dict[str, list[int]]
    """Lines by the path of their module."""

    def covers(self, mutant: Mutant) -> bool:
        lines = self.executes.get(str(mutant.path), [])
        return any(not mutant.statement or line in mutant.statement for line in lines)


# --- which tests -----------------------------------------------------------------------------


def tests_of(room: str) -> list[Test]:
    """The tests of a room, the examples of its docstrings among them, and of self_learning."""
    folders = (SOURCE / room, TESTS / room, TESTS / "self_learning")
    files = [file for folder in folders for file in sorted(folder.glob("*.py"))]
    files += [TESTS / name for name in ALSO.get(room, ())]
    shared = [*SOURCE.rglob("*.py"), *TESTS.glob("*.py"), *(TESTS / "support").glob("*.py")]
    contents = b"".join(file.read_bytes() for file in sorted(shared))
    tests = [test for file in files for test in _tests_in(file, contents)]
    seconds = sum(test.seconds for test in tests)
    print(f"{room}: {len(tests)} tests, which take {seconds:.0f} s", flush=True)
    return tests


def _tests_in(file: Path, library: bytes) -> list[Test]:
    digest = hashlib.sha256(library + bytes(file) + file.read_bytes()).hexdigest()
    measured = MEASURED / f"{digest}.json"
    if not measured.exists():
        MEASURED.mkdir(parents=True, exist_ok=True)
        if not _passes_in_a_child(lambda: _measure(file, measured), limit=1200):
            raise SystemExit(f"{file} cannot be measured: run it with pytest")
    return [Test(file, **test) for test in json.loads(measured.read_text(encoding="utf-8"))]


def _measure(file: Path, to: Path) -> int:
    """Write which tests of a file pass, how long they take and what they execute."""
    import pytest
    from coverage import Coverage

    for path in (path for room in ROOMS for path in (SOURCE / room).glob("*.py")):
        importlib.import_module(".".join(path.relative_to(SOURCE.parent).with_suffix("").parts))
    watch = Coverage(data_file=None, config_file=False, include=[f"{SOURCE}/*"])
    seconds: Counter[str] = Counter()
    passed: dict[str, bool] = {}

    class Watch:
        def pytest_runtest_logstart(self, nodeid: str) -> None:
            watch.switch_context(nodeid)

        @pytest.hookimpl(hookwrapper=True)
        def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Iterator[None]:
            name = request._pyfuncitem.nodeid
            watch.switch_context(name if fixturedef.scope == "function" else _SHARED)
            yield
            watch.switch_context(name)

        def pytest_runtest_logreport(self, report: Any) -> None:
            seconds[report.nodeid] += report.duration
            if report.when == "call":
                passed[report.nodeid] = report.passed

    watch.start()
    _pytest([file], Watch())
    watch.stop()
    executed: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for module in watch.get_data().measured_files():
        for line, names in watch.get_data().contexts_by_lineno(module).items():
            for name in passed if _SHARED in names else names:
                executed[name][module].append(line)
    tests = [
        {"name": name, "seconds": seconds[name], "executes": executed[name]}
        for name in passed
        if passed[name]
    ]
    part = to.with_suffix(".part")
    part.write_text(json.dumps(tests), encoding="utf-8")
    part.replace(to)
    return 0


# --- running them ----------------------------------------------------------------------------


def survives(mutant: Mutant, tests: list[Test]) -> bool:
    """Whether all tests pass that execute the change; the quickest file comes first."""
    chosen = [test for test in tests if test.covers(mutant)]
    of_file: Counter[Path] = Counter()
    for test in chosen:
        of_file[test.file] += test.seconds
    order = {test.name: (of_file[test.file], test.file, test.seconds) for test in chosen}

    class Chosen:
        def pytest_collection_modifyitems(self, items: list[Any]) -> None:
            items[:] = sorted(
                (item for item in items if item.nodeid in order), key=lambda i: order[i.nodeid]
            )

    def tried() -> int:
        _put_in_place(mutant)
        return _pytest(list(of_file), Chosen(), "-x")

    return not chosen or _passes_in_a_child(tried, _MORE + _TIMES * sum(of_file.values()))


def _pytest(files: list[Path], plugin: object, *options: str) -> int:
    import pytest

    options += ("-q", "-p", "no:cacheprovider", "-o", "addopts=", "--doctest-modules")
    options += ("-k", "not scikit_learn")  # its checks are slow, and about other things
    # Or pytest itself reads the module whose examples it runs, and not the mutant.
    options += ("--assert=plain",)
    code = pytest.main([*options, *map(str, files)], plugins=[plugin])
    return 0 if code == pytest.ExitCode.NO_TESTS_COLLECTED else int(code)


def _passes_in_a_child(task: Callable[[], int], limit: float) -> bool:
    """Whether a task returns 0 in a process of its own, within so many seconds of the processor."""
    child = os.fork()
    if child == 0:
        _become(task, math.ceil(limit))
    deadline = time.monotonic() + _WAITING * limit
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def _become(task: Callable[[], int], seconds: int) -> None:
    """Do the task in this process, silently, and end it."""
    code = 70
    try:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.environ["HYPOTHESIS_PROFILE"] = _PROFILE
        sys.dont_write_bytecode = True
        code = task()
    finally:
        os._exit(code)


def _put_in_place(mutant: Mutant) -> None:
    """Have the mutant imported in place of its module."""
    original = SourceFileLoader.get_data

    def get_data(self: SourceFileLoader, path: str) -> bytes:
        if Path(path) == mutant.path:
            return mutant.code.encode()
        if path.endswith(".pyc") and f"{mutant.path.stem}." in path and "fewlabel" in path:
            raise OSError  # no cached code for what has changed
        return original(self, path)

    SourceFileLoader.get_data = get_data  # type: ignore[method-assign]


# --- the report ------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rooms", nargs="+", default=ROOMS)
    parser.add_argument("--modules", nargs="*", help="stems of modules; all by default")
    parser.add_argument("--sample", type=int, help="so many of all mutants, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--record", type=Path, help="file of fates, to go on from")
    parser.add_argument("--minutes", type=float, default=math.inf, help="start none after so many")
    parser.add_argument("--least", type=float, default=0.0, help="fail below this share killed")
    parser.add_argument("--note", type=Path, help="records to add the figures to")
    options = parser.parse_args()
    paths = [path for room in options.rooms for path in sorted((SOURCE / room).glob("*.py"))]
    if options.modules:
        paths = [path for path in paths if path.stem in options.modules]
    mutants = [mutant for path in paths for mutant in mutants_of(path)]
    if options.sample and options.sample < len(mutants):
        mutants = random.Random(options.seed).sample(mutants, options.sample)
    raise SystemExit(run(mutants, options))


def killed_before(record: Path | None) -> set[tuple[str, int, str, str]]:
    """Mutants that a record says were killed: module, number, line and change."""
    if record is None or not record.exists():
        return set()
    fates = map(json.loads, record.read_text(encoding="utf-8").splitlines())
    return {tuple(fate["mutant"]) for fate in fates if fate["killed"]}


def run(mutants: list[Mutant], options: argparse.Namespace) -> int:
    """Try mutants, tell of those that survive; 1 if fewer than the share asked for are killed."""
    # What all of them need is imported once, before the forks; of ours nothing.
    # (Nor of pytest's plugins, whose code it rewrites when they are imported.)
    for name in _LOADED:
        importlib.import_module(name)

    reasons = json.loads(EQUIVALENT.read_text(encoding="utf-8"))
    known = {(entry["line"], entry["change"]): entry["why"] for entry in reasons}
    counted = [mutant for mutant in mutants if (mutant.text, mutant.change) not in known]
    before = killed_before(options.record)
    alive = [mutant for mutant in counted if mutant.key not in before]
    alive = survivors(alive, options)
    share = 1 - len(alive) / max(1, len(counted))
    skipped = len(mutants) - len(counted)
    print(f"{len(counted)} mutants, {share:.1%} killed; {skipped} more are known to be equivalent")
    from benchmarks.hardening import note  # not before the forks: it imports of ours

    figures = {"mutants": len(counted), "killed": len(counted) - len(alive), "equivalent": skipped}
    note(options.note, "mutation", seed=options.seed, **figures)
    return int(share < options.least)


def survivors(mutants: list[Mutant], options: argparse.Namespace) -> list[Mutant]:
    """Those that no test notices."""
    rooms = sorted({mutant.path.parent.name for mutant in mutants})
    tests = {room: tests_of(room) for room in rooms}
    start, alive = time.monotonic(), []

    def fate(mutant: Mutant) -> bool | None:
        if time.monotonic() - start > 60 * options.minutes:
            return None
        return survives(mutant, tests[mutant.path.parent.name])

    with ThreadPoolExecutor(options.jobs) as pool:
        for n, (mutant, survived) in enumerate(zip(mutants, pool.map(fate, mutants)), 1):
            if survived is None:
                raise SystemExit(f"{n - 1} of {len(mutants)} were tried; go on with this record")
            if survived:
                alive.append(mutant)
                print(f"survived  {mutant.name}\n          {mutant.text}", flush=True)
            elif options.record is not None:
                with options.record.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"mutant": mutant.key, "killed": True}) + "\n")
            if n % 20 == 0:
                minutes = (time.monotonic() - start) / 60
                print(
                    f"{n} of {len(mutants)}, {n - len(alive)} killed, {minutes:.1f} min", flush=True
                )
    return alive


if __name__ == "__main__":
    main()
