"""Learning Q: closed forms, optimality against other Q, and that every bound takes a learned Q."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize
from sklearn.datasets import load_iris, make_classification
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import fewlabel
import reference
from fewlabel.bounds.cbound import alpha_delta, c_bound, c_bound_of, class_correction
from fewlabel.bounds.concentration import kl_divergence
from fewlabel.bounds.margins import margin_sums
from fewlabel.bounds.markov import gibbs_bound, tandem_bound
from fewlabel.bounds.mislabeling import held_out_counts, imperfect_proba, mislabeling_matrix
from fewlabel.bounds.pac_bayes import pac_bayes_c_bound
from fewlabel.bounds.table import bounds_table
from fewlabel.bounds.transductive import risk_bound
from fewlabel.bounds.votes import bayes_risk, iter_voters, vote_matrix
from fewlabel.ensemble import bound_posteriors as bound_search
from fewlabel.ensemble.posterior import (
    VoterVotes,
    c_bound_posterior,
    gibbs_posterior,
    learn_posterior,
    mix_votes,
    second_order_posterior,
    tandem_losses,
    uniform_posterior,
)
from support.strategies import distributions, mislabeling_matrices

METHODS = ("uniform", "gibbs", "second-order", "c-bound")
LEARNED = METHODS[1:]


@st.composite
def voters_and_proba(draw, max_voters=5, max_rows=8, max_classes=4):
    """Votes of several voters, some without a vote for a row, and label probabilities."""
    n_voters = draw(st.integers(1, max_voters))
    n_rows = draw(st.integers(1, max_rows))
    n_classes = draw(st.integers(2, max_classes))
    proba = draw(distributions(n_rows, n_classes))
    voters = np.stack([draw(distributions(n_rows, n_classes)) for _ in range(n_voters)])
    # Voters that know something about the labels, so that the C-bound often applies.
    voters = draw(st.sampled_from([0.0, 0.5, 0.9])) * (proba - voters) + voters
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    voters[rng.random((n_voters, n_rows)) < draw(st.sampled_from([0.0, 0.2]))] = 0.0
    return voters, proba


@st.composite
def evidence_and_matrix(draw, **sizes):
    """Labelled and pseudo-labelled rows of the same voters, P(Ŷ|x) and a mislabelling matrix."""
    voters, proba = draw(voters_and_proba(max_rows=12, **sizes))
    assume(voters.shape[1] >= 2)
    cut = draw(st.integers(1, voters.shape[1] - 1))
    P = draw(mislabeling_matrices(proba.shape[1]))
    evidence = VoterVotes(voters[:, :cut], proba[:cut].argmax(axis=1), voters[:, cut:])
    return evidence, imperfect_proba(proba[cut:], P), P


def other_weights(n_voters, seed, *known):
    """Uniform, each voter alone, random ones, and points close to the known ones."""
    rng = np.random.default_rng(seed)
    anywhere = rng.dirichlet(np.ones(n_voters), 10)
    near = [0.99 * q + 0.01 * r for q in known for r in anywhere]
    return [uniform_posterior(n_voters), *np.eye(n_voters), *anywhere, *near]


def sample(n, seed=0, n_voters=6):
    """Rows with known P(Y|x), voters from good to useless (votes given x), and drawn labels."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(3, 0.3), n)
    knows = np.linspace(0.8, 0.0, n_voters)[:, None, None]
    voters = knows * proba + (1 - knows) * rng.dirichlet(np.full(3, 0.5), (n_voters, n))
    y = (rng.random((n, 1)) > proba.cumsum(axis=1)).sum(axis=1).clip(max=2)
    return voters, proba, y


def sample_evidence(seed=0, n_labeled=40, n_unlabeled=200):
    voters, proba, y = sample(n_labeled + n_unlabeled, seed)
    evidence = VoterVotes(voters[:, :n_labeled], y[:n_labeled], voters[:, n_labeled:])
    return evidence, proba[n_labeled:]


# --- the evidence ----------------------------------------------------------------------------


