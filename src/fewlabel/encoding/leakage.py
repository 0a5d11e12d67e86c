"""Columns that know which rows are labelled: target leakage, and shift between the two parts.

A column that was filled together with the labels, or whose values differ between labelled and
unlabelled rows, looks like a perfect feature where it is learned from and says nothing, or
something wrong, where it is used.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from fewlabel._core.errors import shorten
from fewlabel._core.optional import pa, pc
from fewlabel.encoding.cells import empty_cells, filled_cells, plain_column, text_of

if TYPE_CHECKING:
    from fewlabel.encoding.columns import Column

# A column was filled together with the target if unlabelled rows have at most this share of the
# filled cells that labelled ones let expect. Where few are expected they may be absent by chance.
_FILLED_BESIDES = 0.05
_FEWEST_EXPECTED = 5
# Rows of each part that are looked at; the area's standard error is then below 0.01.
_MOST_ROWS = 5_000
_FEWEST_ROWS = 10
# Areas under the ROC curve, labelled against unlabelled rows: left out above the first, warned of
# above the second; both must be exceeded by several standard errors.
_SEPARATED = 0.95
_SHIFTED = 0.75
_ERRORS = 3.0
_BINS = 20


def filled_with_labels(
    table: pa.Table, labeled: NDArray[np.bool_], skip: Collection[str] = ()
) -> dict[str, str]:
    """Columns that are filled beside a label and hardly anywhere else, and why to skip them.

    They look like perfect features, since they are known for the rows that teach, and say nothing
    about the rows that are to be labelled.

    Parameters
    ----------
    table : pyarrow.Table
    labeled : ndarray of bool
    skip : collection of str
        Columns not to look at.

    Returns
    -------
    dict
        Names and reasons.
    """
    found = {}
    for name, column in zip(table.column_names, table.columns):
        if name in skip:
            continue
        filled = ~empty_cells(plain_column(column))
        expected = filled[labeled].mean() * (~labeled).sum()
        n_besides = filled[~labeled].sum()
        if expected >= _FEWEST_EXPECTED and n_besides <= _FILLED_BESIDES * expected:
            found[name] = (
                f"filled in {filled[labeled].sum():,} labelled rows and {n_besides:,} others: it "
                f"says nothing about the rows to label"
            )
    return found


def tell_labeled_apart(
    table: pa.Table, plan: Collection[Column], labeled: NDArray[np.bool_]
) -> tuple[dict[str, str], dict[str, str]]:
    """Columns whose values tell labelled from unlabelled rows.

    How well they do is the area under the ROC curve of the labelled share of each value (of each
    of 20 quantiles for numbers and dates), estimated on one half of the rows and judged on the
    other, so that chance does not count.

    Parameters
    ----------
    table : pyarrow.Table
    plan : collection of Column
        Columns that are left out, and texts, are not looked at.
    labeled : ndarray of bool

    Returns
    -------
    leave_out : dict
        Columns to leave out and why: the unlabelled rows have values that no label is known for.
    shifted : dict
        Columns to warn of and why: the two parts differ, but overlap or can be compared.
    """
    rows, known = _sampled(labeled)
    leave_out: dict[str, str] = {}
    shifted: dict[str, str] = {}
    if min(known.sum(), (~known).sum()) < _FEWEST_ROWS:
        return leave_out, shifted
    for column in plan:
        if column.kind in ("left out", "text"):
            continue
        cells = plain_column(table.column(column.name)).take(rows)
        codes = _codes(column, cells)
        area, error = separation(codes, known)
        common = np.bincount(codes[~known]).argmax()
        beside, within = (codes[~known] == common).mean(), (codes[known] == common).mean()
        if area - _ERRORS * error > _SEPARATED - 0.05 and area > _SEPARATED:
            one = beside > _SEPARATED and within < 1.0 - _SEPARATED
            if one or column.kind in ("category", "yes/no"):
                value = shorten(cells[int(np.flatnonzero(~known & (codes == common))[0])].as_py())
                leave_out[column.name] = (
                    f"its values tell labelled from unlabelled rows: {beside:.0%} of the "
                    f"unlabelled and {within:.0%} of the labelled rows have '{value}'"
                )
                continue
        if area - _ERRORS * error > _SHIFTED:
            shifted[column.name] = (
                f"its values differ between labelled and unlabelled rows (they tell {area:.0%} of "
                f"pairs apart): check whether it came with the labels, and drop it if so"
            )
    return leave_out, shifted


def _sampled(labeled: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    rng = np.random.default_rng(0)
    parts = [np.flatnonzero(labeled), np.flatnonzero(~labeled)]
    parts = [rng.permutation(part)[:_MOST_ROWS] for part in parts]
    rows = rng.permutation(np.concatenate(parts))
    return rows, labeled[rows]


def _codes(column: Column, cells: pa.ChunkedArray) -> NDArray[np.intp]:
    """A small number for each cell: its value, or the quantile it is in; 0 for none."""
    if column.kind in ("category", "yes/no"):
        coded = pc.dictionary_encode(filled_cells(text_of(cells))).combine_chunks()
        return np.asarray(pc.fill_null(coded.indices, -1)).astype(np.intp) + 1
    values = column.read(cells)
    different = np.unique(values[np.isfinite(values)])
    if len(different) > _BINS:
        different = np.unique(np.nanquantile(values, np.linspace(0, 1, _BINS + 1)))
    # A value that is an edge itself, such as a placeholder, has a number of its own.
    codes = sum(np.searchsorted(different, values, side=side) for side in ("left", "right"))
    return np.where(np.isfinite(values), codes + 1, 0)


def separation(codes: NDArray[np.intp], labeled: NDArray[np.bool_]) -> tuple[float, float]:
    """Area under the ROC curve of held-out labelled shares, and its standard error.

    Parameters
    ----------
    codes : ndarray of int
        Value of each row.
    labeled : ndarray of bool

    Returns
    -------
    area, error : float

    References
    ----------
    .. [1] J. Hanley, B. McNeil, "The meaning and use of the area under a receiver operating
       characteristic (ROC) curve", Radiology 143, 1982: the standard error.
    """
    scores = np.empty(len(codes))
    half = np.arange(len(codes)) % 2 == 0
    n_codes = int(codes.max()) + 1
    base = labeled.mean()
    for judged in (half, ~half):
        total = np.bincount(codes[~judged], minlength=n_codes)
        with_label = np.bincount(codes[~judged], labeled[~judged], minlength=n_codes)
        scores[judged] = ((with_label + base) / (total + 1.0))[codes[judged]]
    n, m = int(labeled.sum()), int((~labeled).sum())
    # By the sum of ranks: scikit-learn's function checks for longer than it counts, and is called
    # for each column.
    rank_sum = float(rankdata(scores)[labeled].sum())
    area = max((rank_sum - n * (n + 1) / 2) / (n * m), 0.5)
    q1, q2 = area / (2 - area), 2 * area**2 / (1 + area)
    variance = area * (1 - area) + (n - 1) * (q1 - area**2) + (m - 1) * (q2 - area**2)
    return area, float(np.sqrt(max(variance, 0.0) / (n * m)))
