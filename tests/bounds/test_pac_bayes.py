"""PAC-Bayes: intervals, the theorem's parts, the proof's inequalities, and coverage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import rel_entr
from scipy.stats import binomtest

import reference
from benchmarks.coverage import CASES, EPSILON, simulate
from fewlabel.bounds.cbound import alpha_delta, c_bound, c_bound_imperfect
from fewlabel.bounds.concentration import kl_budget, kl_divergence, kl_interval
from fewlabel.bounds.margins import margin_moments
from fewlabel.bounds.mislabeling import imperfect_proba, mislabeling_matrix
from fewlabel.bounds.pac_bayes import mislabeling_interval, mislabeling_radius, pac_bayes_c_bound
from support.strategies import mislabeled

COUNTS = np.array([[950, 20, 10], [30, 960, 15], [20, 20, 975]])


def good_sample(n=3000, seed=0):
    """Confident votes that are mostly right."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    votes = 0.85 * np.eye(3)[y] + 0.15 * rng.dirichlet(np.ones(3), n)
    return votes, np.where(rng.random(n) < 0.02, (y + 1) % 3, y)


# --- intervals -------------------------------------------------------------------------------


@given(st.floats(0, 1), st.floats(1e-6, 3.0))
def test_kl_interval_inverts_kl(p, budget):
    def kl(q):
        return rel_entr(p, q) + rel_entr(1 - p, 1 - q)

    lower, upper = kl_interval(p, budget)
    assert 0 <= lower <= p <= upper <= 1
    for end, inwards in ((float(upper), -1e-9), (float(lower), 1e-9)):
        if 1e-9 < end < 1 - 1e-9:
            assert kl(end) == pytest.approx(budget, rel=1e-3, abs=1e-9)
            assert kl(end + inwards) <= budget * (1 + 1e-3) + 1e-9


@given(st.floats(0, 1), st.floats(0, 5.0))
def test_kl_is_never_wider_than_pinsker(p, budget):
    lower, upper = kl_interval(p, budget)
    pinsker_lower, pinsker_upper = kl_interval(p, budget, inequality="pinsker")
    # kl is flat at its zero: its inverse is known to the square root of the rounding error only.
    assert pinsker_lower <= lower + 1e-7
    assert upper <= pinsker_upper + 1e-7


@given(st.integers(1, 10**6), st.floats(1e-6, 0.5))
def test_radius_equals_literal_formula(n, epsilon):
    assert mislabeling_radius([n], epsilon)[0] == pytest.approx(reference.radius(n, epsilon))


def test_pinsker_interval_has_the_printed_radius():
    lower, upper = mislabeling_interval(COUNTS, 0.09, inequality="pinsker")
    rows = COUNTS.sum(axis=0)
    radius = mislabeling_radius(rows, 0.09 / 9)  # epsilon is divided over the 9 entries
    frequency = COUNTS / rows
    np.testing.assert_allclose(upper, np.minimum(frequency + radius, 1))
    np.testing.assert_allclose(lower, np.maximum(frequency - radius, 0))


def test_a_class_without_rows_is_unknown():
    lower, upper = mislabeling_interval([[5, 0], [1, 0]], 0.05)
    assert (lower[:, 1] == 0).all()
    assert (upper[:, 1] == 1).all()


def test_a_class_with_one_row():
    """kl(1‖q) = −ln q may be ln(2/ε'), with ε' = ε/4 for each of the four entries."""
    lower, upper = mislabeling_interval([[1, 0], [0, 50]], 0.05)
    assert upper[0, 0] == 1.0
    assert lower[0, 0] == pytest.approx(0.05 / 4 / 2)
    assert upper[1, 0] == pytest.approx(1 - 0.05 / 4 / 2)