@given(voters_and_proba(), st.integers(0, 2**32 - 1))
def test_errors_and_mixed_votes_equal_literal_formulas(case, seed):
    voters, proba = case
    y = proba.argmax(axis=1)
    evidence = VoterVotes(voters, y)
    np.testing.assert_allclose(evidence.errors, reference.voter_errors(voters, y), atol=1e-12)
    q = np.random.default_rng(seed).dirichlet(np.ones(len(voters)))
    votes = mix_votes(q, voters)
    np.testing.assert_allclose(votes, reference.mixed_votes(q, voters), atol=1e-12)
    np.testing.assert_allclose(votes.sum(axis=1), 1.0)


def test_a_voter_without_a_vote_is_wrong_but_not_decisive():
    evidence = VoterVotes(np.zeros((1, 3, 2)), [0, 0, 1])
    assert evidence.errors.tolist() == [1.0]
    assert mix_votes([1.0], evidence.held_out).tolist() == [[0.5, 0.5]] * 3


def test_wrong_evidence_is_refused_with_a_remedy():
    votes, y = np.full((2, 3, 2), 0.5), [0, 1, 0]
    with pytest.raises(ValueError, match=r"held_out must have shape .* Stack one matrix"):
        VoterVotes(votes[0], y)
    with pytest.raises(ValueError, match=r"held_out must have shape"):
        VoterVotes(votes[:, :0], [])
    with pytest.raises(ValueError, match=r"Labels must have shape \(3,\)"):
        VoterVotes(votes, y[:2])
    with pytest.raises(ValueError, match=r"class codes 0\.\.1"):
        VoterVotes(votes, [0, 1, 2])
    with pytest.raises(ValueError, match=r"same voters and classes.*stack the same voters"):
        VoterVotes(votes, y, votes[:1])
    with pytest.raises(ValueError, match=r"same voters and classes"):
        VoterVotes(votes, y, np.full((2, 3, 4), 0.25))
    broken = votes.copy()
    broken[1, 2, 0] = np.nan
    with pytest.raises(ValueError, match=r"held_out\[1\].* are not finite; the first is row 2"):
        VoterVotes(broken, y)
    with pytest.raises(ValueError, match=r"unlabeled\[1\].* are not finite"):
        VoterVotes(votes, y, broken)
    with pytest.raises(ValueError, match=r"weights must have shape \(2,\)"):
        mix_votes([1.0], votes)
    with pytest.raises(ValueError, match="not all zero"):
        mix_votes([0.0, 0.0], votes)


# --- Gibbs -----------------------------------------------------------------------------------

error_vectors = st.lists(st.floats(0, 1), min_size=1, max_size=8).map(np.array)


@given(error_vectors, st.integers(1, 10**6), st.floats(0, 50))
def test_gibbs_weighs_better_voters_more(errors, n_rows, inverse_temperature):
    q = gibbs_posterior(errors, n_rows, inverse_temperature=inverse_temperature)
    assert q.sum() == pytest.approx(1.0)
    assert (np.diff(q[np.argsort(errors)]) <= 1e-15).all()
    assert q[errors.argmin()] >= q.max() - 1e-15


@given(error_vectors, st.integers(1, 1000), st.floats(0, 5), st.floats(-1, 1))
def test_gibbs_sees_differences_of_errors_only(errors, n_rows, inverse_temperature, shift):
    q = gibbs_posterior(errors, n_rows, inverse_temperature=inverse_temperature)
    shifted = gibbs_posterior(errors + shift, n_rows, inverse_temperature=inverse_temperature)
    np.testing.assert_allclose(q, shifted, atol=1e-10)


@given(error_vectors, st.integers(1, 1000), st.integers(0, 2**32 - 1))
def test_gibbs_of_inverse_temperature_zero_is_the_prior(errors, n_rows, seed):
    prior = np.random.default_rng(seed).dirichlet(np.ones(len(errors)))
    q = gibbs_posterior(errors, n_rows, inverse_temperature=0.0, prior=prior)
    np.testing.assert_allclose(q, prior, atol=1e-12)


