"""The ablation of the mixed vote, and the page that is written from its records."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import mixed_vote
from fewlabel.ensemble import families

ROOT = Path(__file__).parents[2]


def test_no_record_is_of_a_split_of_the_paper():
    seeds = {line["seed"] for line in mixed_vote.records(ROOT / mixed_vote.ABLATION)}
    assert seeds
    assert min(seeds) >= 1000


@pytest.fixture
def few_families(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    kept = ["lda", "svm", "spreading"]
    subset = {name: families.FAMILIES[name] for name in kept}
    monkeypatch.setattr(families, "FAMILIES", subset)
    return kept


@pytest.mark.filterwarnings("ignore")
def test_a_trial_of_the_ablation(few_families):
    line = mixed_vote.ablate("iris", 1000)
    assert list(line["families"]) == few_families
    assert sum(f["weight"] for f in line["families"].values()) == pytest.approx(1, abs=1e-3)
    assert line["variants"]["Q gibbs"]["before"] == line["rounds"][0] > 0.8
    # Families that are trained once stand behind all variants: only Q differs at first.
    assert line["variants"]["policy fixed"]["before"] == line["rounds"][0]
    assert set(line["new_rows"]) == {"by neighbours", "others only"}


@pytest.mark.filterwarnings("ignore")
def test_a_trial_of_the_cost(few_families, tmp_path):
    path = tmp_path / "cost.jsonl"
    mixed_vote.run(path, mixed_vote.cost, ["iris"], [1000])
    mixed_vote.run(path, mixed_vote.cost, ["iris"], [1000])  # goes on where it was
    (line,) = mixed_vote.records(path)
    assert line["FewLabelClassifier"]["cpu"] > 0
    assert line["SelfLearningClassifier"]["accuracy"] > 0.8
