"""How wrong the labels are: the estimate, its limits, and how often they hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewlabel.assess.assessment import HeldOut, SelfLearned, Transduction, assess, paper_bounds
from fewlabel.assess.calibration import bounding_power, calibrated, calibrated_by
from fewlabel.assess.error_estimate import ErrorEstimate, assess_labels
from fewlabel.assess.limits import about_percent, kish_size, of_finite_population, share_limits
from fewlabel.assess.out_of_sample import (
    JudgedRows,
    mix_held_out,
    out_of_sample_errors,
    wrong_rows,
)
from fewlabel.assess.prevalence import (
    ClassShares,
    check_priors,
    labeled_shares,
    mixture_shares,
    prevalence_draws,
    sampled_prevalence,
    shifted,
    with_shares,
)
from fewlabel.bounds.transductive import transductive_bound
from tests import reference


def gibbs(held_out, y):
    """A rule that depends on every row: Q falls with the held-out error."""
    right = (held_out.argmax(axis=2) == y) & held_out.any(axis=2)
    q = np.exp(3.0 * right.sum(axis=1) / np.sqrt(len(y)))
    return q / q.sum()


def random_votes(rng, n_voters, n, n_classes):
    votes = rng.dirichlet(np.ones(n_classes), size=(n_voters, n))
    votes[rng.random((n_voters, n)) < 0.2] = 0.0
    return votes


def simulated(rng, n, n_classes=3, accuracy=0.8, prevalence=None):
    """Truth and votes of a classifier that is right in this share, more often when it is sure."""
    truth = rng.choice(n_classes, size=n, p=prevalence)
    sure = rng.beta(2, 2, size=n)
    right = rng.random(n) < np.clip(accuracy + 0.3 * (sure - 0.5), 0, 1)
    said = np.where(right, truth, (truth + rng.integers(1, n_classes, size=n)) % n_classes)
    votes = np.full((n, n_classes), 1.0) + 4.0 * sure[:, None] * np.eye(n_classes)[said]
    return truth, votes / votes.sum(axis=1, keepdims=True)


# --- limits -----------------------------------------------------------------------------------


@given(st.integers(1, 60), st.data())
def test_limits_are_those_of_clopper_and_pearson(n, data):
    k = data.draw(st.integers(0, n))
    assert share_limits(k / n, n) == pytest.approx(reference.clopper_pearson(k, n), abs=1e-6)


@given(st.floats(0, 1), st.floats(1, 500), st.floats(1, 500))
def test_limits_contain_the_value_and_narrow_with_more_rows(value, n, more):
    low, high = share_limits(value, n)
    assert 0 <= low <= value <= high <= 1
    narrower = share_limits(value, n + more)
    assert narrower[1] - narrower[0] <= high - low + 1e-9


def test_without_rows_nothing_is_known():
    assert share_limits(0.3, 0) == (0.0, 1.0)
    assert share_limits(float("nan"), 10) == (0.0, 1.0)


def test_effective_rows():
    assert kish_size(np.ones(7)) == pytest.approx(7)
    assert kish_size([5.0, 0.0, 0.0]) == pytest.approx(1)
    assert of_finite_population(40, 10**9) == pytest.approx(40)
    assert of_finite_population(40, 10) == pytest.approx(8)
    assert of_finite_population(0, 10) == of_finite_population(7, 0) == 0.0
    assert of_finite_population(0, 0) == kish_size([]) == 0.0


# --- Q out of sample --------------------------------------------------------------------------


def best(held_out, y):
    """A rule that takes one voter, whose missing votes no other replaces."""
    right = (held_out.argmax(axis=2) == y) & held_out.any(axis=2)
    return np.eye(len(held_out))[right.sum(axis=1).argmax()]


@settings(max_examples=20)
@given(
    st.integers(2, 4), st.integers(2, 12), st.integers(2, 4), st.sampled_from([gibbs, best]),
    st.integers(0, 10**6),
)  # fmt: skip
def test_out_of_sample_errors_are_those_of_every_resample(n_voters, n, n_classes, rule, seed):
    rng = np.random.default_rng(seed)
    held_out, y = random_votes(rng, n_voters, n, n_classes), rng.integers(n_classes, size=n)
    found = out_of_sample_errors(held_out, y, rule, n_resamples=15, random_state=seed)
    draw = np.random.default_rng(seed)
    samples = [draw.integers(n, size=n) for _ in range(15)]
    expected = reference.bootstrapped_errors(held_out, y, rule, samples)
    outside = np.isfinite(expected)
    np.testing.assert_allclose(found[outside], expected[outside])
    mixed = mix_held_out(held_out, rule(held_out, y))
    np.testing.assert_array_equal(found[~outside], wrong_rows(mixed, y)[~outside])


def test_a_row_that_every_resample_holds_is_judged_by_the_q_of_all_rows():
    held_out = np.array([[[0.9, 0.1]], [[0.4, 0.6]]])
    for y, wrong in ((0, 0.0), (1, 1.0)):  # the only row is in every sample
        assert (
            out_of_sample_errors(held_out, np.array([y]), lambda *_: np.array([0.5, 0.5])) == wrong
        )


def test_rows_without_a_vote_have_no_winner():
    rows = JudgedRows(np.array([1, 0]), np.array([[0.3, 0.7], [0.0, 0.0]]), np.array([0.0, 1.0]))
    assert rows.winner.tolist() == [1, -1]
    assert rows.voted.tolist() == [True, False]


def test_a_missing_vote_counts_as_equal_ones_unless_nobody_votes():
    held_out = np.array([[[0.8, 0.2], [0.0, 0.0]], [[0.0, 0.0], [0.3, 0.7]]])
    mixed = mix_held_out(held_out, np.array([0.5, 0.5]))
    np.testing.assert_allclose(mixed, [[0.65, 0.35], [0.4, 0.6]])
    alone = mix_held_out(held_out, np.array([1.0, 0.0]))
    np.testing.assert_allclose(alone, [[0.8, 0.2], [0.0, 0.0]])


def test_one_voter_is_judged_as_it_is():
    held_out = np.array([[[0.9, 0.1], [0.8, 0.2], [0.0, 0.0]]])
    errors = out_of_sample_errors(held_out, np.array([0, 1, 0]), gibbs)
    assert errors.tolist() == [0.0, 1.0, 1.0]  # no vote is wrong


def test_the_optimism_of_a_chosen_voter_is_corrected():
    """Of 30 voters that toss coins the best looks good; a bootstrap of its choice does not."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=60)
    held_out = np.eye(2)[rng.integers(2, size=(30, 60))]
    chosen = wrong_rows(mix_held_out(held_out, best(held_out, y)), y).mean()
    assert chosen < 0.4
    assert out_of_sample_errors(held_out, y, best).mean() == pytest.approx(0.5, abs=0.07)


