"""Limits of an audit: against exact fractions, by their properties, and by simulated audits."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import reference
from fewlabel import audit_confidence_sequence, hypergeometric_limits
from fewlabel.assess.audit_limits import (
    PRIOR,
    excludes,
    hypergeometric_log_cdf,
    intersected,
    log_falling,
    log_prior_posterior_ratio,
    ratio_limits,
)


@st.composite
def audits(draw, most_rows=24):
    """A table, a number of checks, a number of wrong ones found."""
    rows = draw(st.integers(1, most_rows))
    checked = draw(st.integers(0, rows))
    return rows, checked, draw(st.integers(0, checked))


CONFIDENCES = st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99])


@st.composite
def sequences(draw, most_rows=14):
    """A table, and whether its rows were wrong in the order of the checks."""
    rows = draw(st.integers(1, most_rows))
    return rows, draw(st.lists(st.booleans(), min_size=1, max_size=rows))


# --- exact agreement -------------------------------------------------------------------------


@given(audits(), CONFIDENCES)
def test_hypergeometric_limits_are_those_of_the_definition(audit, confidence):
    rows, checked, wrong = audit
    limits = hypergeometric_limits(rows, checked, wrong, confidence=confidence)
    delta = 1 - Fraction(confidence).limit_denominator(100)
    # Where a probability is δ to the last digit the count is kept.
    keeps_ties = delta * (1 - Fraction(1, 10**7))
    exact = reference.hypergeometric_upper(*audit, delta)
    assert exact <= limits.high <= reference.hypergeometric_upper(*audit, keeps_ties)
    exact = reference.hypergeometric_lower(*audit, delta)
    assert exact >= limits.low >= reference.hypergeometric_lower(*audit, keeps_ties)


@pytest.mark.parametrize(
    ("rows", "checked", "wrong", "high"),
    [(2000, 40, 0, 142), (1581, 60, 0, 75), (500, 100, 1, 21), (30, 30, 4, 4), (7, 0, 0, 7)],
)
def test_limits_that_are_known(rows, checked, wrong, high):
    assert hypergeometric_limits(rows, checked, wrong).high == high
    delta = Fraction(1, 20)
    assert reference.hypergeometric_cdf(wrong, rows, high, checked) > delta
    if high < rows:
        assert reference.hypergeometric_cdf(wrong, rows, high + 1, checked) <= delta


@given(audits(), st.integers(0, 24))
def test_the_distribution_function(audit, all_wrong):
    rows, checked, wrong = audit
    all_wrong = min(all_wrong, rows)
    value = math.exp(hypergeometric_log_cdf(wrong, rows, all_wrong, checked))
    exact = reference.hypergeometric_cdf(wrong, rows, all_wrong, checked)
    assert value == pytest.approx(float(exact), rel=1e-10)


def test_no_probability_is_above_one():
    """All that is drawn can be wrong: the sum over every count is 1 up to rounding."""
    for rows in range(1, 30):
        for checked in range(rows + 1):
            assert hypergeometric_log_cdf(checked, rows, rows // 2, checked) <= 0.0


@pytest.mark.parametrize(("all_wrong", "checked"), [(30_000, 40_000), (90_000, 20_000)])
def test_the_distribution_function_of_many_checks(all_wrong, checked):
    """Below, at and above the mean, from which only a window is summed."""
    found = stats.hypergeom(100_000, all_wrong, checked)
    for wrong in (int(found.mean() + z * found.std()) for z in (-30, -3, 0, 3)):
        log_p = hypergeometric_log_cdf(wrong, 100_000, all_wrong, checked)
        assert log_p == pytest.approx(found.logcdf(wrong), rel=1e-6)


@pytest.mark.parametrize(
    ("x", "k"), [(10**9, 60), (10**9, 5000), (10**6, 999), (1100, 90), (1002, 3), (3, 3)]
)
def test_falling_factorials_keep_their_digits(x, k):
    exact = math.fsum(math.log(x - i) for i in range(k))
    assert float(log_falling(x, k)) == pytest.approx(exact, rel=1e-14)
    assert log_falling(2, 3) == -np.inf


@pytest.mark.parametrize(("checked", "wrong"), [(60, 0), (300, 7), (20_000, 600)])
def test_a_billion_rows(checked, wrong):
    """Without replacement is then with replacement: the limit of Clopper and Pearson."""
    limits = hypergeometric_limits(10**9, checked, wrong)
    high = stats.beta.ppf(0.95, wrong + 1, checked - wrong)
    low = stats.beta.ppf(0.05, wrong, checked - wrong + 1) if wrong else 0.0
    assert limits.high / 1e9 == pytest.approx(high, rel=2e-5)
    assert limits.low / 1e9 == pytest.approx(low, rel=2e-5)


@given(sequences(), st.sampled_from([(1, 1), (1, 30), (2, 5)]))
def test_prior_over_posterior_is_that_of_bayes(sequence, prior):
    rows, flags = sequence
    for M in range(sum(flags), rows - len(flags) + sum(flags) + 1):
        ratio = log_prior_posterior_ratio(rows, len(flags), sum(flags), M, prior)
        exact = reference.prior_posterior_ratio(M, rows, flags, *prior)
        assert math.exp(ratio) == pytest.approx(float(exact), rel=1e-9)


@given(sequences(), st.sampled_from([0.05, 0.5, 0.9, 0.95]))
def test_the_confidence_sequence_is_that_of_the_definition(sequence, confidence):
    rows, flags = sequence
    low, high = audit_confidence_sequence(rows, np.array(flags), confidence=confidence)
    delta = 1 - Fraction(confidence).limit_denominator(100)
    a, b = (int(p) for p in PRIOR)
    exact = reference.confidence_set(rows, flags, delta, a, b)
    kept = reference.confidence_set(rows, flags, delta * (1 - Fraction(1, 10**7)), a, b)
    if exact:
        assert min(kept) <= low[-1] <= min(exact)
        assert max(exact) <= high[-1] <= max(kept)
    else:  # limits of different moments contradict each other
        assert low[-1] <= high[-1]


def test_a_probability_of_delta_is_kept():
    """Up to 1e-8 rounding could be the reason, beyond that the count is excluded."""
    log_p = hypergeometric_log_cdf(1, 300, 20, 60)
    assert not excludes(300, 60, 1, 20, math.exp(log_p + 0.8e-8))
    assert excludes(300, 60, 1, 20, math.exp(log_p + 1.2e-8))
    # The same for the ratio of the sequence at the last count that is kept, and the one after it.
    checked, wrong = np.array([60]), np.array([1])
    high = int(ratio_limits(300, checked, wrong, 0.05)[1][0])
    log_ratio = float(log_prior_posterior_ratio(300, 60, 1, high))
    for slack, expected in ((0.8e-8, high), (1.2e-8, high - 1)):
        found = ratio_limits(300, checked, wrong, math.exp(slack - log_ratio))[1]
        assert found.tolist() == [expected]


@pytest.mark.parametrize("prior", [PRIOR, (100.0, 1.0)])
@pytest.mark.parametrize("delta", [0.0517, 0.517, 0.9517])  # no ties
def test_limits_are_the_ends_of_the_set_whose_ratio_is_below_the_bar(delta, prior):
    for rows in (1, 2, 5, 12, 30):
        pairs = [(t, k) for t in range(1, rows + 1) for k in range(t + 1)]
        t, k = np.array(pairs).T
        M = np.arange(rows + 1)
        kept = log_prior_posterior_ratio(rows, t[:, None], k[:, None], M, prior) < -np.log(delta)
        low, high = ratio_limits(rows, t, k, delta, prior)
        np.testing.assert_array_equal(low, kept.argmax(axis=1))
        np.testing.assert_array_equal(high, rows - kept[:, ::-1].argmax(axis=1))


def test_limits_of_all_moments_hold_at_once_unless_they_contradict():
    low, high = intersected(np.array([0, 3, 1, 4, 2]), np.array([5, 6, 3, 6, 7]))
    assert low.tolist() == [0, 3, 3, 4, 2]  # 3 to 3 at the third moment, then 4 to 3
    assert high.tolist() == [5, 5, 3, 6, 7]


# --- properties ------------------------------------------------------------------------------


@given(audits(most_rows=3000), CONFIDENCES)
def test_limits_are_monotone_and_possible(audit, confidence):
    rows, checked, wrong = audit
    limits = hypergeometric_limits(rows, checked, wrong, confidence=confidence)
    assert wrong <= limits.low <= limits.high <= rows - (checked - wrong)
    if wrong < checked:
        more = hypergeometric_limits(rows, checked, wrong + 1, confidence=confidence)
        assert more.high >= limits.high
        assert more.low >= limits.low
    surer = hypergeometric_limits(rows, checked, wrong, confidence=(1 + confidence) / 2)
    assert surer.low <= limits.low <= limits.high <= surer.high
    if checked < rows:  # one more right row
        longer = hypergeometric_limits(rows, checked + 1, wrong, confidence=confidence)
        assert longer.high <= limits.high


@given(st.integers(1, 400), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_the_sequence_is_nested_and_holds_what_is_certain(rows, share, seed):
    rng = np.random.default_rng(seed)
    flags = rng.permutation(np.arange(rows) < share * rows)
    low, high = audit_confidence_sequence(rows, flags)
    found = np.cumsum(flags)
    t = np.arange(1, rows + 1)
    assert (low <= high).all()
    assert (high >= found).all()
    assert (low <= rows - (t - found)).all()
    assert low[-1] == high[-1] == flags.sum()
    inside = (low <= flags.sum()) & (flags.sum() <= high)
    if inside.all():
        assert (np.diff(low) >= 0).all()
        assert (np.diff(high) <= 0).all()


@given(st.integers(50, 2000), st.integers(1, 50), st.integers(0, 2**32 - 1))
def test_the_sequential_limit_is_the_price_of_stopping_at_will(rows, checked, seed):
    flags = np.random.default_rng(seed).random(checked) < 0.05
    high = audit_confidence_sequence(rows, flags)[1][-1]
    # No theorem: after few checks the prior and the running minimum may beat the exact limit.
    assert high >= 0.5 * hypergeometric_limits(rows, checked, int(flags.sum())).high


# --- validity --------------------------------------------------------------------------------


@pytest.mark.parametrize("all_wrong", [0, 3, 9, 18, 40, 80])
def test_exact_coverage_of_the_fixed_plan(all_wrong):
    """Summed over all that can be found: the limit is too small with probability 5 % at most."""
    rows, checked = 300, 60
    missed = sum(
        stats.hypergeom.pmf(k, rows, all_wrong, checked)
        for k in range(checked + 1)
        if k <= all_wrong and hypergeometric_limits(rows, checked, k).high < all_wrong
    )
    assert missed <= 0.05
    if all_wrong >= 18:
        assert missed > 0.01  # a limit that is never exceeded would be a useless one


@pytest.mark.parametrize("share", [0.0, 0.02, 0.1, 0.3])
def test_simulated_coverage_at_every_stopping_time(share):
    rng = np.random.default_rng(5)
    rows, draws, checked = 400, 120, 150
    all_wrong = int(share * rows)
    ever = now = 0
    for _ in range(draws):
        flags = (rng.permutation(rows) < all_wrong)[:checked]
        low, high = audit_confidence_sequence(rows, flags)
        ever += bool(((high < all_wrong) | (low > all_wrong)).any())
        fixed = [hypergeometric_limits_cached(rows, t, k) for t, k in enumerate_counts(flags)]
        now += min(fixed) < all_wrong
    assert ever <= stats.binom.ppf(0.999, draws, 0.05)
    if share >= 0.1:
        assert now > 0.05 * draws  # why the fixed plan may not be stopped at will


CACHE: dict[tuple[int, int, int], int] = {}


def hypergeometric_limits_cached(*audit: int) -> int:
    if audit not in CACHE:
        CACHE[audit] = hypergeometric_limits(*audit).high
    return CACHE[audit]


def enumerate_counts(flags: np.ndarray) -> list[tuple[int, int]]:
    return [(int(t), int(k)) for t, k in zip(range(10, 151, 10), np.cumsum(flags)[9::10])]


# --- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("audit", "says"),
    [
        ((0, 0, 0), "at least 1"),
        ((5, -1, 0), "between 0 and the number of rows, 5"),
        ((5, 6, 0), "between 0 and the number of rows, 5"),
        ((5, 3, 4), "between 0 and the number of checked rows, 3"),
        ((5, 3, -1), "wrong must"),
    ],
)
def test_impossible_counts(audit, says):
    with pytest.raises(ValueError, match=says):
        hypergeometric_limits(*audit)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95, float("nan")])
def test_confidence_is_a_probability(confidence):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        hypergeometric_limits(10, 5, 0, confidence=confidence)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"wrong": [0, 1]}, "of booleans"),
        ({"wrong": [True] * 11}, "between 0 and the number of rows"),
        ({"wrong": [[True]]}, "one-dimensional"),
        ({"wrong": [True], "prior": (0, 1)}, "two positive numbers"),
        ({"wrong": [True], "prior": (1, np.inf)}, "two positive numbers"),
        ({"wrong": [True], "prior": (1, 1, 1)}, "two positive numbers"),
    ],
)
def test_sequences_that_are_refused(options, says):
    with pytest.raises(ValueError, match=says):
        audit_confidence_sequence(10, **options)
