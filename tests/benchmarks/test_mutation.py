"""Without this, the share of killed mutants means nothing."""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.mutation import EQUIVALENT, ROOMS, SOURCE

ROOT = Path(__file__).parents[2]
SCRIPT = """
from dataclasses import replace
from benchmarks.mutation import SOURCE, Test, mutants_of, survives
path = SOURCE / "bounds" / "concentration.py"
(mutant,) = [m for m in mutants_of(path) if m.change.startswith("1.0 - _kl_upper")]
as_it_is = replace(mutant, code=path.read_text(encoding="utf-8"))
# The examples of the module itself, which pytest would read past our loader.
example = "src/fewlabel/bounds/concentration.py::fewlabel.bounds.concentration.kl_interval"
tests = [Test(path, example, 1.0, {str(path): [mutant.line]})]
print(survives(mutant, tests), survives(as_it_is, tests))
elsewhere = [Test(path, example, 1.0, {str(path): [1]})]
print(survives(mutant, elsewhere))
"""


def test_a_mutant_is_noticed_and_the_code_as_it_is_passes():
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == ["False", "True", "True"]


def test_lines_of_which_a_change_changes_nothing_are_still_there():
    modules = [path for room in ROOMS for path in (SOURCE / room).glob("*.py")]
    lines = {line.strip() for path in modules for line in path.read_text("utf-8").splitlines()}
    for entry in json.loads(EQUIVALENT.read_text("utf-8")):
        assert entry["line"] in lines, "the code has changed: take it out, or give the new line"