@given(error_vectors, st.integers(1, 400), st.floats(0.1, 5), st.integers(0, 2**32 - 1))
def test_no_other_q_has_a_smaller_gibbs_objective(errors, n_rows, inverse_temperature, seed):
    prior = np.random.default_rng(seed).dirichlet(np.full(len(errors), 5.0))
    beta = inverse_temperature * np.sqrt(n_rows)
    q = gibbs_posterior(errors, n_rows, inverse_temperature=inverse_temperature, prior=prior)
    least = reference.gibbs_objective(q, errors, beta, prior)
    # Donsker and Varadhan: the minimum is −ln E_P[exp(−β error)] / β.
    assert least == pytest.approx(-np.log(prior @ np.exp(-beta * errors)) / beta, abs=1e-9)
    for other in other_weights(len(errors), seed, q):
        assert least <= reference.gibbs_objective(other, errors, beta, prior) + 1e-10


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds")  # scipy 1.15, clipped
def test_gibbs_is_what_a_minimiser_finds():
    errors, prior, n_rows = np.array([0.1, 0.15, 0.3, 0.5]), np.array([0.1, 0.2, 0.3, 0.4]), 30
    answer = minimize(
        reference.gibbs_objective,
        uniform_posterior(4),
        args=(errors, 3 * np.sqrt(n_rows), prior),
        method="SLSQP",
        bounds=[(1e-12, 1.0)] * 4,
        constraints={"type": "eq", "fun": lambda q: q.sum() - 1},
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(gibbs_posterior(errors, n_rows, prior=prior), answer.x, atol=1e-5)


def test_gibbs_is_stable_and_keeps_excluded_voters_out():
    q = gibbs_posterior([0.0, 0.5, 1.0], 10**12, inverse_temperature=1e6, prior=[0, 1, 1])
    assert q.tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"errors": [[0.1]], "n_rows": 5}, "errors must be a vector"),
        ({"errors": [np.nan], "n_rows": 5}, "errors must be a vector of finite"),
        ({"errors": [0.1, np.nan, 0.2], "n_rows": 5}, "errors must be a vector of finite"),
        ({"errors": [], "n_rows": 5}, "errors must be a vector"),
        ({"errors": [0.1], "n_rows": 0}, "n_rows must be at least 1"),
        ({"errors": [0.1], "n_rows": np.nan}, "n_rows must be at least 1"),
        ({"errors": [0.1], "n_rows": 5, "inverse_temperature": -1}, "inverse_temperature must be"),
        ({"errors": [0.1], "n_rows": 5, "prior": [1, 1]}, r"prior must have shape \(1,\)"),
        ({"errors": [0.1], "n_rows": 5, "prior": [-1]}, "prior must be finite"),
    ],
)
def test_gibbs_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        gibbs_posterior(**arguments)


def test_uniform_needs_a_voter():
    with pytest.raises(ValueError, match="at least 1"):
        uniform_posterior(0)


# --- second order ----------------------------------------------------------------------------


@given(voters_and_proba(), st.integers(0, 2**32 - 1))
def test_tandem_losses_give_the_tandem_bound_of_the_mixed_vote(case, seed):
    voters, proba = case
    rng = np.random.default_rng(seed)
    q, weight = rng.dirichlet(np.ones(len(voters))), rng.random(len(proba)) + 0.01
    losses = tandem_losses(voters, proba)
    assert 4 * q @ losses @ q == pytest.approx(tandem_bound(mix_votes(q, voters), proba), abs=1e-10)
    weighted = 4 * q @ tandem_losses(voters, proba, row_weight=weight) @ q
    slow = reference.second_order_objective(q, voters, proba, 0.0, None, weight)
    assert weighted == pytest.approx(slow, abs=1e-10)


