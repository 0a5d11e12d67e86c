"""From records to files: every table and figure that was asked for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from reproduction.plan import Scope
from reproduction.records import Record


def render(items: Iterable[str], scope: Scope, records: list[Record], folder: Path) -> list[Path]:
    """Write the tables (Markdown, LaTeX) and figures (SVG); return their paths."""
    from reproduction.figures import draw
    from reproduction.notation import write_table
    from reproduction.tables import build

    paths: list[Path] = []
    for item in items:
        if item.startswith("table"):
            paths += write_table(build(item, scope, records), folder)
        else:
            paths.append(draw(item, scope, records, folder))
    return paths