@given(st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_kl_divergence_equals_its_definition(n_voters, seed):
    rng = np.random.default_rng(seed)
    q, p = rng.dirichlet(np.full(n_voters, 0.5), 2) + 1e-12
    expected = rel_entr(q / q.sum(), p / p.sum()).sum()
    assert kl_divergence(q, p) == pytest.approx(expected, abs=1e-12)
    assert kl_divergence(3 * q, q) == pytest.approx(0, abs=1e-12)


def test_kl_divergence_is_infinite_outside_the_prior():
    assert kl_divergence([0.5, 0.5], [1.0, 0.0]) == np.inf


# --- the theorem -----------------------------------------------------------------------------


@pytest.mark.parametrize("relaxation", [0.0, 0.2])
@pytest.mark.parametrize("kl", [0.0, 0.7])
def test_printed_options_equal_the_literal_theorem(kl, relaxation):
    votes, y_hat = good_sample()
    counts = 30 * COUNTS
    epsilon = 0.06
    bound = pac_bayes_c_bound(
        votes,
        y_hat,
        counts,
        kl=kl,
        epsilon=epsilon,
        margin="multiclass",
        weighting="predicted",
        inequality="pinsker",
        relaxation=relaxation,
        drawn_labels=True,
    )
    value, mu1, mu2, psi = reference.pac_bayes_printed(
        votes, np.eye(3)[y_hat], counts, kl, epsilon / 2 / 9, epsilon / 2 / 3, relaxation
    )
    assert bound.first == pytest.approx(mu1)
    assert bound.second == pytest.approx(mu2)
    assert bound.psi == pytest.approx(psi)
    assert bound.value == pytest.approx(value)
    assert bound.kind == ("guarantee" if kl == 0 else "estimate")


def test_uniform_weighting_is_the_largest_correction():
    votes, y_hat = good_sample()
    bound = pac_bayes_c_bound(votes, y_hat, 30 * COUNTS, kl=0.5, drawn_labels=True)
    assert bound.kind == "guarantee"
    assert bound.psi == pytest.approx((bound.alpha / bound.delta).max())
    lower, upper = mislabeling_interval(30 * COUNTS, 0.025)
    np.testing.assert_allclose(bound.alpha, np.diag(upper))
    for c in range(3):
        rival = max(upper[c, j] for j in range(3) if j != c)
        assert bound.delta[c] == pytest.approx(lower[c, c] - rival)


@pytest.mark.parametrize("inequality", ["kl", "pinsker"])
@pytest.mark.parametrize(
    ("counts", "share"), [(30 * COUNTS, 0.06 / 2 / 2), (None, 0.06 / 2)], ids=["matrix", "none"]
)
def test_uniform_weighting_shares_epsilon_between_its_two_means(counts, share, inequality):
    """Half of ε for the matrix, if there is one; the rest for two means: ψ needs no part of it."""
    votes, y_hat = good_sample()
    n, kl = len(votes), 0.7
    bound = pac_bayes_c_bound(votes, y_hat, counts, kl=kl, epsilon=0.06, inequality=inequality)
    B = bound.psi / bound.alpha.max()
    first, second = (
        reference.binary_margin_moment(votes, np.eye(3)[y_hat], k, [B] * 3) for k in (1, 2)
    )
    log = np.log(2 * np.sqrt(n) / share)
    if inequality == "pinsker":
        assert bound.first == pytest.approx(first - B * np.sqrt(2 / n * (kl + log)))
        assert bound.second == pytest.approx(min(B, second + B * np.sqrt(2 / n * (2 * kl + log))))
        return

    def kl_of(moment: float, limit: float) -> float:
        p, q = (1 - moment / B) / 2, (1 - limit / B) / 2
        return float(rel_entr(p, q) + rel_entr(1 - p, 1 - q))

    assert bound.first < first
    assert kl_of(first, bound.first) == pytest.approx((kl + log) / n)
    assert bound.second > second
    assert kl_of(second, bound.second) == pytest.approx((2 * kl + log) / n)


@given(mislabeled(max_classes=4))
def test_one_line_is_above_the_correction_of_each_class(case):
    """The proof's step that makes the weight the same for all rows."""
    votes, proba, P = case
    alpha, delta = alpha_delta(P)
    if (delta <= 0.01).any():
        return
    psi = (alpha / delta).max()
    weight = psi / alpha.max()
    imperfect = imperfect_proba(proba, P)
    rows, best = np.arange(len(votes)), votes.argmax(axis=1)
    true, r_hat = 1 - proba[rows, best], 1 - imperfect[rows, best]
    assert (true <= weight * r_hat + psi - weight + 1e-9).all()


def test_many_rows_lead_to_the_plug_in_bound():
    """As n and the counts grow the radii vanish and CBIL with the same matrix is left."""
    votes, y_hat = good_sample(200)
    counts = 10**9 * COUNTS
    P = mislabeling_matrix(counts, smoothing=0)
    plug_in = c_bound_imperfect(votes, y_hat, P)
    gaps = []
    for copies in (10, 1000):
        many_votes, many_labels = np.tile(votes, (copies, 1)), np.tile(y_hat, copies)
        bound = pac_bayes_c_bound(
            many_votes, many_labels, counts, margin="multiclass", weighting="predicted"
        )
        gaps.append(bound.value - plug_in)
    assert gaps[0] > gaps[1] > 0
    assert gaps[1] < 0.03


def test_more_evidence_never_hurts():
    votes, y_hat = good_sample()
    base = {"kl": 1.0, "epsilon": 0.05}
    value = pac_bayes_c_bound(votes, y_hat, 30 * COUNTS, **base).value
    assert pac_bayes_c_bound(votes, y_hat, 300 * COUNTS, **base).value < value
    assert pac_bayes_c_bound(votes, y_hat, 30 * COUNTS, kl=5.0).value > value
    assert pac_bayes_c_bound(votes, y_hat, 30 * COUNTS, kl=1.0, epsilon=0.001).value > value
    pinsker = pac_bayes_c_bound(votes, y_hat, 30 * COUNTS, inequality="pinsker", **base)
    assert pinsker.value > value


def test_without_mislabelling_it_is_the_pac_bayes_c_bound():
    votes, y_hat = good_sample()
    bound = pac_bayes_c_bound(votes, y_hat, None)
    assert bound.psi == 1.0
    first, second = margin_moments(votes, y_hat, margin="binary")
    assert bound.first < first
    assert bound.second > second
    assert bound.value > c_bound(votes, y_hat)


# --- what does not apply ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("votes", "labels", "counts", "options"),
    [
        ([[0.9, 0.1]] * 50, [1] * 50, None, {}),  # first moment negative
        ([[0.9, 0.1]] * 5, [0] * 5, None, {}),  # too few rows
        ([[0.9, 0.1]] * 500, [0] * 500, [[50, 0], [1, 0]], {}),  # a class without labelled rows
        ([[0.9, 0.1]] * 500, [0] * 500, [[3, 1], [1, 3]], {}),  # delta below its radius
        ([[0.9, 0.1]] * 500, [0] * 500, None, {"kl": np.inf}),
    ],
)
def test_what_says_nothing_is_trivial_and_flagged(votes, labels, counts, options):
    bound = pac_bayes_c_bound(votes, labels, counts, **options)
    assert bound.value == 1.0
    assert not bound.applies


