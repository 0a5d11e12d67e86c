"""FewLabelClassifier: the mixed vote, its Q, its rounds, and what a user sees of them."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from fewlabel import (
    FewLabelClassifier,
    LabelSpreadingClassifier,
    bayes_risk,
    gibbs_posterior,
    kl_divergence,
    pac_bayes_c_bound,
    risk_bound,
    vote_matrix,
)
from fewlabel.assess.held_out import cross_fitted_votes, folds_of
from fewlabel.ensemble import families, family_trainer, kept_rounds
from fewlabel.ensemble.mixed_vote import MixedVote
from fewlabel.self_learning.bounds_of_fit import gather

X, Y = load_wine(return_X_y=True)
HIDDEN = np.random.default_rng(4).random(len(Y)) < 0.8
TARGET = np.where(HIDDEN, -1, Y)
FAST = ["svm", "lda", "spreading"]


@pytest.fixture(scope="module")
def fitted() -> FewLabelClassifier:
    return FewLabelClassifier(random_state=0).fit(X, TARGET)


# --- scikit-learn's own checks -----------------------------------------------------------------

EXPECTED = {
    "check_classifiers_classes": "-1 marks unlabelled rows by default",
    "check_non_transformer_estimators_n_iter": "without unlabelled rows there is no round",
    "check_sample_weight_equivalence_on_dense_data": "label spreading takes no weights",
    "check_sample_weight_equivalence_on_sparse_data": "label spreading takes no weights",
}


@parametrize_with_checks(
    [FewLabelClassifier(FAST, random_state=0)], expected_failed_checks=lambda _: EXPECTED
)
def test_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(left out|no unlabelled row).*")
        check(estimator)


# --- what it learns ----------------------------------------------------------------------------


def test_it_learns_and_says_from_whom(fitted):
    assert (fitted.transduction_[HIDDEN] == Y[HIDDEN]).mean() > 0.9
    assert [v.name for v in fitted.voters_] == list(families.FAMILIES)
    weights = np.array([v.weight for v in fitted.voters_])
    assert weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(weights, fitted.posterior_.weights)
    np.testing.assert_allclose([1 - v.accuracy for v in fitted.voters_], fitted.posterior_.errors)
    assert all(0 < v.seconds < 600 for v in fitted.voters_)


def test_q_is_the_gibbs_posterior_of_the_held_out_losses(fitted):
    n_labeled = int((~HIDDEN).sum())
    truth = np.eye(3)[Y[~HIDDEN]]
    held_out = fitted.initial_estimator_.evidence_.held_out
    losses = ((held_out - truth) ** 2).sum(axis=2).mean(axis=1) / 2
    q = gibbs_posterior(losses, n_labeled, inverse_temperature=5.0)
    q = np.where(q < 0.03, 0, q)  # lighter voters are not asked
    np.testing.assert_allclose(fitted.posterior_.weights, q / q.sum())
    assert fitted.posterior_.kl == pytest.approx(kl_divergence(fitted.posterior_.weights))


def test_the_vote_is_the_weighted_mean_of_the_voters(fitted):
    vote = fitted.estimator_
    expected = sum(q * v.predict_proba(X) for q, v in zip(vote.weights, vote.estimators))
    np.testing.assert_allclose(fitted.predict_proba(X), expected)
    # The library's own function for voters under Q says the same.
    np.testing.assert_allclose(vote_matrix(vote, X, weights=vote.weights), expected)
    np.testing.assert_array_equal(fitted.predict(X), vote.predict(X))


def test_first_votes_are_those_of_voters_without_pseudo_labels(fitted):
    """The first mixed vote is rebuilt from its parts: same voters, labelled rows only."""
    first = fitted.initial_estimator_
    rows = np.flatnonzero(HIDDEN)
    total = np.zeros((len(rows), 3))
    for q, voter in zip(first.weights, first.estimators):
        if voter.transductive:
            total += q * voter.finish(voter.model.label_distributions_[rows])
        else:
            total += q * voter.predict_proba(X[rows])
    np.testing.assert_allclose(fitted.initial_votes_, total)
    (svm,) = [voter for voter in first.estimators if voter.name == "svm"]
    assert len(svm.model.support_) <= (~HIDDEN).sum()


def test_bounds_of_the_library_take_the_mixed_vote(fitted):
    tb = risk_bound(fitted.transduction_proba_[HIDDEN], fitted.label_proba_, tight=True)
    assert fitted.risk_bound_ == pytest.approx(tb)
    names = [bound.name for bound in fitted.bounds(X, TARGET, y_true=Y)]
    assert {"supervised estimate", "TB", "CB", "CBIL"} <= set(names)
    held_out = fitted.initial_estimator_.held_out_votes_
    y = Y[~HIDDEN]
    loose = pac_bayes_c_bound(held_out, y, None, kl=fitted.posterior_.kl)
    tight = pac_bayes_c_bound(held_out, y, None, kl=0.0)
    assert loose.value >= tight.value


def test_bounds_with_the_true_probabilities_hold(fitted):
    """TB is a guarantee where label_proba is true: here the labels themselves."""
    truth = np.eye(3)[Y[HIDDEN]]
    votes = fitted.transduction_proba_[HIDDEN]
    error = (votes.argmax(axis=1) != Y[HIDDEN]).mean()
    assert risk_bound(votes, truth) >= error - 1e-12


def test_thresholds_are_taken_by_the_risks_and_bounds():
    """Equal weights add up to 1 with a rounding error, and so do the votes and thresholds."""
    trees = [(f"tree {i}", DecisionTreeClassifier(random_state=i)) for i in range(9)]
    clf = FewLabelClassifier(trees, inverse_temperature=0, random_state=0).fit(X, TARGET)
    assert clf.thresholds_.max() > 1
    votes = clf.transduction_proba_[HIDDEN]
    risk = bayes_risk(votes, votes, thresholds=clf.thresholds_)
    assert risk <= risk_bound(votes, votes, thresholds=clf.thresholds_) + 1e-12


def test_self_learning_teaches_the_families():
    digits, labels = load_digits(return_X_y=True)
    given = np.random.RandomState(1).rand(len(labels)) < 0.04
    target = np.where(given, labels, -1)
    clf = FewLabelClassifier(["svm", "spreading"], inverse_temperature=1, random_state=0)
    clf.fit(digits, target)
    rows = ~given
    alone = FewLabelClassifier(["svm"], random_state=0, max_iter=0).fit(digits, target)
    before = (alone.transduction_[rows] == labels[rows]).mean()
    after = (clf.transduction_[rows] == labels[rows]).mean()
    assert after > before + 0.03
    assert clf.n_iter_ == 1
    first, last = clf.initial_estimator_.estimators, clf.estimator_.estimators
    assert [a.model is b.model for a, b in zip(first, last, strict=True)] == [False, False]
    # Pseudo-labels spread on the graph that is there.
    assert first[1].model.graph_ is last[1].model.graph_


def test_a_family_that_is_not_refitted_keeps_its_votes(monkeypatch):
    monkeypatch.setattr(kept_rounds, "prefers_new_labels", lambda *votes: True)
    clf = FewLabelClassifier(["s3vm", "lda"], random_state=0, min_gain=0).fit(X, TARGET)
    first = {v.name: v for v in clf.initial_estimator_.estimators}
    final = {v.name: v for v in clf.estimator_.estimators}
    assert clf.n_iter_ > 0
    assert final["s3vm"] is first["s3vm"]
    assert final["lda"].model is not first["lda"].model


def test_without_temperature_every_family_weighs_the_same():
    clf = FewLabelClassifier(FAST, inverse_temperature=0, random_state=0, max_iter=0)
    clf.fit(X, TARGET)
    np.testing.assert_allclose(clf.posterior_.weights, 1 / 3)
    assert clf.posterior_.kl == 0


def test_many_voters_of_little_weight_all_count():
    voters = [(f"nb {i}", GaussianNB()) for i in range(101)]
    clf = FewLabelClassifier(voters, random_state=0, max_iter=0).fit(X, TARGET)
    np.testing.assert_allclose(clf.posterior_.weights, 1 / 101)
    assert len(clf.estimator_.estimators) == 101


# --- input -------------------------------------------------------------------------------------


def test_names_and_frames():
    names = np.array(["a", "b", "c"], dtype=object)[Y]
    target = pd.Series(names).where(~HIDDEN, None)
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])
    clf = FewLabelClassifier(FAST, random_state=0).fit(frame, target)
    assert set(clf.predict(frame)) <= set(names)
    assert list(clf.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(frame.rename(columns={"c0": "other"}))


def test_texts_of_a_frame_are_encoded_as_the_fit_learned_it():
    frame = pd.DataFrame({"size": X[:, 0], "kind": np.array(["red", "white", "rosé"])[Y]})
    clf = FewLabelClassifier(["lda"], max_iter=1, random_state=0).fit(frame, TARGET)
    assert (clf.predict(frame)[HIDDEN] == Y[HIDDEN]).mean() > 0.9
    assert clf.fit(X, TARGET).table_encoder_ is None  # what an earlier fit learned is forgotten
    assert (clf.predict(X)[HIDDEN] == Y[HIDDEN]).mean() > 0.9


def test_sparse_rows_are_learned_by_all():
    clf = FewLabelClassifier(FAST, random_state=0).fit(sparse.csr_matrix(X), TARGET)
    assert not any(v.left_out for v in clf.voters_)
    assert (clf.predict(sparse.csr_matrix(X))[HIDDEN] == Y[HIDDEN]).mean() > 0.6


def test_missing_values():
    holes = X.copy()
    holes[::5, 3] = np.nan
    clf = FewLabelClassifier(random_state=0).fit(holes, TARGET)
    assert not any(v.left_out for v in clf.voters_)
    assert (clf.transduction_[HIDDEN] == Y[HIDDEN]).mean() > 0.9
    assert (clf.predict(holes)[HIDDEN] == Y[HIDDEN]).mean() > 0.9


def test_new_rows_may_lack_values_though_no_row_of_fit_did(fitted):
    holes = X.copy()
    holes[::5, 3] = np.nan
    assert (fitted.predict(holes)[HIDDEN] == Y[HIDDEN]).mean() > 0.8


@pytest.mark.parametrize(("n_first", "n_second"), [(1, 2), (1, 8), (2, 8)])
def test_a_class_with_a_single_label(n_first, n_second):
    """Folds without its only row have one class, which some families learn but cannot vote on."""
    target = np.full(len(Y), -1)
    target[np.flatnonzero(Y == 0)[:n_first]] = 0
    target[np.flatnonzero(Y == 1)[:n_second]] = 1
    rows = Y < 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*left out.*")
        # The first rows of each class are no random sample.
        warnings.filterwarnings("ignore", message="The estimate of the error is unsafe")
        clf = FewLabelClassifier(random_state=0).fit(X[rows], target[rows])
        clf.report()
    hidden = target[rows] == -1
    assert (clf.transduction_[hidden] == Y[rows][hidden]).mean() > 0.7


def test_rows_that_nobody_could_vote_on_are_not_judged():
    """Not even the rows of the first class, for which a vote without a winner would be right."""
    target = np.full(len(Y), -1)
    target[np.flatnonzero(Y == 1)[:10]] = 1
    labeled = np.flatnonzero(target == 1)
    clf = FewLabelClassifier(["svm", GaussianNB()], random_state=0)
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max, size=2)[0]
    target[labeled[folds_of(10, family_trainer.N_FOLDS, int(seed))[0][1]]] = 0
    clf.fit(X, target)
    held_out = clf.initial_estimator_.held_out_votes_
    assert held_out.any(axis=1).tolist() == (target[labeled] == 1).tolist()
    evidence = gather(clf)
    assert evidence.y.tolist() == [1] * 8
    assert clf.bounds(X, target)[0].value == np.mean(evidence.held_out.argmax(axis=1) != 1)


def test_a_family_that_learns_but_cannot_vote_is_left_out():
    weight = np.where(Y == 0, 0.0, 1.0)  # the SVM forgets a class whose rows have no weight
    with pytest.warns(UserWarning, match="SVM with RBF kernel is left out"):
        clf = FewLabelClassifier(["svm", "forest"], random_state=0).fit(X, TARGET, weight)
    assert clf.voters_[0].weight == 0


def test_a_labelled_row_of_weight_zero_is_as_if_it_were_not_there():
    """Wrong labels that do not count: neither in training nor in held-out errors."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    rows = rng.normal(size=(40, 2)) + 2 * y[:, None]
    hidden = np.full(40, -1)
    # Copies of the same rows, so that scales and variances stay what they are.
    three, two = np.tile(rows, (3, 1)), np.tile(rows, (2, 1))
    weight = np.repeat([1.0, 0.0, 1.0], 40)
    # Those who take weights, and those who do not.
    voters = [GaussianNB(), "svm", "lda", KNeighborsClassifier(3)]
    clf = FewLabelClassifier(voters, max_iter=0, random_state=0)
    of_three, of_two = np.r_[y, 1 - y, hidden], np.r_[y, hidden]
    with_zeros = clone(clf).fit(three, of_three, weight)
    without = clone(clf).fit(two, of_two)
    for a, b in zip(with_zeros.voters_, without.voters_, strict=True):
        assert a.accuracy == b.accuracy
        assert a.weight == pytest.approx(b.weight, rel=1e-4)
    tables = (
        with_zeros.bounds(three, np.r_[y, 1 - y, hidden]),
        without.bounds(two, np.r_[y, hidden]),
    )
    for a, b in zip(*tables, strict=True):
        assert a.value == pytest.approx(b.value, rel=1e-4)


