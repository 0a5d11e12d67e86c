"""Who votes: the report's section on the families of a mixed vote."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_blobs
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from fewlabel import FewLabelClassifier, SelfLearningClassifier
from fewlabel.report import charts, render
from fewlabel.report.summarize import summarize
from fewlabel.report.voter_rows import accuracy_estimate
from fewlabel.report.words import headline, percent, voted_by

pytest.importorskip("jinja2")
pytest.importorskip("pyarrow")

Evil = type("<script>alert(1)</script>|", (DecisionTreeClassifier,), {})
SLOW = "it would take about 900 s, more than the 600 s allowed"


@pytest.fixture(scope="module")
def fitted():
    X, y = make_blobs(200, 4, centers=3, cluster_std=4.0, random_state=1)
    target = np.where(np.arange(200) < 40, y, -1)
    voters = ["svm", "lda", ("evil", Evil(max_depth=1, random_state=0))]
    return FewLabelClassifier(voters, random_state=0).fit(X, target), X, target, y


@pytest.fixture(scope="module")
def summary(fitted) -> dict[str, Any]:
    clf, _, _, y = fitted
    return summarize(clf, y_true=y)


@pytest.fixture
def with_a_slow_one(summary) -> dict[str, Any]:
    """The same, as if a family had been left out."""
    changed = copy.deepcopy(summary)
    changed["voters"]["families"].append(
        {
            "name": "slow",
            "title": "a <b>slow</b> one",
            "weight": 0.0,
            "accuracy": None,
            "left_out": SLOW,
            "seconds": 0.1,
        }
    )
    return changed


def test_summary_is_what_the_classifier_knows(fitted, summary):
    clf, _, target, _ = fitted
    voters = summary["voters"]
    records = {record.name: record for record in clf.voters_}
    assert {family["name"] for family in voters["families"]} == set(records)
    for family in voters["families"]:
        record = records[family["name"]]
        assert family["title"] == record.title
        assert family["weight"] == record.weight
        assert family["accuracy"]["value"] == record.accuracy
    weights = [family["weight"] for family in voters["families"]]
    assert weights == sorted(weights, reverse=True)
    assert sum(weights) == pytest.approx(1.0)
    assert voters["n_voting"] == np.count_nonzero(weights) == len(clf.estimator_.estimators)
    assert voters["n_rows"] == 40
    held_out = clf.initial_estimator_.held_out_votes_.argmax(axis=1)
    assert voters["together"]["value"] == pytest.approx((held_out == target[:40]).mean())
    assert voters["kl"] == pytest.approx(clf.posterior_.kl)
    json.dumps(summary, allow_nan=False)


def test_a_family_that_was_left_out():
    X, _ = make_blobs(60, 3, centers=2, random_state=0)
    target = np.where(np.arange(60) < 2, [0, 1] * 30, -1)
    clf = FewLabelClassifier(["svm", KNeighborsClassifier(5)], random_state=0)
    with pytest.warns(UserWarning, match="KNeighborsClassifier is left out"):
        clf.fit(X, target)
    summary = summarize(clf)
    svm, near = summary["voters"]["families"]
    assert (svm["left_out"], svm["weight"]) == (None, 1.0)
    assert near["left_out"].startswith("it cannot learn from these rows")
    assert near["accuracy"] is None
    assert "by SVM with RBF kernel, which got all the weight" in summary["headline"][0]
    for kind in ("html", "md", "json"):
        assert "it cannot learn" in render(summary, kind)


def test_a_single_classifier_has_no_such_section():
    X, y = make_blobs(60, 3, centers=2, random_state=0)
    tree = DecisionTreeClassifier(random_state=0)
    clf = SelfLearningClassifier(tree).fit(X, np.where(np.arange(60) < 20, y, -1))
    summary = summarize(clf)
    assert summary["voters"] is None
    assert "vote of" not in summary["headline"][0]
    assert "h-voters" not in render(summary, "html")
    assert "Who votes" not in render(summary, "md")
    del summary["voters"]  # as in reports of earlier versions
    assert "DecisionTreeClassifier" in render(summary, "html")
    assert render(summary, "md")


def test_headline_says_who_voted(summary):
    n = summary["voters"]["n_voting"]
    assert f"by a vote of {n} families" in headline(summary)[0]
    assert voted_by(None) == ""


@pytest.mark.parametrize("kind", ["html", "md"])
def test_formats_show_weights_and_estimates(kind: str, with_a_slow_one):
    page = render(with_a_slow_one, kind)
    for family in with_a_slow_one["voters"]["families"][:3]:
        assert percent(family["weight"]) in page
        assert percent(family["accuracy"]["value"]) in page
    assert f"left out: {SLOW}" in page
    assert "estimates from 40 labelled rows" in page
    assert "look a little better than they are" in page
    assert "<script>alert" not in page
    assert "<b>slow" not in page


@pytest.mark.parametrize("kind", ["html", "md", "json"])
def test_without_two_labels_of_a_class_no_accuracy_is_shown(kind: str, fitted):
    _, X, _, y = fitted
    target = np.full(len(y), -1)
    target[[np.flatnonzero(y == c)[0] for c in range(3)]] = range(3)
    clf = FewLabelClassifier(["forest", "extra_trees"], random_state=0).fit(X, target)
    shown = summarize(clf)
    assert [family["accuracy"] for family in shown["voters"]["families"]] == [None, None]
    assert shown["voters"]["together"] is None
    page = render(shown, kind)
    assert "accuracies cannot be estimated" in page
    assert "nan" not in page.lower()
    assert not any("too confident" in warning for warning in shown["warnings"])


def test_markdown_keeps_its_columns(with_a_slow_one):
    page = render(with_a_slow_one, "md")
    table = page.partition("## Who votes")[2].partition("##")[0].strip().splitlines()
    lines = [line for line in table if line.startswith("|")]
    assert len(lines) == 2 + 4 + 1
    for line in lines:
        assert line.replace(r"\|", "").count("|") == 4


def test_marks_stand_inside_their_axes(with_a_slow_one):
    chart = charts.voter_bars(with_a_slow_one["voters"])
    assert 0 <= chart["low"] < 1
    for row in chart["rows"]:
        assert row["weight"] == pytest.approx(
            100 * row["family"]["weight"] / chart["top"], abs=0.01
        )
        assert (row["accuracy"] is None) == bool(row["family"]["left_out"])
    marks = [row["accuracy"] for row in chart["rows"] if row["accuracy"]] + [chart["together"]]
    for mark in marks:
        assert 0 <= mark["low"] <= mark["value"] <= mark["high"] <= 100


@given(st.integers(1, 500), st.floats(0, 1))
def test_the_interval_holds_the_estimate(n: int, share: float):
    right = round(share * n)
    estimate = accuracy_estimate(right / n, n)
    assert 0 <= estimate["low"] <= estimate["value"] + 1e-12
    assert estimate["value"] - 1e-12 <= estimate["high"] <= 1
    assert estimate["high"] - estimate["low"] < 4 / np.sqrt(n + 4)
