"""What one column of a table is taken for: number, yes/no, date, category, text, or nothing.

A *plan* has a :class:`Column` for each column: what it is read as, why, and how it is encoded. It
is made once, from all rows (labelled or not), shown to people and kept in the model file, so that
new tables are treated in the same way.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewlabel._core.errors import UserError, shorten
from fewlabel._core.optional import pa, pc
from fewlabel.encoding.cells import (
    READERS,
    filled_cells,
    find_notation,
    missing_numbers,
    numbers,
    plain_column,
    text_of,
    written_numbers,
)
from fewlabel.encoding.dates import ISO, DateFormats, days_of, find_formats, timestamps
from fewlabel.encoding.treatments import MAX_LEVELS, TREATMENT
from fewlabel.encoding.values import find_sentinels, find_shift, is_counter

MOSTLY = 0.9
"""A column is one of numbers (dates) if at least this share of its filled cells are."""

MOSTLY_IN_PART = 0.5
"""The same for some rows of a table, which may have more odd cells than the whole."""

# Text with more different values than this share of its rows names rows rather than kinds of rows.
_IDENTIFIER_SHARE = 0.9
_IDENTIFIER_ROWS = 20
# Cells with at least so many blanks, or characters, on average are texts, unless they repeat.
_TEXT_BLANKS = 2.0
_TEXT_SHARE = 0.3
_TEXT_LENGTH = 30.0


@dataclass(frozen=True)
class Column:
    """What one column is taken for.

    Attributes
    ----------
    name : str
    kind : {"number", "yes/no", "date", "category", "text", "left out"}
    treatment : str
        How it is encoded, or why it is left out, in words for people.
    why : str
        Why it is read as what it is read as.
    notation, sign : str
        How its numbers are written, and the percent sign or currency beside them; empty for plain
        numbers. See :data:`fewlabel.encoding.cells.NOTATIONS`.
    shift : float
        Subtracted from its numbers (the days of its dates) before they lose digits.
    formats : tuple of str
        How its dates are written, see :mod:`fewlabel.encoding.dates`.
    sentinels : tuple of float
        Numbers that stand for "missing".
    many : bool
        Whether a category has more values than can have an indicator each.
    words : bool
        Whether the texts have several words each.
    """

    name: str
    kind: str
    treatment: str
    why: str = ""
    notation: str = ""
    sign: str = ""
    shift: float = 0.0
    formats: tuple[str, ...] = ()
    sentinels: tuple[float, ...] = ()
    many: bool = False
    words: bool = False

    def __str__(self) -> str:
        why = f" ({self.why})" if self.why else ""
        return f"{self.name}: {self.kind}{why}: {self.treatment}"

    @property
    def used(self) -> bool:
        """Whether features are made of it."""
        return self.kind != "left out"

    def to_dict(self) -> dict[str, Any]:
        """Its attributes; those that are usual are left out."""
        usual = {field.name: field.default for field in fields(self)}
        return {key: value for key, value in asdict(self).items() if value != usual[key]}

    def read(self, cells: pa.ChunkedArray) -> NDArray[np.float64]:
        """The numbers in cells of this column, NaN where there is none."""
        if self.kind == "date":
            return days_of(timestamps(cells, self.formats or (ISO,)))
        values = (
            written_numbers(cells, self.notation, self.sign)
            if self.notation
            else READERS[self.kind](cells)
        )
        for sentinel in self.sentinels:
            values = np.where(values == sentinel, np.nan, values)
        return values


def plan_column(
    name: str,
    column: pa.ChunkedArray,
    *,
    asked: str | None = None,
    date_format: str | None = None,
    comma_separated: bool = False,
) -> Column:
    """Decide what a column is.

    Parameters
    ----------
    name : str
    column : pyarrow.ChunkedArray
    asked : {"text", "category", "date", "number"}, optional
        What the user says that it is.
    date_format : str, optional
        How the user says that its dates are written.
    comma_separated : bool
        Whether commas part the cells of the file; then one in a number needs more proof.

    Returns
    -------
    Column
    """
    timed = pa.types.is_duration(column.type) or pa.types.is_time(column.type)
    column = plain_column(column)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    if pa.types.is_nested(column.type):
        return Column(name, "left out", "its cells are lists or objects")
    if _is_unreadable(column):
        why = f"its type, {shorten(column.type)}, is neither number nor text"
        return Column(name, "left out", why)
    n_different = pc.count_distinct(filled_cells(column), mode="only_valid").as_py()
    if n_different == 0:
        return Column(name, "left out", "every cell is empty")
    if n_different == 1 and filled_cells(column).null_count == 0:
        return Column(name, "left out", "all rows have the same value")
    if asked is not None:
        planned = _asked(name, column, asked, date_format, comma_separated, n_different)
    else:
        planned = _guessed(name, column, comma_separated, n_different)
    if timed and planned.kind == "number":
        planned = replace(planned, treatment=f"in seconds; {planned.treatment}")
    if planned.kind not in ("number", "date"):
        return planned
    return _with_values(planned, column, n_different, certain=asked is not None)


def _is_unreadable(column: pa.ChunkedArray) -> bool:
    known = (
        *(pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal),
        *(pa.types.is_temporal, pa.types.is_string),
    )
    return not any(test(column.type) for test in known)


def _guessed(name: str, column: pa.ChunkedArray, comma_separated: bool, n_different: int) -> Column:
    kind = column.type
    if pa.types.is_boolean(kind):
        return Column(name, "yes/no", TREATMENT["yes/no"], "its type")
    if pa.types.is_temporal(kind):
        return Column(name, "date", TREATMENT["date"], "its type")
    if not pa.types.is_string(kind):
        return Column(name, "number", TREATMENT["number"], "its type")
    column = filled_cells(column)
    if _has_leading_zeros(column):
        return _as_words(name, column, n_different)
    return (
        _as_number(name, column, comma_separated)
        or _as_date(name, column)
        or _as_number(name, column, comma_separated, written=True)
        or _as_words(name, column, n_different)
    )


def _asked(
    name: str,
    column: pa.ChunkedArray,
    asked: str,
    date_format: str | None,
    comma_separated: bool,
    n_different: int,
) -> Column:
    why = "asked for"
    if asked == "text":
        return _text(name, text_of(column), why)
    if asked == "category":
        many = n_different > MAX_LEVELS
        return Column(name, "category", TREATMENT["many" if many else "category"], why, many=many)
    if asked == "date":
        planned = _asked_date(name, column, date_format)
    else:
        planned = Column(name, "number", TREATMENT["number"])
        found = (
            find_notation(column, n_fewest=1, comma_separated=False) if _is_text(column) else None
        )
        if found and found[2] > int(np.isfinite(numbers(column)).sum()):
            planned = replace(planned, notation=found[0], sign=found[1])
    if not np.isfinite(planned.read(column)).any():
        cell = shorten(column.drop_null()[0].as_py())
        raise UserError(
            f"Column '{shorten(name)}' is to be a {asked}, but no cell can be read so (the first "
            f"is '{cell}').",
            "Name another kind for it, or a format of its dates, such as born=%d/%m/%Y."
            if asked == "date"
            else "Name another kind for it.",
        )
    return replace(planned, why=why)


def _asked_date(name: str, column: pa.ChunkedArray, date_format: str | None) -> Column:
    if date_format is not None or pa.types.is_temporal(column.type):
        return Column(name, "date", TREATMENT["date"], formats=(date_format or ISO,))
    if not _is_text(column):
        return Column(name, "date", TREATMENT["date"], formats=("%Y%m%d",))
    found = find_formats(filled_cells(column), share=MOSTLY_IN_PART)
    formats = found.formats if found else ("%Y%m%d",)
    return Column(name, "date", TREATMENT["date"], formats=formats)


def _is_text(column: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_string(column.type))


# --- guesses, each with its reason ------------------------------------------------------------


def _as_number(
    name: str, column: pa.ChunkedArray, comma_separated: bool, *, written: bool = False
) -> Column | None:
    """A plan for numbers, if most cells are some; ``written``: with thousands or a currency."""
    filled = int((~missing_numbers(column)).sum())
    if filled == 0:
        return None
    if written:
        found = find_notation(column, n_fewest=MOSTLY * filled, comma_separated=comma_separated)
        return found and _number(name, filled, found[2], found[0], found[1])
    for kind in ("yes/no", "number"):
        values = READERS[kind](column)
        fitting = int(np.isfinite(values).sum())
        if kind == "yes/no" and fitting == filled:
            return Column(name, kind, TREATMENT[kind], "every filled cell says yes or no")
        if kind == "number" and fitting >= MOSTLY * filled:
            # Thousands may be the only cells that no plain number explains.
            whole = fitting < filled and find_notation(
                column, n_fewest=filled, comma_separated=comma_separated
            )
            if whole and _agree(values, written_numbers(column, whole[0], whole[1])):
                return _number(name, filled, filled, whole[0], whole[1])
            return _number(name, filled, fitting, "", "")
    return None


def _number(name: str, filled: int, n_fit: int, notation: str, sign: str) -> Column:
    written = f", written like {notation} {sign}".rstrip() if notation else ""
    treatment = TREATMENT["number"]
    if n_fit < filled:
        treatment += f"; {filled - n_fit} cells that are no number count as missing"
    return Column(
        name, "number", treatment, _share(filled, n_fit, "a number") + written, notation, sign
    )


def _share(filled: int, n_fit: int, what: str) -> str:
    cells = "every filled cell" if n_fit == filled else f"{n_fit:,} of {filled:,} filled cells"
    return f"{cells} {'holds' if n_fit == filled else 'hold'} {what}"


def _has_leading_zeros(column: pa.ChunkedArray) -> bool:
    """Whether all filled cells are digits, and some a code (0815) rather than a number."""
    text = text_of(column)
    zeros = pc.any(pc.match_substring_regex(text, r"^0\d+$")).as_py()
    return bool(zeros and pc.all(pc.match_substring_regex(text, r"^\d+$")).as_py())


def _agree(plain: NDArray[np.float64], written: NDArray[np.float64]) -> bool:
    """Whether a notation leaves plain numbers what they are."""
    known = np.isfinite(plain)
    return bool((plain[known] == written[known]).all())


def _as_date(name: str, column: pa.ChunkedArray) -> Column | None:
    # Texts that mean "missing" in a column of numbers do so in one of dates.
    column = pc.if_else(pa.array(missing_numbers(column)), None, column)
    filled = len(column) - column.null_count
    found = find_formats(column, share=MOSTLY) if filled else None
    if found is None or found.n_fit < MOSTLY * filled:
        return None
    treatment = TREATMENT["date"]
    if found.n_fit < filled:
        treatment += f"; {filled - found.n_fit} cells that are no date count as missing"
    why = f"{_share(filled, found.n_fit, 'a date')}, written like {found.told()}"
    return Column(name, "date", treatment, why + _doubt(found), formats=found.formats)


def _doubt(found: DateFormats) -> str:
    if len(found.formats) > 1:
        return "; the formats are mixed, and each cell is read by the first that fits it"
    if found.ambiguous:
        return "; no cell tells the day from the month, so they may be the other way round"
    return ""


def _as_words(name: str, column: pa.ChunkedArray, n_different: int) -> Column:
    """Category or text, or a name of the row."""
    column = column.drop_null()
    n_filled = len(column)
    unique = n_filled >= _IDENTIFIER_ROWS and n_different > _IDENTIFIER_SHARE * n_filled
    blanks = np.asarray(pc.count_substring_regex(column, r"\s+"))
    if unique and blanks.mean() < 0.5 and _is_code(column):
        return Column(name, "left out", "nearly every row has its own code: an identifier")
    long = blanks.mean() >= _TEXT_BLANKS or pc.mean(pc.utf8_length(column)).as_py() >= _TEXT_LENGTH
    if unique or (n_different > max(MAX_LEVELS, _TEXT_SHARE * n_filled) and long):
        return _text(name, column, f"{n_different:,} different texts in {n_filled:,} filled cells")
    many = n_different > MAX_LEVELS
    coded = _has_leading_zeros(column)
    why = f"{n_different:,} different values" + (", digits with leading zeros" if coded else "")
    return Column(name, "category", TREATMENT["many" if many else "category"], why, many=many)


def _text(name: str, column: pa.ChunkedArray, why: str) -> Column:
    words = pc.mean(pc.count_substring_regex(column, r"\s+")).as_py() >= _TEXT_BLANKS
    return Column(name, "text", TREATMENT["words" if words else "text"], why, words=words)


def _is_code(column: pa.ChunkedArray) -> bool:
    """Whether most cells have a digit, or an address's @: language has neither."""
    return bool(pc.mean(pc.match_substring_regex(column, r"[\d@]").cast("int8")).as_py() > 0.5)


# --- numbers that say more than their value ---------------------------------------------------


def _with_values(
    planned: Column, column: pa.ChunkedArray, n_different: int, *, certain: bool
) -> Column:
    """The plan after a look at the values: row numbers, sentinels, too many digits."""
    values = planned.read(column)
    may_count = pa.types.is_integer(column.type) or _is_text(column)
    if planned.kind == "number" and may_count and not certain and is_counter(values, n_different):
        return Column(planned.name, "left out", "counts the rows: a row number or identifier")
    if planned.kind == "number":
        sentinels = find_sentinels(values)
        if sentinels:
            told = " and ".join(f"{value:g}" for value in sentinels)
            n = int(np.isin(values, sentinels).sum())
            treatment = f"{planned.treatment}; {told} ({n:,} cells) counts as missing"
            planned = replace(planned, sentinels=sentinels, treatment=treatment)
            values = np.where(np.isin(values, sentinels), np.nan, values)
    shift = find_shift(values[np.isfinite(values)])
    if shift == 0.0:
        return planned
    why = f"; counted from {shift:.10g}, since forests do not tell such long numbers apart"
    return replace(planned, treatment=planned.treatment + why, shift=shift)
