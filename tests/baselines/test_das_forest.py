"""DAS-RF: the label distribution is optimal, trees draw their own labels, the airbag works."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_moons
from sklearn.ensemble import RandomForestClassifier

from fewlabel import DASForestClassifier, vote_matrix
from fewlabel.baselines.das_forest import _TreeGrower, annealed_labels, draw_labels
from reference import das_label_objective

seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.integers(2, 5), st.sampled_from([1e-3, 1e-2, 1.0]))
def test_annealed_labels_minimise_the_objective(seed, n_classes, temperature):
    rng = np.random.default_rng(seed)
    votes = rng.dirichlet(np.ones(n_classes), size=4)
    best = annealed_labels(votes, strength=0.1, temperature=temperature)
    np.testing.assert_allclose(best.sum(axis=1), 1.0)
    for p, v in zip(best, votes):
        here = das_label_objective(p, v, 0.1, temperature)
        for other in rng.dirichlet(np.ones(n_classes), size=20):
            assert das_label_objective(other, v, 0.1, temperature) >= here - 1e-12


def test_labels_go_from_soft_to_hard():
    votes = np.array([[0.5, 0.3, 0.2]])
    hot = annealed_labels(votes, strength=0.1, temperature=1e6)
    cold = annealed_labels(votes, strength=0.1, temperature=1e-6)
    np.testing.assert_allclose(hot, 1 / 3, atol=1e-6)
    np.testing.assert_allclose(cold, [[1, 0, 0]], atol=1e-12)


def test_draws_follow_the_distribution():
    proba = np.tile([0.5, 0.2, 0.3], (30_000, 1))
    share = np.bincount(draw_labels(proba, np.random.default_rng(0))) / 30_000
    # Five standard errors.
    np.testing.assert_allclose(share, proba[0], atol=5 * 0.5 / np.sqrt(30_000))


def test_draws_survive_rounding():
    proba = np.array([[0.3, 0.7 - 1e-12]])
    assert (draw_labels(proba, _Ones()) == [1]).all()


class _Ones:
    def random(self, shape):
        return np.full(shape, 1 - 1e-16)


def moons(n=300, per_class=8, seed=0):
    X, truth = make_moons(n, noise=0.1, random_state=seed)
    y = np.full(n, -1)
    for c in (0, 1):
        y[np.flatnonzero(truth == c)[:per_class]] = c
    return X.astype(np.float32), y, truth


def test_every_tree_draws_its_own_labels(monkeypatch):
    drawn = []

    def spy(proba, rng):
        drawn.append(draw_labels(proba, rng))
        return drawn[-1]

    monkeypatch.setattr("fewlabel.baselines.das_forest.draw_labels", spy)
    X, y, _ = moons()
    DASForestClassifier(5, n_iter=2, temperature=0.1, random_state=0).fit(X, y)
    assert len(drawn) == 10
    assert len({labels.tobytes() for labels in drawn}) == 10


def test_two_moons_at_least_as_good_as_the_forest():
    X, y, truth = moons()
    clf = DASForestClassifier(100, random_state=0).fit(X, y)
    forest = RandomForestClassifier(100, random_state=0).fit(X[y >= 0], y[y >= 0])
    unlabeled = y == -1
    assert (clf.transduction_ == truth)[unlabeled].mean() >= forest.score(
        X[unlabeled], truth[unlabeled]
    )
    assert not clf.airbag_deployed_


def test_first_forest_is_as_good_as_scikit_learns():
    X, y, truth = moons(1000, per_class=100)
    clf = DASForestClassifier(100, n_iter=0, random_state=0).fit(X, y)
    forest = RandomForestClassifier(100, oob_score=True, random_state=0).fit(X[y >= 0], y[y >= 0])
    assert clf.score(X, truth) == pytest.approx(forest.score(X, truth), abs=0.02)
    assert clf.oob_errors_[0] == pytest.approx(1 - forest.oob_score_, abs=0.03)


def test_out_of_bag_votes_are_of_trees_that_have_not_seen_the_row():
    # A grower with one tree: rows that are in the bag must have no out-of-bag votes.
    X, y, _ = moons(40, per_class=20)
    grower = _TreeGrower(
        X, X, y, np.arange(40), np.arange(0), None, 0, DASForestClassifier()._tree()
    )
    _, votes, out_of_bag = grower.many(np.array([7]))
    in_bag = np.bincount(np.random.default_rng(7).integers(40, size=40), minlength=40) > 0
    assert (out_of_bag[in_bag] == 0).all()
    np.testing.assert_array_equal(out_of_bag[~in_bag], votes[~in_bag])
    assert 0 < in_bag.sum() < 40


@pytest.mark.parametrize("airbag", ["oob", "cross-fit"])
def test_airbag_returns_the_first_forest(airbag):
    # At an absurd temperature the labels are coin flips: the retrained forest must be worse.
    X, y, truth = moons(300, per_class=20)
    settings = {"temperature": 1e6, "cooling": 1.0, "n_iter": 2, "random_state": 0}
    clf = DASForestClassifier(30, airbag=airbag, **settings).fit(X, y)
    assert clf.airbag_deployed_
    first = DASForestClassifier(30, n_iter=0, random_state=0).fit(X, y)
    np.testing.assert_array_equal(clf.predict_proba(X), first.predict_proba(X))
    without = DASForestClassifier(30, airbag=None, **settings).fit(X, y)
    assert not without.airbag_deployed_
    assert without.oob_errors_[-1] > without.oob_errors_[0]
    assert without.score(X, truth) < first.score(X, truth)


def test_later_out_of_bag_error_is_optimistic():
    # Why the docstring warns: the label of a row reaches trees that have not seen the row through
    # its unlabelled neighbours. With random labels the true error of any classifier is 1/2.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), np.full(400, -1)
    y[:60] = rng.integers(2, size=60)
    clf = DASForestClassifier(50, n_iter=5, random_state=0).fit(X, y)
    assert clf.oob_errors_[0] > 0.4
    assert clf.oob_errors_[-1] < clf.oob_errors_[0] - 0.15


def test_cross_fit_airbag_needs_two_labels_of_each_class():
    X, y, _ = moons(100, per_class=1)
    with pytest.raises(ValueError, match="at least two labelled rows of each class"):
        DASForestClassifier(5, n_iter=1, airbag="cross-fit", random_state=0).fit(X, y)


def test_threads_do_not_change_the_result():
    X, y, _ = moons(100)
    one, two = (
        DASForestClassifier(10, n_iter=2, n_jobs=n, random_state=0).fit(X, y) for n in (1, 2)
    )
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-12)
    np.testing.assert_array_equal(one.oob_errors_, two.oob_errors_)


def test_trees_are_voters_of_the_library():
    X, y, _ = moons(100)
    clf = DASForestClassifier(10, n_iter=2, random_state=0).fit(X, y)
    hard = vote_matrix(clf, X, voters="hard")
    np.testing.assert_allclose(hard * 10, np.round(hard * 10), atol=1e-9)
