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


def _line(per_class, **accuracies):
    families = {
        name: {"accuracy": a, "held_out": 0.5, "cpu": 0.1} for name, a in accuracies.items()
    }
    mixtures = {"default": 0.8, "before": 0.7, "without svm": 0.75}
    line = {"dataset": "iris", "per_class": per_class, "seed": 2001, "labeled": 12, "first": 0.8}
    return {**line, "final": 0.81, "families": families, "mixtures": mixtures}


def test_cells_where_a_forest_is_best_are_shown_and_no_others():
    best = [_line(4, forest=0.9, svm=0.8), _line(4, forest=0.7, svm=0.6, s3vm=1.0)]
    text = "\n".join(mixed_vote_page._forests([*best, _line(10, forest=0.8, svm=0.9)]))
    # A family that could not learn every split is not compared.
    assert "| iris (2 splits) | 12 | 0.8000 random forest | 0.7000 | 0.8000 | 0.8100 |" in text
    assert text.count("| iris") == 1
    assert not list(mixed_vote_page._forests([_line(10, forest=0.8, svm=0.9)]))


def test_a_family_that_could_not_learn_changes_no_mixture():
    line = _line(4, svm=0.8)
    assert mixed_vote_page._mixture_or_default("without svm")(line) == 0.75
    assert mixed_vote_page._mixture_or_default("without forest")(line) == 0.8


def test_the_page_begins_with_the_accuracy_beside_that_of_before():
    cost = [{"before": {"cpu": 10.0}, "now": {"cpu": cpu}} for cpu in (2.5, 4.0)]
    text = mixed_vote_page._result([_line(4, svm=0.8), {**_line(4, svm=0.8), "seed": 2000}], cost)
    assert "labels 81.0 % (81.0 % at 4 a class) of the unlabelled rows correctly" in text
    assert "on 1 splits that nothing was chosen on" in text
    assert "before self-learning: 80.0 %" in text
    assert "without graphs in learned metrics: 70.0 %" in text
    assert "0.25 to 0.40 times" in text
    assert mixed_vote_page._result([], cost) == ""


def test_splits_that_a_constant_was_chosen_on_are_not_fresh():
    lines = [{"dataset": name, "seed": 2001} for name in ("pageblocks", "iris")]
    assert mixed_vote_page._fresh([*lines, {"dataset": "iris", "seed": 2000}]) == lines[1:]
