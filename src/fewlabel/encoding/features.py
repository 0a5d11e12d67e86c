"""From the cells of one column to features, each kind of column in its own way.

The fitted objects hold plain arrays and lists, scikit-learn's and skrub's estimators, so that a
model file can keep them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from fewlabel._core.errors import shorten
from fewlabel._core.optional import pa, pc, pd, skrub
from fewlabel.encoding.cells import filled_cells, text_of
from fewlabel.encoding.columns import Column
from fewlabel.encoding.dates import moments_at
from fewlabel.encoding.treatments import MAX_LEVELS

Features = NDArray[np.float32]

_TEXT_COMPONENTS = 100
_LEVEL_COMPONENTS = 30
# Texts that the vocabulary and the singular vectors are learned from.
_MOST_TEXTS = 50_000
_DATE_PARTS = ("month", "weekday", "hour")
MISSING = "(missing)"
RARE = "(rare)"
# So many filled cells must have values that the fit has not seen to be worth a word.
_FEWEST_CELLS, _MOSTLY_NEW = 10, 0.5


@dataclass(frozen=True, eq=False)
class Coded:
    """Features of the different values of a column, and which of the values each row has.

    All rows of a table stand side by side only once, in the features of the whole table.
    """

    values: Any
    codes: NDArray[np.integer[Any]]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return len(self.codes), self.values.shape[1]

    def __getitem__(self, rows: slice) -> Any:
        return self.values[self.codes[rows]]


class NumberFeatures:
    """Numbers, or yes and no, with the median for missing ones and a flag that marks them."""

    def __init__(self, column: Column) -> None:
        self.column = column

    def fit(self, cells: pa.ChunkedArray, values: NDArray[np.float64]) -> Features:
        """Learn the median; ``values`` are the column's numbers, as they were read."""
        known = values[np.isfinite(values)]
        self.median_ = float(np.median(known)) if len(known) else 0.0
        self.flagged_ = bool(len(known) < len(values))
        self.names_ = [self.column.name]
        if self.flagged_:
            self.names_.append(f"{self.column.name} (missing)")
        return self.transform(cells, values)

    def transform(self, cells: pa.ChunkedArray, values: NDArray[np.float64]) -> Features:
        """Features of numbers that were read."""
        missing = ~np.isfinite(values)
        out = np.empty((len(values), 1 + self.flagged_), dtype=np.float32)
        out[:, 0] = np.where(missing, self.median_, values) - self.column.shift
        if self.flagged_:
            out[:, 1] = missing
        return out


class DateFeatures:
    """Days, and the parts that come again as points on a circle (skrub)."""

    def __init__(self, column: Column) -> None:
        self.column = column

    def fit(self, cells: pa.ChunkedArray, values: NDArray[np.float64]) -> Coded:
        """Learn which parts vary."""
        self.days_ = NumberFeatures(self.column)
        self.days_.fit(cells, values)
        known = values[np.isfinite(values)]
        self.timed_ = bool((known != np.floor(known)).any())
        different, codes = np.unique(values, return_inverse=True)
        parts = self._parts(different)
        array = parts.to_numpy(dtype=np.float32)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a column without any date
            self.medians_ = np.nan_to_num(np.nanmedian(array[codes], axis=0))
            spread = np.nanmax(array, axis=0) - np.nanmin(array, axis=0)
        self.kept_ = np.flatnonzero(spread > 1e-6)
        name = self.column.name
        labels = [str(part).removeprefix("d_").replace("_circular_", " ") for part in parts.columns]
        self.names_ = [f"{name} (days)", *self.days_.names_[1:]]
        self.names_ += [f"{name} ({labels[i]})" for i in self.kept_]
        return self.transform(cells, values)

    def transform(self, cells: pa.ChunkedArray, values: NDArray[np.float64]) -> Coded:
        """Features of dates that were read as days."""
        different, codes = np.unique(values, return_inverse=True)
        parts = self._parts(different).to_numpy(dtype=np.float32)
        filled = np.where(np.isnan(parts), self.medians_, parts)[:, self.kept_]
        days = self.days_.transform(cells, different)
        return Coded(np.hstack([days, filled], dtype=np.float32), codes)

    def _parts(self, days: NDArray[np.float64]) -> pd.DataFrame:
        encoder = skrub.DatetimeEncoder(
            resolution="hour" if self.timed_ else "month",
            add_weekday=True,
            add_total_seconds=False,
            periodic_encoding="circular",
        )
        parts = encoder.fit_transform(pd.Series(moments_at(days), name="d"))
        # The days tell the year; more parts would be more noise where labels are few.
        return parts[[name for name in parts.columns if name.split("_")[1] in _DATE_PARTS]]


