"""Who gets in: whoever has the token that the command printed, from the page itself.

A page on this machine can be reached by every website that a person visits at the same time: by
requests from its scripts and forms, or by a name that it lets point to 127.0.0.1 (DNS rebinding).
Each of the checks here closes one of these ways.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

COOKIE = "fewlabel"
HEADER = "x-fewlabel"
MOST_BYTES = 64 * 1024
"""Of a request's body."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


@dataclass(frozen=True)
class Entry:
    """What opens the page.

    Attributes
    ----------
    hosts : frozenset of str
        Values of the Host header that are answered, with the port.
    password : str
        Asked for besides the token where others can reach the page; empty for none.
    secure : bool
        Whether the page is served by TLS.
    token, cookie : str
        The token of the address, and what the cookie holds once it was shown.
    """

    hosts: frozenset[str]
    password: str = ""
    secure: bool = False
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    @property
    def origins(self) -> frozenset[str]:
        """Values of the Origin header that are answered."""
        scheme = "https" if self.secure else "http"
        return frozenset(f"{scheme}://{host}" for host in self.hosts)


class Guard:
    """ASGI middleware that answers 403 to everything that does not come from the page.

    Parameters
    ----------
    app : ASGI application
    entry : Entry
    """

    def __init__(self, app: Any, entry: Entry) -> None:
        self.app, self.entry = app, entry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1")
                   for name, value in scope["headers"]}  # fmt: skip
        if not self._asked_from_here(scope, headers):
            await _plain(send, 403, "This request does not come from the page.")
        elif not self._has_password(headers):
            await _plain(
                send, 401, "Password needed.", {"www-authenticate": 'Basic realm="fewlabel"'}
            )
        elif scope["path"] == "/" and "token=" in scope["query_string"].decode("latin-1"):
            await self._enter(scope, send)
        elif not self._has_cookie(headers):
            await _plain(
                send, 403, "Open the address that `fewlabel label` printed, with its token."
            )
        elif not _is_short(headers):
            await _plain(send, 413, f"A request has at most {MOST_BYTES} bytes.")
        else:
            await self.app(scope, _limited(receive), _with_headers(send))

    def _asked_from_here(self, scope: Scope, headers: dict[str, str]) -> bool:
        if headers.get("host", "").lower() not in self.entry.hosts:
            return False
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in self.entry.origins:
            return False
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return False
        if scope["method"] in ("GET", "HEAD"):
            return True
        # A form of another site can send neither this header nor JSON without asking first.
        is_json = headers.get("content-type", "").partition(";")[0].strip() == "application/json"
        return origin is not None and headers.get(HEADER) == "1" and is_json

    def _has_password(self, headers: dict[str, str]) -> bool:
        if not self.entry.password:
            return True
        kind, _, code = headers.get("authorization", "").partition(" ")
        try:
            given = base64.b64decode(code, validate=True).decode().partition(":")[2]
        except ValueError:
            return False
        return kind.lower() == "basic" and _same(given, self.entry.password)

    def _has_cookie(self, headers: dict[str, str]) -> bool:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return found is not None and _same(found.value, self.entry.cookie)

    async def _enter(self, scope: Scope, send: Send) -> None:
        """Trade the token for a cookie, and take it out of the address."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if not _same(given, self.entry.token):
            await _plain(send, 403, "This is not the token that `fewlabel label` printed.")
            return
        secure = "; Secure" if self.entry.secure else ""
        cookie = f"{COOKIE}={self.entry.cookie}; HttpOnly; SameSite=Strict; Path=/{secure}"
        await _plain(send, 303, "", {"location": "/", "set-cookie": cookie})


def _same(given: str, right: str) -> bool:
    return hmac.compare_digest(given.encode(), right.encode())


def _is_short(headers: dict[str, str]) -> bool:
    length = headers.get("content-length", "0")
    return length.isdecimal() and len(length) < 10 and int(length) <= MOST_BYTES


def _limited(receive: Receive) -> Receive:
    """A body without a length is cut off, too."""
    left = MOST_BYTES

    async def limited() -> MutableMapping[str, Any]:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        return message if left >= 0 else {"type": "http.disconnect"}

    return limited


def _with_headers(send: Send) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *_encoded(_HEADERS.items())]
        await send(message)

    return sending


def _encoded(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode("latin-1")) for name, value in headers]


async def _plain(send: Send, status: int, text: str, more: dict[str, str] | None = None) -> None:
    headers = {**_HEADERS, "content-type": "text/plain; charset=utf-8", **(more or {})}
    start = {"type": "http.response.start", "status": status, "headers": _encoded(headers.items())}
    await send(start)
    await send({"type": "http.response.body", "body": f"{text}\n".encode()})
