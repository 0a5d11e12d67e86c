"""Rows by what stands in them, so that answers find their rows in a table that was changed."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fewlabel.labeling.store import Answer
from fewlabel.tables.csv_writing import python_cells

if TYPE_CHECKING:
    import pyarrow as pa

_BETWEEN = "\x1f"  # the unit separator
_BYTES = 16


def row_digests(table: pa.Table, columns: Sequence[str]) -> list[str]:
    """A digest of each row's cells in these columns.

    Parameters
    ----------
    table : pyarrow.Table
    columns : sequence of str
        The target is not among them: its cells change.

    Returns
    -------
    digests : list of str
        Equal for rows with equal cells.
    """
    texts = [_texts(table.column(name)) for name in columns]
    rows = zip(*texts) if texts else ((),) * table.num_rows
    return [
        hashlib.blake2b(_BETWEEN.join(row).encode(), digest_size=_BYTES).hexdigest() for row in rows
    ]


def _texts(column: pa.ChunkedArray) -> list[str]:
    return [_text(cell) for cell in python_cells(column)]


def _text(cell: Any) -> str:
    if cell is None:
        return "\x00"
    return str(cell).replace(_BETWEEN, "\x1f\x1f")


class Reattached(NamedTuple):
    """Where the rows of answers stand in the table as it is now.

    Attributes
    ----------
    places : list of (int, int or None)
        The number of each answer whose row moved, and its position; None if it is gone.
    moved, lost : list of Answer
        Answers whose row stands elsewhere, or nowhere; as they were.
    """

    places: list[tuple[int, int | None]]
    moved: list[Answer]
    lost: list[Answer]


def reattach(answers: Sequence[Answer], digests: Sequence[str]) -> Reattached:
    """Find the rows of answers by what stands in them.

    A row that is where it was, and as it was, stays. Otherwise the rows with the same cells are
    looked for; of several equal ones the nearest that no other answer belongs to.

    Parameters
    ----------
    answers : sequence of Answer
    digests : sequence of str
        Of the table's rows, see :func:`row_digests`.

    Returns
    -------
    Reattached

    Examples
    --------
    >>> answer = Answer(0, "aa", "label", "x", "random", id=7)
    >>> reattach([answer], ["bb", "aa"]).places
    [(7, 1)]
    """
    where = defaultdict(list)
    for position, digest in enumerate(digests):
        where[digest].append(position)

    def stays(answer: Answer) -> bool:
        at = answer.position
        return at is not None and at < len(digests) and digests[at] == answer.content

    # Several answers to one row move together.
    taken: dict[tuple[str, int | None], int | None] = {
        (a.content, a.position): a.position for a in answers if stays(a)
    }
    used = set(taken.values())
    places, moved, lost = [], [], []
    for answer in answers:
        key = answer.content, answer.position
        if key not in taken:
            free = [row for row in where[answer.content] if row not in used]
            old = answer.position or 0
            taken[key] = min(free, key=lambda row: abs(row - old)) if free else None
            used.add(taken[key])
        if taken[key] != answer.position:
            places.append((answer.id, taken[key]))
        if taken[key] is None:
            lost.append(answer)
        elif taken[key] != answer.position:
            moved.append(answer)
    return Reattached(places, moved, lost)
