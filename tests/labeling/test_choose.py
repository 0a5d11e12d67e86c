"""Which rows are asked for: those that tell most of all others, random ones at their share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs

from fewlabel import FewLabelClassifier
from fewlabel.labeling import informative_rows, next_rows, random_rows, row_space
from fewlabel.labeling.choose import COLD_LABELS, random_turns
from fewlabel.labeling.influence import field_covariance
from fewlabel.labeling.space import typicality, usual_distance
from reference import field_gains as reference_gains
from reference import field_precision as reference_precision
from reference import typicality as reference_typicality


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(240, 3, centers=6, cluster_std=0.6, random_state=1)
    return row_space(X), y


@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.integers(1, 4), st.integers(1, 30))
def test_typicality_is_the_inverse_mean_distance(seed, n, d, k):
    points = np.random.default_rng(seed).normal(size=(n, d))
    np.testing.assert_allclose(typicality(points, k), reference_typicality(points, k), rtol=1e-6)


@given(st.integers(0, 2**32 - 1), st.integers(12, 30), st.booleans())
def test_the_next_row_lowers_most_of_the_doubt(seed, n, with_votes):
    rng = np.random.default_rng(seed)
    points, known = rng.normal(size=(n, 9)), np.arange(n) < 4  # no near-duplicates
    votes = rng.dirichlet(np.ones(3), size=n) if with_votes else None
    rows = informative_rows(points, 3, known=known, votes=votes)
    gains = reference_gains(points, known, rows[:2], votes)
    assert gains[rows[2]] >= max(gains[~np.isin(np.arange(n), rows[:2])]) * (1 - 1e-6)


def test_covariances_are_those_of_the_field(blobs):
    points, _ = blobs
    unknown = np.arange(len(points)) % 4 != 0
    expected = np.linalg.inv(reference_precision(points)[np.ix_(unknown, unknown)])
    np.testing.assert_allclose(field_covariance(points, unknown), expected, atol=1e-8)


def test_cold_start_finds_every_cluster(blobs):
    points, y = blobs
    rows = informative_rows(points, 6, known=np.zeros(len(y), dtype=bool))
    assert sorted(y[rows]) == list(range(6))


def test_cold_start_goes_where_there_is_no_label(blobs):
    points, y = blobs
    known = np.isin(np.arange(len(y)), [np.flatnonzero(y == c)[0] for c in range(4)])
    rows = informative_rows(points, 2, known=known)
    assert sorted(y[rows]) == [4, 5]


@pytest.mark.parametrize("with_votes", [False, True])
def test_nothing_is_asked_twice(blobs, with_votes):
    points, y = blobs
    votes = np.random.default_rng(0).dirichlet(np.ones(3), size=len(y)) if with_votes else None
    known = np.zeros(len(y), dtype=bool)
    closed = np.zeros(len(y), dtype=bool)
    for _ in range(5):
        rows = informative_rows(points, 20, known=known, votes=votes, closed=closed)
        assert not (known | closed)[rows].any()
        known[rows[:10]], closed[rows[10:]] = True, True
    assert known.sum() == closed.sum() == 50


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_batches_hold_no_near_duplicates(seed, n):
    rng = np.random.default_rng(seed)
    points = np.repeat(rng.normal(size=(20, 3)), 3, axis=0)  # three copies, two moved a little
    points[1::3] += 1e-3 * rng.normal(size=(20, 3))
    votes = rng.dirichlet(np.ones(3), size=20).repeat(3, axis=0)
    rows = informative_rows(points, n, known=np.zeros(60, dtype=bool), votes=votes)
    assert len(set(rows // 3)) == len(rows) > 0


def test_batches_are_spread_out():
    """Two heaps of uncertain rows: one row of each, not two of the slightly more uncertain."""
    rng = np.random.default_rng(0)
    points = np.r_[rng.normal(0, 0.5, size=(30, 2)), rng.normal(20, 0.5, size=(30, 2))]
    share = np.repeat([0.51, 0.53], 30)
    nothing = np.zeros(60, dtype=bool)
    rows = informative_rows(points, 2, known=nothing, votes=np.c_[share, 1 - share])
    assert sorted(rows // 30) == [0, 1]


def test_rows_that_the_vote_is_sure_of_are_not_asked_for(blobs):
    points, y = blobs
    share = np.where(y == 2, 0.6, 0.99)
    known = np.arange(len(y)) < 10
    rows = informative_rows(points, 5, known=known, votes=np.c_[share, 1 - share])
    assert (y[rows] == 2).all()


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
    votes = rng.dirichlet(np.ones(2), size=30_000)
    rows = informative_rows(points, 6, known=known, votes=votes)
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
    assert len(informative_rows(np.zeros((5, 2)), 3, known=np.zeros(5, dtype=bool))) == 1
    assert informative_rows(np.zeros((1, 2)), 3, known=[False]).tolist() == [0]


def test_suggestions_of_a_fit_are_distinct():
    X, y = make_blobs(120, 4, centers=3, cluster_std=4.0, random_state=0)
    X, y = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    target = np.where(np.arange(240) < 40, y, -1)
    clf = FewLabelClassifier(["lda"], max_iter=0, random_state=0).fit(X, target)
    for rows in (clf.suggest(10, X), clf.suggest(10)):
        assert len(set(rows // 2)) == 10
        assert (rows >= 40).all()


def test_suggestions_are_those_of_the_page():
    X, y = make_blobs(150, 4, centers=3, cluster_std=3.0, random_state=0)
    target = np.where(np.arange(150) < 20, y, -1)
    clf = FewLabelClassifier(["lda"], max_iter=0, random_state=0).fit(X, target)
    known = target >= 0
    votes = clf.transduction_proba_
    asked = next_rows(row_space(X), votes, 8, known=known, n_classes=3, random_share=0.0)
    assert clf.suggest(8, X).tolist() == clf.suggest(8).tolist() == asked.rows.tolist()
    assert clf.next_rows(8).rows.tolist() == asked.rows.tolist()


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
    for n in ("3", 0, 2.5):
        with pytest.raises(ValueError, match="n must be a whole number"):
            clf.suggest(n)
    with pytest.raises(ValueError, match="X must be the 2000 rows of fit"):
        clf.suggest(3, X[:20])
    with pytest.raises(ValueError, match="mask of 2000 booleans"):
        clf.estimate_from(np.ones(3, dtype=bool))
