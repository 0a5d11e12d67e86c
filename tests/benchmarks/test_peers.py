"""The race: its splits, its worker process and its page."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import peers, peers_page
from benchmarks.peers_data import load, split


def test_a_split_labels_every_class_and_standardises() -> None:
    X, y, labeled = split(*load("wine"), 4, 6_000)
    assert labeled.sum() == 12
    assert set(y[labeled]) == {0, 1, 2}
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-9)


def test_a_worker_answers_and_an_error_of_an_entrant_is_told(tmp_path: Path) -> None:
    worker = peers.Worker("logistic regression")
    trial = peers.Trial("iris", 10, 6_000, "logistic regression")
    record = peers.measure(trial, worker, tmp_path)
    assert record["accuracy"] > 0.7
    record = peers.measure(trial._replace(entrant="nobody"), worker, tmp_path)
    assert "KeyError" in record["error"]
    worker.close()


def test_a_fit_over_the_limit_ends_the_process_and_the_next_one_has_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    worker = peers.Worker("extra trees")
    trial = peers.Trial("iris", 10, 6_000, "extra trees")
    with monkeypatch.context() as patch:
        patch.setattr(peers, "LIMIT", 0.01)
        assert peers.measure(trial, worker, tmp_path)["error"] == "over 0 s"
    assert peers.measure(trial, worker, tmp_path)["accuracy"] > 0.7
    worker.close()


def _race() -> list[dict[str, Any]]:
    """Ten trials of which the SVM missed one, and an entrant that missed two."""
    accuracies = {"mixed vote": 0.9, "SVM": 0.8, "tri-training": 0.95}
    found = []
    for seed, (name, accuracy) in product(range(10), accuracies.items()):
        trial = {"dataset": "iris", "per_class": 4, "seed": seed, "entrant": name}
        failed = (name, seed) in {("SVM", 9), ("tri-training", 0), ("tri-training", 1)}
        outcome = {"error": "over 60 s"} if failed else {"accuracy": accuracy, "seconds": 0.1}
        found.append({**trial, **outcome})
    return found


def test_the_page_ranks_entrants_on_trials_that_all_of_them_finished() -> None:
    text = peers_page.page(_race(), ("mixed vote",), ("SVM",), versions={"b": "2", "a": "1.0"})
    assert "- *Versions*: a 1.0, b 2.\n" in text
    assert "9 trials that all of these finished" in text
    assert "| SVM | labels | 0.800 |" in text
    assert "| SVM | 1 | 10 | over 60 s |" in text


def test_the_page_begins_with_the_result() -> None:
    text = peers_page.page(_race(), ("mixed vote",), ("SVM",))
    assert "The mixed vote labels 90.0 % of the unlabelled rows correctly" in text
    assert "the next best method, SVM, 80.0 %. It is" in text
    assert "every method of others on 1 of 1 cells" in text
    race = [{**r, "accuracy": 0.95} if r["entrant"] == "SVM" else r for r in _race()]
    text = peers_page.page(race, ("mixed vote",), ("SVM",))
    assert "others on 0 of 1 cells (a set and a number of labels), and more than .005" in text
    assert "behind one on 1 ([where" in text


def test_sets_that_nothing_was_chosen_on_are_named_apart() -> None:
    race = _race() + [{**r, "dataset": "vehicle", "accuracy": 0.5} for r in _race()]
    text = peers_page.page(race, ("mixed vote",), ("SVM",))
    assert "70.0 % of the unlabelled rows" in text
    assert "on the 1 sets of KEEL, on which nothing was chosen, 50.0 %" in text


def test_errors_that_differ_in_shapes_only_are_counted_together() -> None:
    race = _race()
    for n in (90, 91):
        error = f"ValueError: operands with shapes ({n},3) ({n},2) "
        race.append({"dataset": "iris", "per_class": 4, "seed": n, "entrant": "A", "error": error})
    text = peers_page.page(race, ("mixed vote",), ())
    assert "| A | 2 | 2 | ValueError: operands with shapes (…) (…) |" in text


def test_who_missed_many_trials_is_not_ranked_but_compared() -> None:
    ranked, _, rest = peers_page.page(_race(), ("mixed vote",), ()).partition("Not among them")
    assert "tri-training" not in ranked
    assert "finished less than 90 % of the trials: tri-training." in rest
    assert "| tri-training | 8 | 1 | -0.050 |" in rest


def test_the_page_says_where_the_mixed_vote_loses_and_what_its_families_did() -> None:
    race = [{**r, "accuracy": 0.95} if r["entrant"] == "SVM" else r for r in _race()]
    (loss,) = peers_page.losses(race, ("mixed vote",))
    assert loss[:2] == ("iris", 4)
    assert loss.best == "SVM"
    families = {"forest": {"accuracy": 0.7}, "svm": {"accuracy": 0.96}}
    cell = {"dataset": "iris", "per_class": 4, "seed": 0}
    why = [{**cell, "families": families, "weights": {"forest": 0.6, "svm": 0.4}}]
    text = peers_page.page(race, ("mixed vote",), (), None, why)
    assert "| SVM with RBF kernel | 0.960 | 0.40 |" in text
    assert "On 1 of 1 cells a family was as good" in text


def test_the_picture_is_drawn(tmp_path: Path) -> None:
    peers_page.draw(tmp_path / "images" / "peers.svg", _race(), ("mixed vote",))
    assert "mixed vote" in (tmp_path / "images" / "peers.svg").read_text()