@given(
    voters_and_proba(),
    st.sampled_from([0.0, 1e-3, 0.06, 1.0, 100.0]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_no_other_q_has_a_smaller_second_order_objective(case, penalty, weighted, seed):
    voters, proba = case
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.full(len(voters), 3.0))
    weight = rng.random(len(proba)) + 0.01 if weighted else None
    q = second_order_posterior(voters, proba, penalty=penalty, prior=prior, row_weight=weight)
    assert q.sum() == pytest.approx(1.0)
    assert (q >= 0).all()
    rest = voters, proba, penalty, prior, weight
    least = reference.second_order_objective(q, *rest)
    for other in other_weights(len(voters), seed, q, prior):
        assert least <= reference.second_order_objective(other, *rest) + 1e-8


@given(voters_and_proba(max_voters=8))
def test_the_second_order_minimum_is_certified(case):
    # F is convex, so F(q) − min F ≤ ∇F(q)·q − min_h ∇F(q)_h (the gap of Frank and Wolfe).
    voters, proba = case
    q = second_order_posterior(voters, proba)
    slope = 8 * tandem_losses(voters, proba) @ q
    assert slope @ q - slope.min() <= 1e-5


def test_second_order_rewards_voters_that_err_elsewhere():
    # The third voter errs most, but where the others, which err together, are right.
    wrong = np.array([[1, 1, 0, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 1, 1, 1, 0, 0, 0]])
    voters, y = np.eye(2)[wrong], np.zeros(8, dtype=int)
    second = second_order_posterior(voters, y)
    gibbs = gibbs_posterior(VoterVotes(voters, y).errors, 8)
    assert second[2] > 1 / 3 > gibbs[2]


def test_priors_and_penalties_at_their_ends():
    voters, proba, _ = sample(50)
    prior = np.array([0.0, 1, 1, 1, 1, 1]) / 5
    excluded = second_order_posterior(voters, proba, prior=prior)
    assert excluded[0] == 0
    assert excluded.sum() == pytest.approx(1)
    assert second_order_posterior(voters, proba, prior=prior, penalty=0.1)[0] == 0
    infinite = second_order_posterior(voters, proba, prior=prior, penalty=np.inf)
    np.testing.assert_allclose(infinite, prior)
    with pytest.raises(ValueError, match="penalty must be"):
        second_order_posterior(voters, proba, penalty=-1)
    with pytest.raises(ValueError, match="row_weight is zero"):
        second_order_posterior(voters, proba, row_weight=np.zeros(50))
    with pytest.raises(ValueError, match="must have the same shape"):
        second_order_posterior(voters, proba[:-1])


# --- C-bounds --------------------------------------------------------------------------------


@given(evidence_and_matrix(), st.integers(0, 2**32 - 1))
def test_c_bound_kernel_equals_the_library_and_its_slope_is_right(case, seed):
    evidence, imperfect, P = case
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(len(evidence.held_out)))
    votes = mix_votes(q, evidence.unlabeled)
    lam = max(0.0, 0.1 - alpha_delta(P)[1].min())
    correction = bound_search._correction_for_all(P, None, len(P))
    value, slope = bound_search._c_bound_and_slope(votes, imperfect, correction)
    sums = margin_sums(votes, imperfect)
    bound, applies = c_bound_of(sums, class_correction(sums, P, lam))
    slow = reference.c_bound_or_first_order(votes, imperfect, P, lam)
    if applies and sums.moments(correction.weight)[0] > 1e-9:
        assert value == pytest.approx(bound, rel=1e-9, abs=1e-9)
    assert value == pytest.approx(slow, rel=1e-9, abs=1e-6)
    # Votes without ties and moments away from the kink have a derivative.
    highest = np.sort(votes, axis=1)
    assume((np.diff(highest, axis=1)[:, -2:] > 1e-4).all())
    assume(abs(sums.moments(correction.weight)[0]) > 1e-3)

    def at(flat):
        matrix = flat.reshape(votes.shape)
        return bound_search._c_bound_and_slope(matrix, imperfect, correction)[0]

    numeric = approx_fprime(votes.ravel(), at, 1e-7).reshape(votes.shape)
    np.testing.assert_allclose(slope, numeric, rtol=1e-3, atol=1e-3 * max(1, abs(slope).max()))


@settings(max_examples=30)
@given(evidence_and_matrix(), st.sampled_from([0.0, 0.06]), st.integers(0, 2**32 - 1))
def test_c_bound_posterior_is_never_worse_than_its_starts(case, penalty, seed):
    evidence, imperfect, P = case
    n_voters = len(evidence.held_out)
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.full(n_voters, 3.0))
    starts = rng.dirichlet(np.ones(n_voters), 3)
    lam = max(0.0, 0.1 - alpha_delta(P)[1].min())
    q = c_bound_posterior(
        evidence,
        pseudo_proba=imperfect,
        mislabeling=P,
        penalty=penalty,
        prior=prior,
        starts=starts,
    )
    assert q.sum() == pytest.approx(1.0)
    assert (q >= 0).all()
    rows = evidence.held_out, evidence.y, evidence.unlabeled, imperfect, P, lam, penalty, prior
    least = reference.c_bound_objective(q, *rows)
    for other in [uniform_posterior(n_voters), prior, *np.eye(n_voters), *starts]:
        assert least <= reference.c_bound_objective(other, *rows) + 1e-8


