"""Model files: what is written can be read, anything else is refused before it is built."""

from __future__ import annotations

import hashlib
import json
import pickle
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning

from fewlabel import FewLabelClassifier
from fewlabel._core.errors import UserError
from fewlabel.encoding.encoder import TableEncoder
from fewlabel.ensemble.families import FAMILIES
from fewlabel.tables.model_files import (
    TRUSTED_TYPES,
    TableModel,
    check_model_file,
    load_model,
    save_model,
)

pa = pytest.importorskip("pyarrow")
sio = pytest.importorskip("skops.io")


def small_model(**changes: object) -> TableModel:
    table = pa.table(
        {
            "size": [1.0, 2.0, None, 4.0] * 12,
            "colour": ["red", "green", None, "blue"] * 12,
            "member": [True, False, None, True] * 12,
            "since": ["2024-01-01", "2024-05-01", "", "2024-07-09"] * 12,
            "note": [f"some word{i} and another {i * i}" for i in range(48)],
            "place": [f"{i} Main Street" for i in range(48)],
            "y": ["a", "b", "a", "b"] * 12,
        }
    )
    encoder = TableEncoder(drop=["y"], category=["place"])
    X = encoder.fit_transform(table)
    labels = np.array(table.column("y").to_pylist(), dtype=object)
    forest = RandomForestClassifier(4, random_state=0).fit(X, labels)
    content = {
        "encoder": encoder,
        "first": forest,
        "final": forest,
        "thresholds": [0.5, 0.75],
        "target": "y",
        "summary": {"headline": ["x"]},
    }
    return TableModel(**{**content, **changes})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def mixed() -> FewLabelClassifier:
    """A vote of every family; 60 columns, so that label spreading looks at components of them."""
    X, codes = make_blobs(160, 60, centers=3, cluster_std=9.0, random_state=0)
    X = X.astype(np.float32)  # as the command line hands it over
    target = np.array(["a", "b", "c"], dtype=object)[codes]
    target[40:] = None
    clf = FewLabelClassifier(posterior="uniform", missing_label=None, random_state=0, max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clf.fit(X, target)


@pytest.fixture(scope="module")
def saved_mixed(mixed: FewLabelClassifier, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "mixed.skops"
    save_model(small_model(first=mixed.initial_estimator_, final=mixed.estimator_), path)
    return path


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "model.skops"
    save_model(small_model(), path)
    return path


def test_round_trip(saved: Path):
    model, again = small_model(), load_model(saved)
    assert again.plan == model.plan
    assert (again.thresholds, again.target, again.summary) == (
        [0.5, 0.75],
        "y",
        {"headline": ["x"]},
    )
    new = pa.table(
        {
            "size": ["3", "", "4.5"],
            "colour": ["red", "never seen", ""],
            "member": ["true", "", "no"],
            "since": ["2025-01-01", "", "2024-01-01"],
            "note": ["word3", "", "another one"],
            "place": ["3 Main Street", "", "nowhere"],
        }
    )
    X = model.encoder.transform(new)
    np.testing.assert_array_equal(again.encoder.transform(new), X)
    np.testing.assert_array_equal(again.final.predict_proba(X), model.final.predict_proba(X))


def test_a_mixed_vote_comes_back_as_it_was(mixed: FewLabelClassifier, saved_mixed: Path):
    again = load_model(saved_mixed)
    X = np.random.default_rng(0).normal(scale=9.0, size=(50, 60)).astype(np.float32)
    assert len(again.final.estimators) == len(FAMILIES)
    for was, now in ((mixed.initial_estimator_, again.first), (mixed.estimator_, again.final)):
        np.testing.assert_array_equal(now.classes_, was.classes_)
        np.testing.assert_array_equal(now.predict_proba(X), was.predict_proba(X))
        np.testing.assert_array_equal(now.predict(X), was.predict(X))
    # What was saved was a copy: the classifier can go on learning.
    assert hasattr(mixed.estimator_.estimators[-1].model, "graph_")


def test_a_mixed_vote_is_saved_once(mixed: FewLabelClassifier, saved_mixed: Path):
    """Rows that the first and the final vote share stand in the file once, their graph never."""
    points = [voter.model._points for voter in mixed.estimator_.estimators if voter.transductive]
    assert len(points) == 2
    with zipfile.ZipFile(saved_mixed) as archive:
        shapes = []
        for name in archive.namelist():
            if name.endswith(".npy"):
                with archive.open(name) as member:
                    shapes.append(np.load(member, allow_pickle=False).shape)
        assert {Path(name).suffix for name in archive.namelist()} == {".json", ".npy"}
    assert shapes.count(points[0].shape) == len(points)


def test_versions_are_recorded(saved: Path):
    import sklearn

    from fewlabel import __version__

    manifest = check_model_file(saved)
    assert manifest["fewlabel"] == __version__
    assert manifest["scikit-learn"] == sklearn.__version__


def test_nothing_in_it_is_a_pickle(saved: Path):
    with zipfile.ZipFile(saved) as archive:
        assert {Path(name).suffix for name in archive.namelist()} <= {".json", ".npy"}
        for name in archive.namelist():
            if name.endswith(".npy"):
                with archive.open(name) as member:
                    np.load(member, allow_pickle=False)


def rewritten(source: Path, target: Path, change, *, honest_sums: bool) -> Path:
    """A copy with changed members; with sums that fit them, as a forger would make."""
    with zipfile.ZipFile(source) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members.pop("fewlabel.json"))
    change(members, manifest)
    if honest_sums:
        manifest["members"] = {
            name: hashlib.sha256(data).hexdigest() for name, data in members.items()
        }
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        archive.writestr("fewlabel.json", json.dumps(manifest))
    return target


def test_a_forger_cannot_bring_in_types(saved: Path, tmp_path: Path):
    """The checksums fit, and yet a type that is not on the list is refused."""

    def forge(members, manifest):
        members["schema.json"] = (
            members["schema.json"]
            .replace(b'"sklearn.decomposition._truncated_svd"', b'"os"')
            .replace(b'"TruncatedSVD"', b'"system"')
        )

    path = rewritten(saved, tmp_path / "forged.skops", forge, honest_sums=True)
    with pytest.raises(UserError, match=r"types that a fewlabel model never has: .*'os\.system'"):
        load_model(path)


def test_a_forger_cannot_bring_in_functions(saved: Path, tmp_path: Path):
    def forge(members, manifest):
        schema = json.loads(members["schema.json"])
        schema["content"]["target"] = {
            "__class__": "str",
            "__module__": "builtins",
            "__loader__": "FunctionNode",
            "content": {"module_path": "os", "function": "system"},
            "__id__": 1,
        }
        members["schema.json"] = json.dumps(schema).encode()

    path = rewritten(saved, tmp_path / "forged.skops", forge, honest_sums=True)
    with pytest.raises(UserError, match="FunctionNode"):
        load_model(path)


def test_changed_members(saved: Path, tmp_path: Path):
    def change(members, manifest):
        name = next(name for name in members if name.endswith(".npy"))
        members[name] = members[name][:-1] + bytes([members[name][-1] ^ 1])

    path = rewritten(saved, tmp_path / "changed.skops", change, honest_sums=False)
    with pytest.raises(UserError, match="changed after it was written"):
        load_model(path)


def test_added_members(saved: Path, tmp_path: Path):
    path = tmp_path / "added.skops"
    path.write_bytes(saved.read_bytes())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("extra.npy", b"x")
    with pytest.raises(UserError, match="list of contents was changed"):
        load_model(path)


def test_a_later_format(saved: Path, tmp_path: Path):
    def change(members, manifest):
        manifest.update(format_version=99, fewlabel="9.9")

    path = rewritten(saved, tmp_path / "later.skops", change, honest_sums=True)
    with pytest.raises(UserError, match=r"written by fewlabel 9\.9"):
        load_model(path)


def test_another_scikit_learn_is_told_of(saved: Path, tmp_path: Path):
    def change(members, manifest):
        manifest["scikit-learn"] = "0.1"

    path = rewritten(saved, tmp_path / "old.skops", change, honest_sums=True)
    with pytest.warns(UserWarning, match=r"scikit-learn 0\.1"):
        load_model(path)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_truncated(share: float, saved: Path, tmp_path: Path):
    path = tmp_path / "cut.skops"
    path.write_bytes(saved.read_bytes()[: int(share * saved.stat().st_size)])
    with pytest.raises(UserError, match="refused"):
        load_model(path)


def test_flipped_bytes_are_refused_or_harmless(saved: Path, tmp_path: Path):
    rng, whole = np.random.default_rng(0), saved.read_bytes()
    refused = 0
    for _ in range(60):
        data = bytearray(whole)
        for place in rng.integers(len(data), size=3):
            data[place] ^= 1 << int(rng.integers(8))
        (tmp_path / "flipped.skops").write_bytes(data)
        try:
            check_model_file(tmp_path / "flipped.skops")
        except UserError:
            refused += 1
    assert refused > 40  # a few bytes of a ZIP file mean nothing


def test_foreign_files(tmp_path: Path):
    bomb = tmp_path / "pickle.skops"
    bomb.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(UserError, match="refused"):
        load_model(bomb)
    other = tmp_path / "other.skops"
    sio.dump(RandomForestClassifier(2), other)
    with pytest.raises(UserError, match="not written by fewlabel"):
        load_model(other)


def test_deep_nesting_is_no_crash(saved: Path, tmp_path: Path):
    def change(members, manifest):
        members["schema.json"] = b"[" * 200_000 + b"]" * 200_000

    path = rewritten(saved, tmp_path / "deep.skops", change, honest_sums=True)
    with pytest.raises(UserError, match="refused"):
        load_model(path)


def test_the_list_of_types_is_not_longer_than_needed(saved: Path, saved_mixed: Path):
    """Every type of a library on the list occurs in a model; a superfluous one is a risk."""
    schema = ""
    for path in (saved, saved_mixed):
        with zipfile.ZipFile(path) as archive:
            schema += archive.read("schema.json").decode()
    for name in TRUSTED_TYPES:
        if name.startswith(("sklearn.", "fewlabel.", "skrub.")):
            assert f'"{name.rpartition(".")[2]}"' in schema
