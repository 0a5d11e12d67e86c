"""A zip archive of Python objects that runs no code when it is read.

The archive is what skops writes, with our classes under keys of their own, one number for each
object, and a manifest: what made the file, and the SHA-256 of every member. Reading goes from the
cheap to the dear: the sizes that the members claim, the bytes that they really have, the manifest,
the sums, the headers of all arrays, the names of all types. Only then is anything built, from the
bytes that were checked. The sums detect damage and careless edits; against a forger it is the list
of types that protects. Nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from fewlabel._core.errors import UserError, listing, shorten
from fewlabel.tables.allowed_types import ALLOWED, CLASSES, KEYS, LOADERS, TRUSTED_TYPES
from fewlabel.tables.model_checks import checked, with_packed_trees

FORMAT = "fewlabel model"
FORMAT_VERSION = 5

_MANIFEST = "fewlabel.json"
_SCHEMA = "schema.json"
# Our own models have about a hundred members, and shrink to a tenth.
_MOST_MEMBERS = 10_000
_MANIFEST_BYTES = 4 * 2**20
_SCHEMA_VALUES = 2_000_000
_LEAST_LIMIT, _LARGEST_RATIO = 32 * 2**20, 100
_ITEM_BYTES = 2**16
# Packages that objects of a model may need, by what installs them.
_EXTRAS = {"skrub": "cli", "pandas": "cli", "pyarrow": "cli", "faiss": "graph"}


def skops_io() -> Any:
    """The package that model files are made with, or an error that says how to get it."""
    try:
        import skops.io
    except ImportError as error:
        raise ImportError("Model files need skops: pip install 'fewlabel[cli]'") from error
    return skops.io


# --- writing ---------------------------------------------------------------------------------


def write_archive(content: Any, path: Path) -> None:
    """Write objects to a file.

    Parameters
    ----------
    content : object
        Of types that :mod:`fewlabel.tables.allowed_types` lists.
    path : Path

    Raises
    ------
    UserError
        If there are others among them.
    """
    with zipfile.ZipFile(io.BytesIO(skops_io().dumps(with_packed_trees(content)))) as raw:
        members = {name: raw.read(name) for name in raw.namelist()}
    schema = json.loads(members.pop(_SCHEMA))
    names = {name: f"{k}{Path(name).suffix}" for k, name in enumerate(members)}
    schema = _renumbered(schema, names, {})
    unknown = sorted(set(_untrusted(schema)))
    if unknown:
        raise UserError(
            f"A model file cannot hold objects of these types: {listing(unknown)}.",
            "Use the families and estimators of scikit-learn that come with fewlabel, or pickle.",
        )
    kept = {names[name]: data for name, data in members.items()}
    kept[_SCHEMA] = json.dumps(schema, separators=(",", ":")).encode()
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in kept.items()}
    kept[_MANIFEST] = json.dumps({**_made_by(), "members": sums}, indent=1).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in kept.items():
            # Without the time of day, equal models are equal files.
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED, 6)


def _renumbered(node: Any, names: dict[str, str], numbers: dict[int, int]) -> Any:
    """The schema with small numbers for addresses in memory, and keys for our classes."""
    if isinstance(node, list):
        return [_renumbered(value, names, numbers) for value in node]
    if not isinstance(node, dict):
        return node
    new = {key: _renumbered(value, names, numbers) for key, value in node.items()}
    if isinstance(node.get("__id__"), int):
        new["__id__"] = numbers.setdefault(node["__id__"], len(numbers) + 1)
    if node.get("__loader__") in ("NdArrayNode", "SparseMatrixNode") and "file" in node:
        new["file"] = names[node["file"]]
    key = KEYS.get(_path_of(node))
    return {**new, "__module__": "fewlabel", "__class__": key} if key else new


def _made_by() -> dict[str, Any]:
    import sklearn

    from fewlabel import __version__

    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "fewlabel": __version__,
        "scikit-learn": sklearn.__version__,
    }


# --- reading ---------------------------------------------------------------------------------


def read_archive(path: Path) -> Any:
    """Read objects from a file, or say in a :class:`UserError` why it is refused.

    A single warning tells if the file was made with another scikit-learn.
    """
    import sklearn
    from sklearn.exceptions import InconsistentVersionWarning

    path, skops = Path(path), skops_io()
    manifest, members = checked_members(path)
    if manifest.get("scikit-learn") != sklearn.__version__:
        warnings.warn(
            f"The model was made with scikit-learn {shorten(manifest.get('scikit-learn'), 20)} and "
            f"is read with {sklearn.__version__}; train it again if results look odd.",
            stacklevel=3,
        )
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    try:
        with warnings.catch_warnings():
            # Each estimator would tell again what was told above.
            warnings.simplefilter("ignore", InconsistentVersionWarning)
            return checked(skops.loads(stored.getvalue(), trusted=TRUSTED_TYPES))
    except Exception as error:  # whatever a malformed archive provokes in its reader
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> UserError:
    package = (error.name or "").partition(".")[0] if isinstance(error, ImportError) else ""
    if package in _EXTRAS:
        return UserError(
            f"'{shorten(path)}' needs the package {package} ({shorten(error, 100)}).",
            f"pip install 'fewlabel[{_EXTRAS[package]}]'",
        )
    return refused(path, f"its content cannot be read ({shorten(error, 100)})")


def checked_members(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest of a verified file, and the other members as skops expects them."""
    if not path.exists():
        raise UserError(f"There is no file '{shorten(path)}'.", "Check the name and the folder.")
    if not path.is_file():
        what = "a folder" if path.is_dir() else "no ordinary file"
        raise UserError(f"'{shorten(path)}' is {what}.", "Name a model file.")
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            manifest = _manifest(archive, path)
            members = _members(archive, file, path)
        _check_sums(members, manifest, path)
        _check_arrays(members)
        if sum(map(members[_SCHEMA].count, (b",", b"{", b"["))) > _SCHEMA_VALUES:
            raise refused(path, "its structure is too large")
        schema = json.loads(members[_SCHEMA])
        unknown = sorted(set(_untrusted(schema)))
    except UserError:
        raise
    except RecursionError as error:
        raise refused(path, "its structure is nested too deeply") from error
    except Exception as error:  # whatever damaged bytes provoke in zipfile, json and NumPy
        raise refused(path, "it is no fewlabel model, or it is cut off or damaged") from error
    if unknown:
        raise refused(
            path, f"it contains types that a fewlabel model never has: {listing(unknown)}"
        )
    members[_SCHEMA] = json.dumps(_with_paths(schema)).encode()
    return manifest, members


