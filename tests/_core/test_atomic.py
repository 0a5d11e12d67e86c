"""Files appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from fewlabel._core.atomic import Outputs, replaced
from fewlabel._core.errors import UserError


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
