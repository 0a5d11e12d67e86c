"""The package's shape: imports point one way, importing it is light, names are public."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

import fewlabel

SOURCE = Path(fewlabel.__file__).parent

# Each module may import those before it; siblings on one line do not know each other.
LAYERS = [
    ["_errors", "_scikit", "_validation"],
    ["_targets", "cells", "csv_writing"],
    ["votes", "margins", "fast_forest", "tables", "target_column", "outputs", "preprocessing"],
    ["_openml", "statistics", "cbound", "held_out", "voters"],
    ["transductive", "mislabeling", "bound_search", "calibration"],
    ["thresholds", "pac_bayes", "bounds"],
    ["policies", "_training", "model_selection", "assessment"],
    ["_rounds", "_chunk_source"],
    ["_chunk_steps"],
    ["_chunk_assess"],
    ["_chunk_rows"],
    ["_chunk_loop"],
    ["out_of_core"],
    ["self_learning"],
    ["baselines", "posterior"],
    ["families"],
    ["workbench"],
    ["mixed_vote"],
    ["datasets", "report", "distributed", "demo", "model_files"],
    ["console", "plots"],
    ["experiments", "workflow"],
    ["bounds_table", "folders"],
    ["commands"],
    ["cli"],
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

# Convenience that reaches upwards, from inside a function only: (module, what it may import).
UPWARDS = {
    ("self_learning", "report"),  # clf.report()
}


def imports_of(path: Path) -> set[str]:
    return _imports(ast.walk(_tree(path)))


def imports_on_loading(path: Path) -> set[str]:
    """Imports at the top level, without those of functions."""
    return _imports(_tree(path).body)


def _tree(path: Path) -> ast.Module:
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []  # names for annotations are not dependencies
    return tree


def _imports(nodes: Iterable[ast.AST]) -> set[str]:
    found = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("fewlabel."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("fewlabel.")}
    return found


FILES = [p for p in SOURCE.rglob("*.py") if p.name not in ("__init__.py", "__main__.py")]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_one_way(path):
    home = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    assert home in LEVEL, f"say in LAYERS where {home} stands"
    for other in imports_of(path) - {home}:
        if (home, other) in UPWARDS:
            assert other not in imports_on_loading(path), f"{home} may import {other} later only"
        else:
            assert LEVEL[other] < LEVEL[home], f"{home} must not import {other}"


def test_one_module_touches_the_internals_of_scikit_learn():
    private = []
    for path in FILES:
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sklearn"):
                names = [*node.module.split("."), *(alias.name for alias in node.names)]
                private += [path.name for name in names if name.startswith("_")]
    assert set(private) == {"_scikit.py"}


def test_import_is_light():
    code = "import fewlabel, sys; print(sorted({'numpy', 'sklearn', 'pandas'} & set(sys.modules)))"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"


def test_public_names_exist():
    for name in fewlabel.__all__:
        assert getattr(fewlabel, name) is not None
    assert set(fewlabel.__all__) <= set(dir(fewlabel))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        fewlabel.nothing  # noqa: B018


def test_product_code_knows_no_workplace():
    for path in SOURCE.rglob("*"):
        if path.suffix in (".py", ".html", ".css", ".js"):
            assert "../shared" not in path.read_text()
