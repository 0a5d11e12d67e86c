"""Files of rows in chunks: in a folder, by a pattern, or at an address such as ``s3://…``."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PARQUET = (".parquet", ".pq")


def need(module: str, purpose: str) -> Any:
    """Import a module of the ``scale`` extra, or say how to get it."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{purpose} needs {module.split('.')[0]}: pip install 'fewlabel[scale]'."
        ) from error


def is_address(source: str | os.PathLike[str]) -> bool:
    """Whether a name is an address for fsspec, such as ``s3://bucket/folder``."""
    return "://" in str(source)


def is_pattern(source: str | os.PathLike[str]) -> bool:
    """Whether a name stands for several files: it has a *, ? or [ and is no file itself."""
    return glob.has_magic(str(source)) and not (is_address(source) or os.path.exists(source))


def find_files(source: str | os.PathLike[str], endings: tuple[str, ...]) -> list[str]:
    """Names of the files that a path, pattern or address stands for, in order.

    Parameters
    ----------
    source : path
        A file, a folder (its files with these endings, also in folders below), a pattern such as
        ``rows/*.parquet``, or an address of fsspec, where the same holds.
    endings : tuple of str
        Files with other endings, and those whose names begin with ``_`` or ``.``, are left out of
        folders.
    """
    if is_address(source):
        return _find_remote(str(source), endings)
    path = Path(source)
    if path.is_file():
        return [str(path)]
    if is_pattern(source):
        found = glob.glob(str(source), recursive=True)
        return sorted(name for name in found if os.path.isfile(name))
    inside = (str(file) for file in path.rglob("*") if file.is_file())
    return sorted(name for name in inside if _is_part(name, endings))


def _find_remote(address: str, endings: tuple[str, ...]) -> list[str]:
    fs, path = _file_system(address)
    if glob.has_magic(path):
        found = fs.glob(path)
    elif fs.isfile(path):
        found = [path]
    else:
        found = [name for name in fs.find(path) if _is_part(name, endings)]
    return [fs.unstrip_protocol(name) for name in sorted(found)]


def _file_system(address: str) -> tuple[Any, str]:
    fs, path = need("fsspec", f"Reading {address}").core.url_to_fs(address)
    return fs, path


def _is_part(name: str, endings: tuple[str, ...]) -> bool:
    last = name.rsplit("/", 1)[-1]
    return last.lower().endswith(endings) and not last.startswith(("_", "."))


@contextmanager
def open_file(name: str) -> Iterator[Any]:
    """A local file's name as it is; the open file of an address."""
    if not is_address(name):
        yield name
        return
    fs, path = _file_system(name)
    with fs.open(path, "rb") as file:
        yield file


def parquet_files(source: str | os.PathLike[str]) -> list[str]:
    """The Parquet files that a path, pattern or address stands for, in order; raise if none."""
    files = find_files(source, PARQUET)
    if not files:
        known = is_address(source) or is_pattern(source) or Path(source).is_dir()
        what = "has" if known else "does not exist and is"
        raise FileNotFoundError(f"{source} {what} no Parquet file (*.parquet)")
    return files
