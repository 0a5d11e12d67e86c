"""Graphs of neighbours and how labels spread on them, beside the literal formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from fewlabel.baselines import _graph
from fewlabel.baselines._graph import (
    nearest,
    neighbour_graph,
    one_hot,
    spread,
    spread_faster,
    spread_in_blocks,
)
from reference import spreading_limit

SPREADS = pytest.mark.parametrize("spreading", [spread, spread_faster])
SEEDS = st.integers(0, 2**32 - 1)


def random_graph(seed, n=30, k=4):
    rng = np.random.default_rng(seed)
    positions = np.array([rng.permutation(np.delete(np.arange(n), i))[:k] for i in range(n)])
    return neighbour_graph(rng.uniform(0.01, 0.2, (n, k)), positions)


class Counted:
    """A matrix that counts its products."""

    def __init__(self, matrix):
        self.matrix, self.products = matrix, 0

    def __matmul__(self, other):
        self.products += 1
        return self.matrix @ other


# --- spreading -----------------------------------------------------------------------------------


@SPREADS
@given(SEEDS, st.sampled_from([0.3, 0.9]))
def test_labels_spread_to_the_limit(spreading, seed, alpha):
    S, Y = random_graph(seed), np.eye(30)[:, :3]
    F, _, converged = spreading(S, Y, alpha=alpha, max_iter=500, tol=1e-9)
    assert converged
    np.testing.assert_allclose(F, spreading_limit(S.toarray(), Y, alpha), atol=1e-7)
    assert (F >= 0).all()


@SPREADS
def test_it_stops_after_as_many_products_as_are_allowed(spreading):
    S, Y = Counted(random_graph(0)), np.eye(30)[:, :3]
    F, iterations, converged = spreading(S, Y, alpha=0.99, max_iter=3, tol=1e-9)
    assert (iterations, converged, S.products) == (3, False, 3)
    assert 0 < F.sum() < spreading_limit(S.matrix.toarray(), Y, 0.99).sum()


def test_plain_steps_are_the_literal_ones():
    S, Y = random_graph(1), np.eye(30)[:, :2]
    F = 0.1 * Y
    for _ in range(4):
        F = 0.9 * (S @ F) + 0.1 * Y
    np.testing.assert_allclose(spread(S, Y, alpha=0.9, max_iter=4, tol=0.0)[0], F)


@SPREADS
def test_without_an_edge_nothing_is_left_to_do(spreading):
    nowhere, Y = sparse.csr_matrix((5, 5)), np.eye(5)[:, :2]
    F, iterations, converged = spreading(nowhere, Y, alpha=0.9, max_iter=10, tol=0.0)
    np.testing.assert_allclose(F, 0.1 * Y)
    assert (iterations, converged) == (1, True)


@SPREADS
def test_the_tolerance_is_relative(spreading):
    S, Y = random_graph(2), np.eye(30)[:, :3]
    few, many = (spreading(S, c * Y, alpha=0.9, max_iter=500, tol=1e-3)[1] for c in (1.0, 50.0))
    assert few == many


@given(SEEDS)
def test_the_fast_iteration_needs_less_than_half_of_the_products(seed):
    S, Y = random_graph(seed, n=60), np.eye(60)[:, :3]
    plain, fast = (f(S, Y, alpha=0.8, max_iter=5_000, tol=1e-6)[1] for f in (spread, spread_faster))
    assert fast < plain / 2


def test_many_sources_spread_a_few_columns_at_a_time(monkeypatch):
    monkeypatch.setattr(_graph, "_COLUMNS", 2)
    S, asked = random_graph(3).toarray(), []
    rows, columns = np.array([0, 5, 9, 11, 20]), np.array([1, 6, 1, 4, 3])

    def solve(sources):
        asked.append(sources.shape[1])
        return S @ sources

    scores = spread_in_blocks(solve, 30, rows, columns, 8)
    assert asked == [2, 2]  # columns without a source are not asked for
    sources = np.zeros((30, 8))
    sources[rows, columns] = 1.0
    np.testing.assert_allclose(scores, (S @ sources)[rows], atol=1e-7)


def test_unlabelled_rows_are_no_source():
    np.testing.assert_array_equal(one_hot(np.array([1, -1, 0]), 3), [[0, 1, 0], [0] * 3, [1, 0, 0]])


# --- graphs --------------------------------------------------------------------------------------


@given(SEEDS, st.integers(1, 4))
def test_a_graph_is_symmetric_and_normalised_on_both_sides(seed, k):
    S = random_graph(seed, k=k).toarray()
    np.testing.assert_allclose(S, S.T)
    assert np.linalg.eigvalsh(S).max() == pytest.approx(1.0)


def test_two_rows_are_joined_if_either_is_a_neighbour_of_the_other():
    S = neighbour_graph(np.array([[0.2], [0.1], [0.1]]), np.array([[1], [0], [1]])).toarray()
    degrees = np.array([0.2, 0.3, 0.1])
    weights = np.array([[0, 0.2, 0], [0.2, 0, 0.1], [0, 0.1, 0]])
    np.testing.assert_allclose(S, weights / np.sqrt(np.outer(degrees, degrees)))


# --- neighbours ----------------------------------------------------------------------------------


def test_there_are_no_more_neighbours_than_other_points():
    points = np.random.default_rng(0).normal(size=(4, 7))
    distances, positions = nearest(points, 10)
    assert distances.shape == positions.shape == (4, 3)
    assert (np.sort(np.c_[positions, np.arange(4)], axis=1) == np.arange(4)).all()
    assert nearest(points, 10, points[:2])[0].shape == (2, 4)


def test_a_row_among_twins_is_not_its_own_neighbour(monkeypatch):
    monkeypatch.setattr(_graph, "find_spec", lambda name: None)
    monkeypatch.setattr(_graph, "MANY_POINTS", 10)
    points = np.repeat(np.random.default_rng(0).normal(size=(3, 8)), [30, 30, 2], axis=0)
    distances, positions = nearest(points, 5)
    assert distances.shape == (62, 5)
    assert (positions[:60] != np.arange(60)[:, None]).all()
    np.testing.assert_allclose(distances[:60], 0.0, atol=1e-6)
    assert (positions[:60] // 30 == np.arange(60)[:, None] // 30).all()


def test_few_features_are_searched_exactly_however_many_points(monkeypatch):
    monkeypatch.setattr(_graph, "MANY_POINTS", 10)
    monkeypatch.setattr(_graph, "InvertedIndex", lambda points: pytest.fail("not exact"))
    points = np.random.default_rng(0).normal(size=(40, 6))
    distances, _ = nearest(points, 3)
    literal = np.sort(np.linalg.norm(points[:, None] - points[None], axis=2), axis=1)[:, 1:4]
    np.testing.assert_allclose(distances, literal)