def test_held_out_fits_heed_weights():
    weight = np.random.default_rng(0).random(len(Y))
    clf = FewLabelClassifier([GaussianNB()], random_state=0, max_iter=0).fit(X, TARGET, weight)
    given = np.flatnonzero(~HIDDEN)
    np.testing.assert_array_equal(clf.labeled_weight_, weight[given])
    seed = int(np.random.RandomState(0).randint(np.iinfo(np.int32).max, size=2)[0])
    expected = cross_fitted_votes(
        GaussianNB(), X[given], Y[given], random_state=seed, sample_weight=weight[given]
    )
    np.testing.assert_allclose(clf.initial_estimator_.held_out_votes_, expected)
    plain = cross_fitted_votes(GaussianNB(), X[given], Y[given], random_state=seed)
    assert np.abs(plain - expected).max() > 1e-6


def test_equal_weights_change_nothing():
    plain = FewLabelClassifier(["lda", "svm"], random_state=0).fit(X, TARGET)
    even = FewLabelClassifier(["lda", "svm"], random_state=0).fit(X, TARGET, np.ones(len(Y)))
    np.testing.assert_array_equal(even.transduction_proba_, plain.transduction_proba_)
    assert even.labeled_weight_ is None
    assert even.bounds(X, TARGET) == plain.bounds(X, TARGET)