def test_c_bound_posterior_finds_what_a_grid_finds():
    voters, _, y = sample(150, n_voters=3)
    evidence = VoterVotes(voters, y)
    steps = range(21)
    grid = [np.array([i, j, 20 - i - j]) / 20 for i in steps for j in steps if i + j <= 20]
    rows = voters, y, None, None, None, 0.0, 0.0, None
    least = min(reference.c_bound_objective(q, *rows) for q in grid)
    assert reference.c_bound_objective(c_bound_posterior(evidence), *rows) <= least


def test_c_bound_posterior_leaves_where_the_bound_says_nothing():
    # Two of three voters are wrong nearly always: uniform weights have a negative mean margin.
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    voters = np.eye(2)[[np.where(rng.random(60) < p, y, 1 - y) for p in (0.9, 0.1, 0.2)]]
    evidence = VoterVotes(voters, y)

    def bound(q):
        return bound_search._c_bounds(
            [bound_search._Rows(voters, np.eye(2)[y], bound_search.Correction(*np.ones((2, 2))), 1)]
        )(q)

    start = uniform_posterior(3)
    assert bound(start)[0] > 1
    q = bound_search._descend(bound, start, np.ones(3, dtype=bool))
    assert c_bound(mix_votes(q, voters), y) < 0.5
    assert c_bound_posterior(evidence)[0] > 0.9


def test_c_bound_posterior_refuses_what_does_not_fit():
    evidence, proba = sample_evidence()
    with pytest.raises(ValueError, match=r"give VoterVotes\.unlabeled"):
        c_bound_posterior(VoterVotes(evidence.held_out, evidence.y), pseudo_proba=proba)
    with pytest.raises(ValueError, match="must have the same shape"):
        c_bound_posterior(evidence, pseudo_proba=proba, mislabeling=np.eye(4))
    with pytest.raises(ValueError, match="Use relaxation >="):
        c_bound_posterior(
            evidence, pseudo_proba=proba, mislabeling=np.full((3, 3), 1 / 3), relaxation=0.0
        )
    with pytest.raises(ValueError, match=r"a start must have shape"):
        c_bound_posterior(evidence, starts=[[1.0]])


def test_right_pseudo_labels_need_no_matrix():
    evidence, proba = sample_evidence()
    codes = proba.argmax(axis=1)
    plain = c_bound_posterior(evidence, pseudo_proba=codes)
    perfect = c_bound_posterior(evidence, pseudo_proba=codes, mislabeling=np.eye(3))
    np.testing.assert_allclose(plain, perfect)


# --- by name ---------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("with_unlabeled", [True, False])
def test_learned_weights_are_a_distribution_with_its_price(method, with_unlabeled):
    evidence, _ = sample_evidence()
    if not with_unlabeled:
        evidence = VoterVotes(evidence.held_out, evidence.y)
    prior = np.array([1, 1, 1, 1, 1, 3.0])
    posterior = learn_posterior(method, evidence, prior=prior)
    assert posterior.weights.sum() == pytest.approx(1.0)
    assert (posterior.weights >= 0).all()
    assert posterior.kl == kl_divergence(posterior.weights, prior)
    assert posterior.method == method
    np.testing.assert_array_equal(posterior.errors, evidence.errors)
    if method != "uniform":  # the first two voters are far better than the last three
        assert posterior.weights[:2].sum() > posterior.weights[3:].sum()
        frozen = learn_posterior(method, evidence, prior=prior, inverse_temperature=0.0)
        assert frozen.kl == pytest.approx(0.0, abs=1e-12)


