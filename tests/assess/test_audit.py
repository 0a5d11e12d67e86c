"""Audits: the draw, the statement, how many checks a goal needs, what can be accepted."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

import reference
from fewlabel import (
    Audit,
    accept_with_audit,
    audit,
    audit_confidence_sequence,
    audit_sample,
    checks_needed,
    hypergeometric_limits,
)
from fewlabel.assess.audit import answered
from fewlabel.assess.audit_acceptance import _probably_checked, _thresholds
from fewlabel.assess.audit_limits import hypergeometric_log_cdf, log_prior_posterior_ratio
from fewlabel.assess.audit_plans import (
    allowed_wrong,
    limit_if_none_wrong,
    smallest_sample,
    stopping_distribution,
    stopping_times,
)

# --- the draw --------------------------------------------------------------------------------


def test_a_draw_is_uniform_and_without_replacement():
    mask = np.arange(12) % 3 > 0
    counts = np.zeros(12)
    firsts = np.zeros(12)
    for seed in range(3000):
        rows = audit_sample(mask, 3, seed)
        assert len(set(rows)) == 3
        counts[rows] += 1
        firsts[rows[0]] += 1
    assert counts[~mask].sum() == 0
    assert stats.chisquare(firsts[mask]).pvalue > 0.001  # the order is random too
    assert stats.chisquare(counts[mask]).pvalue > 0.001


@pytest.mark.parametrize("n", [1000, 10**9])
def test_a_longer_draw_begins_with_the_shorter_one(n):
    long = audit_sample(n, 1000, 3)
    assert len(set(long)) == 1000
    assert long.max() < n
    np.testing.assert_array_equal(audit_sample(n, 50, 3), long[:50])


@pytest.mark.parametrize("n", [10, 10**8])
def test_as_many_rows_are_drawn_as_asked_for(n):
    assert len(audit_sample(n, 1, 0)) == 1
    assert len(set(audit_sample(n, min(n, 9_000), 0))) == min(n, 9_000)


def test_draws_differ_without_a_seed():
    assert not np.array_equal(audit_sample(1000, 20), audit_sample(1000, 20))


@pytest.mark.parametrize(
    ("population", "size", "says"),
    [
        (10, 11, "between 1 and the number of rows of the population, 10"),
        (10, 0, "Got 0"),
        (10, "3", "Got '3'"),
        (10, 2.0, "whole number"),
        (0, 1, "no rows"),
        ([False, False], 1, "no rows"),
        ([1, 0, 1], 1, "mask of booleans"),
    ],
)
def test_draws_that_are_refused(population, size, says):
    with pytest.raises(ValueError, match=says):
        audit_sample(population, size)


# --- the statement ---------------------------------------------------------------------------


def said(answer: object) -> str:
    return str(answer).replace("\N{NO-BREAK SPACE}", " ")


def test_the_statement_of_a_fixed_plan():
    answer = Audit.from_checks(1581, np.zeros(60, dtype=bool), what="accepted labels")
    assert said(answer) == (
        "at most 4.8 % of the 1,581 accepted labels are wrong (guaranteed with 95 % confidence, "
        "60 rows checked, 0 wrong)"
    )
    assert answer.at_most == 75 / 1581 < 0.048  # shown rounded up
    assert answer.to_dict()["at_most"] == answer.at_most


def test_what_was_found_is_counted_and_corrected():
    truth = np.array(["a", "b"] * 200)
    labels = truth.copy()
    labels[:20] = "c"
    rows = audit_sample(400, 100, 1)
    answer = audit(labels, rows, truth[rows], confidence=0.9)
    wrong = int((rows < 20).sum())
    assert wrong > 0
    high = hypergeometric_limits(400, 100, wrong, confidence=0.9).high
    assert (answer.checked, answer.wrong, answer.rows) == (100, wrong, 400)
    assert answer.at_most == high / 400
    assert answer.at_most_after_correction == (high - wrong) / 400
    assert f"{wrong} wrong); at most" in said(answer)
    assert "90 % confidence" in said(answer)


def test_a_sequential_audit_uses_the_order():
    labels, truth = np.zeros(300, dtype=int), np.zeros(300, dtype=int)
    rows = audit_sample(300, 80, 0)
    truth[rows[70:]] = 1  # all that are wrong come late
    answer = audit(labels, rows, truth[rows], plan="sequential")
    _, high = audit_confidence_sequence(300, np.arange(80) >= 70)
    assert answer.most_wrong == high[-1]
    assert "valid at every moment" in said(answer)
    early = audit(labels, rows[:40], truth[rows[:40]], plan="sequential")
    assert early.at_most > audit(labels, rows[:40], truth[rows[:40]]).at_most


def test_the_population_is_what_the_statement_is_about():
    labels = np.array(["a"] * 50, dtype=object)
    inside = np.arange(50) >= 10
    rows = audit_sample(inside, 8, 0)
    assert audit(labels, rows, labels[rows], population=inside).rows == 40
    with pytest.raises(ValueError, match="row 0 does not belong"):
        audit(labels, [0], ["a"], population=inside)


def test_a_sequential_limit_is_the_last_one():
    for checked in (2, 3, 40):
        _, high = audit_confidence_sequence(300, np.zeros(checked, dtype=bool))
        answer = Audit.from_checks(300, np.zeros(checked, dtype=bool), plan="sequential")
        assert answer.most_wrong == high[-1] < high[-2]


def test_a_goal_is_reached_at_equality():
    answer = Audit(rows=100, checked=30, wrong=2, most_wrong=5)
    assert answer.reaches(0.05)
    assert not answer.reaches(0.049)
    assert answer.reaches_after_correction(0.03)
    assert not answer.reaches_after_correction(0.029)
    assert "95 % confidence" in said(answer)


def test_the_best_that_checks_can_show_is_not_too_few():
    best = limit_if_none_wrong(1581, 60)
    answer = Audit.from_checks(1581, np.arange(60) < 2)
    assert "too many of the checked labels" in answer.verdict(best)
    assert "checks are too few" in answer.verdict(best - 1e-9)


def test_whoever_checks_all_rows_knows():
    answer = Audit.from_checks(30, [True] + [False] * 29)
    assert answer.at_most == 1 / 30
    assert answer.at_most_after_correction == 0


@pytest.mark.parametrize("plan", ["fixed", "sequential"])
def test_no_checks_promise_nothing(plan):
    assert Audit.from_checks(30, [], plan=plan).at_most == 1


@pytest.mark.parametrize(
    ("checked", "wrong", "goal", "says"),
    [
        (60, 0, 0.05, "is reached."),
        (40, 0, 0.05, "40 checks are too few. Even with none wrong they show at most 7.1 %; it"),
        (30, 30, 0.05, "too many of the checked labels are wrong. Besides, 30 checks are too few."),
        (1, 0, 0.05, "is not reached: 1 check is too few."),
        (30, 1, 0.05, "is not reached: 30 checks are too few."),
        (100, 5, 0.05, "too many of the checked labels"),
        (1900, 99, 0.05, "is reached once the wrong labels found are corrected"),
    ],
)
def test_the_verdict_on_a_goal(checked, wrong, goal, says):
    answer = Audit.from_checks(2000, np.arange(checked) < wrong)
    assert says in said(answer.verdict(goal))
    assert answer.reaches(goal) == (says == "is reached.")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"rows": [1, 1]}, "row 1 is"),
        ({"rows": [0, 3]}, "between 0 and 2"),
        ({"rows": [0.0, 1.0]}, "integers from 0"),
        ({"rows": [], "right_labels": []}, "No row was checked"),
        ({"right_labels": ["a"]}, "one label for each of the 2 rows"),
        ({"right_labels": ["a", None]}, "no label at position 1"),
        ({"right_labels": [1, 2]}, "Write both alike"),
        ({"labels": [["a"]]}, "one-dimensional"),
        ({"population": [True]}, "mask of 3 booleans"),
        ({"plan": "quick"}, "'fixed' or 'sequential'"),
        ({"confidence": 95}, "strictly between 0 and 1"),
    ],
)
def test_audits_that_are_refused(arguments, says):
    good = {"labels": ["a", "b", "c"], "rows": [0, 1], "right_labels": ["a", "b"]}
    with pytest.raises(ValueError, match=says):
        audit(**{**good, **arguments})


@pytest.mark.parametrize(
    ("labels", "missing_label", "refused"),
    [
        ([0, -1], "auto", 1),
        (["a", "-1"], "auto", 1),
        (["a", ""], "auto", 1),
        (["a", float("nan")], "auto", 1),
        ([0, -1], None, None),
        ([0, None], None, 1),
        ([0, 9], 9, 1),
        (["a", "?"], "?", 1),
        ([0, -1], 9, None),
        ([True, False], "auto", None),
    ],
)
def test_right_labels_of_a_fit_are_not_its_mark_of_an_unlabelled_row(
    labels, missing_label, refused
):
    if refused is None:
        assert answered(labels, missing_label).tolist() == labels
    else:
        with pytest.raises(ValueError, match=f"no label at position {refused}, but"):
            answered(labels, missing_label)


# --- plans -----------------------------------------------------------------------------------


@settings(max_examples=20)
@given(st.integers(5, 24), st.sampled_from([0.05, 0.1, 0.25]), st.floats(0, 1), st.data())
def test_checks_of_a_fixed_plan_are_the_fewest(rows, goal, share, data):
    allowed = allowed_wrong(rows, goal)
    wrong = int(share * allowed)
    power = data.draw(st.sampled_from([0.41, 0.79]))
    # A δ at which no probability of so few rows is a tie.
    fast = checks_needed(rows, goal, wrong / rows, confidence=0.9037, power=power)
    delta, power = Fraction(1.0 - 0.9037), Fraction(power)
    assert fast == reference.checks_needed(rows, allowed, wrong, delta, power)


@pytest.mark.parametrize(("goal", "expected"), [(0.05, 0.0), (0.08, 0.03), (0.05, 0.045)])
def test_checks_of_a_fixed_plan_reach_the_goal(goal, expected):
    rows = 20_000
    checks = checks_needed(rows, goal, expected)
    tolerated = int(checks * goal)
    while hypergeometric_limits(rows, checks, tolerated).high / rows > goal:
        tolerated -= 1
    wrong = round(expected * rows)
    assert np.exp(hypergeometric_log_cdf(tolerated, rows, wrong, checks)) >= 0.8


def test_a_few_wrong_labels_need_no_check_more_if_none_of_them_is_probably_found():
    assert checks_needed(2000, 0.05, 1 / 2000) == checks_needed(2000, 0.05) == 57


@pytest.mark.parametrize(("wrong", "tolerated"), [(724, 51), (728, 53), (800, 102), (812, 115)])
def test_a_plan_that_tolerates_one_wrong_row_less_is_too_weak(wrong, tolerated):
    def plan(k):
        checks = smallest_sample(20_000, 1001, k, 0.05)
        return checks, np.exp(hypergeometric_log_cdf(k, 20_000, wrong, checks))

    (_, weak), (checks, power) = plan(tolerated - 1), plan(tolerated)
    assert weak < 0.8 <= power
    assert checks_needed(20_000, 0.05, wrong / 20_000) == checks


def test_checks_of_a_sequential_plan_are_those_that_simulated_audits_take():
    rows, goal, wrong = 600, 0.1, 24
    checks = checks_needed(rows, goal, wrong / rows, plan="sequential", power=0.5)
    rng = np.random.default_rng(0)
    taken = []
    for _ in range(400):
        flags = rng.permutation(rows) < wrong
        high = audit_confidence_sequence(rows, flags)[1]
        taken.append(1 + int(np.argmax(high <= goal * rows)))
    within = np.mean(np.array(taken) <= checks)
    before = np.mean(np.array(taken) < checks)
    assert within >= 0.5 - 0.08
    assert before <= 0.5 + 0.08


@given(st.integers(20, 3000), st.sampled_from([0.02, 0.05, 0.2]), st.sampled_from([0.1, 0.05]))
def test_stopping_times_are_when_the_sequence_excludes(rows, goal, delta):
    too_many = allowed_wrong(rows, goal) + 1
    size = min(too_many, 6)
    stops = stopping_times(rows, too_many, size, delta)
    assert (np.diff(stops) > 0).all()
    for k, stop in enumerate(stops):
        # k wrong ones first, so that the running limit is the present one
        flags = np.arange(stop) < k
        high = audit_confidence_sequence(rows, flags, confidence=1 - delta)[1]
        assert high[-1] < too_many
        assert stop <= k + 1 or high[-2] >= too_many


def test_a_ratio_of_one_over_delta_excludes_nothing_yet():
    """Up to 1e-8 rounding could be the reason."""
    log_ratio = float(log_prior_posterior_ratio(300, 60, 1, 25))
    for slack, expected in ((1.2e-8, 60), (0.8e-8, 61)):
        delta = np.exp(slack - log_ratio)
        assert stopping_times(300, 25, 2, delta)[1] == expected


@given(st.integers(20, 50), st.sampled_from([0.05, 0.1, 0.25]), st.floats(0, 1))
def test_the_distribution_of_the_stopping_time_is_that_of_its_definition(rows, goal, share):
    too_many = allowed_wrong(rows, goal) + 1
    stops = stopping_times(rows, too_many, too_many, 0.1)
    wrong = round(share * too_many)
    found = stopping_distribution(rows, wrong, stops)
    exact = reference.stopping_distribution(rows, wrong, stops.tolist())
    np.testing.assert_allclose(found, np.array(exact, dtype=float), atol=1e-11)


@pytest.mark.parametrize("wrong", [0, 4, 100])
def test_paths_that_are_nearly_impossible_change_no_probability(wrong):
    stops = stopping_times(150, 9, 9, 0.05)
    found = stopping_distribution(150, wrong, stops)
    exact = reference.stopping_distribution(150, wrong, stops.tolist())
    np.testing.assert_allclose(found, np.array(exact, dtype=float), atol=1e-11)


def test_the_distribution_of_the_stopping_time_ends_at_one():
    stops = stopping_times(100, 6, 6, 0.05)
    reached = stopping_distribution(100, 5, stops)
    assert (np.diff(reached) >= 0).all()
    assert reached[-1] == pytest.approx(1.0)
    assert stopping_distribution(100, 6, stops)[-1] <= 0.05  # the goal is missed: rarely reached


@pytest.mark.parametrize("plan", ["fixed", "sequential"])
def test_plans_of_extreme_tables(plan):
    assert checks_needed(1, 0.05, plan=plan) == 1
    assert checks_needed(10, 0.05, plan=plan) == 10  # none may be wrong: check them all
    assert checks_needed(10**9, 0.05, plan=plan) < 100
    assert checks_needed(3000, 0.05, 0.05, plan=plan) > 2000
    assert limit_if_none_wrong(2000, 0, plan=plan) == 1.0
    assert limit_if_none_wrong(2000, 40, plan=plan) >= 0.071


def test_the_limit_if_none_is_wrong_is_the_last_of_its_plan():
    none = np.zeros(100, dtype=bool)
    for checked in (1, 2, 50, 100):
        high = audit_confidence_sequence(1000, none[:checked])[1][-1]
        assert limit_if_none_wrong(1000, checked, plan="sequential") == high / 1000
        fixed = hypergeometric_limits(1000, checked, 0).high
        assert limit_if_none_wrong(1000, checked) == fixed / 1000


@pytest.mark.parametrize(
    ("rows", "share", "allowed"),
    [
        (100, 0.29, 29),
        (20, 0.05, 1),
        (19, 0.05, 0),
        (10, 0.0, 0),
        (6, np.nextafter(5 / 6, 0), 4),  # six times that is 5 after rounding
    ],
)
def test_the_number_of_wrong_labels_that_a_share_allows(rows, share, allowed):
    assert allowed_wrong(rows, share) == allowed


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"max_error": 1.0}, "max_error must lie in"),
        ({"expected_error": 0.1}, "must not exceed max_error"),
        ({"expected_error": -0.1}, "share in"),
        ({"expected_error": 1.1}, "share in"),
        ({"power": 1.0}, "power must"),
        ({"power": 0.0}, "power must"),
        ({"plan": "none"}, "plan must"),
        ({"rows": 0}, "at least 1"),
    ],
)
def test_plans_that_are_refused(arguments, says):
    with pytest.raises(ValueError, match=says):
        checks_needed(**{"rows": 100, "max_error": 0.05, **arguments})


# --- accepting with an audit -----------------------------------------------------------------


def accepted(rng: np.random.Generator, wrong: np.ndarray, confidence: np.ndarray, size: int):
    rows = audit_sample(len(wrong), size, rng)
    return accept_with_audit(confidence, rows, wrong[rows], max_error=0.05, delta=0.1)


def test_the_most_confident_rows_are_accepted():
    rng = np.random.default_rng(0)
    confidence = rng.permutation(np.linspace(0, 1, 2000))
    wrong = confidence < 0.3
    answer = accepted(rng, wrong, confidence, 300)
    assert answer.rows == 1400  # 70 % have no wrong label, 75 % have too many
    np.testing.assert_array_equal(answer.mask, confidence >= answer.threshold)
    assert (answer.wrong, answer.max_error, answer.confidence) == (0, 0.05, 0.9)
    assert said(answer).startswith("at most 5 % of the 1,400 accepted labels are wrong (guaranteed")


def test_nothing_is_accepted_without_proof():
    confidence = np.linspace(0, 1, 500)
    for wrong, size in ((np.ones(500, dtype=bool), 200), (np.zeros(500, dtype=bool), 20)):
        answer = accepted(np.random.default_rng(0), wrong, confidence, size)
        assert answer.rows == answer.checked == 0
        assert not answer.mask.any()
        assert said(answer).startswith("no label can be accepted")


def test_an_audit_that_just_suffices_for_the_table_accepts_all_of_it():
    """Smaller sets hold too few of the checks: they must not be tested first."""
    n = 2000
    checks = checks_needed(n, 0.05)
    rows = np.arange(checks) * (n // checks)  # the least confident row among them
    answer = accept_with_audit(np.arange(n) / n, rows, np.zeros(checks, dtype=bool))
    assert (answer.rows, answer.checked) == (n, checks)


@pytest.mark.parametrize(
    ("n", "rows", "n_audited"), [(2000, 500, 300), (2000, 1900, 300), (400, 40, 100), (60, 30, 20)]
)
def test_so_many_audited_rows_fall_into_a_set_with_a_probability_of_nine_tenths(n, rows, n_audited):
    fewest = _probably_checked(n, rows, n_audited)
    inside = stats.hypergeom(n, rows, n_audited)
    assert inside.sf(fewest - 1) >= 0.88
    assert inside.sf(fewest + 1) < 0.9
    assert _probably_checked(n, n, n_audited) == n_audited


def test_few_checks_fall_probably_into_no_small_set():
    assert _probably_checked(60, 1, 2) == 0
    assert _probably_checked(60, 20, 6) == 0  # 2 ± 1.3 deviations of 1.1
    for rows in range(1, 8):
        for n_audited in range(1, 8):
            inside = stats.hypergeom(8, rows, n_audited)
            least = inside.mean() - 1.282 * inside.std()
            found = _probably_checked(8, rows, n_audited)
            assert found in {max(0, int(np.floor(least + slack))) for slack in (-1e-9, 1e-9)}


@given(
    n=st.integers(1, 50), checked=st.floats(0, 1), goal=st.sampled_from([0.05, 0.1, 0.25]),
    share=st.sampled_from([0.0, 0.1]), ties=st.booleans(), seed=st.integers(0, 10**6),
)  # fmt: skip
@example(n=40, checked=1.0, goal=0.05, share=0.0, ties=False, seed=0)  # the smallest set first
def test_sets_are_tested_as_defined(n, checked, goal, share, ties, seed):
    rng = np.random.default_rng(seed)
    confidence = rng.integers(12, size=n) / 12 if ties else rng.permutation(n) / n
    rows = audit_sample(n, max(1, round(checked * n)), rng)
    wrong = rng.random(len(rows)) < share
    delta = 1.0 - 0.9037  # at which no probability of so few rows is a tie
    tested, lowest = reference.accepted_by_audit(
        confidence.tolist(), rows.tolist(), wrong.tolist(), goal, Fraction(delta)
    )
    assert _thresholds(confidence, len(rows), goal, delta).tolist() == tested
    assert accept_with_audit(confidence, rows, wrong, goal, delta).threshold == lowest


@pytest.mark.parametrize("unlucky", [1, 2, 3])
def test_a_few_unlucky_rows_end_nothing_if_a_quarter_of_the_audit_bears_them(unlucky):
    """The most confident of the audited rows are wrong, all others are right."""
    n = 2000
    enough = 4 * smallest_sample(n, allowed_wrong(n, 0.05) + 1, unlucky, 0.05)
    for size, accepts in ((enough, n), (enough - 1, 0)):
        rows = np.linspace(n - 1, 0, size).astype(int)
        answer = accept_with_audit(np.arange(n) / n, rows, np.arange(size) < unlucky)
        assert (answer.rows, answer.wrong) == (accepts, unlucky if accepts else 0)


def test_answers_of_the_same_audit_are_equal_and_short_to_print():
    confidence = np.linspace(0, 1, 500)
    one, same = (
        accepted(np.random.default_rng(0), confidence < 0.3, confidence, 200) for _ in range(2)
    )
    assert one == same
    assert one != replace(same, checked=same.checked + 1)
    assert "mask" not in repr(one)


def test_rows_of_equal_confidence_are_accepted_together():
    confidence = np.repeat([0.9, 0.5], [300, 300])
    answer = accepted(np.random.default_rng(0), confidence < 0.7, confidence, 200)
    assert answer.threshold == 0.9
    assert answer.rows == 300


@pytest.mark.parametrize(
    "shape", ["even", "worse below", "all of it in one ring"], ids=lambda name: name.split()[0]
)
def test_the_guarantee_of_accepted_rows_holds(shape):
    """Simulated where it is hardest: the share wrong is just above the goal in many of the sets."""
    n, draws = 400, 200
    position = np.arange(n)
    share = {
        "even": np.full(n, 0.0525),
        "worse below": 0.03 + 0.06 * position / n,
        "all of it in one ring": np.where((position > 200) & (position < 240), 0.62, 0.0),
    }[shape]
    rng = np.random.default_rng(1)
    confidence = -position.astype(float)
    failed = 0
    for _ in range(draws):
        wrong = rng.random(n) < share
        answer = accepted(rng, wrong, confidence, 150)
        failed += answer.rows > 0 and wrong[answer.mask].mean() > 0.05
    assert failed <= stats.binom.ppf(0.999, draws, 0.1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"confidence": [0.5, np.nan, 1]}, "none of them missing"),
        ({"confidence": []}, "one number for each row"),
        ({"confidence": [[0.1, 0.2, 0.3]]}, "one number for each row"),
        ({"audited_rows": [0, 0]}, "repeated"),
        ({"wrong": [0, 1]}, "one boolean for each of the 2"),
        ({"wrong": [True]}, "one boolean for each of the 2"),
        ({"max_error": 1.5}, "max_error must"),
        ({"delta": 0.0}, "strictly between"),
    ],
)
def test_acceptances_that_are_refused(arguments, says):
    good = {"confidence": [0.1, 0.2, 0.3], "audited_rows": [0, 2], "wrong": [True, False]}
    with pytest.raises(ValueError, match=says):
        accept_with_audit(**{**good, **arguments})
