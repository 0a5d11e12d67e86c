from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits, load_iris, make_moons
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fewlabel import (
    BoundPolicy,
    FixedThreshold,
    Selection,
    SelfLearningClassifier,
    bayes_confusion,
    bayes_risk,
    labeled_scorer,
    optimal_thresholds,
)

X, Y = load_iris(return_X_y=True)
HIDDEN = np.random.default_rng(4).random(len(Y)) < 0.85
TARGET = np.where(HIDDEN, -1, Y)
SMALL = RandomForestClassifier(25, random_state=0)

# --- scikit-learn's own checks -----------------------------------------------------------------

SEMI = (
    "labels are -1 and 1 in this check; -1 means unlabelled, as in scikit-learn's own classifiers"
)
ZERO = (
    "without unlabelled rows there is no round; scikit-learn's SelfTrainingClassifier says so too"
)
FOREST = (
    "weights are not repetitions in a bootstrapped forest; scikit-learn lists it for the forest"
)


def expected_failures(estimator):
    failures = {
        "check_classifiers_classes": SEMI,
        "check_non_transformer_estimators_n_iter": ZERO,
    }
    if estimator.estimator is None or isinstance(estimator.estimator, RandomForestClassifier):
        failures["check_sample_weight_equivalence_on_dense_data"] = FOREST
        failures["check_sample_weight_equivalence_on_sparse_data"] = FOREST
    return failures


