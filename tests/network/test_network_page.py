"""The benchmark of the network: weights of voters, and tables from records."""

from __future__ import annotations

import numpy as np

from benchmarks.prior_network import (
    ablation_table,
    mean_of,
    overall_table,
    set_table,
    split_of,
    summary,
    weightings,
)
from fewlabel.ensemble.families import FAMILIES


def record(name, per_class, seed, network):
    votes = ["gibbs_without", "gibbs_with", "brier_without", "brier_with", "half_with"]
    accuracy = dict.fromkeys([*FAMILIES, *votes], 0.5) | {"network": network}
    return {
        "set": name,
        "per_class": per_class,
        "seed": seed,
        "accuracy": accuracy,
        "weight": {"gibbs": 0.2, "brier": 0.4},
        "seconds": {"fit": 1.0, "held_out": 2.0},
    }


def test_sets_count_alike_whatever_their_number_of_splits():
    lines = [record("a", 4, 0, 1.0), record("a", 4, 1, 0.8), record("b", 4, 0, 0.5)]
    assert mean_of(lines, "network", 4) == 0.7
    assert mean_of(lines, "network", 4, "a") == 0.9
    assert "| **the network alone** | 0.700 |" in overall_table(lines)
    assert "| a | 2 | 0.900 |" in set_table(lines, 4)
    assert "+0.400" in set_table(lines, 4)
    assert summary(lines).startswith("3 splits of 2 sets (seeds 0 to 1)")


def test_an_ablation_compares_the_same_splits():
    def line(name, seed, value):
        head = {"set": "a", "per_class": 4, "seed": seed, "name": name}
        return head | {"accuracy": {name: value}}

    table = ablation_table([line("x", 0, 0.5), line("x", 1, 0.9), line("y", 0, 0.6)])
    assert "| x | 1 | 0.500 |" in table
    assert "| y | 1 | 0.600 |" in table


def test_weights_prefer_the_better_voter():
    y = np.array([0, 1] * 20)
    good = np.eye(2)[y] * 0.8 + 0.1
    weights = weightings(np.stack([good, good[::-1]]), y)
    for rule in ("gibbs", "brier", "half"):
        assert weights[rule][0] > 0.9
        np.testing.assert_allclose(weights[rule].sum(), 1.0)


def test_a_split_hides_labels_of_known_classes():
    split = split_of("wine", 4, 5000)
    assert len(split.given) == 12
    assert len(split.hidden) == 178 - 12
    assert split.n_classes == 3
    assert split_of("wine", 40, 5000) is None
