"""Counts of labels that a report shows: those of chunks add up to those of all rows."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewlabel.assess.calibration import Confidence
from fewlabel.assess.label_sums import (
    MAX_ERRORS,
    LabelRule,
    LabelSums,
    PseudoLabels,
    Verdicts,
)
from fewlabel.assess.promise import Promise
from fewlabel.assess.suggest import NextRows, next_to_label
from fewlabel.assess.true_labels import check_some_known, known_labels

K, ROUNDS = 3, 2
RULE = LabelRule(
    Confidence(2.0), Confidence(1.5), 0.05, (0.01, 0.05, 0.2), (float("inf"), 0.8, 0.55)
)
CLASSES = np.array(["a", "b", "c"])


class Rows:
    """Random rows with all that is counted of them."""

    def __init__(self, seed: int, n: int) -> None:
        rng = np.random.default_rng(seed)
        self.votes, self.initial = (rng.dirichlet(np.full(K, 0.4), n) for _ in range(2))
        self.labels = self.votes.argmax(axis=1)
        rounds = rng.choice([-1, 0, 1, 2], n)  # a label that was given is of round 0
        self.pseudo = PseudoLabels(rounds, np.where(rounds > 0, rng.integers(K, size=n), -1))
        self.truth = rng.choice(np.array(["a", "b", "c", "d", None], dtype=object), n)
        self.verdicts = RULE.judge(self.initial, self.labels)

    def sums(self, rows: slice) -> LabelSums:
        pseudo = PseudoLabels(self.pseudo.rounds[rows], self.pseudo.codes[rows])
        verdicts = RULE.judge(self.initial[rows], self.labels[rows])
        known = known_labels(self.truth[rows], CLASSES, None)
        return LabelSums.of(
            self.labels[rows], self.initial[rows], verdicts, RULE, pseudo, ROUNDS, known
        )


def test_the_slider_goes_from_half_a_percent_to_thirty_in_small_steps():
    errors = np.array(MAX_ERRORS)
    assert (errors[0], errors[-1]) == (0.005, 0.3)
    steps = errors[1:] / errors[:-1]
    assert (steps > 1.1).all()
    assert (steps <= 2.0).all()
    promise = Promise(Confidence(1.0), Confidence(1.0), np.array([[0.0, 0.99], [0.04, 0.9]]))
    assert LabelRule.of(promise, 0.05).max_errors == MAX_ERRORS


def test_the_rule_of_a_fit_is_what_it_promises():
    steps = np.array([[0.0, 0.99], [0.035, 0.9], [0.07, 0.6]])
    promise = Promise(Confidence(2.0), Confidence(1.5), steps)
    rule = LabelRule.of(promise, 0.07)
    assert rule.max_errors == tuple(sorted((*MAX_ERRORS, 0.07)))
    assert rule.max_errors[rule.own] == rule.max_error == 0.07
    expected = [promise.threshold(error) for error in rule.max_errors]
    assert set(expected) == {0.99, 0.9, 0.6}
    np.testing.assert_allclose(rule.thresholds, expected, atol=1e-11)
    assert (rule.rule, rule.cautious) == (promise.rule, promise.cautious)


def test_a_threshold_is_reached_at_equality():
    rule = LabelRule(Confidence(2.0), Confidence(1.0), 0.05, (0.01, 0.05), (0.75, 0.5))
    votes = np.array([[0.75, 0.25], [0.74, 0.26], [0.5, 0.5], [0.49, 0.51]])
    verdicts = rule.judge(votes, np.zeros(4, dtype=int))
    assert verdicts.level.tolist() == [0, 1, 1, 2]
    np.testing.assert_allclose(verdicts.cautious, votes[:, 0])
    np.testing.assert_allclose(verdicts.confidence[:3:2], [0.9, 0.5])


def test_bins_begin_with_their_lower_end_and_the_last_holds_one():
    confidence = np.array([0.0, 0.04, 0.05, 0.96, 1.0, 1.0 + 1e-12])
    level = np.array([1, 1, 0, 0, 3, 3])
    none = PseudoLabels(np.full(6, -1), np.full(6, -1))
    votes = np.tile([0.5, 0.3, 0.2], (6, 1))
    sums = LabelSums.of(
        np.full(6, 2), votes, Verdicts(confidence, confidence, level), RULE, none, ROUNDS
    )
    assert sums.counts.shape == (K, 4, 20)
    assert [int(b) for b in np.flatnonzero(sums.counts[2].sum(axis=0))] == [0, 1, 19]
    assert sums.counts[2, :, [0, 1, 19]].tolist() == [[0, 2, 0, 0], [1, 0, 0, 0], [1, 0, 0, 2]]
    assert sums.lowest.tolist() == [0.05, 0.0, np.inf, 1.0]
    assert sums.confidence.tolist() == pytest.approx([1.01, 0.04, 0.0, 2.0])
    assert sums.doubts.tolist() == [0.0, 0.0]
    assert (sums.n_rows, sums.n_changed, sums.truth) == (6, 6, None)
    assert [LabelSums.merge([sums] * n).n_rows for n in (1, 2)] == [6, 12]


@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(0, 60))
def test_sums_of_parts_are_those_of_all_rows(seed, n, cut):
    rows = Rows(seed, n)
    whole = rows.sums(slice(None))
    parts = LabelSums.merge([rows.sums(slice(cut)), rows.sums(slice(cut, None))])
    np.testing.assert_array_equal(parts.counts, whole.counts)
    np.testing.assert_array_equal(parts.lowest, whole.lowest)
    np.testing.assert_allclose(parts.confidence, whole.confidence, atol=1e-12)
    np.testing.assert_allclose(parts.doubts, whole.doubts, atol=1e-12)
    assert parts.n_changed == whole.n_changed
    assert parts.truth is not None
    assert whole.truth is not None
    for name in ("known", "wrong", "round_known", "round_wrong", "confusion"):
        np.testing.assert_array_equal(getattr(parts.truth, name), getattr(whole.truth, name))
    assert parts.truth.unknown == whole.truth.unknown
    assert parts.truth.initial_wrong == whole.truth.initial_wrong


@given(st.integers(0, 10**6), st.integers(1, 40))
def test_sums_are_what_counting_rows_gives(seed, n):
    rows = Rows(seed, n)
    sums = rows.sums(slice(None))
    confidence = RULE.rule.of(rows.initial, rows.labels)
    cautious = RULE.cautious.of(rows.initial, rows.labels)
    for level, threshold in enumerate(RULE.thresholds):
        accepted = cautious >= threshold
        assert sums.n_accepted(level) == accepted.sum()
        total = sums.confidence[: level + 1].sum()
        assert total == pytest.approx(confidence[accepted].sum())
        for c in range(K):
            mine = accepted & (rows.labels == c)
            bins = np.histogram(confidence[mine], bins=20, range=(0, 1))[0]
            np.testing.assert_array_equal(sums.counts[c, : level + 1].sum(axis=0), bins)
            assert sums.truth is not None
            known = np.array([label is not None for label in rows.truth]) & mine
            wrong = known & (rows.truth != CLASSES[c])
            assert sums.truth.known[c, : level + 1].sum() == known.sum()
            assert sums.truth.wrong[c, : level + 1].sum() == wrong.sum()
    for k in range(ROUNDS):
        chosen = rows.pseudo.rounds == k + 1
        doubt = 1 - RULE.rule.of(rows.initial[chosen], rows.pseudo.codes[chosen])
        assert sums.doubts[k] == pytest.approx(doubt.sum())
    first = rows.initial.argmax(axis=1)
    assert sums.n_changed == (first != rows.labels).sum()
    assert sums.truth is not None
    told = np.array([label is not None for label in rows.truth])
    assert sums.truth.n_known == told.sum()
    assert sums.truth.initial_wrong == (told & (rows.truth != CLASSES[first])).sum()
    for k in range(ROUNDS):
        chosen = told & (rows.pseudo.rounds == k + 1)
        wrong = chosen & (rows.truth != CLASSES[rows.pseudo.codes])
        assert sums.truth.round_known[k] == chosen.sum()
        assert sums.truth.round_wrong[k] == wrong.sum()
    for i, j in np.ndindex(K, K):
        counted = (rows.truth == CLASSES[i]) & (rows.labels == j)
        assert sums.truth.confusion[i, j] == counted.sum()
    assert sums.truth.unknown == Counter("d" for label in rows.truth if label == "d")


@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(0, 30), st.integers(1, 10))
def test_the_best_rows_of_parts_are_the_best_of_all(seed, n, cut, most):
    votes = np.random.default_rng(seed).multinomial(4, np.full(K, 1 / K), n) / 4  # with ties
    rows = np.arange(n)
    parts = [NextRows.of(votes[:cut], rows[:cut], most), NextRows.of(votes[cut:], rows[cut:], most)]
    found = NextRows.merge(parts, most)
    np.testing.assert_array_equal(found.rows, next_to_label(votes, most).rows)
    np.testing.assert_array_equal(found.votes, votes[found.rows])


def test_true_labels_that_no_class_knows_are_refused():
    truth = np.array(["x", None], dtype=object)
    with pytest.raises(ValueError, match="Write both alike"):
        check_some_known(known_labels(truth, CLASSES, "auto"), truth, CLASSES)
    with_marker = known_labels(np.array([0, -1, 1, 7]), np.array([0, 1]), "auto")
    assert with_marker.position.tolist() == [0, 2, 3]  # -1 says that nothing is known
    assert with_marker.codes.tolist() == [0, 1, -1]


def test_what_marks_unlabelled_rows_is_no_true_label():
    labels = np.array(["a", "?", "b", "auto"], dtype=object)
    found = known_labels(labels, np.array(["a", "b"]), "?")
    assert (found.position.tolist(), found.codes.tolist()) == ([0, 2, 3], [0, 1, -1])
    assert found.unknown == Counter(["auto"])
    named_so = known_labels(labels, np.array(["?", "a"]), "?")  # but a class may be called so
    assert named_so.codes.tolist() == [1, 0, -1, -1]
    one = known_labels(np.array([0, 1]), np.array([0]), "auto")
    assert one.codes.tolist() == [0, -1]
    check_some_known(one, np.array([0, 1]), np.array([0]))
    nothing = np.array([None, None], dtype=object)
    check_some_known(known_labels(nothing, CLASSES, "auto"), nothing, CLASSES)
