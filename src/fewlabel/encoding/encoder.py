"""A table as it is, to numbers: the scikit-learn transformer that everything here uses."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import hstack, issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from fewlabel._core.errors import UserError, listing, shorten
from fewlabel._core.optional import pa
from fewlabel._core.scikit import check_features, check_numbers
from fewlabel._core.targets import unlabeled_mask
from fewlabel.encoding.cells import empty_cells, plain_column
from fewlabel.encoding.columns import MOSTLY, Column
from fewlabel.encoding.features import CategoryFeatures, Coded, features_of
from fewlabel.encoding.frames import as_table, column_names, needs_encoding
from fewlabel.encoding.plan import (
    Asked,
    date_pairs,
    first_lines,
    leaks,
    left_out_line,
    make_plan,
    with_pairs,
)
from fewlabel.encoding.treatments import without_vectors

_MANY_ODD = 10
_ROWS_AT_ONCE = 50_000
_UNTOUCHED = "used as it is"


class ColumnWarning(UserWarning):
    """Columns that know which rows are labelled, or cells that cannot be read as planned."""


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode a table of numbers, categories, texts, dates, yes or no, and missing cells.

    What each column is, why, and how it is encoded stands in ``plan_``. Fit it on all rows,
    labelled or not: no label is needed. Where ``y`` is given and has gaps, columns that know which
    rows are labelled are left out, or warned of. Arrays and frames of numbers go through untouched.

    Parameters
    ----------
    text, category, number : list of str, optional
        Columns that are to be read so, whatever they look like.
    date : list of str or dict, optional
        The same for dates; a dict gives each column its format, such as ``"%d/%m/%Y"``, or
        None.
    drop : list of str or dict, optional
        Columns not to use; a dict gives each the reason that the plan tells.
    text_encoder : transformer, optional
        Encodes the texts of a column instead of skrub's ``StringEncoder``; any object with ``fit``
        and ``transform`` that takes a list of texts, or one of skrub's encoders.
    sparse : bool, default=False
        Whether a table of texts alone becomes sparse tf-idf instead of singular vectors of it.
        ``FewLabelClassifier`` asks for it: some of its families learn more from single words.
    missing_label : object, default="auto"
        What marks an unlabelled row in ``y``; "auto" takes -1, NaN, None and pd.NA.
    random_state : int, default=0
        Of the singular vectors.

    Attributes
    ----------
    plan_ : list of Column
        Name, kind, why and treatment of each column; ``print(*encoder.plan_, sep="\\n")``.
    warned_ : list of str
        Columns that differ between labelled and unlabelled rows, in words.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    needs_encoding : Whether rows are numbers already.
    skrub.TableVectorizer : Without plans in words, notations of numbers and leakage.

    References
    ----------
    .. [1] P. Cerda and G. Varoquaux, "Encoding high-cardinality string categorical variables",
           2020.

    Examples
    --------
    >>> import pandas as pd
    >>> from fewlabel import TableEncoder
    >>> table = pd.DataFrame({"price": ["$1,200", "$950"], "colour": ["red", None]})
    >>> encoder = TableEncoder().fit(table)
    >>> print(encoder.plan_[0].kind, "-", encoder.plan_[0].why)
    number - every filled cell holds a number, written like 1,234.5 $
    >>> encoder.get_feature_names_out().tolist()
    ['price', 'colour=red', 'colour=(missing)']
    >>> encoder.transform(table).tolist()
    [[1200.0, 1.0, 0.0], [950.0, 0.0, 1.0]]
    """

    def __init__(
        self,
        *,
        text: Iterable[str] | None = None,
        category: Iterable[str] | None = None,
        date: Iterable[str] | Mapping[str, str | None] | None = None,
        number: Iterable[str] | None = None,
        drop: Iterable[str] | Mapping[str, str] | None = None,
        text_encoder: Any = None,
        sparse: bool = False,
        missing_label: object = "auto",
        random_state: int | None = 0,
    ) -> None:
        self.text = text
        self.category = category
        self.date = date
        self.number = number
        self.drop = drop
        self.text_encoder = text_encoder
        self.sparse = sparse
        self.missing_label = missing_label
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Decide what the columns are and learn how to encode them.

        Parameters
        ----------
        X : frame of pandas, polars or Arrow, array, or sparse matrix
        y : array-like, optional
            Labels with gaps; only which rows have one matters.

        Returns
        -------
        self : TableEncoder
        """
        self._fit(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, and encode the same rows.

        Parameters
        ----------
        X, y
            See :meth:`fit`.

        Returns
        -------
        features : ndarray of shape (n_samples, n_features), or X if it goes through untouched
        """
        return self._fit(X, y)

    def transform(self, X: Any) -> Any:
        """Encode rows as the plan says; a warning tells of cells that cannot be read so.

        Parameters
        ----------
        X : frame or array with the columns of the fit; others are ignored

        Returns
        -------
        features : ndarray of shape (n_samples, n_features), or X if it goes through untouched
        """
        features, notes = self.encode(X)
        if notes:
            warnings.warn("; ".join(first_lines(notes)), ColumnWarning, stacklevel=2)
        return features

    def encode(self, X: Any, *, readable: float = MOSTLY) -> tuple[Any, list[str]]:
        """Encode rows; also lines that tell of cells that count as missing.

        Parameters
        ----------
        X : frame or array
        readable : float
            Share of the filled cells of a column that must be what the plan says.

        Returns
        -------
        features : ndarray of shape (n_samples, n_features)
        notes : list of str
        """
        check_is_fitted(self, "plan_")
        if self.untouched_:
            check_features(self, X, reset=False)
            return check_numbers(X), []
        table = as_table(X)
        used = [column for column in self.plan_ if column.used]
        self._check_names(table, used)
        blocks, days, notes = [], {}, []
        for column, features in zip(used, self.features_):
            cells = plain_column(table.column(column.name))
            values = self._read(column, cells)
            note = _check_readable(column, cells, values, readable)
            if isinstance(features, CategoryFeatures):
                note = features.news(cells)
            notes += [note] if note else []
            blocks.append(features.transform(cells, values))
            if column.kind == "date":
                days[column.name] = values
        blocks += self._differences(days)
        return _side_by_side(blocks), notes

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the features.

        Parameters
        ----------
        input_features : ignored
            The names are those of the fit.

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self, "plan_")
        return np.asarray(self.names_, dtype=object)

    # --- the fit ------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any) -> Any:
        kinds = {"text": self.text, "category": self.category, "number": self.number}
        asked = Asked.of(column_names(X), drop=self.drop, date=self.date, **kinds)
        self.warned_: list[str] = []
        self.untouched_ = not (needs_encoding(X) or asked.kinds or asked.drop)
        if self.untouched_:
            return self._fit_untouched(X)
        table = as_table(X)
        self.n_features_in_ = table.num_columns
        self.feature_names_in_ = np.asarray(table.column_names, dtype=object)
        labeled = self._labeled(y)
        plan, self.warned_ = make_plan(table, asked, labeled)
        self._tell(plan)
        self.pairs_ = date_pairs(plan)
        self.plan_ = with_pairs(plan, self.pairs_)
        return self._fit_features(table)

    def _fit_untouched(self, X: Any) -> Any:
        check_features(self, X, reset=True)
        X = check_numbers(X)
        names = getattr(self, "feature_names_in_", None)
        self.names_ = [f"x{i}" for i in range(X.shape[1])] if names is None else list(names)
        self.plan_ = [Column(str(name), "number", _UNTOUCHED, "its type") for name in self.names_]
        return X

    def _fit_features(self, table: pa.Table) -> Any:
        self.features_, blocks, days = [], [], {}
        kinds = {column.kind for column in self.plan_ if column.used}
        sparse = self.sparse and self.text_encoder is None and kinds == {"text"}
        for i, column in enumerate(self.plan_):
            if not column.used:
                continue
            cells = plain_column(table.column(column.name))
            values = self._read(column, cells)
            features = features_of(column, self.text_encoder, self.random_state, sparse=sparse)
            if sparse:
                self.plan_[i] = replace(column, treatment=without_vectors(column.treatment))
            blocks.append(features.fit(cells, values))
            self.features_.append(features)
            if column.kind == "date":
                days[column.name] = values
        self.gaps_ = {f"{a} to {b}": _median(days[b] - days[a]) for a, b in self.pairs_}
        names = [name for features in self.features_ for name in features.names_]
        self.names_ = _different([*names, *(f"{pair} (days)" for pair in self.gaps_)])
        return _side_by_side([*blocks, *self._differences(days)])

    def _labeled(self, y: Any) -> NDArray[np.bool_] | None:
        if y is None:
            return None
        try:
            labeled = ~unlabeled_mask(y, self.missing_label)
        except ValueError:  # the classifier will say what is wrong with y
            return None
        return labeled if labeled.any() and not labeled.all() else None

    def _tell(self, plan: list[Column]) -> None:
        """Warn of columns that know which rows are labelled."""
        told = [left_out_line(column) for column in plan if leaks(column)]
        lines = first_lines([*told, *self.warned_])
        if lines:
            warnings.warn("; ".join(lines), ColumnWarning, stacklevel=4)

    # --- rows ---------------------------------------------------------------------------------

    @staticmethod
    def _read(column: Column, cells: pa.ChunkedArray) -> Any:
        return column.read(cells) if column.kind in ("number", "yes/no", "date") else None

    def _differences(self, days: dict[str, NDArray[np.float64]]) -> list[NDArray[np.float32]]:
        blocks = []
        for (a, b), median in zip(self.pairs_, self.gaps_.values()):
            gap = days[b] - days[a]
            filled = np.where(np.isfinite(gap), gap, median)
            blocks.append(filled.astype(np.float32)[:, None])
        return blocks

    def _check_names(self, table: pa.Table, used: list[Column]) -> None:
        absent = [column.name for column in used if column.name not in table.column_names]
        if absent:
            raise UserError(
                f"The table lacks columns that the model was trained with: {listing(absent)}.",
                "Add them (cells may be empty), or leave them out when you train (drop).",
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


def _side_by_side(blocks: list[Any]) -> Any:
    """All features; sparse if they are."""
    if isinstance(blocks[0], Coded) and issparse(blocks[0].values):
        return hstack([block[:] for block in blocks], format="csr")
    ends = np.cumsum([block.shape[1] for block in blocks])
    n = blocks[0].shape[0]
    features = np.empty((n, ends[-1]), dtype=np.float32)
    for start in range(0, n, _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        for block, end in zip(blocks, ends):
            features[rows, end - block.shape[1] : end] = block[rows]
    return features


def _median(values: NDArray[np.float64]) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else 0.0


def _different(names: list[str]) -> list[str]:
    """Names of features, each once: two columns may give features of one name."""
    seen: set[str] = set()
    for i, name in enumerate(names):
        while name in seen:
            name = f"{name}*"
        seen.add(name)
        names[i] = name
    return names


def _check_readable(
    column: Column, cells: pa.ChunkedArray, values: NDArray[np.float64] | None, readable: float
) -> str:
    """Raise if too few cells are what they were in the plan; a note if some are not."""
    if values is None:
        return ""
    if not np.isnan(values).any():
        return ""
    filled = ~empty_cells(cells)
    if column.sentinels:  # they can be read
        values = replace(column, sentinels=()).read(cells)
        filled &= ~np.isin(values, column.sentinels)
    odd = np.flatnonzero(filled & np.isnan(values))
    if len(odd) == 0:
        return ""
    name, first = shorten(column.name), shorten(cells[int(odd[0])].as_py())
    n_filled = int(filled.sum())
    # Of a few cells many may be odd by chance, but not all.
    many = len(odd) >= _MANY_ODD or len(odd) == n_filled
    if many and n_filled - len(odd) < readable * n_filled:
        written = f", written like {column.notation} {column.sign}".rstrip()
        raise UserError(
            f"Column '{name}' held a {column.kind} when the model was trained"
            f"{written if column.notation else ''}; here {len(odd):,} of {n_filled:,} filled cells "
            f"cannot be read so (the first: '{first}').",
            "Write them as in the table of the training, or leave them empty.",
        )
    return (
        f"column '{name}': {len(odd):,} of {n_filled:,} filled cells hold no {column.kind} and "
        f"count as missing (the first: '{first}')"
    )
