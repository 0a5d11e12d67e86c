"""Sentences of the report."""

from __future__ import annotations

import pytest

from fewlabel.report.words import changed_words


def said(n_changed: int, gain: dict[str, float] | None, rounds: int = 1) -> str:
    """What is said of so many changed labels."""
    data = {"n_changed": n_changed, "n_unlabeled": 1_200}
    if gain is not None:
        data["gain"] = gain
    return changed_words({"data": data, "rounds": [{}] * rounds})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (4.4, "about 4 more are right than before"),
        (-2.6, "about 3 fewer are right than before"),
        (0.3, "about as many are right as before"),
    ],
)
def test_what_self_learning_added_is_an_estimate_with_limits(value, expected):
    text = said(31, {"value": value, "low": value - 10, "high": value + 10})
    assert text.startswith(
        f"self-learning changed 31 of the 1,200 labels of the first vote: {expected}"
    )
    limits = text.rpartition("(estimate: ")[2].rstrip(")").replace("−", "-").split(" to ")
    assert [int(limit) for limit in limits] == [round(value - 10), round(value + 10)]


def test_nothing_is_made_up():
    counted = "self-learning changed {} of the 1,200 labels of the first vote"
    assert said(0, {"value": 0.0, "low": 0.0, "high": 0.0}) == counted.format(0)
    assert said(31, None) == counted.format(31)  # a report of an earlier version
    assert said(31, None, rounds=0) == ""
