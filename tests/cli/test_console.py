"""What reaches the terminal: text that it shows and does not obey."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from fewlabel.cli.console import Console, explained, harmless

HOSTILE = "a\x1b]0;owned\x07\x1b[31m\x9b2J\u202eb\x7f\rc\x00"


def test_no_control_reaches_a_terminal(capsys: pytest.CaptureFixture[str]):
    console = Console()
    console.say(f"one\n\ttwo {HOSTILE}")
    console.table(["class", "vote"], [[HOSTILE, "0.5"]])
    console.progress(HOSTILE)
    console.fail(HOSTILE, HOSTILE)
    said = capsys.readouterr()
    for text in (said.out, said.err):
        assert not set(text) & set("\x1b\x07\x9b\u202e\x7f\r\x00")
    assert said.out.startswith("one\n\ttwo a")


def test_json_stays_json_and_harmless(capsys: pytest.CaptureFixture[str]):
    Console(as_json=True).result({"name": HOSTILE})
    out = capsys.readouterr().out
    assert not set(out) & set("\x1b\x07\x9b\u202e\x7f\r\x00")
    assert json.loads(out) == {"name": HOSTILE}


def test_other_text_is_shown_as_it_is():
    text = "Müller – 3 % · ≤ 5\u202f000 日本 🙂"
    assert harmless(text) == text


def test_a_missing_package_is_named_once():
    whole = "pip install 'fewlabel[cli]' installs all that the commands need."
    assert explained(ImportError("No module named 'rich'")) == ("No module named 'rich'", whole)
    message = "Reading Parquet needs dask: pip install 'fewlabel[scale]'."
    assert explained(ImportError(message)) == (message, "")


def test_the_page_names_the_extra_of_each_of_its_packages(monkeypatch: pytest.MonkeyPatch):
    from fewlabel._core.errors import UserError
    from fewlabel.cli.label import serve

    pytest.importorskip("uvicorn")
    monkeypatch.setitem(sys.modules, "starlette", None)
    nothing: Any = None
    with pytest.raises(UserError, match=r"the package 'starlette'.*fewlabel\[label\]"):
        serve(nothing, nothing)
