"""Files appear whole or not at all."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fewlabel._core.atomic import Outputs, new_folder, replaced
from fewlabel._core.errors import UserError
from support.cli_tools import environment


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path):
    path = tmp_path / "folder" / "table.md"
    with replaced(path) as part:
        part.write_text("old")

    def fail():
        with replaced(path) as part:
            part.write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert path.read_text() == "old"
    assert [p.name for p in path.parent.iterdir()] == ["table.md"]


def test_outputs_appear_together_or_not_at_all(tmp_path: Path):
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"

    def write(fail: bool) -> None:
        with Outputs([first, second], force=True) as outputs:
            outputs.path(first).write_text("new")
            if fail:
                raise RuntimeError
            outputs.path(second).write_text("new")
            assert not second.exists()

    first.write_text("old")
    with pytest.raises(RuntimeError):
        write(fail=True)
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert first.read_text() == "old"
    write(fail=False)
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"a.txt": "new", "b.txt": "new"}


def test_two_outputs_of_one_name(tmp_path: Path):
    with pytest.raises(UserError, match="same name"):
        Outputs([tmp_path / "a.csv", tmp_path / "x" / ".." / "a.csv"])


def write(outputs: Outputs, text: str = "new", meanwhile: Callable[[], object] = int) -> None:
    with outputs:
        for target in outputs.targets:
            outputs.path(target).write_text(text)
        meanwhile()


def written(target: Path, text: str = "new", *, force: bool = False) -> None:
    write(Outputs([target], force=force), text)


def test_what_appears_meanwhile_is_not_replaced(tmp_path: Path):
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    outputs = Outputs([first, second])
    with pytest.raises(UserError, match="appeared while"):
        write(outputs, meanwhile=lambda: second.write_text("somebody else's"))
    # The first had its name already, and lost it again.
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"b.txt": "somebody else's"}


def test_a_link_that_appears_meanwhile_is_not_followed(tmp_path: Path):
    target, other = tmp_path / "a.txt", tmp_path / "other.txt"
    outputs = Outputs([target])
    target.symlink_to(other)
    with pytest.raises(UserError, match="appeared"):
        write(outputs)
    assert not other.exists()


def test_of_two_runs_to_one_name_one_succeeds(tmp_path: Path):
    target = tmp_path / "a.txt"
    with pytest.raises(UserError, match="appeared"):
        write(Outputs([target]), "one", meanwhile=lambda: write(Outputs([target]), "other"))
    assert target.read_text() == "other"
    assert list(tmp_path.iterdir()) == [target]


def test_a_file_system_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*args: object, **options: object) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    target = tmp_path / "a.txt"
    written(target)
    written(target, "newer", force=True)
    outputs = Outputs([tmp_path / "b.txt"])
    with pytest.raises(UserError, match="appeared"):
        write(outputs, meanwhile=lambda: (tmp_path / "b.txt").write_text("old"))
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"a.txt": "newer", "b.txt": "old"}


def test_an_error_between_two_names_takes_the_first_back(tmp_path: Path, monkeypatch):
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    first.write_text("old")
    second.write_text("old")
    replace = os.replace

    def fail(source: Path, target: Path) -> None:
        if Path(target) == second:
            raise OSError(errno.EIO, "the disk is broken")
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail)
    outputs = Outputs([first, second], force=True)
    with pytest.raises(OSError, match="broken"):
        write(outputs)
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"a.txt": "old", "b.txt": "old"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_between_two_names_are_too_late(number: int, tmp_path: Path, monkeypatch):
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    link = os.link

    def interrupted(source: Path, target: Path) -> None:
        link(source, target)
        os.kill(os.getpid(), number)

    monkeypatch.setattr(os, "link", interrupted)
    handler = signal.getsignal(number)
    with Outputs([first, second]) as outputs:
        outputs.path(first).write_text("new")
        outputs.path(second).write_text("new")
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"a.txt": "new", "b.txt": "new"}
    assert signal.getsignal(number) == handler


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_permissions_stay(mode: int, tmp_path: Path):
    target = tmp_path / "a.txt"
    target.write_text("secret")
    target.chmod(mode)
    with Outputs([target], force=True) as outputs:
        part = outputs.path(target)
        assert stat.S_IMODE(part.stat().st_mode) == 0o600  # nobody reads along meanwhile
        part.write_text("new secret")
    assert stat.S_IMODE(target.stat().st_mode) == mode
    assert target.read_text() == "new secret"


def test_a_new_file_has_the_usual_permissions(tmp_path: Path):
    written(tmp_path / "a.txt")
    (tmp_path / "b.txt").write_text("")
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_symbolic_links_stay(tmp_path: Path):
    (tmp_path / "folder").mkdir()
    real, link = tmp_path / "folder" / "real.txt", tmp_path / "link.txt"
    link.symlink_to(real)
    for _ in range(2):  # dangling, then not
        with pytest.raises(UserError, match="exists already"):
            written(link)
        written(link, force=True)
        assert link.is_symlink()
        assert real.read_text() == "new"
    assert [p.name for p in real.parent.iterdir()] == ["real.txt"]


def test_devices_are_not_replaced(tmp_path: Path):
    (tmp_path / "null.csv").symlink_to("/dev/null")
    with pytest.raises(UserError, match="no ordinary file"):
        written(tmp_path / "null.csv", force=True)
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    with pytest.raises(UserError):
        written(tmp_path / "loop.csv", force=True)


def test_what_a_killed_process_left_is_removed(tmp_path: Path):
    target = tmp_path / "a.txt"
    stale = tmp_path / ".a.txt.0123abcd.part"
    others = [tmp_path / ".b.txt.0123abcd.part", tmp_path / ".a.txt.part", tmp_path / "a.txt.part"]
    for path in (stale, *others):
        path.write_text("half")
    with Outputs([target]) as outputs:
        assert not stale.exists()
        outputs.path(target).write_text("new")
        # A file that is being written is none: another process, another look.
        Outputs([target], force=True)
    assert target.read_text() == "new"
    assert sorted(tmp_path.iterdir()) == sorted([target, *others])


def interrupted(target: Path) -> None:
    with new_folder(target):
        raise KeyboardInterrupt


def test_a_folder_that_a_killed_process_left_is_removed(tmp_path: Path):
    stale = tmp_path / ".rows.0123abcd.part"
    stale.mkdir()
    (stale / "part").write_text("half")
    with new_folder(tmp_path / "rows") as folder:
        assert not stale.exists()
        (folder / "part").write_text("whole")
        with pytest.raises(KeyboardInterrupt):
            interrupted(tmp_path / "rows")
        assert folder.is_dir()  # of a process that lives
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]
    assert (tmp_path / "rows" / "part").read_text() == "whole"


def test_a_signal_at_the_entry_of_exit_leaves_nothing(tmp_path: Path):
    """There no handler can catch it; what is left is removed when the process ends."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom fewlabel._core.atomic import Outputs\n"
        "class Late(Outputs):\n    def __exit__(self, *args): raise SystemExit(143)\n"
        "target = Path(sys.argv[1])\n"
        "with Late([target]) as outputs: outputs.path(target).write_text('half')\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "a.txt")], env=environment()
    )
    assert answer.returncode == 143
    assert list(tmp_path.iterdir()) == []
