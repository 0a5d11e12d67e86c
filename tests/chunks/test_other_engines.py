"""A model inside Spark and Ray: the code of docs/scaling.md, as it stands there."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs

import fewlabel

PAGE = Path(__file__).parents[2] / "docs" / "scaling.md"
X, Y = make_blobs(200, 3, centers=2, random_state=1)
NAMES = np.array(["calm", "wild"])[Y]


@pytest.fixture
def shared(tmp_path) -> Path:
    """A folder with a model and a folder of new rows."""
    table = pd.DataFrame(X, columns=list("abc"))
    target = np.where(np.arange(len(X)) < 40, NAMES, None)
    clf = fewlabel.FewLabelClassifier(["lda"], random_state=0).fit(table, target)
    fewlabel.save(clf, tmp_path / "model.skops")
    (tmp_path / "new_customers").mkdir()
    table.to_parquet(tmp_path / "new_customers" / "0.parquet", index=False)
    return tmp_path


def code(engine: str, folder: Path) -> str:
    """The code of the page that uses an engine, with another folder."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (block,) = (block for block in blocks if engine in block)
    return block.replace("/shared", str(folder))


# What the engines say of versions, and of sockets and processes that they end.
@pytest.mark.filterwarnings("ignore")
def test_spark(shared):
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not installed")
    spark = sql.SparkSession.builder.master("local[1]").appName("fewlabel").getOrCreate()
    try:
        exec(code("pandas_udf", shared), {"spark": spark})
    finally:
        spark.stop()
    found = pd.read_parquet(shared / "predictions")
    labels = [cell["label"] for cell in found["segment"]]
    assert np.mean(np.array(labels) == NAMES) > 0.9
    assert all(0 <= cell["confidence"] <= 1 for cell in found["segment"])


@pytest.mark.filterwarnings("ignore")
def test_ray(shared, monkeypatch):
    monkeypatch.setenv("HOME", str(shared))  # where Ray keeps a token
    ray = pytest.importorskip("ray", reason="ray is not installed")
    pytest.importorskip("ray.data", reason="Ray Data is not installed: pip install 'ray[data]'")
    try:
        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    except Exception as error:
        pytest.skip(f"Ray cannot be started on this machine: {error}")
    try:
        exec(code("map_batches", shared).replace("concurrency=4", "concurrency=1"), {})
    finally:
        ray.shutdown()
    found = pd.read_parquet(shared / "predictions").sort_values(list("abc"))
    order = pd.DataFrame(X, columns=list("abc")).sort_values(list("abc")).index
    assert np.mean(found["label"].to_numpy() == NAMES[order]) > 0.9
