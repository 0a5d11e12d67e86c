"""From records to pages: read records, make tables, write pages or tables within them."""

from __future__ import annotations

import json
import os
import platform
import re
from pathlib import Path
from typing import Any

from fewlabel._core.atomic import replaced


def machine() -> str:
    """The machine and the versions that a timing depends on."""
    import numpy
    import scipy
    import sklearn

    return (
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"NumPy {numpy.__version__}, SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}"
    )


def records(path: Path) -> list[dict[str, Any]]:
    """The records of a file of JSON lines; none if there is no such file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def table(rows: list[dict[str, Any]]) -> str:
    """Rows as a Markdown table."""
    head = list(rows[0])
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(_cell(row.get(key, "")) for key in head) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def write(path: Path, text: str) -> None:
    """Write a page."""
    with replaced(path) as part:
        part.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


def put(path: Path, name: str, text: str) -> None:
    """Replace what stands between ``<!-- name -->`` and ``<!-- /name -->``."""
    page = path.read_text(encoding="utf-8")
    block = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    if not block.search(page):
        raise ValueError(f"{path} has no place for the table {name!r}: <!-- {name} -->")
    write(path, block.sub(lambda m: m[1] + text + "\n" + m[2], page))
