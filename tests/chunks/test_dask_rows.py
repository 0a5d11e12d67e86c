"""On a Dask cluster: the same thresholds, and no wrong or half-written results after faults."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from fewlabel import (
    DaskRows,
    SelfLearningClassifier,
    UnlabeledRows,
    bounds_of_rows,
    optimal_thresholds,
    predict_rows,
    risk_bound,
)

pytest.importorskip("distributed", reason="dask is not installed: pip install 'fewlabel[scale]'")

import dask
import dask.array as da
import dask.dataframe as dd
from distributed import Client

from fewlabel.chunks import dask_rows as distributed
from support.dask_cluster import cluster
from support.dask_faults import FaultyForest, GivenVotes

pytestmark = [
    # One process for all of them: the clusters would compete for the processors.
    pytest.mark.xdist_group("dask"),
    # The first rows of the digits are no random ones, and the estimate says so.
    pytest.mark.filterwarnings("ignore:The estimate of the error is unsafe"),
    # What Dask says about its own sockets and processes while they are being ended.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]

X, Y = load_digits(return_X_y=True)
X, Y = X[:700], Y[:700]
L, SIZE = 100, 150  # labelled rows, rows of a partition
CHUNKS = [X[k : k + SIZE] for k in range(L, len(X), SIZE)]
COLUMNS = [f"x{k}" for k in range(X.shape[1])]


@pytest.fixture(scope="module")
def client():
    with cluster(memory_limit="2GiB") as made, Client(made) as client:
        yield client


def learner(**options):
    forest = RandomForestClassifier(10, random_state=0)
    return SelfLearningClassifier(options.pop("estimator", forest), random_state=0, **options)


def array():
    return da.from_array(X[L:], chunks=(SIZE, -1))


def results(folder):
    return pd.read_parquet(folder).sort_values("row", ignore_index=True)


def undisturbed(tmp_path, **options):
    """Labels by one process, with the same partitions and seeds."""
    rows = UnlabeledRows(CHUNKS, train="partitions", out=tmp_path / "expected")
    learner(**options).fit(X[:L], Y[:L], unlabeled=rows)
    return results(tmp_path / "expected")


def nothing_written(tmp_path, *others):
    return sorted(path.name for path in tmp_path.iterdir()) == sorted(others)


# --- the same algorithm ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["forest", "continuous"])
def test_thresholds_of_given_votes_agree(kind, client):
    rng = np.random.default_rng(0)
    votes = rng.dirichlet(np.full(4, 0.5), size=6000)
    if kind == "forest":
        votes = np.array([rng.multinomial(200, v) for v in votes]) / 200
    given, codes = np.eye(4), np.arange(4)
    settings = {"estimator": GivenVotes(), "max_iter": 1}
    resolution = None if kind == "forest" else 1000
    expected = optimal_thresholds(votes, votes, resolution=resolution)
    if kind == "forest":
        target = np.append(codes, np.full(len(votes), -1))
        in_memory = learner(**settings).fit(np.vstack([given, votes]), target)
        np.testing.assert_allclose(in_memory.thresholds_, expected, rtol=0, atol=1e-12)
    bounds = []
    for n in (1, 2, 7):
        size = -(-len(votes) // n)
        chunks = [votes[k : k + size] for k in range(0, len(votes), size)]
        for rows in (UnlabeledRows(chunks), DaskRows(da.from_array(votes, (size, -1)), client)):
            clf = learner(**settings).fit(given, codes, unlabeled=rows)
            np.testing.assert_allclose(clf.thresholds_, expected, rtol=0, atol=1e-12)
            bounds.append(clf.risk_bound_)
    np.testing.assert_allclose(bounds, bounds[0], rtol=1e-12)
    exact = risk_bound(votes, votes, tight=True)
    assert bounds[0] >= exact * (1 - 1e-12)  # binned: never below


def test_dask_gives_what_chunks_give(client, tmp_path):
    rows = DaskRows(array(), client, out=tmp_path / "labels")
    clf = learner().fit(X[:L], Y[:L], unlabeled=rows)
    assert len(clf.estimator_.estimators_) == 10
    pd.testing.assert_frame_equal(results(tmp_path / "labels"), undisturbed(tmp_path))
    local = UnlabeledRows(CHUNKS)
    assert bounds_of_rows(clf, rows, X[:L], Y[:L]) == bounds_of_rows(clf, local, X[:L], Y[:L])
    assert predict_rows(clf, rows, tmp_path / "again") == len(X) - L
    again = results(tmp_path / "again")
    np.testing.assert_array_equal(again["label"], clf.predict(X[L:]))


@pytest.mark.filterwarnings("ignore:lbfgs failed")
def test_other_classifiers_train_on_a_sample(client, tmp_path):
    base = LogisticRegression(max_iter=30, tol=0.1)
    rows = DaskRows(array(), client, out=tmp_path / "labels")
    settings = {"estimator": base, "max_iter": 1, "max_train": 200}
    clf = learner(**settings).fit(X[:L], Y[:L], unlabeled=rows)
    same = learner(**settings).fit(X[:L], Y[:L], unlabeled=UnlabeledRows(CHUNKS))
    np.testing.assert_allclose(clf.estimator_.coef_, same.estimator_.coef_, atol=1e-9)


def frame(tmp_path):
    folder = tmp_path / "rows"
    folder.mkdir()
    for k, chunk in enumerate(CHUNKS):
        pd.DataFrame(chunk, columns=COLUMNS).to_parquet(folder / f"{k}.parquet", index=False)
    return folder


@pytest.mark.parametrize("kind", ["dataframe", "folder"])
def test_parquet(kind, client, tmp_path):
    folder = frame(tmp_path)
    source = folder if kind == "folder" else dd.read_parquet(folder)
    rows = DaskRows(source, client, out=tmp_path / "labels")
    learner().fit(pd.DataFrame(X[:L], columns=COLUMNS), Y[:L], unlabeled=rows)
    pd.testing.assert_frame_equal(results(tmp_path / "labels"), undisturbed(tmp_path))


def test_markers_that_are_ambiguous_together(client):
    table = pd.DataFrame({"x": [0.0, 1.0, 0.0, 1.0], "t": [1.0, np.nan, -1.0, 1.0]})
    rows = DaskRows(dd.from_pandas(table, npartitions=2), client, target="t")
    with pytest.raises(ValueError, match="both -1 and missing"):
        learner().fit(np.array([[0.0], [1.0]]), [0.0, 1.0], unlabeled=rows)


def test_columns_in_blocks_are_put_together(client, tmp_path):
    blocks = da.from_array(X[L:], chunks=(SIZE, 20))
    rows = DaskRows(blocks, client, out=tmp_path / "labels")
    learner().fit(X[:L], Y[:L], unlabeled=rows)
    pd.testing.assert_frame_equal(results(tmp_path / "labels"), undisturbed(tmp_path))


# --- faults ------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["corrupt", "missing"])
@pytest.mark.parametrize("kind", ["dataframe", "folder"])
def test_bad_partition_file(kind, damage, client, tmp_path):
    folder = frame(tmp_path)
    source = folder if kind == "folder" else dd.read_parquet(folder)
    rows = DaskRows(source, client, out=tmp_path / "labels")
    bad = folder / "2.parquet"
    if damage == "corrupt":
        bad.write_bytes(bad.read_bytes()[:-300] + b"nothing")
    else:
        bad.unlink()
    named = "2.parquet" if kind == "folder" or damage == "missing" else "partition 2"
    with pytest.raises(OSError, match=r"cannot be read.*no results were written") as caught:
        learner().fit(pd.DataFrame(X[:L], columns=COLUMNS), Y[:L], unlabeled=rows)
    assert named in str(caught.value)
    assert nothing_written(tmp_path, "rows")


# Votes in order: 4 partitions in the first pass, then 4 in each round and 4 at the end.
def test_worker_killed_in_mid_round(tmp_path):
    """The result is the one of a run in which nothing happened."""
    fatal_vote = 6
    (tmp_path / "votes").mkdir()
    forest = FaultyForest(
        counter=str(tmp_path / "votes"), fault="kill", fatal_vote=fatal_vote, home=os.getpid()
    )
    with cluster(2) as made, Client(made) as client:
        before = set(client.run(os.getpid).values())
        rows = DaskRows(array(), client, out=tmp_path / "labels")
        learner(estimator=forest).fit(X[:L], Y[:L], unlabeled=rows)
        assert len(list((tmp_path / "votes").iterdir())) > fatal_vote
        assert before - set(client.run(os.getpid).values())  # one of them is indeed gone
    pd.testing.assert_frame_equal(results(tmp_path / "labels"), undisturbed(tmp_path))


def test_worker_killed_between_rounds(tmp_path):
    """What the worker kept of earlier rounds is made anew."""
    killed = []

    def kill(record):
        if record["iteration"] == 1:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    with cluster(2) as made, Client(made) as client:
        rows = DaskRows(array(), client, out=tmp_path / "labels")
        clf = learner(callback=kill).fit(X[:L], Y[:L], unlabeled=rows)
        assert clf.n_iter_ > 1
    assert killed
    pd.testing.assert_frame_equal(results(tmp_path / "labels"), undisturbed(tmp_path))


def test_worker_out_of_memory(tmp_path):
    (tmp_path / "votes").mkdir()
    forest = FaultyForest(
        counter=str(tmp_path / "votes"), fault="memory", fatal_vote=1, home=os.getpid()
    )
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        cluster(2, memory_limit="700MiB") as made,
        Client(made) as client,
    ):
        rows = DaskRows(array(), client, out=tmp_path / "labels")
        with pytest.raises(MemoryError, match="too little memory for a partition"):
            learner(estimator=forest).fit(X[:L], Y[:L], unlabeled=rows)
    assert nothing_written(tmp_path, "votes")


CLUSTER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(
        n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    ) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""


def test_scheduler_goes_away(tmp_path):
    program = tmp_path / "cluster.py"
    program.write_text(CLUSTER)
    with subprocess.Popen(
        [sys.executable, str(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            address = process.stdout.readline().strip()
            with (
                dask.config.set({"distributed.comm.timeouts.connect": "2s"}),
                distributed.open_client(address) as client,
            ):

                def end(record):
                    os.killpg(process.pid, signal.SIGKILL)

                rows = DaskRows(array(), client, out=tmp_path / "labels")
                with pytest.raises(ConnectionError, match="connection to the scheduler at tcp"):
                    learner(callback=end).fit(X[:L], Y[:L], unlabeled=rows)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert nothing_written(tmp_path, "cluster.py")


def test_no_worker_left(tmp_path, monkeypatch):
    monkeypatch.setattr(distributed, "_LOOK_SECONDS", 0.2)
    with cluster(1) as made, Client(made) as client:
        rows = DaskRows(array(), client, out=tmp_path / "labels", worker_timeout=1)
        with pytest.raises(RuntimeError, match="has had no worker"):
            learner(callback=lambda record: made.scale(0)).fit(X[:L], Y[:L], unlabeled=rows)
    assert nothing_written(tmp_path)


# --- the edge ----------------------------------------------------------------------------------


def test_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install 'fewlabel\[scale\]'"):
        DaskRows(array())


def test_folder_that_workers_do_not_share(client, tmp_path, monkeypatch):
    monkeypatch.setattr("fewlabel.chunks.labeling.result_folder", elsewhere)
    clf = learner().fit(X[:L], Y[:L], unlabeled=UnlabeledRows(CHUNKS))
    with pytest.raises(RuntimeError, match="file system that all workers share"):
        predict_rows(clf, DaskRows(array(), client), tmp_path / "labels")


@contextmanager
def elsewhere(out):
    """A folder that only this machine has."""
    yield out


def test_errors_say_what_to_do(client):
    with pytest.raises(TypeError, match=r"takes a dask\.dataframe"):
        DaskRows(X, client)
    with pytest.raises(TypeError, match=r"unlabeled=DaskRows"):
        learner().fit(X[:L], Y[:L], unlabeled=array())
    with pytest.raises(ValueError, match="'local' or an address"), distributed.open_client("here"):
        pass
    rows = DaskRows(da.from_array(X[L:, :5]), client)
    with pytest.raises(ValueError, match=r"partition 0: .*64 columns"):
        learner().fit(X[:L], Y[:L], unlabeled=rows)
