"""Are the committed pages what the committed records say? ``make check-pages``.

Makes every page that is written from records anew and compares; exits with 1 and the names of the
pages that differ.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from pathlib import Path

from benchmarks import (
    any_table,
    competitors,
    competitors_page,
    hardening,
    labeling,
    labeling_page,
    mixed_vote,
    mixed_vote_page,
    peers,
    peers_page,
    promise,
    promise_page,
    scaling,
    self_learning_gain,
    table_costs,
)
from benchmarks._page import records
from reproduction.page import page_text
from reproduction.plan import Scope
from reproduction.records import read_records

RESULTS = Path("results")
DOCS = Path("docs")


def pages() -> Iterator[tuple[Path, str]]:
    """Each page with the text that it should hold (of some of them: a part)."""
    found = read_records(RESULTS)
    yield DOCS / "reproduction.md", page_text(Scope(), found, "reproduction")
    times = json.loads(competitors.SCALING.read_text(encoding="utf-8"))
    yield DOCS / "baselines.md", competitors_page.page(found, times)
    parts = (records(path) for path in (mixed_vote.ABLATION, mixed_vote.COST))
    yield DOCS / "mixed_vote.md", mixed_vote_page.text(*parts, RESULTS)
    fits = [fit for fit in records(promise.RECORDS) if "truth" in fit]
    yield DOCS / "promise.md", promise_page.page(fits)
    yield DOCS / "labeling.md", labeling_page.tables(labeling.comparable())
    learned, costs = records(RESULTS / "any_table.jsonl"), records(table_costs.RECORDS)
    yield DOCS / "any_table.md", any_table.page(learned, costs)
    yield self_learning_gain.PAGE, self_learning_gain.page(records(self_learning_gain.RECORDS))
    race = records(peers.RECORDS)
    yield peers.PAGE, peers.page(race)
    yield Path("README.md"), peers_page.sentence(race, peers.OURS[0])
    yield hardening.PAGE, hardening.table(records(hardening.RECORDS))
    log = scaling.Log(scaling.RECORDS)
    for make in scaling.TABLES.values():
        yield DOCS / "scaling.md", make(log)


def main() -> None:
    stale = []
    for path, expected in pages():
        written = path.read_text(encoding="utf-8")
        if expected.rstrip("\n") in written:
            continue
        stale.append(str(path))
        lines = difflib.unified_diff(written.splitlines(), expected.splitlines(), str(path), "made")
        print("\n".join(list(lines)[:20]))
    if stale:
        raise SystemExit(f"Not what the records say: {', '.join(stale)}. Run their make targets.")
    print("Every page is what its records say.")


if __name__ == "__main__":
    main()
