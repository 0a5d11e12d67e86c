"""Rows whose label would teach most."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from fewlabel.assess.suggest import next_to_label
from support.strategies import votes_and_proba


@given(votes_and_proba())
def test_rows_are_ranked_by_gain(case):
    votes = case[0]
    found = next_to_label(votes, 10)
    every = [(1 - sorted(v)[-1]) * (1 - (sorted(v)[-1] - sorted(v)[-2])) for v in votes]
    np.testing.assert_allclose(found.gains, sorted(every, reverse=True)[:10], atol=1e-12)
    np.testing.assert_allclose(np.array(every)[found.rows], found.gains, atol=1e-12)


def test_no_rows():
    assert [len(column) for column in next_to_label(np.empty((0, 3)), 5)] == [0, 0, 0]
