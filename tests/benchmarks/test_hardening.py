"""The table of SECURITY.md: from the records, and as the records are."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks import hardening
from benchmarks._page import records

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_the_records_say():
    found = records(ROOT / hardening.RECORDS)
    assert hardening.table(found) in (ROOT / hardening.PAGE).read_text(encoding="utf-8")


def test_runs_that_were_repeated_count_once(tmp_path: Path):
    file = tmp_path / "records.jsonl"
    for first, bad in ((0, 3), (0, 1), (2000, 0)):
        hardening.note(file, "fuzz", seed=4, first=first, inputs=2000, bad=bad, slowest=1.5 + bad)
    hardening.note(file, "mutation", seed=0, mutants=150, killed=144, equivalent=5)
    hardening.note(None, "fuzz", seed=5)
    text = hardening.table(records(file))
    assert "| 4,000 inputs (seeds 4) | 1 bad; the slowest took 2.5 s of the processor |" in text
    assert "| 150 mutants (seed 0) | 144 noticed (96.0%); 5 more change nothing |" in text
    assert len(text.splitlines()) == 4


def test_the_tests_of_an_environment(tmp_path: Path):
    environment = tmp_path / ".venv-old"
    (environment / "bin").mkdir(parents=True)
    python = environment / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    (environment / "tests.xml").write_text(
        '<testsuites><testsuite tests="90" skipped="2" failures="1" errors="3"/></testsuites>'
    )
    file = tmp_path / "records.jsonl"
    hardening.note_versions(environment, file)
    (record,) = records(file)
    assert record["name"] == "old"
    assert record["versions"]["Python"] == "{}.{}.{}".format(*sys.version_info)
    assert "84 tests passed, 2 skipped, 4 failed" in hardening.table([record])


def test_no_record_says_that_something_was_bad():
    for record in records(ROOT / hardening.RECORDS):
        assert record.get("bad", 0) + record.get("failures", 0) == 0, json.dumps(record)
