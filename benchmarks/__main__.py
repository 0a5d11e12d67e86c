"""Run the benchmarks and print (or write) their tables as Markdown."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from benchmarks import _page

SECTIONS = ["search", "self_learning", "max_train", "cbounds", "neighbours"]
"""Modules of this package with TITLE, NOTE and ``measure(quick) -> list of rows (dicts)``."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--write", type=Path, help="also write the page to this file")
    options = parser.parse_args()
    for name in options.only:
        section = importlib.import_module(f"benchmarks.{name}")
        print(f"... {name}", flush=True)
        table = _page.table(section.measure(options.quick))
        print(table, flush=True)
        if options.write:  # after every section: a long run that is stopped leaves what it has
            _update(options.write, section.TITLE, f"{section.NOTE.strip()}\n\n{table}\n")


def _update(path: Path, title: str, body: str) -> None:
    """Write or replace one section of the page."""
    old = path.read_text().split("\n## ")[1:] if path.exists() else []
    sections = dict(text.split("\n\n", 1) for text in old)
    sections[title] = body
    page = (
        "# Benchmarks\n\n"
        f"Made by `make bench` ({_page.machine()}). Compare the ratios: the seconds depend on the "
        "machine.\n"
    )
    page += "".join(f"\n## {name}\n\n{text.rstrip()}\n" for name, text in sections.items())
    _page.write(path, page)


if __name__ == "__main__":
    main()
