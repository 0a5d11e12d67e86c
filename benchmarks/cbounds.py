"""Time of the C-bounds, the mislabelling model and the PAC-Bayes bound on a million rows."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks._measure import side_by_side
from fewlabel import (
    anchor_counts,
    bounds_table,
    c_bound,
    c_bound_imperfect,
    chittineni_bound,
    confident_counts,
    expected_counts,
    gibbs_bound,
    imperfect_proba,
    margin_moments,
    one_example_bound,
    pac_bayes_c_bound,
    relaxation_trace,
    smallest_relaxation,
    tandem_bound,
)

TITLE = "C-bounds, mislabelling, PAC-Bayes"

NOTE = """
A million rows × 10 classes, checks of the input included, beside one pass of `votes.max(axis=1)`.
`expected_counts` is EM: the table shows one of at most 200 steps. `bounds_table` sorts the votes of
each class: compare it with `np.sort(votes, axis=0)`.
"""


def measure(quick: bool) -> list[dict[str, object]]:
    rows, classes = (20_000 if quick else 1_000_000), 10
    rng = np.random.default_rng(0)
    votes, proba = rng.dirichlet(np.ones(classes), size=(2, rows))
    proba = 0.5 * proba + 0.5 * np.eye(classes)[proba.argmax(axis=1)]  # so that every bound applies
    codes = proba.argmax(axis=1)
    noise = 0.8 * np.eye(classes) + 0.2 * rng.dirichlet(np.ones(classes), classes).T
    counts = np.round(1e6 * noise)
    imperfect = imperfect_proba(proba, noise)
    one_pass, row_sort, column_sort = "votes.max(axis=1)", "np.sort(axis=1)", "np.sort(axis=0)"
    candidates: dict[str, Any] = {
        one_pass: partial(votes.max, axis=1),
        row_sort: partial(np.sort, votes, axis=1),
        column_sort: partial(np.sort, votes, axis=0),
        "margin_moments": partial(margin_moments, votes, proba),
        "margin_moments, class codes": partial(margin_moments, votes, codes),
        "c_bound": partial(c_bound, proba, proba),
        "c_bound_imperfect": partial(c_bound_imperfect, proba, imperfect, noise),
        "relaxation_trace, 11 λ": partial(relaxation_trace, proba, imperfect, noise),
        "smallest_relaxation": partial(smallest_relaxation, votes, noise),
        "gibbs_bound": partial(gibbs_bound, votes, imperfect, mislabeling=noise),
        "tandem_bound": partial(tandem_bound, votes, imperfect, mislabeling=noise),
        "imperfect_proba": partial(imperfect_proba, proba, noise),
        "one_example_bound": partial(one_example_bound, votes, imperfect, noise),
        "chittineni_bound": partial(chittineni_bound, votes, imperfect, noise),
        "confident_counts": partial(confident_counts, codes, votes),
        "expected_counts, 1 step": partial(expected_counts, codes, votes, max_iter=1),
        "anchor_counts": partial(anchor_counts, imperfect, votes),
        "pac_bayes_c_bound": partial(pac_bayes_c_bound, proba, imperfect, counts),
        "bounds_table": partial(
            bounds_table, proba, proba, imperfect_proba=imperfect, mislabeling=noise
        ),
    }
    seconds = side_by_side(1 if quick else 5, **candidates)
    return [
        {
            "function": name,
            "ms": 1e3 * value,
            "passes of votes.max": value / seconds[one_pass],
            "sorts of the columns": value / seconds[column_sort],
        }
        for name, value in seconds.items()
    ]
