"""A table that ``fewlabel fit`` or ``predict`` labelled: whose labels can be audited."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fewlabel._core.errors import UserError, listing, shorten
from fewlabel.encoding.plan import require_name
from fewlabel.tables.csv_writing import CHUNK_ROWS
from fewlabel.tables.target_column import target_labels

if TYPE_CHECKING:
    import pyarrow as pa

Population = Literal["accepted", "all"]

KNOWN = ("given", "audited")
"""Origins of labels that a person vouches for: they are not audited."""

_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no", "")


@dataclass(frozen=True)
class LabelledTable:
    """The labels of a table, and which of them an audit is about.

    ``labels`` are texts, None where there is none; ``inside`` is the mask of the population.
    """

    table: pa.Table
    target: str
    population: Population
    labels: NDArray[Any]
    inside: NDArray[np.bool_]
    notes: list[str]

    @property
    def what(self) -> str:
        """What the labels are called in a statement."""
        return "accepted labels" if self.population == "accepted" else "labels"

    def expected_error(self) -> float | None:
        """Mean of 1 − confidence over the population; None where that is not known."""
        name = f"{self.target}_confidence"
        if name not in self.table.column_names:
            return None
        # A table with decimal commas has them here, too.
        cells = [text.replace(",", ".") for text in texts(self.table.column(name))]
        part = np.array(cells, dtype=object)[self.inside]
        try:
            confidence = part.astype(np.float64)
        except ValueError:
            return None
        inside = ((confidence >= 0) & (confidence <= 1)).all()
        return float(1.0 - confidence.mean()) if inside else None

    def digest(self) -> str:
        """Fingerprint of all cells and column names, in their order."""
        sha = hashlib.sha256()
        for name, column in zip(self.table.column_names, self.table.columns):
            sha.update(json.dumps(name).encode())
            for start in range(0, len(column), CHUNK_ROWS):
                part = column.slice(start, CHUNK_ROWS).to_pylist()
                sha.update(json.dumps(part, default=str).encode())
        return sha.hexdigest()


def labelled_table(table: pa.Table, target: str | None, population: Population) -> LabelledTable:
    """Find the labels in a table; a :class:`UserError` says what is missing."""
    target = target or _only_target(table.column_names)
    names = table.column_names
    require_name(names, f"{target}_label", "--target")
    labels = target_labels(table.column(f"{target}_label"), None, whole=False)
    notes: list[str] = []
    inside = np.ones(table.num_rows, dtype=bool)
    if f"{target}_origin" in names:
        origins = [text.strip().casefold() for text in texts(table.column(f"{target}_origin"))]
        inside = np.array([origin not in KNOWN for origin in origins])
    else:
        notes.append(
            f"There is no column '{shorten(target)}_origin': every row counts as labelled by a "
            f"model."
        )
    if population == "accepted":
        inside &= _accepted(table, target)
    _check_population(labels, inside, target, population)
    return LabelledTable(table, target, population, labels, inside, notes)


def _only_target(names: list[str]) -> str:
    found = [name.removesuffix("_label") for name in names if name.endswith("_label")]
    found = [target for target in found if f"{target}_origin" in names]
    if len(found) == 1:
        return found[0]
    if found:
        raise UserError(
            f"The table holds labels of several targets: {listing(found)}.",
            "Say which one with --target.",
        )
    raise UserError(
        "The table has no labels to audit: there is no column TARGET_label with TARGET_origin.",
        "Name a table that `fewlabel fit --out` wrote, or the column with --target.",
    )


def _accepted(table: pa.Table, target: str) -> NDArray[np.bool_]:
    name = f"{target}_accepted"
    if name not in table.column_names:
        raise UserError(
            f"There is no column '{shorten(name)}' that says which labels were accepted.",
            "Add --all to audit all labels, or label the table again with `fewlabel fit`.",
        )
    cells = [text.strip().casefold() for text in texts(table.column(name))]
    strange = [i + 1 for i, cell in enumerate(cells) if cell not in _TRUE + _FALSE]
    if strange:
        raise UserError(
            f"The column '{shorten(name)}' holds something else than true and false in "
            f"{row_list(strange)}.",
            "Restore the column, or add --all to audit all labels.",
        )
    return np.array([cell in _TRUE for cell in cells])


def _check_population(
    labels: NDArray[Any], inside: NDArray[np.bool_], target: str, population: str
) -> None:
    if not inside.any() and population == "accepted":
        raise UserError(
            "There is nothing to audit: no label that a model gave was accepted.",
            "Add --all to audit all labels, or accept more of them.",
        )
    if not inside.any():
        raise UserError(
            "There is nothing to audit: every label was given or audited by a person.",
            "Name a table in which `fewlabel fit` or `fewlabel predict` labelled rows.",
        )
    empty = [int(i) + 1 for i in np.flatnonzero(inside) if labels[i] is None]
    if empty:
        raise UserError(
            f"The column '{shorten(target)}_label' is empty in {row_list(empty)}.",
            "Audit the table as `fewlabel fit` wrote it.",
        )


def texts(column: pa.ChunkedArray) -> list[str]:
    """Cells as text, in the way a CSV file has them; empty for none."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return [_text(value) for value in column.to_pylist()]


