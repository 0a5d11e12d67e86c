"""What is in Tables 1 to 4, ours with the paper's beside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from statistics import fmean

from reproduction import paper_values
from reproduction.measure import DESCRIBE
from reproduction.notation import Lines, Table, number
from reproduction.paper_values import N_TRIALS, Reported
from reproduction.plan import (
    DEFAULT_SETS,
    ITEMS,
    QUICK,
    ROWS,
    UNAVAILABLE,
    Row,
    Scope,
)
from reproduction.records import OK, Record
from reproduction.spec import Trial
from reproduction.summary import (
    COMPARED,
    FAR,
    Cell,
    by_key,
    cell,
    duration,
    limits_hit,
    params_text,
    ranked,
    trials_text,
)

MODE_HEADS = {"uniform": "Uniform 1/K", "supervised": "Supervised votes", "oracle": "Oracle"}


def build(name: str, scope: Scope, records: Iterable[Record]) -> Table:
    """Make one of table1 ... table4 from records."""
    found = by_key(records)
    makers = {"table1": _table_1, "table2": _table_2, "table3": _table_3, "table4": _table_4}
    return makers[name](scope, found)


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
        cells[row.name] = ranked(made, outside=_ours(scope) if name == "table2" else ())
    return cells


def _ours(scope: Scope) -> tuple[str, ...]:
    """Methods that are not in the paper's Table 2."""
    return tuple(method for method in scope.methods if method not in paper_values.METHODS)


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
        extra = row.optional and row.paper and has_records
        if name in scope.sets or (extra and scope.sets == DEFAULT_SETS):
            yield row


def is_quick(scope: Scope) -> bool:
    """Whether this is a run at tiny sizes, which says nothing about the paper."""
    return scope.n_trees == QUICK.n_trees


def _table_1(scope: Scope, found: dict[str, Record]) -> Table:
    columns = {"l": "labelled, l", "u": "unlabelled, u", "d": "dimension, d", "K": "classes, K"}
    rows = {}
    unavailable = (ROWS[UNAVAILABLE],) if scope.sets == DEFAULT_SETS else ()
    for row in (*_shown(scope, found), *unavailable):
        if row.options:
            continue
        record = found.get(Trial(row.dataset, DESCRIBE).key)
        ours = record["scores"] if record and record["status"] == OK else {}
        printed = paper_values.TABLE_1.get(row.paper or "", {})
        rows[row.name] = {c: _count(ours.get(c), printed.get(c)) for c in columns}
    note = "Counted in the data; the paper's figure is shown where it differs or we have no data."
    return Table("table1", ITEMS["table1"].title, columns, rows, (note, *_scope_notes(scope)))


def _count(ours: int | None, printed: int | None) -> Lines:
    if ours is None:
        text = "not run" if printed is None else f"(paper: {printed:,})"
    elif printed is None or ours == printed:
        text = f"{ours:,}"
    else:
        text = f"{ours:,} (paper: {printed:,})"
    return (text,)


def _table_2(scope: Scope, found: dict[str, Record]) -> Table:
    cells = accuracy_cells("table2", scope, found)
    notes = (
        _accuracy_note(cells),
        "LS, QN-S3VM, Semi-LDA and DAS-RF show the best point of the paper's grid: as in the "
        "paper, they are tuned on the labels that they are scored on.",
        *_ours_note(scope),
        *_scope_notes(scope),
    )
    return _accuracy_table("table2", dict.fromkeys(scope.methods, ""), cells, notes)


def _table_3(scope: Scope, found: dict[str, Record]) -> Table:
    cells = accuracy_cells("table3", scope, found)
    return _accuracy_table(
        "table3", MODE_HEADS, cells, (_accuracy_note(cells), *_scope_notes(scope))
    )


def _accuracy_table(
    name: str, heads: dict[str, str], cells: dict[str, dict[str, Cell]], notes: tuple[str, ...]
) -> Table:
    columns = {column: head or column for column, head in heads.items()}
    rows = {
        row: {column: _accuracy_field(row, column, c) for column, c in columns_.items()}
        for row, columns_ in cells.items()
    }
    return Table(name, ITEMS[name].title, columns, rows, notes)