# --- class shares -----------------------------------------------------------------------------


@given(st.integers(2, 4), st.integers(0, 10**6))
def test_em_stops_where_a_step_changes_nothing(n_classes, seed):
    rng = np.random.default_rng(seed)
    confusion = 0.6 * np.eye(n_classes) + 0.4 * rng.dirichlet(np.ones(n_classes), n_classes).T
    said = rng.dirichlet(np.full(n_classes, 5.0))
    found = mixture_shares(confusion, said, n_steps=5_000)
    step = reference.mixture_step(found, confusion, said)
    np.testing.assert_allclose(step, found, atol=1e-5)
    one = mixture_shares(confusion, said, n_steps=1)
    start = np.full(n_classes, 1 / n_classes)
    np.testing.assert_allclose(one, reference.mixture_step(start, confusion, said))
    assert found.sum() == pytest.approx(1)


@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_drawn_shares_are_those_of_drawn_confusion_matrices(n_classes):
    """Each class has one row more, right as often as all are, one right and one wrong included."""
    rng = np.random.default_rng(n_classes)
    # The last of several classes is never predicted: a thousandth of a row.
    y, predicted = rng.integers(n_classes, size=12), rng.integers(max(1, n_classes - 1), size=30)
    held_out = np.where(rng.random(12) < 0.7, y, rng.integers(-1, n_classes, size=12))
    right = (1 + sum(held_out == y)) / (2 + sum(held_out >= 0))
    counts = np.full((n_classes, n_classes), (1 - right) / max(1, n_classes - 1))
    for c in range(n_classes):
        counts[c, c] = right
    for label, vote in zip(y, held_out):
        if vote >= 0:
            counts[vote, label] += 1
    draw = np.random.default_rng(5)
    gamma = draw.gamma(np.stack([counts] * 4))
    said = draw.dirichlet([max(1e-3, sum(predicted == c)) for c in range(n_classes)], size=4)
    found = prevalence_draws(y, held_out, predicted, n_classes, n_draws=4, random_state=5)
    for shares, matrix, mu in zip(found, gamma, said):
        expected = np.full(n_classes, 1 / n_classes)
        for _ in range(100):
            expected = reference.mixture_step(expected, matrix / matrix.sum(axis=0), mu)
        np.testing.assert_allclose(shares, expected)
    assert prevalence_draws(y, held_out, predicted, n_classes).shape == (200, n_classes)


