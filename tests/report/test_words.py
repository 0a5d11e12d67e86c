"""Sentences of the report."""

from __future__ import annotations

from typing import Any

from fewlabel.report.words import (
    accepted_words,
    bound,
    changed_words,
    error_words,
    recall_words,
    warnings_of,
)

SHARE = {"value": 0.11, "low": 0.05, "high": 0.23}


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


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def promised(n: int, **error: Any) -> dict[str, Any]:
    return {
        "data": {"n_unlabeled": n},
        "promise": {"error": {**SHARE, "n": 14, "safe": True, **error}},
    }


def test_one_label_is_spoken_of_as_one():
    assert plain(error_words(promised(2))).startswith("about 11 % of the 2 new labels are wrong (")
    one = plain(error_words(promised(1)))
    assert one.startswith("about 11 % is the chance that the new label is wrong (")
    assert "of the 1 new label are wrong cannot" in error_words(promised(1, value=None))
    said = plain(accepted_words({"n": 1, "expected_error": 0.03}, "5 % was asked for"))
    assert said.startswith("1 of them can be taken as it is (wrong with a chance of about 3 %;")


def test_why_no_label_is_accepted():
    none = {"n": 0, "expected_error": None}
    said = plain(accepted_words(none, "5 % was asked for", 0.23))
    assert said == (
        "none of them can be taken as they are (5 % was asked for): the upper limit of their error "
        "is 23 %; label more rows, or allow more"
    )


def test_names_of_classes_stay_on_their_line():
    entry = {"name": "small\nor " + "s" * 80, "recall": SHARE, "n_labeled": 0, "n_given": 1}
    entry |= {"error": None}
    summary = {**promised(9), "classes": [entry], "truth": {"unknown_classes": {entry["name"]: 1}}}
    summary["data"]["n_classes"] = 1
    sentences = [recall_words(summary), *warnings_of(summary)]
    assert len(sentences) == 4
    for text in sentences:
        assert "small·or sss" in text
        assert "s" * 40 not in text
