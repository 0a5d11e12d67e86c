"""A data set on which voters are trained: what they are fed, how judged, when left out."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from fewlabel import LabelSpreadingClassifier, SemiLDAClassifier
from fewlabel.assess.calibration import calibrated
from fewlabel.assess.held_out import cross_fitted_votes, folds_of
from fewlabel.baselines._wide import WideLDA
from fewlabel.ensemble import family_trainer as workbench
from fewlabel.ensemble.families import FAMILIES, OPTIONAL, Family, Voter, families_of
from fewlabel.ensemble.family_trainer import N_FOLDS, FamilyTrainer
from fewlabel.ensemble.graphs import local_spreading

X, Y = load_wine(return_X_y=True)
LABELED = np.random.default_rng(1).permutation(len(Y))[:30]
CODES = np.full(len(Y), -1)
CODES[LABELED] = Y[LABELED]
HIDDEN = np.flatnonzero(CODES == -1)


@pytest.fixture
def bench() -> FamilyTrainer:
    return FamilyTrainer(X, CODES, 3, seed=0)


def first_voter(bench: FamilyTrainer, family: Family) -> Voter:
    return bench.train(family, bench.labeled, bench.codes[bench.labeled])


def test_missing_values_are_filled_for_those_who_need_it():
    holes = X.copy()
    holes[::7, 2] = np.nan
    bench = FamilyTrainer(holes, CODES, 3, seed=0)
    assert np.isfinite(bench.view("standard")[1]).all()
    assert np.isnan(bench.view("none")[1]).any()  # trees take them as they are
    for family in FAMILIES.values():
        votes = bench.vote(first_voter(bench, family), family, HIDDEN)
        assert np.isfinite(votes).all()


@pytest.mark.parametrize("scaling", ["standard", "range"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # a column without any value
def test_a_column_without_values_stays(scaling):
    holes = X.copy()
    holes[:, 2] = np.nan
    scaler, scaled = FamilyTrainer(holes, CODES, 3, seed=0).view(scaling)
    assert scaled.shape == X.shape
    assert np.isfinite(scaler.transform(holes[:5])).all()


# --- votes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda f: f.name)
def test_a_voter_votes_on_rows_as_the_user_has_them(family, bench):
    voter = first_voter(bench, family)
    held_out = bench.held_out(family, voter)
    votes = bench.vote(voter, family, HIDDEN)
    assert votes.shape == (len(HIDDEN), 3)
    np.testing.assert_allclose(votes.sum(axis=1), 1.0)
    assert (votes.argmax(axis=1) == Y[HIDDEN]).mean() > 0.75
    assert bench.accuracy(held_out) > 0.7
    if not voter.transductive:  # new rows are scaled on the way: nothing else may differ
        np.testing.assert_allclose(voter.predict_proba(X[HIDDEN]), votes)
    else:
        assert (voter.predict(X[HIDDEN]) == votes.argmax(axis=1)).mean() > 0.9


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda f: f.name)
def test_held_out_votes_do_not_see_the_labels(family, bench):
    """A label may change its own row's held-out vote only by the power that all rows share."""
    raw = replace(family, calibrated=False)
    before = bench.held_out(raw, first_voter(bench, raw))
    position = 4
    codes = CODES.copy()
    codes[bench.labeled[position]] = (codes[bench.labeled[position]] + 1) % 3
    other = FamilyTrainer(X, codes, 3, seed=0)
    after = other.held_out(raw, first_voter(other, raw))
    np.testing.assert_allclose(after[position], before[position], atol=1e-12)


def test_a_class_that_a_model_has_not_seen_gets_no_vote():
    some = LABELED[Y[LABELED] != 1]
    bench = FamilyTrainer(X, CODES, 3, seed=0)
    voter = bench.train(FAMILIES["svm"], some, Y[some])
    votes = bench.vote(voter, FAMILIES["svm"], HIDDEN)
    assert (votes[:, 1] == 0).all()
    np.testing.assert_allclose(votes.sum(axis=1), 1.0)