class _OfTexts:
    """Features of texts. Each different one is encoded once, however many rows have it."""

    def fit(self, cells: pa.ChunkedArray, values: Any = None) -> Coded:
        """Learn from a column."""
        texts, codes = _different(cells)
        return Coded(self.learn(texts, codes), codes)

    def transform(self, cells: pa.ChunkedArray, values: Any = None) -> Coded:
        """Features of a column."""
        texts, codes = _different(cells)
        return Coded(self.encoded(texts), codes)

    def learn(self, texts: pd.Series, codes: NDArray[np.integer[Any]]) -> Any:
        """Learn from different texts and which of them the rows have; features of the texts."""
        raise NotImplementedError

    def encoded(self, texts: pd.Series) -> Any:
        """Features of texts."""
        raise NotImplementedError


class CategoryFeatures(_OfTexts):
    """An indicator for each frequent value; rare ones share one, and so do empty cells."""

    def __init__(self, column: Column, n_levels: int = MAX_LEVELS) -> None:
        self.column = column
        self.n_levels = n_levels

    def learn(self, texts: pd.Series, codes: NDArray[np.integer[Any]]) -> Any:
        """Learn the values."""
        n_rows = dict(zip(texts, np.bincount(codes, minlength=len(texts)).tolist()))
        empty = n_rows.pop("", 0) > 0
        # The most frequent ones, by name where equally many rows have them.
        order = sorted(n_rows, key=lambda level: (-n_rows[level], level))
        rare = len(order) > self.n_levels
        self.levels_ = sorted(order[: self.n_levels - rare])
        self.extra_ = [*([RARE] if rare else []), *([MISSING] if empty else [])]
        name = self.column.name
        self.names_ = [f"{name}={level}" for level in [*self.levels_, *self.extra_]]
        return self.encoded(texts)

    def news(self, cells: pa.ChunkedArray) -> str:
        """A note if most of the filled cells hold values that the fit has not seen."""
        if RARE in self.extra_:  # nobody remembers which values were rare
            return ""
        texts, codes = _different(cells)
        n_rows = np.bincount(codes, minlength=len(texts))
        filled = (texts != "").to_numpy()
        new = filled & ~texts.isin(self.levels_).to_numpy()
        n_filled, n_new = int(n_rows[filled].sum()), int(n_rows[new].sum())
        if n_filled < _FEWEST_CELLS or n_new <= _MOSTLY_NEW * n_filled:
            return ""
        return (
            f"column '{shorten(self.column.name)}': {n_new:,} of {n_filled:,} filled cells hold "
            f"values that the fit has not seen (the first: '{shorten(texts[new].iloc[0])}')"
        )

    def encoded(self, texts: pd.Series) -> Any:
        """Indicators; a value that was not seen counts as rare."""
        nothing = len(self.names_)
        place = {level: i for i, level in enumerate([*self.levels_, *self.extra_])}
        rare, missing = place.get(RARE, nothing), place.get(MISSING, nothing)
        known = {level: place[level] for level in self.levels_} | {"": missing}
        indicators = np.eye(nothing + 1, nothing, dtype=np.uint8)
        return indicators[[known.get(text, rare) for text in texts]]


