"""The page about the mislabelling matrix can be made by today's classifier."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from sklearn.datasets import load_wine

from benchmarks import mislabeling


@pytest.mark.filterwarnings("ignore")
def test_the_page_compares_every_method(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = load_wine(return_X_y=True)
    monkeypatch.setattr(mislabeling, "load_dataset", lambda *_: SimpleNamespace(X=X, y=y))
    text = mislabeling.page(["vowel"], 1, None)
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    methods = {row.split("|")[1].strip() for row in rows}
    assert {"none (labels right)", "soft, calibrated", "held-out, cross-fitted"} < methods
    distance = {r.split("|")[1].strip(): float(r.split("|")[2]) for r in rows[1:12]}
    assert 0 <= distance["anchor, calibrated"] <= 1
    assert len(distance) == 11
    assert "| CBIL | calibrated |" in text