def test_scores_become_calibrated_votes(bench):
    family = FAMILIES["svm"]
    voter = first_voter(bench, family)
    bench.held_out(family, voter)
    scores = voter.model.decision_function(bench.view("standard")[1][HIDDEN])
    softmax = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    expected = calibrated(softmax, voter.power)
    np.testing.assert_allclose(bench.vote(voter, family, HIDDEN), expected)
    assert voter.power != 1.0


def test_two_classes_have_one_column_of_scores():
    X2, Y2 = load_iris(return_X_y=True)
    X2, Y2 = X2[50:], Y2[50:] - 1
    codes = np.where(np.arange(100) % 5 == 0, Y2, -1)
    bench = FamilyTrainer(X2, codes, 2, seed=0)
    family = FAMILIES["svm"]
    voter = first_voter(bench, family)
    rows = np.flatnonzero(codes == -1)
    votes = bench.vote(voter, family, rows)
    scaled = bench.view("standard")[1][rows]
    np.testing.assert_array_equal(votes.argmax(axis=1), voter.model.predict(scaled))


def test_weights_reach_the_models_that_take_them(bench):
    family = families_of([("nb", GaussianNB())])[0]
    rows, codes = bench.labeled, bench.codes[bench.labeled]
    weight = np.where(codes == 0, 5.0, 1.0)
    voter = bench.train(family, rows, codes, weight)
    expected = clone(GaussianNB()).fit(X[rows], codes, sample_weight=weight)
    np.testing.assert_allclose(voter.model.class_prior_, expected.class_prior_)


def test_transductive_families_see_a_sample_of_the_unlabelled_rows(bench):
    family = replace(FAMILIES["semi_lda"], learns_from=20)
    voter = first_voter(bench, family)
    assert len(voter.model.transduction_) == len(LABELED) + 20


def test_the_graph_is_made_once(bench, monkeypatch):
    made = []
    fit = LabelSpreadingClassifier._spread_graph
    monkeypatch.setattr(
        LabelSpreadingClassifier,
        "_spread_graph",
        lambda self, *args: made.append(1) or fit(self, *args),
    )
    family = FAMILIES["spreading"]
    bench.held_out(family, first_voter(bench, family))
    assert len(made) == 1


# --- what is left out ----------------------------------------------------------------------------


@pytest.mark.parametrize("anchors", [None, 60])
@pytest.mark.parametrize("name", ["spreading_lda", "spreading_forest"])
def test_pseudo_labels_teach_the_metric_and_do_not_spread(name, anchors, bench):
    family = replace(FAMILIES[name], learns_from=anchors)
    first = first_voter(bench, family)
    rows = np.concatenate([bench.labeled, HIDDEN[:80]])
    second = bench.train(family, rows, Y[rows], like=first)
    carriers = np.arange(len(X))
    if anchors:
        carriers = np.concatenate([bench.labeled, np.sort(bench.unlabeled_at_random[:anchors])])
    points = bench.view_of(family)[1][carriers]
    metric, teacher = clone(family.make(0, None).metric), WideLDA()
    if name == "spreading_forest":
        teacher = FAMILIES["extra_trees"].make(0, None)
    metric.teacher = teacher.fit(bench.view_of(family)[1][rows], Y[rows])
    given = CODES[carriers]
    expected = local_spreading().fit(metric.fit(points, given).transform(points), given)
    np.testing.assert_allclose(
        second.model.label_distributions_, expected.label_distributions_, atol=1e-12
    )
    assert not np.allclose(
        second.model.label_distributions_, first.model.label_distributions_, atol=0.01
    )


@pytest.mark.parametrize("name", ["spreading_lda", "spreading_forest"])
def test_rows_of_weight_0_do_not_teach_a_metric(name):
    weight = np.ones(30)
    weight[:6] = 0.0
    bench = FamilyTrainer(X, CODES, 3, seed=0, labeled_weight=weight)
    voter = bench.train(FAMILIES[name], bench.labeled, CODES[bench.labeled], weight)
    codes = CODES.copy()
    codes[bench.labeled[:6]] = (codes[bench.labeled[:6]] + 1) % 3  # nobody looks at these
    other = FamilyTrainer(X, codes, 3, seed=0, labeled_weight=weight)
    same = other.train(FAMILIES[name], other.labeled, codes[other.labeled], weight)
    np.testing.assert_array_equal(voter.model.label_distributions_, same.model.label_distributions_)