def _accuracy_note(cells: dict[str, dict[str, Cell]]) -> str:
    counts = trials_text(c for row in cells.values() for c in row.values())
    return (
        f"Mean ± standard deviation (divisor n) over {counts}; in brackets where it is not "
        f"{N_TRIALS}. Italics: the paper's. Bold: best mean of the paper's methods. ↓: "
        "significantly worse than it (two-sided Mann-Whitney U test at 0.01), on the splits that "
        f"the row's cells with {COMPARED} or more share. The paper's arrows are its own. SE: ours "
        "minus the paper's mean in standard errors of the difference, shown beyond "
        f"{FAR:g}; a single trial is given the paper's deviation."
    )


def _ours_note(scope: Scope) -> tuple[str, ...]:
    if not (ours := _ours(scope)):
        return ()
    return (
        f"{', '.join(ours)}: `FewLabelClassifier()` at its defaults, which is not in the paper "
        "([the mixed vote](mixed_vote.md)). ↑, ↓: significantly better or worse than the best of "
        "the others.",
    )


def _scope_notes(scope: Scope) -> tuple[str, ...]:
    """What sets the whole table apart from the paper's."""
    notes = (
        f"Splits: {scope.other_splits}; not the paper's." if scope.other_splits else "",
        "Quick run at tiny sizes: shows that everything runs, not what the paper found."
        if is_quick(scope)
        else "",
    )
    return tuple(filter(None, notes))


def _table_4(scope: Scope, found: dict[str, Record]) -> Table:
    rows: dict[str, dict[str, Lines]] = {}
    machines: set[str] = set()
    for row in _shown(scope, found):
        printed = paper_values.TABLE_4.get(row.paper or "", {})
        rows[row.name] = {}
        for method in scope.methods:
            records = [found[t.key] for t in scope.cell(row.name, method) if t.key in found]
            smaller = scope.reduced(row.name, method)
            rows[row.name][method] = _time_field(
                records, printed.get(method), smaller.note if smaller else ""
            )
            machines |= {
                f"{r['machine']['cpu']}, {r['machine']['cores']} cores"
                for r in records
                if r["status"] == OK
            }
    notes = (
        "Mean processor time to fit and to predict the unlabelled rows, over the trials (their "
        f"number in brackets if below {N_TRIALS}) and the points of the grid; marked where only "
        "the wall time is on record. Forests use one core. Italics: the paper's "
        "wall times on 32 cores. Our machine: "
        f"{'; '.join(sorted(machines)) or 'none'}.",
        *_scope_notes(scope),
    )
    return Table("table4", ITEMS["table4"].title, dict.fromkeys(scope.methods, ""), rows, notes)


def _time_field(records: list[Record], printed: str | None, note: str) -> Lines:
    done = [record for record in records if record["status"] == OK]
    limited, limit = limits_hit(records)
    paper = f"*{printed}*" if printed else ""
    if not done:
        text = f"{limit} ({limited})" if limited else "–"
        return tuple(filter(None, (text, paper)))
    clock = "processor" if all("cpu" in record["seconds"] for record in done) else "wall"
    seconds = fmean(_seconds(record["seconds"], clock) for record in done)
    lines = (
        f"{duration(seconds)}{' wall' * (clock == 'wall')}"
        f"{f' ({len(done)})' * (len(done) < N_TRIALS)}",
        f"{limited} more {limit}" if limited else "",
        note,
        paper,
    )
    return tuple(filter(None, lines))


def _seconds(seconds: dict[str, float], clock: str) -> float:
    return seconds["cpu"] if clock == "processor" else seconds["fit"] + seconds["predict"]


def _accuracy_field(row: str, column: str, c: Cell) -> Lines:
    paper = _paper_text(row, column, c.paper)
    if not c.n:
        text = f"NA ({c.limit})" if c.limited else "–"
        return tuple(filter(None, (text, paper)))
    mean = f"**{number(c.mean)}**" if c.best else number(c.mean)
    spread = f" ± {number(c.std)}" if c.n > 1 else ""
    lines = (
        f"{mean}{'↑' * c.better}{'↓' * c.worse}{spread}{f' ({c.n})' * (c.n != N_TRIALS)}",
        f"{c.limited} more {c.limit}" if c.limited else "",
        f"test part {number(fmean(c.test_values))}" if c.test_values else "",
        paper,
        f"{c.distance:+.1f} SE" if c.far else "",
        params_text(c.params),
        c.note,
    )
    return tuple(filter(None, lines))


def _paper_text(row: str, column: str, printed: Reported | None) -> str:
    if printed is not None:
        return f"*{number(printed.mean)}{'↓' * printed.worse} ± {number(printed.std)}*"
    # NA is what the paper says of a method that took too long; of others it says nothing.
    return "*NA*" if ROWS[row].paper and column in paper_values.METHODS else ""