def test_a_class_that_is_never_predicted_has_a_small_share():
    confusion, said = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, 0.0])
    np.testing.assert_array_equal(mixture_shares(confusion, said), said)
    y, never = np.repeat([0, 1], 20), np.zeros(500, dtype=int)
    draws = prevalence_draws(y, y, never, 2)
    assert np.isfinite(draws).all()
    assert draws[:, 1].mean() < 0.01


def test_shares_of_few_labels_by_hand():
    np.testing.assert_allclose(
        labeled_shares(np.array([0, 0, 1]), 3), [2 / 3.5, 1 / 3.5, 0.5 / 3.5]
    )
    shares = ClassShares(votes=np.array([0.5, 0.25, 0.25]))
    ratios = shares.ratios(np.array([0, 0, 0, 1, 2]))
    np.testing.assert_allclose(ratios, [0.6 / 0.5, 0.2 / 0.25, 0.2 / 0.25])
    assert ClassShares().ratios(np.array([0])) is None


def test_given_shares_may_be_rounded_to_whole_percents():
    classes = np.array(["a", "b", "c"])
    np.testing.assert_allclose(check_priors([0.33, 0.33, 0.33], classes), [1 / 3] * 3)
    np.testing.assert_allclose(
        check_priors([0.34, 0.34, 0.33], classes), np.array([34, 34, 33]) / 101
    )
    for shares in ([0.33, 0.33, 0.32], [0.34, 0.34, 0.34]):
        with pytest.raises(ValueError, match="sum to 1"):
            check_priors(shares, classes)


def test_votes_are_scaled_until_their_means_are_the_shares():
    proba, shares = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]]), np.array([0.25, 0.75])
    once = proba * shares / proba.mean(axis=0)
    once /= once.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(with_shares(proba, shares, n_steps=1), once)
    np.testing.assert_allclose(with_shares(proba, shares).mean(axis=0), shares, atol=1e-6)
    assert np.isfinite(with_shares(np.array([[1.0, 0.0]]), shares)).all()  # nobody votes for it


def test_prevalence_of_no_or_one_labelled_row():
    """Without a second row predictions cannot be weighed: the plain mean, if there is one."""
    none, predicted = np.empty(0, dtype=int), np.array([0, 1, 1, 1])
    for value, low, high in sampled_prevalence(none, none, predicted, 2):
        assert np.isnan(value)
        assert (low, high) == (0.0, 1.0)
    one = np.array([0])
    found = sampled_prevalence(one, one, predicted, 2)
    assert [share.value for share in found] == [1.0, 0.0]
    assert found[1][1:] == pytest.approx(share_limits(0.0, of_finite_population(1, 4)))
    two = np.array([0, 1])
    assert sampled_prevalence(two, two, predicted[:0], 2)[0] == (0.5, 0.0, 1.0)  # no other row