def _text(value: Any) -> str:
    if value is None:
        return ""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def row_list(rows: list[int], most: int = 8) -> str:
    """ "row 3", "rows 3, 17 and 20", "rows 1, 2, … and 40 more"."""
    shown = [f"{row:,}" for row in rows[:most]]
    if len(rows) > most:
        return f"rows {', '.join(shown)} and {len(rows) - most:,} more"
    if len(rows) == 1:
        return f"row {shown[0]}"
    return f"rows {', '.join(shown[:-1])} and {shown[-1]}"


def corrected(labelled: LabelledTable, rows: list[int], right: list[str]) -> pa.Table:
    """The table with the labels that an audit found, marked as audited.

    An audited label counts as given from now on: it also goes into the target's own column, so
    that a later fit learns from it, and has no confidence.
    """
    import pyarrow as pa

    table, target = labelled.table, labelled.target
    if f"{target}_origin" not in table.column_names:
        origin = pa.array(["predicted"] * table.num_rows, pa.string())
        table = table.append_column(f"{target}_origin", origin)
    order = np.argsort(rows)
    at = [rows[i] for i in order]
    labels: list[Any] = [right[i] for i in order]
    changes: dict[str, list[Any]] = {
        target: labels,
        f"{target}_label": labels,
        f"{target}_origin": ["audited"] * len(at),
        f"{target}_accepted": ["true"] * len(at),
        f"{target}_confidence": [None] * len(at),
    }
    for name, values in changes.items():
        if name in table.column_names:
            table = with_column(table, name, _replaced(table.column(name), at, values))
    return table


def with_column(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    """The table with another column of that name.

    What pandas stored of the type goes with the old one: it could not read the file otherwise.
    """
    index = table.column_names.index(name)
    was, table = table.column(index).type, table.set_column(index, name, column)
    metadata = dict(table.schema.metadata or {})
    if column.type == was or b"pandas" not in metadata:
        return table
    try:
        stored = json.loads(metadata[b"pandas"])
        types = [item for item in stored["columns"] if item.get("field_name") != name]
        metadata[b"pandas"] = json.dumps({**stored, "columns": types}).encode()
    except (ValueError, TypeError, KeyError, AttributeError):
        del metadata[b"pandas"]
    return table.replace_schema_metadata(metadata)


def _replaced(column: pa.ChunkedArray, rows: list[int], values: list[Any]) -> pa.Array:
    import pyarrow as pa
    from pyarrow import compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    new = pa.array(values, pa.string())
    try:
        new = new.cast(column.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # a new class, in a column of numbers
        column = column.cast(pa.string())
    mask = np.zeros(len(column), dtype=bool)
    mask[rows] = True
    whole = column.combine_chunks()
    whole = pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole
    return pc.replace_with_mask(whole, pa.array(mask), new)
