"""What stands in the cells of a column: numbers, yes or no, text, or nothing."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from fewlabel._core.optional import pa, pc

MISSING_NUMBERS = ("", "na", "n/a", "#n/a", "nan", "null", "none", "?", "-")
"""Texts that mean "missing" in a column of numbers (whatever their case)."""

_LARGEST = 1e38  # forests compute in single precision


def plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column freed from how a file keeps it: any kind of text as text, times as seconds."""
    if isinstance(column.type, pa.BaseExtensionType):
        kind = column.type.storage_type
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], kind)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind, types = column.type, pa.types
    if types.is_large_string(kind) or types.is_string_view(kind) or types.is_null(kind):
        return column.cast(pa.string())
    if types.is_duration(kind) or types.is_time(kind):
        make = pa.duration if types.is_duration(kind) else pa.time64
        microseconds = column.cast(make("us"), safe=False).cast(pa.int64())
        return pc.divide(microseconds.cast(pa.float64()), 1e6)
    return column


def text_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The cells as text without blanks around it."""
    if not pa.types.is_string(column.type):
        column = column.cast(pa.string())
    return pc.utf8_trim_whitespace(column)


def filled_cells(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with blank text as null."""
    if not pa.types.is_string(column.type):
        return column
    text = pc.utf8_trim_whitespace(column)
    return pc.if_else(pc.equal(text, ""), None, text)


def missing_numbers(column: pa.ChunkedArray) -> np.ndarray:
    """Cells that are empty or say in words that there is no number."""
    text = pc.utf8_lower(text_of(column))
    missing = pc.is_in(text, value_set=pa.array([*MISSING_NUMBERS, None], pa.string()))
    return np.asarray(missing)


def empty_cells(column: pa.ChunkedArray) -> np.ndarray:
    """Cells without a value, or with a text that means so."""
    if pa.types.is_string(column.type):
        return missing_numbers(column)
    return np.asarray(pc.is_null(column, nan_is_null=True))


def numbers(column: pa.ChunkedArray) -> np.ndarray:
    """Numbers, NaN where there is none."""
    if not pa.types.is_string(column.type):
        return _floats(column)
    text = text_of(column)
    number = pc.match_substring_regex(
        text, r"^[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[iI]nf(inity)?)$"
    )
    return _floats(pc.utf8_ltrim(pc.if_else(number, text, None), "+"))


def _floats(column: pa.ChunkedArray) -> np.ndarray:
    values = np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    return np.clip(values, -_LARGEST, _LARGEST)  # keeps NaN


def booleans(column: pa.ChunkedArray) -> np.ndarray:
    """1 for yes, 0 for no, NaN where there is neither."""
    if pa.types.is_boolean(column.type):
        return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
    text = pc.utf8_lower(text_of(column))
    yes = np.asarray(pc.is_in(text, value_set=pa.array(["true", "yes", "t", "y"])))
    no = np.asarray(pc.is_in(text, value_set=pa.array(["false", "no", "f", "n"])))
    return np.where(yes, 1.0, np.where(no, 0.0, np.nan))


READERS: dict[str, Callable[[pa.ChunkedArray], np.ndarray]] = {
    "yes/no": booleans,
    "number": numbers,
}
"""Readers of texts and typed cells by the kind of column."""


# --- numbers as people write them ------------------------------------------------------------

NOTATIONS = {
    "1,234.5": (",", "."),
    "1.234,5": (".", ","),
    "1 234,5": (" ", ","),
    "1 234.5": (" ", "."),
    "1'234.5": ("'", "."),
}
"""Ways to write a number, by an example: what parts thousands, and what comes before decimals."""

SIGNS = ("%", "$", "€", "£", "¥", "USD", "EUR", "GBP", "CHF")
"""What may stand beside a number."""


