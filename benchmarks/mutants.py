"""Copies of a module with one operator, comparison or constant changed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "fewlabel"
_COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
_OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    path: Path
    position: int
    line: int
    statement: range
    """The lines of the statement; none if it is executed on import."""
    text: str
    change: str
    code: str

    @property
    def key(self) -> tuple[str, int, str, str]:
        return str(self.path.relative_to(SOURCE)), self.position, self.text, self.change

    @property
    def name(self) -> str:
        return f"{self.path.relative_to(SOURCE)}:{self.line}: {self.change}"


def mutants_of(path: Path) -> list[Mutant]:
    """Every mutant of a module."""
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    found: list[Mutant] = []
    n = len(list(_places(ast.parse(source))))
    for position in range(n):
        tree = ast.parse(source)
        node = list(_places(tree))[position]
        before = ast.unparse(node)
        if not _change(node):
            continue
        text = lines[node.lineno - 1].strip()
        change = f"{before} → {ast.unparse(node)}"
        code = ast.unparse(ast.fix_missing_locations(tree))
        statement = _statement(tree, node.lineno)
        found.append(Mutant(path, position, node.lineno, statement, text, change, code))
    return found


def _statement(tree: ast.AST, line: int) -> range:
    """The lines of the innermost statement of a function, without its block; else none."""
    around = [
        node
        for node in ast.walk(tree)  # the outer ones first
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    if not any(isinstance(node, ast.FunctionDef) for node in around):
        return range(0)
    block = getattr(around[-1], "body", None)
    end = block[0].lineno if block else (around[-1].end_lineno or 0) + 1
    return range(around[-1].lineno, end)


def _places(tree: ast.AST) -> Iterator[ast.expr]:
    """Expressions of code that runs: no annotations, docstrings, messages or lists of names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.Raise, ast.Import, ast.ImportFrom, ast.JoinedStr, ast.If)):
            if isinstance(node, ast.If) and ast.unparse(node.test) != "TYPE_CHECKING":
                yield from _places(node)
            continue
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("__all__",):
            continue
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                yield from _with_itself(node.value)
            continue
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            for part in _body(node):
                yield from _with_itself(part)
            continue
        if isinstance(node, ast.expr):
            yield from _with_itself(node)
        else:
            yield from _places(node)


def _body(node: ast.FunctionDef | ast.Lambda) -> list[ast.AST]:
    return list(node.body) if isinstance(node, ast.FunctionDef) else [node.body]


def _with_itself(node: ast.AST) -> Iterator[ast.expr]:
    kinds = (ast.Compare, ast.BinOp, ast.BoolOp, ast.UnaryOp, ast.Constant)
    holder = ast.Module([], [])
    if isinstance(node, kinds):
        yield node
    if isinstance(node, (ast.Raise, ast.JoinedStr, ast.AnnAssign, ast.If, ast.FunctionDef)):
        holder.body = [node]  # type: ignore[list-item]
        yield from _places(holder)
    else:
        yield from _places(node)


def _change(node: ast.expr) -> bool:
    """Change a node in place; whether there was something to change."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
        node.ops[0] = _COMPARISONS[type(node.ops[0])]()
    elif isinstance(node, (ast.BinOp, ast.BoolOp)) and type(node.op) in _OPERATORS:
        node.op = _OPERATORS[type(node.op)]()
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Invert)):
        node.op = ast.UAdd()
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        node.value = not node.value
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        node.value = node.value + 1
    elif isinstance(node, ast.Constant) and isinstance(node.value, float):
        node.value = 2.0 * node.value + (node.value == 0)
    else:
        return False
    return True
