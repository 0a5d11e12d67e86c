"""The examples run and print something sensible."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted(Path(__file__).parents[1].joinpath("examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert "%" in capsys.readouterr().out