def test_a_family_that_fails_is_left_out_and_told():
    class Broken(LogisticRegression):
        def fit(self, *args, **kwargs):
            raise ValueError("no wish to learn")

    with pytest.warns(UserWarning, match="Broken is left out.*no wish to learn"):
        clf = FewLabelClassifier(["lda", Broken()], random_state=0).fit(X, TARGET)
    assert clf.voters_[1].weight == 0
    assert np.isnan(clf.voters_[1].accuracy)
    with (
        pytest.warns(UserWarning, match="left out"),
        pytest.raises(ValueError, match=r"No family of voters could be trained.*no wish to learn"),
    ):
        FewLabelClassifier([Broken()]).fit(X, TARGET)


def test_as_many_labels_as_classes():
    target = np.full(len(Y), -1)
    for c in range(3):
        target[np.flatnonzero(c == Y)[0]] = c
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LDA cannot learn from one row a class, and says so
        clf = FewLabelClassifier(random_state=0).fit(X, target)
    assert (clf.transduction_[target == -1] == Y[target == -1]).mean() > 0.6


def test_no_unlabelled_row_is_supervised_learning():
    with pytest.warns(UserWarning, match="no unlabelled row"):
        clf = FewLabelClassifier(["lda", "svm"], random_state=0).fit(X, Y)
    assert clf.termination_condition_ == "no_unlabeled"
    assert clf.score(X, Y) > 0.9