@pytest.mark.filterwarnings("ignore:y has no unlabelled row")
@pytest.mark.filterwarnings("ignore:divide by zero encountered in log")  # naive Bayes, weights of 0
@parametrize_with_checks(
    [
        SelfLearningClassifier(LogisticRegression()),
        SelfLearningClassifier(GaussianNB(), policy="fixed", max_iter=3),
        SelfLearningClassifier(RandomForestClassifier(10, random_state=0), max_train=5),
        SelfLearningClassifier(n_jobs=1),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# --- Algorithm 1 -------------------------------------------------------------------------------


def by_hand(X, y, base, weighted=True):
    """Algorithm 1 as it is printed: rows move from U to P until U or S is empty."""
    labeled, U = list(np.flatnonzero(y != -1)), list(np.flatnonzero(y == -1))
    P, labels, rounds = [], {}, 0
    model = clone(base).fit(X[labeled], y[labeled])
    supervised = dict(zip(U, model.predict_proba(X[U])))
    while U:
        votes = model.predict_proba(X[U])
        theta = optimal_thresholds(votes, np.array([supervised[row] for row in U]))
        S = [row for row, v in zip(U, votes) if v.max() >= theta[v.argmax()]]
        if not S:
            break
        rounds += 1
        labels |= {row: v.argmax() for row, v in zip(U, votes) if row in set(S)}
        P += S
        U = [row for row in U if row not in set(S)]
        rows = labeled + sorted(P)
        pseudo = [y[row] if y[row] != -1 else labels[row] for row in rows]
        shares = len(rows) / (2 * len(labeled)), len(rows) / (2 * len(P))
        weight = np.repeat(shares, [len(labeled), len(P)]) if weighted else None
        model = clone(base).fit(X[rows], pseudo, sample_weight=weight)
    return model, labels, rounds


# Before scikit-learn 1.9 the last bit of a weight decides between equal splits of a tree: forests
# are compared without weights.
@pytest.mark.parametrize(
    ("base", "weighted"), [(LogisticRegression(max_iter=2000), True), (SMALL, False)]
)
def test_equals_algorithm_1_by_hand(base, weighted):
    model, labels, rounds = by_hand(X, TARGET, base, weighted)
    pseudo_weight = "balanced" if weighted else "uniform"
    clf = SelfLearningClassifier(base, min_gain=0.0, pseudo_weight=pseudo_weight).fit(X, TARGET)
    np.testing.assert_allclose(clf.predict_proba(X), model.predict_proba(X), atol=1e-5)
    assert clf.n_iter_ == rounds
    selected = np.flatnonzero(clf.labeled_iter_ > 0)
    assert sorted(labels) == selected.tolist()
    np.testing.assert_array_equal(clf.pseudo_labels_, [labels[row] for row in selected])


def test_attributes_are_consistent():
    clf = SelfLearningClassifier(SMALL, min_gain=0.0).fit(X, TARGET)
    unlabeled = TARGET == -1
    assert clf.n_features_in_ == 4
    assert clf.n_iter_ == len(clf.history_) == clf.labeled_iter_.max()
    assert (clf.labeled_iter_[~unlabeled] == 0).all()
    assert (clf.labeled_iter_[unlabeled] != 0).all()
    assert (clf.transduction_[~unlabeled] == TARGET[~unlabeled]).all()
    np.testing.assert_array_equal(clf.transduction_[unlabeled], clf.predict(X[unlabeled]))
    np.testing.assert_allclose(
        clf.transduction_proba_[unlabeled], clf.predict_proba(X[unlabeled]), atol=1e-12
    )
    np.testing.assert_allclose(clf.transduction_proba_.sum(axis=1), 1.0)
    left = unlabeled.sum()
    for t, record in enumerate(clf.history_, start=1):
        assert record["iteration"] == t
        assert record["n_unlabeled"] == left
        assert record["n_selected"] == (clf.labeled_iter_ == t).sum()
        assert sum(record["n_selected_per_class"]) == record["n_selected"]
        assert {"seconds_fit", "seconds_votes", "seconds_search"} <= set(record)
        left -= record["n_selected"]
    np.testing.assert_array_equal(clf.thresholds_, clf.history_[-1]["thresholds"])
    np.testing.assert_array_equal(
        clf.initial_estimator_.predict_proba(X),
        clone(SMALL).fit(X[~unlabeled], TARGET[~unlabeled]).predict_proba(X),
    )


def test_bound_is_valid_when_the_label_probabilities_are_the_truth():
    rng = np.random.default_rng(0)
    for _ in range(5):
        truth = rng.dirichlet(np.ones(3), size=len(X))
        clf = SelfLearningClassifier(SMALL, label_proba=truth).fit(X, TARGET)
        votes, proba = clf.transduction_proba_[HIDDEN], truth[HIDDEN]
        assert bayes_risk(votes, proba) <= clf.risk_bound_ + 1e-9
        assert (bayes_confusion(votes, proba) <= clf.confusion_bound_ + 1e-9).all()


def test_self_learning_helps_where_it_should():
    Xm, ym = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    gains = []
    for _ in range(3):
        given = rng.permutation(len(ym))[:60]
        target = np.full(len(ym), -1)
        target[given] = ym[given]
        clf = SelfLearningClassifier(random_state=0).fit(Xm, target)
        hidden = target == -1
        supervised = clf.initial_estimator_.score(Xm[hidden], ym[hidden])
        gains.append((clf.transduction_[hidden] == ym[hidden]).mean() - supervised)
    assert np.mean(gains) > 0.01


@pytest.mark.parametrize("policy", ["bound", "fixed", "curriculum", BoundPolicy(resolution=20)])
@pytest.mark.parametrize("label_proba", ["supervised", "current", "uniform"])
def test_policies_and_label_probabilities(policy, label_proba):
    clf = SelfLearningClassifier(SMALL, policy=policy, label_proba=label_proba).fit(X, TARGET)
    assert clf.score(X, Y) > 0.85
    assert clf.risk_bound_ >= 0


def test_given_label_probabilities_must_fit():
    for wrong, message in [
        (np.full((3, 3), 1 / 3), "label_proba must have shape"),
        (np.full((len(X), 3), 0.5), "probability distribution"),
    ]:
        with pytest.raises(ValueError, match=message):
            SelfLearningClassifier(SMALL, label_proba=wrong).fit(X, TARGET)


def test_user_policy():
    class TopTen:
        def select(self, statistics, iteration):
            K = statistics.n_classes
            votes = [np.repeat(*statistics.predicted_votes(j)) for j in range(K)]
            return Selection(np.full(K, np.sort(np.concatenate(votes))[-10]))

    base = LogisticRegression(max_iter=500)  # no two rows have the same vote
    clf = SelfLearningClassifier(base, policy=TopTen(), max_iter=4).fit(X, TARGET)
    assert [record["n_selected"] for record in clf.history_] == [10] * 4
    assert clf.history_[0]["error_bound"] is None

    class Wrong:
        def select(self, statistics, iteration):
            return Selection(np.zeros(2))

    with pytest.raises(ValueError, match="one threshold for each class"):
        SelfLearningClassifier(SMALL, policy=Wrong()).fit(X, TARGET)


@pytest.mark.parametrize(
    ("params", "condition"),
    [
        ({"max_iter": 1}, "max_iter"),
        ({"max_iter": 0}, "max_iter"),
        ({"policy": FixedThreshold(1.0), "estimator": LogisticRegression()}, "no_selection"),
        ({"policy": "curriculum", "min_gain": 0.0}, "all_labeled"),
        ({"min_gain": 0.5}, "min_gain"),
    ],
)
def test_how_it_ends(params, condition):
    clf = SelfLearningClassifier(**{"estimator": SMALL, **params}).fit(X, TARGET)
    assert clf.termination_condition_ == condition
    assert clf.transduction_.shape == Y.shape


def test_min_gain_is_a_prefix_of_the_papers_run():
    whole = SelfLearningClassifier(SMALL, min_gain=0.0).fit(X, TARGET)
    part = SelfLearningClassifier(SMALL, min_gain=0.1).fit(X, TARGET)
    counts = [record["n_selected"] for record in whole.history_]
    assert [record["n_selected"] for record in part.history_] == counts[: part.n_iter_]
    assert all(n >= 0.1 * HIDDEN.sum() for n in counts[1 : part.n_iter_])


def test_same_seed_same_result():
    first = SelfLearningClassifier(random_state=3, max_train=20).fit(X, TARGET)
    again = SelfLearningClassifier(random_state=3, max_train=20).fit(X, TARGET)
    np.testing.assert_array_equal(first.transduction_proba_, again.transduction_proba_)
    other = SelfLearningClassifier(random_state=4, max_train=20).fit(X, TARGET)
    assert (first.transduction_proba_ != other.transduction_proba_).any()


def test_row_order_and_label_names_change_nothing():
    base = LogisticRegression(max_iter=2000)
    clf = SelfLearningClassifier(base).fit(X, TARGET)
    order = np.random.default_rng(0).permutation(len(X))
    shuffled = SelfLearningClassifier(base).fit(X[order], TARGET[order])
    np.testing.assert_array_equal(shuffled.transduction_, clf.transduction_[order])
    names = np.array(["u", "v", "w"], dtype=object)[Y]
    names[HIDDEN] = None
    named = SelfLearningClassifier(base).fit(X, names)
    np.testing.assert_array_equal(named.transduction_, named.classes_[clf.transduction_])


# --- weights -----------------------------------------------------------------------------------


class Spy(ClassifierMixin, BaseEstimator):
    """Remembers what it was trained on; votes like a naive Bayes classifier."""

    seen: list = []

    def fit(self, X, y, sample_weight=None):
        Spy.seen.append((np.asarray(X), np.asarray(y), sample_weight))
        self.model_ = GaussianNB(var_smoothing=1e-3).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


@pytest.fixture
def spy():
    Spy.seen = []
    return Spy()


def test_labelled_and_pseudo_labelled_rows_have_the_same_total_weight(spy):
    clf = SelfLearningClassifier(spy, policy="curriculum").fit(X, TARGET)
    n_labeled = (~HIDDEN).sum()
    assert Spy.seen[0][2] is None
    for _, _, weight in Spy.seen[1:]:
        assert weight[:n_labeled].sum() == pytest.approx(weight[n_labeled:].sum())
        assert weight.mean() == pytest.approx(1.0)
    assert len(Spy.seen) == clf.n_iter_ + 1


def test_uniform_weights(spy):
    SelfLearningClassifier(spy, policy="curriculum", pseudo_weight="uniform").fit(X, TARGET)
    assert all(weight is None for _, _, weight in Spy.seen)


def test_sample_weight_is_sliced_and_multiplied(spy):
    given = np.random.default_rng(0).random(len(X)) + 0.5
    clf = SelfLearningClassifier(spy, policy="curriculum", pseudo_weight="uniform")
    clf.fit(X, TARGET, sample_weight=given)
    position = {row.tobytes(): i for i, row in enumerate(X)}
    for rows, _, weight in Spy.seen:
        expected = [given[position[row.tobytes()]] for row in rows]
        duplicates = len(X) - len(position)  # iris has equal rows: their weights may swap
        assert (np.abs(weight - expected) > 1e-12).sum() <= 2 * duplicates
    Spy.seen.clear()
    clf.set_params(pseudo_weight="balanced").fit(X, TARGET, sample_weight=given)
    n_labeled = (~HIDDEN).sum()
    for _, _, weight in Spy.seen[1:]:
        assert weight[:n_labeled].sum() == pytest.approx(weight[n_labeled:].sum())
    with pytest.raises(ValueError, match="sample_weight must have shape"):
        clf.fit(X, TARGET, sample_weight=given[:-1])


def test_max_train_samples_by_class_and_keeps_weights_right(spy):
    rng = np.random.default_rng(0)
    many = np.r_[X, X[rng.integers(0, len(X), size=3000)] + rng.normal(0, 0.1, (3000, 4))]
    target = np.r_[TARGET, np.full(3000, -1)]
    clf = SelfLearningClassifier(spy, policy="curriculum", max_train=300, random_state=0)
    clf.fit(many, target)
    n_labeled = (~HIDDEN).sum()
    assert (
        clf.labeled_iter_ > 0
    ).sum() == 3000 + HIDDEN.sum()  # all pseudo-labelled, few trained on
    rows, labels, weight = Spy.seen[-1]
    assert 290 <= len(rows) - n_labeled <= 300
    assert weight[:n_labeled].sum() == pytest.approx(weight[n_labeled:].sum())
    assert weight.mean() == pytest.approx(1.0)
    pseudo = pd.Series(clf.pseudo_labels_).value_counts(normalize=True)
    trained = (
        pd.Series(weight[n_labeled:]).groupby(labels[n_labeled:]).sum() / weight[n_labeled:].sum()
    )
    np.testing.assert_allclose(trained.sort_index(), pseudo.sort_index(), atol=1e-12)
    n_rows = [len(rows) for rows, _, _ in Spy.seen]
    assert max(n_rows) <= n_labeled + 300


def test_base_without_sample_weight_is_told_about_once():
    with pytest.warns(UserWarning, match="takes no sample_weight") as caught:
        clf = SelfLearningClassifier(KNeighborsClassifier(5)).fit(X, TARGET)
    assert len(caught) == 1
    assert clf.score(X, Y) > 0.85
    SelfLearningClassifier(KNeighborsClassifier(5), pseudo_weight="uniform").fit(X, TARGET)


# --- what X may be -----------------------------------------------------------------------------


def test_pandas_columns_reach_a_column_transformer():
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(kind=np.array(list("xyz"))[Y])
    frame.index = frame.index[::-1]
    base = make_pipeline(
        make_column_transformer(
            (StandardScaler(), ["a", "c"]), (OneHotEncoder(handle_unknown="ignore"), ["kind"])
        ),
        LogisticRegression(),
    )
    clf = SelfLearningClassifier(base).fit(frame, pd.Series(TARGET, index=frame.index))
    assert clf.feature_names_in_.tolist() == ["a", "b", "c", "d", "kind"]
    assert clf.score(frame, Y) > 0.95
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(frame.rename(columns={"a": "other"}))


@pytest.mark.filterwarnings("ignore:Support for the dataframe interchange")  # scikit-learn 1.6
def test_polars_frames():
    frame = pl.DataFrame(X, schema=["a", "b", "c", "d"])
    clf = SelfLearningClassifier(SMALL).fit(frame, pl.Series(TARGET))
    assert clf.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert clf.score(frame, Y) > 0.85


@pytest.mark.parametrize("kind", [list, np.array, pd.Series])
def test_text(kind):
    rng = np.random.default_rng(0)
    words = {0: ["cat", "dog", "cow"], 1: ["iron", "gold", "zinc"]}
    y = rng.integers(0, 2, size=80)
    texts = kind([" ".join(rng.choice(words[label], size=4)) for label in y])
    target = np.where(np.arange(80) < 10, y, -1)
    clf = SelfLearningClassifier(make_pipeline(TfidfVectorizer(), LogisticRegression()))
    assert (clf.fit(texts, target).transduction_ == y).mean() > 0.95


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.coo_matrix, sparse.csc_array])
def test_sparse(form):
    learner = SelfLearningClassifier(SMALL, pseudo_weight="uniform")  # as above
    clf, dense = clone(learner).fit(form(X), TARGET), clone(learner).fit(X, TARGET)
    np.testing.assert_allclose(clf.transduction_proba_, dense.transduction_proba_, atol=1e-12)


