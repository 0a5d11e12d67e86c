"""Model files: what is written can be read, anything else is refused before it is built."""

from __future__ import annotations

import copy
import hashlib
import importlib
import io
import json
import os
import pickle
import subprocess
import sys
import types
import warnings
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import fewlabel
from fewlabel import FewLabelClassifier, PriorNetworkClassifier, SelfLearningClassifier
from fewlabel._core.errors import UserError
from fewlabel.assess.calibration import Confidence
from fewlabel.assess.promise import Promise
from fewlabel.encoding.encoder import TableEncoder
from fewlabel.ensemble.families import FAMILIES
from fewlabel.ensemble.mixed_vote import MixedVote
from fewlabel.tables import model_archive
from fewlabel.tables.allowed_types import CLASSES, LIBRARY_TYPES, TRUSTED_TYPES
from fewlabel.tables.model_archive import (
    FORMAT_VERSION,
    checked_members,
    read_archive,
    write_archive,
)
from fewlabel.tables.model_checks import checked
from fewlabel.tables.model_files import TableModel, load_model, save_model
from support.cli_tools import environment

pa = pytest.importorskip("pyarrow")
sio = pytest.importorskip("skops.io")


PROMISE = Promise(
    Confidence(1.5, 0.9, (1.2, 0.8)), Confidence(1.1), np.array([[0.0, 0.99], [0.04, 0.9]]), 0.7
)


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
        "promise": PROMISE,
        "target": "y",
        "summary": {"headline": ["x"]},
    }
    return TableModel(**{**content, **changes})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def mixed_parts() -> dict[str, object]:
    """A vote of every family; 60 columns, so that label spreading looks at components of them."""
    X, codes = make_blobs(160, 60, centers=3, cluster_std=9.0, random_state=0)
    table = pa.table({f"c{k}": column for k, column in enumerate(X.T)})
    encoder = TableEncoder()
    X = encoder.fit_transform(table)
    target = np.array(["a", "b", "c"], dtype=object)[codes]
    target[40:] = None
    voters = [*FAMILIES, "lda"]
    clf = FewLabelClassifier(voters, inverse_temperature=0, missing_label=None, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf.fit(X, target)
    return {"clf": clf, "encoder": encoder}


@pytest.fixture(scope="module")
def mixed(mixed_parts) -> FewLabelClassifier:
    return mixed_parts["clf"]


def mixed_model(parts) -> TableModel:
    clf = parts["clf"]
    return small_model(
        encoder=parts["encoder"],
        first=clf.initial_estimator_,
        final=clf.estimator_,
        promise=clf.assessment_.promise,
    )


@pytest.fixture(scope="module")
def saved_mixed(mixed_parts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "mixed.skops"
    save_model(mixed_model(mixed_parts), path)
    return path


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "model.skops"
    save_model(small_model(), path)
    return path


def test_round_trip(saved: Path):
    model, again = small_model(), load_model(saved)
    assert again.plan == model.plan
    assert (again.promise.to_dict(), again.target, again.summary) == (
        PROMISE.to_dict(),
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
    assert len(again.final.estimators) == len(FAMILIES) + 1
    for was, now in ((mixed.initial_estimator_, again.first), (mixed.estimator_, again.final)):
        np.testing.assert_array_equal(now.classes_, was.classes_)
        np.testing.assert_array_equal(now.predict_proba(X), was.predict_proba(X))
        np.testing.assert_array_equal(now.predict(X), was.predict(X))
    # What was saved was a copy: the classifier can go on learning.
    assert hasattr(mixed.estimator_.estimators[-2].model.spreading_, "graph_")


def test_a_mixed_vote_is_saved_once(mixed: FewLabelClassifier, saved_mixed: Path):
    """Rows that the first and the final vote share stand in the file once, their graph never."""
    graphs = [voter.model for voter in mixed.estimator_.estimators if voter.transductive]
    before = [v.model for v in mixed.initial_estimator_.estimators if v.transductive]
    points, first = (
        [getattr(graph, "spreading_", graph)._points for graph in of] for of in (graphs, before)
    )
    assert len({p.shape for p in points}) == len(points) >= 4
    with zipfile.ZipFile(saved_mixed) as archive:
        shapes = []
        for name in archive.namelist():
            if name.endswith(".npy"):
                with archive.open(name) as member:
                    shapes.append(np.load(member, allow_pickle=False).shape)
        assert {Path(name).suffix for name in archive.namelist()} == {".json", ".npy"}
    # A metric that was learned again has points of its own.
    expected = [1 if any(p is known for known in first) else 2 for p in points]
    assert [shapes.count(p.shape) for p in points] == expected
    assert sorted(expected) == [1, 1, 2, 2]


def test_versions_are_recorded(saved: Path):
    import sklearn

    from fewlabel import __version__

    manifest, _ = checked_members(saved)
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


def test_another_scikit_learn_is_told_of_once(saved_mixed: Path, tmp_path: Path):
    def change(members, manifest):
        manifest["scikit-learn"] = "0.1"
        version = f'"\\"{sklearn.__version__}\\""'.encode()
        assert members["schema.json"].count(version) > 5  # estimators know their version, too
        members["schema.json"] = members["schema.json"].replace(version, b'"\\"0.1\\""')

    path = rewritten(saved_mixed, tmp_path / "old.skops", change, honest_sums=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load_model(path)
    assert ["scikit-learn 0.1" in str(warning.message) for warning in caught] == [True]


def test_an_older_format(saved: Path, tmp_path: Path):
    def change(members, manifest):
        manifest.update(format_version=1, fewlabel="0.1.0")

    path = rewritten(saved, tmp_path / "old.skops", change, honest_sums=True)
    with pytest.raises(UserError, match=r"older format.*Train the model again"):
        load_model(path)


def test_what_a_promise_is_made_of_belongs_to_a_format():
    parts = ["cautious", "max_error", "power", "rule", "shifts", "steps"]
    assert (FORMAT_VERSION, sorted(PROMISE.to_dict())) == (5, parts)


@pytest.mark.parametrize("module", ["skrub", "skrub._string_encoder"])
def test_a_missing_package_is_no_bad_model(module: str, saved: Path, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("skrub")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UserError, match=r"needs the package skrub.*'fewlabel\[cli\]'"):
        read_archive(saved)


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
            checked_members(tmp_path / "flipped.skops")
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


@pytest.fixture(scope="module")
def saved_others(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Classifiers that are not among the default families."""
    X, codes = make_blobs(60, 4, centers=2, random_state=0)
    y = np.where(np.arange(60) % 3 == 0, codes, -1)
    folder = tmp_path_factory.mktemp("others")
    models = [
        FewLabelClassifier(["screened_lda"], max_iter=0, random_state=0),
        SelfLearningClassifier(LogisticRegression(), max_iter=0),
        PriorNetworkClassifier(n_views=1, random_state=0),
    ]
    for i, model in enumerate(models):
        fewlabel.save(model.fit(X, y), folder / f"{i}.skops")
    return sorted(folder.iterdir())


def test_the_list_of_types_is_not_longer_than_needed(
    saved: Path, saved_mixed: Path, saved_others: list[Path]
):
    """Every type of a library on the list occurs in a model; a superfluous one is a risk."""
    schema = ""
    for path in (saved, saved_mixed, *saved_others):
        with zipfile.ZipFile(path) as archive:
            schema += archive.read("schema.json").decode()
    for name in (*LIBRARY_TYPES, *CLASSES):
        if name.startswith("sklearn.") or name in CLASSES:
            assert f'"{name.rpartition(".")[2]}"' in schema


# --- one file for one model, of a modest size ------------------------------------------------


def test_equal_models_are_equal_files(tmp_path: Path):
    for name in ("one", "other"):
        save_model(small_model(), tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_a_file_is_not_larger_than_a_compressed_pickle(mixed_parts, saved_mixed: Path):
    pickled = zlib.compress(pickle.dumps(mixed_model(mixed_parts)))
    assert saved_mixed.stat().st_size < len(pickled)
    with zipfile.ZipFile(saved_mixed) as archive:
        assert len(archive.namelist()) < 300  # ten times as many with each tree on its own


def test_trees_come_back_bit_for_bit(saved: Path):
    was, now = small_model().final, load_model(saved).final
    assert len(now.estimators_) == len(was.estimators_)
    for old, new in zip(was.estimators_, now.estimators_):
        assert type(new) is type(old)
        assert (new.random_state, new.get_params()) == (old.random_state, old.get_params())
        before, after = old.tree_.__getstate__(), new.tree_.__getstate__()
        assert before["max_depth"] == after["max_depth"]
        for part in ("nodes", "values"):
            np.testing.assert_array_equal(before[part], after[part])
    np.testing.assert_array_equal(now.feature_importances_, was.feature_importances_)


def test_files_name_our_classes_by_keys(saved_mixed: Path):
    with zipfile.ZipFile(saved_mixed) as archive:
        schema = archive.read("schema.json").decode()
    assert "fewlabel." not in schema
    for key, path in CLASSES.items():
        module, _, name = path.rpartition(".")
        assert getattr(importlib.import_module(module), name).__name__ == name
        assert key == key.lower()


def test_a_class_may_move(saved_mixed: Path, monkeypatch: pytest.MonkeyPatch):
    """The file knows the key only; the key leads to wherever the class is."""
    elsewhere = types.ModuleType("fewlabel_elsewhere")
    elsewhere.Ballot = type("Ballot", (MixedVote,), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fewlabel_elsewhere", elsewhere)
    monkeypatch.setitem(CLASSES, "mixed-vote", "fewlabel_elsewhere.Ballot")
    trusted = [*TRUSTED_TYPES, "fewlabel_elsewhere.Ballot"]
    monkeypatch.setattr(model_archive, "TRUSTED_TYPES", trusted)
    assert type(load_model(saved_mixed).final).__name__ == "Ballot"


def test_what_cannot_be_stored_is_told_when_it_is_saved(tmp_path: Path):
    with pytest.raises(UserError, match=r"cannot hold .*GradientBoosting"):
        write_archive({"model": GradientBoostingClassifier()}, tmp_path / "m.skops")


def test_sparse_rows_can_be_stored(tmp_path: Path):
    rows = csr_array(np.eye(4))
    write_archive({"rows": rows}, tmp_path / "m.skops")
    np.testing.assert_array_equal(
        read_archive(tmp_path / "m.skops")["rows"].toarray(), rows.toarray()
    )


def test_the_file_that_was_checked_is_the_one_that_is_read(saved: Path, tmp_path, monkeypatch):
    path, evil = tmp_path / "m.skops", tmp_path / "evil.skops"
    path.write_bytes(saved.read_bytes())
    sio.dump({"plan": []}, evil)
    opened = []
    open_ = Path.open

    def swap_after(self: Path, *args, **options):
        file = open_(self, *args, **options)
        opened.append(self)
        evil.replace(path)
        return file

    monkeypatch.setattr(Path, "open", swap_after)
    assert load_model(path).target == "y"
    assert opened == [path]


# --- forged files ----------------------------------------------------------------------------


REFUSE = """
import resource, sys, time
from pathlib import Path
import skops.io
from fewlabel._core.errors import UserError
from fewlabel.tables.model_files import load_model

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.process_time()
for name in sys.argv[1:]:
    try:
        load_model(Path(name))
    except UserError:
        continue
    raise SystemExit(f"{name} was read")
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(peak / 1024, time.process_time() - start)
"""


def deflated(path: Path, members: dict[str, bytes], manifest: dict[str, object]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        archive.writestr("fewlabel.json", json.dumps(manifest))


def bombs(folder: Path) -> list[Path]:
    """Files of less than a megabyte that would become hundreds."""
    blanks = b" " * (200 * 2**20)
    members = {
        "schema": {"schema.json": b'{"a": ' + blanks + b"1}"},
        "many values": {"schema.json": b"[" + b"[]," * 8_000_000 + b"1]"},
        "arrays": {f"{k}.npy": blanks[: 25 * 2**20] for k in range(8)},
    }
    for name, parts in members.items():
        manifest = {"format": "fewlabel model", "format_version": FORMAT_VERSION}
        sums = {part: hashlib.sha256(data).hexdigest() for part, data in parts.items()}
        deflated(folder / f"{name}.skops", parts, {**manifest, "members": sums})
    with zipfile.ZipFile(folder / "manifest.skops", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("fewlabel.json", b"[" + blanks + b"]")
    return sorted(folder.iterdir())


def test_bombs_are_refused_at_once(tmp_path: Path):
    paths = bombs(tmp_path)
    assert all(path.stat().st_size < 2**20 for path in paths)
    answer = subprocess.run(
        [sys.executable, "-c", REFUSE, *map(str, paths)],
        capture_output=True,
        text=True,
        env=environment(),
    )
    assert answer.returncode == 0, answer.stderr
    peak, seconds = map(float, answer.stdout.split())
    assert peak < 300  # MB
    assert seconds < 10


HUGE = {"too long": ("<f8", (2**40,)), "huge items": ("<U500000000", (0,)), "objects": ("|O", (1,))}


@pytest.mark.parametrize("kind", HUGE)
def test_headers_of_arrays_promise_no_more_than_there_is(kind: str, saved: Path, tmp_path: Path):
    dtype, shape = HUGE[kind]
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": dtype, "fortran_order": False, "shape": shape}
    )

    def forge(members, manifest):
        name = next(name for name in members if name.endswith(".npy"))
        members[name] = header.getvalue()

    path = rewritten(saved, tmp_path / "forged.skops", forge, honest_sums=True)
    with pytest.raises(UserError, match="refused"):
        checked_members(path)


def test_a_header_that_is_no_python(saved: Path, tmp_path: Path):
    def forge(members, manifest):
        name = next(name for name in members if name.endswith(".npy"))
        members[name] = members[name].replace(b"}", b"(", 1)

    path = rewritten(saved, tmp_path / "forged.skops", forge, honest_sums=True)
    with pytest.raises(UserError, match="refused"):
        checked_members(path)


def forged_part(saved: Path, target: Path, change) -> Path:
    """A model file with forged arrays; what is changed is what was written."""
    content = skops_content(saved)
    change(content)
    with zipfile.ZipFile(io.BytesIO(sio.dumps(content))) as raw:
        members = {name: raw.read(name) for name in raw.namelist()}
    names = dict(zip(members, members))
    schema = model_archive._renumbered(json.loads(members["schema.json"]), names, {})
    members["schema.json"] = json.dumps(schema).encode()
    manifest = {
        "format": "fewlabel model",
        "format_version": FORMAT_VERSION,
        "scikit-learn": sklearn.__version__,
    }
    manifest["members"] = {n: hashlib.sha256(d).hexdigest() for n, d in members.items()}
    deflated(target, members, manifest)
    return target


def skops_content(path: Path):
    """What is in a model file, with packed trees."""
    _, members = model_archive.checked_members(path)
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return sio.loads(stored.getvalue(), trusted=TRUSTED_TYPES)


def at(array, value, place=0):
    array[place] = value


FORGED_TREES = {
    "a child far away": lambda f: at(f.estimators_.nodes["left_child"], 10**9),
    "a negative child": lambda f: at(f.estimators_.nodes["right_child"], -7),
    "its own child": lambda f: at(f.estimators_.nodes["left_child"], 0),
    "a child before its parent": lambda f: at(f.estimators_.nodes["right_child"], 0, 2),
    "one child": lambda f: at(f.estimators_.nodes["left_child"], -1),
    "a feature far away": lambda f: at(f.estimators_.nodes["feature"], 2**40),
    "a negative feature": lambda f: at(f.estimators_.nodes["feature"], -9),
    "short nodes": lambda f: f.estimators_.nodes.update(
        threshold=f.estimators_.nodes["threshold"][:-3]
    ),
    "nodes of another type": lambda f: f.estimators_.nodes.update(
        left_child=f.estimators_.nodes["left_child"].astype(float)
    ),
    "no threshold": lambda f: f.estimators_.nodes.pop("threshold"),
    "few values": lambda f: setattr(f.estimators_, "values", f.estimators_.values[:-1]),
    "values of other classes": lambda f: setattr(
        f.estimators_, "values", np.concatenate([f.estimators_.values] * 2, axis=2)
    ),
    "values that are none": lambda f: at(f.estimators_.values, np.nan),
    "more nodes in one tree": lambda f: at(f.estimators_.n_nodes, f.estimators_.n_nodes[0] + 1),
    "a negative number of nodes": lambda f: at(f.estimators_.n_nodes, -(2**62)),
    "other features": lambda f: setattr(f, "n_features_in_", 10**6),
    "other features of trees": lambda f: f.estimators_.settings.update(n_features_in_=10**6),
    "other classes": lambda f: setattr(f, "n_classes_", 3),
    "other classes of trees": lambda f: f.estimators_.settings.update(n_classes_=np.int64(3)),
    "trees that are none": lambda f: setattr(f, "estimators_", [1, 2]),
    "threads without end": lambda f: setattr(f, "n_jobs", 10**6),
    "no classes": lambda f: delattr(f, "classes_"),
}


@pytest.mark.parametrize("kind", FORGED_TREES)
def test_forged_trees_are_refused(kind: str, saved: Path, tmp_path: Path):
    def change(content):
        FORGED_TREES[kind](content["final"])

    path = forged_part(saved, tmp_path / "forged.skops", change)
    with pytest.raises(UserError, match="refused"):
        load_model(path)


def machine_of(content) -> SVC:
    return next(v.model for v in content["final"].estimators if isinstance(v.model, SVC))


FORGED_MACHINES = {
    "counts": lambda m: at(m._n_support, 10**6),
    "a negative count": lambda m: at(m._n_support, -1),
    "coefficients": lambda m: setattr(m, "_dual_coef_", m._dual_coef_[:, :1]),
    "intercepts": lambda m: setattr(m, "_intercept_", m._intercept_[:0]),
    "vectors": lambda m: setattr(m, "support_vectors_", m.support_vectors_[:, :1]),
    "fewer vectors": lambda m: setattr(m, "support_vectors_", m.support_vectors_[:1]),
    "types": lambda m: setattr(m, "support_", m.support_.astype(np.int64)),
    "probabilities": lambda m: setattr(m, "_probA", np.ones(1)),
    "classes": lambda m: setattr(m, "classes_", np.arange(50)),
    "a kernel": lambda m: setattr(m, "kernel", "precomputed"),
    "sparse": lambda m: setattr(m, "_sparse", True),
}


@pytest.mark.parametrize("kind", FORGED_MACHINES)
def test_forged_support_vectors_are_refused(kind: str, saved_mixed: Path, tmp_path: Path):
    path = forged_part(
        saved_mixed, tmp_path / "f.skops", lambda c: FORGED_MACHINES[kind](machine_of(c))
    )
    with pytest.raises(UserError, match="refused"):
        load_model(path)


def with_classes(forest, names):
    new = copy.copy(forest)
    new.classes_ = np.array(names, dtype=object)
    return new


def promised(content, **changes):
    content["promise"] = json.dumps({**json.loads(content["promise"]), **changes})


FORGED_CONTENT = {
    "no promise": lambda c: c.pop("promise"),
    "a promise of text": lambda c: c.update(promise='"much"'),
    "a confidence of nothing": lambda c: promised(c, rule={"power": 1.0}),
    "an endless power": lambda c: promised(c, power=float("inf")),
    "steps of text": lambda c: promised(c, steps=[["a", "b"]]),
    "shares of other classes": lambda c: promised(
        c, rule={"power": 1.0, "seen": 1.0, "shift": [1.0, 1.0, 1.0]}
    ),
    "no encoder": lambda c: c.update(encoder=None),
    "a plan of unknown kinds": lambda c: object.__setattr__(c["encoder"].plan_[0], "kind", "magic"),
    "a column less": lambda c: c["encoder"].plan_.pop(0),
    "no summary": lambda c: c.update(summary="[]"),
    "other classes": lambda c: c.update(final=with_classes(c["final"], ["x", "y"])),
    "no model": lambda c: c.update(final=None),
    "no part": lambda c: c.pop("first"),
}


@pytest.mark.parametrize("kind", FORGED_CONTENT)
def test_parts_that_do_not_fit_together_are_refused(kind: str, saved: Path, tmp_path: Path):
    path = forged_part(saved, tmp_path / "forged.skops", FORGED_CONTENT[kind])
    with pytest.raises(UserError, match="refused"):
        load_model(path)


def test_sparse_rows_with_wild_columns_are_refused(tmp_path: Path):
    rows = csr_array(np.eye(4))
    rows.indices[0] = 10**8
    write_archive({"rows": rows}, tmp_path / "m.skops")
    with pytest.raises(UserError, match="refused"):
        read_archive(tmp_path / "m.skops")


def test_something_that_is_no_file(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.skops")
    with pytest.raises(UserError, match="no ordinary file"):
        load_model(tmp_path / "pipe.skops")


@pytest.mark.parametrize("bad", [np.array([1.0, -1e200]), csr_array([[0.0, 1e200]])])
def test_numbers_that_cannot_be_calculated_with_are_refused(bad):
    """Their squares are infinite, so that votes would be NaN."""
    with pytest.raises(ValueError, match="numbers too large to calculate with"):
        checked({"estimators": [bad]})


def test_missing_and_infinite_numbers_may_be_in_a_model():
    kept = np.array([np.nan, np.inf, -1e150])
    assert checked([kept, np.array(["1e200"])])[0] is kept
