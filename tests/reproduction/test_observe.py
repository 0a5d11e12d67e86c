"""What is observed of an MSLA run: true errors, calibration, and bounds that must hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

from fewlabel import BoundPolicy, SelfLearningClassifier
from reproduction.datasets import mask_labels, paper_split
from reproduction.observe import CONFIDENT, Watched, by_share, calibration, cbil, observe


@pytest.fixture(scope="module")
def fitted():
    X, y = load_digits(return_X_y=True)
    split = paper_split(y, 40, seed=1)
    rows = np.concatenate([split.labeled, split.unlabeled])
    target = mask_labels(y, split.labeled)[rows]

    def fit(policy):
        forest = RandomForestClassifier(30, random_state=0)
        return SelfLearningClassifier(forest, policy=policy, min_gain=0.0).fit(X[rows], target)

    return fit(Watched(BoundPolicy())), fit(BoundPolicy()), y[split.unlabeled]


def test_watching_changes_nothing(fitted):
    watched, plain, _ = fitted
    np.testing.assert_array_equal(watched.transduction_, plain.transduction_)
    np.testing.assert_array_equal(watched.labeled_iter_, plain.labeled_iter_)


def test_rounds_are_those_of_the_run(fitted):
    model, _, truth = fitted
    rounds = observe(model, truth)["rounds"]
    labeled_iter = model.labeled_iter_[model.labeled_iter_ != 0]
    pseudo = np.full(len(truth), -1)
    pseudo[labeled_iter > 0] = model.pseudo_labels_
    left = len(truth)
    for entry, history in zip(rounds, model.history_):
        chosen = labeled_iter == history["iteration"]
        assert entry["left"] == left == history["n_unlabeled"]
        assert entry["selected"] == chosen.sum()
        assert entry["selected_error"] == pytest.approx(
            (pseudo[chosen] != truth[chosen]).mean(), abs=1e-5
        )
        left -= chosen.sum()
    first = model.initial_estimator_
    assert rounds[0]["left"] == len(truth)
    assert len(first.classes_) == len(model.classes_)


def test_observations_end_in_json_and_cover_the_figures(fitted):
    import json

    model, _, truth = fitted
    seen = json.loads(json.dumps(observe(model, truth), allow_nan=False))
    assert [p["share"] for p in seen["by_share"]] == list(CONFIDENT)
    assert len(seen["by_relaxation"]) == 11
    final = model.transduction_[model.labeled_iter_ != 0]
    assert seen["by_share"][-1]["error"] == pytest.approx((final != truth).mean(), abs=1e-5)
    # The whole set is the last share: λ = 0 and 0.1 must be there twice, alike.
    assert seen["by_relaxation"][0] == seen["by_share"][-1]["cbil"]
    assert seen["by_relaxation"][1] == seen["by_share"][-1]["cbil_relaxed"]
    assert sum(seen["calibration"]["initial"]["rows"]) == len(truth)


def test_calibration_by_hand():
    votes = np.array([[0.62, 0.38], [0.35, 0.65], [1.0, 0.0]])
    bins = calibration(votes, np.array([True, False, True]))
    assert bins["rows"] == [0] * 6 + [2, 0, 0, 1]
    assert bins["vote"][6] == pytest.approx(0.635)
    assert bins["accuracy"][6] == 0.5
    assert bins["accuracy"][9] == 1.0


def random_votes(seed, n=60, K=3):
    rng = np.random.default_rng(seed)
    truth = rng.integers(K, size=n)
    votes = rng.dirichlet(np.ones(K), size=n) + rng.uniform(0, 3) * np.eye(K)[truth]
    return votes / votes.sum(axis=1, keepdims=True), truth


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.1, 0.7]))
def test_the_bounds_shown_are_bounds(seed, relaxation):
    votes, truth = random_votes(seed)
    error = (votes.argmax(axis=1) != truth).mean()
    bound = cbil(votes, truth, relaxation)
    assert bound is None or bound >= error - 1e-5
    whole = by_share(votes, truth, 100)
    assert whole["oracle"] is None or whole["oracle"] >= error - 1e-5
    assert whole["error"] == pytest.approx(error, abs=1e-5)


def test_without_errors_both_bounds_agree():
    votes = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.3, 0.7]])
    truth = np.array([0, 0, 1, 1])
    point = by_share(votes, truth, 100)
    assert point["error"] == 0
    assert point["cbil"] == pytest.approx(point["oracle"], abs=1e-4)


def test_a_bound_that_does_not_apply_is_none():
    votes = np.array([[0.9, 0.1], [0.9, 0.1], [0.2, 0.8], [0.2, 0.8]])
    assert cbil(votes, np.array([1, 1, 0, 0]), 0.0) is None
    # A tie, δ = 0, is no bound either, however close to one rounding could make it.
    tied = np.array([[0.9, 0.1], [0.2, 0.8], [0.9, 0.1], [0.2, 0.8]])
    assert cbil(tied, np.array([0, 0, 1, 1]), 0.0) is None


def test_the_most_confident_rows_are_kept():
    votes = np.array([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.55, 0.45], [0.7, 0.3]])
    truth = np.array([0, 1, 0, 1, 0])
    errors = [by_share(votes, truth, share)["error"] for share in (20, 60, 80, 100)]
    assert errors == [0, 0, 0.25, 0.4]
