"""What reaches the terminal: text that it shows and does not obey."""

from __future__ import annotations

import json

import pytest

from fewlabel.cli.console import Console, harmless

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
