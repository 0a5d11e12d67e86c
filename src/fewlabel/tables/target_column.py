"""The labels of a table: which cells of the target hold one, and whether they can be learned."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewlabel._core.errors import UserError, shorten
from fewlabel._core.optional import pa, pc
from fewlabel.encoding.cells import MISSING_NUMBERS

MAX_CLASSES = 1_000
# More different numbers than that are measurements: whole ones, and others.
_CODES = 20
_FRACTIONS = 10

# What marks unlabelled rows in many tables.
_WORDS = ("<na>", "nat", "missing", "unknown", "unlabeled", "unlabelled", "tbd", "todo")
_MARKERS = (*MISSING_NUMBERS, *_WORDS, "-1", "??", ".")
# Beside other labels that are signs, such as +, these are classes.
_SIGNS = ("-", ".")


def target_labels(
    column: pa.ChunkedArray, unlabeled: str | None, *, whole: bool = True
) -> NDArray[Any]:
    """Labels as texts, None where there is none.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
    unlabeled : str or None
        What marks unlabelled rows besides empty cells.
    whole : bool
        Whether labels that are all like 1.0 become 1.

    Returns
    -------
    labels : ndarray of object
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        # A table with empty cells often turned whole-number labels into 1.0, 2.0, …
        column = pc.if_else(pc.is_finite(column), column, None)
        are_whole = pc.and_(pc.equal(column, pc.floor(column)), pc.less(pc.abs(column), 2.0**53))
        if pc.all(are_whole).as_py():
            column = column.cast(pa.int64())
            if not whole:
                column = pc.binary_join_element_wise(column.cast(pa.string()), ".0", "")
    try:
        text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    except pa.ArrowException as error:
        raise UserError(
            f"The labels are of type {shorten(column.type)}, which cannot be read as text.",
            "Write them as text or whole numbers.",
        ) from error
    filled = _without(text, ("", (unlabeled or "").strip()))
    if whole and pc.all(pc.match_substring_regex(filled, r"^-?\d+\.0$")).as_py():
        # The same in a file of text; the mark may be written either way.
        filled = pc.replace_substring_regex(filled, r"\.0$", "")
        filled = _without(filled, ((unlabeled or "").strip(),))
    return np.array(filled.to_pylist(), dtype=object)


def labels_like(
    column: pa.ChunkedArray, known: Collection[str], unlabeled: str | None = None
) -> NDArray[Any]:
    """Labels in that of their two ways to be written, 1 or 1.0, of which more are known."""
    ways = (target_labels(column, unlabeled, whole=whole) for whole in (True, False))
    return max(ways, key=lambda labels: len(set(known) & set(labels)))


def _without(text: pa.ChunkedArray, marks: Sequence[str]) -> pa.ChunkedArray:
    """The texts with null for those that mark an unlabelled row."""
    marked = pc.is_in(text, value_set=pa.array([*marks, None], pa.string()))
    return pc.if_else(marked, None, text)


def type_of(column: pa.ChunkedArray) -> str:
    """The name of a target's type, by which :func:`typed_labels` gives it back."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return f"dictionary of {kind.value_type}"
    return str(kind)


def typed_labels(labels: NDArray[Any], kind: str) -> pa.Array:
    """Labels as a column of the type that the target had; text if they do not fit it.

    Parameters
    ----------
    labels : ndarray of object
        Texts, None where there is none.
    kind : str
        From :func:`type_of`.

    Returns
    -------
    pyarrow.Array
    """
    texts = pa.array(labels, pa.string())
    try:
        column = texts.cast(pa.type_for_alias(kind.removeprefix("dictionary of ")))
    except (pa.ArrowException, ValueError):
        return texts
    return column.dictionary_encode() if kind.startswith("dictionary") else column


# --- one class written in several ways --------------------------------------------------------


def label_variants(labels: Sequence[str | None] | NDArray[Any]) -> dict[str, list[str]]:
    """Labels that differ in case, blanks or number format only, the most frequent way first.

    Examples
    --------
    >>> label_variants(["sky", "Sky", "sky", "5", "5.0", "sea", None])
    {'sky': ['sky', 'Sky'], '5': ['5', '5.0']}
    """
    counts = Counter(label for label in labels if label is not None)
    groups: dict[str, list[str]] = defaultdict(list)
    for label in sorted(counts, key=lambda label: (-counts[label], label)):
        groups[_folded(label)].append(label)
    return {ways[0]: ways for ways in groups.values() if len(ways) > 1}


def _number(label: str) -> float:
    """The number that a label is, also with a decimal comma; ValueError if it is none."""
    return float(label.replace(",", ".") if re.fullmatch(r"[+-]?\d+,\d+", label) else label)


def _folded(label: str) -> str:
    try:
        return repr(_number(label))
    except ValueError:
        return " ".join(label.casefold().split())


def fold_labels(
    labels: NDArray[Any], target: str, fold: bool | None
) -> tuple[NDArray[Any], dict[str, str]]:
    """One way to write each class.

    Parameters
    ----------
    labels : ndarray of object
    target : str
    fold : bool or None
        True: join the ways to write a class; False: each is a class; None: raise if there are any.

    Returns
    -------
    labels : ndarray of object
    names : dict
        From each way to write a class to the one that stays.
    """
    variants = label_variants(labels) if fold is not False else {}
    if variants and fold is None:
        groups = (" = ".join(f"'{shorten(way)}'" for way in ways) for ways in variants.values())
        shown = shorten("; ".join(groups), 300)
        raise UserError(
            f"The target '{shorten(target)}' writes classes in several ways: {shown}.",
            "Add --fold-labels to make each group one class, or --no-fold-labels if they differ.",
        )
    names = {way: name for name, ways in variants.items() for way in ways}
    return (folded(labels, names) if names else labels), names


def folded(labels: NDArray[Any], names: dict[str, str]) -> NDArray[Any]:
    """Labels by the names that stay; others by how they fold."""
    known = {_folded(way): name for way, name in names.items()}
    return np.array(
        [None if label is None else known.get(_folded(label), label) for label in labels],
        dtype=object,
    )


# --- can they be learned? ---------------------------------------------------------------------


def check_not_regression(labels: NDArray[Any], target: str) -> None:
    """Raise if the labels are measurements rather than codes of classes."""
    classes = {label for label in labels if label is not None}
    try:
        values = np.array(sorted(_number(label) for label in classes))
    except ValueError:
        return
    n = len(values)
    if n < 2:
        return
    whole = bool((values == np.floor(values)).all())
    # Codes count from 0 or 1 with few gaps.
    codes = whole and values[0] in (0.0, 1.0) and values[-1] - values[0] < 1.5 * n
    if n <= (_CODES if whole else _FRACTIONS) or codes:
        return
    raise UserError(
        f"The target '{shorten(target)}' has {n:,} different numbers ({values[0]:g} to "
        f"{values[-1]:g}): this looks like regression, and fewlabel learns classes.",
        "Put the numbers into bins, such as low, middle and high, or add --classes if each of them "
        "is a class.",
    )


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
        frequent = shorten(Counter(given).most_common(1)[0][0])
        raise UserError(
            f"Every row has a label in '{name}', so there is nothing to fill.",
            f"If '{marker}' marks unlabelled rows, add --unlabeled '{marker}'."
            if marker
            else "Leave the target's cell empty in rows that shall be labelled, or name what marks "
            f"them, for example --unlabeled '{frequent}'.",
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
    signs = sum(not any(map(str.isalnum, c)) for c in classes)
    return next(
        (c for c in classes if c.lower() in _MARKERS and (c not in _SIGNS or signs == 1)), None
    )


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
