"""The page's server: who gets in, what it says, what it refuses."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx")

import pyarrow as pa

from fewlabel.labeling.app import LabelApp, starlette_app
from fewlabel.labeling.cards import Cards
from fewlabel.labeling.guard import MOST_BYTES, Entry
from fewlabel.labeling.session import LabelingSession
from fewlabel.labeling.store import AnswerStore
from support.asgi import AsgiClient

HOST = "127.0.0.1:8000"
ORIGIN = f"http://{HOST}"
HEADERS = {"origin": ORIGIN, "x-fewlabel": "1"}
TAB = "abcdef0123456789"
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def app(tmp_path):
    (tmp_path / "secret.png").write_bytes(PIXEL)
    folder = tmp_path / "data"
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "one.png").write_bytes(PIXEL)
    (folder / "page.svg").write_text("<svg onload='alert(1)'/>")
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "notes.txt").write_text("secret")
    table = pa.table(
        {
            "picture": ["in/one.png", "../secret.png", "link.png", "page.svg", "notes.txt",
                        str(tmp_path / "secret.png"), "in/../../secret.png", "\x00.png"],
            "text": ["<script>alert(1)</script>", "https://example.org", None, "x" * 30_000] * 2,
            "y": [None] * 8,
        }
    )  # fmt: skip
    store = AnswerStore(tmp_path / "answers.sqlite")
    given = np.full(8, None, dtype=object)
    session = LabelingSession(store, [str(i) for i in range(8)], given, ["a", "b"])
    title = {"table": "t.csv", "target": "y", "notes": [], "who": "me"}
    return LabelApp(session, Cards(table, {"y"}, folder), title, tmp_path)


@pytest.fixture
def client(app):
    entry = Entry(frozenset({HOST}))
    client = AsgiClient(starlette_app(app, entry), ORIGIN)
    client.entry, client.app_of = entry, app
    return client


@pytest.fixture
def inside(client):
    client.get(f"/?token={client.entry.token}")
    return client


def post(client, what, headers=HEADERS, **sent):
    return client.post(f"/api/{what}", json={"tab": TAB, **sent}, headers=headers)


def test_the_token_becomes_a_cookie(client):
    assert client.get("/").status_code == 403
    assert client.get("/?token=guess").status_code == 403
    answer = client.get(f"/?token={client.entry.token}")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/"  # the token leaves the address
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert client.entry.token not in cookie
    assert client.get("/").status_code == 200


def test_nothing_is_served_without_the_token(client):
    for path in ("/", "/page.js", "/api/state", "/picture/0/0", "/download/x", "/nothing"):
        assert client.get(path).status_code == 403
    assert post(client, "next").status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example:8000"},
        {"host": "127.0.0.1"},
        {"host": "localhost.evil.example:8000"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_others_are_refused(inside, headers):
    assert inside.get("/api/state", headers=headers).status_code == 403
    assert post(inside, "next", HEADERS | headers).status_code == 403


def test_forms_of_other_sites_are_refused(inside):
    """What a form can send: no header of ours, no JSON; what a script may send without asking."""
    for headers in ({}, {"origin": ORIGIN}, {"x-fewlabel": "1"}):
        assert post(inside, "next", headers).status_code == 403
    plain = HEADERS | {"content-type": "text/plain"}
    sent = inside.post("/api/next", content='{"tab": "abcdef0123456789"}', headers=plain)
    assert sent.status_code == 403
    assert post(inside, "next").status_code == 200
    assert inside.get("/api/next").status_code == 405


def test_a_password_where_others_can_reach_it(app):
    entry = Entry(frozenset({HOST}), password="correct horse")
    client = AsgiClient(starlette_app(app, entry), ORIGIN)
    address = f"/?token={entry.token}"
    assert client.get(address).status_code == 401
    assert client.get(address, auth=("x", "wrong")).status_code == 401
    assert client.get(address, headers={"authorization": "Basic ?"}).status_code == 401
    assert client.get(address, auth=("x", "correct horse")).status_code == 303
    assert client.get("/", auth=("x", "correct horse")).status_code == 200
    assert client.get("/").status_code == 401


def test_cookies_are_for_tls_only_where_there_is_tls(app):
    entry = Entry(frozenset({HOST}), secure=True)
    client = AsgiClient(starlette_app(app, entry), f"https://{HOST}")
    assert "; Secure" in client.get(f"/?token={entry.token}").headers["set-cookie"]
    assert client.get("/", headers={"origin": ORIGIN}).status_code == 403  # http is another origin


@pytest.mark.parametrize("path", ["/", "/page.js", "/api/state", "/picture/0/0", "/nothing"])
def test_every_answer_has_the_policy(inside, path):
    headers = inside.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


def test_the_page_asks_nobody_else(inside):
    for path in ("/", "/style.css", "/page.js", "/view.js"):
        text = inside.get(path).text
        assert "//" not in text.replace("http://www.w3.org/2000/svg", "").replace("// ", "")
        assert "innerHTML" not in text


def test_long_requests_are_refused(inside):
    assert post(inside, "answer", comment="x" * MOST_BYTES).status_code == 413
    headers = HEADERS | {"content-type": "application/json", "content-length": "9" * 30}
    assert inside.post("/api/next", content="{}", headers=headers).status_code == 413


@pytest.mark.parametrize("content", ["", "[]", "{", "3", '{"tab": 3}', '{"tab": "a/../b/c/d"}'])
def test_requests_that_make_no_sense(inside, content):
    headers = HEADERS | {"content-type": "application/json"}
    answer = inside.post("/api/next", content=content, headers=headers)
    assert answer.status_code in (400, 409)
    assert answer.json()["error"]


@pytest.mark.parametrize(
    "sent",
    [
        {"row": 99, "kind": "label", "label": "a"},
        {"row": -1, "kind": "label", "label": "a"},
        {"row": True, "kind": "label", "label": "a"},
        {"row": "0", "kind": "label", "label": "a"},
        {"kind": "label", "label": ""},
        {"kind": "label", "label": 3},
        {"kind": "maybe"},
    ],
)
def test_answers_that_make_no_sense(inside, sent):
    card = post(inside, "next").json()["card"]
    assert post(inside, "answer", **({"row": card["row"]} | sent)).status_code == 409
    assert inside.app_of.session.book.answers == []


def test_an_answer_is_stored_before_it_is_acknowledged(inside):
    card = post(inside, "next").json()["card"]
    sent = {"tab": TAB, "row": card["row"], "kind": "label", "label": "b", "who": "Ann"}
    content = json.dumps(sent | {"comment": "half a character: \ud800"})
    headers = HEADERS | {"content-type": "application/json"}
    told = inside.post("/api/answer", content=content, headers=headers).json()
    again = AnswerStore(inside.app_of.session.store.path).answers()
    assert [(a.id, a.label, a.who) for a in again] == [(told["stored"], "b", "Ann")]
    told = inside.get("/api/state").json()
    assert (told["labels"], told["random"], told["phase"]) == (1, 1, "label")
    undone = post(inside, "undo").json()
    assert undone["card"]["row"] == card["row"]
    assert post(inside, "undo").json() == {"undone": None}


def test_cells_are_texts(inside):
    cards = inside.app_of.cards
    first = cards.card(0)
    assert first["cells"][1] == {"name": "text", "text": "<script>alert(1)</script>"}
    assert cards.card(2)["cells"][1]["text"] == ""
    assert cards.card(3)["cells"][1]["cut"] == 10_000
    assert [name["name"] for name in first["cells"]] == ["picture", "text"]


def test_pictures_inside_the_folder_only(inside):
    answer = inside.get("/picture/0/0")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png")
    assert answer.content == PIXEL
    for row in range(1, 8):
        assert inside.get(f"/picture/{row}/0").status_code == 404
    for path in ("/picture/0/1", "/picture/99/0", "/picture/0/99", "/picture/-1/0", "/picture/x/0"):
        assert inside.get(path).status_code == 404
    assert "picture" in inside.app_of.cards.card(0)["cells"][0]
    assert "picture" not in inside.app_of.cards.card(1)["cells"][0]


def test_downloads_are_what_was_written_only(inside, tmp_path):
    (tmp_path / "t-labelled.csv").write_text("a,b\n")
    assert inside.get("/download/t-labelled.csv").status_code == 404
    inside.app_of.session.take_files(["t-labelled.csv"])
    answer = inside.get("/download/t-labelled.csv")
    assert answer.text == "a,b\n"
    assert "attachment" in answer.headers["content-disposition"]
    for name in ("..%2Fsecret.png", "answers.sqlite", "..%5Csecret.png"):
        assert inside.get(f"/download/{name}").status_code == 404
    assert post(inside, "write").status_code == 409  # nothing is learned yet