def test_text_is_refused():
    with pytest.raises(ValueError, match=r"could not convert|numeric"):
        FewLabelClassifier(FAST).fit([["a"], ["b"], ["c"]], [0, 1, -1])


@pytest.mark.parametrize("bad", [{"inverse_temperature": -1.0}, {"time_budget": -1}, {"voters": 3}])
def test_bad_parameters_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        FewLabelClassifier(**bad).fit(X, TARGET)


# --- use ---------------------------------------------------------------------------------------


def test_small_temperatures_and_budgets_are_taken():
    FewLabelClassifier(inverse_temperature=0.5, time_budget=0.5)._validate_params()


def test_rows_may_be_sparse_and_lack_values():
    tags = FewLabelClassifier().__sklearn_tags__().input_tags
    assert tags.sparse
    assert tags.allow_nan


def test_weights_that_are_all_zero_are_refused():
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        FewLabelClassifier(FAST).fit(X, TARGET, sample_weight=np.zeros(len(X)))
    with pytest.raises(ValueError, match="sample_weight is zero for every labelled row"):
        FewLabelClassifier(FAST).fit(X, TARGET, sample_weight=(TARGET == -1).astype(float))


def unfitted_learner(rows, codes, **params):
    clf = FewLabelClassifier(**params)
    clf.classes_, clf.labeled_weight_ = np.arange(3), None
    clf._class_shares = clf._wanted_shares()
    return clf._learner(rows, codes, 0)


