"""Sentences of the report."""

from __future__ import annotations

from fewlabel.report.words import bound, changed_words


def said(n_changed: int, gain: dict[str, float] | None, rounds: int = 1) -> str:
    """What is said of so many changed labels."""
    data = {"n_changed": n_changed, "n_unlabeled": 1_200}
    if gain is not None:
        data["gain"] = gain
    return changed_words({"data": data, "rounds": [{}] * rounds})


def test_what_self_learning_added_is_judged_by_other_tables():
    text = said(31, {"value": 4.4, "low": -5.6, "high": 14.4})
    assert text == (
        "self-learning changed 31 of the 1,200 labels of the first vote; by what such changes "
        "gained on other tables, about 4 more are right than before (−6 to +14)"
    )


def test_nothing_is_made_up():
    counted = "self-learning changed {} of the 1,200 labels of the first vote"
    assert said(0, {"value": 0.0, "low": 0.0, "high": 0.0}) == counted.format(0)
    assert said(31, None) == counted.format(31)  # a report of an earlier version
    assert said(31, None, rounds=0) == ""


def test_guarantees_are_rounded_up():
    stated = {"value": 0.1071, "kind": "guarantee"}
    assert bound(stated) == "10.8\N{NO-BREAK SPACE}%"
    assert bound({**stated, "kind": "estimate"}) == "10.7\N{NO-BREAK SPACE}%"
    assert bound({**stated, "value": 1.3}) == "100\N{NO-BREAK SPACE}%"
    assert bound({**stated, "value": None}) == "–"
