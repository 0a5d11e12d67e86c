"""Loading, fetching, splitting and masking."""

from __future__ import annotations

from pathlib import Path
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets
from scipy.sparse import csr_matrix, issparse
from sklearn.model_selection import train_test_split
from sklearn.utils import Bunch

from reproduction import datasets
from reproduction.datasets import BUNDLED, PAPER_SETS, load_dataset, mask_labels, paper_split
from reproduction.openml import DownloadError


@pytest.fixture
def openml(monkeypatch, tmp_path):
    """A Table 1 of one small set, and an OpenML that answers with what it is given."""
    info = datasets.DatasetInfo("Small", 3, 2, 2, 2, 7, "small", ("id",))
    monkeypatch.setitem(datasets.PAPER_SETS, "small", info)
    monkeypatch.setenv("FEWLABEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FEWLABEL_DATA", raising=False)

    def offer(data, target, name="small"):
        frame = None if issparse(data) else data
        found = Bunch(data=data, frame=frame, target=target, details={"name": name})
        monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **_: found)

    return offer


FRAME = {"a": [1.5, np.nan, -20], "b": pd.Categorical(["0", "1", "1"]), "id": [1, 2, 3]}
TARGET = pd.Series(pd.Categorical(["10", "2", "10"]))


def test_a_fetched_set_is_read_from_the_cache(openml):
    openml(pd.DataFrame(FRAME), TARGET)
    assert datasets.missing_sets(["iris", "small"]) == ["small"]
    datasets.fetch_dataset("small")
    assert datasets.missing_sets(["iris", "small"]) == []
    loaded = load_dataset("small")
    assert loaded.X.tolist() == [[1.5, 0], [-9.25, 1], [-20, 1]]  # a mean where one was missing
    assert loaded.X.dtype == np.float32
    assert loaded.y.tolist() == [1, 0, 1]  # by number
    assert [path.name for path in datasets.cache_dir().iterdir()] == ["small.npz"]


def test_a_sparse_set_is_fetched(openml):
    openml(csr_matrix([[2.5, 0], [0, -1], [0, 0]]), np.array(["b", "a", "a"]))
    datasets.fetch_dataset("small")
    assert load_dataset("small").X.tolist() == [[2.5, 0], [0, -1], [0, 0]]
    assert load_dataset("small").y.tolist() == [1, 0, 0]


def test_another_version_is_refused_and_not_kept(openml):
    openml(pd.DataFrame(FRAME), ["1", "2", "3"])
    with pytest.raises(DownloadError, match=r"\(3, 2, 3\).*\(3, 2, 2\).*another version"):
        datasets.fetch_dataset("small")
    openml(pd.DataFrame(FRAME), TARGET, name="other")
    with pytest.raises(DownloadError, match="'other' now"):
        datasets.fetch_dataset("small")
    assert not datasets.cache_dir().exists()


def test_without_a_network(openml, monkeypatch):
    def unreachable(**_):
        raise URLError("no network")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", unreachable)
    with pytest.raises(DownloadError, match=r"OpenML 7 could not be fetched: .*no network"):
        datasets.fetch_dataset("small")


def test_the_error_says_where_to_put_the_file(openml, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"sensit\.npz") as error:
        load_dataset("sensit")
    assert str(tmp_path) in str(error.value)
    assert "98528, 100" in str(error.value)
    assert "--fetch" in str(error.value)


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
        load_dataset("har", tmp_path)
    with pytest.raises(FileNotFoundError, match="are the data set 'har'"):
        load_dataset("har_recomputed", tmp_path / "..")
    np.savez(tmp_path / "har.npz", X=np.zeros((3, 2)), y=np.array([0, 1, 0]))
    assert load_dataset("har", tmp_path).note == ""


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled(name):
    loaded = load_dataset(name)
    info = loaded.info
    assert (*loaded.X.shape, len(np.unique(loaded.y))) == info.shape
    assert loaded.y.min() == 0


@pytest.mark.data
@pytest.mark.parametrize("name", [*sorted({*PAPER_SETS} - {"har", "sensit"}), "har_recomputed"])
def test_table_1(name, data_dir):
    loaded = load_dataset(name, data_dir)
    info = loaded.info
    assert (*loaded.X.shape, len(np.unique(loaded.y))) == info.shape
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
