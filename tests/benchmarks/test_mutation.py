"""Without this, the share of killed mutants means nothing."""

import subprocess
import sys
from pathlib import Path

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
