"""Answers in a file: exported for others, imported from them or from Label Studio."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fewlabel._core.atomic import Outputs
from fewlabel._core.errors import UserError, shorten
from fewlabel.cli.labelled_table import row_list, texts
from fewlabel.labeling.label_studio import label_studio_answers
from fewlabel.labeling.row_identity import reattach
from fewlabel.labeling.store import KINDS, WHYS, Answer, AnswerStore
from fewlabel.tables.csv_writing import formula_safe
from fewlabel.tables.reading import read_table, table_format, write_table

COLUMNS = ("row", "content", "kind", "label", "why", "who", "at", "comment", "belief")


def export_answers(path: Path, store: AnswerStore, force: bool) -> int:
    """Write the answers that were not undone into a table; their number."""
    import pyarrow as pa

    kind = table_format(path)
    answers = store.answers()
    rows = [_exported(answer) for answer in answers]
    table = pa.table({name: pa.array([row[name] for row in rows], pa.string()) for name in COLUMNS})
    with Outputs([path], force=force) as outputs:
        write_table(table, outputs.path(path), *kind)
    return len(answers)


def _exported(answer: Answer) -> dict[str, str | None]:
    return {
        "row": "" if answer.position is None else str(answer.position + 1),
        "content": answer.content,
        "kind": answer.kind,
        "label": answer.label,
        "why": answer.why,
        "who": answer.who,
        "at": answer.at,
        "comment": answer.comment,
        "belief": "yes" if answer.belief else "no",
    }


def import_answers(path: Path, store: AnswerStore, digests: Sequence[str]) -> int:
    """Add the answers of a file, all or none; their number.

    Answers that are there already are left out. A file that names rows which the table does not
    have is refused with their list.
    """
    if path.suffix.lower() == ".json":
        answers = _of_studio(path, digests)
    else:
        answers = [_imported(row, number) for number, row in enumerate(_rows(path), 2)]
    found = reattach([answer._replace(id=i + 1) for i, answer in enumerate(answers)], digests)
    if found.lost:
        rows = [(answer.position or 0) + 1 for answer in found.lost]
        raise UserError(
            f"'{shorten(path)}' has answers to rows that the table does not have: "
            f"{row_list(rows)}.",
            "Import into the table that was exported from, or take these lines out.",
        )
    places = dict(found.places)
    answers = [a._replace(position=places.get(i + 1, a.position)) for i, a in enumerate(answers)]
    known = {_key(answer) for answer in store.answers()}
    new = [answer for answer in answers if _key(answer) not in known]
    if new:
        store.add_all(new)
    return len(new)


def _key(answer: Answer) -> tuple[Any, ...]:
    return answer.position, answer.kind, answer.label, answer.who, answer.at


def _rows(path: Path) -> list[dict[str, str]]:
    table = read_table(path)
    missing = [name for name in COLUMNS[:4] if name not in table.column_names]
    if missing:
        raise UserError(
            f"'{shorten(path)}' has no column '{missing[0]}'.",
            "Import a file that `fewlabel label --export` wrote, or a Label Studio export (.json).",
        )
    columns = {name: texts(table.column(name)) for name in table.column_names if name in COLUMNS}
    if table_format(path)[0] in ("csv", "tsv"):
        columns = {name: _as_typed(cells) for name, cells in columns.items()}
    return [dict(zip(columns, cells)) for cells in zip(*columns.values())]


def _as_typed(cells: list[str]) -> list[str]:
    """Cells without the apostrophe that a written file has before what looks like a formula."""
    import pyarrow as pa

    bare = [cell.removeprefix("'") for cell in cells]
    disarmed = formula_safe(pa.array(bare, pa.string())).to_pylist()
    return [b if d == cell != b else cell for cell, b, d in zip(cells, bare, disarmed)]


def _imported(row: dict[str, str], number: int) -> Answer:
    kind, label = row["kind"], row["label"] or None
    place = row["row"]
    if (
        kind not in KINDS
        or (label is None) == (kind == "label")
        or not (place.isdecimal() and len(place) < 17 and 0 < int(place) < 2**53)
    ):
        raise UserError(
            f"Line {number} is no answer: row '{shorten(place)}', kind '{shorten(kind)}', label "
            f"'{shorten(label or '')}'.",
            f"A kind is one of {', '.join(KINDS)}; a label belongs to the first of them.",
        )
    why: Any = row.get("why", "")
    # An answer of a check proves nothing about other labels than those that were checked.
    why = why if why in WHYS and why != "check" else "imported"
    checked_kind: Any = kind
    return Answer(
        int(place) - 1,
        row["content"],
        checked_kind,
        label,
        why,
        who=row.get("who", ""),
        comment=row.get("comment", ""),
        belief=row.get("belief") == "yes",
        at=row.get("at", ""),
    )


def _of_studio(path: Path, digests: Sequence[str]) -> list[Answer]:
    try:
        found = label_studio_answers(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(
            f"'{shorten(path)}' cannot be read as JSON ({shorten(error, 120)}).",
            "Export the project as JSON or JSON-MIN.",
        ) from error
    answers = []
    for one in found:
        if one.row >= len(digests):
            raise UserError(
                f"The export names row {one.row + 1:,}; the table has {len(digests):,}.",
                "Import into the table that the tasks came from.",
            )
        why: Any = one.why if one.why in ("random", "typical", "uncertain") else "imported"
        answers.append(Answer(one.row, digests[one.row], "label", one.label, why, who=one.who))
    return answers
