"""Print the lowest versions that pyproject.toml declares, as pip takes them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path


def minimum_versions(extras: tuple[str, ...] = ("cli",)) -> list[str]:
    """Requirements on the lowest declared release of each package.

    Parameters
    ----------
    extras : tuple of str
        Extras whose packages are wanted, too.

    Returns
    -------
    requirements : list of str
    """
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    wanted = list(project["dependencies"])
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    found = (re.fullmatch(r"([\w-]+)>=([\d.]+)", line) for line in wanted)
    return [f"{match[1]}=={match[2]}.*" for match in found if match]


if __name__ == "__main__":
    print(" ".join(minimum_versions()))
