"""What is kept and said of a round, and when to stop."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fewlabel.selection.policies import Selection
from fewlabel.selection.rounds import reason_to_stop, round_line, round_record


def test_the_error_bound_of_a_round_is_the_mean_over_its_rows():
    """0.1 of 2 rows and 0.3 of 6; the class without rows has no bound."""
    selection = Selection(np.array([0.5, 1.0, 0.75]), np.array([0.1, np.nan, 0.3]))
    record = round_record(4, 20, selection, np.array([2, 0, 6]), {"fit": 1.5})
    assert record["error_bound"] == pytest.approx(0.25)
    assert (record["iteration"], record["n_unlabeled"], record["n_selected"]) == (4, 20, 8)
    assert record["n_selected_per_class"] == [2, 0, 6]
    assert record["thresholds"] == [0.5, 1.0, 0.75]
    assert record["seconds_fit"] == 1.5
    assert json.loads(json.dumps(record))["n_selected"] == 8
    assert round_line(record) == "round 4: pseudo-labelled 8 of 20 rows"


def test_a_policy_without_a_criterion_has_no_error_bound():
    record = round_record(1, 5, Selection(np.array([0.5, 0.5])), np.array([1, 2]), {})
    assert record["error_bounds"] is None
    assert record["error_bound"] is None


@pytest.mark.parametrize(
    ("n_selected", "n_rounds", "reason"),
    [
        (49, 1, "min_gain"),
        (50, 1, None),
        (49, 0, None),
        (0, 0, "no_selection"),
        (99, 4, None),
        (99, 5, "max_iter"),
        (0, 6, "max_iter"),
    ],
)
def test_rounds_stop_when_they_would_add_less_than_the_gain_asked_for(n_selected, n_rounds, reason):
    assert reason_to_stop(n_selected, 100, n_rounds, max_iter=5, min_gain=0.5) == reason


def test_without_a_limit_rounds_go_on():
    assert reason_to_stop(1, 100, 1000, max_iter=None, min_gain=0.01) is None
