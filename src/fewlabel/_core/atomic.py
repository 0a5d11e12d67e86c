"""Files that appear whole or not at all.

A file is written under a temporary name in the folder where it belongs, put on disk, and only then
given its name. The process that writes it holds a lock on it as long as it lives: a temporary file
that nobody has locked is what a killed process left, and the next one removes it.
"""

from __future__ import annotations

import atexit
import errno
import os
import re
import secrets
import shutil
import signal
import stat
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from fewlabel._core.errors import UserError, shorten

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:  # pragma: no cover - Windows: temporary files of killed processes stay
    flock = None  # type: ignore[assignment]

_SHORT = 40
# What linking raises where a file system has no hard links.
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES)


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


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Give a temporary folder to write into; rename it to ``target`` if nothing was raised.

    What a killed process left behind when it wrote the same folder is removed first.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_stale(_identity(target))
    part = _temporary(target)
    part.mkdir(mode=0o755)
    held = os.open(part, os.O_RDONLY)
    try:
        lock(held)
        yield part
        part.rename(target)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    finally:
        os.close(held)


class Outputs:
    """Write several files; they get their names together at the end, or none of them does.

    An error or an interrupt at any time leaves what was there before: files that already have
    their names lose them again. A process that is killed (or a power cut) between two renames
    leaves some new files and some old ones, each of them whole.

    Parameters
    ----------
    targets : iterable of Path
        Checked at once: it is better to learn of a missing folder before an hour of work. What
        appears in the meantime is found when the file gets its name, and is not replaced.
    force : bool, default=False
        Whether existing files may be replaced. They keep their permissions, and of a symbolic link
        it is the file behind it that is replaced.
    inputs : iterable of Path
        Files and folders that are read and therefore never replaced, not even by ``force``.

    See Also
    --------
    replaced : A single file that may be replaced.
    """

    def __init__(
        self, targets: Iterable[Path], *, force: bool = False, inputs: Iterable[Path] = ()
    ) -> None:
        self.targets = [Path(target) for target in targets]
        self.force = force
        if len({_identity(target) for target in self.targets}) < len(self.targets):
            raise UserError("Two outputs have the same name.", "Give each its own file.")
        read = {_identity(Path(path)) for path in inputs}
        for target in self.targets:
            if _identity(target) in read:
                raise UserError(
                    f"'{shorten(target)}' is an input, and inputs are never changed.",
                    "Choose another name for the output.",
                )
            if any(_identity(target).is_relative_to(folder) for folder in read):
                raise UserError(
                    f"'{shorten(target)}' lies in the folder that is read.",
                    "Name a file beside it.",
                )
            _check_target(target, force)
            _remove_stale(_identity(target))
        # Where the names lead to is asked once: a link that appears later is not followed.
        self._places = {target: _identity(target) for target in self.targets}
        self._parts: dict[Path, _Part] = {}

    def __enter__(self) -> Self:
        return self

    def path(self, target: Path) -> Path:
        """Where to write what shall become ``target``."""
        part = _Part(target, self._places[target])
        # Noted before it is made: an interrupt in between must not leave it behind.
        self._parts[target] = part
        part.make()
        return part.path

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                for part in self._parts.values():
                    _to_disk(part.path)
                with _too_late_to_stop():
                    self._give_names()
        finally:
            for part in self._parts.values():
                part.close()

    def _give_names(self) -> None:
        with ExitStack() as undo:
            for part in self._parts.values():
                undo.callback(part.undo)
                part.give_name(self.force)
            undo.pop_all()
        for folder in {part.target.parent for part in self._parts.values()}:
            _folder_to_disk(folder)