def test_every_family_takes_sparse_rows():
    bench = FamilyTrainer(sparse.csr_array(X), CODES, 3, seed=0)
    reasons = {f.name: bench.reason_to_leave_out(f, None, 100) for f in FAMILIES.values()}
    assert not any(reasons.values())  # dense families get singular vectors
    for family in FAMILIES.values():
        voter = first_voter(bench, family)
        votes = bench.vote(voter, family, HIDDEN)
        np.testing.assert_allclose(votes.sum(axis=1), 1.0)
        if not voter.transductive:
            np.testing.assert_allclose(voter.predict_proba(bench.X[HIDDEN]), votes, atol=1e-6)


@pytest.mark.parametrize(
    ("shape", "family", "seconds", "is_fast"),
    [
        ((20_000, 1), "network", 0.0, True),
        ((20_001, 1), "network", 600.0, False),
        ((4_000, 1_000), "network", 0.0, True),
        ((4_000, 1_001), "network", 600.0, False),
        # More for families of the default vote, in proportion to the seconds.
        ((120_000, 500), "svm", 600.0, True),
        ((120_001, 1), "svm", 600.0, False),
        ((100_000, 601), "svm", 600.0, False),
        ((4_000, 1_001), "svm", 600.0, False),
        ((30_000, 100), "svm", 150.0, True),
        ((30_000, 100), "svm", 149.0, False),
    ],
)
def test_what_is_fast_is_not_timed(shape, family, seconds, is_fast):
    rows = np.broadcast_to(0.0, shape)
    trainer = FamilyTrainer(rows, np.zeros(shape[0], dtype=int), 2, seed=0)
    assert trainer._is_fast((FAMILIES | OPTIONAL)[family], seconds) == is_fast


@pytest.mark.parametrize(
    ("limit", "number", "what"),
    [("most_classes", 3, "classes"), ("most_features", 13, "features")]
    + [("most_labeled", 30, "labelled rows")],
)
def test_a_family_is_left_out_of_what_it_is_not_made_for(bench, limit, number, what):
    for most in (number + 1, number):
        family = replace(FAMILIES["svm"], **{limit: most})
        assert bench.reason_to_leave_out(family, None, 100) == ""
    family = replace(FAMILIES["svm"], **{limit: number - 1})
    why = bench.reason_to_leave_out(family, None, 100)
    assert why == f"it is made for at most {number - 1} {what}, not {number}"


def test_a_family_may_take_all_the_seconds_that_it_has(bench, monkeypatch):
    monkeypatch.setattr(workbench, "ALWAYS_FAST", 10)
    monkeypatch.setattr(workbench, "ROWS_A_SECOND", 0)
    monkeypatch.setattr(FamilyTrainer, "_expected_seconds", lambda *_: 5.0)
    assert bench.reason_to_leave_out(FAMILIES["svm"], 5.0, 100) == ""
    assert "about 5 s, more than the 4 s" in bench.reason_to_leave_out(FAMILIES["svm"], 4.0, 100)


@pytest.mark.parametrize(
    ("learns_from", "held_out_rows", "held_out", "n_seen"),
    [
        (None, None, False, None),
        (len(HIDDEN), None, False, None),
        (len(HIDDEN) - 1, None, False, len(HIDDEN) - 1),
        (50, 20, False, 50),
        (50, 20, True, 20),
        (10, 20, True, 10),
    ],
)
def test_a_family_sees_a_sample_of_the_unlabelled_rows(
    bench, learns_from, held_out_rows, held_out, n_seen
):
    limits = {"learns_from": learns_from, "held_out_rows": held_out_rows}
    family = replace(FAMILIES["semi_lda"], **limits)
    some = bench.labeled[:20]
    seen = bench._seen(family, some, held_out)
    assert (seen is None) == (n_seen is None)
    if n_seen is not None:
        np.testing.assert_array_equal(seen[:20], some)
        sample = bench.unlabeled_at_random[:n_seen]
        np.testing.assert_array_equal(np.sort(sample), seen[20:])
        graph = bench._seen(replace(FAMILIES["spreading"], **limits), some, held_out)
        np.testing.assert_array_equal(graph[: len(LABELED)], bench.labeled)