def test_nan_where_the_base_allows_it():
    holes = X.copy()
    holes[::7, 1] = np.nan
    assert (
        SelfLearningClassifier(HistGradientBoostingClassifier()).fit(holes, TARGET).score(holes, Y)
    )
    assert SelfLearningClassifier(SMALL).fit(holes, TARGET).score(holes, Y) > 0.8
    with pytest.raises(ValueError, match="NaN"):
        SelfLearningClassifier(LogisticRegression()).fit(holes, TARGET)


def test_in_a_pipeline_and_cloned():
    pipe = make_pipeline(StandardScaler(), SelfLearningClassifier(SMALL)).fit(X, TARGET)
    assert pipe.score(X, TARGET) > 0.9  # scored on the labelled rows
    assert clone(pipe).get_params()["selflearningclassifier__estimator__n_estimators"] == 25


@pytest.mark.parametrize(
    "target",
    [
        pd.Series(Y).where(~HIDDEN).astype("Int64"),
        pd.Series(Y).where(~HIDDEN),
        pd.Series(pd.Categorical(np.where(HIDDEN, None, np.array(["a", "b", "c"])[Y]))),
    ],
    ids=["Int64", "float", "categorical"],
)
def test_score_leaves_unlabelled_rows_out(target):
    clf = SelfLearningClassifier(SMALL).fit(X, target)
    assert clf.score(X, target) > 0.9
    with pytest.raises(ValueError, match="no labelled row to score"):
        clf.score(X[HIDDEN], target[HIDDEN])


