"""The scaling benchmark runs, and the page shows what its records say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks import _page, partition_forests, scaling

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "scaling.md"

pytestmark = pytest.mark.filterwarnings("ignore:The estimate of the error is unsafe")


def test_accuracy_compares_the_same_splits(tmp_path):
    records = tmp_path / "records.jsonl"
    rows = partition_forests.accuracy(2, {"digits": 90}, 5, records)
    fits = [json.loads(line) for line in records.read_text().splitlines()]
    assert {(fit["split"], fit["train"]) for fit in fits} == {
        (split, train) for split in (0, 1) for train in ("sample", "partitions")
    }
    for split in (0, 1):  # the same initial forest: only the training differs
        assert len({fit["supervised"] for fit in fits if fit["split"] == split}) == 1
    assert rows[0]["data"] == "digits"
    assert partition_forests.accuracy(2, {"digits": 90}, 5, records) == rows  # nothing is repeated
    assert len(records.read_text().splitlines()) == 4


@pytest.mark.xdist_group("dask")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_measurements_are_recorded_once_and_become_tables(tmp_path):
    pytest.importorskip("distributed", reason="needs pip install 'fewlabel[scale]'")
    log = scaling.Log(tmp_path / "records.jsonl")
    voters = ["semi_lda", "s3vm"]
    for _ in range(2):
        scaling.cost(log, 1_500, 200, voters)
        scaling.memory(log, [1_500, 3_000], ["lda"], tmp_path, 1_500)
        scaling.workers(log, 1_500, [1], ["lda"], tmp_path)
    records = _page.records(log.path)
    assert [record["part"] for record in records] == [
        *["cost"] * 4,
        *["memory"] * 3,
        *["workers", "tasks"],
    ]
    fits = [record for record in records if record["part"] == "memory"]
    assert fits[0]["error"] == pytest.approx(fits[1]["error"], abs=0.02)  # on disk, in memory
    for make in scaling.TABLES.values():
        assert make(log).startswith("| ")
    assert "A projection, not a measurement" in scaling.projection_table(log)


def test_every_table_of_the_page_is_that_of_the_records():
    page = PAGE.read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    names = re.findall(r"<!-- (\w+) -->", page)
    assert set(names) == {*scaling.TABLES, "accuracy"}
    log = scaling.Log(scaling.RECORDS)
    for name in names:
        block = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", page, re.DOTALL)
        assert block is not None
        assert block[1].startswith("| "), f"the table {name} is missing"
        if name in scaling.TABLES:
            assert block[1].strip() == scaling.TABLES[name](log).strip()
    assert "benchmarks.scaling --write docs/scaling.md" in makefile


def test_every_fault_of_the_page_has_a_test():
    faults = PAGE.read_text(encoding="utf-8").partition("**When something breaks.**")[2]
    lines = [line for line in faults.partition("\n\n**")[0].splitlines() if line.startswith("| ")]
    names = [re.findall(r"`(test_\w+)`", line) for line in lines[1:]]
    assert len(names) > 10
    assert all(names)
    files = ("chunks/test_dask_rows.py", "chunks/test_dask_mixed.py", "cli/test_folders.py")
    code = "".join((ROOT / "tests" / name).read_text(encoding="utf-8") for name in files)
    assert not {name for line in names for name in line if f"def {name}(" not in code}
