"""Which labels can be taken as they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewlabel.assess.accept import accept_mask, accept_threshold
from tests import reference

confidences = st.lists(
    st.sampled_from([0.1, 0.5, 0.6, 0.9, 0.95, 0.99, 1.0]) | st.floats(0, 1), max_size=30
)


@given(confidences, st.floats(0, 1))
def test_most_rows_are_accepted(confidence, max_error):
    found = accept_mask(confidence, max_error)
    np.testing.assert_array_equal(found, reference.accepted_rows(confidence, max_error))


@given(confidences, st.floats(0, 1), st.floats(0, 1))
def test_a_larger_error_accepts_no_fewer_rows(confidence, one, two):
    small, large = accept_mask(confidence, min(one, two)), accept_mask(confidence, max(one, two))
    assert not (small & ~large).any()


@given(confidences.filter(bool), st.floats(0, 1))
def test_accepted_rows_are_the_most_confident(confidence, max_error):
    found, c = accept_mask(confidence, max_error), np.array(confidence)
    if found.any():
        assert c[found].min() == accept_threshold(confidence, max_error)
        assert (1 - c[found]).mean() <= max_error + 1e-9
        assert c[~found].max(initial=-1.0) < c[found].min()
    else:
        assert accept_threshold(confidence, max_error) == np.inf


def test_rows_of_one_confidence_are_accepted_together():
    assert accept_mask([0.9] * 10, 0.05).sum() == 0
    assert accept_mask([0.95] * 10, 0.05).sum() == 10
    assert accept_mask([1.0, 0.9, 0.9], 0.06).tolist() == [True, False, False]


@pytest.mark.parametrize("max_error", [-0.1, 1.5, float("nan"), "5%"])
def test_max_error_is_a_share(max_error):
    with pytest.raises(ValueError, match="max_error must be a share"):
        accept_mask([0.9], max_error)


def test_confidence_is_a_vector_of_probabilities():
    with pytest.raises(ValueError, match="vector of probabilities"):
        accept_mask([[0.9]], 0.05)
    with pytest.raises(ValueError, match="vector of probabilities"):
        accept_mask([1.2], 0.05)
    assert accept_mask([0.0, 1.0, 1.0 + 1e-9], 0.05).tolist() == [False, True, True]


def test_the_slack_is_that_of_rounding():
    assert accept_mask([0.95 - 0.8e-12], 0.05).all()
    assert not accept_mask([0.95 - 1.2e-12], 0.05).any()
    with pytest.raises(ValueError, match="vector of probabilities"):
        accept_mask([1.0 + 1.2e-9], 0.05)


def test_with_true_confidences_the_error_is_kept():
    rng = np.random.default_rng(0)
    confidence = rng.beta(4, 1, size=20_000)
    wrong = rng.random(20_000) > confidence
    for max_error in (0.02, 0.05, 0.1):
        mask = accept_mask(confidence, max_error)
        assert wrong[mask].mean() == pytest.approx(max_error, abs=0.01)
