"""``fewlabel label``: answers in files, changed tables, a whole session by requests."""

from __future__ import annotations

import json
import re
import time
import urllib.error
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("uvicorn")

from sklearn.datasets import make_blobs

from benchmarks.label_kill import Client, started
from fewlabel._core.errors import UserError
from fewlabel.cli import label
from fewlabel.cli.console import Console
from fewlabel.cli.label import LabelOptions, label_command, notes_of, open_table
from fewlabel.cli.label_job import TableJob
from fewlabel.labeling.learning import Lesson, learn
from fewlabel.labeling.space import row_space
from fewlabel.labeling.store import Answer
from fewlabel.tables.model_files import load_model
from fewlabel.tables.reading import read_table

X, Y = make_blobs(90, 3, centers=2, cluster_std=1.0, random_state=0)


def write(path, rows=range(90), labels=None, extra=""):
    lines = [f"x0,x1,x2,y{',more' if extra else ''}"]
    for i in rows:
        cells = [*(f"{x:.3f}" for x in X[i]), (labels or {}).get(i, "")]
        lines.append(",".join([*cells, *([extra] if extra else [])]))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def table(tmp_path):
    write(tmp_path / "t.csv", labels={0: "a", 1: "b"})
    return tmp_path / "t.csv"


def reopened(table, **options):
    """The table opened anew, as another process would."""
    return open_table(table, LabelOptions("y", **options))


@pytest.fixture(autouse=True)
def lock_store(monkeypatch):
    """These tests open a table several times in one process."""
    lock, locked = label._lock_store, []
    monkeypatch.setattr(label, "_lock_store", locked.append)
    return lock


def test_one_process_for_one_file_of_answers(lock_store, tmp_path):
    lock_store(tmp_path / "a.sqlite")
    with pytest.raises(UserError, match="Another `fewlabel label` is using"):
        lock_store(tmp_path / "a.sqlite")
    lock_store(tmp_path / "b.sqlite")


def answered(table, rows):
    opened = reopened(table)
    opened.store.add_all(
        [Answer(row, opened.digests[row], "label", "a", "random", who="Ann") for row in rows]
    )
    opened.store.close()


def test_the_table_is_not_changed(table):
    before = table.read_bytes()
    answered(table, [5])
    assert table.read_bytes() == before


def test_rows_that_moved_keep_their_answers(table):
    answered(table, [5, 80])
    write(table, rows=[*range(10, 90), 5])
    opened = reopened(table)
    assert [(a.position, a.label) for a in opened.store.answers()] == [(80, "a"), (70, "a")]
    assert "2 answered rows stand elsewhere" in notes_of(opened.found)[0]["text"]
    assert notes_of(reopened(table).found) == []  # told once


def test_rows_that_are_gone_are_told_with_their_answers(table, capsys):
    answered(table, [5, 80])
    write(table, rows=range(6, 90))
    label_command(Console(), table, LabelOptions("y", export=table.with_name("a.csv")))
    told = capsys.readouterr().err
    assert "no longer has row 6" in told
    assert "row 6: a" in told
    write(table)  # the row is back, and so is its answer
    assert [a.position for a in reopened(table).store.answers()] == [5, 80]


def test_new_columns_do_not_matter(table):
    answered(table, [5])
    write(table, extra="new")
    opened = reopened(table)
    assert notes_of(opened.found) == []
    assert opened.store.answers()[0].position == 5


def test_answers_of_another_target_are_not_mixed_in(table):
    answered(table, [5])
    write(table, extra="new")
    with pytest.raises(UserError, match="answers about 'y'"):
        open_table(table, LabelOptions("more"))