@pytest.mark.parametrize(("n_columns", "n_vectors"), [(120, 100), (10, 9), (2, 1)])
def test_dense_families_get_up_to_100_singular_vectors_of_sparse_rows(n_columns, n_vectors):
    rows = sparse.random_array((len(Y), n_columns), density=0.5, rng=np.random.default_rng(0))
    bench = FamilyTrainer(rows.tocsr(), CODES, 3, seed=0)
    _, vectors = bench.view_of(FAMILIES["semi_lda"])
    assert vectors.shape == (len(Y), n_vectors)
    np.testing.assert_allclose(vectors.std(axis=0), 1.0)
    assert bench.view_of(FAMILIES["svm"])[1].shape == rows.shape


def test_sparse_rows_with_gaps_are_not_for_families_that_need_dense_ones():
    gaps = X.copy()
    gaps[0, 0] = np.nan
    for rows, why in (
        (sparse.csr_array(gaps), "it needs dense rows, or sparse ones without gaps"),
        (sparse.csr_array(X), ""),
        (gaps, ""),
    ):
        bench = FamilyTrainer(rows, CODES, 3, seed=0)
        assert bench.reason_to_leave_out(FAMILIES["semi_lda"], None, 100) == why
        assert bench.reason_to_leave_out(FAMILIES["svm"], None, 100) == ""


def test_slow_families_are_left_out_of_large_data(bench, monkeypatch):
    monkeypatch.setattr(workbench, "ALWAYS_FAST", 10)
    assert bench.reason_to_leave_out(FAMILIES["forest"], 1e9, 100) == ""
    why = bench.reason_to_leave_out(FAMILIES["forest"], 0.0, 100)
    assert "more than the 0 s allowed" in why


def test_small_data_is_never_timed(bench, monkeypatch):
    monkeypatch.setattr(FamilyTrainer, "_expected_seconds", lambda *_: pytest.fail("timed"))
    assert bench.reason_to_leave_out(FAMILIES["forest"], 0.0, 100) == ""


def test_expected_seconds_grow_as_the_family_says(monkeypatch):
    """The graph of more rows has more cells, of which more are looked into."""
    clock = iter(range(1000))
    monkeypatch.setattr(workbench, "perf_counter", lambda: float(next(clock)))
    monkeypatch.setattr(workbench, "TRIED_ROWS", 14)
    bench = FamilyTrainer(X, CODES, 3, seed=0)
    growth, known = len(X) / (len(LABELED) + 14), FAMILIES | OPTIONAL
    names = "lda", "spreading", "spreading_lda", "svm"
    seconds = {n: bench._expected_seconds(known[n], 60) for n in names}
    assert seconds["lda"] == pytest.approx(1 + N_FOLDS + growth)
    assert seconds["spreading"] == pytest.approx(growth**1.5 + N_FOLDS + growth)
    # The graph of a learned metric is made again in a round.
    assert seconds["spreading_lda"] == pytest.approx(2 * growth**1.5 + N_FOLDS + growth)
    assert seconds["svm"] == pytest.approx(1 + N_FOLDS + growth * 60 / len(LABELED))
    # The labelled rows are always trained on: it is never quicker than with those alone.
    assert bench._expected_seconds(known["svm"], 15) == pytest.approx(1 + N_FOLDS + growth)


