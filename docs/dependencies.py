"""The table of docs/about/dependencies.md: ``make dependencies`` writes it.

Sizes are those of the files that are installed here; licences are what the packages declare.
"""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "about" / "dependencies.md"
# package: (why it is there, who keeps it)
REASONS = {
    "numpy": ("arrays", "NumPy developers, NumFOCUS"),
    "scipy": ("sparse matrices, distributions, optimisation", "SciPy developers, NumFOCUS"),
    "scikit-learn": ("estimators and their API", "scikit-learn developers"),
    "typer": ("commands, options, help, completion", "FastAPI labs"),
    "rich": ("progress and tables in the terminal", "Textualize"),
    "pandas": ("tables: cells, dates, text files", "pandas developers, NumFOCUS"),
    "pyarrow": ("Parquet, Feather, chunks of large files", "Apache Arrow"),
    "matplotlib": ("pictures in notebooks", "Matplotlib developers, NumFOCUS"),
    "jinja2": ("the report's page", "Pallets"),
    "skops": ("model files without pickle", "skops developers"),
    "skrub": ("texts and categories to numbers", "skrub developers, Inria"),
    "openpyxl": ("Excel files", "openpyxl developers"),
    "torch": ("to train the prior network; not needed to use it", "PyTorch Foundation"),
    "dask": ("rows in partitions", "Dask developers, NumFOCUS"),
    "distributed": ("workers and scheduler", "Dask developers, NumFOCUS"),
    "faiss-cpu": ("nearest neighbours of many rows", "Meta, faiss-wheels"),
    "starlette": ("the labelling page's server", "Kludex, Encode"),
    "uvicorn": ("the labelling page's server", "Kludex, Encode"),
    "tabicl": ("a foundation model as a voter", "Inria SODA"),
    "fsspec": ("object stores", "fsspec developers"),
}
SHOWN = [  # extras for users, in the order of the page
    "", "cli", "excel", "scale", "graph", "label", "foundation", "training",
]  # fmt: skip


def name_of(requirement: str) -> str:
    """The package that a requirement names."""
    return re.match(r"[\w.-]+", requirement)[0].lower()


def row(extra: str, package: str) -> str:
    """One line of the table."""
    why, who = REASONS[package]
    try:
        found = metadata.distribution(package)
    except metadata.PackageNotFoundError:
        return f"| {extra} | {package} | {why} | {who} | | not installed here |"
    files = (Path(found.locate_file(file)) for file in found.files or [])
    size = sum(path.stat().st_size for path in files if path.is_file()) / 1e6
    licence = found.metadata.get("License-Expression") or next(
        (c.split(" :: ")[-1] for c in found.metadata.get_all("Classifier", []) if "License" in c),
        (found.metadata.get("License") or "").split("\n")[0],
    )
    return f"| {extra} | {package} {found.version} | {why} | {who} | {licence} | {size:.1f} MB |"


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {"": project["dependencies"], **project["optional-dependencies"]}
    lines = [
        "| extra | package | why | who keeps it | licence | installed |",
        "|---|---|---|---|---|---|",
    ]
    for extra in SHOWN:
        names = [name_of(text) for text in extras.get(extra, [])]
        shown = f"`[{extra}]`" if extra else "core"
        lines += [row(shown, name) for name in names if name != "fewlabel"]
    text = PAGE.read_text(encoding="utf-8")
    table = "\n".join(lines)
    text = re.sub(r"(<!-- table -->\n).*?(<!-- end -->)", rf"\1\n{table}\n\n\2", text, flags=re.S)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
