"""The package's shape: rooms import one way, importing it is light, names are public and typed."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fewlabel

SOURCE = Path(fewlabel.__file__).parent
# Each room may import those before it. docs/architecture.md says what each of them is for.
ROOMS = [
    "_core",
    "bounds",
    "assess",
    "selection",
    "encoding",
    "chunks",
    "self_learning",
    "baselines",
    "network",
    "ensemble",
    "tables",
    "labeling",
    "report",
    "cli",
]
MAX_MODULE = 400
MAX_FUNCTION = 40
FILES = [path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.stem in ROOMS]


def imports_of(path: Path) -> set[str]:
    """Modules of ours that a module imports, those for annotations only among them."""
    tree = ast.parse(path.read_text())
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {node.module for node in nodes if (node.module or "").startswith("fewlabel.")}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_rooms_import_those_above_them_only(path):
    room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    below = {
        module
        for module in imports_of(path)
        if ROOMS.index(module.split(".")[1]) > ROOMS.index(room)
    }
    # The conveniences that reach down, from inside a function: clf.report() and clf.suggest().
    conveniences = {"fewlabel.report", "fewlabel.labeling.choose", "fewlabel.labeling.space"}
    assert below <= (conveniences if room in ("self_learning", "ensemble") else set())


def code_lines(path: Path) -> dict[int, str]:
    """Lines with code: no blank lines, comments or docstrings."""
    source = path.read_text()
    lines = dict(enumerate(source.splitlines(), 1))
    quiet = {n for n, line in lines.items() if not line.strip() or line.strip().startswith("#")}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str):
            quiet |= set(range(node.lineno, node.end_lineno + 1))
    return {n: line for n, line in lines.items() if n not in quiet}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_functions_and_modules_are_short(path):
    assert len(path.read_text().splitlines()) <= MAX_MODULE
    counted = code_lines(path)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            length = sum(node.lineno <= n <= node.end_lineno for n in counted)
            assert length <= MAX_FUNCTION, f"{node.name} has {length} lines of code"


def test_one_module_touches_the_internals_of_scikit_learn():
    private = set()
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sklearn"):
                names = [*node.module.split("."), *(alias.name for alias in node.names)]
                private |= {path.name for name in names if name.startswith("_")}
    assert private == {"scikit.py"}


def test_import_is_light():
    code = "import fewlabel, sys; print(sorted({'numpy', 'sklearn', 'pandas'} & set(sys.modules)))"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"


def test_public_names_exist_and_are_typed():
    stub = ast.parse((SOURCE / "__init__.pyi").read_text())
    typed = {
        alias.asname: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == {name: f"fewlabel.{home}" for name, home in fewlabel._HOME.items()}
    for name in fewlabel.__all__:
        assert getattr(fewlabel, name) is not None
    assert set(fewlabel.__all__) <= set(dir(fewlabel))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        fewlabel.nothing  # noqa: B018


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_type_checkers_see_the_class(checker, tmp_path):
    command = shutil.which(checker, path=f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}")
    if command is None:
        pytest.skip(f"{checker} is not installed")
    script = tmp_path / "script.py"
    script.write_text(
        "from fewlabel import FewLabelClassifier\nreveal_type(FewLabelClassifier())\n"
    )
    # From the root, whose settings and cache they use; the package may be installed elsewhere.
    environment = {**os.environ, "MYPYPATH": str(SOURCE.parent)}
    answer = subprocess.run(
        [command, str(script)],
        capture_output=True,
        text=True,
        cwd=SOURCE.parents[1],
        env=environment,
    )
    assert 'FewLabelClassifier"' in answer.stdout, answer.stdout + answer.stderr


def test_product_code_knows_no_workplace():
    for path in SOURCE.rglob("*"):
        if path.suffix in (".py", ".html", ".css", ".js"):
            assert "../shared" not in path.read_text()
