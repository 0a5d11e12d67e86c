"""Why a cell is further from the paper's than two standard errors, as far as we know.

Keyed by table, row and column of the cell; "*" stands for any. The most exact key counts. A cell
without a reason here is listed as unexplained.
"""

from __future__ import annotations

REASONS: dict[tuple[str, str, str], str] = {}


def reason(table: str, row: str, column: str) -> str | None:
    """The reason of the most exact key that fits a cell."""
    for key in (
        (table, row, column),
        ("*", row, column),
        (table, "*", column),
        (table, row, "*"),
        ("*", "*", column),
        ("*", row, "*"),
    ):
        if key in REASONS:
            return REASONS[key]
    return None
