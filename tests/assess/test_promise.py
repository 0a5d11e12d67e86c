"""What travels in a model file: the same confidences, and never more accepted than asked for."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewlabel import SelfLearningClassifier
from fewlabel.assess.accept import accept_threshold, acceptance_steps
from fewlabel.assess.calibration import Confidence
from fewlabel.assess.error_estimate import ErrorEstimate
from fewlabel.assess.limits import Share
from fewlabel.assess.promise import Promise, error_from_dict
from fewlabel.assess.shifts import Shifts


def promise_with(confidence, max_error=0.05):
    steps = acceptance_steps(np.asarray(confidence, dtype=float))
    return Promise(Confidence(1.0), Confidence(1.0), steps, max_error=max_error)


def through_json(promise):
    return Promise.from_dict(json.loads(json.dumps(promise.to_dict())))


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=30),
    st.floats(0.001, 0.5),
    st.floats(0.001, 0.5),
)
def test_few_rows_keep_every_step(confidence, own, other):
    promise = through_json(promise_with(confidence, own))
    c = np.array(confidence)
    for error in (own, other):
        np.testing.assert_array_equal(
            c >= promise.threshold(error), c >= accept_threshold(c, error)
        )


def test_many_rows_are_thinned_out_in_files_and_never_accept_more():
    confidence = np.random.default_rng(0).beta(8, 1, 50_000)
    exact = promise_with(confidence)
    promise = through_json(exact)
    assert len(promise.steps) <= 1_000 < len(exact.steps)
    assert promise.threshold() == exact.threshold() == accept_threshold(confidence, 0.05)
    assert promise.mean_doubt == exact.mean_doubt == pytest.approx(1 - confidence.mean())
    for error in np.linspace(0.003, 0.3, 57):
        theta, kept = exact.threshold(error), promise.threshold(error)
        assert kept >= theta
        assert (confidence >= kept).mean() > (confidence >= theta).mean() - 0.002


def test_steps_that_fit_into_a_file_are_not_thinned_out():
    promise = promise_with(np.random.default_rng(0).beta(8, 1, 999))
    assert len(promise.steps) == 999
    np.testing.assert_array_equal(through_json(promise).steps, promise.steps)


def test_the_slack_is_that_of_rounding():
    promise = promise_with([0.99, 0.9], 0.1)
    assert promise.threshold() == 0.9
    votes = np.array([[0.9, 0.1], [0.9 - 0.8e-12, 0.1 + 0.8e-12], [0.9 - 1.2e-12, 0.1 + 1.2e-12]])
    assert promise.accepted(votes, np.zeros(3, dtype=int)).tolist() == [True, True, False]


def test_estimates_travel_too():
    shares = (Share(0.1, 0.05, 0.2), Share(0.3, 0.2, 0.4))
    estimate = ErrorEstimate(0.1, 0.05, 0.2, 40, "random", shares, shares, shares, False, ("far",))
    assert error_from_dict(json.loads(json.dumps(asdict(estimate)))) == estimate
    nothing = error_from_dict({})
    assert np.isnan(nothing.value)
    assert (nothing.low, nothing.high, nothing.n) == (0.0, 1.0, 0)


def test_without_rows_there_is_no_mean_doubt():
    assert np.isnan(promise_with([]).mean_doubt)
    assert promise_with([0.9, 0.8]).mean_doubt == pytest.approx(0.15)


def test_votes_stay_as_they_are_and_five_percent_are_allowed_by_default():
    steps = np.array([[0.0, 1.0], [0.05, 0.9], [0.08, 0.8]])
    promise = Promise(Confidence(1.0), Confidence(1.0), steps)
    assert promise.power == 1.0
    assert promise.threshold() == promise.threshold(0.05) == 0.9


@pytest.mark.parametrize("name", ["power", "max_error", "steps"])
def test_promises_that_are_no_numbers_are_refused(name):
    plain = promise_with([0.99, 0.9]).to_dict()
    plain[name] = [[0.0, np.nan]] if name == "steps" else np.nan
    with pytest.raises(ValueError, match="promise"):
        Promise.from_dict(plain)


def test_nothing_can_be_accepted():
    assert promise_with([0.5, 0.6], 0.01).threshold() == np.inf
    assert through_json(promise_with([])).threshold() == np.inf


def test_json_carries_it():
    steps = np.array([[0.0, 0.99], [0.04, 0.9]])
    shifts = Shifts(np.array([1.2, 0.8]), None)
    promise = Promise(Confidence(1.5, 0.9, (1.2, 0.8)), Confidence(1.1), steps, 0.7, 0.1, shifts)
    again = through_json(promise)
    assert again.to_dict() == promise.to_dict()
    votes = np.array([[0.6, 0.4]])
    np.testing.assert_array_equal(again.label_proba(votes), shifts.label_proba(votes, 0.7))
    with pytest.raises(ValueError, match="shifts"):
        Promise.from_dict({**promise.to_dict(), "shifts": [[1.0, np.nan], None]})


@pytest.mark.parametrize("name", ["power", "seen", "shift", "own"])
def test_confidences_that_are_no_numbers_are_refused(name):
    values = {"power": 1.5, "seen": 0.9, "shift": (1.2, 0.8), "own": (0.5, 1.5)}
    values[name] = (1.0, np.nan) if isinstance(values[name], tuple) else np.nan
    for rules in ((Confidence(**values), Confidence(1.1)), (Confidence(1.1), Confidence(**values))):
        with pytest.raises(ValueError, match="confidence"):
            through_json(Promise(*rules, np.array([[0.0, 0.99]])))


@pytest.mark.filterwarnings("ignore:The estimate of the error is unsafe")
@pytest.mark.parametrize("labels", ["random", "per class"])
def test_it_says_what_the_estimator_says(labels):
    rng = np.random.default_rng(2)
    y = rng.integers(3, size=250)
    X = rng.normal(size=(250, 4)) + 1.5 * np.eye(4)[y]
    target = np.where(np.arange(250) < 60, y, -1)
    clf = SelfLearningClassifier(labels=labels, random_state=0).fit(X, target)
    promise = through_json(clf.assessment_.promise)
    assert promise.power == clf.paper_bounds_.power
    new = rng.normal(size=(50, 4))
    votes = clf.initial_estimator_.predict_proba(new)
    label = clf.predict_proba(new).argmax(axis=1)
    np.testing.assert_allclose(promise.confidence(votes, label), clf.confidence(new))
    for error in (0.02, 0.1, 0.3):
        np.testing.assert_array_equal(promise.accepted(votes, label, error), clf.accept(error, new))