def test_prevalence_is_found_under_label_shift():
    """Classes are labelled alike, the table has 80 : 15 : 5."""
    rng = np.random.default_rng(1)
    share = np.array([0.8, 0.15, 0.05])
    centers = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])

    def votes_of(truth):
        X = centers[truth] + rng.normal(size=(len(truth), 2))
        density = np.exp(-0.5 * ((X[:, None] - centers) ** 2).sum(axis=2))
        return density / density.sum(axis=1, keepdims=True)  # as if trained on 1 : 1 : 1

    y, truth = np.repeat(np.arange(3), 400), rng.choice(3, size=4000, p=share)
    held_out, proba = votes_of(y).argmax(axis=1), votes_of(truth)
    found = prevalence_draws(y, held_out, proba.argmax(axis=1), 3).mean(axis=0)
    np.testing.assert_allclose(found, share, atol=0.04)
    back = shifted(proba, share * 3).mean(axis=0)
    assert np.abs(back - share).max() < 0.03 < np.abs(proba.mean(axis=0) - share).max()


@pytest.mark.parametrize("accuracy", [0.6, 0.9])
def test_limits_of_the_prevalence_hold(accuracy):
    """Five rows of each of three classes, predictions that are right more or less often."""
    rng, outside = np.random.default_rng(7), []
    for _ in range(60):
        share = rng.dirichlet(np.ones(3))
        y, truth = np.repeat(np.arange(3), 5), rng.choice(3, size=500, p=share)
        said = [
            np.where(rng.random(len(t)) < accuracy, t, (t + rng.integers(1, 3, len(t))) % 3)
            for t in (y, truth)
        ]
        draws = prevalence_draws(y, said[0], said[1], 3)
        low, high = np.quantile(draws, [0.01, 0.99], axis=0)
        real = np.bincount(truth, minlength=3) / 500
        outside.append((real < low) | (real > high))
    assert np.mean(outside) < 0.1


def test_limits_of_each_class_are_those_of_its_own_draws():
    rng = np.random.default_rng(5)
    y, truth = np.repeat(np.arange(3), 8), rng.choice(3, size=300, p=[0.7, 0.2, 0.1])
    voted = [(t + (rng.random(len(t)) < 0.2)) % 3 for t in (y, truth)]
    (held_out, first), said = (0.7 * np.eye(3)[codes] + 0.1 for codes in voted), voted[1]
    found = assess_labels(held_out, y, first, said, labels="per class").error.prevalence
    draws = prevalence_draws(y, held_out.argmax(axis=1), said, 3)
    low, high = np.quantile(draws, [0.01, 0.99], axis=0)
    np.testing.assert_allclose([(s.low, s.high) for s in found], np.column_stack([low, high]))
    known = ClassShares(table=np.array([0.6, 0.3, 0.1]))
    told = assess_labels(held_out, y, first, said, labels="per class", class_shares=known)
    np.testing.assert_allclose(told.error.prevalence, np.repeat(known.table[:, None], 3, axis=1))


@given(st.integers(2, 30), st.integers(1, 40), st.integers(2, 4), st.integers(0, 10**6))
def test_sampled_prevalence_is_the_powered_mean(n, n_unlabeled, n_classes, seed):
    rng = np.random.default_rng(seed)
    y, predicted = rng.integers(n_classes, size=n), rng.integers(n_classes, size=n_unlabeled)
    held_out = np.where(rng.random(n) < 0.7, y, rng.integers(-1, n_classes, size=n))
    for c, found in enumerate(sampled_prevalence(y, held_out, predicted, n_classes)):
        expected, variance = reference.powered_prevalence(y, held_out, predicted, c)
        assert found.value == pytest.approx(expected, abs=1e-12)
        assert 0 <= found.low <= found.value <= found.high <= 1
        # A plain mean of so many rows has this variance.
        rows = expected * (1 - expected) / variance if variance > 0 else n
        limits = share_limits(expected, of_finite_population(rows, n_unlabeled))
        assert (found.low, found.high) == pytest.approx(limits, abs=1e-9)


