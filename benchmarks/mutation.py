"""Change the mathematics in small ways and see whether a test notices.

A mutant is a copy of one module with one operator, comparison or constant changed. It is killed if
a test of its room fails (or runs for minutes); one that survives shows a line that no test holds
in place, or a change that changes nothing. The latter are listed with a reason in
``mutation_equivalent.json``, by the text of the line and the change.

    python -m benchmarks.mutation --sample 150 --seed 0 --record mutants.jsonl

With a record a run that was stopped goes on, and mutants that were killed once are not tried again;
those that survived are, as there may be a new test.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import math
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE, TESTS = ROOT / "src" / "fewlabel", ROOT / "tests"
ROOMS = ("bounds", "assess", "selection", "ensemble")
EQUIVALENT = Path(__file__).with_name("mutation_equivalent.json")
Times = dict[tuple[Path, str], float]
"""Seconds of the processor that each file of tests takes, by profile of hypothesis."""
# First a few examples of a module's own tests, then more, then the tests of its neighbours.
PROFILES = ("quick", "ci"), ("ci",)
# A mutant is taken for an endless loop after so many times the seconds of the unchanged code (of
# the processor: a busy machine kills nothing), and some more.
_TIMES, _MORE = 4, 30
_WAITING = 10
_NO_TESTS = 5  # pytest's code for a module without examples
_LOADED = ("pandas", "pytest", "scipy.optimize", "scipy.stats", "sklearn.datasets")
_LOADED += ("sklearn.discriminant_analysis", "sklearn.ensemble", "sklearn.linear_model")
_LOADED += ("sklearn.model_selection", "sklearn.naive_bayes", "sklearn.pipeline", "sklearn.svm")
# Modules whose tests stand in files of other names.
TESTED_BY = {
    "assessment": "error_estimate",
    "audit_acceptance": "audit",
    "audit_draws": "audit",
    "audit_plans": "audit",
    "bound_posteriors": "posterior",
    "cells": "statistics",
    "concentration": "pac_bayes",
    "family_trainer": "family_trainer graphs",
    "few_label": "mixed_vote ../chunks/test_mixed_chunks",
    "held_out": "held_out ../bounds/test_mislabeling",
    "label_proba": "transduction_bounds",
    "learner": "mixed_vote",
    "limits": "error_estimate",
    "margins": "cbound",
    "markov": "transductive",
    "mislabeled_error": "mislabeling",
    "out_of_sample": "error_estimate",
    "prevalence": "error_estimate ../ensemble/test_class_shares",
    "rounds": "policies",
    "sampled": "../chunks/test_mixed_chunks",
    "table": "cbound",
    "training_set": "policies",
    "voter_votes": "voter_votes posterior",
}

_COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
_OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    path: Path
    position: int
    line: int
    text: str
    change: str
    code: str

    @property
    def key(self) -> tuple[str, int, str, str]:
        return str(self.path.relative_to(SOURCE)), self.position, self.text, self.change

    @property
    def name(self) -> str:
        return f"{self.path.relative_to(SOURCE)}:{self.line}: {self.change}"


# --- making them -----------------------------------------------------------------------------


def mutants_of(path: Path) -> list[Mutant]:
    """Every mutant of a module."""
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    found: list[Mutant] = []
    n = len(list(_places(ast.parse(source))))
    for position in range(n):
        tree = ast.parse(source)
        node = list(_places(tree))[position]
        before = ast.unparse(node)
        if not _change(node):
            continue
        text = lines[node.lineno - 1].strip()
        change = f"{before} → {ast.unparse(node)}"
        code = ast.unparse(ast.fix_missing_locations(tree))
        found.append(Mutant(path, position, node.lineno, text, change, code))
    return found


def _places(tree: ast.AST) -> Iterator[ast.expr]:
    """Expressions of code that runs: no annotations, docstrings, messages or lists of names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.Raise, ast.Import, ast.ImportFrom, ast.JoinedStr, ast.If)):
            if isinstance(node, ast.If) and ast.unparse(node.test) != "TYPE_CHECKING":
                yield from _places(node)
            continue
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("__all__",):
            continue
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                yield from _with_itself(node.value)
            continue
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            for part in _body(node):
                yield from _with_itself(part)
            continue
        if isinstance(node, ast.expr):
            yield from _with_itself(node)
        else:
            yield from _places(node)


def _body(node: ast.FunctionDef | ast.Lambda) -> list[ast.AST]:
    return list(node.body) if isinstance(node, ast.FunctionDef) else [node.body]


def _with_itself(node: ast.AST) -> Iterator[ast.expr]:
    kinds = (ast.Compare, ast.BinOp, ast.BoolOp, ast.UnaryOp, ast.Constant)
    holder = ast.Module([], [])
    if isinstance(node, kinds):
        yield node
    if isinstance(node, (ast.Raise, ast.JoinedStr, ast.AnnAssign, ast.If, ast.FunctionDef)):
        holder.body = [node]  # type: ignore[list-item]
        yield from _places(holder)
    else:
        yield from _places(node)


