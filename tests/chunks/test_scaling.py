"""The scaling benchmark runs, and the page shows what its records say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks import _page, scaling, scaling_model

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "scaling.md"


def test_accuracy_compares_the_same_splits(tmp_path):
    records = tmp_path / "records.jsonl"
    rows = scaling.accuracy(2, {"digits": 90}, 5, records)
    fits = [json.loads(line) for line in records.read_text().splitlines()]
    assert {(fit["split"], fit["train"]) for fit in fits} == {
        (split, train) for split in (0, 1) for train in ("sample", "partitions")
    }
    for split in (0, 1):  # the same initial forest: only the training differs
        assert len({fit["supervised"] for fit in fits if fit["split"] == split}) == 1
    assert rows[0]["data"] == "digits"
    assert scaling.accuracy(2, {"digits": 90}, 5, records) == rows  # nothing is repeated
    assert len(records.read_text().splitlines()) == 4


def test_page_shows_the_recorded_accuracies():
    lines = scaling.RECORDS.read_text(encoding="utf-8").splitlines()
    splits = len({json.loads(line)["split"] for line in lines})
    assert splits >= 5
    rows = scaling.accuracy(splits, scaling.SETS, scaling.TREES, scaling.RECORDS)
    assert _page.table(rows) in PAGE.read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_workers_and_rows():
    pytest.importorskip("distributed", reason="needs pip install 'fewlabel[scale]'")
    (row,) = scaling.workers([3_000], [1], 3, 500)
    assert float(row["seconds"]) >= 0.1
    assert 0 < float(row["processor seconds"]) < 60
    assert float(row["peak MiB a worker"]) > 50


def test_statistics_and_bytes():
    rows = scaling.statistics(2_000, 3, 1)
    assert rows[0]["times reading"] == "1"
    assert len(rows) == 3
    sizes = {row[""]: row["size"] for row in scaling.bytes_and_speed(500, 5, 200)}
    assert sizes["kept of a row between rounds, 5 classes"] == "54 bytes"


def test_estimate_multiplies():
    costs = scaling_model.Costs(1.0, 0.1, 2.0, 3.6, 1000.0, 500)
    row = scaling_model.estimate(costs, 10**9, 10**6, 100, 4)
    # 6 passes of 1 + 20 + 2 µs and 5 of 1 µs for each row; 4 rounds of 200 trees of 3.6 s.
    hours = (10**9 * (6 * 23 + 5) * 1e-6 + 4 * 200 * 3.6) / 3600
    assert row["core-hours"] == f"{hours:,.0f}"
    assert row["rows/s/core"] == f"{1e6 / 143:,.0f}"
    assert row["statistics/round"] == "500 KB"
    assert row["forest/round"] == "20.2 MB"
    measured = scaling_model.measure_costs(300, 200, 2)
    assert measured.vote_tree > 0
    assert measured.tree_bytes > 100


def test_every_table_of_the_page_has_a_command():
    page = PAGE.read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    names = re.findall(r"<!-- (\w+) -->", page)
    assert set(names) == {"memory", "accuracy", "workers", "statistics", "bytes", "paper"}
    for name in names:
        block = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", page, re.DOTALL)
        assert block is not None
        assert block[1].startswith("| "), f"the table {name} is missing"
    assert "benchmarks.scaling --write docs/scaling.md" in makefile