def test_right_predictions_narrow_the_limits_of_the_prevalence():
    y, predicted = np.repeat([0, 1], [12, 8]), np.repeat([0, 1], [6_000, 4_000])
    right, useless = (
        sampled_prevalence(y, held_out, predicted, 2)[1] for held_out in (y, np.zeros_like(y))
    )
    assert useless[1:] == pytest.approx(share_limits(0.4, 20), abs=0.02)
    assert right.value == pytest.approx(0.4)
    assert right.high - right.low < 0.5 * (useless.high - useless.low)


# --- the estimate -----------------------------------------------------------------------------


def test_percentages_below_two_have_a_digit_more():
    shares = (0.0004, 0.0005, 0.0123, 0.0194, 0.0196, 0.03, 0.052)
    assert [about_percent(share) for share in shares] == ["0", "0.1", "1.2", "1.9", "2", "3", "5"]


def test_text():
    assert str(ErrorEstimate(0.052, 0.021, 0.093, 120, "")) == "about 5 % wrong (2–9 %)"
    assert str(ErrorEstimate(0.004, 0.0, 0.02, 500, "")) == "about 0.4 % wrong (0–2 %)"
    assert "no labelled row" in str(ErrorEstimate(float("nan"), 0, 1, 0, ""))
    unsafe = ErrorEstimate(0.1, 0.05, 0.2, 40, "").flagged("labelled rows differ in age")
    assert not unsafe.safe
    assert str(unsafe).endswith("unsafe: labelled rows differ in age")


@settings(max_examples=25)
@given(
    st.integers(1, 3), st.integers(2, 30), st.integers(1, 60), st.integers(2, 4),
    st.sampled_from(["random", "per class"]), st.integers(0, 10**6),
)  # fmt: skip
def test_every_estimate_is_consistent(n_voters, n, n_unlabeled, n_classes, labels, seed):
    rng = np.random.default_rng(seed)
    held_out, y = random_votes(rng, n_voters, n, n_classes), rng.integers(n_classes, size=n)
    first = rng.dirichlet(np.ones(n_classes), size=n_unlabeled)
    predicted = rng.integers(n_classes, size=n_unlabeled)
    found = assess_labels(
        held_out, y, first, predicted, weights=gibbs, labels=labels, n_resamples=5,
        trained_share=0.8,
    )  # fmt: skip
    error = found.error
    assert error.n <= n
    if error.n == 0:
        assert np.isnan(error.value)
        return
    assert 0 <= error.low <= error.value <= error.high <= 1
    assert len(error.per_class) == len(error.prevalence) == n_classes
    for share in error.prevalence:
        assert 0 <= share.low <= share.value <= share.high <= 1
    confidence = found.confidence.of(first, predicted)
    assert ((confidence >= 0) & (confidence <= 1)).all()
    doubts = 1 - confidence.mean(), 1 - found.cautious.of(first, predicted).mean()
    assert doubts[1] >= doubts[0] - 1e-6


def test_confidence_agrees_with_the_estimate():
    rng = np.random.default_rng(2)
    truth, votes = simulated(rng, 600)
    predicted = votes[60:].argmax(axis=1)
    found = assess_labels(votes[:60], truth[:60], votes[60:], predicted)
    doubt, cautious = (
        1 - rule.of(votes[60:], predicted).mean() for rule in (found.confidence, found.cautious)
    )
    assert doubt == pytest.approx(found.error.value, abs=1e-6)
    # A fifth of the way to the upper limit.
    assert cautious == pytest.approx(0.8 * doubt + 0.2 * found.error.high, abs=1e-6)


