"""Families of voters by name, and their scales."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from fewlabel.assess.calibration import calibrated
from fewlabel.baselines import LabelSpreadingClassifier
from fewlabel.ensemble.families import (
    ANCHORS,
    FAMILIES,
    FAMILY_TREES,
    OPTIONAL,
    WIDE,
    RangeScaler,
    Voter,
    families_of,
)
from fewlabel.ensemble.graphs import Discriminants, LeafProximity, MetricSpreadingClassifier

# --- names ---------------------------------------------------------------------------------------


def test_default_is_every_family():
    assert [f.name for f in families_of("default")] == list(FAMILIES)


def test_the_default_families_can_be_joined_by_others():
    found = families_of(["default", "network", GaussianNB()])
    assert [f.name for f in found] == [*FAMILIES, "network", "gaussiannb"]
    with pytest.raises(ValueError, match="different names"):
        families_of(["default", "svm"])


def test_names_estimators_and_pairs():
    found = families_of(["svm", GaussianNB(), ("ridge", RidgeClassifier())])
    assert [f.name for f in found] == ["svm", "gaussiannb", "ridge"]
    # Only scores that are no probabilities are calibrated.
    assert [f.calibrated for f in found] == [True, False, True]
    assert all(f.refitted for f in found)  # pseudo-labels teach the user's estimators too


def test_many_columns_bring_more_families():
    """Where columns are more than ten times as many as labels."""
    assert [f.name for f in families_of("default", n_columns=200, n_labeled=20)] == list(FAMILIES)
    wide = families_of("default", n_columns=201, n_labeled=20)
    assert [f.name for f in wide] == [*FAMILIES, *WIDE]


def test_votes_change_by_calibration_only():
    rows, codes = np.array([[0.0], [1.0], [50.0], [51.0]]), np.array([0, 0, 2, 2])
    model = GaussianNB().fit(rows, codes)
    full = np.zeros((4, 3))
    full[:, [0, 2]] = model.predict_proba(rows)
    np.testing.assert_array_equal(Voter("nb", None, model, 3).predict_proba(rows), full)
    raised = Voter("nb", None, model, 3, power=2.0).predict_proba(rows)
    np.testing.assert_array_equal(raised, calibrated(full, 2.0))


@pytest.mark.parametrize(
    ("voters", "message"),
    [
        (["no such"], "no family 'no such'.*forest"),
        ([], "one or more families"),
        (["svm", "svm"], "different names"),
        ([GaussianNB(), GaussianNB()], "pair"),
        ([GaussianNB], "unfitted classifier"),
        ([3], "unfitted classifier"),
    ],
)
def test_bad_voters_are_named(voters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        families_of(voters)


# --- what they are -------------------------------------------------------------------------------

PACKAGED = FAMILIES | {name: OPTIONAL[name] for name in OPTIONAL if not OPTIONAL[name].package}


@pytest.mark.parametrize("name", PACKAGED)
def test_a_family_says_what_its_model_is(name):
    family = PACKAGED[name]
    model = family.make(0, None)
    spreads = isinstance(model, (LabelSpreadingClassifier, MetricSpreadingClassifier))
    assert family.graph == spreads
    assert (family.learns_from == ANCHORS) == spreads
    metrics = {"": type(None), "extra_trees": LeafProximity, "lda": Discriminants}
    assert type(getattr(model, "metric", None)) is metrics[family.teacher]
    assert set(family.held_out) <= set(model.get_params())


@pytest.mark.parametrize(
    ("name", "scaling", "calibrated", "refitted", "sparse", "learns_from", "held_out_rows"),
    [
        ("forest", "none", False, True, True, None, None),
        ("extra_trees", "none", False, True, True, None, None),
        ("svm", "standard", True, True, True, None, None),
        ("semi_lda", "standard", False, True, False, 3000, 1000),
        ("s3vm", "range", True, False, True, 3000, 1000),
        ("spreading", "range", False, True, True, 100_000, 2000),
        ("spreading_white", "standard", False, True, True, 100_000, 2000),
        ("spreading_forest", "none", False, True, True, 100_000, 2000),
        ("spreading_lda", "standard", False, True, False, 100_000, 2000),
        ("spreading_standard", "standard", False, True, True, 100_000, 2000),
        ("lda", "standard", False, True, False, None, None),
        ("screened_lda", "standard", False, True, True, None, None),
        ("network", "standard", False, False, False, None, None),
        ("tabicl", "none", False, False, False, None, None),
    ],
)
def test_how_a_family_is_fed(
    name, scaling, calibrated, refitted, sparse, learns_from, held_out_rows
):
    """The table of docs/mixed_vote.md, and the families that are not among the default ones."""
    family = families_of(name)[0]
    assert (family.scaling, family.calibrated, family.refitted) == (scaling, calibrated, refitted)
    assert (family.sparse, family.learns_from) == (sparse, learns_from)
    assert family.held_out_rows == held_out_rows


def test_the_models_are_those_that_were_chosen():
    made = {name: FAMILIES[name].make(7, 2) for name in FAMILIES}
    assert FAMILY_TREES == 100  # half of the paper's forest
    for name in ("forest", "extra_trees"):
        forest = made[name]
        assert (forest.n_estimators, forest.random_state, forest.n_jobs) == (40, 7, 2)  # in tests
    assert made["svm"].C == 10.0
    assert made["semi_lda"].max_iter == 100
    assert made["s3vm"].tol == 1e-3
    assert made["s3vm"].random_state == 7
    assert made["spreading_forest"].metric.n_trees == 40
    assert OPTIONAL["network"].most_classes == 32


@pytest.mark.parametrize("name", [name for name in FAMILIES if name.startswith("spreading")])
def test_graphs_spread_with_local_weights_and_balanced_classes(name):
    model = FAMILIES[name].make(0, None)
    spreading = getattr(model, "spreading", model)
    assert (spreading.kernel, spreading.n_neighbors, spreading.balanced) == ("local", 10, True)
    assert spreading.tol == 1e-4


class Scores:
    """A model that has scores but no probabilities."""

    def __init__(self, scores, classes):
        self.scores, self.classes_ = np.array(scores), np.array(classes)

    def decision_function(self, X):
        return self.scores


def test_scores_of_two_classes_are_those_of_the_second():
    """softmax of (-s, s) is the logistic function of 2 s."""
    rows = np.zeros((2, 1))
    votes = Voter("a", None, Scores([np.log(3) / 2, -np.log(3) / 2], [0, 2]), 3).votes(rows)
    np.testing.assert_allclose(votes, [[0.25, 0.0, 0.75], [0.75, 0.0, 0.25]])
    three = Scores([[0.0, np.log(2), 0.0]] * 2, [0, 1, 2])
    np.testing.assert_allclose(Voter("a", None, three, 3).votes(rows)[0], [0.25, 0.5, 0.25])


def test_a_model_of_one_class_votes_for_it():
    votes = Voter("a", None, Scores([1.0, 2.0], [1]), 3).votes(np.zeros((2, 1)))
    assert votes.tolist() == [[0.0, 1.0, 0.0]] * 2


def test_graphs_have_the_metrics_of_the_page():
    models = [FAMILIES[name].make(0, None) for name in ("spreading", "spreading_white")]
    assert [(model.n_components, model.whiten) for model in models] == [(50, False), (20, True)]


def test_held_out_votes_come_from_cheaper_models():
    cheaper = {name: dict(f.held_out) for name, f in (FAMILIES | OPTIONAL).items() if f.held_out}
    assert cheaper == {
        "extra_trees": {"n_estimators": 40},
        "semi_lda": {"max_iter": 30},
        "tabicl": {"n_estimators": 2},
    }


# --- scales --------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1))
def test_range_scaler_is_min_max_without_zeros_and_ones(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(12, 4)) * 10.0 ** rng.integers(-3, 4, size=4)
    values[:, 3] = rng.integers(0, 2, size=12)
    scaled = RangeScaler().fit_transform(values)
    expected = MinMaxScaler((-1, 1)).fit_transform(values[:, :3])
    np.testing.assert_allclose(scaled[:, :3], expected, atol=1e-9)
    np.testing.assert_array_equal(scaled[:, 3], values[:, 3])


def test_range_scaler_on_odd_columns():
    values = np.array([[5.0, np.nan, 1.0], [5.0, np.nan, np.nan], [5.0, np.nan, 0.0]])
    scaled = RangeScaler().fit_transform(values)
    np.testing.assert_array_equal(scaled[:, 0], 0.0)  # constant
    new = RangeScaler().fit(values).transform(np.array([[7.0, 3.0, 1.0]]))
    np.testing.assert_array_equal(new[0, [0, 2]], [2.0, 1.0])  # in its own units
    assert np.isnan(scaled[:, 1]).all()
    np.testing.assert_array_equal(scaled[:, 2], values[:, 2])


def test_range_scaler_keeps_sparse_rows_sparse():
    values = sparse.csr_array(np.array([[0.0, -4.0], [3.0, 0.0], [0.0, 2.0]]))
    scaled = RangeScaler().fit_transform(values)
    assert sparse.issparse(scaled)
    np.testing.assert_allclose(scaled.toarray(), [[0, -1], [1, 0], [0, 0.5]])


def test_an_estimator_of_the_users_is_cloned():
    model = LogisticRegression()
    family = families_of([model])[0]
    made = family.make(0, None)
    assert made is not model
    assert isinstance(FAMILIES["svm"].make(0, None), SVC)


@pytest.mark.parametrize("name", ["extra_trees", "lda", "network"])
def test_nobody_else_has_the_name_of_a_family_of_ours(name):
    with pytest.raises(ValueError, match=f"'{name}' is the name of one of our own families"):
        families_of([(name, SVC()), "spreading_forest"])
    assert families_of([("tabicl", SVC())])[0].name == "tabicl"  # one with other parameters, say


@pytest.mark.parametrize("voter", [LinearRegression(), ("a",), (3, SVC()), SVC], ids=str)
def test_what_cannot_vote_is_refused(voter):
    with pytest.raises(TypeError, match="must be"):
        families_of([voter])
