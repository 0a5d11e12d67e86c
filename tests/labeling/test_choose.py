"""Which rows are asked for: typical ones first, then uncertain ones, random ones at their share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs

from fewlabel import FewLabelClassifier
from fewlabel.labeling import next_rows, random_rows, row_space, typical_rows, uncertain_rows
from fewlabel.labeling.choose import COLD_LABELS, random_turns
from fewlabel.labeling.space import clusters_of, typicality, usual_distance
from reference import typicality as reference_typicality


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(240, 3, centers=6, cluster_std=0.6, random_state=1)
    return row_space(X), y


@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.integers(1, 4), st.integers(1, 30))
def test_typicality_is_the_inverse_mean_distance(seed, n, d, k):
    points = np.random.default_rng(seed).normal(size=(n, d))
    np.testing.assert_allclose(typicality(points, k), reference_typicality(points, k), rtol=1e-6)


def test_cold_start_finds_every_cluster(blobs):
    points, y = blobs
    rows = typical_rows(points, 6, known=np.zeros(len(y), dtype=bool))
    assert sorted(y[rows]) == list(range(6))


def test_cold_start_goes_where_there_is_no_label(blobs):
    points, y = blobs
    known = np.isin(np.arange(len(y)), [np.flatnonzero(y == c)[0] for c in range(4)])
    rows = typical_rows(points, 2, known=known)
    assert sorted(y[rows]) == [4, 5]


def test_cold_start_asks_nothing_twice(blobs):
    points, y = blobs
    known = np.zeros(len(y), dtype=bool)
    closed = np.zeros(len(y), dtype=bool)
    for _ in range(5):
        rows = typical_rows(points, 20, known=known, closed=closed)
        assert not (known | closed)[rows].any()
        known[rows[:10]], closed[rows[10:]] = True, True
    assert known.sum() == closed.sum() == 50


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_batches_hold_no_near_duplicates(seed, n):
    rng = np.random.default_rng(seed)
    points = np.repeat(rng.normal(size=(20, 3)), 3, axis=0)  # three copies, two moved a little
    points[1::3] += 1e-3 * rng.normal(size=(20, 3))
    votes = rng.dirichlet(np.ones(3), size=20).repeat(3, axis=0)
    rows = uncertain_rows(points, votes, n, closed=np.zeros(60, dtype=bool))
    assert len(set(rows // 3)) == len(rows) > 0


def test_batches_are_spread_out():
    """Two heaps of uncertain rows: one row of each, not two of the slightly more uncertain."""
    rng = np.random.default_rng(0)
    points = np.r_[rng.normal(0, 0.5, size=(30, 2)), rng.normal(20, 0.5, size=(30, 2))]
    share = np.r_[np.full(3, 0.51), np.full(27, 0.9), np.full(3, 0.52), np.full(27, 0.9)]
    rows = uncertain_rows(points, np.c_[share, 1 - share], 2, closed=np.zeros(60, dtype=bool))
    assert sorted(rows // 30) == [0, 1]


def test_uncertain_rows_have_the_smallest_margins():
    rng = np.random.default_rng(0)
    points, votes = rng.normal(size=(50, 8)), rng.dirichlet(np.ones(4), size=50)
    closed = np.arange(50) < 10
    rows = uncertain_rows(points, votes, 5, closed=closed, batch=5)
    top = np.sort(votes, axis=1)
    order = np.argsort(np.where(closed, np.inf, top[:, -1] - top[:, -2]))
    assert rows[0] == order[0]
    assert set(rows) <= set(order[:10])
    assert uncertain_rows(points, votes, 1, closed=closed).tolist() == [order[0]]


@given(st.integers(1, 60), st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]), st.integers(0, 50))
def test_the_share_of_random_turns_is_kept(n, share, before):
    turns = random_turns(before + n, share)
    assert turns == random_turns(before, share) + random_turns(
        n, share, before, sum(random_turns(before, share))
    )
    assert abs(sum(turns) - share * len(turns)) <= 1


def test_random_rows_depend_on_the_seed_alone(blobs):
    points, _ = blobs
    votes = np.full((240, 2), 0.5)
    known = np.arange(240) % 2 == 0
    for given_votes in (None, votes):
        asked = next_rows(points, given_votes, 20, known=known, n_classes=2, random_state=5)
        drawn = [row for row, why in zip(asked.rows, asked.reasons) if why == "random"]
        assert drawn == random_rows(known, 5, random_state=5).tolist()


def test_first_typical_then_uncertain(blobs):
    points, _ = blobs
    votes = np.full((240, 3), 1 / 3)
    for n_known, reason in [(3 * COLD_LABELS - 1, "typical"), (3 * COLD_LABELS, "uncertain")]:
        known = np.arange(240) < n_known
        asked = next_rows(points, votes, 8, known=known, n_classes=3)
        assert sorted(set(asked.reasons)) == sorted({"random", reason})
        assert len(set(asked.rows)) == 8
        assert not known[asked.rows].any()


def test_the_last_rows_of_a_table(blobs):
    points, _ = blobs
    known = np.arange(240) >= 3
    votes = np.full((240, 2), 0.5)
    asked = next_rows(points, votes, 20, known=known, n_classes=2)
    assert sorted(asked.rows) == [0, 1, 2]
    assert len(next_rows(points, votes, 5, known=np.ones(240, dtype=bool), n_classes=2).rows) == 0


def test_large_tables_are_sampled():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(30_000, 2)).astype(np.float32)
    known = np.arange(30_000) < 4
    rows = typical_rows(points, 6, known=known)
    assert len(set(rows)) == 6
    assert not known[rows].any()


def test_space_of_odd_rows():
    assert row_space(csr_array(np.eye(9))).shape[0] == 9
    assert row_space(csr_array(np.ones((4, 1)))).shape == (4, 1)
    wide = np.random.default_rng(0).normal(size=(60, 100))
    assert row_space(wide).shape == (60, 32)
    odd = np.array([[np.nan, 1.0], [np.inf, 1.0], [2.0, 1.0]])
    assert np.isfinite(row_space(np.where(np.isinf(odd), 1e300, odd))).all()
    assert usual_distance(np.zeros((5, 2))) < 1e-6
    assert typicality(np.zeros((1, 2))).tolist() == [1.0]
    assert set(clusters_of(np.zeros((5, 2)), 3)) == {0}


def test_suggestions_of_a_fit_are_distinct():
    X, y = make_blobs(120, 4, centers=3, cluster_std=4.0, random_state=0)
    X, y = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    target = np.where(np.arange(240) < 40, y, -1)
    clf = FewLabelClassifier(["lda"], max_iter=0, random_state=0).fit(X, target)
    rows = clf.suggest(10, X)
    assert len(set(rows // 2)) == 10
    assert (rows >= 40).all()


def test_only_random_rows_enter_the_estimate():
    """Hard rows teach, and would spoil the estimate."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 2))
    y = (X[:, 0] + 0.1 * rng.normal(size=2_000) > 0).astype(int)
    hard = np.argsort(np.abs(X[:, 0]))[:60]
    drawn = rng.permutation(np.setdiff1d(np.arange(2_000), hard))[:60]
    target = np.full(2_000, -1)
    target[np.r_[hard, drawn]] = y[np.r_[hard, drawn]]
    clf = FewLabelClassifier(["lda", "svm"], max_iter=0, random_state=0).fit(X, target)
    with pytest.warns(UserWarning, match="unsafe"):
        every = clf.error_.value
    honest = clf.estimate_from(drawn).error_
    unlabeled = target == -1
    true = (clf.transduction_ != y)[unlabeled].mean()
    assert honest.n == 60
    assert honest.low <= true <= honest.high
    assert abs(honest.value - true) < abs(every - true)
    with pytest.raises(ValueError, match="mask of the 2000 rows"):
        clf.estimate_from(np.ones(3, dtype=bool))
