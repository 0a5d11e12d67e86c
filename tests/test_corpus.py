"""Inputs that once broke a command; `make fuzz` finds new ones."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

from benchmarks.fuzz import corpus, run
from benchmarks.fuzz_inputs import Case


@pytest.mark.parametrize("case", corpus(), ids=lambda case: case.kind)
def test_what_once_failed_does_not_fail_again(case: Case, tmp_path: Path):
    answer, problem = run(case, tmp_path)
    assert not problem, answer.text