@pytest.mark.parametrize("labels", ["random", "per class"])
def test_without_a_judged_row_nothing_is_known_and_one_is_enough(labels):
    first, predicted = np.tile([0.9, 0.1], (5, 1)), np.zeros(5, dtype=int)
    y, held_out = np.array([0, 1]), np.array([[0.8, 0.2], [0.3, 0.7]])
    none = assess_labels(held_out, y, first, predicted, labels=labels, sample=y < 0)
    assert np.isnan(none.error.value)
    assert (none.error.low, none.error.high, none.error.n) == (0.0, 1.0, 0)
    assert none.confidence.power == 1.0
    assert (none.cautious.of(first, predicted) < none.confidence.of(first, predicted)).all()
    one = assess_labels(held_out, y, first, predicted, labels=labels, sample=y < 1)
    assert one.error.n == 1
    assert 0 < one.error.low < one.error.value < one.error.high < 1


def test_recall_is_what_held_out_votes_find_of_a_class():
    """Rows without a vote do not count; the classifier learned from a tenth more rows."""
    y = np.array([0, 0, 0, 0, 1, 1, 2])
    winner = np.array([0, 0, 1, 0, 1, 0, 2])
    held_out = 0.7 * np.eye(3)[winner] + 0.1
    held_out[[3, 6]] = 0.0
    first, predicted = np.tile([0.5, 0.3, 0.2], (9, 1)), np.array([0, 1] * 4 + [0])
    found = assess_labels(held_out, y, first, predicted, trained_share=0.9).error
    for share, wrong, n in zip(found.recall, (1 / 3, 1 / 2), (3, 2)):
        value = 1 - 0.9**0.4 * wrong
        assert share == pytest.approx((value, *share_limits(value, n)))
    for nothing in (found.recall[2], found.per_class[2]):  # no row judged, no row labelled
        assert np.isnan(nothing.value)
        assert (nothing.low, nothing.high) == (0.0, 1.0)


def test_the_estimate_is_the_mean_of_what_is_known():
    """40 labelled rows, the doubt about the others as 20 rows, an error of 30 % as 4."""
    rng = np.random.default_rng(8)
    truth, votes = simulated(rng, 300)
    errors, predicted = (rng.random(40) < 0.25).astype(float), votes[40:].argmax(axis=1)
    found = assess_labels(
        votes[:40], truth[:40], votes[40:], predicted, errors=errors, trained_share=0.9
    ).error
    proba = calibrated(votes[40:], calibrated_by(votes[:40], truth[:40]))
    doubt = 1 - proba.max(axis=1).mean()
    expected = (40 * 0.9**0.4 * errors.mean() + 20 * doubt + 4 * 0.3) / 64
    assert found.value == pytest.approx(expected)


def test_the_error_of_a_class_is_that_of_the_rows_labelled_with_it():
    """Its held-out rows, and the doubt about its unlabelled rows as 4 more."""
    rng = np.random.default_rng(9)
    truth, votes = simulated(rng, 300)
    errors, predicted = (rng.random(60) < 0.25).astype(float), votes.argmax(axis=1)
    found = assess_labels(
        votes[:60], truth[:60], votes[60:], predicted[60:], errors=errors, trained_share=0.9
    )
    doubt = 1 - found.confidence.of(votes[60:], predicted[60:])
    for c, (value, low, high) in enumerate(found.error.per_class):
        judged, others = errors[predicted[:60] == c], doubt[predicted[60:] == c]
        expected = (0.9**0.4 * judged.sum() + 4 * others.mean()) / (len(judged) + 4)
        assert value == pytest.approx(expected)
        n = of_finite_population(len(judged) + 2, len(others))
        assert (low, high) == pytest.approx(share_limits(expected, n))


