"""Tables 1 to 4 as Markdown, CSV and LaTeX, ours with the paper's beside."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from fewlabel.experiments import paper_values
from fewlabel.experiments.measure import DESCRIBE
from fewlabel.experiments.methods import METHODS
from fewlabel.experiments.paper_values import Reported
from fewlabel.experiments.plan import (
    DEFAULT_SETS,
    ITEMS,
    QUICK,
    ROWS,
    UNAVAILABLE,
    Row,
    Scope,
)
from fewlabel.experiments.records import OK, Record
from fewlabel.experiments.spec import Trial
from fewlabel.experiments.summary import (
    COMPARED,
    Cell,
    by_key,
    cell,
    params_text,
    ranked,
    trials_text,
)
from fewlabel.outputs import replaced

MODE_HEADS = {"uniform": "Uniform 1/K", "supervised": "Supervised votes", "oracle": "Oracle"}


@dataclass(frozen=True)
class Field:
    """One cell in the three notations."""

    markdown: str
    latex: str = ""
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """A table ready to be written: columns, and for each row its title and fields."""

    name: str
    title: str
    columns: dict[str, str]
    rows: dict[str, dict[str, Field]]
    notes: tuple[str, ...] = ()


def build(name: str, scope: Scope, records: Iterable[Record]) -> Table:
    """Make one of table1 ... table4 from records."""
    found = by_key(records)
    makers = {"table1": _table_1, "table2": _table_2, "table3": _table_3, "table4": _table_4}
    return makers[name](scope, found)


def write_table(table: Table, folder: Path) -> list[Path]:
    """Write the table as .md, .csv and .tex; return the paths."""
    texts = {"md": markdown(table), "csv": as_csv(table), "tex": latex(table)}
    paths = []
    for suffix, text in texts.items():
        path = folder / f"{table.name}.{suffix}"
        with replaced(path) as part:
            part.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


# --- what is in a table ----------------------------------------------------------------------


def accuracy_cells(name: str, scope: Scope, found: dict[str, Record]) -> dict[str, dict[str, Cell]]:
    """The cells of Table 2 or 3 by row and column, ranked within their row."""
    cells: dict[str, dict[str, Cell]] = {}
    for row in _shown(scope, found):
        if name == "table2":
            printed = paper_values.TABLE_2.get(row.paper or "", {})
            made = {
                m: _method_cell(scope, row.name, m, found, printed.get(m)) for m in scope.methods
            }
        else:
            printed = paper_values.TABLE_3.get(row.paper or "", {})
            made = {
                mode: cell(scope.grid(row.name, "MSLA", label_proba=mode), found, printed.get(mode))
                for mode in paper_values.MODES
            }
        cells[row.name] = ranked(made)
    return cells


def _method_cell(
    scope: Scope, row: str, method: str, found: dict[str, Record], printed: Reported | None
) -> Cell:
    smaller = scope.reduced(row, method)
    made = cell(scope.cell(row, method), found, printed)
    return replace(made, note=smaller.note) if smaller else made


def _shown(scope: Scope, found: dict[str, Record]) -> Iterator[Row]:
    seen = {(r["trial"]["dataset"], r["trial"].get("stratify", False)) for r in found.values()}
    for name, row in ROWS.items():
        has_records = (row.dataset, row.options.get("stratify", False)) in seen
        extra = (row.optional and row.paper and has_records) or name == UNAVAILABLE
        if name in scope.sets or (extra and scope.sets == DEFAULT_SETS):
            yield row


def is_quick(scope: Scope) -> bool:
    """Whether this is a run at tiny sizes, which says nothing about the paper."""
    return scope.n_trees == QUICK.n_trees


def _table_1(scope: Scope, found: dict[str, Record]) -> Table:
    columns = {"l": "labelled, l", "u": "unlabelled, u", "d": "dimension, d", "K": "classes, K"}
    rows = {}
    for row in _shown(scope, found):
        if row.options:
            continue
        record = found.get(Trial(row.dataset, DESCRIBE).key)
        ours = record["scores"] if record and record["status"] == OK else {}
        printed = paper_values.TABLE_1.get(row.paper or "", {})
        rows[row.name] = {c: _count(ours.get(c), printed.get(c)) for c in columns}
    note = "Counted in the data; the paper's figure is shown where it differs or we have no data."
    return Table("table1", ITEMS["table1"].title, columns, rows, (note, *_quick_note(scope)))


def _count(ours: int | None, printed: int | None) -> Field:
    values = {"value": ours, "paper": printed}
    if ours is None:
        text = "not run" if printed is None else f"(paper: {printed:,})"
    elif printed is None or ours == printed:
        text = f"{ours:,}"
    else:
        text = f"{ours:,} (paper: {printed:,})"
    return Field(text, text.replace(",", r"\,"), values)


def _table_2(scope: Scope, found: dict[str, Record]) -> Table:
    cells = accuracy_cells("table2", scope, found)
    notes = (
        _accuracy_note(cells),
        "LS, QN-S3VM, Semi-LDA and DAS-RF show the point of the paper's grid with the best mean "
        "(of those with the most trials, if a cell is unfinished), so, as in the paper, they are "
        "tuned on the labels they are scored on. Where that was too much, the cell names the "
        "smaller setting that was run instead.",
        *_quick_note(scope),
    )
    return _accuracy_table("table2", dict.fromkeys(scope.methods, ""), cells, notes)


def _table_3(scope: Scope, found: dict[str, Record]) -> Table:
    cells = accuracy_cells("table3", scope, found)
    return _accuracy_table(
        "table3", MODE_HEADS, cells, (_accuracy_note(cells), *_quick_note(scope))
    )


def _accuracy_table(
    name: str, heads: dict[str, str], cells: dict[str, dict[str, Cell]], notes: tuple[str, ...]
) -> Table:
    columns = {column: head or column for column, head in heads.items()}
    rows = {
        row: {column: _accuracy_field(row, c) for column, c in columns_.items()}
        for row, columns_ in cells.items()
    }
    return Table(name, ITEMS[name].title, columns, rows, notes)


def _accuracy_note(cells: dict[str, dict[str, Cell]]) -> str:
    counts = trials_text(c for row in cells.values() for c in row.values())
    return (
        f"Mean ± standard deviation over {counts} (in brackets: how many stand behind the cell). "
        "Bold: best mean of the row. ↓: significantly worse than it (two-sided Mann-Whitney U "
        f"test at 0.01); both on the splits that the row's cells with {COMPARED} or more share. "
        "SE: ours minus the paper's mean in standard errors of that difference."
    )


def _quick_note(scope: Scope) -> tuple[str, ...]:
    if not is_quick(scope):
        return ()
    return ("Quick run at tiny sizes: shows that everything runs, not what the paper found.",)


def _table_4(scope: Scope, found: dict[str, Record]) -> Table:
    rows: dict[str, dict[str, Field]] = {}
    machines: set[str] = set()
    for row in _shown(scope, found):
        printed = paper_values.TABLE_4.get(row.paper or "", {})
        rows[row.name] = {}
        for method in scope.methods:
            records = [
                found[t.key] for t in scope.cell(row.name, method)
                if t.key in found and found[t.key]["status"] == OK
            ]  # fmt: skip
            machines |= {f"{r['machine']['cpu']}, {r['machine']['cores']} cores" for r in records}
            smaller = scope.reduced(row.name, method)
            rows[row.name][method] = _time_field(
                row.name, records, printed.get(method), smaller.note if smaller else ""
            )
    notes = (
        "Mean over the trials (and the points of the grid) of the processor time to fit and to "
        "predict the unlabelled rows (marked where only the wall time is on record): the machine "
        "was shared, so wall times say little. Forests "
        "use one core. The paper has wall times on 32 cores. Our machine: "
        f"{'; '.join(sorted(machines)) or 'none'}.",
        *_quick_note(scope),
    )
    return Table("table4", ITEMS["table4"].title, dict.fromkeys(scope.methods, ""), rows, notes)


def _time_field(row: str, records: list[Record], printed: str | None, note: str) -> Field:
    if not records:
        text = "not available" if row == UNAVAILABLE else "not run"
        return Field(_with_paper(text, printed), text, {"paper": printed})
    clock = "processor" if all("cpu" in record["seconds"] for record in records) else "wall"
    seconds = fmean(_seconds(record["seconds"], clock) for record in records)
    values = {"value": seconds, "n": len(records), "clock": clock, "paper": printed}
    text = duration(seconds) + " wall" * (clock == "wall")
    told = f"{text} ({len(records)})" + f"<br>{note}" * bool(note)
    return Field(_with_paper(told, printed), text, values | {"setting": note})


def _seconds(seconds: dict[str, float], clock: str) -> float:
    return seconds["cpu"] if clock == "processor" else seconds["fit"] + seconds["predict"]


def _with_paper(text: str, printed: str | None) -> str:
    return f"{text}<br>paper {printed}" if printed else text


def duration(seconds: float) -> str:
    """A time as in the paper's Table 4: 0.4 s, 12 s, 3 m, 2 h."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} m"
    return f"{seconds / 3600:.1f} h"


