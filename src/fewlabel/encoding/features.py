"""From the cells of one column to features, each kind of column in its own way.

The fitted objects hold plain arrays and lists, scikit-learn's and skrub's estimators, so that a
model file can keep them.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fewlabel.encoding.cells import filled_cells, text_of
from fewlabel.encoding.columns import Column
from fewlabel.encoding.dates import ISO, timestamps
from fewlabel.encoding.frames import EXTRA
from fewlabel.encoding.treatments import MAX_LEVELS

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Features = NDArray[np.float32]

_TEXT_COMPONENTS = 100
_LEVEL_COMPONENTS = 30
# Texts that the vocabulary and the singular vectors are learned from.
_MOST_TEXTS = 50_000
_DATE_PARTS = ("month", "weekday", "hour")
MISSING = "(missing)"
RARE = "(rare)"


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

    def fit(self, cells: pa.ChunkedArray, values: NDArray[np.float64]) -> Features:
        """Learn which parts vary."""
        self.days_ = NumberFeatures(self.column)
        days = self.days_.fit(cells, values)
        known = values[np.isfinite(values)]
        self.timed_ = bool((known != np.floor(known)).any())
        parts = self._parts(cells)
        array = parts.to_numpy(dtype=np.float32)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a column without any date
            self.medians_ = np.nan_to_num(np.nanmedian(array, axis=0))
            spread = np.nanmax(array, axis=0) - np.nanmin(array, axis=0)
        self.kept_ = np.flatnonzero(spread > 1e-6)
        name = self.column.name
        labels = [str(part).removeprefix("d_").replace("_circular_", " ") for part in parts.columns]
        self.names_ = [f"{name} (days)", *self.days_.names_[1:]]
        self.names_ += [f"{name} ({labels[i]})" for i in self.kept_]
        return np.hstack([days, self._filled(array)])

    def transform(self, cells: pa.ChunkedArray, values: NDArray[np.float64]) -> Features:
        """Features of dates that were read as days."""
        parts = self._parts(cells).to_numpy(dtype=np.float32)
        return np.hstack([self.days_.transform(cells, values), self._filled(parts)])

    def _filled(self, parts: NDArray[np.float32]) -> Features:
        return np.where(np.isnan(parts), self.medians_, parts)[:, self.kept_].astype(np.float32)

    def _parts(self, cells: pa.ChunkedArray) -> pd.DataFrame:
        encoder = skrub().DatetimeEncoder(
            resolution="hour" if self.timed_ else "month",
            add_weekday=True,
            add_total_seconds=False,
            periodic_encoding="circular",
        )
        moments = timestamps(cells, self.column.formats or (ISO,)).rename("d")
        parts = encoder.fit_transform(moments)
        # The days tell the year; more parts would be more noise where labels are few.
        return parts[[name for name in parts.columns if name.split("_")[1] in _DATE_PARTS]]


class CategoryFeatures:
    """An indicator for each frequent value; rare ones share one, and so do empty cells."""

    def __init__(self, column: Column, n_levels: int = MAX_LEVELS) -> None:
        self.column = column
        self.n_levels = n_levels

    def fit(self, cells: pa.ChunkedArray, values: Any = None) -> NDArray[np.uint8]:
        """Learn the values."""
        from pyarrow import compute as pc

        texts = _texts(cells)
        counts = pc.value_counts(texts.drop_null())
        levels, n_rows = counts.field("values").to_pylist(), np.asarray(counts.field("counts"))
        # The most frequent ones, by name where equally many rows have them.
        order = sorted(range(len(levels)), key=lambda i: (-n_rows[i], levels[i]))
        rare = len(levels) > self.n_levels
        self.levels_ = sorted(levels[i] for i in order[: self.n_levels - rare])
        self.extra_ = [*([RARE] if rare else []), *([MISSING] if texts.null_count else [])]
        name = self.column.name
        self.names_ = [f"{name}={level}" for level in [*self.levels_, *self.extra_]]
        return self.transform(cells)

    def transform(self, cells: pa.ChunkedArray, values: Any = None) -> NDArray[np.uint8]:
        """Indicators; a value that was not seen counts as rare."""
        import pyarrow as pa
        from pyarrow import compute as pc

        texts = _texts(cells)
        n, width = len(texts), len(self.names_)
        found = pc.index_in(texts, value_set=pa.array(self.levels_, pa.string()))
        codes = np.asarray(pc.fill_null(found, -1)).astype(np.intp)
        for name in self.extra_:
            empty = np.asarray(pc.is_null(texts))
            place = len(self.levels_) + self.extra_.index(name)
            codes[(codes < 0) & (empty if name == MISSING else ~empty)] = place
        out = np.zeros((n, width), dtype=np.uint8)  # a quarter of the room until all are joined
        known = np.flatnonzero(codes >= 0)
        out[known, codes[known]] = 1.0
        return out


class TextFeatures:
    """Singular vectors of the tf-idf of words or letters (skrub), or what the user's encoder gives.

    Each different text is encoded once, so that categories of many values cost what their values
    do and not what the rows do.
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

    def fit(self, cells: pa.ChunkedArray, values: Any = None) -> Features:
        """Learn vocabulary and singular vectors."""
        texts, codes = _different(cells)
        rng = np.random.default_rng(0)
        sample = texts
        if len(texts) > _MOST_TEXTS:
            sample = texts.iloc[np.sort(rng.permutation(len(texts))[:_MOST_TEXTS])]
        with warnings.catch_warnings():
            # Few different letters: the tf-idf itself is narrow enough.
            warnings.filterwarnings("ignore", message="The matrix shape", category=UserWarning)
            self.encoder_ = self._fitted(sample)
        encoded = self._encoded(texts)
        digits = len(str(encoded.shape[1] - 1))
        self.names_ = [f"{self.column.name} ({i:0{digits}})" for i in range(encoded.shape[1])]
        if self.sparse:
            words = self.encoder_.get_feature_names_out()
            self.names_ = [f"{self.column.name}: {word}" for word in words]
        return encoded[codes]

    def transform(self, cells: pa.ChunkedArray, values: Any = None) -> Features:
        """Vectors of texts."""
        texts, codes = _different(cells)
        return self._encoded(texts)[codes]

    def _encoded(self, texts: pd.Series) -> Any:
        encoded = self.encoder_.transform(_asked(self.encoder_, texts))
        return encoded.tocsr() if self.sparse else _dense(encoded)

    def _fitted(self, texts: pd.Series) -> Any:
        if self.encoder is not None:
            from sklearn.base import clone

            encoder = clone(self.encoder)
            return encoder.fit(_asked(encoder, texts))
        if self.sparse:
            return _tf_idf(texts, words=self.column.words)
        n_components = min(self.n_components, max(2, len(texts) // 2))
        common = {"n_components": n_components, "random_state": self.random_state}
        if self.column.words:
            encoder = skrub().StringEncoder(analyzer="word", ngram_range=(1, 1), **common)
            try:
                return encoder.fit(texts)
            except ValueError:  # no word of two letters: an empty vocabulary
                pass
        return skrub().StringEncoder(**common).fit(texts)


class LevelFeatures:
    """Many values: indicators of the frequent ones, vectors of how all of them are written."""

    def __init__(self, column: Column, random_state: Any) -> None:
        self.parts: list[Any] = [
            CategoryFeatures(column),
            TextFeatures(column, None, _LEVEL_COMPONENTS, random_state),
        ]

    def fit(self, cells: pa.ChunkedArray, values: Any = None) -> Features:
        """Learn both."""
        blocks = [part.fit(cells) for part in self.parts]
        self.names_ = [name for part in self.parts for name in part.names_]
        return np.hstack(blocks)

    def transform(self, cells: pa.ChunkedArray, values: Any = None) -> Features:
        """Both kinds of features."""
        return np.hstack([part.transform(cells) for part in self.parts])


def _tf_idf(texts: pd.Series, *, words: bool) -> Any:
    """The tf-idf itself, of words or of letters as skrub counts them."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    if words:
        try:
            return TfidfVectorizer(dtype=np.float32).fit(texts)
        except ValueError:  # no word of two letters: an empty vocabulary
            pass
    letters = {"analyzer": "char_wb", "ngram_range": (3, 4)}
    return TfidfVectorizer(dtype=np.float32, **letters).fit(texts)


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


def skrub() -> Any:
    """The package, or an error that names the extra."""
    try:
        import skrub
    except ImportError as error:
        raise ImportError(
            f"Dates, texts and long lists of categories need skrub: {EXTRA}"
        ) from error
    return skrub


def _texts(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    return filled_cells(text_of(cells))


def _different(cells: pa.ChunkedArray) -> tuple[pd.Series, NDArray[np.intp]]:
    """The different texts of a column ("" for an empty cell), and which of them each row has."""
    import pandas as pd
    from pyarrow import compute as pc

    coded = pc.dictionary_encode(pc.fill_null(_texts(cells), "")).combine_chunks()
    texts = pd.Series(coded.dictionary.to_pylist(), dtype="str", name="text")
    return texts, np.asarray(coded.indices).astype(np.intp)


def _asked(encoder: Any, texts: pd.Series) -> Any:
    """Texts in the form that an encoder takes: skrub's a column, others what they can iterate."""
    return texts if type(encoder).__module__.startswith("skrub") else texts.tolist()


def _dense(encoded: Any) -> Features:
    if hasattr(encoded, "toarray"):
        encoded = encoded.toarray()
    return np.asarray(encoded, dtype=np.float32)
