"""Self-learning from chunks gives what it gives in memory, and never half a result."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from benchmarks import _page
from fewlabel import (
    BoundPolicy,
    Curriculum,
    FewLabelClassifier,
    FixedThreshold,
    SelfLearningClassifier,
    UnlabeledRows,
    VoteStatistics,
    bounds_of_rows,
    labeled_rows,
    optimal_thresholds,
    predict_rows,
    risk_bound,
)
from fewlabel.chunks.loop import allot_rows, allot_trees
from fewlabel.chunks.source import Layout
from fewlabel.chunks.steps import (
    EXACT_CELLS,
    RESOLUTION,
    chunk_statistics,
    merge_statistics,
)
from fewlabel.selection.training_set import quotas
from support.strategies import votes_and_proba

# The first rows of the digits are no random ones, and the estimate says so.
pytestmark = pytest.mark.filterwarnings("ignore:The estimate of the error is unsafe")

X, Y = load_digits(return_X_y=True)
X, Y = X[:900], Y[:900]
L = 100  # labelled rows
COLUMNS = [f"x{k}" for k in range(X.shape[1])]
TARGET = np.where(np.arange(len(Y)) < L, Y, -1)


def learner(**options):
    forest = RandomForestClassifier(15, random_state=0)
    return SelfLearningClassifier(options.pop("estimator", forest), random_state=0, **options)


@pytest.fixture(scope="module")
def in_memory():
    return learner().fit(X, TARGET)


def write_parquet(folder, cuts=(0, 137, 500, 800), extra=None):
    folder.mkdir()
    frame = pd.DataFrame(X[L:], columns=COLUMNS)
    for name, values in (extra or {}).items():
        frame[name] = values
    for k, (start, stop) in enumerate(itertools.pairwise(cuts)):
        frame[start:stop].to_parquet(folder / f"{k}.parquet", index=False)
    return folder


def results(folder):
    return pd.read_parquet(folder).sort_values("row", ignore_index=True)


def assert_same(in_memory, chunked, out):
    assert chunked.termination_condition_ == in_memory.termination_condition_
    assert chunked.n_iter_ == in_memory.n_iter_ >= 1
    np.testing.assert_allclose(chunked.thresholds_, in_memory.thresholds_, rtol=0, atol=1e-12)
    np.testing.assert_allclose(chunked.risk_bound_, in_memory.risk_bound_, rtol=1e-12)
    np.testing.assert_allclose(
        chunked.confusion_bound_, in_memory.confusion_bound_, rtol=1e-9, atol=1e-12
    )
    for mine, theirs in zip(chunked.history_, in_memory.history_, strict=True):
        for key in ("n_unlabeled", "n_selected", "n_selected_per_class"):
            assert mine[key] == theirs[key]
    table = results(out)
    assert table["row"].tolist() == list(range(len(X) - L))
    np.testing.assert_array_equal(table["label"], in_memory.transduction_[L:])
    np.testing.assert_array_equal(table["round"], in_memory.labeled_iter_[L:])
    votes = table.filter(like="vote_").to_numpy()
    np.testing.assert_allclose(votes, in_memory.transduction_proba_[L:], rtol=0, atol=1e-12)


# --- the same as in memory ---------------------------------------------------------------------

SETTINGS = {
    "default": {},
    "current": {"label_proba": "current"},
    "uniform votes": {"label_proba": "uniform", "max_iter": 2},
    "unweighted": {"pseudo_weight": "uniform"},
    "paper's rule": {"min_gain": 0.0},
    "fixed": {"policy": FixedThreshold(0.6)},
    "curriculum": {"policy": Curriculum(1 / 3)},
    "plug-in, bins": {"policy": BoundPolicy("plug-in", resolution=7)},
    "continuous votes": {"estimator": LogisticRegression(max_iter=50, tol=0.1), "max_iter": 2},
}


@pytest.mark.filterwarnings("ignore:lbfgs failed")
@pytest.mark.parametrize("name", SETTINGS)
def test_chunks_give_what_memory_gives(name, tmp_path):
    chunks = [X[L:300], X[300:301], X[301:]]
    in_memory = learner(**SETTINGS[name]).fit(X, TARGET)
    rows = UnlabeledRows(chunks, out=tmp_path / "labels")
    chunked = learner(**SETTINGS[name]).fit(X[:L], Y[:L], unlabeled=rows)
    assert_same(in_memory, chunked, tmp_path / "labels")
    assert not hasattr(chunked, "transduction_")


def test_weights_of_labelled_rows_count(tmp_path):
    weight = np.linspace(0.5, 3.0, L)
    in_memory = learner().fit(X, TARGET, np.append(weight, np.ones(len(X) - L)))
    rows = UnlabeledRows([X[L:500], X[500:]], out=tmp_path / "labels")
    assert_same(in_memory, learner().fit(X[:L], Y[:L], weight, unlabeled=rows), tmp_path / "labels")


@pytest.mark.parametrize("kind", ["folder", "dataset", "callable", "pandas", "polars", "sparse"])
def test_sources(kind, in_memory, tmp_path):
    folder = write_parquet(tmp_path / "rows", extra={"truth": Y[L:]})
    frame, named = pd.DataFrame(X[L:], columns=COLUMNS), pd.DataFrame(X[:L], columns=COLUMNS)
    given, source = {
        "folder": (named, folder),
        "dataset": (named, pa.dataset.dataset(folder)),
        "callable": (X[:L], lambda: iter([X[L:333], X[333:]])),
        "pandas": (named, [frame[:50], frame[50:]]),
        "polars": (pl.from_pandas(named), folder),
        "sparse": (sparse.csr_array(X[:L]), [sparse.csr_array(X[L:])]),
    }[kind]
    rows = UnlabeledRows(source, out=tmp_path / "labels", chunk_rows=100)
    chunked = learner().fit(given, Y[:L], unlabeled=rows)
    assert_same(in_memory, chunked, tmp_path / "labels")
    expected = chunked.predict(given)
    assert predict_rows(chunked, rows, tmp_path / "again", like=given) == len(X) - L
    again = results(tmp_path / "again")
    np.testing.assert_array_equal(again["label"], results(tmp_path / "labels")["label"])
    assert len(expected) == L


def test_sparse_rows_that_cannot_be_taken_by_index():
    given, chunk = sparse.coo_matrix(X[:L]), sparse.coo_matrix(X[L:])
    rows, csr = UnlabeledRows([chunk]), UnlabeledRows([chunk.tocsr()])
    clf = learner(max_train=100).fit(given, Y[:L], unlabeled=rows)
    expected = learner(max_train=100).fit(given.tocsr(), Y[:L], unlabeled=csr)
    assert clf.history_[-1]["thresholds"] == expected.history_[-1]["thresholds"]
    assert bounds_of_rows(clf, rows, given, Y[:L]) == bounds_of_rows(
        expected, csr, given.tocsr(), Y[:L]
    )


def test_labels_within_the_source(tmp_path):
    kind = np.array([f"d{digit}" for digit in Y], dtype=object)
    kind[TARGET == -1] = None
    shuffled = np.random.default_rng(0).permutation(len(Y))
    frame = pd.DataFrame(X, columns=COLUMNS).assign(kind=kind).iloc[shuffled]
    frame.to_parquet(tmp_path / "rows.parquet", index=False)
    given, labels = labeled_rows(tmp_path / "rows.parquet", "kind")
    assert len(given) == len(labels) == L
    assert list(given.columns) == COLUMNS
    rows = UnlabeledRows(tmp_path / "rows.parquet", target="kind", out=tmp_path / "labels")
    learner().fit(given, labels, unlabeled=rows)
    table = results(tmp_path / "labels")
    assert table["row"].tolist() == np.flatnonzero(shuffled >= L).tolist()
    truth = np.array([f"d{digit}" for digit in Y])[shuffled[shuffled >= L]]
    assert (table["label"] == truth).mean() > 0.6
    with pytest.raises(ValueError, match="no column 'type'"):
        labeled_rows(tmp_path / "rows.parquet", "type")
    with pytest.raises(ValueError, match="no column 'type'"):
        learner().fit(given, labels, unlabeled=UnlabeledRows([frame], target="type"))


class Scaled:
    """Reads whole numbers, learns from fractions; every third row is to be left out."""

    def conform(self, raw):
        rows = np.flatnonzero(np.arange(len(raw)) % 3)
        return raw[rows] / 16, rows


def test_own_layout(tmp_path):
    rows = UnlabeledRows([X[L:400], X[400:]], layout=Scaled(), out=tmp_path / "labels")
    clf = learner().fit(X[:L] / 16, Y[:L], unlabeled=rows)
    assert clf.history_[0]["n_unlabeled"] == 200 + 333
    table = results(tmp_path / "labels")
    kept = np.append(np.flatnonzero(np.arange(300) % 3), 300 + np.flatnonzero(np.arange(500) % 3))
    np.testing.assert_array_equal(table["row"], kept)
    np.testing.assert_array_equal(table["label"], clf.predict(X[L:][kept] / 16))
    assert predict_rows(clf, rows, tmp_path / "again") == len(kept)


def test_bounds_are_those_of_memory(in_memory):
    rows = UnlabeledRows([X[L:300], X[300:]])
    chunked = learner().fit(X[:L], Y[:L], unlabeled=rows)
    mine, theirs = bounds_of_rows(chunked, rows, X[:L], Y[:L]), in_memory.bounds(X, TARGET)
    assert [bound.name for bound in mine] == [bound.name for bound in theirs]
    for a, b in zip(mine, theirs):
        np.testing.assert_allclose(a.value, b.value, rtol=1e-9)
        assert (a.kind, a.applies, a.assumption) == (b.kind, b.applies, b.assumption)
    with pytest.raises(ValueError, match="bounds_of_rows"):
        chunked.bounds(X[:L], Y[:L])


@pytest.mark.parametrize("label_proba", ["current", "uniform"])
def test_bounds_with_other_label_probabilities_are_those_of_memory(label_proba):
    rows = UnlabeledRows([X[L:300], X[300:]])
    in_memory = learner(label_proba=label_proba, max_iter=1).fit(X, TARGET)
    chunked = learner(label_proba=label_proba, max_iter=1).fit(X[:L], Y[:L], unlabeled=rows)
    mine, theirs = bounds_of_rows(chunked, rows, X[:L], Y[:L]), in_memory.bounds(X, TARGET)
    np.testing.assert_allclose([b.value for b in mine], [b.value for b in theirs], rtol=1e-9)


@pytest.mark.parametrize(
    "options", [{"scoring": "balanced"}, {"priors": np.full(10, 0.1)}], ids=lambda o: next(iter(o))
)
def test_bounds_for_other_class_shares_are_those_of_memory(options):
    voters, rows = ["forest", "lda"], UnlabeledRows([X[L:300], X[300:]])
    in_memory = FewLabelClassifier(voters, random_state=0, **options).fit(X, TARGET)
    chunked = FewLabelClassifier(voters, random_state=0, **options)
    chunked.fit(X[:L], Y[:L], unlabeled=rows)
    mine, theirs = bounds_of_rows(chunked, rows, X[:L], Y[:L]), in_memory.bounds(X, TARGET)
    np.testing.assert_allclose([b.value for b in mine], [b.value for b in theirs], rtol=1e-6)
    tb = next(b for b in mine if b.name.startswith("TB"))
    assert tb.value == pytest.approx(chunked.risk_bound_)


def test_bounds_of_chunks_want_no_array_of_label_probabilities():
    clf = learner(label_proba=np.full((len(X), 10), 0.1), max_iter=1).fit(X, TARGET)
    with pytest.raises(ValueError, match="an array of probabilities belongs to rows in memory"):
        bounds_of_rows(clf, UnlabeledRows([X[L:]]), X[:L], Y[:L])


# --- statistics --------------------------------------------------------------------------------


@given(votes_and_proba(), st.integers(1, 7), st.randoms(use_true_random=False))
def test_thresholds_do_not_depend_on_the_chunks(data, n_chunks, random):
    votes, proba = data
    parts = [
        chunk_statistics(votes[k::n_chunks], proba[k::n_chunks])
        if len(votes[k::n_chunks])
        else None
        for k in range(n_chunks)
    ]
    random.shuffle(parts)
    half = random.randint(0, len(parts))
    merged = merge_statistics([merge_statistics(parts[:half]), merge_statistics(parts[half:])])
    np.testing.assert_allclose(
        optimal_thresholds(merged), optimal_thresholds(votes, proba), rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(risk_bound(merged), risk_bound(votes, proba), rtol=1e-9, atol=1e-12)
    for iteration, step in ((1, 0.3), (2, 0.4), (5, 0.3)):
        quantile = max(0.0, 1 - iteration * step)
        threshold = np.quantile(votes.max(axis=1), quantile, method="lower")
        selection = Curriculum(step).select(merged, iteration)
        assert selection.thresholds.tolist() == [threshold] * votes.shape[1]


@given(votes_and_proba(), st.integers(1, 40))
def test_binning_later_is_binning_at_once(data, resolution):
    votes, proba = data
    later = VoteStatistics.from_votes(votes, proba).binned(resolution)
    at_once = VoteStatistics.from_votes(votes, proba, resolution=resolution)
    for a, b in zip(later.cells, at_once.cells):
        np.testing.assert_array_equal(a.edges, b.edges)
        np.testing.assert_array_equal(a.n_predicted, b.n_predicted)
        for name in ("mass", "vote_mass", "predicted_mass", "gibbs"):
            np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-9, atol=1e-12)
    assert risk_bound(later) >= risk_bound(votes, proba) - 1e-9


def continuous(n, seed):
    votes = np.random.default_rng(seed).dirichlet(np.full(3, 0.4), size=n)
    return votes, np.random.default_rng([seed, 1]).dirichlet(np.full(3, 0.4), size=n)


def test_many_distinct_votes_are_binned_however_they_are_divided():
    votes, proba = continuous(EXACT_CELLS + 1500, 0)
    whole = VoteStatistics.from_votes(votes, proba, resolution=RESOLUTION)
    exact = risk_bound(votes, proba, thresholds=1 / 3)
    for n_chunks in (1, 2, 7):
        parts = [chunk_statistics(v, p) for v, p in _split(votes, proba, n_chunks)]
        assert (parts[0].resolution is None) == (n_chunks > 1)
        merged = merge_statistics(parts)
        assert merged.resolution == RESOLUTION
        np.testing.assert_allclose(
            optimal_thresholds(merged), optimal_thresholds(whole), rtol=0, atol=1e-12
        )
        assert exact <= risk_bound(merged, thresholds=1 / 3) < exact * 1.05
    assert chunk_statistics(votes[:100], proba[:100], 10).resolution == 10
    coarse = VoteStatistics.from_votes(votes, proba, resolution=20)
    np.testing.assert_array_equal(optimal_thresholds(whole.binned(20)), optimal_thresholds(coarse))
    assert whole.binned(20).cells[0].edges.tolist() == coarse.cells[0].edges.tolist()
    with pytest.raises(ValueError, match="cannot be put into 7"):
        BoundPolicy(resolution=7).select(whole, 1)


def test_a_policy_may_search_over_any_number_of_bins():
    rng = np.random.default_rng(0)
    U = rng.normal(size=(EXACT_CELLS + 500, 2))
    given = rng.normal(size=(60, 2))
    y = (given.sum(axis=1) > 0).astype(int)
    settings = {"estimator": LogisticRegression(), "policy": BoundPolicy(resolution=64)}
    target = np.append(y, np.full(len(U), -1))
    in_memory = learner(max_iter=1, **settings).fit(np.vstack([given, U]), target)
    for chunks in ([U], [U[:1000], U[1000:]]):
        rows = UnlabeledRows(chunks)
        chunked = learner(max_iter=1, **settings).fit(given, y, unlabeled=rows)
        np.testing.assert_allclose(chunked.thresholds_, in_memory.thresholds_, atol=1e-12)
        # The bound on all rows is no search: it has the rows' own bins, here the fine ones.
        assert chunked.risk_bound_ < in_memory.risk_bound_ * 1.02
    finer = UnlabeledRows([U], resolution=128)
    fitted = learner(max_iter=1, **settings).fit(given, y, unlabeled=finer)
    np.testing.assert_allclose(fitted.thresholds_, in_memory.thresholds_, atol=1e-12)


@pytest.mark.parametrize("resolution", [32, 1000])
def test_bins_of_rows_and_policy_must_fit(resolution):
    def never():
        raise AssertionError("rows were read")

    rows = UnlabeledRows(never, resolution=resolution)
    with pytest.raises(ValueError, match="cannot be put into the 64 bins of BoundPolicy"):
        learner(policy=BoundPolicy(resolution=64)).fit(X[:L], Y[:L], unlabeled=rows)


def _split(votes, proba, n):
    return list(zip(np.array_split(votes, n), np.array_split(proba, n)))


def test_nothing_to_merge():
    assert merge_statistics([None, None]) is None


# --- the sample that is trained on -------------------------------------------------------------


def test_sample_has_the_right_rows_and_weights(tmp_path):
    seen = []

    class Spy(RandomForestClassifier):
        def fit(self, X, y, sample_weight=None):
            seen.append((X, y, sample_weight))
            return super().fit(X, y, sample_weight)

    rows = UnlabeledRows([X[L:300], X[300:301], X[301:]], out=tmp_path / "labels")
    clf = learner(estimator=Spy(15, random_state=0), max_train=60, max_iter=1)
    clf.fit(X[:L], Y[:L], unlabeled=rows)
    drawn, labels, weight = seen[1]  # after the first; held-out fits follow
    table = results(tmp_path / "labels")
    selected = np.bincount(clf.initial_estimator_.predict(X[L:])[table["round"] == 1], minlength=10)
    np.testing.assert_array_equal(selected, clf.history_[0]["n_selected_per_class"])
    pool = {row.tobytes() for row in X[L:][table["round"] == 1]}
    assert all(row.tobytes() in pool for row in drawn[L:])
    counts = np.bincount(labels[L:], minlength=10)
    np.testing.assert_array_equal(counts, quotas(selected, 60))
    assert 50 <= len(labels) - L <= 60
    assert weight.mean() == pytest.approx(1.0)
    assert weight[:L].sum() == pytest.approx(weight[L:].sum())
    # The weight of a class in the sample is its share among all pseudo-labelled rows.
    share = np.bincount(labels[L:], weight[L:], minlength=10) / weight[L:].sum()
    np.testing.assert_allclose(share, selected / selected.sum())


def test_every_pseudo_labelled_row_is_drawn_as_often():
    counts = np.array([[5, 0], [1, 20], [4, 0]])
    quota = np.array([3, 7])
    rng = np.random.default_rng(0)
    draws = np.array([allot_rows(counts, quota, rng) for _ in range(4000)])
    assert (draws.sum(axis=1) == quota).all()
    assert (draws <= counts).all()
    # Expected: quota × share of the chunk; four standard errors of 4,000 draws.
    np.testing.assert_allclose(draws.mean(axis=0)[:, 0], 3 * counts[:, 0] / 10, atol=0.05)


def test_trees_are_allotted_by_pseudo_labelled_rows():
    trees = allot_trees(np.array([10, 0, 30]), 8, 0.5)
    assert trees.tolist() == [2, 0, 6]
    many = np.array([allot_trees(np.full(50, 7), 20, u) for u in np.linspace(0, 0.999, 500)])
    assert (many.sum(axis=1) == 20).all()
    np.testing.assert_allclose(many.mean(axis=0), 0.4, atol=0.01)


def test_forest_grown_in_partitions(tmp_path):
    chunks = [X[L:300], X[300:600], X[600:]]
    rows = UnlabeledRows(chunks, train="partitions", out=tmp_path / "labels")
    clf = learner(max_train=50).fit(X[:L], Y[:L], unlabeled=rows)
    assert len(clf.estimator_.estimators_) == clf.estimator_.n_estimators == 15
    votes = results(tmp_path / "labels").filter(like="vote_").to_numpy()
    np.testing.assert_array_equal(votes, clf.estimator_.predict_proba(X[L:]))
    supervised = clf.initial_estimator_.score(X[L:], Y[L:])
    assert clf.score(X[L:], Y[L:]) > supervised - 0.02


def test_partitions_have_their_own_rows_weights_and_seeds(tmp_path):
    seen = []

    class Spy(RandomForestClassifier):
        def fit(self, X, y, sample_weight=None):
            seen.append((X, y, sample_weight, self.random_state))
            return super().fit(X, y, sample_weight)

    chunks = [X[L:300], X[300:600], X[600:]]
    rows = UnlabeledRows(chunks, train="partitions", out=tmp_path / "labels")
    clf = learner(estimator=Spy(15, random_state=0), max_train=30, max_iter=1)
    clf.fit(X[:L], Y[:L], unlabeled=rows)
    is_selected = (results(tmp_path / "labels")["round"] == 1).to_numpy()
    selected_of = np.split(is_selected, [200, 500])
    for chunk, chosen, (drawn, labels, weight, _) in zip(
        chunks, selected_of, seen[1:4], strict=True
    ):
        pool = {row.tobytes() for row in chunk[chosen]}
        assert all(row.tobytes() in pool for row in drawn[L:])
        selected = np.bincount(clf.initial_estimator_.predict(chunk[chosen]), minlength=10)
        np.testing.assert_array_equal(np.bincount(labels[L:], minlength=10), quotas(selected, 30))
        # The weight of a class is its share among all pseudo-labelled rows of the partition.
        share = np.bincount(labels[L:], weight[L:], minlength=10) / weight[L:].sum()
        np.testing.assert_allclose(share, selected / selected.sum())
    # With one seed for all of them, partitions would grow trees that err together.
    assert len({seed for *_, seed in seen[1:4]}) == len(chunks)


# --- what goes wrong ---------------------------------------------------------------------------


def test_iterator_that_is_used_up():
    once = iter([X[L:300], X[300:]])
    with pytest.raises(RuntimeError, match="changed between two passes"):
        learner().fit(X[:L], Y[:L], unlabeled=lambda: once)
    with pytest.raises(TypeError, match="fresh iterator"):
        UnlabeledRows(iter([X]))


def test_rows_that_change():
    passes = iter([[X[L:300]], [X[L:299]]])
    with pytest.raises(RuntimeError, match="changed between two passes"):
        learner().fit(X[:L], Y[:L], unlabeled=lambda: next(passes))


@pytest.mark.parametrize("damage", ["corrupt", "missing in mid-fit", "lacks a column"])
def test_bad_file_ends_without_results(damage, tmp_path):
    folder = write_parquet(tmp_path / "rows")
    bad = folder / "1.parquet"

    def vanish(record):
        if damage == "missing in mid-fit":
            bad.unlink()

    if damage == "corrupt":
        bad.write_bytes(bad.read_bytes()[:-200])
    elif damage == "lacks a column":
        pd.read_parquet(bad).drop(columns="x7").to_parquet(bad, index=False)
    rows = UnlabeledRows(folder, out=tmp_path / "labels", scratch=tmp_path)
    named = pd.DataFrame(X[:L], columns=COLUMNS)
    expected = (
        (RuntimeError, "changed")
        if damage.startswith("missing")
        else (
            Exception,
            "1.parquet.*(cannot be read|lack columns.*x7)",
        )
    )
    with pytest.raises(expected[0], match=expected[1]):
        learner(callback=vanish).fit(named, Y[:L], unlabeled=rows)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["rows"]  # no results, no scratch


def test_results_are_never_overwritten(tmp_path):
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "note.txt").write_text("mine")
    rows = UnlabeledRows([X[L:]], out=tmp_path / "labels")
    with pytest.raises(FileExistsError, match="exists already"):
        learner().fit(X[:L], Y[:L], unlabeled=rows)


@pytest.mark.parametrize(
    ("options", "arguments", "error", "message"),
    [
        ({"label_proba": np.ones((1, 10))}, {}, ValueError, "label_proba must be"),
        ({}, {"y": TARGET[: L + 5], "X": X[: L + 5]}, ValueError, "labelled rows only"),
        ({}, {"y": None}, ValueError, "requires y"),
        ({"policy": object()}, {}, ValueError, "'policy' parameter"),
        ({}, {"unlabeled": [X[L:, :5]]}, ValueError, "chunk 0: .*64 columns"),
        ({}, {"unlabeled": "nowhere"}, FileNotFoundError, "no Parquet file"),
    ],
)
def test_errors_say_what_to_do(options, arguments, error, message):
    call = {"X": X[:L], "y": Y[:L], "unlabeled": [X[L:]]} | arguments
    with pytest.raises(error, match=message):
        learner(**options).fit(**call)


def test_no_rows_at_all(tmp_path):
    rows = UnlabeledRows([X[:0]], out=tmp_path / "labels")
    clf = learner().fit(X[:L], Y[:L], unlabeled=rows)
    assert clf.termination_condition_ == "no_unlabeled"
    assert np.isnan(clf.risk_bound_)
    with pytest.raises(ValueError, match="no unlabelled row"):
        bounds_of_rows(clf, rows, X[:L], Y[:L])


# --- the benchmark -----------------------------------------------------------------------------


def test_pages_have_places_for_tables(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A\n<!-- memory -->\nold\n<!-- /memory -->\nend\n")
    _page.put(page, "memory", _page.table([{"a": 1}]))
    assert "old" not in page.read_text()
    assert page.read_text().endswith("<!-- /memory -->\nend\n")
    with pytest.raises(ValueError, match="no place"):
        _page.put(page, "speed", "")


def test_report_of_rows_that_are_not_kept():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    clf = SelfLearningClassifier(RandomForestClassifier(5, random_state=0))
    clf.fit(X[:99], y[:99], unlabeled=[X[99:400], X[400:600]])
    assert clf.report().summary["data"]["n_unlabeled"] == 501
    with pytest.raises(ValueError, match="rows are not kept"):
        clf.bounds(y_true=y[:600])


# --- the form of the chunks --------------------------------------------------------------------


def test_chunks_keep_what_the_labelled_rows_could_not_hold():
    """A few labelled rows of whole numbers must not cut off the fractions of the others."""
    rng = np.random.default_rng(0)
    U = rng.random((300, 2)) * 4
    whole = rng.integers(0, 5, (30, 2))
    y = (whole.sum(axis=1) > 4).astype(int)
    fits = [learner().fit(rows, y, unlabeled=[U]) for rows in (whole, whole.astype(float))]
    assert fits[0].risk_bound_ == pytest.approx(fits[1].risk_bound_)
    np.testing.assert_array_equal(fits[0].predict(U), fits[1].predict(U))
    for dtype, chunk in (
        ("u1", [[-1.5]]),
        ("i1", [[300]]),
        ("f2", [[1e6]]),
        ("U2", [["abc"]]),
    ):
        kept, _ = Layout.of(np.zeros((1, 1), dtype)).conform(np.array(chunk))
        assert kept.tolist() == chunk
    for dtype, chunk in (("i8", [[np.nan]]), ("f8", [[None]])):
        kept, _ = Layout.of(np.zeros((1, 1), dtype)).conform(np.array(chunk))
        assert np.isnan(kept).all()
    assert Layout.of(np.zeros((1, 1), "f4")).conform(np.ones((1, 1)))[0].dtype == np.float32


def test_columns_are_told_apart_by_name(tmp_path):
    """Labelled rows without names: the first file says in which order its columns come."""
    folder = write_parquet(tmp_path / "rows")
    expected = learner().fit(X[:L], Y[:L], unlabeled=UnlabeledRows(folder, out=tmp_path / "a"))
    second = pd.read_parquet(folder / "1.parquet")
    second[COLUMNS[::-1]].to_parquet(folder / "1.parquet", index=False)
    mixed = learner().fit(X[:L], Y[:L], unlabeled=UnlabeledRows(folder, out=tmp_path / "b"))
    assert mixed.risk_bound_ == expected.risk_bound_
    pd.testing.assert_frame_equal(results(tmp_path / "b"), results(tmp_path / "a"))
    predict_rows(mixed, UnlabeledRows(folder), tmp_path / "c")
    final = predict_rows(expected, UnlabeledRows(folder), tmp_path / "d")
    assert final == len(X) - L
    pd.testing.assert_frame_equal(results(tmp_path / "c"), results(tmp_path / "d"))
    second.rename(columns={"x0": "other"}).to_parquet(folder / "1.parquet", index=False)
    with pytest.raises(ValueError, match="columns must be those of the first rows"):
        learner().fit(X[:L], Y[:L], unlabeled=folder)


def test_columns_of_chunks_that_a_function_gives(tmp_path):
    """They are told apart by name as those of a list are; without names, by their order."""
    frame = pd.DataFrame(X[L:], columns=COLUMNS).assign(t=-1)
    chunks = [frame[:200], frame[200:][["t", *COLUMNS[::-1]]]]
    found = []
    for k, source in enumerate(([X[L:300], X[300:]], chunks, lambda: iter(chunks))):
        target = "t" if k else None
        rows = UnlabeledRows(source, target=target, out=tmp_path / f"{k}")
        clf = learner().fit(X[:L], Y[:L], unlabeled=rows)
        predict_rows(clf, rows, tmp_path / f"again {k}")
        found.append((results(tmp_path / f"{k}"), results(tmp_path / f"again {k}")))
    for fitted, predicted in found[1:]:
        pd.testing.assert_frame_equal(fitted, found[0][0])
        pd.testing.assert_frame_equal(predicted, found[0][1])


@pytest.mark.parametrize("make", [list, lambda chunks: lambda: iter(chunks)])
def test_names_in_some_chunks_only(make):
    frame = pd.DataFrame(X[300:], columns=COLUMNS)
    for chunks in ([X[L:300], frame], [frame, X[L:300]], [X[L:300], pa.table(frame)]):
        with pytest.raises(ValueError, match="chunk 1: Either all chunks or none must have names"):
            learner().fit(X[:L], Y[:L], unlabeled=make(chunks))


def test_a_target_column_in_frames_of_either_library():
    frame = pd.DataFrame({"a": [1.0, 2.0], "t": ["u", None]})
    for chunk in (frame, pl.from_pandas(frame), pa.table(frame)):
        rows, where = Layout.of(np.zeros((1, 1)), target="t").conform(chunk)
        assert rows.tolist() == [[2.0]]
        assert where.tolist() == [1]


def test_markers_that_are_ambiguous_together():
    with_class = pd.DataFrame({"a": [1.0, 2.0, 3.0], "t": [-1.0, 0.0, 1.0]})
    without = pd.DataFrame({"a": [1.0, 2.0], "t": [np.nan, np.nan]})
    with pytest.raises(ValueError, match="both -1 and missing"):
        labeled_rows([with_class, without], "t")
    _, y = labeled_rows([with_class, without], "t", missing_label=None)
    assert y.tolist() == [-1.0, 0.0, 1.0]


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_markers_of_unlabelled_rows_that_are_ambiguous_together(convert):
    given, labels = np.array([[0.0], [1.0], [2.0], [3.0]]), [0.0, 0.0, 1.0, 1.0]
    a = convert(pd.DataFrame({"x": [0.0, 1.0], "t": [1.0, np.nan]}))
    b = convert(pd.DataFrame({"x": [0.0, 1.0], "t": [-1.0, 1.0]}))
    with pytest.raises(ValueError, match="both -1 and missing"):
        learner().fit(given, labels, unlabeled=UnlabeledRows([a, b], target="t"))
    for chunks, missing_label in (([a, b], None), ([b, b], "auto"), ([b, b], -1.0)):
        rows = UnlabeledRows(chunks, target="t", missing_label=missing_label)
        learner().fit(given, labels, unlabeled=rows)
        assert rows.n_unlabeled == (1 if missing_label is None else 2)


@pytest.mark.parametrize("kind", ["table", "batch", "polars", "pandas"])
def test_large_whole_numbers_are_labels(kind):
    """As floats they would be equal."""
    numbers = [2**53, 2**53 + 1, None]
    table = pa.table({"x": [0.0, 1.0, 2.0], "k": pa.array(numbers, pa.int64())})
    chunk = {
        "table": table,
        "batch": table.to_batches()[0],
        "polars": pl.from_arrow(table),
        "pandas": pd.DataFrame({"x": [0.0, 1.0, 2.0], "k": pd.array(numbers, "Int64")}),
    }[kind]
    rows, y = labeled_rows([chunk, table.slice(0, 1)], "k")
    assert y.dtype == np.int64
    assert y.tolist() == [*numbers[:2], numbers[0]]
    assert rows["x"].tolist() == [0.0, 1.0, 0.0]
    assert Layout.of(np.zeros((1, 1)), target="k").conform(chunk)[1].tolist() == [2]


def test_partitioned_data_sets_keep_the_column_of_the_folders(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0], "t": ["u", None], "g": [7, 8]})
    frame.to_parquet(tmp_path / "parts", partition_cols=["g"])
    dataset = pa.dataset.dataset(tmp_path / "parts", partitioning="hive")
    rows, y = labeled_rows(dataset, "t")
    assert rows[["a", "g"]].to_numpy().tolist() == [[1.0, 7.0]]
    assert y.tolist() == ["u"]


def test_bounds_want_the_rows_of_fit():
    clf = learner().fit(X[:L], Y[:L], unlabeled=[X[L:]])
    rows = UnlabeledRows([X[L:]])
    assert bounds_of_rows(clf, rows, X[:L], Y[:L])[0].applies
    for labels, message in (
        (Y[: L - 1], "one label for each"),
        (np.where(np.arange(L) < 5, -1, Y[:L]), "5 of them missing"),
        (Y[:L].astype(str), "the classes of `fit`"),
    ):
        with pytest.raises(ValueError, match=message):
            bounds_of_rows(clf, rows, X[:L], labels)
    for use in (
        lambda: predict_rows(learner(), rows, "o"),
        lambda: bounds_of_rows(learner(), rows, X[:L], Y[:L]),
    ):
        with pytest.raises(NotFittedError):
            use()
