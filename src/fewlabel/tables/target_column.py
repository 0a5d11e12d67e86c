"""The labels of a table: which cells of the target hold one, and whether they can be learned."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fewlabel._core.errors import UserError, listing, shorten

if TYPE_CHECKING:
    import pyarrow as pa

MAX_CLASSES = 1_000

# What marks unlabelled rows in many tables.
_MARKERS = ("-1", "?", "na", "n/a", "nan", "null", "none", "unknown", "unlabeled", "unlabelled")


def require_column(names: list[str], wanted: str, option: str) -> None:
    """Raise unless a table has the column."""
    if wanted not in names:
        near = difflib.get_close_matches(wanted, names, n=1, cutoff=0.6)
        hint = f"Did you mean '{shorten(near[0])}'? " if near else ""
        raise UserError(
            f"There is no column '{shorten(wanted)}' for {option}.",
            f"{hint}The columns are {listing(names, 12)}.",
        )


def target_labels(
    column: pa.ChunkedArray, unlabeled: str | None, *, whole: bool = True
) -> NDArray[Any]:
    """Labels as texts, None where there is none.

    ``whole``: whether texts that are all like 1.0 become 1.
    """
    import pyarrow as pa
    from pyarrow import compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        # A table with empty cells often turned whole-number labels into 1.0, 2.0, …
        finite = pc.if_else(pc.is_finite(column), column, None)
        whole = pc.and_(pc.equal(finite, pc.floor(finite)), pc.less(pc.abs(finite), 2.0**53))
        column = finite.cast(pa.int64()) if pc.all(whole).as_py() else finite
    text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    filled = _without(text, ("", (unlabeled or "").strip()))
    if whole and pc.all(pc.match_substring_regex(filled, r"^-?\d+\.0$")).as_py():
        # The same in a file of text; the mark may be written either way.
        filled = pc.replace_substring_regex(filled, r"\.0$", "")
        filled = _without(filled, ((unlabeled or "").strip(),))
    return np.array(filled.to_pylist(), dtype=object)


def _without(text: pa.ChunkedArray, marks: Sequence[str]) -> pa.ChunkedArray:
    """The texts with null for those that mark an unlabelled row."""
    import pyarrow as pa
    from pyarrow import compute as pc

    marked = pc.is_in(text, value_set=pa.array([*marks, None], pa.string()))
    return pc.if_else(marked, None, text)


def check_labels(labels: NDArray[Any], target: str, unlabeled: str | None = None) -> None:
    """Raise unless some rows are labelled, some are not, and the classes make sense.

    ``unlabeled`` is what the user says that marks unlabelled rows, None for nothing.
    """
    given = [label for label in labels if label is not None]
    name = shorten(target)
    if not given:
        raise UserError(
            f"Every cell of the target '{name}' is empty.",
            "Fill in the labels of some rows, at least one of each class.",
        )
    classes = sorted(set(given))
    if len(given) == len(labels):
        marker = _marker(classes)
        raise UserError(
            f"Every row has a label in '{name}', so there is nothing to fill.",
            f"If '{marker}' marks unlabelled rows, add --unlabeled '{marker}'."
            if marker
            else "Leave the target's cell empty in rows that shall be labelled.",
        )
    if unlabeled is None:
        _check_marker(classes, name)
    if len(classes) < 2:
        raise UserError(
            f"All labelled rows of '{name}' have the same label, '{shorten(classes[0])}'.",
            "Label at least one row of another class.",
        )
    if len(classes) > MAX_CLASSES:
        raise UserError(
            f"The target '{name}' has {len(classes):,} different labels.",
            "It seems to hold names or numbers, not classes; choose another column, or group its "
            f"values into at most {MAX_CLASSES:,} classes.",
        )
    if len(classes) == len(given) > 20:
        raise UserError(
            f"Each of the {len(given):,} labelled rows of '{name}' has a label of its own.",
            "It seems to hold names or numbers, not classes; choose another column.",
        )


def _marker(classes: list[str]) -> str | None:
    """The first label that looks like a mark of unlabelled rows."""
    return next((c for c in classes if c.lower() in _MARKERS), None)


def _check_marker(classes: list[str], name: str) -> None:
    """Raise if some of the unlabelled rows may have a mark, while the others are empty."""
    if classes == ["-1", "1"]:  # without -1 there would be one class: it is no mark
        return
    marker = _marker(classes)
    if marker is not None:
        raise UserError(
            f"The target '{name}' has empty cells and cells with '{marker}': is that a class?",
            f"If '{marker}' marks unlabelled rows, add --unlabeled '{marker}'; if it is a class, "
            f"add --unlabeled ''.",
        )
