"""Loading, splitting and masking; downloads are tested against a server on this machine."""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from reproduction import datasets
from reproduction import openml as _openml
from reproduction.datasets import BUNDLED, PAPER_SETS, load_dataset, mask_labels, paper_split

ARFF = """% a comment
@RELATION small
@ATTRIBUTE 'Train or Test' {train,test}
@ATTRIBUTE f0 REAL
@ATTRIBUTE "f1" {0,1}
@ATTRIBUTE Class {'c10',c2}
@DATA
train,1.5,0,c2
test,?,1,'c10'

train,-2e1,1,c2
"""
SPARSE = """@relation s
@attribute a numeric
@attribute b numeric
@attribute class {1,2,3}
@data
{0 2.5, 2 3}
{1 -1}
{ }
"""


class _Server(ThreadingHTTPServer):
    """Answers like OpenML with the files it is given; counts the requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.address = f"http://127.0.0.1:{self.server_port}"

    def offer(
        self, info: datasets.DatasetInfo, arff: str, *, md5: str = "", **more: object
    ) -> None:
        body = arff.encode()
        description = {
            "name": info.openml_name,
            "url": f"{self.address}/data/file.arff",
            "md5_checksum": md5 or hashlib.md5(body).hexdigest(),
            "default_target_attribute": "class",
            **more,
        }
        answer = json.dumps({"data_set_description": description})
        self.files[f"/api/v1/json/data/{info.openml_id}"] = answer.encode()
        self.files["/data/file.arff"] = body


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        body = self.server.files.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch, tmp_path):
    with _Server() as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        monkeypatch.setenv("FEWLABEL_OPENML", running.address)
        monkeypatch.setenv("FEWLABEL_CACHE", str(tmp_path / "cache"))
        monkeypatch.delenv("FEWLABEL_DATA", raising=False)
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def small(monkeypatch):
    """A Table 1 of one small set, so that the shape check can pass."""
    info = datasets.DatasetInfo("Small", 3, 2, 3, 2, 7, "small")
    monkeypatch.setitem(datasets.PAPER_SETS, "small", info)
    return info


SPARSE_3 = SPARSE.replace("{1 -1}", "{1 -1, 2 2}")


def test_fetches_once_then_reads_the_cache(server, small):
    server.offer(small, SPARSE_3)
    first = load_dataset("small")
    assert first.X.tolist() == [[2.5, 0], [0, -1], [0, 0]]
    assert first.y.tolist() == [2, 1, 0]
    assert len(server.requests) == 2
    again = load_dataset("small")
    assert again.y.tolist() == [2, 1, 0]
    assert len(server.requests) == 2
    left = sorted(path.name for path in datasets.cache_dir().iterdir())
    assert left == ["small.npz"]


def test_checksum_may_be_in_capitals(server, small):
    server.offer(small, SPARSE_3, md5=hashlib.md5(SPARSE_3.encode()).hexdigest().upper())
    assert load_dataset("small").y.tolist() == [2, 1, 0]


def test_damaged_download_is_refused_and_not_kept(server, small):
    server.offer(small, SPARSE_3, md5="0" * 32)
    with pytest.raises(_openml.DownloadError, match=r"MD5.*Nothing was kept") as error:
        load_dataset("small")
    assert str(datasets.cache_dir()) in str(error.value)
    assert list(datasets.cache_dir().iterdir()) == []


def test_truncated_download_is_refused(server, small):
    server.offer(small, SPARSE_3)
    server.files["/data/file.arff"] = server.files["/data/file.arff"][:-5]
    with pytest.raises(_openml.DownloadError, match="MD5"):
        load_dataset("small")


def test_another_version_is_refused(server, small):
    server.offer(small, SPARSE)  # two of the three classes only
    with pytest.raises(_openml.DownloadError, match=r"\(3, 2, 2\).*\(3, 2, 3\).*another version"):
        load_dataset("small")


@pytest.mark.parametrize(
    ("arff", "reason"),
    [
        (SPARSE_3.replace("class", "klass"), "no column 'class'"),
        (SPARSE_3.replace("2.5", "much"), "could not convert"),
        (SPARSE_3.replace("{1 ", "{9 "), "index out of range"),
    ],
)
def test_unreadable_file_is_refused_and_not_kept(server, small, arff, reason):
    server.offer(small, arff)
    with pytest.raises(_openml.DownloadError, match=rf"file\.arff .*{reason}.*small\.npz"):
        load_dataset("small")
    assert list(datasets.cache_dir().iterdir()) == []


def test_another_fetch_at_the_same_time_takes_no_file_away(server, small, monkeypatch):
    server.offer(small, SPARSE_3)
    others = []

    def read_after_another_fetch(*arguments):
        if not others:
            others.append(None)
            others.append(load_dataset("small"))
        return _openml.read_arff(*arguments)

    monkeypatch.setattr(datasets, "read_arff", read_after_another_fetch)
    assert load_dataset("small").y.tolist() == others[1].y.tolist() == [2, 1, 0]
    assert [path.name for path in datasets.cache_dir().iterdir()] == ["small.npz"]


def test_wrong_name_is_refused(server, small):
    server.offer(small, SPARSE_3, name="other")
    with pytest.raises(_openml.DownloadError, match="'other' now"):
        load_dataset("small")


@pytest.mark.parametrize("field", ["name", "url", "md5_checksum", "default_target_attribute"])
def test_incomplete_description_is_refused(server, small, field):
    server.offer(small, SPARSE_3, **{field: None})
    with pytest.raises(_openml.DownloadError, match=rf"data/7 lacks \['{field}'\].*small\.npz"):
        load_dataset("small")
    listed = json.loads(server.files["/api/v1/json/data/7"])
    del listed["data_set_description"][field]
    server.files["/api/v1/json/data/7"] = json.dumps(listed).encode()
    with pytest.raises(_openml.DownloadError, match=rf"data/7 lacks \['{field}'\].*small\.npz"):
        load_dataset("small")


@pytest.mark.parametrize("answer", [b"[1]", b'{"data_set_description": 1}', b"", b"{}"])
def test_an_answer_that_is_no_description_is_refused(server, small, answer):
    server.files["/api/v1/json/data/7"] = answer
    with pytest.raises(_openml.DownloadError, match=r"no description at .*data/7.*small\.npz"):
        load_dataset("small")


@pytest.mark.parametrize("address", ["", "no address", "http://[::1/file", "http://h:port/f"])
def test_malformed_address_is_refused(server, small, address):
    server.offer(small, SPARSE_3, url=address)
    with pytest.raises(_openml.DownloadError, match=r"could not download .*small\.npz") as error:
        load_dataset("small")
    assert address in str(error.value)


def test_offline_error_says_where_to_put_the_file(monkeypatch, tmp_path):
    monkeypatch.setenv("FEWLABEL_CACHE", str(tmp_path))
    monkeypatch.delenv("FEWLABEL_DATA", raising=False)
    monkeypatch.setenv("FEWLABEL_OPENML", "http://127.0.0.1:9")  # nobody listens there
    with pytest.raises(_openml.DownloadError, match=r"sensit\.npz") as error:
        load_dataset("sensit")
    assert str(tmp_path) in str(error.value)
    assert "98528, 100" in str(error.value)
    with pytest.raises(FileNotFoundError, match=r"sensit\.npz"):
        load_dataset("sensit", fetch=False)


def test_download_reports_progress(server, small, tmp_path):
    server.offer(small, SPARSE_3)
    seen: list[tuple[int, int | None]] = []
    description = _openml.describe(small.openml_id)
    _openml.download(description, tmp_path / "f", lambda *state: seen.append(state))
    size = len(SPARSE_3.encode())
    assert seen[-1] == (size, size)
    lines: list[str] = []
    datasets._printer("small", lines.append)(2_500_000, 5_000_000)
    assert lines == ["\rsmall: 2.5 of 5.0 MB (50 %)"]


def test_dense_arff(tmp_path):
    path = tmp_path / "f.arff"
    path.write_text(ARFF)
    X, y = _openml.read_arff(path, "Class", ["Train or Test", "not there"])
    np.testing.assert_array_equal(X, np.float32([[1.5, 0], [np.nan, 1], [-20, 1]]))
    assert y.tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match="no column 'klass'"):
        _openml.read_arff(path, "klass")


def test_columns_that_openml_hides_are_dropped():
    info = PAPER_SETS["protein"]
    hidden = {"row_id_attribute": "id", "ignore_attribute": "a, b"}
    assert datasets._to_drop(hidden, info)[-3:] == ["id", "a", "b"]
    assert datasets._to_drop({"ignore_attribute": ["c"]}, info)[-1:] == ["c"]


def test_folder_argument_wins_over_environment_and_cache(monkeypatch, tmp_path):
    for rank, folder in enumerate(("argument", "environment", "cache")):
        (tmp_path / folder).mkdir()
        X = np.full((3, 2), float(rank))
        np.savez(tmp_path / folder / "vowel.npz", X=X, y=np.array([0, 1, 0]))
    monkeypatch.setenv("FEWLABEL_DATA", str(tmp_path / "environment"))
    monkeypatch.setenv("FEWLABEL_CACHE", str(tmp_path / "cache"))
    assert load_dataset("vowel", tmp_path / "argument").X[0, 0] == 0
    assert load_dataset("vowel").X[0, 0] == 1
    monkeypatch.delenv("FEWLABEL_DATA")
    assert load_dataset("vowel").X[0, 0] == 2
    assert not load_dataset("vowel").verified
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load_dataset("vowel", tmp_path / "nowhere")


def test_broken_files_are_named(tmp_path):
    np.savez(tmp_path / "vowel.npz", X=np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"vowel\.npz.*lacks \['y'\]"):
        load_dataset("vowel", tmp_path)
    np.savez(tmp_path / "vowel.npz", X=np.zeros((3, 2)), y=np.zeros(4))
    with pytest.raises(ValueError, match="Got"):
        load_dataset("vowel", tmp_path)
    with pytest.raises(ValueError, match="must be one of vowel"):
        load_dataset("wovel")


def test_a_damaged_file_is_named_with_the_remedy(tmp_path):
    path = tmp_path / "vowel.npz"
    np.savez_compressed(path, X=np.zeros((30, 2)), y=np.zeros(30))
    whole = path.read_bytes()
    middle = len(whole) // 2
    for damaged in (b"", b"no archive", whole[:middle], whole[:99] + bytes(40) + whole[139:]):
        path.write_bytes(damaged)
        with pytest.raises(
            ValueError, match=r"vowel\.npz is damaged.*Remove.*\(990, 10\)"
        ) as error:
            load_dataset("vowel", tmp_path)
        assert str(error.value).startswith(str(path))
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(ValueError, match=r"vowel\.npz is damaged or no \.npz file"):
        load_dataset("vowel", tmp_path)


def test_missing_values_become_the_column_mean(tmp_path):
    X = np.array([[1.0, np.nan], [3.0, 4.0], [np.nan, 8.0]], dtype=np.float32)
    np.savez(tmp_path / "protein.npz", X=X, y=np.array([0, 1, 0]))
    loaded = load_dataset("protein", tmp_path)
    assert loaded.X.tolist() == [[1, 6], [3, 4], [2, 8]]
    assert "column mean" in loaded.note


def test_har_with_recomputed_features_says_so(tmp_path):
    np.savez(tmp_path / "har_recomputed.npz", X=np.zeros((3, 2)), y=np.array([0, 1, 0]))
    assert load_dataset("har_recomputed", tmp_path).note == "features recomputed"
    # Never one for the other: a figure must not be shown under the wrong name.
    with pytest.raises(FileNotFoundError, match="a folder has har_recomputed"):
        load_dataset("har", tmp_path, fetch=False)
    with pytest.raises(FileNotFoundError, match="are the data set 'har'"):
        load_dataset("har_recomputed", tmp_path / "..")
    np.savez(tmp_path / "har.npz", X=np.zeros((3, 2)), y=np.array([0, 1, 0]))
    assert load_dataset("har", tmp_path).note == ""


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled(name):
    loaded = load_dataset(name)
    info = loaded.info
    found = (*loaded.X.shape, len(np.unique(loaded.y)))
    assert found == (info.n_samples, info.n_features, info.n_classes)
    assert loaded.y.min() == 0


@pytest.mark.data
@pytest.mark.parametrize("name", [*sorted({*PAPER_SETS} - {"har", "sensit"}), "har_recomputed"])
def test_table_1(name, data_dir):
    loaded = load_dataset(name, data_dir, fetch=False)
    info = loaded.info
    found = (*loaded.X.shape, len(np.unique(loaded.y)))
    assert found == (info.n_samples, info.n_features, info.n_classes)
    assert loaded.verified
    assert np.isfinite(loaded.X).all()


def test_the_papers_split():
    y = np.arange(50) % 3
    X = np.arange(50)
    split = paper_split(y, 9, trial=7)
    train, rest = train_test_split(X, train_size=9, random_state=70)
    np.testing.assert_array_equal(split.labeled, train)
    np.testing.assert_array_equal(split.unlabeled, rest)
    assert len(split.test) == 0
    tested = paper_split(y, 9, trial=7, n_test=10)
    np.testing.assert_array_equal(tested.labeled, train)
    assert sorted([*tested.labeled, *tested.unlabeled, *tested.test]) == list(range(50))
    assert len(tested.test) == 10
    with pytest.raises(ValueError, match="n_test"):
        paper_split(y, 9, n_test=41)


def test_other_seeds_and_stratified_splits():
    y = np.repeat([0, 1], [80, 20])
    assert set(paper_split(y, 10, seed=3).labeled) != set(paper_split(y, 10).labeled)
    stratified = paper_split(y, 10, trial=1, stratify=True)
    assert np.bincount(y[stratified.labeled]).tolist() == [8, 2]


def test_mask_labels():
    y = np.array([2, 0, 1, 1])
    masked = mask_labels(y, np.array([0, 3]))
    assert masked.tolist() == [2, -1, -1, 1]
    assert y.tolist() == [2, 0, 1, 1]


def test_path_of_cache_defaults_to_home(monkeypatch):
    monkeypatch.delenv("FEWLABEL_CACHE", raising=False)
    assert datasets.cache_dir() == Path.home() / ".cache" / "fewlabel"