def test_a_few_right_rows_prove_little():
    held_out = np.tile([0.9, 0.1], (8, 1))
    first = np.tile([0.95, 0.05], (200, 1))
    found = assess_labels(held_out, np.zeros(8, dtype=int), first, np.zeros(200, dtype=int))
    assert found.error.value > 0.04
    assert found.error.high > 0.35


def test_several_voters_need_a_rule():
    with pytest.raises(ValueError, match="weights is needed"):
        assess_labels(np.full((2, 3, 2), 0.5), np.array([0, 1, 0]), np.full((2, 2), 0.5), [0, 1])


def test_single_rows_stand_for_classes_without_label():
    """Good-Turing: of 10 rows 2 are the only one of their class, so 2 of 10 others are unseen."""
    y = np.array([0] * 8 + [1, 2])
    held_out = np.eye(3)[y]
    held_out[8:] = 0.0
    first = np.tile([1.0, 0.0, 0.0], (50, 1))
    random = assess_labels(held_out, y, first, np.zeros(50, dtype=int))
    assert random.error.value == pytest.approx(0.2, abs=0.04)
    assert random.confidence.seen == pytest.approx(0.8)
    chosen = assess_labels(held_out, y, first, np.zeros(50, dtype=int), labels="per class")
    assert chosen.error.n == 8
    assert chosen.error.value < 0.1


def test_truth_is_rarely_above_the_upper_limit():
    rng = np.random.default_rng(3)
    above, distance = [], []
    for _ in range(150):
        accuracy = rng.uniform(0.5, 0.95)
        truth, votes = simulated(rng, 330, accuracy=accuracy)
        predicted = votes.argmax(axis=1)
        found = assess_labels(votes[:30], truth[:30], votes[30:], predicted[30:]).error
        wrong = (predicted != truth)[30:].mean()
        above.append(wrong > found.high)
        distance.append(found.value - wrong)
    assert np.mean(above) <= 0.04
    assert abs(np.mean(distance)) < 0.02


def test_class_shares_of_the_labels_do_not_matter_per_class():
    """Ten of each class are labelled, but the table has 90 % of the class that is easy."""
    rng = np.random.default_rng(4)

    def votes_of(truth):
        # Class 0 is right in 95 %, class 1 in 60 %.
        right = rng.random(len(truth)) < np.where(truth == 0, 0.95, 0.6)
        said = np.where(right, truth, 1 - truth)
        return 0.7 * np.eye(2)[said] + 0.15, said

    truths, plain, weighted, inside = [], [], [], []
    for _ in range(15):
        y, truth = np.repeat([0, 1], 15), (rng.random(800) < 0.1).astype(int)
        held_out, (first, said) = votes_of(y)[0], votes_of(truth)
        truths.append((said != truth).mean())
        plain.append(assess_labels(held_out, y, first, said).error.value)
        found = assess_labels(held_out, y, first, said, labels="per class").error
        weighted.append(found.value)
        inside.append(found.low <= truths[-1] <= found.high)
    bias = np.mean(plain) - np.mean(truths), np.mean(weighted) - np.mean(truths)
    assert abs(bias[1]) < 0.05 < bias[0]
    assert np.mean(inside) >= 0.85


@pytest.mark.parametrize("counts", [(20, 10), (20, 1)])
def test_limits_per_class_are_wider_as_the_prevalence_is_not_known(counts):
    """Its variance is added: the errors of the classes are weighted by shares that are drawn."""
    rng = np.random.default_rng(6)
    y, truth = np.repeat([0, 1], counts), (rng.random(500) < 0.3).astype(int)
    said = [np.where(rng.random(len(t)) < 0.9 - 0.4 * t, t, 1 - t) for t in (y, truth)]
    said[0][-1] = 0  # wrong, also if it is the only row of its class
    held_out, first = (0.7 * np.eye(2)[codes] + 0.15 for codes in said)
    found = assess_labels(held_out, y, first, said[1], labels="per class").error
    draws = prevalence_draws(y, said[0], said[1], 2)
    wrong = [(said[0] != y)[y == c].mean() for c in (0, 1)]
    shares, spread = draws.mean(axis=0), found.value * (1 - found.value)
    rows = kish_size(np.repeat(shares / counts, counts))
    proba = shifted(calibrated(first, calibrated_by(held_out, y)), shares / np.bincount(y) * len(y))
    doubt = 1 - proba[np.arange(500), said[1]].mean()
    assert found.value == pytest.approx((rows * (shares @ wrong) + 20 * doubt + 1.2) / (rows + 24))
    rows = spread / (spread / (rows + 2) + np.var(draws @ wrong))
    expected = share_limits(found.value, of_finite_population(rows, 500))
    assert (found.low, found.high) == pytest.approx(expected)