def test_a_relaxation_must_be_above_what_delta_lacks():
    votes, labels, few = [[0.9, 0.1]] * 500, [0] * 500, [[3, 1], [1, 3]]
    lacks = float(-pac_bayes_c_bound(votes, labels, few).delta.min())
    at = pac_bayes_c_bound(votes, labels, few, relaxation=lacks)
    assert (at.value, at.applies) == (1.0, False)
    assert np.isnan([at.psi, at.first, at.second]).all()
    assert pac_bayes_c_bound(votes, labels, few, relaxation=lacks + 0.01).psi > 1


@pytest.mark.parametrize("inequality", ["kl", "pinsker"])
def test_a_negative_bound_refutes_its_assumption(inequality):
    """Labels copied from the vote, and a matrix that says they are often wrong."""
    votes = np.tile([[1.0, 0.0], [0.0, 1.0]], (5000, 1))
    counts = [[7000, 3000], [3000, 7000]]
    bound = pac_bayes_c_bound(
        votes, votes.argmax(axis=1), counts, inequality=inequality, drawn_labels=True
    )
    assert bound.value < 0
    assert bound.kind == "estimate"
    assert "contradicted" in bound.assumption


@pytest.mark.parametrize(
    ("margin", "weighting", "kind"),
    [
        ("binary", "uniform", "guarantee"),
        ("binary", "predicted", "estimate"),
        ("multiclass", "uniform", "estimate"),
    ],
)
def test_a_learned_q_is_covered_with_the_default_margin_and_weighting_only(margin, weighting, kind):
    votes, y_hat = good_sample()
    options = {"margin": margin, "weighting": weighting, "drawn_labels": True}
    assert pac_bayes_c_bound(votes, y_hat, 30 * COUNTS, kl=0.5, **options).kind == kind
    assert pac_bayes_c_bound(votes, y_hat, 30 * COUNTS, **options).kind == "guarantee"


