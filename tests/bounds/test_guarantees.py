"""docs/guarantees.md links each formula to a function that exists."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "guarantees.md"
LINK = re.compile(r"\[`(\w+)`\]\(\.\./src/fewlabel/([\w/]+)\.py\)")


def test_every_linked_function_exists():
    links = set(LINK.findall(PAGE.read_text(encoding="utf-8")))
    assert len(links) > 25
    for name, path in links:
        module = path.replace("/", ".")
        function = getattr(importlib.import_module(f"fewlabel.{module}"), name)
        assert function.__module__ == f"fewlabel.{module}", (name, module)
        assert function.__doc__, name


def test_every_bound_of_the_library_is_on_the_page():
    import fewlabel

    page = PAGE.read_text(encoding="utf-8")
    bounds = [name for name in fewlabel.__all__ if name.endswith("_bound")]
    assert bounds
    for name in bounds:
        assert f"`{name}`" in page, name


def test_every_linked_page_has_a_make_target_that_makes_it():
    makefile = (PAGE.parents[1] / "Makefile").read_text(encoding="utf-8")
    pages = set(re.findall(r"\]\((\w+\.md)\)", PAGE.read_text(encoding="utf-8")))
    assert pages == {"mislabeling.md", "pac_bayes_coverage.md", "promise.md"}
    for page in pages:
        assert (PAGE.parent / page).is_file()
        assert f"docs/{page}" in makefile