def learned_objective(method, evidence, q, prior):
    """The objective of learn_posterior, written out."""
    penalty = 1 / (3.0 * np.sqrt(len(evidence.y)))
    gibbs = gibbs_posterior(
        reference.voter_errors(evidence.held_out, evidence.y), len(evidence.y), prior=prior
    )
    proba = reference.mixed_votes(gibbs, evidence.unlabeled)
    K = proba.shape[1]
    if method == "second-order":
        labeled = reference.second_order_objective(
            q, evidence.held_out, np.eye(K)[evidence.y], 0.0, prior
        )
        unlabeled = reference.second_order_objective(q, evidence.unlabeled, proba, 0.0, prior)
        return (labeled + unlabeled) / 2 + penalty * reference.kl_of_weights(q, prior)
    predicted = [reference.majority(v) for v in reference.mixed_votes(gibbs, evidence.held_out)]
    voted = [x for x in range(len(evidence.y)) if evidence.held_out[:, x].any()]
    if not voted:
        return reference.c_bound_objective(
            q, evidence.held_out, evidence.y, None, None, None, 0.0, penalty, prior
        )
    counts = held_out_counts(evidence.y[voted], np.array(predicted)[voted], K)
    P = mislabeling_matrix(counts, smoothing=1)
    lam = max(0.0, 0.1 - min(reference.delta_at(P, b) for b in range(K)))
    imperfect = reference.transformed(proba, P)
    return reference.c_bound_objective(
        q, evidence.held_out, evidence.y, evidence.unlabeled, imperfect, P, lam, penalty, prior
    )


@settings(max_examples=25)
@given(evidence_and_matrix(max_classes=3), st.integers(0, 2**32 - 1))
def test_learned_weights_minimise_the_documented_objective(case, seed):
    evidence, _, _ = case
    n_voters = len(evidence.held_out)
    prior = np.random.default_rng(seed).dirichlet(np.full(n_voters, 3.0))
    gibbs = learn_posterior("gibbs", evidence, prior=prior).weights
    for method in ("second-order", "c-bound"):
        q = learn_posterior(method, evidence, prior=prior).weights
        least = learned_objective(method, evidence, q, prior)
        others = [gibbs, prior, uniform_posterior(n_voters), *np.eye(n_voters)]
        if method == "second-order":  # convex: the minimum is global
            others += other_weights(n_voters, seed, q, gibbs)
        for other in others:
            assert least <= learned_objective(method, evidence, other, prior) + 1e-8


@pytest.mark.parametrize("method", LEARNED)
def test_few_labels_do_not_drive_the_weights_to_one_voter(method):
    evidence, _ = sample_evidence(n_labeled=5, n_unlabeled=50)
    few = learn_posterior(method, evidence)
    assert few.weights.max() < 0.9
    many, _ = sample_evidence(n_labeled=2000, n_unlabeled=50)
    assert learn_posterior(method, many).kl > few.kl


