"""From records to files: every table and figure that was asked for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fewlabel.experiments.plan import Scope
from fewlabel.experiments.records import Record


def render(items: Iterable[str], scope: Scope, records: list[Record], folder: Path) -> list[Path]:
    """Write the tables (Markdown, CSV, LaTeX) and figures (PNG, SVG); return their paths."""
    from fewlabel.experiments.figures import draw
    from fewlabel.experiments.notation import write_table
    from fewlabel.experiments.tables import build

    paths: list[Path] = []
    for item in items:
        if item.startswith("table"):
            paths += write_table(build(item, scope, records), folder)
        else:
            paths += draw(item, scope, records, folder)
    return paths
