"""Requests to an ASGI application without a server."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx


class AsgiClient:
    """A client that keeps cookies and follows no redirections.

    Parameters
    ----------
    app : ASGI application
    base_url : str
    """

    def __init__(self, app: Any, base_url: str) -> None:
        transport = httpx.ASGITransport(app=app)
        self.client = httpx.AsyncClient(transport=transport, base_url=base_url, trust_env=False)

    def request(self, *args: Any, **options: Any) -> httpx.Response:
        return asyncio.run(self.client.request(*args, **options))

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.request("POST", path, **options)
