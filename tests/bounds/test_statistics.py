from __future__ import annotations

import tracemalloc
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fewlabel import VoteStatistics, optimal_thresholds, risk_bound
from fewlabel.bounds.cells import RowStatistics, _few_distinct, open_cells
from fewlabel.bounds.statistics import _distinct
from support.strategies import votes_and_proba


def assert_same(a: VoteStatistics, b: VoteStatistics) -> None:
    assert a.n_rows == b.n_rows
    np.testing.assert_allclose(a.u, b.u, atol=1e-12)
    for cells_a, cells_b in zip(a.cells, b.cells, strict=True):
        for field in fields(cells_a):
            left, right = getattr(cells_a, field.name), getattr(cells_b, field.name)
            np.testing.assert_allclose(left, right, atol=1e-12, err_msg=field.name)


@given(votes_and_proba(max_rows=20), st.integers(1, 5), st.sampled_from([None, 1, 7, 50]))
def test_merged_chunks_equal_the_whole(case, n_chunks, resolution):
    votes, proba = case
    chunks = [rows for rows in np.array_split(np.arange(len(votes)), n_chunks) if len(rows)]
    parts = [VoteStatistics.from_votes(votes[r], proba[r], resolution=resolution) for r in chunks]
    whole = VoteStatistics.from_votes(votes, proba, resolution=resolution)
    assert_same(VoteStatistics.merge(parts), whole)
    assert_same(VoteStatistics.merge(parts[::-1]), whole)
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    assert_same(total, whole)


@given(votes_and_proba(max_rows=20), st.sampled_from([None, 1, 3, 10, 100]))
def test_cells_hold_the_sums_they_say(case, resolution):
    votes, proba = case
    statistics = VoteStatistics.from_votes(votes, proba, resolution=resolution)
    best = votes.argmax(axis=1)
    for j, cells in enumerate(statistics.cells):
        assert (np.diff(cells.edges) > 0).all()
        if resolution is None:
            np.testing.assert_array_equal(cells.edges, np.unique(votes[:, j]))
        else:
            np.testing.assert_array_equal(cells.edges, np.arange(resolution + 1) / resolution)
        ends = np.append(cells.edges[1:], np.inf)
        for t, (low, high) in enumerate(zip(cells.edges, ends)):
            inside = (votes[:, j] >= low) & (votes[:, j] < high)
            chosen = inside & (best == j)
            np.testing.assert_allclose(cells.mass[t], proba[inside].sum(axis=0), atol=1e-12)
            np.testing.assert_allclose(
                cells.vote_mass[t], votes[inside, j] @ proba[inside], atol=1e-12
            )
            np.testing.assert_allclose(
                cells.predicted_mass[t], proba[chosen].sum(axis=0), atol=1e-12
            )
            assert cells.n_predicted[t] == chosen.sum()
        np.testing.assert_allclose(cells.gibbs, votes[best == j, j] @ proba[best == j], atol=1e-12)


