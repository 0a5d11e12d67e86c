"""The simulation's page counts labels as it says."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.labeling_page import curves, draw, labels_needed, summary, tables


def record(strategy, accuracies, name="one", seed=1):
    curve = [[2 * n, value] for n, value in zip((1, 5, 10, 20), accuracies)]
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
    assert found["chance"]["accuracies"][-1] == pytest.approx(0.8)


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
    assert "0.50 (two) | 0." in text
    draw(RECORDS, tmp_path / "picture.svg")
    assert "chance" in (tmp_path / "picture.svg").read_text()
