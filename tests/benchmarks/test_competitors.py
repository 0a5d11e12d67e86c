"""The page about the competitors says what the records say, and explains what needs explaining."""

from __future__ import annotations

import pytest

from benchmarks import competitors, competitors_page
from benchmarks.baselines import exponent, measure
from reproduction.paper_values import TABLE_2
from reproduction.spec import Trial

NO_SCALING = {
    "machine": {"cpu": "", "cores": 0},
    "versions": {"scikit-learn": ""},
    "rows": [],
}


def record(trial: Trial, accuracy: float) -> dict:
    return {
        "key": trial.key,
        "trial": trial.as_dict(),
        "status": "ok",
        "scores": {"accuracy": accuracy},
    }


def test_a_variant_shows_the_best_point_of_its_grid():
    records = [
        record(t, 0.5905 + 0.001 * t.seed / 10 + (0.01 if ("gamma", 1.5) in t.params else 0))
        for t in competitors.trials("vowel", "LS raw")
    ]
    page = competitors_page.page(records, NO_SCALING)
    splits = len({t.seed for t in competitors.trials("vowel", "LS raw")})
    assert f"({splits})" in page
    assert "| Vowel | .6" in page


def test_far_cell_without_a_reason_is_an_error(monkeypatch):
    monkeypatch.setattr(competitors_page, "REASONS", {})
    records = [record(t, 0.1 + t.seed / 1e5) for t in competitors.trials("vowel", "LS")]
    with pytest.raises(ValueError, match=r"LS on vowel is .* say why"):
        competitors_page.page(records, NO_SCALING)


def test_reasons_take_their_figures_from_the_records(monkeypatch):
    reason = {("vowel", "LS"): "raw {LS raw}, at ten {LS raw@10.0}"}
    monkeypatch.setattr(competitors_page, "REASONS", reason)
    records = [record(t, 0.1 + t.seed / 1e5) for t in competitors.trials("vowel", "LS")]
    records += [
        record(t, 0.4 if ("gamma", 10.0) in t.params else 0.5)
        for t in competitors.trials("vowel", "LS raw")
    ]
    assert "raw .500, at ten .400" in competitors_page.page(records, NO_SCALING)


def test_plan_uses_the_papers_seeds_and_grids():
    trials = competitors.trials("vowel", "QN-S3VM")
    assert {t.seed for t in trials} == set(range(0, 200, 10))
    assert len(trials) == 20 * 9
    assert set(TABLE_2) >= set(competitors.SETS)


def test_exponent():
    assert exponent((1, 10, 100), [3.0, 300.0, 30_000.0]) == pytest.approx(2.0)


def test_benchmark_section_runs():
    rows = measure(quick=True)
    assert rows[0]["method"] == "LS, k-NN graph"
    assert all(isinstance(row["exponent"], float) for row in rows)