@pytest.mark.parametrize("kl", [0.0, 0.5])
@pytest.mark.parametrize("counts", [None, 30 * COUNTS])
def test_labels_of_unknown_origin_give_no_guarantee(kl, counts):
    """They may be pseudo-labels, which agree with the vote that made them."""
    votes, y_hat = good_sample()
    unknown = pac_bayes_c_bound(votes, y_hat, counts, kl=kl)
    drawn = pac_bayes_c_bound(votes, y_hat, counts, kl=kl, drawn_labels=True)
    assert (unknown.kind, drawn.kind) == ("estimate", "guarantee")
    assert unknown.value == drawn.value
    assert "drawn_labels" in unknown.assumption


def test_relaxation_makes_a_small_delta_usable():
    votes, labels = [[0.99, 0.01]] * 4000, [0] * 4000
    few = [[8, 1], [1, 8]]
    assert not pac_bayes_c_bound(votes, labels, few).applies
    assert pac_bayes_c_bound(votes, labels, few, relaxation=1.0).applies


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda v, y: pac_bayes_c_bound(v, y, COUNTS, epsilon=0.0), "epsilon"),
        (lambda v, y: pac_bayes_c_bound(v, y, COUNTS, epsilon=1.0), "epsilon"),
        (lambda v, y: pac_bayes_c_bound(v, y, COUNTS, kl=-1.0), "kl must be"),
        (lambda v, y: pac_bayes_c_bound(v, y, COUNTS, kl=np.nan), "kl must be"),
        (lambda v, y: pac_bayes_c_bound(v, y, COUNTS, margin="x"), "margin"),
        (lambda v, y: pac_bayes_c_bound(v, y, COUNTS, weighting="x"), "weighting"),
        (lambda v, y: pac_bayes_c_bound(v, y, COUNTS, inequality="x"), "inequality"),
        (lambda v, y: pac_bayes_c_bound(v, y, COUNTS, relaxation=-1), "relaxation"),
        (lambda v, y: pac_bayes_c_bound(v, y, np.eye(2)), "same shape"),
        (lambda v, y: pac_bayes_c_bound(v, y, COUNTS + 0.5), "whole numbers"),
        (lambda v, y: pac_bayes_c_bound(v, y[:1], COUNTS), "shape"),
        (lambda v, y: kl_divergence([]), "posterior"),
        (lambda v, y: kl_divergence([1, 1], [1, 1, 1]), "same shape"),
        (lambda v, y: kl_divergence([-1, 2]), "posterior"),
        (lambda v, y: mislabeling_radius([5], 0.0), "epsilon"),
        (lambda v, y: kl_interval(5.0, 0.1), "mean must lie"),
        (lambda v, y: kl_interval(np.nan, 0.1), "mean must lie"),
        (lambda v, y: kl_interval(0.5, -1.0), "budget must be"),
        (lambda v, y: kl_interval(0.5, np.nan), "budget must be"),
    ],
)
def test_bad_input_is_an_error_that_says_what(call, message):
    votes, y_hat = good_sample(10)
    with pytest.raises(ValueError, match=message):
        call(votes, y_hat)


def test_means_may_miss_the_unit_interval_by_rounding_only():
    np.testing.assert_array_equal(kl_interval([-1e-4, 1 + 1e-4], 0.1), kl_interval([0, 1], 0.1))
    for mean in (-1.1e-4, 1 + 1.1e-4):
        with pytest.raises(ValueError, match="mean must lie"):
            kl_interval(mean, 0.1)


def test_the_budget_is_that_of_maurers_lemma():
    found = kl_budget(np.array([0.0, 1.0, 2.0, 100.0]), 0.05, kl=0.3)
    expected = [(0.3 + np.log(2 * np.sqrt(n) / 0.05)) / n for n in (1, 2, 100)]
    np.testing.assert_allclose(found, [np.inf, *expected])


# --- coverage --------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("case", ["ties, Q fixed", "noisy labels, Q learned"])
def test_small_coverage_simulation(case, n_classes):
    """`make coverage` runs all cases with 2,000 draws and prints the binomial interval."""
    assert case in CASES
    row = simulate(case, n_classes, draws=100, seed=1)
    # Rejects if the failure rate is significantly above epsilon.
    assert binomtest(row["bound fails"], 100, EPSILON, alternative="greater").pvalue > 0.01
    assert row["applies"] == 100
    assert float(row["mean bound"]) < 1
    if case.startswith("ties"):
        # Without the radii the same test fails, so it can.
        plain = binomtest(row["without radii fails"], 100, EPSILON, alternative="greater")
        assert plain.pvalue < 0.01