def test_export_and_import(table, tmp_path, capsys):
    answered(table, [5, 7])
    out = tmp_path / "answers.csv"
    label_command(Console(), table, LabelOptions("y", export=out))
    other = LabelOptions("y", store=tmp_path / "other.sqlite", import_=out)
    write(table, rows=range(3, 90))
    label_command(Console(), table, other)
    opened = open_table(table, LabelOptions("y", store=tmp_path / "other.sqlite"))
    found = [(a.position, a.label, a.why, a.who) for a in opened.store.answers()]
    assert found == [(2, "a", "random", "Ann"), (4, "a", "random", "Ann")]
    label_command(Console(), table, other)  # again: nothing new
    assert "0 answers imported" in capsys.readouterr().out
    with pytest.raises(UserError, match=r"exists|there"):
        label_command(Console(), table, LabelOptions("y", export=out))


@pytest.mark.parametrize("name", ["answers.csv", "answers.parquet"])
def test_odd_labels_and_comments_come_back(table, tmp_path, name):
    opened = reopened(table)
    odd = ["=1+1", "'", "-1", "a,b", 'say "x"', "ä\u2028"]
    opened.store.add_all(
        [
            Answer(row, opened.digests[row], "label", label, "random", comment=label)
            for row, label in enumerate(odd, 10)
        ]
    )
    opened.store.close()
    label_command(Console(), table, LabelOptions("y", export=tmp_path / name))
    other = tmp_path / "other.sqlite"
    label_command(Console(), table, LabelOptions("y", store=other, import_=tmp_path / name))
    stored = open_table(table, LabelOptions("y", store=other)).store.answers()
    assert [a.comment for a in stored] == [a.label for a in stored] == odd


def test_imports_are_refused_as_a_whole(table, tmp_path):
    answered(table, [5, 89])
    out = tmp_path / "answers.csv"
    label_command(Console(), table, LabelOptions("y", export=out))
    write(table, rows=range(60))
    other = LabelOptions("y", store=tmp_path / "other.sqlite", import_=out)
    with pytest.raises(UserError, match="row 90"):
        label_command(Console(), table, other)
    assert open_table(table, other).store.answers() == []
    out.write_text("row,content,kind,label\n1,x,label,\n")
    with pytest.raises(UserError, match="Line 2 is no answer"):
        label_command(Console(), table, other)
    out.write_text(f"row,content,kind,label\n{'1' * 5000},x,label,a\n")
    with pytest.raises(UserError, match="Line 2 is no answer"):
        label_command(Console(), table, other)
    nested = out.with_suffix(".json")
    nested.write_text("[" * 100_000)
    with pytest.raises(UserError, match="cannot be read as JSON"):
        label_command(Console(), table, replace(other, import_=nested))
    out.write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match="no column 'row'"):
        label_command(Console(), table, other)


def test_label_studio_exports_are_imported(table, tmp_path):
    tasks = [{"fewlabel_row": 4, "label": "b", "fewlabel_why": "random", "annotator": 2}]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks))
    label_command(Console(), table, LabelOptions("y", import_=path))
    stored = reopened(table).store.answers()
    assert [(a.position, a.label, a.why, a.who) for a in stored] == [(4, "b", "random", "2")]
    path.write_text(json.dumps([{"fewlabel_row": 400, "label": "b"}]))
    with pytest.raises(UserError, match="row 401"):
        label_command(Console(), table, LabelOptions("y", import_=path))


def test_a_new_column_needs_its_classes(table):
    with pytest.raises(UserError, match="--class"):
        open_table(table, LabelOptions("segment"))
    opened = open_table(
        table, LabelOptions("segment", classes=("a",), store=table.with_name("s.sqlite"))
    )
    assert opened.table.column_names[-1] == "segment"
    assert set(opened.given) == {None}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"host": "0.0.0.0"}, "other machines reach"),
        ({"certificate": "c.pem"}, "belong together"),
    ],
)
def test_other_machines_need_a_password_or_certificate(table, options, words):
    with pytest.raises(UserError, match=words):
        label_command(Console(), table, LabelOptions("y", **options))


