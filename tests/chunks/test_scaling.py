"""The scaling benchmark runs, and the page shows what its records say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks import scaling

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
    assert sizes["kept of a row between rounds, 5 classes"] == "60 bytes"


def test_every_table_of_the_page_has_a_command():
    page = PAGE.read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    names = re.findall(r"<!-- (\w+) -->", page)
    assert set(names) == {"memory", "accuracy", "workers", "statistics", "bytes"}
    for name in names:
        block = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", page, re.DOTALL)
        assert block is not None
        assert block[1].startswith("| "), f"the table {name} is missing"
    assert "benchmarks.scaling --write docs/scaling.md" in makefile
