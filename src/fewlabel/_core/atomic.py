"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from fewlabel._core.errors import UserError, shorten


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Give a temporary path to write to; rename it to ``path`` if nothing was raised."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = _temporary(path)
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


class Outputs:
    """Write several files; they get their names together at the end, or none of them does.

    Every file is written under a temporary name in the folder where it belongs, so that the last
    step is a rename within one file system. An error or an interrupt removes the temporary files.

    Parameters
    ----------
    targets : iterable of Path
        Checked at once: it is better to learn of a missing folder before an hour of work.
    force : bool, default=False
        Whether existing files may be replaced.
    inputs : iterable of Path
        Files that are read and therefore never replaced, not even by ``force``.
    """

    def __init__(
        self, targets: Iterable[Path], *, force: bool = False, inputs: Iterable[Path] = ()
    ) -> None:
        self.targets = [Path(target) for target in targets]
        if len({_identity(target) for target in self.targets}) < len(self.targets):
            raise UserError("Two outputs have the same name.", "Give each its own file.")
        read = {_identity(Path(path)) for path in inputs}
        for target in self.targets:
            if _identity(target) in read:
                raise UserError(
                    f"'{shorten(target)}' is an input, and inputs are never changed.",
                    "Choose another name for the output.",
                )
            _check_target(target, force)
        self._temporary: dict[Path, Path] = {}

    def __enter__(self) -> Self:
        return self

    def path(self, target: Path) -> Path:
        """Where to write what shall become ``target``."""
        temporary = _temporary(target)
        # Noted before it is made: an interrupt in between must not leave it behind.
        self._temporary[target] = temporary
        temporary.touch(exist_ok=False)
        return temporary

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                for temporary in self._temporary.values():
                    _to_disk(temporary)
                for target, temporary in self._temporary.items():
                    temporary.replace(target)
        finally:
            for temporary in self._temporary.values():
                temporary.unlink(missing_ok=True)


def _temporary(target: Path) -> Path:
    # In the same folder, since a rename works within one file system.
    return target.with_name(f".{target.name[:40]}.{secrets.token_hex(4)}.part")


def _identity(path: Path) -> Path:
    return path.resolve()


def _check_target(target: Path, force: bool) -> None:
    name = shorten(target)
    if target.is_dir():
        raise UserError(f"'{name}' is a folder.", "Name a file for the output.")
    if target.exists() and not force:
        raise UserError(
            f"'{name}' exists already.", "Choose another name, or add --force to replace it."
        )
    folder = target.parent
    if not folder.is_dir():
        raise UserError(f"The folder '{shorten(folder)}' does not exist.", "Create it first.")
    _check_room(folder)


def can_be_made(folder: Path) -> bool:
    """Whether a folder is new: there is nothing of this name, or an empty folder."""
    return not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))


def check_new_folder(target: Path, *, force: bool, source: Path) -> None:
    """Raise unless a folder of results can be made; what is there is never removed.

    ``source`` is the folder that is read: results in it would be read as rows the next time.
    """
    name = shorten(target)
    if _identity(target).is_relative_to(_identity(source)):
        raise UserError(
            f"'{name}' lies in the folder that is read.", "Name a folder beside it (--out)."
        )
    if not can_be_made(target):
        refused = ", and --force does not remove folders" if force else ""
        raise UserError(
            f"'{name}' exists already{refused}.", "Remove it, or name another folder (--out)."
        )
    _check_room(next(parent for parent in _identity(target).parents if parent.exists()))


def _check_room(folder: Path) -> None:
    try:
        # Permission bits do not tell (root, read-only mounts, full disks): try.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserError(
            f"Cannot write into '{shorten(folder)}': {error.strerror}.",
            "Choose a folder that you may write to, with room on its disk.",
        ) from error


def _to_disk(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
