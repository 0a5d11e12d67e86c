"""The sections about what tables cost, and the page about what self-learning added."""

from __future__ import annotations

import pytest

pytest.importorskip("pandas")

from benchmarks import self_learning_gain
from benchmarks.table_costs import code_lines, sections


def test_code_is_counted_without_words():
    source = '''"""A module.

Of words.
"""

import os  # a comment counts with its line


# Not alone.
def f(x: int) -> str:
    """Say it."""
    text = """two
    lines"""
    return (
        text
    )
'''
    assert code_lines(source) == 7


def test_memory_and_time_are_compared_with_the_earlier_commit():
    side = {"kind": "encode", "rows": 1_000_000, "repeats": 1, "reading": 1.0, "width": 9.0}
    found = [
        side | {"side": "now", "encoding": 7.0, "mib": 900.0},
        side | {"side": "before (abc)", "encoding": 9.0, "mib": 600.0},
        side | {"side": "now", "encoding": 19.0, "mib": 1_200.0},  # measured again
    ]
    text = sections(found)
    assert "| now | 1.0 s | 19.0 s | 1,200 MiB | 9 | 2.00 | 2.00 |" in text
    assert "Model files" not in text


def test_only_fits_that_no_constant_was_chosen_on_are_shown():
    fit = {"base": "mixed vote", "data": "wine", "changed": 10, "truth": 2}
    records = [fit | {"seed": seed} for seed in (1100, 1105, 1106)]
    text = self_learning_gain.page([*records, fit | {"seed": 1107, "truth": -10}])
    assert "| `FewLabelClassifier` | all | 3 | 10.0 | +1.6 | -2.0 ± 4.0 | 2 of 3 | 14 |" in text
