"""The race: its splits, its worker process and its page."""

from __future__ import annotations

from pathlib import Path

import numpy as np

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


def test_the_page_compares_trials_that_all_finished(tmp_path: Path) -> None:
    found = []
    for dataset in ("iris", "wine", "digits"):
        for name, accuracy in (("mixed vote", 0.9), ("SVM", 0.8)):
            trial = {"dataset": dataset, "per_class": 4, "seed": 6_000, "entrant": name}
            found.append({**trial, "accuracy": accuracy, "seconds": 0.1})
    found[-1].pop("accuracy")
    found[-1]["error"] = "over 60 s"
    page = tmp_path / "peers.md"
    peers_page.write_page(page, found, ("mixed vote",), ("SVM",))
    text = page.read_text()
    assert "2 trials that all of these finished" in text
    assert "| SVM | labels | 0.800 |" in text
    assert "| SVM | 1 | 3 | over 60 s |" in text
    assert (tmp_path / "images" / "peers.svg").exists()