def test_a_class_unknown_to_fit_is_scored_as_wrong():
    """Also one whose name begins like that of a class."""
    names = np.array(["a", "b", "c"])[Y]
    clf = SelfLearningClassifier(SMALL, missing_label="?").fit(X, np.where(HIDDEN, "?", names))
    longer = np.char.add(names, "b")
    longer[0] = "?"
    assert clf.score(X, names) > 0.9
    assert clf.score(X, longer) == 0.0
    assert labeled_scorer(missing_label="?")(clf, X, longer) == 0.0


def test_metadata_routing():
    class Consumer(Spy):
        def fit(self, X, y, sample_weight=None, site=None):
            Consumer.sites = [*getattr(Consumer, "sites", []), site]
            return super().fit(X, y, sample_weight)

    site = np.arange(len(X))
    with sklearn.config_context(enable_metadata_routing=True):
        base = Consumer().set_fit_request(site=True, sample_weight=True)
        clf = SelfLearningClassifier(base, policy="curriculum").fit(X, TARGET, site=site)
        assert [len(s) for s in Consumer.sites] == [
            len(x) for x, _, _ in Spy.seen[-len(Consumer.sites) :]
        ]
        np.testing.assert_array_equal(Consumer.sites[0], np.flatnonzero(~HIDDEN))
        scale = StandardScaler().set_fit_request(sample_weight=False)
        model = LogisticRegression().set_fit_request(sample_weight=True)
        SelfLearningClassifier(make_pipeline(scale, model)).fit(X, TARGET)
        silent = make_pipeline(scale, LogisticRegression().set_fit_request(sample_weight=False))
        with pytest.warns(UserWarning, match="takes no sample_weight"):
            SelfLearningClassifier(silent).fit(X, TARGET)
        assert clf.n_iter_ == 3
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        SelfLearningClassifier(Consumer()).fit(X, TARGET, site=site)