# --- an accuracy cell in three notations -----------------------------------------------------


def number(value: float) -> str:
    """Three digits without the leading zero, as the paper prints accuracies."""
    return f"{value:.3f}".removeprefix("0") if value < 1 else f"{value:.3f}"


def _accuracy_field(row: str, c: Cell) -> Field:
    paper = "paper NA" if ROWS[row].paper else ""
    if c.paper:
        paper = f"paper {number(c.paper.mean)} ± {number(c.paper.std)}"
    values: dict[str, Any] = {
        "paper_mean": c.paper.mean if c.paper else None,
        "paper_std": c.paper.std if c.paper else None,
    }
    if not c.n:
        text = "NA" if c.limit else "not available" if row == UNAVAILABLE else "not run"
        lines = [f"{text} ({c.limit})" if c.limit else text, paper]
        return Field(
            "<br>".join(filter(None, lines)), rf"\texttt{{{text}}}", values | {"status": text}
        )
    mean = number(c.mean)
    lines = [
        f"{f'**{mean}**' if c.best else mean}{'↓' * c.worse} ± {number(c.std)} ({c.n})",
        paper,
    ]
    if c.distance is not None:
        lines.append(f"{c.distance:+.1f} SE")
    if c.params:
        lines.append(params_text(c.params))
    if c.note:
        lines.append(c.note)
    tex = rf"\textbf{{{mean}}}" if c.best else mean
    arrow = r"$^{\downarrow}$" if c.worse else ""
    tex = rf"{tex}{arrow} $\pm$ {number(c.std)}"
    values |= {
        "status": "ok", "mean": c.mean, "std": c.std, "n": c.n, "best": c.best, "worse": c.worse,
        "distance_se": c.distance, "params": params_text(c.params), "setting": c.note,
    }  # fmt: skip
    return Field("<br>".join(filter(None, lines)), tex, values)