def test_who_may_ask_for_the_page(tmp_path, capsys):
    listening = label._listening(LabelOptions("y"))
    port = listening.getsockname()[1]
    try:
        entry = label.entry_of(listening, LabelOptions("y"))
        assert entry.hosts == {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        assert len(entry.token) == len(entry.cookie) == 43
        (tmp_path / "password").write_text("correct horse\n")
        options = LabelOptions("y", host="box.example", password_file=tmp_path / "password")
        entry = label.entry_of(listening, options)
        assert entry.password == "correct horse"
        assert f"box.example:{port}" in entry.hosts
        label.announce(entry, listening, LabelOptions("y", host="box.example", open_browser=False))
        told = capsys.readouterr()
        assert told.out == f"http://box.example:{port}/?token={entry.token}\n"
        assert "not encrypted" in told.err
        (tmp_path / "password").write_text("short")
        with pytest.raises(UserError, match="8 characters"):
            label.entry_of(listening, options)
        with pytest.raises(UserError, match="cannot use port"):
            label._listening(LabelOptions("y", host="203.0.113.7", port=port))
    finally:
        listening.close()


def test_the_result_holds_what_was_checked(table, tmp_path):
    """Frozen labels stay, wrong ones are corrected, accepted ones are those of the check."""
    opened = reopened(table)
    labeled = np.array([label is not None for label in opened.given])
    job = TableJob(opened.table, "t.csv", {"target": "y", "jobs": 1}, labeled, 1)
    X_ = job.features()
    labels = {int(i): "ab"[Y[i]] for i in range(30)}
    lesson = Lesson(1, labels, list(labels), [], 2, 0.05)
    clf, found = learn(X_, row_space(X_), lesson, n_jobs=1)
    rows = np.flatnonzero(found.accepted).tolist()
    fixed = {
        "classes": found.classes, "codes": found.codes.tolist(), "rows": rows[:20],
        "audited": {rows[0]: "a", rows[1]: "b"}, "audit": None, "statement": "at most 9 % of …",
    }  # fmt: skip
    names = job.write(clf, lesson, {"fixed": fixed}, tmp_path)
    result = read_table(tmp_path / names[0]).to_pydict()
    assert [result["y"][i] for i in range(30)] == [labels[i] for i in range(30)]
    assert result["y_label"][rows[0]] == "a"
    assert result["y_label"][rows[1]] == "b"
    assert result["y_origin"][rows[0]] == "audited"
    accepted = [i for i in range(90) if result["y_accepted"][i] == "true"]
    assert accepted == sorted({*range(30), *rows[:20]})
    assert load_model(tmp_path / names[1]).target == "y"
    report = (tmp_path / names[2]).read_text()
    assert "at most 9 % of …" in report
    assert "30 of 30 labelled rows that were drawn" in report


def test_a_session_over_requests(table):
    """Two people, a kill, a restart, another process on the same answers."""
    process, address = started(str(table), "--target", "y", "--jobs", "1", "--goal", "20%")
    try:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{43}", address)
        client, other = Client(address), Client(address)
        other.tab = "fedcba9876543210"
        rows = []
        for who in (client, other) * 4:
            card = who.post("next")["card"]
            rows.append(card["row"])
            who.post("answer", row=card["row"], kind="label", label="ab"[Y[card["row"]]])
        assert len(set(rows)) == 8
        with pytest.raises(urllib.error.HTTPError, match="403"):
            Client(address.partition("token=")[0] + "token=guess")
    finally:
        process.kill()
        process.communicate()
    process, address = started(str(table), "--target", "y", "--jobs", "1", "--goal", "20%")
    try:
        client = Client(address)
        assert client.state()["answered"] == 8
        deadline = time.monotonic() + 60
        while client.state()["model"] is None and time.monotonic() < deadline:
            time.sleep(0.2)
        assert client.state()["model"]["n_labels"] == 10
    finally:
        process.terminate()
        process.communicate(timeout=10)