def written_numbers(column: pa.ChunkedArray, notation: str, sign: str) -> np.ndarray:
    """Numbers of one notation and sign, NaN where there is none.

    A currency may be left out in some cells; a percent sign may not, since 0.5 is not 0.5 %.
    """
    if not pa.types.is_string(column.type):
        return _floats(column)
    group, decimal = NOTATIONS[notation]
    text = _plain_blanks(text_of(column))
    number = pc.match_substring_regex(text, _number_pattern(group, decimal, sign))
    digits = pc.if_else(number, text, None)
    for mark in (sign, " ", group):
        digits = pc.replace_substring(digits, mark, "") if mark else digits
    digits = pc.replace_substring(digits, decimal, ".")
    return _floats(pc.utf8_ltrim(digits, "+"))


def _plain_blanks(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Typographic blanks and apostrophes as those of a keyboard."""
    text = pc.replace_substring_regex(text, "[\u00a0\u2009\u202f]", " ")
    return pc.replace_substring(text, "\u2019", "'")


def _number_pattern(group: str, decimal: str, sign: str) -> str:
    # Thousands never begin with a zero: 0,123 has decimals.
    whole = rf"([1-9]\d{{0,2}}([{group}]\d{{3}})+|\d+)"
    number = rf"{whole}([{decimal}]\d+)?([eE][+-]?\d+)?"
    if sign == "%":
        return rf"^[+-]?{number} ?%$"
    if not sign:
        return rf"^[+-]?{number}$"
    beside = re.escape(sign)
    return rf"^({beside} ?)?[+-]?({beside} ?)?{number}( ?{beside})?$"


def find_notation(
    column: pa.ChunkedArray, *, n_fewest: float, comma_separated: bool
) -> tuple[str, str, int] | None:
    """How the numbers of a column of text are written: notation, sign, how many cells fit.

    None if fewer than ``n_fewest`` cells fit any, or if they may be something else than numbers.
    """
    text = _plain_blanks(text_of(column))
    like_numbers = pc.sum(pc.match_substring_regex(text, r"^\D{0,5}\d")).as_py() or 0
    if like_numbers < max(n_fewest, 1):
        return None
    fits = _fits(column, text)
    # If 1,234 can be both, it is a thousand.
    notation, sign = max(fits, key=lambda key: fits[key])
    n_fit = fits[notation, sign][0]
    if n_fit < n_fewest:
        return None
    numbers_only = text.filter(np.isfinite(written_numbers(column, notation, sign)))
    if not sign and not _are_numbers(numbers_only, notation, comma_separated):
        return None
    return notation, sign, n_fit


def _are_numbers(text: pa.ChunkedArray, notation: str, comma_separated: bool) -> bool:
    """Whether cells that can be read as numbers are likely to be some."""
    group, decimal = NOTATIONS[notation]
    n_groups = np.asarray(pc.count_substring(text, group))
    has_decimals = np.asarray(pc.match_substring(text, decimal))
    if decimal == "," and comma_separated:
        # "1,2" may be a list: only 1.234,5 is none.
        return bool((has_decimals & (n_groups > 0)).any())
    if group != "," and not has_decimals.any():
        # Addresses, versions and telephone numbers have as many parts in every cell.
        return bool(n_groups.max() < 2 or n_groups.min() < n_groups.max())
    return True


def _fits(column: pa.ChunkedArray, text: pa.ChunkedArray) -> dict[tuple[str, str], tuple[int, int]]:
    """How many cells fit each notation and sign, and (negative) how many of them have decimals."""
    signs = ["", *(sign for sign in SIGNS if pc.any(pc.match_substring(text, sign)).as_py())]
    fits = {}
    for sign in signs:
        for notation, (_, decimal) in NOTATIONS.items():
            number = np.isfinite(written_numbers(column, notation, sign))
            marked = np.asarray(pc.fill_null(pc.match_substring(text, decimal), False))
            fits[notation, sign] = (int(number.sum()), -int((number & marked).sum()))
    return fits
