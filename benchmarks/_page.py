"""Tables that live inside a page: a command replaces its own, and leaves the prose alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from fewlabel._core.atomic import replaced


def table(rows: list[dict[str, Any]]) -> str:
    """Rows as a Markdown table."""
    head = list(rows[0])
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(row.get(key, "")) for key in head) + " |" for row in rows]
    return "\n".join(lines)


def put(path: Path, name: str, text: str) -> None:
    """Replace what stands between ``<!-- name -->`` and ``<!-- /name -->``."""
    page = path.read_text(encoding="utf-8")
    block = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    if not block.search(page):
        raise ValueError(f"{path} has no place for the table {name!r}: <!-- {name} -->")
    with replaced(path) as part:
        part.write_text(block.sub(lambda m: m[1] + text + "\n" + m[2], page), encoding="utf-8")
