"""Dates as people write them: which formats a column has, and the moments in its cells.

A column of text is read by the format that fits most of its cells; whether the day or the month
comes first is decided by the column as a whole. ISO 8601 needs no format.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from fewlabel._core.optional import pa, pc, pd

ISO = "ISO 8601"
_DAY = 86_400_000.0  # milliseconds
_ISO_DATE = r"^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?( ?Z| ?[+-]\d\d:?\d\d)?$"

# Month-first before day-first where a slash parts them, as in most files that do so.
_DAYS = (
    *("%Y/%m/%d", "%Y.%m.%d", "%Y-%m-%d", "%Y-%m", "%Y/%m"),
    *("%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%m.%d.%Y", "%d-%m-%Y", "%m-%d-%Y"),
    *("%m/%d/%y", "%d/%m/%y", "%d.%m.%y", "%d-%m-%y", "%m-%d-%y", "%m/%Y", "%m.%Y"),
    *("%d %b %Y", "%d. %b %Y", "%d-%b-%Y", "%d/%b/%Y", "%d-%b-%y", "%d %b %y"),
    *("%b %d, %Y", "%b %d %Y", "%b %Y", "%b-%Y", "%d %B %Y", "%d. %B %Y", "%B %d, %Y"),
    *("%B %d %Y", "%B %Y", "%a, %d %b %Y", "%a %d %b %Y", "%A, %d %B %Y", "%A, %B %d, %Y"),
)
_TIME = r"[ T,]+\d{1,2}:\d\d(:\d\d(\.\d+)?)?( ?[AaPp][Mm])?$"
_SAMPLE = 300
_MOST_FORMATS = 3
# In a text of a date: at most so many characters, and two parts with a digit.
_LIKE_DATE = r"^.{0,24}\d.{0,24}$"

SWAPPED = {
    day: day.translate(str.maketrans("dm", "md"))
    for day in _DAYS
    if re.fullmatch(r"%[dm].%[dm].%[yY]", day)
}
"""Formats that differ in what comes first, day or month."""


@dataclass(frozen=True)
class DateFormats:
    """How the dates of a column of text are written.

    Attributes
    ----------
    formats : tuple of str
        For ``strptime``, or ``ISO``; a cell is read by the first one that fits.
    n_fit : int
        Cells that fit one of them.
    ambiguous : bool
        Whether every cell would also fit with day and month exchanged.
    """

    formats: tuple[str, ...]
    n_fit: int
    ambiguous: bool = False

    def told(self) -> str:
        """In words, by an example."""
        return " or ".join(example(form) for form in self.formats)


def example(form: str) -> str:
    """The last day of January 2012 in a format, and what comes first where one may ask."""
    if form == ISO:
        return "2012-01-31"
    import datetime

    written = datetime.datetime(2012, 1, 31, 13, 45).strftime(form)
    first = {"%d": " (day first)", "%m": " (month first)"}.get(form[:2], "")
    return written + (first if form.split(" ")[0].split("T")[0] in SWAPPED else "")


def find_formats(column: pa.ChunkedArray, *, share: float) -> DateFormats | None:
    """The formats that explain at least ``share`` of the filled cells of a column of text."""
    different = pc.drop_null(pc.unique(column))
    n_different = len(different)
    if n_different == 0:
        return None
    step = max(1, n_different // _SAMPLE)
    sample = different.take(np.arange(0, n_different, step))
    like = pc.sum(pc.match_substring_regex(sample, _LIKE_DATE)).as_py() or 0
    if like < share * len(sample):
        return None
    formats = _formats_of(sample, share)
    if formats is None:
        return None
    return _decided(column, formats)


def _formats_of(sample: pa.Array, share: float) -> tuple[str, ...] | None:
    """Formats that together explain the share of a sample, the most frequent one first."""
    fits = {form: ~np.isnat(_parsed(sample, form)) for form in _candidates(sample)}
    chosen: list[str] = []
    explained = np.zeros(len(sample), dtype=bool)
    while fits and len(chosen) < _MOST_FORMATS and explained.sum() < share * len(sample):
        best = max(fits, key=lambda form: int((fits[form] & ~explained).sum()))
        if not (fits[best] & ~explained).any():
            break
        chosen.append(best)
        explained |= fits[best]
    return tuple(chosen) if explained.sum() >= share * len(sample) else None


def _candidates(sample: pa.Array) -> list[str]:
    cells = sample.to_pylist()
    times = {_time_format(cell) for cell in cells}
    # 1.2.13 is a version: with two digits for the year, day and month need two as well.
    padded = min(len(cell.strip()) for cell in cells) >= len("31.01.12")
    days = [day for day in _DAYS if padded or "%y" not in day]
    return [ISO, *(day + time for time in sorted(times) for day in days)]


def _time_format(cell: str) -> str:
    found = re.search(_TIME, cell)
    if found is None:
        return ""
    text = found.group()
    blank = re.match(r"[ T,]+", text).group()  # type: ignore[union-attr]
    half = found.group(3)
    hour = "%I:%M" if half else "%H:%M"
    seconds = ":%S" if found.group(1) else ""
    fraction = ".%f" if found.group(2) else ""
    return (
        blank + hour + seconds + fraction + (f"{' ' if half[0] == ' ' else ''}%p" if half else "")
    )


def _decided(column: pa.ChunkedArray, formats: tuple[str, ...]) -> DateFormats:
    """The same after a look at all cells: day or month first, and whether that can be told."""
    filled = column.drop_null()
    n_fit = int((~np.isnat(moments_of(filled, formats))).sum())
    day, time = _split(formats[0])
    if len(formats) > 1 or day not in SWAPPED:
        return DateFormats(formats, n_fit)
    other = SWAPPED[day] + time
    n_other = int((~np.isnat(moments_of(filled, (other,)))).sum())
    if n_other > n_fit:
        return DateFormats((other,), n_other)
    different = pc.count_distinct(filled).as_py()
    return DateFormats(formats, n_fit, ambiguous=n_other == n_fit and different > 1)


def _split(form: str) -> tuple[str, str]:
    day = next((day for day in sorted(_DAYS, key=len, reverse=True) if form.startswith(day)), form)
    return day, form[len(day) :]


def _parsed(texts: pa.Array, form: str) -> NDArray[np.datetime64]:
    """Moments in texts by one format, NaT where it does not fit."""
    if form == ISO:
        texts = pc.if_else(pc.match_substring_regex(texts, _ISO_DATE), texts, None)
        form = "ISO8601"
    series = pd.Series(texts.to_pylist(), dtype=object)
    parsed = pd.to_datetime(series, format=form, utc=True, errors="coerce")
    moments = parsed.dt.tz_convert(None).to_numpy()
    found = moments.astype("datetime64[ms]")
    if np.datetime_data(moments.dtype)[0] == "ns":  # before pandas 3, whose nanoseconds end in 2262
        for i in np.flatnonzero(np.isnat(found) & series.notna().to_numpy()):
            found[i] = _far_moment(series[i], form)
    return found


def _far_moment(text: str, form: str) -> np.datetime64:
    """One moment, by the standard library, which knows the years 1 to 9999."""
    try:
        iso = form == "ISO8601"
        moment = datetime.fromisoformat(text) if iso else datetime.strptime(text, form)
    except ValueError:
        return np.datetime64("NaT")
    offset = moment.utcoffset() or timedelta(0)
    return np.datetime64(moment.replace(tzinfo=None), "ms") - np.timedelta64(offset, "ms")


def moments_of(column: pa.ChunkedArray, formats: tuple[str, ...]) -> NDArray[np.datetime64]:
    """Moments (UTC) in the cells of a column of text, NaT where no format fits.

    Each different text is read once: dates repeat.
    """
    coded = pc.dictionary_encode(column).combine_chunks() if len(column) else None
    if coded is None:
        return np.empty(0, dtype="datetime64[ms]")
    texts = coded.dictionary
    found = np.full(len(texts) + 1, np.datetime64("NaT"), dtype="datetime64[ms]")
    for form in formats:
        open_ = np.isnat(found[:-1])
        found[:-1][open_] = _parsed(texts.filter(open_), form)
    codes = np.asarray(pc.fill_null(coded.indices, len(texts)))
    return found[codes]


def timestamps(
    column: pa.ChunkedArray, formats: tuple[str, ...] = (ISO,)
) -> NDArray[np.datetime64]:
    """Moments without a zone (UTC), NaT where there is none; numbers are read by the first format.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
    formats : tuple of str
        How texts are written.
    """
    if pa.types.is_temporal(column.type):
        # Milliseconds hold the year 9999, which stands for "no end"; nanoseconds stop in 2262.
        found = np.asarray(column.cast(pa.timestamp("ms"), safe=False).to_numpy())
        return found.astype("datetime64[ms]")
    if pa.types.is_floating(column.type):
        column = pc.cast(column, pa.int64(), safe=False)
    return moments_of(pc.utf8_trim_whitespace(column.cast(pa.string())), formats)


def days_of(moments: NDArray[np.datetime64]) -> NDArray[np.float64]:
    """Days since 1970, NaN where there is no date."""
    return np.where(np.isnat(moments), np.nan, moments.astype(np.int64) / _DAY)


def moments_at(days: NDArray[np.float64]) -> NDArray[np.datetime64]:
    """The moments again."""
    found = np.full(len(days), np.datetime64("NaT"), dtype="datetime64[ms]")
    known = np.isfinite(days)
    found[known] = np.round(days[known] * _DAY).astype(np.int64).astype("datetime64[ms]")
    return found
