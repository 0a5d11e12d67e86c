"""The simulation's page counts labels as it says."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import labeling
from benchmarks.labeling_page import (
    MEASURES,
    curves,
    draw,
    labels_needed,
    summary,
    tables,
    write_page,
)


def record(strategy, right, name="one", seed=1):
    """Right labels in the table; as many of the predicted ones, of new rows a tenth less."""
    curve = [
        [2 * n, None if value is None else [value, value, value - 0.1]]
        for n, value in zip((1, 5, 10, 20), right)
    ]
    return {"set": name, "seed": seed, "strategy": strategy, "n_classes": 2, "curve": curve}


RECORDS = [
    record("chance", [0.5, 0.6, 0.7, 0.8]),
    record("fewlabel", [0.6, 0.8, 0.9, 0.9]),
    record("never", [0.5, 0.6, 0.7, 0.7]),
    record("chance", [None, 0.6, 0.7, 0.8], "two"),
    record("fewlabel", [0.6, 0.7, 0.8, 0.9], "two"),
    record("never", [0.5, 0.6, 0.5, 0.7], "two"),
    record("chance", [0.1, 0.1, 0.1, 0.1], "two", seed=2),  # a session of the others is missing
]


def test_labels_are_counted_beside_chance():
    found = {row["strategy"]: row for row in summary(RECORDS)}
    assert found["fewlabel"]["ratios"] == pytest.approx({"one": 5 / 20, "two": 10 / 20})
    assert found["fewlabel"]["worst set"] == "two"
    assert found["never"]["ratio"] == found["chance"]["ratio"] == 1.0
    assert next(iter(found)) == "fewlabel"
    assert found["chance"]["shares"][-1] == pytest.approx(0.8)


def test_each_measure_has_its_curves():
    for measure, less in zip(MEASURES, (0.0, 0.0, 0.1)):
        right = curves(RECORDS, measure)["one", "fewlabel"][1]
        assert right.tolist() == pytest.approx([0.6 - less, 0.8 - less, 0.9 - less, 0.9 - less])


def test_what_is_right_in_the_table():
    """Six rows, the first two set aside: one of them is right, as are one of two predictions."""
    y, known = np.array([0, 1, 0, 1, 0, 1]), np.arange(6) >= 4
    votes = np.eye(2)[[0, 0, 0, 0, 1, 0]]  # wrong for rows with a label: these do not count
    rows = np.zeros((6, 2))
    table = labeling.Table(rows, y, rows, np.arange(6) < 2, known, votes, 0)
    assert labeling.shares_right(table) == [0.75, 0.5, 0.5]
    table.votes = None
    with pytest.raises(ValueError, match="two classes first"):
        labeling.shares_right(table)


def test_sessions_of_another_protocol_are_left_out(tmp_path):
    file = tmp_path / "records.jsonl"
    lines = [{"set": "old"}, {"set": "new", "measures": list(MEASURES)}]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [line["set"] for line in labeling.comparable(file)] == ["new"]


def test_a_session_counts_after_each_batch(monkeypatch):
    monkeypatch.setattr(labeling, "votes_of", lambda table, name: np.eye(3)[table.y])
    found = labeling.session("wine", 1000, "chance", (1, 2, 30, 40))
    n_rows = found["n_rows"]
    assert [n for n, _ in found["curve"]] == [3, 6, 90]  # 40 a class are more than there are
    assert n_rows == 178 - 60
    assert all(shares in (None, [1.0, 1.0, 1.0]) for _, shares in found["curve"])


@pytest.mark.parametrize(("width", "expected"), [(3, 3), (200, 200), (201, 101), (784, 196)])
def test_wide_tables_are_thinned(monkeypatch, width, expected):
    X = np.random.default_rng(0).normal(size=(90, width))
    monkeypatch.setattr(labeling, "load", lambda *_: (X, np.arange(90) % 2))
    assert labeling.draw("any", 0).X.shape == (90, expected)


def test_only_whole_comparisons_count():
    assert curves(RECORDS)["two", "chance"][1].tolist() == [0.6, 0.7, 0.8]


def test_sets_are_named_in_which_some_began_late():
    assert "one class only in their first batches (two)" in tables(RECORDS)
    assert "first batches" not in tables(RECORDS[:3])


def test_curves_do_not_fall():
    assert curves(RECORDS)["two", "never"][1].tolist() == pytest.approx([0.5, 0.55, 0.55, 0.7])


def test_labels_between_batches():
    x, y = np.array([1.0, 4.0]), np.array([0.5, 0.7])
    assert labels_needed((x, y), 0.6) == pytest.approx(2.0)
    assert labels_needed((x, y), 0.4) == 1.0
    assert labels_needed((x, y), 0.8) == float("inf")


def test_the_page_and_its_picture(tmp_path):
    text = tables(RECORDS)
    assert "2 data sets" in text
    assert "| table | table, worst set | predicted |" in text
    assert "0.50 (two) | 0." in text
    draw(RECORDS, tmp_path / "picture.svg")
    assert "chance" in (tmp_path / "picture.svg").read_text()
    with pytest.raises(ValueError, match="make labeling-run"):
        write_page([], tmp_path / "page.md")
