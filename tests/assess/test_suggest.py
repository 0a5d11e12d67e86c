"""Rows whose label would teach most."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from fewlabel.assess.suggest import NextRows, margins_of, next_to_label
from support.strategies import votes_and_proba


@given(votes_and_proba())
def test_rows_are_ranked_by_gain(case):
    votes = case[0]
    found = next_to_label(votes, 10)
    every = [(1 - sorted(v)[-1]) * (1 - (sorted(v)[-1] - sorted(v)[-2])) for v in votes]
    np.testing.assert_allclose(found.gains, sorted(every, reverse=True)[:10], atol=1e-12)
    np.testing.assert_allclose(np.array(every)[found.rows], found.gains, atol=1e-12)


def test_margin_and_gain_of_rows_by_hand():
    votes = np.array([[0.5, 0.375, 0.125], [0.25, 0.25, 0.5], [1.0, 0.0, 0.0]])
    chosen = NextRows.at(np.array([7, 3, 5]), votes)
    assert chosen.rows.tolist() == [7, 3, 5]  # in their order
    assert chosen.margins.tolist() == margins_of(votes).tolist() == [0.125, 0.25, 1.0]
    assert chosen.gains.tolist() == [0.5 * 0.875, 0.5 * 0.75, 0.0]
    best = NextRows.of(votes, np.array([7, 3, 5]), 2)
    assert best.rows.tolist() == [7, 3]
    assert best.margins.tolist() == [0.125, 0.25]
    assert best.gains.tolist() == chosen.gains[:2].tolist()
    assert margins_of(np.ones((2, 1))).tolist() == [1.0, 1.0]  # a single class


def test_no_rows():
    assert [len(column) for column in next_to_label(np.empty((0, 3)), 5)] == [0, 0, 0]