def test_without_unlabelled_rows_nothing_is_stated_and_votes_stay_as_they_are():
    """New rows may come later: a promise is kept for them, too."""
    votes, none = np.tile([0.6, 0.4], (30, 1)), np.empty((0, 2))  # underconfident: always right
    rows = Transduction(none, none, "supervised")
    paper = paper_bounds(HeldOut(votes[None], np.zeros(30, dtype=int)), rows)
    assert paper.bound is None
    found = assess(paper, rows)
    assert np.isnan(found.error.value)
    assert (found.error.low, found.error.high, found.error.n) == (0.0, 1.0, 0)
    assert paper.power == found.promise.power == found.promise.rule.power == 1.0
    assert found.confidence.shape == (0,)


def a_fit(label_proba="supervised", **held_out):
    """Underconfident votes, 40 of them held out."""
    truth, votes = simulated(np.random.default_rng(11), 240, accuracy=0.9)
    rows = Transduction(votes[40:], calibrated(votes[40:], 2.0), label_proba)
    return HeldOut(votes[None, :40], truth[:40], **held_out), rows


def test_the_bound_of_a_fit_is_the_tight_one_for_calibrated_votes():
    held_out, rows = a_fit()
    found = paper_bounds(held_out, rows)
    assert found.power == bounding_power(held_out.votes[0], held_out.y) > 1.0
    np.testing.assert_allclose(found.label_proba, calibrated(rows.initial, found.power))
    tight, loose = (
        transductive_bound(rows.votes, found.label_proba, tight=tight) for tight in (True, False)
    )
    assert found.bound.risk == tight.risk < loose.risk
    current = paper_bounds(*a_fit("current"))
    assert current.power == 1.0
    assert current.label_proba is not None
    np.testing.assert_array_equal(current.label_proba, rows.votes)


def test_known_class_shares_change_votes_before_and_after_calibration():
    shares = ClassShares(table=np.array([0.5, 0.3, 0.2]), votes=np.array([0.2, 0.4, 0.4]))
    held_out = HeldOut(np.full((1, 4, 3), 1 / 3), np.array([0, 0, 1, 2]), class_shares=shares)
    before, after = held_out.shifts(3)
    np.testing.assert_allclose(before, [0.5 / 0.2, 0.25 / 0.4, 0.25 / 0.4])
    np.testing.assert_allclose(after, [0.5 / 0.5, 0.3 / 0.25, 0.2 / 0.25])
    assert HeldOut(held_out.votes, held_out.y).shifts(3) == (None, None)


def test_a_fit_is_judged_by_what_all_of_it_gets_wrong_if_that_is_known():
    held_out, rows = a_fit(trained_share=0.8)
    errors = (np.arange(40) < 13).astype(float)
    whole = assess(paper_bounds(held_out, rows), rows, self_learned=SelfLearned(errors, 0.9))
    first = assess(paper_bounds(held_out, rows), rows)
    given = held_out.votes, held_out.y, rows.initial, rows.labels
    expected = assess_labels(*given, errors=errors, trained_share=0.9)
    assert whole.error == expected.error
    assert first.error == assess_labels(*given, trained_share=0.8).error
    default = HeldOut(held_out.votes, held_out.y)
    assert assess(paper_bounds(default, rows), rows).error == assess_labels(*given).error