# --- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (X, np.full(150, -1), "no labelled row"),
        (X, np.where(Y == 0, 0, -1), "one class only"),
        (X, TARGET[:-1], "same number of rows"),
        (X, None, "requires y"),
        (X[:1], [0], "one class only"),
        (np.where(X > 7, np.inf, X), TARGET, "infinity"),
        (X[:, 0], TARGET, "Reshape your data"),
    ],
    ids=["unlabelled", "one class", "lengths", "no y", "one row", "infinite", "1d"],
)
def test_bad_data(X, y, message):
    with pytest.raises(ValueError, match=message):
        SelfLearningClassifier(SMALL).fit(X, y)


@pytest.mark.parametrize(
    "params",
    [
        {"policy": "best"},
        {"label_proba": "truth"},
        {"pseudo_weight": 2},
        {"max_iter": -1},
        {"min_gain": 1.0},
        {"max_train": 0},
        {"estimator": "tree"},
        {"callback": 3},
    ],
)
def test_bad_parameters(params):
    with pytest.raises((ValueError, TypeError), match=next(iter(params))):
        SelfLearningClassifier(**params).fit(X, TARGET)


def test_base_that_cannot_vote():
    with pytest.raises(TypeError, match="no `predict_proba`"):
        SelfLearningClassifier(RidgeClassifier()).fit(X, TARGET)


