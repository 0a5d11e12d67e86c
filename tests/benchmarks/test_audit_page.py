"""docs/audit.md: what is computed is up to date, what is simulated keeps its promise."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import audit_coverage as coverage
from benchmarks._page import table

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")


def block(name: str) -> str:
    return re.search(rf"<!-- {name} -->\n(.*?)\n<!-- /{name} -->", PAGE, re.DOTALL)[1]


def test_computed_tables_are_up_to_date():
    assert block("needed") == table(coverage.needed(5000))
    assert block("none wrong") == table(coverage.none_wrong(5000))


@pytest.mark.parametrize(("name", "column"), [("fixed", 4), ("sequential", 4), ("accepted", 3)])
def test_no_guarantee_fails_more_often_than_it_may(name: str, column: int):
    rows = [line.strip("|").split("|") for line in block(name).splitlines()[2:]]
    assert len(rows) >= 4
    for cells in rows:
        failed, draws = int(cells[column]), int(cells[column - 1].replace(",", ""))
        assert draws >= 2000
        assert failed <= 0.05 * draws


def test_the_simulations_run():
    assert len(coverage.fixed_coverage(5, seed=0)) == len(coverage.FIXED)
    assert coverage.sequential_case(coverage.np.random.default_rng(0), 5, 100, 50, 0.1)
    assert len(coverage.acceptance(1, seed=0)) == 2 * len(coverage.SHAPES)


def test_the_page_names_the_command_that_makes_it():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "make audit-coverage" in PAGE
    assert "benchmarks.audit_coverage --write docs/audit.md" in makefile
