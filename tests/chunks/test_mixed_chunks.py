"""``FewLabelClassifier`` on rows in chunks: votes and statements are those of memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.preprocessing import StandardScaler

from fewlabel import FewLabelClassifier, SelfLearningClassifier, UnlabeledRows, predict_rows
from fewlabel.assess.suggest import next_to_label
from fewlabel.chunks.survey import SAMPLE_ROWS, ColumnSums
from fewlabel.ensemble import kept_rounds
from fewlabel.ensemble.families import ANCHORS, OPTIONAL, RangeScaler
from fewlabel.ensemble.sampled import SampledLearner, SampleTrainer, fitted_scaler
from fewlabel.report.summarize import summarize

pytest.importorskip("pyarrow.parquet")

X, Y = make_blobs(700, 5, centers=4, cluster_std=4.0, random_state=3)
X[:, 4] = (X[:, 4] > 0).astype(float)  # a column of 0 and 1
L = 60
CHUNKS = [X[L:250], X[250:251], X[251:251], X[251:]]
UNSAMPLED = ["forest", "svm", "lda"]  # families that learn from no sample of the rows


def learner(**options):
    options = {"voters": UNSAMPLED, "max_iter": 2, "random_state": 0, **options}
    return FewLabelClassifier(options.pop("voters"), **options)


@pytest.fixture(scope="module")
def in_memory():
    return learner().fit(X, np.where(np.arange(len(X)) < L, Y, -1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("mixed") / "labels"


@pytest.fixture(scope="module")
def in_chunks(folder):
    rows = UnlabeledRows(CHUNKS, out=folder, max_error=0.1)
    return learner().fit(X[:L], Y[:L], unlabeled=rows)


def results(path):
    return pd.read_parquet(path).sort_values("row", ignore_index=True)


def test_votes_agree_with_those_in_memory(in_memory, in_chunks, folder):
    found = results(folder)
    assert in_chunks.n_iter_ == in_memory.n_iter_ == 2
    votes = found[[f"vote_{c}" for c in in_memory.classes_]].to_numpy()
    np.testing.assert_allclose(votes, in_memory.transduction_proba_[L:], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found["label"], in_memory.transduction_[L:])
    np.testing.assert_array_equal(found["round"], in_memory.labeled_iter_[L:])
    np.testing.assert_allclose(in_chunks.thresholds_, in_memory.thresholds_, rtol=0, atol=1e-12)
    assert in_chunks.termination_condition_ == in_memory.termination_condition_


def test_statements_agree_with_those_in_memory(in_memory, in_chunks, folder):
    assert in_chunks.error_.value == pytest.approx(in_memory.error_.value)
    assert in_chunks.risk_bound_ == pytest.approx(in_memory.risk_bound_)
    found = results(folder)
    np.testing.assert_allclose(found["confidence"], in_memory.confidence_[L:], atol=1e-9)
    np.testing.assert_array_equal(found["accepted"], in_memory.accept(0.1)[L:])
    for max_error in (0.02, 0.1, 0.17):
        np.testing.assert_array_equal(in_chunks.accept(max_error), in_memory.accept(max_error)[L:])
    # Which rows are alike is not known of chunks: the least sure ones are suggested.
    best = next_to_label(in_memory.transduction_proba_[L:], 30).rows
    np.testing.assert_array_equal(in_chunks.suggest(30), best)


def test_report_agrees_with_the_one_of_rows_in_memory(in_memory, in_chunks):
    expected, found = summarize(in_memory, max_error=0.1), summarize(in_chunks, max_error=0.1)
    for summary in (expected, found):
        for record in [*summary["rounds"], *summary["voters"]["families"]]:
            record.pop("seconds")
        summary.pop("label_next")  # chosen in another way where all rows are at hand
    agrees(found, expected)
    with pytest.raises(ValueError, match=r"max_error=0\.123"):
        in_chunks.report(max_error=0.123)


def agrees(found, expected):
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            agrees(found[key], value)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            agrees(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)
    else:
        assert found == expected


def test_audit_of_rows_that_were_drawn_in_the_last_pass(in_chunks):
    rows = in_chunks.audit_sample(80)
    assert len(set(rows.tolist())) == 80
    assert rows.min() >= 0
    assert rows.max() < len(X) - L
    np.testing.assert_array_equal(in_chunks.audit_sample(20), rows[:20])
    truth = Y[L:][rows]
    statement = in_chunks.audit(rows, truth)
    assert statement.rows == len(X) - L
    assert statement.wrong == int((in_chunks.predict(X[L:][rows]) != truth).sum())
    accepted = in_chunks.audit_sample(20, max_error=0.1)
    assert in_chunks.accept(0.1)[accepted].all()
    proof = in_chunks.audit(accepted, Y[L:][accepted], max_error=0.1)
    assert proof.rows == int(in_chunks.accept(0.1).sum())
    with pytest.raises(ValueError, match="those of audit_sample"):
        in_chunks.audit([10**6], [0])
    with pytest.raises(ValueError, match="no label at position 0"):
        in_chunks.audit(rows, [None, *truth[1:]])
    with pytest.raises(ValueError, match="no label at position 1, but -1"):
        in_chunks.audit(rows, [truth[0], -1, *truth[2:]])
    with pytest.raises(ValueError, match="none of them can be equal"):
        in_chunks.audit(rows, truth.astype(str))
    with pytest.raises(ValueError, match="draw fewer"):
        in_chunks.audit_sample(10**6)
    with pytest.raises(ValueError, match="drawn in the fit"):
        in_chunks.audit_sample(3, random_state=1)


def test_a_round_is_compared_on_the_rows_of_memory(monkeypatch):
    asked = []

    def remembered(votes, new_votes):
        asked.append(votes)
        return True

    monkeypatch.setattr(kept_rounds, "prefers_new_labels", remembered)
    monkeypatch.setattr("fewlabel.ensemble.learner.COMPARED_ROWS", 100)
    monkeypatch.setattr("fewlabel.ensemble.sampled.COMPARED_ROWS", 100)
    once = {"voters": ["forest", "lda"], "max_iter": 1}
    learner(**once).fit(X, np.where(np.arange(len(X)) < L, Y, -1))
    learner(**once).fit(X[:L], Y[:L], unlabeled=UnlabeledRows(CHUNKS))
    in_memory, in_chunks = asked
    assert len(in_memory) == 100
    np.testing.assert_allclose(in_chunks, in_memory, atol=1e-12)


def test_sparse_rows_with_gaps_are_filled():
    rows = sparse.csr_matrix(np.where(X > 2, X, 0.0))
    rows.data[::7] = np.nan
    voters = ["svm", "s3vm", "spreading"]
    clf = learner(voters=voters, max_iter=1).fit(
        rows[:L], Y[:L], unlabeled=UnlabeledRows([rows[L:250], rows[250:]])
    )
    assert not any(record.left_out for record in clf.voters_)


def test_true_labels_are_a_column(tmp_path):
    table = pd.DataFrame(X, columns=list("abcde")).assign(truth=Y.astype(float))
    table.loc[600:, "truth"] = np.nan  # not known
    table[L:].to_parquet(tmp_path / "rows.parquet", index=False)
    rows = UnlabeledRows(tmp_path / "rows.parquet", truth="truth", chunk_rows=100)
    clf = learner(voters=["lda"]).fit(table[list("abcde")][:L], Y[:L], unlabeled=rows)
    told = clf.report().summary["truth"]
    known = pd.DataFrame(X[L:600], columns=list("abcde"))
    assert told["n_known"] == len(known)
    assert told["error"] == pytest.approx((clf.predict(known) != Y[L:600]).mean())
    with pytest.raises(ValueError, match="truth=column"):
        clf.report(y_true=Y)
    with pytest.raises(ValueError, match="out=folder"):
        clf.accept()


def test_every_family_takes_part_and_predicts(tmp_path):
    rows = UnlabeledRows([X[L:400], X[400:]], out=tmp_path / "labels")
    clf = FewLabelClassifier(random_state=0).fit(X[:L], Y[:L], unlabeled=rows)
    assert not [record.left_out for record in clf.voters_ if record.left_out]
    target = np.where(np.arange(len(X)) < L, Y, -1)
    same = FewLabelClassifier(random_state=0).fit(X, target)
    found = results(tmp_path / "labels")
    # The sample is all of the rows here, and families see it as they see rows in memory.
    votes = found[[f"vote_{c}" for c in clf.classes_]].to_numpy()
    np.testing.assert_allclose(votes, same.transduction_proba_[L:], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found["label"], same.transduction_[L:])
    again = UnlabeledRows([X[L:]], max_error=0.2)
    assert predict_rows(clf, again, tmp_path / "again") == len(X) - L
    found = results(tmp_path / "again")
    np.testing.assert_array_equal(found["label"], clf.predict(X[L:]))
    np.testing.assert_array_equal(found["accepted"], clf.accept(0.2, X[L:]))


def test_graphs_are_those_of_memory(tmp_path):
    graphs = ["spreading", "spreading_white", "spreading_forest", "spreading_lda"]
    rows = UnlabeledRows(CHUNKS, out=tmp_path / "labels")
    clf = learner(voters=graphs).fit(X[:L], Y[:L], unlabeled=rows)
    same = learner(voters=graphs).fit(X, np.where(np.arange(len(X)) < L, Y, -1))
    votes = results(tmp_path / "labels")[[f"vote_{c}" for c in clf.classes_]].to_numpy()
    np.testing.assert_allclose(votes, same.transduction_proba_[L:], rtol=0, atol=1e-7)
    assert SAMPLE_ROWS <= ANCHORS  # up to there memory, disk and cluster have the same graphs
    # Also if the labelled rows do not come first in memory.
    given = np.sort(np.random.default_rng(0).permutation(len(X))[:L])
    order = np.insert(np.arange(L, len(X)), given - np.arange(L), np.arange(L))
    scattered = learner(voters=graphs).fit(X[order], np.where(order < L, Y[order], -1))
    found = scattered.transduction_proba_[order >= L]
    np.testing.assert_allclose(votes, found, rtol=0, atol=1e-7)


def test_frames_of_single_precision_stay_so(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcde")).astype(np.float32)
    rows = UnlabeledRows([frame[L:300], frame[300:]], out=tmp_path / "labels")
    clf = learner(voters=["svm"]).fit(frame[:L], Y[:L], unlabeled=rows)
    same = learner(voters=["svm"]).fit(frame, np.where(np.arange(len(X)) < L, Y, -1))
    kinds = [one.estimator_.estimators[0].model.support_vectors_ for one in (clf, same)]
    np.testing.assert_allclose(*kinds, rtol=0, atol=1e-12)
    votes = results(tmp_path / "labels")[[f"vote_{c}" for c in clf.classes_]].to_numpy()
    np.testing.assert_allclose(votes, same.transduction_proba_[L:], rtol=0, atol=1e-12)


def test_tables_are_encoded_by_a_sample(tmp_path):
    table = pd.DataFrame(X[:, :2], columns=["a", "b"])
    table["c"] = np.array(["north", "east", "south", "west"])[Y]
    for clf in (learner(voters=["lda"]), SelfLearningClassifier(random_state=0, max_iter=1)):
        rows = UnlabeledRows([table[L:300], table[300:]])
        clf.fit(table[:L], Y[:L], unlabeled=rows)
        assert clf.table_encoder_ is not None
        assert (clf.predict(table[L:]) == Y[L:]).mean() > 0.95
        assert predict_rows(clf, rows, tmp_path / type(clf).__name__) == len(X) - L


def test_slow_families_are_left_out_and_say_what_a_row_costs(monkeypatch):
    monkeypatch.setattr("fewlabel.ensemble.sampled.ALWAYS_FAST", 100)
    monkeypatch.setattr("fewlabel.ensemble.families.FAMILY_TREES", 400)
    told = []
    clf = learner(voters=["forest", "lda"], time_budget=0.15, callback=told.append)
    with pytest.warns(UserWarning, match=r"would take about .* s for 700 rows \(\d+ µs a row\)"):
        clf.fit(X[:L], Y[:L], unlabeled=CHUNKS)
    by_name = {record.name: record for record in clf.voters_}
    assert by_name["forest"].left_out
    assert by_name["lda"].weight == 1
    assert by_name["lda"].row_seconds > 0
    assert by_name["forest"].row_seconds > 0
    assert [record["name"] for record in told[:2]] == ["forest", "lda"]


def test_what_was_trained_for_a_trial_serves_the_first_fit_only(monkeypatch):
    monkeypatch.setattr("fewlabel.ensemble.sampled.ALWAYS_FAST", 0)
    columns, codes, half = ColumnSums.of(X), Y[:L], np.arange(L // 2)
    trainer = SampleTrainer(
        [X[:L], X[L:]], codes, 4, 0, None, None, columns=columns, n_all=len(X), n_workers=1
    )
    family = OPTIONAL["lda"]
    assert trainer.reason_to_leave_out(family, 1e9, L) == ""
    tried = trainer._tried[family.name]
    rows = trainer.labeled
    others = [
        trainer.train(family, rows[half], codes[half]),
        trainer.train(family, rows, codes, np.linspace(1.0, 2.0, L)),
        trainer.train(family, rows, codes, like=tried),
    ]
    assert all(voter is not tried for voter in others)
    assert trainer.train(family, rows, codes) is tried


@pytest.mark.parametrize("n_workers", [1, 4])
def test_expected_seconds_are_those_of_the_fit_and_of_all_rows(monkeypatch, n_workers):
    """A second for the fit, and two for the votes of 640 rows, which workers share."""
    clock = iter([10.0, 11.0, 13.0])
    monkeypatch.setattr("fewlabel.ensemble.sampled.perf_counter", lambda: next(clock))
    trainer = SampleTrainer(
        [X[:L], X[L:]], Y[:L], 4, 0, None, None,
        columns=ColumnSums.of(X), n_all=1_280_000, n_workers=n_workers,
    )  # fmt: skip
    why = trainer.reason_to_leave_out(OPTIONAL["lda"], 60.0, L)
    assert f"about {1 + 4_000 / n_workers:,.0f} s for 1,280,000 rows (3125 µs a row)" in why


def test_rows_of_a_round_are_found_again_in_the_sample_and_behind_it():
    sample, drawn = X[L:200], [150, 400, 61, 500, 300]  # the first and the third are in the sample
    rows = np.concatenate([X[:L], X[drawn]])
    learner = SampledLearner(
        [OPTIONAL["lda"]],
        1.0,
        None,
        1_000,
        sample,
        ColumnSums.of(X),
        Y[:L],
        4,
        0,
        None,
        None,
        len(X),
    )
    trainer, at = learner._trainer(rows)
    np.testing.assert_array_equal(np.asarray(trainer.X)[at], rows)
    assert at[L:].tolist() == [150, 200, 61, 201, 202]


def test_no_unlabelled_row_at_all():
    clf = learner(voters=["lda"]).fit(X[:L], Y[:L], unlabeled=[X[:0]])
    assert clf.n_iter_ == 0
    assert np.isnan(clf.error_.value)
    assert clf.report().summary["data"]["n_unlabeled"] == 0
    assert len(clf.suggest(3)) == 0


# --- scales from sums ----------------------------------------------------------------------------


def odd_rows():
    rows = X[:200].copy()
    rows[3:9, 1] = np.nan
    rows[:, 2] = 7.0
    rows[:, 3] = np.nan
    return np.column_stack([rows, np.full(200, 0.1)])


@pytest.mark.parametrize("parts", [1, 2, 7])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # a column without any value
def test_scales_from_sums_are_those_of_all_rows(parts):
    rows = odd_rows()
    chunks = np.array_split(rows, parts)
    sums = ColumnSums.of(chunks[0])
    for chunk in chunks[1:]:
        sums += ColumnSums.of(chunk)
    scalers = {"standard": StandardScaler(), "range": RangeScaler()}
    for scaling, scaler in scalers.items():
        expected = scaler.fit(rows).transform(rows)
        found = fitted_scaler(scaling, sums, sparse=False).transform(rows)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_scales_of_sparse_rows():
    some = sparse.random(200, 6, 0.3, format="csr", random_state=0)
    rows = sparse.hstack([some, sparse.csr_matrix((200, 1))], format="csr")  # one column of zeros
    sums = ColumnSums.of(rows[:90]) + ColumnSums.of(rows[90:])
    scalers = {"standard": StandardScaler(with_mean=False), "range": RangeScaler()}
    for scaling, scaler in scalers.items():
        expected = scaler.fit(rows).transform(rows).toarray()
        found = fitted_scaler(scaling, sums, sparse=True).transform(rows).toarray()
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_missing_values_get_the_medians_of_the_sample():
    rows = odd_rows()
    trainer = SampleTrainer(
        [rows[:50], rows[50:]],
        np.arange(50) % 2,
        2,
        0,
        None,
        None,
        columns=ColumnSums.of(rows),
        n_all=200,
        n_workers=1,
    )
    scaler, scaled = trainer.view("standard")
    assert scaled.shape == rows.shape  # the column without any value stays
    assert not np.isnan(scaled).any()
    median = np.nanmedian(StandardScaler().fit_transform(rows[:, [1]]))
    np.testing.assert_allclose(scaled[3:9, 1], median, atol=1e-12)
    np.testing.assert_array_equal(scaler.transform(rows), scaled)
