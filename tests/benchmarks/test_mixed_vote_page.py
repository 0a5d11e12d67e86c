"""The ablation of the mixed vote, and the page that is written from its records."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from benchmarks import mixed_vote, mixed_vote_page
from fewlabel.ensemble import families, kept_rounds

ROOT = Path(__file__).parents[2]


def test_no_record_is_of_a_split_of_the_paper():
    seeds = {line["seed"] for line in mixed_vote.records(ROOT / mixed_vote.ABLATION)}
    assert seeds
    assert min(seeds) >= 2000


@pytest.fixture
def few_families(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    kept = ["svm", "semi_lda", "spreading"]
    for module in (families, mixed_vote):
        subset = {name: families.FAMILIES[name] for name in kept}
        monkeypatch.setattr(module, "FAMILIES", subset)
    tried = {name: mixed_vote.CANDIDATES[name] for name in (*kept, "lda", "knn")}
    monkeypatch.setattr(mixed_vote, "CANDIDATES", tried)
    return kept


@pytest.mark.filterwarnings("ignore")
def test_a_trial_of_the_ablation(few_families):
    line = mixed_vote.ablate("iris", 2000, 10)
    assert list(line["families"]) == [*few_families, "lda", "knn"]
    assert {f"without {name}" for name in few_families} < set(line["mixtures"])
    # What the study mixes is what the classifier does, but for its seed.
    assert line["mixtures"]["default"] == pytest.approx(line["first"], abs=0.03)
    assert line["first"] > 0.8
    assert line["mixtures"]["before"] > 0.8


@pytest.mark.filterwarnings("ignore")
def test_a_trial_of_the_cost(monkeypatch, tmp_path):
    # No other commit: CI's checkout may not have one.
    monkeypatch.setattr(mixed_vote, "tree_of", lambda revision: nullcontext(mixed_vote.ROOT))
    monkeypatch.setattr(mixed_vote, "FEW_ROWS", 0)
    path = tmp_path / "cost.jsonl"
    mixed_vote.run(path, mixed_vote.cost, [("iris", 1000)])
    mixed_vote.run(path, mixed_vote.cost, [("iris", 1000)])  # goes on where it was
    (line,) = mixed_vote.records(path)
    assert line["now"]["cpu"] > 0
    assert line["before"]["accuracy"] == line["now"]["accuracy"] > 0.8


@pytest.mark.filterwarnings("ignore")
def test_a_trial_of_the_round(few_families, monkeypatch):
    monkeypatch.setattr(kept_rounds, "prefers_new_labels", lambda *votes: False)
    line = mixed_vote.ablate("iris", 2001, 4)
    assert not line["kept"]
    assert line["final"] == line["first"]
    text = "\n".join(
        mixed_vote_page._rounds([line, {**line, "kept": True, "final": line["after"]}])
    )
    assert "keeps the first vote on 1 of 2 splits" in text