class TextFeatures(_OfTexts):
    """Singular vectors of the tf-idf of words or letters (skrub), or what the user's encoder gives.

    ``sparse``: the tf-idf itself.
    """

    def __init__(
        self,
        column: Column,
        encoder: Any,
        n_components: int,
        random_state: Any,
        sparse: bool = False,
    ) -> None:
        self.column = column
        self.encoder = encoder
        self.n_components = n_components
        self.random_state = random_state
        self.sparse = sparse

    def learn(self, texts: pd.Series, codes: NDArray[np.integer[Any]]) -> Any:
        """Learn vocabulary and singular vectors."""
        sample = texts
        if len(texts) > _MOST_TEXTS:
            rng = np.random.default_rng(0)
            sample = texts.iloc[np.sort(rng.permutation(len(texts))[:_MOST_TEXTS])]
        with warnings.catch_warnings():
            # Few different letters: the tf-idf itself is narrow enough.
            warnings.filterwarnings("ignore", message="The matrix shape", category=UserWarning)
            self.encoder_ = self._fitted(sample)
        encoded, name = self.encoded(texts), self.column.name
        digits = len(str(encoded.shape[1] - 1))
        self.names_ = [f"{name} ({i:0{digits}})" for i in range(encoded.shape[1])]
        if self.sparse:
            self.names_ = [f"{name}: {word}" for word in self.encoder_.get_feature_names_out()]
        return encoded

    def encoded(self, texts: pd.Series) -> Any:
        """Vectors of texts."""
        encoded = self.encoder_.transform(_asked(self.encoder_, texts))
        return encoded.tocsr() if self.sparse else _dense(encoded)

    def _fitted(self, texts: pd.Series) -> Any:
        if self.encoder is not None:
            encoder = clone(self.encoder)
            return encoder.fit(_asked(encoder, texts))
        if self.sparse:
            return _of_words_or_letters(_tf_idf, texts, self.column.words)
        n_components = min(self.n_components, max(2, len(texts) // 2))

        def vectors(**how: Any) -> Any:
            seed = self.random_state
            return skrub.StringEncoder(n_components=n_components, random_state=seed, **how)

        return _of_words_or_letters(vectors, texts, self.column.words)


class LevelFeatures(_OfTexts):
    """Many values: indicators of the frequent ones, vectors of how all of them are written."""

    def __init__(self, column: Column, random_state: Any) -> None:
        self.parts: list[Any] = [
            CategoryFeatures(column),
            TextFeatures(column, None, _LEVEL_COMPONENTS, random_state),
        ]

    def learn(self, texts: pd.Series, codes: NDArray[np.integer[Any]]) -> Any:
        """Learn both."""
        blocks = [part.learn(texts, codes) for part in self.parts]
        self.names_ = [name for part in self.parts for name in part.names_]
        return np.hstack(blocks)

    def encoded(self, texts: pd.Series) -> Any:
        """Both kinds of features."""
        return np.hstack([part.encoded(texts) for part in self.parts])


def _tf_idf(**how: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(dtype=np.float32, **how)


def _of_words_or_letters(make: Callable[..., Any], texts: pd.Series, words: bool) -> Any:
    """An encoder of words, or of letters as skrub counts them, fitted."""
    if words:
        try:
            return make(analyzer="word", ngram_range=(1, 1)).fit(texts)
        except ValueError:  # no word of two letters: an empty vocabulary
            pass
    return make(analyzer="char_wb", ngram_range=(3, 4)).fit(texts)


def features_of(
    column: Column, text_encoder: Any, random_state: Any, *, sparse: bool = False
) -> Any:
    """The unfitted features of a column; ``sparse``: texts as tf-idf, without singular vectors."""
    if column.kind == "date":
        return DateFeatures(column)
    if column.kind == "category":
        return LevelFeatures(column, random_state) if column.many else CategoryFeatures(column)
    if column.kind == "text":
        return TextFeatures(column, text_encoder, _TEXT_COMPONENTS, random_state, sparse)
    return NumberFeatures(column)


def _different(cells: pa.ChunkedArray) -> tuple[pd.Series, NDArray[np.integer[Any]]]:
    """The different texts of a column ("" for an empty cell), and which of them each row has."""
    coded = pc.dictionary_encode(pc.fill_null(filled_cells(text_of(cells)), "")).combine_chunks()
    texts = pd.Series(coded.dictionary.to_pylist(), dtype="str", name="text")
    return texts, np.asarray(coded.indices)


def _asked(encoder: Any, texts: pd.Series) -> Any:
    """Texts in the form that an encoder takes: skrub's a column, others what they can iterate."""
    return texts if type(encoder).__module__.startswith("skrub") else texts.tolist()


def _dense(encoded: Any) -> Features:
    if hasattr(encoded, "toarray"):
        encoded = encoded.toarray()
    return np.asarray(encoded, dtype=np.float32)
