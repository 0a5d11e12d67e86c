"""The mixed vote on a Dask cluster as people run it, and what they are told when it goes wrong."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs

from fewlabel import DaskRows, FewLabelClassifier, UnlabeledRows

pytest.importorskip("distributed", reason="dask is not installed: pip install 'fewlabel[scale]'")

import dask.array as da
import dask.dataframe as dd
from dask import delayed
from distributed import Client

from fewlabel.chunks import dask_rows
from fewlabel.chunks.dask_errors import NoWorkersError, VersionError
from fewlabel.ensemble import families
from support.dask_cluster import cluster
from support.dask_faults import CountedTree

pytestmark = [
    pytest.mark.xdist_group("dask"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]

X, Y = make_blobs(600, 4, centers=3, cluster_std=4.0, random_state=3)
L, SIZE = 60, 90
CHUNKS = [X[k : k + SIZE] for k in range(L, len(X), SIZE)]
COLUMNS = list("abcd")


@pytest.fixture(scope="module")
def client():
    with cluster(memory_limit="2GiB") as made, Client(made) as client:
        yield client


def learner(*voters, **options):
    options = {"max_iter": 2, "random_state": 0, **options}
    return FewLabelClassifier(list(voters or ("lda", "svm")), **options)


def array():
    return da.from_array(X[L:], chunks=(SIZE, -1))


def frames(*changed):
    """Partitions, some of which are something else."""
    parts = [pd.DataFrame(chunk, columns=COLUMNS) for chunk in CHUNKS]
    for position, part in changed:
        parts[position] = part
    return [delayed(part) for part in parts]


class Parts:
    """A collection of delayed partitions, as Dask has them."""

    def __init__(self, parts):
        self.parts = parts

    def to_delayed(self):
        return self.parts


def results(folder):
    return pd.read_parquet(folder).sort_values("row", ignore_index=True)


def test_votes_and_statements_are_those_of_chunks(client, tmp_path):
    rows = DaskRows(array(), client, out=tmp_path / "labels", max_error=0.1)
    clf = learner().fit(X[:L], Y[:L], unlabeled=rows)
    local = UnlabeledRows(CHUNKS, out=tmp_path / "local", max_error=0.1)
    same = learner().fit(X[:L], Y[:L], unlabeled=local)
    found, expected = results(tmp_path / "labels"), results(tmp_path / "local")
    pd.testing.assert_frame_equal(found, expected, rtol=0, atol=1e-12)
    assert clf.error_ == same.error_
    np.testing.assert_array_equal(clf.suggest(20), same.suggest(20))
    np.testing.assert_array_equal(clf.audit_sample(20), same.audit_sample(20))
    assert clf.report().summary["data"] == same.report().summary["data"]


def set_trees(n_trees):
    from fewlabel.ensemble import families

    before, families.FAMILY_TREES = families.FAMILY_TREES, n_trees
    return before


def test_every_family_votes_as_in_memory(client, tmp_path):
    # The tests' forests are small ones; workers have to know.
    before = next(iter(client.run(set_trees, families.FAMILY_TREES).values()))
    try:
        compare_with_memory(client, tmp_path)
    finally:
        client.run(set_trees, before)


def compare_with_memory(client, tmp_path):
    rows = DaskRows(array(), client, out=tmp_path / "labels")
    clf = FewLabelClassifier(random_state=0).fit(X[:L], Y[:L], unlabeled=rows)
    same = FewLabelClassifier(random_state=0).fit(X, np.where(np.arange(len(X)) < L, Y, -1))
    votes = results(tmp_path / "labels")[[f"vote_{c}" for c in clf.classes_]].to_numpy()
    np.testing.assert_allclose(votes, same.transduction_proba_[L:], rtol=0, atol=1e-12)


def test_voters_travel_once_to_a_worker_not_once_a_partition(client, tmp_path):
    (tmp_path / "arrivals").mkdir()
    tree = CountedTree(folder=str(tmp_path / "arrivals"), max_depth=3, random_state=0)
    many = da.from_array(X[L:], chunks=(20, -1))
    clf = learner(("tree", tree)).fit(X[:L], Y[:L], unlabeled=DaskRows(many, client))
    models, workers = 1 + clf.n_iter_, 2
    arrivals = [path.name.split("-")[0] for path in (tmp_path / "arrivals").iterdir()]
    elsewhere = [process for process in arrivals if int(process) != os.getpid()]
    assert many.npartitions == 27
    # Each model to each worker; the one before also to the worker that trains the next.
    assert 0 < len(elsewhere) <= (models + 1) * workers


# --- what goes wrong -----------------------------------------------------------------------------


def broken():
    raise KeyError("no such key")


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        (delayed(broken)(), RuntimeError, r"partition 2: KeyError: 'no such key'"),
        (pd.DataFrame(CHUNKS[2][:, :3], columns=list("abc")), ValueError, r"partition 2.* d\b"),
        (
            pd.DataFrame(CHUNKS[2], columns=COLUMNS).assign(b="much"),
            ValueError,
            r"partition 2: .*could not convert string to float: 'much'",
        ),
    ],
    ids=["raises", "lacks a column", "has texts"],
)
def test_a_bad_partition_is_named(changed, error, message, client, tmp_path):
    rows = DaskRows(Parts(frames((2, changed))), client, out=tmp_path / "labels")
    frame = pd.DataFrame(X[:L], columns=COLUMNS)
    with pytest.raises(error, match=message):
        learner("lda").fit(frame, Y[:L], unlabeled=rows)
    assert list(tmp_path.iterdir()) == []
    # The same fit after the partition was put right gives what it would have given.
    again = DaskRows(Parts(frames()), client, out=tmp_path / "labels")
    learner("lda").fit(frame, Y[:L], unlabeled=again)
    learner("lda").fit(frame, Y[:L], unlabeled=UnlabeledRows(CHUNKS, out=tmp_path / "local"))
    pd.testing.assert_frame_equal(results(tmp_path / "labels"), results(tmp_path / "local"))


def test_an_empty_partition_has_no_rows_and_no_harm(client, tmp_path):
    empty = pd.DataFrame(X[:0], columns=COLUMNS)
    rows = DaskRows(Parts([*frames(), delayed(empty)]), client, out=tmp_path / "labels")
    learner("lda").fit(pd.DataFrame(X[:L], columns=COLUMNS), Y[:L], unlabeled=rows)
    assert len(results(tmp_path / "labels")) == len(X) - L


def set_version(package, version):
    module = importlib.import_module(package)
    before, module.__version__ = module.__version__, version
    return before


@pytest.mark.parametrize(
    ("package", "named"),
    [("fewlabel", "fewlabel"), ("sklearn", "scikit-learn"), ("numpy", "(?i:numpy)")],
)
def test_workers_with_another_version(package, named, client, tmp_path):
    before = next(iter(client.run(set_version, package, "0.0.1").values()))
    rows = DaskRows(array(), client, out=tmp_path / "labels")
    try:
        with pytest.raises(VersionError, match=rf"{named} 0\.0\.1 instead of .*No results were"):
            learner("lda").fit(X[:L], Y[:L], unlabeled=rows)
    finally:
        client.run(set_version, package, before)
    assert list(tmp_path.iterdir()) == []


def test_no_worker_says_where_and_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(dask_rows, "_LOOK_SECONDS", 0.2)
    with cluster(0) as made, Client(made) as client:
        rows = DaskRows(array(), client, out=tmp_path / "labels", worker_timeout=0.5)
        with pytest.raises(NoWorkersError) as caught:
            learner("lda").fit(X[:L], Y[:L], unlabeled=rows)
        assert str(caught.value) == (
            f"The cluster at {made.scheduler_address} has had no worker for a while, so the fit "
            f"cannot go on. No results were written. Start workers and fit again."
        )
    assert list(tmp_path.iterdir()) == []


def test_workers_that_come_when_they_are_needed(tmp_path):
    with cluster(0) as made, Client(made) as client:
        made.adapt(minimum=0, maximum=1, interval="200ms")
        rows = DaskRows(array(), client, out=tmp_path / "labels")
        learner("lda").fit(X[:L], Y[:L], unlabeled=rows)
    learner("lda").fit(X[:L], Y[:L], unlabeled=UnlabeledRows(CHUNKS, out=tmp_path / "local"))
    pd.testing.assert_frame_equal(
        results(tmp_path / "labels"), results(tmp_path / "local"), rtol=0, atol=1e-12
    )


def test_files_by_pattern_and_progress(client, tmp_path, monkeypatch):
    monkeypatch.setattr(dask_rows, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr("fewlabel.chunks.progress._EVERY", 0.0)
    (tmp_path / "rows").mkdir()
    for k, chunk in enumerate(CHUNKS):
        frame = pd.DataFrame(chunk, columns=COLUMNS)
        frame.to_parquet(tmp_path / "rows" / f"{k}.parquet", index=False)
    told = []
    pattern = str(tmp_path / "rows" / "*.parquet")
    rows = DaskRows(pattern, client, progress=told.append)
    learner("svm").fit(pd.DataFrame(X[:L], columns=COLUMNS), Y[:L], unlabeled=rows)
    assert told
    assert {at.total for at in told} <= {0, len(X) - L}
    assert all("rows" in str(at) for at in told)
    assert rows.n_unlabeled == len(X) - L
    assert dd.read_parquet(Path(pattern).parent).npartitions == len(CHUNKS)
