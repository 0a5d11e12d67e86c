"""Rows at addresses such as ``s3://…``: read where they are, against a server on this machine."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs

from fewlabel import FewLabelClassifier, UnlabeledRows
from fewlabel.chunks.files import find_files, parquet_files
from support.cli_tools import COMMAND, environment

fsspec = pytest.importorskip("fsspec", reason="needs pip install 'fewlabel[scale]'")
pytest.importorskip("pyarrow")

X, Y = make_blobs(300, 3, centers=3, random_state=1)
L = 30
TABLE = pd.DataFrame(X, columns=list("abc"))


def files() -> dict[str, bytes]:
    """Two Parquet files of the unlabelled rows, by name, and one that is not to be read."""
    made = {}
    for name, part in {"1.parquet": TABLE[150:], "0.parquet": TABLE[L:150]}.items():
        buffer = io.BytesIO()
        part.to_parquet(buffer, index=False)
        made[name] = buffer.getvalue()
    return made | {"_SUCCESS": b""}


def labels_of(source: str, tmp_path) -> list[int]:
    rows = UnlabeledRows(source, out=tmp_path / "labels")
    FewLabelClassifier(["lda"], random_state=0).fit(TABLE[:L], Y[:L], unlabeled=rows)
    return pd.read_parquet(tmp_path / "labels").sort_values("row")["label"].tolist()


def test_addresses_of_fsspec(tmp_path):
    store = fsspec.filesystem("memory")
    store.rm("/", recursive=True)
    for name, data in files().items():
        store.pipe(f"/bucket/rows/{name}", data)
    names = ["memory:///bucket/rows/0.parquet", "memory:///bucket/rows/1.parquet"]
    assert parquet_files("memory://bucket/rows") == names
    assert find_files("memory://bucket/rows/0*", (".parquet",)) == names[:1]
    assert parquet_files(names[1]) == names[1:]
    assert np.mean(labels_of("memory://bucket/rows", tmp_path) == Y[L:]) > 0.9
    with pytest.raises(FileNotFoundError, match="no Parquet file"):
        parquet_files("memory://bucket/nothing")


def test_patterns_and_folders(tmp_path):
    (tmp_path / "rows" / "below").mkdir(parents=True)
    for name, data in files().items():
        (tmp_path / "rows" / "below" / name).write_bytes(data)
    found = [str(tmp_path / "rows" / "below" / name) for name in ("0.parquet", "1.parquet")]
    assert parquet_files(tmp_path / "rows") == found
    assert parquet_files(str(tmp_path / "rows" / "*" / "1*")) == found[1:]
    with pytest.raises(FileNotFoundError, match="does not exist"):
        parquet_files(tmp_path / "nothing")


@pytest.fixture
def s3(monkeypatch) -> Iterator[str]:
    """A bucket on a server of this machine."""
    pytest.importorskip("moto", reason="moto is not installed: pip install 'moto[server]' s3fs")
    s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed: pip install s3fs")
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    s3fs.S3FileSystem.clear_instance_cache()
    store = s3fs.S3FileSystem()
    store.mkdir("bucket")
    for name, data in files().items():
        store.pipe(f"bucket/rows/{name}", data)
    yield "s3://bucket/rows"
    s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_bucket_of_s3(s3, tmp_path):
    assert parquet_files(s3) == [f"{s3}/0.parquet", f"{s3}/1.parquet"]
    found = labels_of(s3, tmp_path)
    rows = UnlabeledRows([TABLE[L:150], TABLE[150:]], out=tmp_path / "local")
    FewLabelClassifier(["lda"], random_state=0).fit(TABLE[:L], Y[:L], unlabeled=rows)
    assert found == pd.read_parquet(tmp_path / "local").sort_values("row")["label"].tolist()


def table_with_labels() -> pd.DataFrame:
    """All rows, of which the first have a name in the column "kind"."""
    names = np.array(["calm", "wild", "odd"])[Y]
    return TABLE.assign(kind=pd.Series(names).where(np.arange(len(Y)) < L))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_the_command_line_reads_a_bucket(s3, tmp_path):
    pytest.importorskip("typer")
    store, table = fsspec.filesystem("s3"), table_with_labels()
    (tmp_path / "local").mkdir()
    for name, part in {"0.parquet": table[:150], "1.parquet": table[150:]}.items():
        part.to_parquet(tmp_path / "local" / name, index=False)
        store.pipe(f"bucket/customers/{name}", (tmp_path / "local" / name).read_bytes())
    for source, out in (("s3://bucket/customers", "far"), ("local", "near")):
        options = ["--target", "kind", "--learner", "forest", "--jobs", "1"]
        run(tmp_path, "fit", source, *options, "--out", out, "--model", f"{out}.skops")
    run(tmp_path, "predict", "far.skops", "s3://bucket/customers/*.parquet", "--out", "again")
    far, near, again = (pd.read_parquet(tmp_path / name) for name in ("far", "near", "again"))
    pd.testing.assert_frame_equal(far, near)
    assert (far["kind_label"][:L] == table["kind"][:L]).all()
    assert np.mean(again["kind_label"] == np.array(["calm", "wild", "odd"])[Y]) > 0.9
    answer = command(tmp_path, "fit", "s3://bucket/nothing", "--target", "kind")
    assert answer.returncode == 1
    assert "Traceback" not in answer.stderr


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )


def run(folder: Path, *arguments: str) -> None:
    answer = command(folder, *arguments)
    assert answer.returncode == 0, answer.stderr