@given(votes_and_proba(max_rows=20), st.sampled_from([None, 1, 7, 50]))
def test_rows_in_memory_tell_the_same_as_their_sums(case, resolution):
    rows = RowStatistics(*case, resolution)
    sums = VoteStatistics.from_votes(*case, resolution=resolution)
    assert (rows.n_rows, rows.n_classes) == (sums.n_rows, sums.n_classes) == case[0].shape
    for j in range(sums.n_classes):
        for mine, theirs in zip(rows.predicted_votes(j), sums.predicted_votes(j), strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("resolution", [3, 7, 10, 49, 100, 200, 1000])
def test_votes_at_an_edge_are_at_or_above_it(resolution):
    """t/R * R is not always t in floating point; a vote of t/R must still fall into cell t."""
    at_edges = np.arange(resolution + 1) / resolution
    just_below = np.nextafter(at_edges[1:], 0)
    for values in (at_edges, just_below):
        votes = np.c_[values, 1 - values]
        cells = VoteStatistics.from_votes(votes, votes, resolution=resolution).cells[0]
        np.testing.assert_allclose(cells.mass[: len(values)].sum(axis=1), 1.0)


@given(votes_and_proba(max_rows=20))
def test_bounds_and_thresholds_from_chunks_equal_those_from_votes(case):
    votes, proba = case
    assume(len(votes) > 1)
    half = len(votes) // 2
    parts = VoteStatistics.from_votes(votes[:half], proba[:half]) + VoteStatistics.from_votes(
        votes[half:], proba[half:]
    )
    assert risk_bound(parts) == pytest.approx(risk_bound(votes, proba), abs=1e-12)
    np.testing.assert_array_equal(optimal_thresholds(parts), optimal_thresholds(votes, proba))


def test_statistics_of_a_forest_are_small():
    rng = np.random.default_rng(0)
    votes = rng.multinomial(200, [0.2, 0.5, 0.3], size=20_000) / 200
    statistics = VoteStatistics.from_votes(votes, votes)
    assert all(len(cells.edges) <= 201 for cells in statistics.cells)
    assert statistics.nbytes < votes.nbytes / 5


def test_exact_statistics_and_finer_bins_can_be_put_into_bins():
    rng = np.random.default_rng(0)
    votes, proba = rng.dirichlet(np.ones(3), 30), rng.dirichlet(np.ones(3), 30)
    binned = VoteStatistics.from_votes(votes, proba, resolution=5)
    assert_same(VoteStatistics.from_votes(votes, proba).binned(5), binned)
    finer = VoteStatistics.from_votes(votes, proba, resolution=10)
    assert_same(finer.binned(5), binned)
    assert finer.binned(5).resolution == 5
    with pytest.raises(ValueError, match="10 bins a class, which cannot be put into 4"):
        finer.binned(4)


def test_memory_is_that_of_the_arrays():
    """A class has an edge, three sums of two classes, a count and two votes; u has two numbers."""
    votes = np.array([[0.6, 0.4]])
    assert VoteStatistics.from_votes(votes, votes).nbytes == 8 * (2 * (1 + 3 * 2 + 1 + 2) + 2)


def test_refused_merges():
    votes = np.array([[0.6, 0.4]])
    exact = VoteStatistics.from_votes(votes, votes)
    with pytest.raises(ValueError, match="no statistics to merge"):
        VoteStatistics.merge([])
    with pytest.raises(ValueError, match="same resolution and classes"):
        exact + VoteStatistics.from_votes(votes, votes, resolution=3)
    three = np.array([[0.6, 0.4, 0.0]])
    with pytest.raises(ValueError, match="same resolution and classes"):
        exact + VoteStatistics.from_votes(three, three)


@pytest.mark.parametrize("kind", ["forest", "one pair in a bucket", "continuous"])
def test_distinct_votes_with_and_without_a_sort(kind):
    rng = np.random.default_rng(0)
    vote = rng.integers(0, 201, size=5000) / 200
    if kind == "one pair in a bucket":
        vote[17] = np.nextafter(0.5, 1.0)
        vote[18] = 0.5
    elif kind == "continuous":
        vote = rng.random(5000)
    edges, cell = _distinct(vote)
    expected, position = np.unique(vote, return_inverse=True)
    np.testing.assert_array_equal(edges, expected)
    np.testing.assert_array_equal(cell, position)


@pytest.mark.parametrize("resolution", [None, 7])
def test_blocks_of_rows_change_nothing(monkeypatch, resolution):
    rng = np.random.default_rng(0)
    votes = rng.multinomial(20, [0.2, 0.5, 0.3], size=200) / 20
    proba = rng.dirichlet(np.ones(3), size=200)
    whole = [
        optimal_thresholds(votes, proba, resolution=resolution),
        risk_bound(votes, proba, thresholds=0.3, resolution=resolution),
    ]
    monkeypatch.setattr("fewlabel.bounds.cells._BLOCK_ROWS", 7)
    np.testing.assert_array_equal(optimal_thresholds(votes, proba, resolution=resolution), whole[0])
    blocks = risk_bound(votes, proba, thresholds=0.3, resolution=resolution)
    assert blocks == pytest.approx(whole[1], abs=1e-12)


@pytest.mark.parametrize("resolution", [None, 7])
def test_blocks_are_merged_as_they_come(monkeypatch, resolution):
    """The sums are those of all blocks merged at once, to the last bit."""
    monkeypatch.setattr("fewlabel.bounds.cells._BLOCK_ROWS", 16)
    rng = np.random.default_rng(0)
    votes = rng.multinomial(20, [0.2, 0.5, 0.3], size=500) / 20
    proba = rng.dirichlet(np.ones(3), size=500)
    blocks = [
        VoteStatistics.from_votes(votes[s : s + 16], proba[s : s + 16], resolution=resolution)
        for s in range(0, 500, 16)
    ]
    at_once = VoteStatistics.merge(blocks).cells
    for mine, theirs in zip(open_cells(votes, proba, resolution).cells, at_once, strict=True):
        for field in fields(mine):
            np.testing.assert_array_equal(getattr(mine, field.name), getattr(theirs, field.name))


def test_memory_of_bins_does_not_grow_with_the_rows(monkeypatch):
    monkeypatch.setattr("fewlabel.bounds.cells._BLOCK_ROWS", 500)
    peaks = []
    for n in (2_000, 20_000):
        votes = np.random.default_rng(0).dirichlet(np.ones(6), size=n)
        tracemalloc.start()
        next(open_cells(votes, votes, 500).cells)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]


def test_whether_votes_are_few_is_asked_of_rows_from_all_over():
    rng = np.random.default_rng(0)
    alike = rng.multinomial(20, [0.2, 0.5, 0.3], size=4_000) / 20
    continuous = rng.dirichlet(np.ones(3), size=4_000)
    assert _few_distinct(alike)
    assert not _few_distinct(continuous)
    assert not _few_distinct(np.concatenate([alike, continuous]))
    assert not _few_distinct(np.concatenate([continuous, alike]))
