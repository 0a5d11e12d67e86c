"""The search over the simplex and its objectives, against closed forms and fine grids."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import approx_fprime

import reference
from fewlabel.bounds.cbound import Correction, alpha_delta, c_bound
from fewlabel.ensemble import bound_posteriors as search
from fewlabel.ensemble import posterior
from fewlabel.ensemble.posterior import (
    VoterVotes,
    c_bound_posterior,
    learn_posterior,
    mix_votes,
    second_order_posterior,
    tandem_losses,
    uniform_posterior,
)

ONE_EACH = Correction(np.ones(2), np.ones(2))
NOISY = np.array([[0.8, 0.3], [0.2, 0.7]])
Y = np.array([0, 0, 1, 1, 0, 1])
# Two voters that know something: one is surer, the other errs elsewhere.
VOTERS = np.array(
    [
        [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4], [0.7, 0.3], [0.1, 0.9]],
        [[0.6, 0.4], [0.3, 0.7], [0.2, 0.8], [0.1, 0.9], [0.9, 0.1], [0.4, 0.6]],
    ]
)
GRID = [np.array([t, 1 - t]) for t in np.linspace(0, 1, 401)]


# --- the search ------------------------------------------------------------------------------


def test_the_minimum_of_a_linear_bound_is_the_gibbs_posterior():
    """min_q a·q + λ KL(q‖p) is at q ∝ p exp(−a/λ)."""
    a, prior = np.array([0.3, 0.1, 0.2, 0.0]), np.array([0.5, 0.25, 0.25, 0.0])
    for penalty in (0.05, 0.5):
        found = search.minimise(lambda q: (float(a @ q), a), prior, penalty)
        expected = prior * np.exp(-a / penalty)
        np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-5)


def test_a_voter_that_the_prior_excludes_gets_no_weight_though_it_is_the_best():
    a = np.array([0.3, 0.2, -1.0])
    found = search.minimise(lambda q: (float(a @ q), a), np.array([0.5, 0.5, 0.0]), 0.0)
    np.testing.assert_allclose(found, [0.0, 1.0, 0.0], atol=1e-9)


def test_kl_and_its_slope_by_hand():
    """The slope is ln(q/p) + 1, and finite at a weight of 0: that of 1e-12."""
    kl, slope = search._kl(np.array([0.0, 0.25, 0.75]), np.array([0.25, 0.25, 0.5]))
    assert kl == pytest.approx(0.75 * np.log(1.5))
    np.testing.assert_allclose(slope, [np.log(4e-12) + 1, 1.0, np.log(1.5) + 1])


def test_the_three_best_starts_are_descended_from(monkeypatch):
    """P, the uniform Q and each voter alone, the best first."""
    a, begun = np.array([0.1, 0.2, 0.3, 0.4]), []
    monkeypatch.setattr(search, "_descend", lambda objective, q, allowed: begun.append(q) or q)
    found = search.minimise(lambda q: (float(a @ q), a), np.array([0.0, 0.0, 0.5, 0.5]), 0.0)
    assert [q.tolist() for q in begun] == [[0, 0, 1, 0], [0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5]]
    assert found.tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize(
    ("reached", "expected"),
    [
        ([0.25, 0.25], [0.5, 0.5]),
        ([-1e-9, 1.0], [0.0, 1.0]),
        ([0.0, 0.0], [0.25, 0.75]),
        ([np.nan, 1.0], [0.25, 0.75]),
    ],
)
def test_where_a_search_ends_is_put_on_the_simplex_or_its_start_is_taken(
    monkeypatch, reached, expected
):
    monkeypatch.setattr(search, "minimize", lambda *_, **__: SimpleNamespace(x=np.array(reached)))
    found = search._descend(None, np.array([0.25, 0.75]), np.ones(2, dtype=bool))
    np.testing.assert_allclose(found, expected)


def test_small_row_weights_are_weights():
    for weight in (0.01, 1.0, 7.0):
        weighted = tandem_losses(VOTERS, Y, row_weight=np.full(6, weight))
        np.testing.assert_allclose(weighted, tandem_losses(VOTERS, Y))


def test_a_single_voter_has_all_the_weight():
    assert uniform_posterior(1).tolist() == [1.0]
    assert second_order_posterior(VOTERS[:1], Y).tolist() == [1.0]
    assert c_bound_posterior(VoterVotes(VOTERS[:1], Y, VOTERS[:1]), pseudo_proba=Y).tolist() == [1]


# --- the objectives --------------------------------------------------------------------------


@pytest.mark.parametrize("with_pseudo", [False, True])
@pytest.mark.parametrize("penalty", [0.05, 0.5])
def test_the_c_bound_posterior_is_the_best_of_a_fine_grid(with_pseudo, penalty):
    prior = np.array([0.2, 0.8])
    unlabeled = VOTERS[:, ::-1] if with_pseudo else None
    imperfect = np.array([[0.7, 0.3], [0.4, 0.6], [0.6, 0.4]] * 2) if with_pseudo else None
    evidence = VoterVotes(VOTERS, Y, unlabeled)
    found = c_bound_posterior(
        evidence,
        pseudo_proba=imperfect,
        mislabeling=NOISY,
        relaxation=0.3,
        penalty=penalty,
        prior=prior,
    )
    rest = VOTERS, Y, unlabeled, imperfect, NOISY, 0.3, penalty, prior
    best = min(GRID, key=lambda q: reference.c_bound_objective(q, *rest))
    assert 0.05 < best[0] < 0.95  # neither voter alone
    np.testing.assert_allclose(found, best, atol=0.004)


def test_each_part_counts_by_its_share():
    q, unlabeled = np.array([0.3, 0.7]), VOTERS[:, ::-1]
    labels = np.eye(2)[Y]
    parts = [
        search._Rows(VOTERS, labels, ONE_EACH, 0.25),
        search._Rows(unlabeled, labels, ONE_EACH, 0.5),
    ]
    bound = search._c_bounds(parts)
    value, slope = bound(q)
    first, second = c_bound(mix_votes(q, VOTERS), Y), c_bound(mix_votes(q, unlabeled), Y)
    assert value == pytest.approx(0.25 * first + 0.5 * second)
    np.testing.assert_allclose(slope, approx_fprime(q, lambda p: bound(p)[0], 1e-7), atol=1e-5)


def test_votes_that_are_all_ties_have_the_first_order_bound():
    ties = np.full((3, 2), 0.5)
    assert search._c_bound_and_slope(ties, ties, ONE_EACH)[0] == 1.0


def test_the_correction_takes_the_given_relaxation():
    alpha, delta = alpha_delta(NOISY)
    for given in (0.0, 0.3):
        found = search._correction_for_all(NOISY, given, 2)
        np.testing.assert_allclose(found.weight, 1 / (given + delta))
        np.testing.assert_allclose(found.psi, (given + alpha) / (given + delta))
    # By default δ is at least 0.1 for each class: here it is -0.1 and -0.1.
    wrong = search._correction_for_all(NOISY[::-1] * 0.2 + 0.4, None, 2)
    np.testing.assert_allclose(wrong.weight, 1 / 0.1)
    enough = search._correction_for_all(NOISY, None, 2)
    np.testing.assert_allclose(enough.weight, 1 / delta)


def test_little_evidence_is_evidence():
    """β = 0.1 √6 is below 1, and Q is still the minimum of the objective with 1/β."""
    found = learn_posterior("second-order", VoterVotes(VOTERS, Y), inverse_temperature=0.1)
    penalty = 1 / (0.1 * np.sqrt(6))
    rest = VOTERS, np.eye(2)[Y], penalty, np.array([0.5, 0.5])
    best = min(GRID, key=lambda q: reference.second_order_objective(q, *rest))
    np.testing.assert_allclose(found.weights, best, atol=0.004)
    assert abs(found.weights[0] - 0.5) > 0.004


def test_labelled_and_unlabelled_rows_count_half_each():
    unlabeled, prior = VOTERS[:, ::-1], np.array([0.5, 0.5])
    evidence = VoterVotes(VOTERS, Y, unlabeled)
    proba = mix_votes(learn_posterior("gibbs", evidence).weights, unlabeled)

    def objective(q):
        parts = [(VOTERS, np.eye(2)[Y]), (unlabeled, proba)]
        bounds = [reference.second_order_objective(q, *part, 0.0, prior) for part in parts]
        return sum(bounds) / 2 + reference.kl_of_weights(q, prior) / (3.0 * np.sqrt(6))

    found = learn_posterior("second-order", evidence).weights
    np.testing.assert_allclose(found, min(GRID, key=objective), atol=0.004)


def test_the_matrix_is_that_of_the_gibbs_vote_smoothed_by_one_row(monkeypatch):
    """Winners are right on 5 of 6 rows; the wrong one is of class 1, of which there are 4."""
    told = {}
    monkeypatch.setattr(
        posterior, "c_bound_posterior", lambda _, **given: told.update(given) or given["prior"]
    )
    votes = np.stack([0.8 * np.eye(2)[Y] + 0.1] * 2)
    evidence = VoterVotes(votes, [1, *Y[1:]], votes[:, :1])
    learn_posterior("c-bound", evidence, inverse_temperature=2.0)
    P = np.array([[(2 + 5 / 6) / 3, (1 + 1 / 6) / 5], [(1 / 6) / 3, (3 + 5 / 6) / 5]])
    np.testing.assert_allclose(told["mislabeling"], P)
    np.testing.assert_allclose(told["pseudo_proba"], [P @ [0.9, 0.1]])
    assert told["penalty"] == pytest.approx(1 / (2.0 * np.sqrt(6)))
    np.testing.assert_allclose(told["starts"], [[0.5, 0.5]])