def test_no_unlabelled_row_is_said():
    with pytest.warns(UserWarning, match="no unlabelled row"):
        clf = SelfLearningClassifier(SMALL).fit(X, Y)
    assert clf.termination_condition_ == "no_unlabeled"
    assert clf.n_iter_ == 0
    assert np.isnan(clf.risk_bound_)
    assert np.isnan(clf.thresholds_).all()
    np.testing.assert_array_equal(clf.transduction_, Y)


def test_one_label_a_class_and_two_classes():
    Xm, ym = make_moons(200, noise=0.05, random_state=0)
    target = np.full(200, -1)
    for c in (0, 1):
        target[np.flatnonzero(ym == c)[0]] = c
    clf = SelfLearningClassifier(random_state=0).fit(Xm, target)
    assert set(clf.transduction_) == {0, 1}


def test_one_label_a_class_drawn_per_class_has_no_estimate():
    target = np.where(np.isin(np.arange(len(Y)), [0, 50, 100]), Y, -1)
    clf = SelfLearningClassifier(random_state=0, labels="per class").fit(X, target)
    assert np.isnan(clf.error_.value)
    assert (clf.error_.low, clf.error_.high) == (0.0, 1.0)


def test_class_that_is_never_predicted():
    """A label that no unlabelled row resembles: its threshold is 1, and no row gets it."""
    far = np.r_[X[Y != 2], [[100.0] * 4]]
    target = np.r_[np.where(np.arange(100) % 10 == 0, Y[:100], -1), 2]
    clf = SelfLearningClassifier(LogisticRegression(max_iter=5000), min_gain=0).fit(far, target)
    assert clf.history_[0]["thresholds"][2] == 1.0
    assert (clf.pseudo_labels_ != 2).all()


def test_not_fitted():
    with pytest.raises(NotFittedError):
        SelfLearningClassifier().predict(X)
    with pytest.raises(NotFittedError):
        SelfLearningClassifier().score(X, Y)


def test_progress(capsys):
    seen = []
    clf = SelfLearningClassifier(SMALL, verbose=1, callback=seen.append).fit(X, TARGET)
    assert capsys.readouterr().out.count("pseudo-labelled") == clf.n_iter_
    assert seen == clf.history_