# --- writers ---------------------------------------------------------------------------------


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
    for name, fields in table.rows.items():
        cells = [fields[column].markdown for column in table.columns]
        lines.append(f"| {row_title(name)} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, *(f"\n{note}" for note in table.notes), ""])


def as_csv(table: Table) -> str:
    """The table in long form: one line for each cell, with everything known about it."""
    keys = dict.fromkeys(k for row in table.rows.values() for f in row.values() for k in f.values)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["set", "column", "note", *keys])
    for name, fields in table.rows.items():
        for column, f in fields.items():
            writer.writerow([name, column, ROWS[name].note, *(f.values.get(k) for k in keys)])
    return out.getvalue()


def latex(table: Table) -> str:
    """The table for a paper, with the booktabs package; the paper's figures are in the others."""
    heads = [
        METHODS[column].symbol if column in METHODS else head or column
        for column, head in table.columns.items()
    ]
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\begin{{tabular}}{{l{'c' * len(heads)}}}",
        r"\toprule",
        " & ".join(["Data set", *heads]) + r" \\",
        r"\midrule",
    ]
    for name, fields in table.rows.items():
        cells = [fields[column].latex for column in table.columns]
        lines.append(" & ".join([row_title(name), *cells]) + r" \\")
    notes = " ".join(
        note.replace("↓", r"$\downarrow$").replace("±", r"$\pm$") for note in table.notes
    )
    lines += [
        r"\bottomrule",
        r"\end{tabular}",
        rf"\caption{{{table.title}. {notes}}}",
        r"\end{table}",
        "",
    ]
    return "\n".join(lines)
