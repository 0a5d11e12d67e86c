"""C-bounds: literal formulas, validity over many instances, equality without mislabelling."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import reference
from fewlabel.bounds.cbound import (
    TrivialBoundWarning,
    alpha_delta,
    c_bound,
    c_bound_imperfect,
    cantelli_bound,
    relaxation_trace,
    smallest_relaxation,
)
from fewlabel.bounds.margins import margin_moments, margin_sums
from fewlabel.bounds.markov import gibbs_bound, tandem_bound
from fewlabel.bounds.mislabeled_error import one_example_bound
from fewlabel.bounds.mislabeling import imperfect_proba
from fewlabel.bounds.table import bounds_table
from fewlabel.bounds.transductive import risk_bound
from fewlabel.bounds.votes import bayes_risk
from support.strategies import N_INSTANCES, mislabeled, mislabeling_matrices, votes_and_proba

ATOL = 1e-9
NOISY = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])


def random_instance(rng):
    """Votes, true P(Y|x), a matrix, its P(Ŷ|x): every regime from noise-free to hopeless."""
    n_rows, n_classes = rng.integers(1, 20), rng.integers(2, 7)
    proba = rng.dirichlet(np.full(n_classes, rng.choice([0.05, 0.5, 3.0])), size=n_rows)
    # Half the time the votes know something about the labels, so that mu_1 is often positive.
    own = rng.dirichlet(np.full(n_classes, rng.choice([0.1, 1.0])), size=n_rows)
    mix = rng.choice([0.0, 0.5, 0.9])
    votes = mix * proba + (1 - mix) * own
    noise = rng.choice([0.0, 0.2, 0.5])
    P = (1 - noise) * np.eye(n_classes) + noise * rng.dirichlet(np.ones(n_classes), n_classes).T
    return votes, proba, P, imperfect_proba(proba, P)


# --- moments ---------------------------------------------------------------------------------


@given(votes_and_proba(max_classes=6))
def test_moments_equal_literal_formula(case):
    votes, proba = case
    weights = np.linspace(0.5, 3.0, votes.shape[1])
    for margin, slow in (
        ("multiclass", reference.margin_moment),
        ("binary", reference.binary_margin_moment),
    ):
        for w in (None, weights):
            first, second = margin_moments(votes, proba, weights=w, margin=margin)
            assert first == pytest.approx(slow(votes, proba, 1, w), abs=ATOL)
            assert second == pytest.approx(slow(votes, proba, 2, w), abs=ATOL)


def test_sums_are_literal_for_rows_that_miss_the_sum_of_one():
    """As probabilities in single precision may; every term is weighed by what the row has."""
    votes, proba = np.array([[0.6, 0.3, 0.1]]), np.array([[0.2, 0.5, 0.29993]])
    sums = margin_sums(votes, proba)
    expected = {
        "loss": proba @ (1 - votes[0]),
        "tandem": proba @ (1 - votes[0]) ** 2,
        "binary": proba @ (2 * votes[0] - 1),
        "binary2": proba @ (2 * votes[0] - 1) ** 2,
        "error": [0.5 + 0.29993],
        "margin": proba @ [0.3, -0.3, -0.5],
        "margin2": proba @ [0.09, 0.09, 0.25],
    }
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(sums, name), [value[0], 0, 0], rtol=1e-12)


def test_a_class_may_weigh_nothing():
    votes, y = [[0.75, 0.25], [0.25, 0.75]], [0, 1]
    assert margin_moments(votes, y, weights=[0.0, 2.0]) == (0.5, 0.25)


@given(votes_and_proba(), st.integers(0, 12))
def test_sums_of_parts_add_up(case, cut):
    votes, proba = case
    cut = min(cut, len(votes))
    assume(0 < cut < len(votes))
    whole = margin_sums(votes, proba)
    parts = margin_sums(votes[:cut], proba[:cut]) + margin_sums(votes[cut:], proba[cut:])
    for name in ("rows", "error", "loss", "tandem", "margin", "margin2"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), atol=ATOL)


def test_many_rows_are_summed_in_chunks():
    rng = np.random.default_rng(0)
    votes, proba = rng.dirichlet(np.ones(3), 20_000), rng.dirichlet(np.ones(3), 20_000)
    halves = margin_sums(votes[:7], proba[:7]) + margin_sums(votes[7:], proba[7:])
    np.testing.assert_allclose(margin_sums(votes, proba).margin2, halves.margin2, rtol=1e-10)
    assert margin_sums(votes, proba).rows.sum() == 20_000


@given(votes_and_proba())
def test_codes_are_the_deterministic_case(case):
    votes, proba = case
    y = proba.argmax(axis=1)
    one_hot = np.eye(votes.shape[1])[y]
    assert margin_moments(votes, y) == margin_moments(votes, one_hot)


# --- bounds against literal formulas ---------------------------------------------------------


@given(mislabeled(max_classes=5), st.floats(0.0, 2.0))
def test_bounds_equal_literal_formulas(case, lam):
    votes, proba, P = case
    imperfect = imperfect_proba(proba, P)
    predicted = {reference.majority(v) for v in votes}
    assume(all(lam + reference.delta_at(P, b) > 1e-3 for b in predicted))
    for bound, order in ((gibbs_bound, 1), (tandem_bound, 2)):
        fast = bound(votes, imperfect, mislabeling=P, relaxation=lam)
        slow = reference.corrected_markov(votes, imperfect, P, lam, order)
        assert fast == pytest.approx(slow, rel=1e-9, abs=1e-7)
    if reference.margin_moment(votes, proba, 1) > 1e-6:
        assert c_bound(votes, proba) == pytest.approx(reference.c_bound(votes, proba), abs=1e-7)
    if reference.margin_moment(votes, imperfect, 1) > 1e-3:
        weights = [1 / (lam + reference.delta_at(P, b)) for b in range(len(P))]
        if reference.margin_moment(votes, imperfect, 1, weights) > 1e-3:
            fast = c_bound_imperfect(votes, imperfect, P, relaxation=lam)
            assert fast == pytest.approx(reference.cbil(votes, imperfect, P, lam), abs=1e-6)


@given(votes_and_proba(max_rows=5, max_classes=4), st.integers(0, 2**32 - 1))
def test_first_and_second_order_bounds_come_from_single_voters(case, seed):
    _, proba = case
    rng = np.random.default_rng(seed)
    predictions = rng.integers(0, proba.shape[1], size=(5, len(proba)))
    q = rng.dirichlet(np.ones(5))
    votes = np.einsum("h,hxc->xc", q, np.eye(proba.shape[1])[predictions])
    gibbs = reference.gibbs_error(predictions, q, proba)
    assert gibbs_bound(votes, proba) == pytest.approx(2 * gibbs, abs=ATOL)
    tandem = reference.tandem_loss(predictions, q, proba)
    assert tandem_bound(votes, proba) == pytest.approx(4 * tandem, abs=ATOL)


# --- validity --------------------------------------------------------------------------------


def test_c_bounds_are_never_below_the_true_error_in_thousands_of_instances():
    """With true posteriors and the true matrix CB and CBIL are theorems."""
    rng = np.random.default_rng(20)
    nontrivial = np.zeros(2, dtype=int)
    for _ in range(N_INSTANCES):
        votes, proba, P, imperfect = random_instance(rng)
        error = bayes_risk(votes, proba)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrivialBoundWarning)
            cb = c_bound(votes, proba)
        cbil = relaxation_trace(votes, imperfect, P, [0.0, 0.1, 0.7]).bound
        assert cb >= error - ATOL
        assert (cbil >= error - ATOL).all()
        nontrivial += cb < 1, cbil.min() < 1
    # The test would be empty if the bounds were mostly trivial.
    assert nontrivial.min() > N_INSTANCES / 5, nontrivial


def test_no_row_of_the_table_is_below_the_true_error():
    rng = np.random.default_rng(22)
    for _ in range(N_INSTANCES // 5):
        votes, proba, P, imperfect = random_instance(rng)
        table = bounds_table(
            votes,
            proba,
            imperfect_proba=imperfect,
            mislabeling=P,
            relaxation=rng.choice([None, 0.0, 0.1, 0.7]),
            exact=True,
            error=bayes_risk(votes, proba),
        )
        for bound in table:
            assert bound.excess >= -ATOL, bound
            assert bound.kind == "guarantee", bound


def test_one_example_bound_is_never_below_the_true_error_in_thousands_of_instances():
    rng = np.random.default_rng(21)
    rows = 0
    for _ in range(N_INSTANCES):
        votes, proba, P, imperfect = random_instance(rng)
        true = 1 - proba[np.arange(len(votes)), votes.argmax(axis=1)]
        for lam in (0.0, 0.3):
            bound = one_example_bound(votes, imperfect, P, relaxation=lam)
            assert (bound >= true - 1e-7).all()
        rows += np.isfinite(bound).sum()
    assert rows > 5 * N_INSTANCES


def test_bounds_fail_when_their_assumption_does():
    """The validity tests above can fail: without the correction, noisy labels mislead."""
    votes = np.array([[0.9, 0.1], [0.9, 0.1]])
    truth, pseudo = np.array([1, 0]), np.array([0, 0])
    assert c_bound(votes, pseudo) < bayes_risk(votes, np.eye(2)[truth])


# --- equality and order ----------------------------------------------------------------------


@given(votes_and_proba())
def test_without_mislabelling_cbil_is_cb(case):
    votes, proba = case
    alpha, delta = alpha_delta(np.eye(votes.shape[1]))
    assert (alpha == 1).all()
    assert (delta == 1).all()
    if margin_moments(votes, proba)[0] > 0:
        assert c_bound_imperfect(votes, proba, np.eye(votes.shape[1])) == c_bound(votes, proba)
    identity = np.eye(votes.shape[1])
    assert tandem_bound(votes, proba, mislabeling=identity) == tandem_bound(votes, proba)


@given(votes_and_proba())
def test_cb_is_at_most_one(case):
    votes, proba = case
    if margin_moments(votes, proba)[0] > 0:
        assert c_bound(votes, proba) <= 1.0


# --- λ ---------------------------------------------------------------------------------------


@given(mislabeled(max_classes=5))
def test_smallest_relaxation_applies_and_less_does_not(case):
    votes, proba, P = case
    lam = smallest_relaxation(votes, P)
    imperfect = imperfect_proba(proba, P)
    tandem_bound(votes, imperfect, mislabeling=P, relaxation=lam)  # does not raise
    if lam > 0:
        with pytest.raises(ValueError, match="Use relaxation >="):
            tandem_bound(votes, imperfect, mislabeling=P, relaxation=max(0.0, lam - 2e-6))


def test_labels_that_tell_nothing_need_a_relaxation():
    """δ = 0: λ + δ must be positive, so λ is the gap."""
    flat = np.full((2, 2), 0.5)
    assert smallest_relaxation([[0.9, 0.1]], flat) == 1e-6
    assert smallest_relaxation([[0.9, 0.1]], flat, gap=0.25) == 0.25
    for bound in (c_bound_imperfect, relaxed_tandem):
        with pytest.raises(ValueError, match="delta must be positive"):
            bound([[0.9, 0.1]], [[0.5, 0.5]], flat)
    assert relaxation_trace([[0.9, 0.1]], [0], flat, [0.0, 0.1]).applies.tolist() == [False, True]


def relaxed_tandem(votes, proba, P):
    return tandem_bound(votes, proba, mislabeling=P)


def test_a_positive_delta_needs_no_relaxation_however_small_it_is():
    assert smallest_relaxation([[0.9, 0.1]], [[0.505, 0.495], [0.495, 0.505]], gap=0.1) == 0.0


def test_the_error_names_a_relaxation_that_works():
    P = [[0.3, 0.6], [0.7, 0.4]]
    votes, imperfect = [[0.9, 0.1]], [[0.55, 0.45]]
    with pytest.raises(ValueError, match=r"class\(es\) \[0\].*Use relaxation >= 0.300001"):
        c_bound_imperfect(votes, imperfect, P)
    assert np.isfinite(c_bound_imperfect(votes, imperfect, P, relaxation=0.300001))


@pytest.mark.parametrize("margin", ["multiclass", "binary"])
@pytest.mark.parametrize("distance", [1e-3, 1e-8, 1e-12])
def test_moments_near_a_tie_are_not_rounding_errors(margin, distance):
    rng = np.random.default_rng(0)
    votes = 0.5 + np.outer(distance * rng.random(50), [-1, 1])
    proba = rng.dirichlet(np.ones(2), 50)
    first = second = Fraction(0)
    for row, p in zip(votes.tolist(), proba.tolist()):
        for c in range(2):
            vote, other = Fraction(row[c]), Fraction(row[1 - c])
            m = 2 * vote - 1 if margin == "binary" else vote - other
            first, second = first + Fraction(p[c]) * m, second + Fraction(p[c]) * m**2
    found = margin_moments(votes, proba, margin=margin)
    assert found == pytest.approx((float(first / 50), float(second / 50)), rel=1e-4, abs=0)


def test_labels_that_were_drawn_are_no_guarantee():
    """One draw for each row can agree with the vote where it matters, as here."""
    votes = np.array([[1.0, 0.0]] * 4 + [[0.5, 0.5]])
    y, drawn = np.array([1, 0, 0, 0, 0]), np.array([0, 0, 0, 0, 1])
    table = bounds_table(
        votes,
        np.eye(2)[y],
        imperfect_proba=drawn,
        mislabeling=[[0.8, 0.2], [0.2, 0.8]],
        exact=True,
        error=0.2,
    )
    below = {bound.name: bound.kind for bound in table if bound.excess < -1e-9}
    assert "CBIL" in below
    assert set(below.values()) == {"estimate"}
    # Without mislabelling a label is its distribution.
    truth = np.eye(2)[y]
    for bound in bounds_table(votes, truth, imperfect_proba=y, mislabeling=np.eye(2), exact=True):
        assert bound.kind == "guarantee"


def test_labels_that_contradict_the_matrix_are_no_guarantee():
    """Labels copied from the vote agree with it always; a noisy matrix says they cannot."""
    votes = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]])
    P = [[0.8, 0.2], [0.2, 0.8]]
    copied = votes.argmax(axis=1)
    for labels, kind in ((copied, "estimate"), (imperfect_proba(votes, P), "guarantee")):
        table = bounds_table(votes, votes, imperfect_proba=labels, mislabeling=P, exact=True)
        corrected = [bound for bound in table if "imperfect" in bound.assumption]
        assert {bound.kind for bound in corrected} == {kind}
        assert all(("contradicted" in b.assumption) == (kind == "estimate") for b in corrected)
        assert all(b.kind == "guarantee" for b in table if b not in corrected)


def test_a_label_that_is_less_probable_than_the_matrix_allows_is_no_guarantee():
    """No class is too probable here; the first is too improbable."""
    votes = np.array([[0.2, 0.5, 0.3], [0.5, 0.2, 0.3]])
    P = 0.4 * np.eye(3) + 0.2  # every label has at least 0.2 and at most 0.6
    for labels, kind in (([0.0, 0.5, 0.5], "estimate"), ([0.2, 0.4, 0.4], "guarantee")):
        table = bounds_table(votes, votes, imperfect_proba=[labels] * 2, mislabeling=P, exact=True)
        assert {b.kind for b in table if "imperfect" in b.assumption} == {kind}


def test_a_class_that_is_never_predicted_needs_no_relaxation():
    P = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.5], [0.1, 0.1, 0.4]]
    votes = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]]
    assert alpha_delta(P)[1][2] > 0
    P = [[0.8, 0.1, 0.1], [0.0, 0.7, 0.7], [0.2, 0.2, 0.2]]
    assert smallest_relaxation(votes[:1], P) == 0.0
    assert relaxation_trace(votes[:1], [0], P, [0.0]).applies.tolist() == [True]
    assert np.isfinite(c_bound_imperfect(votes[:1], [[0.8, 0.1, 0.1]], P))


@given(mislabeled(max_classes=4), st.lists(st.floats(0.0, 1.5), min_size=1, max_size=4))
def test_trace_equals_single_bounds(case, relaxations):
    votes, proba, P = case
    imperfect = imperfect_proba(proba, P)
    trace = relaxation_trace(votes, imperfect, P, relaxations)
    for lam, value, applies in zip(*trace):
        if applies:
            single = c_bound_imperfect(votes, imperfect, P, relaxation=lam)
            assert value == single
        else:
            assert value == 1.0


def test_trace_of_one_relaxation():
    votes, P = np.array([[0.9, 0.1]]), [[0.8, 0.2], [0.2, 0.8]]
    one, many = relaxation_trace(votes, [0], P, 0.5), relaxation_trace(votes, [0], P, [0.5])
    assert one.bound.tolist() == many.bound.tolist()


def test_trace_default_grid():
    trace = relaxation_trace([[0.9, 0.1]], [0], np.eye(2))
    np.testing.assert_allclose(trace.relaxation, np.arange(11) / 10)


# --- what does not apply ---------------------------------------------------------------------


def test_negative_first_moment_is_trivial_and_flagged():
    votes = [[0.9, 0.1], [0.8, 0.2]]
    with pytest.warns(TrivialBoundWarning, match="does not apply"):
        assert c_bound(votes, [1, 1]) == 1.0
    row = {bound.name: bound for bound in bounds_table(votes, [[0.0, 1.0], [0.0, 1.0]])}
    assert row["CB"].value == 1.0
    assert not row["CB"].applies
    assert row["second-order"].value > 1  # reported as it is
    assert [name for name, bound in row.items() if not bound.applies] == ["CB"]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [(0.5, 0.5, 0.4), (0.2, 0.1, 0.5), (0.0, 0.5, None), (0.5, 0.0, None), (-0.5, 0.5, None)],
)
def test_cantelli_by_hand(first, second, expected):
    value, applies = cantelli_bound(0.9, first, second)
    assert applies == (expected is not None)
    assert value == pytest.approx(1.0 if expected is None else expected)


def test_all_ties_are_trivial():
    with pytest.warns(TrivialBoundWarning):
        assert c_bound([[0.5, 0.5]], [[0.5, 0.5]]) == 1.0


def test_table_with_a_relaxation_that_is_too_small_is_flagged():
    P = [[0.3, 0.6], [0.7, 0.4]]
    votes = [[0.9, 0.1]]
    table = bounds_table(votes, votes, imperfect_proba=[0], mislabeling=P, relaxation=0.1)
    corrected = [bound for bound in table if "imperfect" in bound.assumption]
    assert [bound.applies for bound in corrected] == [False] * 3
    assert {bound.value for bound in corrected} == {1.0}


def test_table_with_a_relaxation_that_makes_up_for_nothing_is_flagged():
    """λ + δ = 0, which is not positive."""
    flat, votes = np.full((2, 2), 0.5), [[0.9, 0.1]]
    table = bounds_table(votes, votes, imperfect_proba=[0], mislabeling=flat, relaxation=0.0)
    assert [bound.applies for bound in table] == [True] * 5 + [False] * 3


def test_the_table_holds_the_bounds_it_names():
    votes = np.array([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.5, 0.1, 0.4]])
    proba = np.array([[0.9, 0.1, 0.0], [0.0, 0.9, 0.1], [0.8, 0.0, 0.2]])
    imperfect, options = imperfect_proba(proba, NOISY), {"mislabeling": NOISY, "relaxation": 0.2}
    table = bounds_table(votes, proba, imperfect_proba=imperfect, **options)
    assert {bound.name: bound.value for bound in table} == {
        "plug-in error": pytest.approx(bayes_risk(votes, proba)),
        "TB": risk_bound(votes, proba, tight=True),
        "CB": c_bound(votes, proba),
        "second-order": tandem_bound(votes, proba),
        "first-order": gibbs_bound(votes, proba),
        "CBIL": c_bound_imperfect(votes, imperfect, NOISY, relaxation=0.2),
        "second-order, corrected": tandem_bound(votes, imperfect, **options),
        "first-order, corrected": gibbs_bound(votes, imperfect, **options),
    }
    assert all(bound.applies for bound in table)


def test_the_table_asks_no_relaxation_of_a_class_that_is_never_predicted():
    """λ = 0.05 is enough for class 0; class 2, which has no row, would need 0.5."""
    P = np.array([[0.3, 0.35, 0.1], [0.1, 0.65, 0.8], [0.6, 0.0, 0.1]])
    votes = [[0.9, 0.1, 0.0]]
    table = bounds_table(votes, votes, imperfect_proba=[0], mislabeling=P)
    smallest = smallest_relaxation(votes, P)
    assert smallest == pytest.approx(0.05 + 1e-6)
    assert smallest_relaxation(np.eye(3), P) == pytest.approx(0.5 + 1e-6)
    found = {bound.name: bound.value for bound in table}["CBIL"]
    given = bounds_table(votes, votes, imperfect_proba=[0], mislabeling=P, relaxation=0.1)
    assert all(bound.applies for bound in given)
    assert found == pytest.approx(c_bound_imperfect(votes, [0], P, relaxation=smallest))


@pytest.mark.parametrize(("miss", "kind"), [(1e-6, "guarantee"), (1.5e-6, "estimate")])
@pytest.mark.parametrize("where", [[-1, 1, 0], [1, -0.5, -0.5]], ids=["too low", "too high"])
def test_labels_may_miss_what_the_matrix_allows_by_rounding(miss, kind, where):
    """Each label has at least 0.2 and at most 0.6."""
    P = np.array([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]])
    within = np.array([0.2, 0.4, 0.4] if where[0] < 0 else [0.6, 0.2, 0.2])
    labels = [within + miss * np.array(where)]
    table = bounds_table(VOTES[:1], VOTES[:1], imperfect_proba=labels, mislabeling=P, exact=True)
    assert {bound.kind for bound in table if "imperfect" in bound.assumption} == {kind}


@given(mislabeled())
def test_table_without_a_relaxation_takes_the_best_one(case):
    votes, proba, P = case
    imperfect = imperfect_proba(proba, P)
    table = {
        b.name: b for b in bounds_table(votes, proba, imperfect_proba=imperfect, mislabeling=P)
    }
    trace = relaxation_trace(votes, imperfect, P)
    if table["CBIL"].applies:
        assert table["CBIL"].value <= trace.bound[trace.applies].min(initial=np.inf)
    else:
        assert not trace.applies.any()
    assert {b.kind for b in table.values()} == {"estimate"}


def test_a_bound_that_applies_is_preferred_to_the_trivial_one():
    """Above 1 as it is: without relaxation the first moment is negative, with some it is not."""
    votes = [[0.2, 0.8, 0.0], [0.0, 1.0, 0.0], [0.9, 0.1, 0.0]]
    proba = [[0.5, 0.4, 0.1], [0.2, 0.7, 0.1], [0.7, 0.0, 0.3]]
    P = [[0.5, 0.05, 0.2], [0.25, 0.9, 0.2], [0.25, 0.05, 0.6]]
    imperfect = imperfect_proba(proba, P)
    trace = relaxation_trace(votes, imperfect, P)
    assert not trace.applies[0]
    table = {
        b.name: b for b in bounds_table(votes, proba, imperfect_proba=imperfect, mislabeling=P)
    }
    assert table["CBIL"].applies
    assert table["CBIL"].value == pytest.approx(trace.bound[trace.applies].min())
    assert table["CBIL"].value > 1


def test_the_table_tries_every_tenth_as_a_relaxation():
    """The best one, 0.2, is neither the smallest that will do nor at an end."""
    votes, proba = [[0.2, 0.5, 0.3], [0.3, 0.1, 0.6]], [[0.5, 0.5, 0.0], [0.1, 0.1, 0.8]]
    P = [[0.67, 0.01, 0.31], [0.01, 0.77, 0.0], [0.32, 0.22, 0.69]]
    imperfect = imperfect_proba(proba, P)
    trace = relaxation_trace(votes, imperfect, P)
    best = np.where(trace.applies, trace.bound, np.inf).argmin()
    assert trace.relaxation[best] == pytest.approx(0.2)
    table = {
        b.name: b for b in bounds_table(votes, proba, imperfect_proba=imperfect, mislabeling=P)
    }
    assert table["CBIL"].value == pytest.approx(trace.bound[best])


def test_table_is_a_data_frame():
    pd = pytest.importorskip("pandas")
    votes = [[0.8, 0.2], [0.4, 0.6]]
    frame = pd.DataFrame(bounds_table(votes, votes, error=0.25))
    assert list(frame) == ["name", "value", "kind", "applies", "assumption", "excess"]
    np.testing.assert_allclose(frame["value"] - frame["excess"], 0.25)


VOTES = [[0.6, 0.3, 0.1], [0.1, 0.8, 0.1]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: c_bound([], []), "shape"),
        (lambda: c_bound(np.empty((0, 3)), np.empty((0, 3))), "no rows"),
        (lambda: c_bound([[1.0]], [[1.0]]), "at least 2 columns"),
        (lambda: c_bound(VOTES, [0, 3]), "class codes 0..2"),
        (lambda: c_bound(VOTES, [0, -1]), "Unlabelled rows have no place"),
        (lambda: c_bound(VOTES, [0.0, 1.0]), "integers"),
        (lambda: c_bound(VOTES, [0]), r"shape \(2,\)"),
        (lambda: c_bound(VOTES, [[0.5, 0.5], [0.5, 0.5]]), "same shape"),
        (lambda: c_bound_imperfect(VOTES, VOTES, np.eye(2)), "same shape"),
        (lambda: c_bound_imperfect(VOTES, VOTES, np.ones((3, 3))), "must be a distribution"),
        (lambda: c_bound_imperfect(VOTES, VOTES, [[1, 0, 0.5], [0, 1, 0.5], [0, 0, np.nan]]), "2"),
        (lambda: c_bound_imperfect(VOTES, VOTES, np.ones((2, 3))), "square"),
        (lambda: c_bound_imperfect(VOTES, VOTES, NOISY, relaxation=-0.1), "relaxation must be"),
        (lambda: c_bound_imperfect(VOTES, VOTES, NOISY, relaxation=np.nan), "relaxation must be"),
        (lambda: relaxation_trace(VOTES, VOTES, NOISY, [-1.0]), "relaxation must be"),
        (lambda: margin_moments(VOTES, VOTES, margin="other"), "'multiclass' or 'binary'"),
        (lambda: margin_moments(VOTES, VOTES, weights=[1.0]), "same shape"),
        (lambda: smallest_relaxation(VOTES, np.eye(2)), "same shape"),
        (lambda: bounds_table(VOTES, VOTES, mislabeling=NOISY), "together"),
        (
            lambda: bounds_table(
                VOTES, VOTES, imperfect_proba=VOTES, mislabeling=NOISY, relaxation=np.nan
            ),
            "relaxation must be",
        ),
        (
            lambda: bounds_table(VOTES, VOTES, imperfect_proba=VOTES, mislabeling=np.eye(2)),
            "same shape",
        ),
        (lambda: smallest_relaxation(VOTES, NOISY, gap=0.0), "gap must be"),
        (lambda: smallest_relaxation(VOTES, NOISY, gap=np.nan), "gap must be"),
        (lambda: margin_moments(VOTES, VOTES, weights=[1.0, np.nan, 1.0]), "finite"),
        (lambda: margin_moments(VOTES, VOTES, weights=[1.0, -1.0, 1.0]), "not negative"),
    ],
)
def test_bad_input_is_an_error_that_says_what(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_transposed_matrix_is_recognised():
    with pytest.raises(ValueError, match="pass the transpose"):
        alpha_delta([[0.9, 0.1], [0.5, 0.5]])


@given(st.integers(2, 5).flatmap(mislabeling_matrices))
def test_delta_reads_the_row(P):
    alpha, delta = alpha_delta(P)
    for c in range(len(P)):
        assert alpha[c] == P[c, c]
        assert delta[c] == pytest.approx(reference.delta_at(P, c))
