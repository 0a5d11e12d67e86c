"""``fewlabel.save`` and ``fewlabel.load``: the safe files of the command line, from Python."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

import fewlabel
from fewlabel._core.errors import UserError
from fewlabel.tables.model_files import load_model

pd = pytest.importorskip("pandas")
pytest.importorskip("skops")

X, CODES = make_blobs(200, 6, centers=3, cluster_std=4.0, random_state=0)
Y = np.where(np.random.default_rng(1).random(200) < 0.3, CODES, -1)


def frame() -> pd.DataFrame:
    table = pd.DataFrame(X[:, :3], columns=["a", "b", "c"])
    return table.assign(colour=np.array(["red", "green", "blue"])[CODES])


FITS = {
    "mixed": lambda: fewlabel.FewLabelClassifier(["forest", "lda"], random_state=0).fit(X, Y),
    "frame": lambda: fewlabel.FewLabelClassifier(["lda", "svm"], random_state=0).fit(frame(), Y),
    "forest": lambda: fewlabel.SelfLearningClassifier(random_state=0).fit(X, Y),
    "other": lambda: fewlabel.SelfLearningClassifier(LogisticRegression(), max_iter=1).fit(X, Y),
    "network": lambda: fewlabel.PriorNetworkClassifier(n_views=2, random_state=0).fit(X, Y),
    "vote with network": lambda: fewlabel.FewLabelClassifier(
        ["lda", "network"], inverse_temperature=0, random_state=0, max_iter=1
    ).fit(X, Y),
}


@pytest.mark.parametrize("name", FITS)
def test_round_trip(name: str, tmp_path: Path):
    clf, rows = FITS[name](), frame() if name == "frame" else X
    path = tmp_path / "model.skops"
    fewlabel.save(clf, path)
    again = fewlabel.load(path)
    assert type(again) is type(clf)
    assert again.classes_.dtype == clf.classes_.dtype
    np.testing.assert_array_equal(again.predict(rows), clf.predict(rows))
    np.testing.assert_allclose(again.predict_proba(rows), clf.predict_proba(rows))
    assert path.stat().st_size < 1.1 * len(pickle.dumps(clf)) + 20_000
    if name == "network":
        return
    np.testing.assert_allclose(again.confidence(rows), clf.confidence(rows))
    np.testing.assert_array_equal(again.accept(0.05, rows), clf.accept(0.05, rows))
    assert again.error_ == clf.error_
    assert again.random_state == clf.random_state


def test_a_loaded_classifier_says_that_the_rows_are_gone(tmp_path: Path):
    fewlabel.save(FITS["forest"](), tmp_path / "model.skops")
    again = fewlabel.load(str(tmp_path / "model.skops"))
    for ask in (again.bounds, again.accept, again.suggest, again.report):
        with pytest.raises(ValueError, match="read from a file"):
            ask()
    with pytest.raises(ValueError, match="read from a file"):
        _ = again.risk_bound_


def test_what_cannot_be_kept_is_named(tmp_path: Path):
    path = tmp_path / "model.skops"
    with pytest.raises(UserError, match="cannot hold a LogisticRegression"):
        fewlabel.save(LogisticRegression().fit(X, CODES), path)
    clf = fewlabel.SelfLearningClassifier(KNeighborsClassifier(), pseudo_weight="uniform")
    with pytest.raises(UserError, match="KNeighborsClassifier"):
        fewlabel.save(clf.fit(X, Y), path)
    assert not path.exists()


def test_the_command_line_refuses_a_network_alone(tmp_path: Path):
    fewlabel.save(FITS["network"](), tmp_path / "model.skops")
    with pytest.raises(UserError, match="PriorNetworkClassifier, which says nothing"):
        load_model(tmp_path / "model.skops")


def test_weights_of_somebody_else_are_refused(tmp_path: Path):
    clf = FITS["network"]()
    clf.weights = "/tmp/weights.npz"
    fewlabel.save(clf, tmp_path / "model.skops")
    with pytest.raises(UserError, match="weights"):
        fewlabel.load(tmp_path / "model.skops")


def test_a_model_of_numbers_reads_columns_by_name(tmp_path: Path):
    pa = pytest.importorskip("pyarrow")
    table = frame()[["a", "b", "c"]]
    clf = fewlabel.FewLabelClassifier(["lda"], random_state=0).fit(table, Y)
    fewlabel.save(clf, tmp_path / "model.skops")
    model = load_model(tmp_path / "model.skops")
    texts = pa.table({name: table[name].map(repr).tolist() for name in ("c", "a", "b")})
    np.testing.assert_allclose(model.features(texts)[0], table.to_numpy())
    fewlabel.save(FITS["forest"](), tmp_path / "array.skops")
    with pytest.raises(UserError, match="no names"):
        load_model(tmp_path / "array.skops").features(texts)
