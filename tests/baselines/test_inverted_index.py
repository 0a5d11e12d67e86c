"""Neighbours in the cells of k-means, beside all pairs."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs

from fewlabel import LabelSpreadingClassifier
from fewlabel.baselines import _graph, _inverted_index
from fewlabel.baselines._graph import nearest
from fewlabel.baselines._inverted_index import InvertedIndex

POINTS = make_blobs(6_000, 12, centers=8, cluster_std=4.0, random_state=0)[0]


def literal_neighbours(points, queries, k):
    """The k nearest points of each row, by all distances."""
    distances = np.sqrt(((queries[:, None] - points[None]) ** 2).sum(axis=2))
    positions = distances.argsort(axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distances, positions, 1), positions


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(20, 90), st.integers(1, 6))
def test_neighbours_are_the_literal_ones_where_every_cell_is_looked_into(seed, n, k):
    rng = np.random.default_rng(seed)
    points, queries = rng.normal(size=(n, 3)), rng.normal(size=(7, 3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_inverted_index, "_POINTS_OF_A_CELL", 10)
        patch.setattr(_inverted_index, "_FEWEST_PROBED", 9)
        index = InvertedIndex(points)
        assert 1 < len(index._cells) <= 9
        distances, positions = index.search(points, queries, k)
    expected, which = literal_neighbours(points, queries, k)
    np.testing.assert_allclose(distances, expected, atol=1e-7)
    np.testing.assert_array_equal(positions, which)


def test_every_point_is_in_one_cell_and_none_is_empty():
    cells = InvertedIndex(POINTS)._cells
    assert len(cells) == len(POINTS) // 250
    assert min(map(len, cells)) > 0
    np.testing.assert_array_equal(np.sort(np.concatenate(cells)), np.arange(len(POINTS)))


def test_nearly_all_neighbours_are_found_and_none_that_is_no_neighbour():
    distances, positions = InvertedIndex(POINTS).search(POINTS, POINTS, 11)
    expected, which = literal_neighbours(POINTS, POINTS[:200], 11)
    assert (positions[:200, 0] == np.arange(200)).all()  # the row itself
    found = [len(np.intersect1d(a, b)) / 11 for a, b in zip(positions[:200], which)]
    assert np.mean(found) > 0.9
    true = np.linalg.norm(POINTS[:200, None] - POINTS[positions[:200]], axis=2)
    np.testing.assert_allclose(distances[:200], true, atol=1e-6)
    assert (distances[:200] >= expected - 1e-6).all()
    assert (np.diff(distances, axis=1) >= 0).all()


def test_more_cells_are_looked_into_for_the_points_themselves():
    index = InvertedIndex(POINTS)
    few = index.search(POINTS, POINTS[:50], 10)[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_inverted_index, "_PROBED", 2.0)
        many = index.search(POINTS, POINTS, 10)[0][:50]
        assert index.search(POINTS, POINTS[:50], 10)[0].sum() == few.sum()
    assert (many <= few + 1e-6).all()  # digits lost where squares cancel
    assert many.sum() < few.sum()


def test_twins_share_a_cell_and_what_is_missing_is_infinitely_far(monkeypatch):
    monkeypatch.setattr(_inverted_index, "_POINTS_OF_A_CELL", 100)
    monkeypatch.setattr(_inverted_index, "_FEWEST_PROBED", 1)
    points = np.repeat(np.eye(3), [1, 2, 300], axis=0)
    index = InvertedIndex(points)
    assert sorted(map(len, index._cells)) in ([3, 300], [1, 302], [2, 301], [1, 2, 300])
    own = next(members for members in index._cells if 0 in members)
    distances, _ = index.search(points, np.eye(3)[:1], 5)
    assert np.isinf(distances[0]).sum() == max(0, 5 - len(own))


def test_many_points_are_looked_for_in_cells(monkeypatch):
    monkeypatch.setattr(_graph, "find_spec", lambda name: None)
    exact = nearest(POINTS[:4_999], 10)
    monkeypatch.setattr(_graph, "MANY_POINTS", 4_999)
    points = POINTS[:4_999].copy()
    distances, positions = nearest(points, 10)
    assert (positions != np.arange(4_999)[:, None]).all()
    assert np.median(distances / exact[0]) == pytest.approx(1.0, abs=1e-3)
    same = [len(np.intersect1d(a, b)) / 10 for a, b in zip(positions, exact[1])]
    assert np.mean(same) > 0.9
    both = nearest(points, 10, POINTS[5_000:5_200])
    one, other = nearest(points, 10, POINTS[5_000:5_100]), nearest(points, 10, POINTS[5_100:5_200])
    np.testing.assert_array_equal(both[1], np.concatenate([one[1], other[1]]))


@pytest.fixture
def made(monkeypatch):
    """The sizes of all indexes that are made."""
    sizes = []

    def counted(points):
        sizes.append(len(points))
        return InvertedIndex(points)

    monkeypatch.setattr(_graph, "find_spec", lambda name: None)
    monkeypatch.setattr(_graph, "InvertedIndex", counted)
    return sizes


def test_an_index_is_made_once_for_each_graph_and_again_from_a_file(made):
    codes = np.arange(5_500) % 50 - 48  # two labelled rows of 50
    y = np.where(codes < 0, -1, codes)
    spreadings = [LabelSpreadingClassifier("local").fit(POINTS[:n], y[:n]) for n in (5_000, 5_500)]
    for clf in spreadings:
        clf.predict(POINTS[5_500:5_600])
        votes = clf.predict_proba(POINTS[5_600:5_700])
        np.testing.assert_array_equal(clf.respread(clf.transduction_).graph_.data, clf.graph_.data)
    assert made == [5_000, 5_500]
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(POINTS[5_600:5_700]), votes)
    np.testing.assert_array_equal(again.predict_proba(POINTS[5_600:5_700]), votes)
    assert made == [5_000, 5_500, 5_500]


def test_rows_that_were_changed_in_place_are_looked_for_anew(made):
    rows = POINTS[:5_000].copy()
    y = np.where(np.arange(5_000) % 50 < 2, np.arange(5_000) % 50, -1)
    LabelSpreadingClassifier("local").fit(rows, y)
    rows[:] = np.random.default_rng(1).permutation(rows)
    expected = LabelSpreadingClassifier("local").fit(rows.copy(), y).label_distributions_
    found = LabelSpreadingClassifier("local").fit(rows, y).label_distributions_
    np.testing.assert_array_equal(found, expected)


def test_many_queries_are_looked_for_in_blocks(monkeypatch):
    index = InvertedIndex(POINTS)
    expected = index.search(POINTS, POINTS, 11)
    monkeypatch.setattr(_inverted_index, "_MOST_FOUND", 11 * 5 * 700)
    distances, positions = index.search(POINTS, POINTS, 11)
    np.testing.assert_allclose(distances, expected[0], atol=1e-6)
    assert (positions == expected[1]).mean() > 0.999


@pytest.mark.parametrize("far", [[0, 1], [40, 41]], ids=["first rows", "last rows"])
def test_rows_whose_cells_hold_too_few_points_repeat_the_nearest(far, monkeypatch):
    monkeypatch.setattr(_graph, "find_spec", lambda name: None)
    monkeypatch.setattr(_graph, "MANY_POINTS", 10)
    monkeypatch.setattr(_inverted_index, "_POINTS_OF_A_CELL", 5)
    monkeypatch.setattr(_inverted_index, "_FEWEST_PROBED", 2)
    monkeypatch.setattr(_inverted_index, "_PROBED", 0.0)
    points = np.random.default_rng(0).normal(size=(42, 8))
    points[far] += 100
    distances, positions = nearest(points, 9)
    assert np.isfinite(distances).all()
    assert ((positions >= 0) & (positions < 42)).all()
    assert positions[far, 0].tolist() == far[::-1]
    assert (positions[far] != np.array(far)[:, None]).all()


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_the_smallest_distances_are_chosen(seed, k):
    rng = np.random.default_rng(seed)
    distances = rng.permutation(6_000).reshape(3, 2_000).astype(float)
    found, where = _inverted_index._smallest(distances, np.tile(np.arange(2_000), 3), k)
    np.testing.assert_array_equal(found, np.sort(distances, axis=1)[:, :k])
    np.testing.assert_array_equal(distances[np.arange(3)[:, None], where], found)
