"""Answers on disk: nothing that was acknowledged is lost, nothing is changed but its undoing."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from benchmarks.label_kill import killed_writers
from fewlabel._core.errors import UserError
from fewlabel.labeling.row_identity import reattach, row_digests
from fewlabel.labeling.store import Answer, AnswerStore


@pytest.fixture
def store(tmp_path):
    return AnswerStore(tmp_path / "answers.sqlite")


def answer(position=0, label="a", content="", **more):
    return Answer(position, content or f"c{position}", "label", label, "random", **more)


def test_answers_come_back(store):
    given = answer(3, "ä\u2028<b>", who="Ann", comment="x" * 500, tab="t1", belief=True, model=4)
    stored = store.add(given)
    again = AnswerStore(store.path)
    assert again.answers() == [stored]
    assert stored._replace(id=0, at="") == given
    assert stored.at > "2020"


def test_undo_leaves_the_answer_in_the_file(store):
    first, second = store.add(answer(1)), store.add(answer(2))
    assert store.undo(first.id)
    assert not store.undo(first.id)
    assert store.answers() == [second]
    with closing(sqlite3.connect(store.path)) as db:
        assert db.execute("SELECT count(*) FROM answers").fetchone() == (2,)


def test_every_commit_goes_to_the_disk(store):
    db = store._db
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert db.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


def test_all_or_none(store):
    with pytest.raises(sqlite3.IntegrityError):
        store.add_all([answer(1), answer(2)._replace(label=None)])
    assert store.answers() == []
    assert store.add(answer(3)).id > 0  # the store can still be written


def test_models_checks_and_classes(store):
    store.add_class("b")
    store.add_class("a")
    store.add_class("b")
    store.add_model(1, {"value": 0.5})
    opened = store.open_audit({"rows": [3, 1]}, until=7)
    again = AnswerStore(store.path)
    assert again.classes() == ["b", "a"]
    assert again.models() == [{"version": 1, "value": 0.5}]
    assert again.last_audit() == opened
    again.close_audit(opened.id)
    assert store.last_audit().closed


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "text.sqlite"
    path.write_text("no database, " * 100)
    with pytest.raises(UserError, match="--store"):
        AnswerStore(path)
    with pytest.raises(UserError, match="--store"):
        AnswerStore(tmp_path / "no" / "folder.sqlite")
    newer = AnswerStore(tmp_path / "newer.sqlite")
    newer.set_meta("version", 99)
    with pytest.raises(UserError, match="another version"):
        AnswerStore(newer.path)


def test_damaged_files_are_refused(store, tmp_path):
    store.add_all([Answer(i, "x" * 200, "label", "a", "random") for i in range(200)])
    store.close()
    whole = store.path.read_bytes()
    path = tmp_path / "damaged.sqlite"
    path.write_bytes(whole[:5000] + bytes(len(whole) - 5000))
    with pytest.raises(UserError, match="cannot be used for the answers"):
        AnswerStore(path)
    path.write_bytes(whole)
    other = sqlite3.connect(path)
    with other:
        other.execute("UPDATE meta SET value = 'no JSON' WHERE key = 'version'")
    other.close()
    with pytest.raises(UserError, match="cannot be used for the answers"):
        AnswerStore(path)


def test_kills_lose_no_acknowledged_answer(tmp_path):
    found = killed_writers(tmp_path, kills=2, seed=0)
    assert found.acknowledged > 10
    assert found.lost == 0


# --- rows by content -----------------------------------------------------------------------------


def test_digests_tell_rows_apart():
    import pyarrow as pa

    table = pa.table({"a": ["x", "x", "x\x1f", "x", None], "b": ["y", "y", "", "\x1fy", "y"]})
    digests = row_digests(table, ["a", "b"])
    assert digests[0] == digests[1]
    assert len(set(digests)) == 4


def test_rows_are_found_where_they_stand_now():
    answers = [
        answer(0, content="aa", id=1),
        answer(1, content="bb", id=2),
        answer(1, content="bb", id=3),
        answer(2, content="gone", id=4),
    ]
    found = reattach(answers, ["new", "aa", "bb"])
    assert dict(found.places) == {1: 1, 2: 2, 3: 2, 4: None}
    assert [a.id for a in found.moved] == [1, 2, 3]
    assert [a.id for a in found.lost] == [4]


def test_copies_of_a_row_are_not_mixed_up():
    answers = [answer(0, content="aa", id=1), answer(1, content="aa", id=2)]
    assert reattach(answers, ["aa", "aa", "bb"]).places == []
    assert dict(reattach(answers, ["bb", "aa", "aa"]).places) == {1: 2}
    assert dict(reattach(answers, ["bb", "aa"]).places) == {1: None}


def test_the_room_needs_no_extra():
    code = "import fewlabel.labeling.store, sys; print({'starlette', 'sklearn'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