def test_what_the_learner_is_told():
    plain = unfitted_learner(X, TARGET, max_train=None)
    assert (plain.max_train, plain.balanced, plain.class_shares) == (len(X), False, None)
    balanced = unfitted_learner(X, TARGET, scoring="balanced", max_train=7)
    assert (balanced.max_train, balanced.balanced) == (7, True)
    np.testing.assert_allclose(balanced.class_shares, 1 / 3)


def test_columns_that_are_ten_times_as_many_as_labels_bring_more_families():
    """51 columns and 5 labels; sparse rows have many columns that are mostly 0."""
    codes, rows = np.r_[0, 1, 2, 0, 1, np.full(20, -1)], np.ones((25, 51))
    names = [[f.name for f in unfitted_learner(x, codes).families] for x in (rows, rows[:, :50])]
    assert names == [[*families.FAMILIES, *families.WIDE], list(families.FAMILIES)]
    thin = unfitted_learner(sparse.csr_array(rows), codes)
    assert [f.name for f in thin.families] == list(families.FAMILIES)


def test_voters_of_the_users():
    voters = [("nb", GaussianNB()), RandomForestClassifier(20, random_state=0), "lda"]
    spreading = LabelSpreadingClassifier()
    clf = FewLabelClassifier([*voters, ("near", spreading)], random_state=0).fit(X, TARGET)
    assert [v.name for v in clf.voters_] == ["nb", "randomforestclassifier", "lda", "near"]
    assert not hasattr(spreading, "graph_")  # what the user gave is cloned
    assert clf.score(X[HIDDEN], Y[HIDDEN]) > 0.9


def test_seeds_decide_everything():
    one, two = (FewLabelClassifier(random_state=3).fit(X, TARGET) for _ in range(2))
    np.testing.assert_array_equal(one.transduction_proba_, two.transduction_proba_)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_it_is_a_self_learner_with_other_voters():
    clf = clone(FewLabelClassifier(FAST, max_iter=1, random_state=0))
    assert "estimator" not in clf.get_params()
    records = []
    clf.set_params(callback=records.append).fit(X, TARGET)
    assert isinstance(clf.estimator_, MixedVote)
    assert [r["name"] for r in records if "name" in r] == FAST
    begun = [r for r in records if "training" in r]
    assert [r["position"] for r in begun] == [*range(1, len(FAST) + 1)]
    assert np.isnan(begun[0]["seconds_left"])
    assert begun[-1]["seconds_left"] > 0
    assert clf.n_iter_ == 1
    assert records[-1] is clf.history_[0]
    assert (clf.labeled_iter_[~HIDDEN] == 0).all()
    assert clf.report(y_true=Y) is not None


def test_verbose_tells_of_families_and_rounds(capsys):
    FewLabelClassifier(FAST, verbose=1, random_state=0).fit(X, TARGET)
    told = capsys.readouterr().out
    assert "[FewLabelClassifier] label spreading: held-out accuracy" in told
    assert "[FewLabelClassifier] round 1: pseudo-labelled" in told


def test_large_data_is_timed_first(monkeypatch):
    iris, labels = load_iris(return_X_y=True)
    target = np.where(np.arange(150) % 5 == 0, labels, -1)
    monkeypatch.setattr(family_trainer, "ALWAYS_FAST", 100)
    monkeypatch.setattr(family_trainer, "ROWS_A_SECOND", 0)
    monkeypatch.setattr(
        family_trainer.FamilyTrainer,
        "_expected_seconds",
        lambda self, family, max_train: 1e6 if family.name == "spreading" else 0.0,
    )
    with pytest.warns(UserWarning, match="label spreading is left out: it would take about"):
        clf = FewLabelClassifier(FAST, random_state=0).fit(iris, target)
    assert clf.voters_[2].weight == 0
    assert "spreading" not in [v.name for v in clf.estimator_.estimators]
    no_limit = FewLabelClassifier(FAST, time_budget=None, random_state=0).fit(iris, target)
    assert not any(v.left_out for v in no_limit.voters_)
