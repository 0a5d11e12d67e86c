"""Columns that know which rows are labelled."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from fewlabel.encoding.columns import plan_column
from fewlabel.encoding.encoder import TableEncoder
from fewlabel.encoding.leakage import filled_with_labels, separation, tell_labeled_apart

pa = pytest.importorskip("pyarrow")

LABELED = np.arange(200) < 20


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        (["3"] * 20 + [""] * 180, True),
        (["3"] * 20 + ["NA"] * 180, True),
        (["3"] * 20 + ["4"] * 9 + [""] * 171, True),  # 5 % as often
        (["3"] * 20 + ["4"] * 10 + [""] * 170, False),
        (["3"] * 200, False),
        ([""] * 20 + ["3"] * 180, False),
        ([3.0] * 20 + [float("nan")] * 180, True),
        ([None] * 200, False),
        ([True] * 20 + [None] * 180, True),
    ],
)
def test_columns_filled_beside_labels(cells, found):
    table = pa.table({"x": cells, "target": ["a"] * 20 + [""] * 180})
    assert ("x" in filled_with_labels(table, LABELED, skip=["target"])) is found


def test_a_few_empty_cells_may_be_chance():
    table = pa.table({"x": ["3"] * 20 + [""] * 4})
    assert filled_with_labels(table, np.arange(24) < 20) == {}


def apart(cells: list[object], labeled: np.ndarray) -> tuple[bool, bool]:
    """Whether a column is left out, whether it is warned of."""
    table = pa.table({"x": cells})
    plan = [plan_column("x", table.column("x"))]
    left_out, warned = tell_labeled_apart(table, plan, labeled)
    return "x" in left_out, "x" in warned


@pytest.mark.parametrize("n_labeled", [20, 60])
def test_a_status_that_tells_labelled_from_unlabelled_rows(n_labeled):
    rng = np.random.default_rng(0)
    labeled = rng.permutation(600) < n_labeled
    done, waiting = rng.choice(["ok", "bad"], 600), np.full(600, "pending")
    assert apart(np.where(labeled, done, waiting).tolist(), labeled) == (True, False)
    few = np.where(rng.random(600) < 0.01, done, np.where(labeled, done, waiting))
    assert apart(few.tolist(), labeled)[0]
    assert apart(done.tolist(), labeled) == (False, False)
    # Typed numbers: a placeholder on all unlabelled rows, and a shift of the whole range.
    values = rng.normal(size=600)
    assert apart(np.where(labeled, values, 0.0).tolist(), labeled) == (True, False)
    assert apart((values + 10 * labeled).tolist(), labeled) == (False, True)
    assert apart(values.tolist(), labeled) == (False, False)


def test_chance_is_not_leakage():
    """With few labels and many values, most values of unlabelled rows have no label."""
    rng = np.random.default_rng(1)
    found = []
    for n_labeled in (12, 30, 100):
        labeled = rng.permutation(1000) < n_labeled
        for n_values in (2, 10, 300):
            codes = [f"v {v}" for v in rng.integers(0, n_values, 1000)]
            found += [apart(codes, labeled), apart(rng.normal(size=1000).tolist(), labeled)]
    assert found == [(False, False)] * len(found)


def test_the_area_is_that_of_held_out_shares():
    rng = np.random.default_rng(2)
    codes, labeled = rng.integers(0, 4, 400), rng.random(400) < 0.3
    labeled |= codes == 3
    area, error = separation(codes, labeled)
    halves = [np.arange(400) % 2 == 0, np.arange(400) % 2 == 1]
    scores = np.empty(400)
    for judged in halves:
        for code in range(4):
            rest = ~judged & (codes == code)
            share = (labeled[rest].sum() + labeled.mean()) / (rest.sum() + 1)
            scores[judged & (codes == code)] = share
    assert area == pytest.approx(roc_auc_score(labeled, scores))
    assert 0.005 < error < 0.05


def test_the_encoder_leaves_them_out_and_warns():
    rng = np.random.default_rng(3)
    y = np.where(np.arange(300) < 60, rng.integers(0, 2, 300), -1)
    status = np.where(y >= 0, rng.choice(["ok", "bad"], 300), "pending")
    table = pa.table({"x": rng.normal(size=300), "status": status})
    with pytest.warns(UserWarning, match="'status' was left out: its values tell labelled"):
        encoder = TableEncoder().fit(table, y)
    assert encoder.get_feature_names_out().tolist() == ["x"]
    assert TableEncoder().fit(table).plan_[1].kind == "category"  # without y nothing is known
    with pytest.warns(UserWarning, match="'status': its values tell labelled"):
        kept = TableEncoder(category=["status"]).fit(table, y)  # the user's word counts
    assert kept.plan_[1].kind == "category"