def _manifest(archive: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    if _MANIFEST not in archive.namelist():
        raise refused(path, "it was not written by fewlabel")
    manifest = json.loads(_bytes_of(archive, archive.getinfo(_MANIFEST), _MANIFEST_BYTES, path))
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise refused(path, "it was not written by fewlabel")
    version = manifest.get("format_version")
    if version != FORMAT_VERSION:
        old = isinstance(version, int) and version < FORMAT_VERSION
        raise UserError(
            f"'{shorten(path)}' was written by fewlabel {shorten(manifest.get('fewlabel'))} in "
            f"{'an older' if old else 'a'} format that this version does not read.",
            "Train the model again (`fewlabel fit --model`)"
            + ("." if old else ", or install that version."),
        )
    return manifest


def _members(archive: zipfile.ZipFile, file: IO[bytes], path: Path) -> dict[str, bytes]:
    """All members but the manifest; together not much larger than the file lets expect."""
    infos = [info for info in archive.infolist() if info.filename != _MANIFEST]
    if len(infos) > _MOST_MEMBERS:
        raise refused(path, "it has too many parts")
    left = _LEAST_LIMIT + _LARGEST_RATIO * file.seek(0, io.SEEK_END)
    if sum(info.file_size for info in infos) > left:
        raise refused(path, "it would become far larger than it is")
    members: dict[str, bytes] = {}
    for info in infos:
        members[info.filename] = data = _bytes_of(archive, info, left, path)
        left -= len(data)
    # A zip archive may hold one name twice; readers then disagree on which one counts.
    if len(members) < len(infos) or len(set(archive.namelist())) < len(archive.infolist()):
        raise refused(path, "its list of contents was changed after it was written")
    return members


def _bytes_of(archive: zipfile.ZipFile, info: zipfile.ZipInfo, limit: int, path: Path) -> bytes:
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise refused(path, "it is compressed in a way that fewlabel does not use")
    with archive.open(info) as member:
        data = member.read(limit + 1)  # what the archive says of its size need not be true
    if len(data) > limit:
        raise refused(path, "it would become far larger than it is")
    return data


def _check_sums(members: dict[str, bytes], manifest: dict[str, Any], path: Path) -> None:
    recorded = manifest.get("members")
    if not isinstance(recorded, dict) or sorted(members) != sorted(recorded):
        raise refused(path, "its list of contents was changed after it was written")
    if any(hashlib.sha256(data).hexdigest() != recorded[name] for name, data in members.items()):
        raise refused(path, "its contents were changed after it was written")


def _check_arrays(members: dict[str, bytes]) -> None:
    """Headers of arrays promise as much as there is, before anybody makes room for it."""
    for name, data in members.items():
        if name.endswith(".npy"):
            _check_array(data)
        elif name.endswith(".npz"):
            with zipfile.ZipFile(io.BytesIO(data)) as inner:
                for info in inner.infolist():
                    limit = _LEAST_LIMIT + _LARGEST_RATIO * len(data)
                    _check_array(_bytes_of(inner, info, limit, Path(name)))
        elif name != _SCHEMA:
            raise zipfile.BadZipFile(f"unknown member {name}")


def _check_array(data: bytes) -> None:
    stream = io.BytesIO(data)
    headers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    shape, _, dtype = headers[np.lib.format.read_magic(stream)](stream)
    length = math.prod(shape) * dtype.itemsize
    if dtype.hasobject or dtype.itemsize > _ITEM_BYTES or min(shape, default=0) < 0:
        raise ValueError("an array of no type that models have")
    if length != len(data) - stream.tell():
        raise ValueError("an array of another length than its header says")


# --- types -----------------------------------------------------------------------------------


def _path_of(node: dict[str, Any]) -> str:
    return f"{node.get('__module__')}.{node.get('__class__')}"


def _untrusted(node: Any) -> Iterator[str]:
    """Types and loaders in a schema of ours that are not on the list."""
    if isinstance(node, dict):
        if "__class__" in node or "__loader__" in node:
            ours = node.get("__module__") == "fewlabel" and node.get("__class__") in CLASSES
            if not ours and _path_of(node) not in ALLOWED:
                yield _path_of(node)
            if node.get("__loader__") not in LOADERS:
                yield str(node.get("__loader__"))
        for value in node.values():
            yield from _untrusted(value)
    elif isinstance(node, list):
        for value in node:
            yield from _untrusted(value)


def _with_paths(node: Any) -> Any:
    """The schema with the present paths of our classes for their keys."""
    if isinstance(node, list):
        return [_with_paths(value) for value in node]
    if not isinstance(node, dict):
        return node
    new = {key: _with_paths(value) for key, value in node.items()}
    if node.get("__module__") == "fewlabel" and node.get("__class__") in CLASSES:
        new["__module__"], _, new["__class__"] = CLASSES[node["__class__"]].rpartition(".")
    return new


def refused(path: Path, reason: str) -> UserError:
    """The error for a file that is not read."""
    return UserError(
        f"'{shorten(path)}' is refused: {reason}.",
        "Use a model file that `fewlabel fit --model` wrote, from a source that you trust.",
    )
