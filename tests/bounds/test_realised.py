"""The realised share of wrong labels: its exact distribution, and limits that hold for it."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from fewlabel import realised_error_quantile, risk_bound
from fewlabel.bounds.realised import poisson_binomial


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_distribution_equals_the_literal_recursion(probabilities):
    found = poisson_binomial(np.array(probabilities))
    np.testing.assert_allclose(found, reference.poisson_binomial(probabilities), atol=1e-13)
    assert len(found) == len(probabilities) + 1


@given(st.integers(1, 60), st.integers(0, 10**6), st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_quantile_equals_the_literal_one(n, seed, confidence):
    rng = np.random.default_rng(seed)
    proba, labels = rng.dirichlet(np.full(3, 0.4), n), rng.integers(3, size=n)
    expected = reference.realised_error_quantile(proba, labels, confidence)
    assert realised_error_quantile(proba, labels, confidence) == pytest.approx(expected)


def test_many_rows_are_near_the_normal_law():
    p = np.random.default_rng(0).uniform(0, 0.4, 50_000)
    share = realised_error_quantile(np.column_stack([1 - p, p]), np.zeros(len(p), dtype=int))
    normal = (p.sum() + 1.6448536 * np.sqrt((p * (1 - p)).sum())) / len(p)
    assert share == pytest.approx(normal, abs=3 / len(p))


def test_memory_grows_with_the_rows_and_no_faster():
    peaks = []
    for n in (2_000, 16_000):
        tracemalloc.start()
        poisson_binomial(np.full(n, 0.1))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 12 * peaks[0]


@pytest.mark.parametrize("n", [7, 60, 400])
def test_it_covers_where_a_bound_of_the_expected_error_does_not(n):
    rng = np.random.default_rng(n)
    proba = rng.dirichlet([2.0, 0.5], n)
    labels = proba.argmax(axis=1)
    p = 1 - proba.max(axis=1)
    shares = (rng.random((4000, n)) < p).mean(axis=1)
    limit = realised_error_quantile(proba, labels, 0.95)
    assert (shares <= limit + 1e-12).mean() >= 0.94
    # For two classes TB is the plug-in mean: many draws are above it.
    tb = risk_bound(proba, proba, tight=True)
    assert tb == pytest.approx(p.mean())
    assert 0.2 < (shares > tb).mean() < 0.65
    assert limit > tb


def test_sure_labels():
    sure = np.eye(2)[[0, 1, 1]]
    assert realised_error_quantile(sure, [0, 1, 1]) == 0.0
    assert realised_error_quantile(sure, [0, 1, 0]) == pytest.approx(1 / 3)


@pytest.mark.parametrize(("miss", "share"), [(-1e-9, 0.0), (1e-11, 0.0), (1.5e-11, 1.0)])
def test_a_confidence_that_is_missed_by_rounding_is_reached(miss, share):
    assert realised_error_quantile([[0.5, 0.5]], [0], 0.5 + miss) == share


@pytest.mark.parametrize(
    ("proba", "labels", "confidence", "match"),
    [
        ([[0.5, 0.5]], [0], 0.0, "confidence"),
        ([[0.5, 0.5]], [0], 1.0, "confidence"),
        ([[0.5, 0.5]], [2], 0.9, "class codes"),
        ([[0.5, 0.5]], [0, 1], 0.9, "shape"),
        ([[0.5, 0.9]], [0], 0.9, "sum"),
    ],
)
def test_invalid_input(proba, labels, confidence, match):
    with pytest.raises(ValueError, match=match):
        realised_error_quantile(proba, labels, confidence)