def test_wide_data_is_timed_on_some_of_its_columns(monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr(workbench, "perf_counter", lambda: float(next(clock)))
    monkeypatch.setattr(workbench, "TRIED_COLUMNS", 2)
    monkeypatch.setattr(workbench, "FEW_CELLS", X.size - 1)
    bench = FamilyTrainer(X, CODES, 3, seed=0)
    wider = X.shape[1] / 2
    assert bench._expected_seconds(OPTIONAL["lda"], 60) >= wider * (2 + N_FOLDS)
    assert "more than the 1 s allowed" in bench.reason_to_leave_out(OPTIONAL["lda"], 1.0, 60)


def test_a_trial_takes_some_rows_and_columns(monkeypatch):
    """13 columns are timed on 10, and votes on as many unlabelled rows as are tried."""
    monkeypatch.setattr(workbench, "TRIED_COLUMNS", 10)
    monkeypatch.setattr(workbench, "TRIED_ROWS", 14)
    seen, vote = [], FamilyTrainer.vote
    monkeypatch.setattr(
        FamilyTrainer,
        "vote",
        lambda self, voter, family, rows: (
            seen.append((self.X.shape, len(rows))) or vote(self, voter, family, rows)
        ),
    )
    FamilyTrainer(X, CODES, 3, seed=0)._expected_seconds(OPTIONAL["lda"], 60)
    assert seen == [((len(LABELED) + 14, 10), 14)]


def test_a_family_that_cannot_learn_is_not_slow(bench):
    (family,) = families_of([Choosy()])
    assert FamilyTrainer(X, some_codes(1, 1), 2, seed=0)._expected_seconds(family, 60) == 0.0


def test_a_graph_is_timed_with_the_rows_of_the_fit_not_of_held_out_ones(monkeypatch):
    monkeypatch.setattr(workbench, "TRIED_ROWS", 14)
    clock = iter(range(1000))
    monkeypatch.setattr(workbench, "perf_counter", lambda: float(next(clock)))
    growth = len(X) / (len(LABELED) + 14)
    few = replace(FAMILIES["spreading"], held_out_rows=5)
    seconds = FamilyTrainer(X, CODES, 3, seed=0)._expected_seconds(few, 60)
    assert seconds == pytest.approx(growth**1.5 + N_FOLDS + growth)


@pytest.mark.parametrize(
    ("n_jobs", "voters", "in_threads"),
    [
        (1, ["svm", "lda"], [False, False]),
        (2, ["svm", "lda"], [True, True]),
        (2, ["svm", GaussianNB()], [False, False]),
        (2, ["svm", GaussianNB(), "lda"], [True, False, True]),
    ],
)
def test_two_families_of_ours_run_side_by_side(n_jobs, voters, in_threads):
    bench, families = FamilyTrainer(X, CODES, 3, seed=0, n_jobs=n_jobs), families_of(voters)
    told = bench.run([lambda: bench._in_threads] * len(families), families)
    assert list(told) == in_threads
    assert not bench._in_threads


def test_rows_of_no_weight_are_not_shown_to_who_takes_no_weights(bench):
    (family,) = families_of([KNeighborsClassifier(1)])
    weight = np.resize([0.0, 0.5, 1.0], len(LABELED))
    voter = bench.train(family, bench.labeled, CODES[bench.labeled], weight)
    assert voter.model.n_samples_fit_ == 20


def test_held_out_fits_are_the_cheaper_ones(bench, monkeypatch):
    cheap, train = [], FamilyTrainer._train
    monkeypatch.setattr(
        FamilyTrainer, "_train", lambda self, *args: cheap.append(args[-1]) or train(self, *args)
    )
    (family,) = families_of([GaussianNB()])
    bench.held_out(family, first_voter(bench, family))
    assert cheap == [False] + [True] * N_FOLDS


class Choosy(GaussianNB):
    """Learns from four rows or more."""

    def fit(self, X, y, sample_weight=None):
        if len(X) < 4:
            raise ValueError("too few rows")
        return super().fit(X, y, sample_weight)


def some_codes(n_first: int, n_second: int) -> NDArray[np.intp]:
    codes = np.full(len(Y), -1)
    codes[np.flatnonzero(Y == 0)[:n_first]] = 0
    codes[np.flatnonzero(Y == 1)[:n_second]] = 1
    return codes


def test_a_fold_that_cannot_be_learned_counts_as_wrong():
    bench = FamilyTrainer(X, some_codes(2, 2), 2, seed=0)
    (family,) = families_of([Choosy()])
    assert bench.accuracy(bench.held_out(family, first_voter(bench, family))) == 0.0


@pytest.mark.parametrize("name", FAMILIES)
def test_the_only_row_of_a_class_is_not_judged(name):
    bench = FamilyTrainer(X, some_codes(1, 6), 2, seed=0)
    family = FAMILIES[name]
    held_out = bench.held_out(family, first_voter(bench, family))
    right = held_out.argmax(axis=1) == bench.codes[bench.labeled]
    own = bench.codes[bench.labeled] == 1
    assert bench.accuracy(held_out) == pytest.approx((right & held_out.any(axis=1))[own].mean())


def together_in_a_fold(n_first: int) -> FamilyTrainer:
    """Two rows of class 1 that are in the same fold, and some of class 0."""
    codes = some_codes(n_first + 2, 0)
    labeled = np.flatnonzero(codes == 0)
    _, test = folds_of(len(labeled), N_FOLDS, 0)[0]
    codes[labeled[test[:2]]] = 1
    return FamilyTrainer(X, codes, 2, seed=0)


@pytest.mark.parametrize("name", FAMILIES)
def test_rows_whose_class_is_in_no_other_fold_are_not_judged(name):
    bench, family = together_in_a_fold(10), FAMILIES[name]
    voter = first_voter(bench, family)
    held_out = bench.held_out(family, voter)
    alone = bench.codes[bench.labeled] == 1
    assert not held_out[alone].any()
    right = (held_out.argmax(axis=1) == 0) & held_out.any(axis=1)
    assert bench.accuracy(held_out) == pytest.approx(right[~alone].mean())


@pytest.mark.parametrize("n_splits", [3, 5])
def test_cross_fitting_of_voters_is_that_of_the_library(n_splits, monkeypatch):
    """Whatever the classes in a fold."""
    monkeypatch.setattr(workbench, "N_FOLDS", n_splits)
    (family,) = families_of([GaussianNB()])
    for bench in (FamilyTrainer(X, CODES, 3, seed=0), together_in_a_fold(10)):
        rows = bench.labeled
        expected = cross_fitted_votes(
            GaussianNB(), X[rows], bench.codes[rows], n_splits=n_splits, random_state=0
        )
        held_out = bench.held_out(family, first_voter(bench, family))
        np.testing.assert_array_equal(held_out, expected)


def test_nothing_is_known_without_two_rows_of_a_class():
    bench, family = FamilyTrainer(X, some_codes(1, 1), 2, seed=0), FAMILIES["svm"]
    assert np.isnan(bench.accuracy(bench.held_out(family, first_voter(bench, family))))


@pytest.mark.parametrize("scaling", ["standard", "range"])
def test_new_rows_may_lack_values(bench, scaling):
    scaler, scaled = bench.view(scaling)
    np.testing.assert_allclose(scaler.transform(X), scaled)
    new = X[:3].copy()
    new[0, 0] = np.nan
    filled = scaler.transform(new)
    np.testing.assert_allclose(filled[1:], scaled[1:3])
    assert filled[0, 0] == pytest.approx(np.median(scaled[:, 0]), abs=0.2)


def test_the_view_is_that_of_scikit_learn(bench):
    np.testing.assert_allclose(bench.view("standard")[1], StandardScaler().fit_transform(X))
    assert bench.view("standard") is bench.view("standard")


def test_where_a_family_of_ours_stops_is_no_news(bench):
    impatient = replace(FAMILIES["semi_lda"], make=lambda s, j: SemiLDAClassifier(max_iter=1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first_voter(bench, impatient)
    # Of an estimator of the user's it is: there it can be changed.
    own = families_of([("own", SemiLDAClassifier(max_iter=1))])[0]
    with pytest.warns(ConvergenceWarning):
        first_voter(bench, own)


def test_a_dense_graph_of_the_user_is_cross_fitted(bench):
    dense = families_of([("dense", LabelSpreadingClassifier("rbf", gamma=1.0))])[0]
    voter = bench.train(dense, bench.labeled, bench.codes[bench.labeled])
    assert bench.accuracy(bench.held_out(dense, voter)) > 0.4