def _change(node: ast.expr) -> bool:
    """Change a node in place; whether there was something to change."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
        node.ops[0] = _COMPARISONS[type(node.ops[0])]()
    elif isinstance(node, (ast.BinOp, ast.BoolOp)) and type(node.op) in _OPERATORS:
        node.op = _OPERATORS[type(node.op)]()
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Invert)):
        node.op = ast.UAdd()
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        node.value = not node.value
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        node.value = node.value + 1
    elif isinstance(node, ast.Constant) and isinstance(node.value, float):
        node.value = 2.0 * node.value + (node.value == 0)
    else:
        return False
    return True


# --- running them ----------------------------------------------------------------------------


def files_for(path: Path) -> tuple[list[Path], list[Path]]:
    """The tests of a module, the examples of its docstrings among them, and its neighbours'."""
    room = TESTS / path.relative_to(SOURCE).parts[0]
    names = TESTED_BY.get(path.stem, path.stem).split()
    own = [room / f"{name if '/' in name else f'test_{name}'}.py" for name in names]
    own = [file.resolve() for file in own if file.exists()]
    others = [file for file in sorted(room.glob("test_*.py")) if file not in own]
    return [*own, path], [*others, *sorted((TESTS / "self_learning").glob("test_*.py"))]


def survives(mutant: Mutant, files: list[Path], times: Times) -> bool:
    """Whether all tests pass that pass without the change; the quickest come first."""
    for profile in sorted({profile for _, profile in times}, reverse=True):
        usable = sorted((times[file, profile], file) for file in files if (file, profile) in times)
        limit = _MORE + _TIMES * sum(seconds for seconds, _ in usable)
        if usable and not _passes(mutant, [file for _, file in usable], profile, limit)[0]:
            return False
    return True


def times_of_tests(files: list[Path], profiles: tuple[str, ...]) -> Times:
    """How long tests take as things are; one that fails is left out, it would kill everything."""
    times: Times = {}
    path = SOURCE / "__init__.py"
    unchanged = Mutant(path, 0, 0, "", "", path.read_text(encoding="utf-8"))
    # Examples of docstrings take no time: those of all modules together.
    modules = [file for file in files if SOURCE in file.parents]
    for group in [modules, *([file] for file in files if file not in modules)]:
        for profile in profiles:
            passed, seconds = _passes(unchanged, group, profile, limit=600) if group else (True, 0)
            if passed:
                times |= {(file, profile): seconds / len(group) for file in group}
            else:
                names = [str(file.relative_to(ROOT)) for file in group]
                print(f"not used, as it fails without a change: {', '.join(names)}", flush=True)
    if files and not times:
        raise SystemExit("No test passes as things are.")
    print(f"{len(files)} files of tests take {sum(times.values()):.0f} s", flush=True)
    return times


def _passes(mutant: Mutant, tests: list[Path], profile: str, limit: float) -> tuple[bool, float]:
    """Whether tests pass, and the seconds of the processor that they took."""
    child = os.fork()
    if child == 0:
        os.environ["HYPOTHESIS_PROFILE"] = profile
        _become(mutant, [str(test) for test in tests], math.ceil(limit))
    deadline = time.monotonic() + _WAITING * limit
    while time.monotonic() < deadline:
        done, status, used = os.wait4(child, os.WNOHANG)
        if done:
            passed = os.waitstatus_to_exitcode(status) in (0, _NO_TESTS)
            return passed, used.ru_utime + used.ru_stime
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False, limit


def _become(mutant: Mutant, tests: list[str], seconds: int) -> None:
    """Run tests in this process with the mutant in place of its module."""
    from importlib.machinery import SourceFileLoader

    code: object = 70
    try:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        original = SourceFileLoader.get_data

        def get_data(self: SourceFileLoader, path: str) -> bytes:
            if Path(path) == mutant.path:
                return mutant.code.encode()
            if path.endswith(".pyc") and f"{mutant.path.stem}." in path and "fewlabel" in path:
                raise OSError  # no cached code for what has changed
            return original(self, path)

        SourceFileLoader.get_data = get_data  # type: ignore[method-assign]
        sys.dont_write_bytecode = True
        import pytest

        options = ["-x", "-q", "-p", "no:cacheprovider", "-o", "addopts=", "--doctest-modules"]
        options += ["-k", "not scikit_learn_checks"]  # slow, and about other things
        # Or pytest itself reads the module whose examples it runs, and not the mutant.
        options += ["--assert=plain"]
        code = int(pytest.main([*options, *tests]))
    except BaseException:
        code = 71
    finally:
        os._exit(int(code))  # type: ignore[call-overload]


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
    end = time.monotonic() + 60 * options.minutes
    for place, whose in enumerate(("their own tests", "those of their neighbours")):
        alive = survivors(alive, place, end, options)
        print(f"{len(counted) - len(alive)} of {len(counted)} killed by {whose}", flush=True)
    share = 1 - len(alive) / max(1, len(counted))
    skipped = len(mutants) - len(counted)
    print(f"{len(counted)} mutants, {share:.1%} killed; {skipped} more are known to be equivalent")
    from benchmarks.hardening import note  # not before the forks: it imports of ours

    figures = {"mutants": len(counted), "killed": len(counted) - len(alive), "equivalent": skipped}
    note(options.note, "mutation", seed=options.seed, **figures)
    return int(share < options.least)


def survivors(
    mutants: list[Mutant], place: int, end: float, options: argparse.Namespace
) -> list[Mutant]:
    """Those that neither their own tests (0) nor those of their neighbours (1) notice."""
    files = {mutant.path: files_for(mutant.path)[place] for mutant in mutants}
    times = times_of_tests(sorted({file for of in files.values() for file in of}), PROFILES[place])

    def fate(mutant: Mutant) -> bool | None:
        return survives(mutant, files[mutant.path], times) if time.monotonic() < end else None

    alive = []
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
                print(f"{n} of {len(mutants)}, {n - len(alive)} killed", flush=True)
    return alive


if __name__ == "__main__":
    main()
