"""A model inside Spark and Ray: the code of docs/scaling.md, as it stands there."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs

import fewlabel
from support.cli_tools import environment

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


SPARK = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").appName("fewlabel").getOrCreate()
{code}
spark.stop()
"""

# The actor that predicts keeps a processor: with one alone, nothing would be left to read the rows.
RAY = """
import ray

try:
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
except Exception as error:
    raise SystemExit(f"CANNOT START: {{error}}")
{code}
ray.shutdown()
"""


def run(program: str, folder: Path) -> None:
    """Run a program in a process of its own: engines leave sockets and processes behind."""
    path = folder / "program.py"
    path.write_text(program)
    home = {
        "HOME": str(folder),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "token",  # whoever else is on the machine must not use the cluster
    }
    done = subprocess.run(
        [sys.executable, str(path)],
        cwd=folder,
        env={**environment(), **home, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    reason = done.stderr.rpartition("CANNOT START: ")
    if reason[1]:
        pytest.skip(f"Ray cannot be started on this machine: {reason[2].strip()}")
    assert done.returncode == 0, done.stderr[-3000:]


def expected(folder: Path) -> pd.DataFrame:
    """What the model says here, of the rows in a fixed order."""
    clf, table = fewlabel.load(folder / "model.skops"), pd.DataFrame(X, columns=list("abc"))
    made = table.assign(label=clf.predict(table), confidence=clf.confidence(table))
    return made.sort_values(list("abc"), ignore_index=True)


def agree(found: pd.DataFrame, folder: Path) -> None:
    found = found.sort_values(list("abc"), ignore_index=True)
    made = expected(folder)
    assert found["label"].tolist() == made["label"].tolist()
    np.testing.assert_allclose(found["confidence"], made["confidence"], rtol=0, atol=1e-12)
    assert np.mean(made["label"].to_numpy() == NAMES[np.lexsort(X.T[::-1])]) > 0.9


def test_spark(shared):
    if find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not installed")
    run(SPARK.format(code=code("pandas_udf", shared)), shared)
    found = pd.read_parquet(shared / "predictions")
    cells = pd.DataFrame(found.pop("segment").tolist())
    agree(found.join(cells), shared)


def test_ray(shared):
    if find_spec("ray") is None:
        pytest.skip("ray is not installed")
    block = code("map_batches", shared)
    assert "concurrency=4" in block
    run(RAY.format(code=block.replace("concurrency=4", "concurrency=1")), shared)
    agree(pd.read_parquet(shared / "predictions"), shared)
