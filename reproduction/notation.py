"""A table in two notations, Markdown and LaTeX, from the same lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from fewlabel._core.atomic import replaced
from reproduction.methods import METHODS
from reproduction.plan import ROWS

Lines = tuple[str, ...]
"""One cell; ``**`` stands around what is bold, ``*`` around what is in italics."""


@dataclass(frozen=True)
class Table:
    """A table ready to be written: columns, and for each row its cells."""

    name: str
    title: str
    columns: dict[str, str]
    rows: dict[str, dict[str, Lines]]
    notes: tuple[str, ...] = ()


def write_table(table: Table, folder: Path) -> list[Path]:
    """Write the table as .md and .tex; return the paths."""
    texts = {"md": markdown(table), "tex": latex(table)}
    paths = []
    for suffix, text in texts.items():
        path = folder / f"{table.name}.{suffix}"
        with replaced(path) as part:
            part.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def number(value: float) -> str:
    """Three digits without the leading zero, as the paper prints accuracies."""
    return f"{value:.3f}".removeprefix("0") if value < 1 else f"{value:.3f}"


def row_title(name: str) -> str:
    """Title of a row with what must be said beside its figures."""
    row = ROWS[name]
    return f"{row.title} ({row.note})" if row.note else row.title


def markdown(table: Table) -> str:
    """The table as a Markdown page."""
    heads = [head or column for column, head in table.columns.items()]
    lines = [
        f"# {table.name.capitalize().replace('le', 'le ')}. {table.title}",
        "",
        "| Data set | " + " | ".join(heads) + " |",
        "|---" * (len(heads) + 1) + "|",
    ]
    for name, row in table.rows.items():
        cells = ["<br>".join(row[column]) for column in table.columns]
        lines.append(f"| {row_title(name)} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, *(f"\n{note}" for note in table.notes), ""])


def latex(table: Table) -> str:
    """The table for a paper; what stands under a cell in Markdown stands under it here, smaller."""
    heads = [
        METHODS[column].symbol if column in METHODS else _tex(head or column)
        for column, head in table.columns.items()
    ]
    lines = [
        "% needs the packages booktabs and makecell",
        r"\begin{table}",
        r"\centering\footnotesize",
        rf"\begin{{tabular}}{{l{'c' * len(heads)}}}",
        r"\toprule",
        " & ".join(["Data set", *heads]) + r" \\",
        r"\midrule",
    ]
    for name, row in table.rows.items():
        cells = [_tex_cell(row[column]) for column in table.columns]
        lines.append(" & ".join([_tex(row_title(name)), *cells]) + r" \\")
    lines += [
        r"\bottomrule",
        r"\end{tabular}",
        rf"\caption{{{_tex(' '.join([f'{table.title}.', *table.notes]))}}}",
        r"\end{table}",
        "",
    ]
    return "\n".join(lines)


def _tex_cell(lines: Lines) -> str:
    first, *others = map(_tex, lines)
    if not others:
        return first
    return rf"\makecell{{{first}" + "".join(rf"\\\tiny {line}" for line in others) + "}"


_SYMBOLS = {
    "±": r"$\pm$", "↓": r"$^{\downarrow}$", "↑": r"$^{\uparrow}$", ">": "$>$", "λ": r"$\lambda$",
    "–": "--",
}  # fmt: skip


def _tex(text: str) -> str:
    """A line of a cell or a note in LaTeX."""
    escaped = re.sub(r"[&%_#$]", r"\\\g<0>", text)
    escaped = re.sub(r"\*\*(.+?)\*\*", r"\\textbf{\1}", escaped)
    escaped = re.sub(r"\*(.+?)\*", r"\\textit{\1}", escaped)
    escaped = re.sub(r"(?<=\d),(?=\d{3})", r"\\,", escaped)
    return "".join(_SYMBOLS.get(character, character) for character in escaped)