class _Part:
    """A file with a temporary name; ``target`` is where ``wanted`` leads to."""

    def __init__(self, wanted: Path, target: Path) -> None:
        self.wanted, self.target = wanted, target
        self.path = _temporary(self.target)
        self.old = _temporary(self.target)  # a second name of what is replaced
        self._locked: list[int] = []
        self._named = False
        self._process = os.getpid()
        _UNFINISHED.add(self)

    def make(self) -> None:
        """Create the file; as private as the one that it is going to replace."""
        mode = 0o600 if self.target.exists() else 0o666
        while True:
            self._locked = [os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode)]
            lock(self._locked[0], wait=True)
            if _is_open(self.path, self._locked[0]):
                return
            # Somebody took it for a stale one before it was locked.
            os.close(self._locked.pop())
            self.path = _temporary(self.target)

    def give_name(self, force: bool) -> None:
        """Rename the file; an existing one is replaced by force only."""
        if force and self.target.exists():
            self._keep_old()
            os.replace(self.path, self.target)
        else:
            try:
                _rename_new(self.path, self.target)
            except FileExistsError as error:
                raise UserError(
                    f"'{shorten(self.wanted)}' appeared while this command ran, and is not "
                    f"replaced.",
                    "Choose another name, or add --force to replace it.",
                ) from error
        self._named = True

    def _keep_old(self) -> None:
        was = self.target.stat()
        with suppress(PermissionError):
            os.chown(self.path, was.st_uid, was.st_gid)
        os.chmod(self.path, stat.S_IMODE(was.st_mode))
        with suppress(OSError):  # without hard links there is no way back
            old = os.open(self.target, os.O_RDONLY)
            self._locked.append(old)
            lock(old)
            os.link(self.target, self.old)

    def undo(self) -> None:
        """Give the name back to what had it."""
        if not self._named:
            return
        if self.old.exists():
            os.replace(self.old, self.target)
        elif _is_open(self.target, self._locked[0]):
            self.target.unlink()

    def close(self) -> None:
        """Remove what still has a temporary name."""
        if self._process != os.getpid():  # a fork of the process that writes
            return
        self.path.unlink(missing_ok=True)
        self.old.unlink(missing_ok=True)
        while self._locked:
            os.close(self._locked.pop())
        _UNFINISHED.discard(self)


# A signal may come at the very entry of ``__exit__``, before anything there can catch it.
_UNFINISHED: set[_Part] = set()


@atexit.register
def _close_all() -> None:
    for part in list(_UNFINISHED):
        part.close()


def _rename_new(path: Path, target: Path) -> None:
    """Rename unless there is something of that name, in one step."""
    try:
        os.link(path, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # Without hard links: take the name, then fill it.
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        os.replace(path, target)
        return
    path.unlink()


@contextmanager
def _too_late_to_stop() -> Iterator[None]:
    """Ignore signals for the moment in which files get their names."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            # None: the handler was not set from Python, and cannot be.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


# --- temporary files -------------------------------------------------------------------------


def _temporary(target: Path) -> Path:
    # In the same folder, since a rename works within one file system.
    return target.with_name(f".{target.name[:_SHORT]}.{secrets.token_hex(4)}.part")


def _remove_stale(target: Path) -> None:
    """Remove temporary files for ``target`` that no living process holds."""
    ours = re.compile(rf"\.{re.escape(target.name[:_SHORT])}\.[0-9a-f]{{8}}\.part")
    for name in os.listdir(target.parent):
        if ours.fullmatch(name):
            with suppress(OSError):  # somebody else's
                _remove_unlocked(target.parent / name)


def _remove_unlocked(path: Path) -> None:
    is_folder = path.is_dir()
    file = os.open(path, (os.O_RDONLY if is_folder else os.O_RDWR) | os.O_NOFOLLOW)
    try:
        if lock(file):
            shutil.rmtree(path) if is_folder else path.unlink()
    finally:
        os.close(file)


def lock(file: int, *, wait: bool = False) -> bool:
    """Lock an open file, until it is closed; whether that was possible."""
    if flock is None:  # pragma: no cover - Windows
        return False
    try:
        flock(file, LOCK_EX | (0 if wait else LOCK_NB))
    except OSError:  # held by another process, or no such thing on this file system
        return False
    return True


def _is_open(path: Path, file: int) -> bool:
    """Whether a name belongs to an open file."""
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(file))
    except FileNotFoundError:
        return False


def _to_disk(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _folder_to_disk(folder: Path) -> None:
    with suppress(OSError):  # not every system lets a folder be opened
        file = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


# --- checks ----------------------------------------------------------------------------------


def _identity(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _check_target(target: Path, force: bool) -> None:
    name = shorten(target)
    if target.is_dir():
        raise UserError(f"'{name}' is a folder.", "Name a file for the output.")
    if target.exists() and not target.is_file():
        raise UserError(f"'{name}' is no ordinary file.", "Name a file for the output.")
    # A symbolic link is something, even if there is nothing behind it.
    if os.path.lexists(target) and not force:
        raise UserError(
            f"'{name}' exists already.", "Choose another name, or add --force to replace it."
        )
    folder = _identity(target).parent
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
