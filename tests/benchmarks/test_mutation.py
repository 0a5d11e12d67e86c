"""Without this, the share of killed mutants means nothing."""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.mutation import EQUIVALENT, ROOMS, SOURCE

ROOT = Path(__file__).parents[2]
SCRIPT = """
from benchmarks.mutation import SOURCE, mutants_of, survives
path = SOURCE / "bounds" / "concentration.py"
(mutant,) = [m for m in mutants_of(path) if m.change.startswith("1.0 - _kl_upper")]
as_it_is = type(mutant)(path, 0, 0, "", "", path.read_text(encoding="utf-8"))
# The examples of the module itself, which pytest would read past our loader.
times = {(path, "quick"): 1.0}
print(survives(mutant, [path], times), survives(as_it_is, [path], times))
"""


def test_a_mutant_is_noticed_and_the_code_as_it_is_passes():
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == ["False", "True"]


def test_lines_of_which_a_change_changes_nothing_are_still_there():
    modules = [path for room in ROOMS for path in (SOURCE / room).glob("*.py")]
    lines = {line.strip() for path in modules for line in path.read_text("utf-8").splitlines()}
    for entry in json.loads(EQUIVALENT.read_text("utf-8")):
        assert entry["line"] in lines, "the code has changed: take it out, or give the new line"