@pytest.mark.parametrize("method", METHODS)
def test_rows_without_any_vote_are_votes_for_nobody(method):
    """The class of a row that no voter could vote on says nothing of the voters."""
    evidence, _ = sample_evidence()
    silent = np.zeros((len(evidence.held_out), 1, 3))
    weights = [
        learn_posterior(
            method,
            VoterVotes(
                np.concatenate([evidence.held_out, silent], axis=1),
                np.append(evidence.y, label),
                evidence.unlabeled,
            ),
        ).weights
        for label in range(3)
    ]
    np.testing.assert_allclose(weights[1], weights[0], atol=1e-6)
    np.testing.assert_allclose(weights[2], weights[0], atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_without_any_vote_for_a_labelled_row_the_prior_is_as_good_as_any(method):
    evidence, _ = sample_evidence()
    silent = VoterVotes(np.zeros_like(evidence.held_out), evidence.y, evidence.unlabeled)
    posterior = learn_posterior(method, silent)
    assert posterior.weights.sum() == pytest.approx(1)
    if method != "second-order":  # which has the unlabelled rows
        np.testing.assert_allclose(posterior.weights, posterior.prior, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_a_voter_with_prior_0_gets_no_weight(method):
    evidence, _ = sample_evidence()
    prior = np.array([0.0, 3.0, 1.0, 0.0, 1.0, 1.0])
    posterior = learn_posterior(method, evidence, prior=prior)
    assert (posterior.weights[prior == 0] == 0).all()
    assert np.isfinite(posterior.kl)
    if method == "uniform":
        np.testing.assert_array_equal(posterior.weights, np.array([0, 1, 1, 0, 1, 1]) / 4)


def test_unknown_methods_are_named():
    evidence, _ = sample_evidence()
    with pytest.raises(ValueError, match=r"method must be one of 'uniform', .* Got 'boosting'"):
        learn_posterior("boosting", evidence)
    with pytest.raises(ValueError, match="inverse_temperature must be"):
        learn_posterior("c-bound", evidence, inverse_temperature=np.inf)


def test_public_names():
    assert fewlabel.learn_posterior is learn_posterior
    assert fewlabel.gibbs_posterior is gibbs_posterior


# --- every bound takes a learned Q, and holds for it -----------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(5))
def test_bounds_of_the_mixed_vote_are_above_its_true_risk(method, seed):
    evidence, proba = sample_evidence(seed, n_labeled=30)
    votes = mix_votes(learn_posterior(method, evidence).weights, evidence.unlabeled)
    risk = bayes_risk(votes, proba)
    for bound in (c_bound, tandem_bound, gibbs_bound, risk_bound):
        assert bound(votes, proba) >= risk - 1e-9
    for row in bounds_table(votes, proba, exact=True, error=risk):
        assert row.value >= risk - 1e-9, row


@pytest.mark.parametrize("method", LEARNED)
def test_pac_bayes_holds_for_weights_learned_on_its_own_rows(method):
    # Q is learned on the rows of the bound, and pays for it by KL(Q‖P).
    voters, proba, _ = sample(4000, seed=1)
    for seed in range(8):
        rows, _, y = sample(300, seed=10 + seed)
        posterior = learn_posterior(method, VoterVotes(rows, y))
        votes = mix_votes(posterior.weights, rows)
        bound = pac_bayes_c_bound(votes, y, None, kl=posterior.kl, drawn_labels=True)
        free = pac_bayes_c_bound(votes, y, None)
        assert bound.kind == "guarantee"
        assert bound.value >= free.value
        assert bound.value >= bayes_risk(mix_votes(posterior.weights, voters), proba)


@pytest.mark.parametrize(
    "ensemble",
    [
        RandomForestClassifier(12, max_depth=2, random_state=0),
        BaggingClassifier(DecisionTreeClassifier(max_depth=2), 8, random_state=0),
        VotingClassifier(
            [
                ("linear", LogisticRegression(max_iter=1000)),
                ("bayes", GaussianNB()),
                ("stump", DecisionTreeClassifier(max_depth=1, random_state=0)),
            ],
            voting="soft",
        ),
    ],
    ids=lambda ensemble: type(ensemble).__name__,
)
@pytest.mark.parametrize("method", LEARNED)
def test_ensembles_vote_with_learned_weights(ensemble, method):
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, labeled, rest = np.split(order, [40, 80])
    fitted = ensemble.fit(X[train], y[train])
    evidence = VoterVotes(
        np.stack(list(iter_voters(fitted, X[labeled], voters="soft"))),
        y[labeled],
        np.stack(list(iter_voters(fitted, X[rest], voters="soft"))),
    )
    posterior = learn_posterior(method, evidence)
    votes = vote_matrix(fitted, X[rest], weights=posterior.weights)
    np.testing.assert_allclose(votes, mix_votes(posterior.weights, evidence.unlabeled), atol=1e-12)
    assert (votes.argmax(axis=1) == y[rest]).mean() > 0.8
    counts = held_out_counts(
        y[labeled], mix_votes(posterior.weights, evidence.held_out).argmax(axis=1), 3
    )
    for counted in (counts, None):
        bound = pac_bayes_c_bound(votes, votes.argmax(axis=1), counted, kl=posterior.kl)
        assert bound.kind == "estimate"  # labels of the vote itself
        assert bound.value > 0
    table = bounds_table(
        votes, votes, imperfect_proba=votes, mislabeling=mislabeling_matrix(counts)
    )
    assert {"TB", "CB", "CBIL", "second-order"} <= {row.name for row in table}


def test_a_forest_of_trees_is_searched_in_little_time():
    X, y = make_classification(400, 10, n_informative=5, n_classes=3, random_state=0)
    forest = RandomForestClassifier(60, max_depth=3, random_state=0).fit(X[:100], y[:100])
    votes = np.stack(list(iter_voters(forest, X[100:], voters="soft")))
    evidence = VoterVotes(votes[:, :50], y[100:150], votes[:, 50:])
    for method in ("second-order", "c-bound"):
        posterior = learn_posterior(method, evidence)
        assert 0 < posterior.kl < np.log(60)
