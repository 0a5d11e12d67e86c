"""The benchmark of the network: weights of voters, and tables from records."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.prior_network import surest, weightings
from benchmarks.prior_network_data import split_of
from benchmarks.prior_network_page import (
    PACKAGED_RUN,
    ablation_table,
    goals_table,
    losses,
    mean_of,
    overall_table,
    pseudo_table,
    set_table,
    summary,
    tabpfn_table,
    training_table,
    versions_table,
)
from benchmarks.prior_network_peers import within_limits
from benchmarks.prior_network_views import KINDS, compare
from benchmarks.prior_network_views import measure as measure_views
from fewlabel.ensemble.families import FAMILIES
from fewlabel.network.views import NARROW, WIDE
from fewlabel.network.weights import load_weights


def record(name, per_class, seed, network):
    votes = ["gibbs_without", "gibbs_with", "brier_without", "brier_with", "half_with"]
    accuracy = dict.fromkeys([*FAMILIES, *votes], 0.5) | {"network": network}
    return {
        "set": name,
        "per_class": per_class,
        "seed": seed,
        "accuracy": accuracy,
        "unlabeled": 100,
        "weight": {"gibbs": 0.2, "half": 0.6, "brier": 0.4},
        "seconds": {"fit": 1.0, "held_out": 2.0},
    }


def test_sets_count_alike_whatever_their_number_of_splits():
    lines = [record("a", 4, 0, 1.0), record("a", 4, 1, 0.8), record("b", 4, 0, 0.5)]
    assert mean_of(lines, "network", 4) == 0.7
    assert mean_of(lines, "network", 4, "a") == 0.9
    assert "| **the network alone** | 0.700 |" in overall_table(lines)
    assert "| a | 2 | 0.500 | 0.900 | +0.000 |" in set_table(lines)
    assert summary(lines).startswith("3 splits of 2 sets (seeds 0 to 1; 1 to 2 for each")


def test_a_set_without_a_number_of_labels_has_empty_cells():
    rows = set_table([record("a", 4, 0, 1.0), record("b", 4, 0, 0.5), record("b", 10, 0, 0.6)])
    assert "| a | 1 | 0.500 | 1.000 | +0.000 |  |  |  |" in rows
    assert "| b | 2 | 0.500 | 0.500 | +0.000 | 0.500 | 0.600 | +0.000 |" in rows


def test_goals_name_the_sets_that_lose():
    lines = [record(name, c, 0, 0.52) for name in "ab" for c in (4, 10)]
    lines[1]["accuracy"]["half_with"] = 0.49  # a, 10 a class
    lines[2]["accuracy"]["gibbs_with"] = 0.54  # b, 4 a class
    rows = goals_table(lines).splitlines()
    assert rows[2].endswith("| +0.020 | +0.020 | +0.000 | +0.000 |")
    assert "| +0.000; 0 of 4 lower | -0.010; 1 of 4 lower |" in rows[4]
    assert rows[-1].startswith("Alone, at 4 labels a class, the network gains +0.020")
    assert rows[-1].endswith("(wanted: +0.010).")
    assert losses(lines).endswith("on: no set.")
    lines[1]["accuracy"]["gibbs_with"] = 0.49
    assert losses(lines).endswith("on: a (10 a class).")


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


def test_views_are_compared_on_one_context():
    found = measure_views(split_of("wine", 4, 2000), {"now": load_weights()})
    assert set(found) == {
        *(f"now: {k[0]}, {k[1]}, {k[2]}" for k in KINDS["now", "narrow"]),
        "now: together",
    }
    assert found["now: together"] > 0.9
    assert {*NARROW} <= {*KINDS["now", "narrow"]}
    assert {*WIDE} <= {*KINDS["now", "wide"]}


def test_a_split_hides_labels_of_known_classes():
    split = split_of("wine", 4, 5000)
    assert len(split.given) == 12
    assert len(split.hidden) == 178 - 12
    assert split.n_classes == 3
    assert split_of("wine", 40, 5000) is None


def test_peers_are_compared_on_the_splits_that_both_have():
    lines = [record("a", 4, 0, 0.9), record("a", 4, 1, 0.1)]
    peer = {"set": "a", "per_class": 4, "accuracy": {"TabPFN v1": 0.7}}
    table = tabpfn_table([peer | {"seed": 0}, peer | {"seed": 7}], lines)
    assert "configurations) | 1 | 0.700 |" in table
    assert "| **the network alone** | 1 | 0.900 |" in table


def test_versions_are_compared_by_accuracy_and_log_loss():
    found = compare(split_of("wine", 4, 2000), {"before": load_weights(), "now": load_weights()})
    assert found["now"] == found["before"] > 0.9
    assert 0 < found["now, log loss"] == found["before, log loss"] < 0.3
    line = {"set": "a", "per_class": 4, "accuracy": found | {"now": 0.5}}
    rows = versions_table([line], [{"run": PACKAGED_RUN, "accuracy": 0.25}])
    assert "steps (packaged) | 0.2500 | 1 | 0.5000 | 0." in rows
    assert "after" not in rows  # not measured


def test_tables_of_pseudo_labels_and_of_training():
    line = {"set": "a", "per_class": 4, "accuracy": {"network": 0.5, "10% pseudo-labels": 0.6}}
    assert "| 10% pseudo-labels | 1 | 0.600 |" in pseudo_table([line])
    names = ("accuracy", "accuracy_32_columns", "accuracy_128_columns")
    logged = [
        {
            "run": PACKAGED_RUN,
            "step": 1000 * i,
            "seconds": 9.6,
            **dict.fromkeys(names, 0.5 + i / 100),
        }
        for i in range(9)
    ]
    table = training_table([{"run": "another"}, *logged])
    assert "| 0 | 10 | 0.5000 | 0.5000 | 0.5000 |" in table
    assert "| 8,000 | 10 | 0.5800 | 0.5800 | 0.5800 |" in table


def test_the_surest_rows_of_each_class():
    votes = np.array([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.45, 0.55], [0.7, 0.3]])
    assert sorted(surest(votes, 0.5)) == [0, 2, 3]


def test_limits_of_tabpfn():
    split = split_of("wine", 4, 5000)
    assert within_limits(split)
    assert not within_limits(replace(split, n_classes=11))
    assert not within_limits(replace(split, X=np.zeros((5, 101))))
