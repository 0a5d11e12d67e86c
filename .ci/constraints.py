"""Print the versions of all packages that developers need, as installed here: ``make constraints``.

Lines are plain ``name==version``: they name no index and no file.
"""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

EXTRAS = ("cli", "excel", "graph", "label", "scale", "test", "docs", "release")


def plain(name: str) -> str:
    """The name of a package as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def add(lines: list[str], extras: tuple[str, ...], found: dict[tuple[str, ...], str]) -> None:
    """Add the packages of these requirements, and what they need, to ``found``."""
    for requirement in map(Requirement, lines):
        marks = [{"extra": extra} for extra in ("", *extras)]
        if requirement.marker and not any(requirement.marker.evaluate(m) for m in marks):
            continue
        name, wanted = plain(requirement.name), tuple(sorted(requirement.extras))
        if name == "fewlabel" or (name, *wanted) in found:
            continue
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            raise SystemExit(f"{name} is not installed: run `make constraints`") from None
        found[name, *wanted] = f"{name}=={distribution.version}"
        add(distribution.requires or [], wanted, found)


def main() -> None:
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    extras = project["optional-dependencies"]
    lines = project["dependencies"] + [line for name in EXTRAS for line in extras[name]]
    found: dict[tuple[str, ...], str] = {}
    add(lines, (), found)
    print("# Versions that developers use; `make constraints` writes this file.")
    print(*sorted(set(found.values())), sep="\n")


if __name__ == "__main__":
    main()
