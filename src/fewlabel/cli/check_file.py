"""The file of drawn rows: written for a person to fill in, and read back with suspicion.

A limit is exact only if the rows that were checked are those that were drawn. The file therefore
says how they were drawn; when it comes back the draw is repeated and every cell is compared.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fewlabel._core.errors import UserError, listing, shorten
from fewlabel.assess.audit_draws import audit_sample
from fewlabel.assess.audit_plans import Plan
from fewlabel.bounds.statistics import Ints
from fewlabel.cli.labelled_table import LabelledTable, Population, row_list, texts

if TYPE_CHECKING:
    import pyarrow as pa

ORDER, LABEL, RIGHT = "audit_order", "audit_label", "audit_right_label"
ROW, DIGEST, DRAW = "audit_row", "audit_row_digest", "audit_draw"
OWN = (ORDER, LABEL, RIGHT, ROW, DIGEST, DRAW)

_MARK = re.compile(r"(fixed|sequential)-(accepted|all)-([1-9]\d{0,11})-(\d{1,20})-([0-9a-f]{16})")
# Spreadsheets save what they show: of a long number, six digits.
_DIGITS = 1e-5
# A digest of digits alone, or like 86696578861688e1, would come back as a rounded number.
_LETTER = "r"
_AGAIN = "Restore the cells"


@dataclass(frozen=True)
class Draw:
    """How rows were drawn; with the table it says which."""

    plan: Plan
    population: Population
    size: int
    seed: int

    def mark(self, labelled: LabelledTable) -> str:
        """What every row of the file carries: the draw, and a digest of it and of the table."""
        parts = (self.plan, self.population, str(self.size), str(self.seed))
        known = [*parts, labelled.target, labelled.digest()]
        digest = hashlib.sha256(json.dumps(known).encode()).hexdigest()[:16]
        return "-".join([*parts, digest])

    def rows(self, labelled: LabelledTable) -> Ints:
        """The drawn rows, from 0, in their order."""
        return audit_sample(labelled.inside, self.size, self.seed)

    def again(self) -> str:
        """What to type to get the file as it was."""
        options = f"--draw {self.size} --seed {self.seed}"
        options += " --all" if self.population == "all" else ""
        return options + (" --sequential" if self.plan == "sequential" else "")


def check_table(labelled: LabelledTable, draw: Draw) -> pa.Table:
    """The drawn rows, all cells as text, with an empty column for the right label."""
    import pyarrow as pa

    rows = draw.rows(labelled)
    part = labelled.table.take(rows)
    cells = {name: texts(part.column(name)) for name in part.column_names}
    names = _shown(labelled)
    columns = {
        ORDER: [str(i + 1) for i in range(len(rows))],
        LABEL: list(labelled.labels[rows]),
        RIGHT: [""] * len(rows),
        **{name: cells[name] for name in names},
        ROW: [str(row + 1) for row in rows],
        DIGEST: _row_digests(cells),
        DRAW: [draw.mark(labelled)] * len(rows),
    }
    table = pa.table({name: pa.array(column, pa.string()) for name, column in columns.items()})
    # Written as the table was: the spreadsheet that made the one has to open the other.
    return table.replace_schema_metadata(labelled.table.schema.metadata)


def _shown(labelled: LabelledTable) -> list[str]:
    """Columns that help to judge a row: not the target, and nothing that a model said of it."""
    from fewlabel.cli.table_columns import added_names

    target = labelled.target
    hidden, votes = {target, *OWN, *added_names(target)}, f"{target}_vote_"
    names = labelled.table.column_names
    return [name for name in names if name not in hidden and not name.startswith(votes)]


def _row_digests(cells: dict[str, list[str]]) -> list[str]:
    names = json.dumps(list(cells))
    return [
        _LETTER + hashlib.sha256((names + json.dumps(row)).encode()).hexdigest()[:16]
        for row in zip(*cells.values())
    ]


# --- reading back ----------------------------------------------------------------------------


def draw_of(check: pa.Table, path: Path) -> Draw:
    """How the rows of a checked file were drawn, by its own account."""
    name = shorten(path)
    missing = [column for column in OWN if column not in check.column_names]
    if missing:
        raise UserError(
            f"'{name}' lacks the columns {listing(missing)}.",
            "Use the file that `fewlabel audit --draw` wrote, with all its columns.",
        )
    marks = [mark.strip() for mark in texts(check.column(DRAW))]
    filled = Counter(mark for mark in marks if _MARK.fullmatch(mark))
    if not filled:
        raise UserError(
            f"No row of '{name}' says how it was drawn ({DRAW}).",
            "Use the file that `fewlabel audit --draw` wrote.",
        )
    mark = filled.most_common(1)[0][0]
    foreign = [i + 1 for i, other in enumerate(marks) if other != mark]
    if foreign:
        raise UserError(
            f"'{name}' mixes rows of different draws: {row_list(foreign)} of the file.",
            "Remove the rows that do not belong, and restore those that do.",
        )
    plan, population, size, seed, _ = _MARK.fullmatch(mark).groups()  # type: ignore[union-attr]
    return Draw(plan, population, int(size), int(seed))  # type: ignore[arg-type]


def without_blank_rows(check: pa.Table) -> pa.Table:
    """Spreadsheets like to add rows without a single cell."""
    columns = [texts(column) for column in check.columns]
    filled = [any(cell.strip() for cell in row) for row in zip(*columns)]
    return check.filter(filled)


def right_labels(
    labelled: LabelledTable, draw: Draw, check: pa.Table, path: Path
) -> list[str | None]:
    """The right labels in the order of the draw, None where none was filled in.

    A :class:`UserError` names the rows if they are not exactly those that were drawn.
    """
    cells = {name: texts(check.column(name)) for name in check.column_names}
    drawn_from_here = draw.size <= int(labelled.inside.sum())
    expected = check_table(labelled, draw) if drawn_from_here else None
    if expected is None or cells[DRAW][0].strip() != expected.column(DRAW)[0].as_py():
        raise _other_table(labelled, cells, path)
    wanted = {name: expected.column(name).to_pylist() for name in expected.column_names}
    place = _places(cells, wanted, path, draw)
    classes = _spellings(labelled)
    _check_cells(cells, wanted, place, path, draw, classes)
    return _as_classes([cells[RIGHT][i].strip() for i in place], classes, wanted[ROW])


def _other_table(labelled: LabelledTable, cells: dict[str, list[str]], path: Path) -> UserError:
    """The digest of the whole draw differs: say in which of the rows, as far as that is known."""
    table = labelled.table
    numbers = [_number(cell) for cell in cells[ROW]]
    known = [(n, d) for n, d in zip(numbers, cells[DIGEST]) if n and n <= table.num_rows]
    changed: list[int] = []
    if known:
        part = table.take([n - 1 for n, _ in known])
        now = _row_digests({name: texts(part.column(name)) for name in part.column_names})
        changed = sorted(
            {n for (n, then), digest in zip(known, now) if not _same_digest(then, digest)}
        )
    where = (
        f"{row_list(changed)} {'is' if len(changed) == 1 else 'are'} not what was drawn"
        if changed
        else "other rows have changed, or the note of the draw itself"
    )
    return UserError(
        f"'{shorten(path)}' was not drawn from this table as it is now, for the target "
        f"'{shorten(labelled.target)}': {where}.",
        "Name the table and target that the rows were drawn from, unchanged, or draw again.",
    )


def _places(
    cells: dict[str, list[str]], wanted: dict[str, list[str]], path: Path, draw: Draw
) -> list[int]:
    """Where each drawn row stands in the file; raise for repeated, foreign and missing rows."""
    name, numbers = shorten(path), [_number(cell) for cell in cells[ROW]]
    unread = [i + 1 for i, number in enumerate(numbers) if number is None]
    if unread:
        raise UserError(
            f"{ROW} is no row number in {row_list(unread)} of '{name}'.", f"{_AGAIN}{_how(draw)}."
        )
    drawn = [int(row) for row in wanted[ROW]]
    counts = Counter(number for number in numbers if number is not None)
    for what, rows, remedy in (
        ("repeats", [n for n in counts if counts[n] > 1], "Keep each row once."),
        ("holds rows that were not drawn", list(counts.keys() - set(drawn)), "Remove them."),
        (
            "lacks rows that were drawn",
            list(set(drawn) - counts.keys()),
            f"Put them back{_how(draw)}.",
        ),
    ):
        if rows:
            raise UserError(f"'{name}' {what}: {row_list(sorted(rows))}.", remedy)
    where = {number: i for i, number in enumerate(numbers)}
    return [where[row] for row in drawn]


def _check_cells(
    cells: dict[str, list[str]],
    wanted: dict[str, list[str]],
    place: list[int],
    path: Path,
    draw: Draw,
    classes: Spellings,
) -> None:
    """Raise if a cell that is not to be filled in differs from what was written."""
    gone = [name for name in wanted if name not in cells and _safe(name) not in cells]
    if gone:
        raise UserError(
            f"'{shorten(path)}' lacks the columns {listing(gone)}.", f"{_AGAIN}{_how(draw)}."
        )
    changed: dict[int, str] = {}
    for name in wanted.keys() - {RIGHT}:
        column = cells.get(name) or cells[_safe(name)]
        same = _comparison(name, classes)
        for row, i, was in zip(wanted[ROW], place, wanted[name]):
            if not same(column[i], was):
                changed.setdefault(int(row), name)
    if changed:
        rows = sorted(changed)
        names = sorted({changed[row] for row in rows})
        raise UserError(
            f"Cells of '{shorten(path)}' were changed: {row_list(rows)}, {listing(names)}.",
            f"{_AGAIN}{_how(draw)}; a spreadsheet may have rewritten dates or numbers: load the "
            f"columns as text.",
        )


def _comparison(name: str, classes: Spellings) -> Callable[[str, str], bool]:
    """How cells of a column are compared with what was written."""
    if name == LABEL:
        return lambda cell, was: _as_written(cell, was) or _one_class(cell, classes) == was
    if name == DIGEST:
        return _same_digest
    return _as_written if name in OWN else _same


def _as_written(cell: str, was: str) -> bool:
    return cell.strip() in (was.strip(), _safe(was).strip())


def _same_digest(cell: str, was: str) -> bool:
    # Files of earlier versions have digests without the letter.
    return cell.strip() in (was, was.removeprefix(_LETTER))


def _same(cell: str, was: str) -> bool:
    if _as_written(cell, was) or cell.strip().casefold() == was.strip().casefold():
        return True
    try:
        return math.isclose(_value(cell), _value(was), rel_tol=_DIGITS)
    except ValueError:
        return False


def _value(text: str) -> float:
    """A number; one comma alone is a decimal comma, as in 4,93002E+12."""
    return float(text if "." in text else text.replace(",", ".", 1))


def _safe(text: str) -> str:
    """A cell as the CSV file has it, where a spreadsheet would have run it."""
    import pyarrow as pa

    from fewlabel.tables.csv_writing import formula_safe

    risky = text.lstrip()[:1] in ("=", "@", "+", "-", "\t", "\r", "\n")
    return formula_safe(pa.array([text]))[0].as_py() if risky and text else text


def _how(draw: Draw) -> str:
    return f" (`{draw.again()}` writes the same rows again)"


def _number(cell: str) -> int | None:
    text = cell.strip()
    return int(text) if text.isascii() and text.isdigit() and 0 < len(text) < 19 else None


Spellings = dict[Any, list[str]]
"""The classes that are alike but for their spelling."""


def _spellings(labelled: LabelledTable) -> Spellings:
    alike: Spellings = {}
    for label in sorted({label for label in labelled.labels if label is not None}):
        alike.setdefault(_folded(label), []).append(label)
    return alike


def _one_class(text: str, classes: Spellings) -> str | None:
    """The class that a cell means, in whatever spelling; None if that is not clear."""
    alike = classes.get(_folded(text), [])
    return alike[0] if len(alike) == 1 else None


def _as_classes(found: list[str], classes: Spellings, rows: list[str]) -> list[str | None]:
    """The labels, in the spelling of the classes; refuse those that may mean several of them."""
    disarmed = {
        name: label
        for alike in classes.values()
        for label in alike
        for name in (label, _safe(label))
    }
    answer: list[str | None] = []
    unclear: list[str] = []
    for row, text in zip(rows, found):
        label = disarmed.get(text) or _one_class(text, classes) or text
        if label not in disarmed and _folded(label) in classes:
            meant = " or ".join(f"'{shorten(one, 30)}'" for one in classes[_folded(label)][:2])
            unclear.append(f"row {int(row):,} '{shorten(label, 30)}' for {meant}")
        answer.append(label or None)
    if unclear:
        more = f" and {len(unclear) - 5} more" if len(unclear) > 5 else ""
        raise UserError(
            f"Labels may mean several classes: {'; '.join(unclear[:5])}{more}.",
            f"Write the classes in {RIGHT} exactly as in {LABEL}.",
        )
    return answer


def _folded(label: str) -> Any:
    text = " ".join(label.split()).casefold()
    try:
        number = float(text)
    except ValueError:
        return text
    return number if np.isfinite(number) else text
