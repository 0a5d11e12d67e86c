"""The page's server: a few requests, each a thin layer over the session."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewlabel._core.errors import UserError
from fewlabel.labeling.cards import Cards
from fewlabel.labeling.guard import Entry, Guard
from fewlabel.labeling.progress import state
from fewlabel.labeling.session import LabelingSession, Refused
from fewlabel.labeling.store import KINDS

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

PAGE = Path(__file__).parent / "page"
_FILES = {
    "/": ("index.html", "text/html"),
    "/style.css": ("style.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
    "/view.js": ("view.js", "text/javascript"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
_TYPES = {
    ".html": "text/html",
    ".skops": "application/octet-stream",
    ".json": "application/json",
}


class LabelApp:
    """What the page asks for.

    Parameters
    ----------
    session : LabelingSession
    cards : Cards
    title : dict
        ``table`` and ``target``, ``notes`` to show, and the ``who`` that is proposed.
    folder : Path
        Where files to download are written.
    """

    def __init__(
        self, session: LabelingSession, cards: Cards, title: dict[str, Any], folder: Path
    ) -> None:
        self.session, self.cards, self.title, self.folder = session, cards, title, folder

    # --- requests of the page, each with what it sent --------------------------------------------

    def start(self, sent: dict[str, Any]) -> dict[str, Any]:
        """What the page needs once."""
        return self.title

    def next(self, sent: dict[str, Any]) -> dict[str, Any]:
        """The row to show."""
        return self._card(self.session.next_row(_tab(sent)))

    def look(self, sent: dict[str, Any]) -> dict[str, Any]:
        """A row that has an answer, for a second look."""
        return self._card(self.session.show_again(_tab(sent), self._row(sent)))

    def answer(self, sent: dict[str, Any]) -> dict[str, Any]:
        """Store an answer; what the model believes, if that is to be shown afterwards."""
        kind: Any = sent.get("kind")
        if kind not in KINDS:
            raise Refused(f"An answer is one of {', '.join(KINDS)}.")
        stored = self.session.answer(
            _tab(sent),
            self._row(sent),
            kind,
            _words(sent, "label") if kind == "label" else None,
            who=_words(sent, "who"),
            comment=_words(sent, "comment"),
        )
        belief = self.session.reveal(stored) if sent.get("reveal") else None
        return {"stored": stored.id, "label": stored.label, "belief": _belief(belief)}

    def undo(self, sent: dict[str, Any]) -> dict[str, Any]:
        """Take back the last answer and show its row again."""
        undone = self.session.undo(_tab(sent), _words(sent, "who"))
        if undone is None or undone.position is None:
            return {"undone": None}
        shown = self._card((undone.position, undone.why))
        return {"undone": {"label": undone.label, "comment": undone.comment}, **shown}

    def belief(self, sent: dict[str, Any]) -> dict[str, Any]:
        """What the model believes of the row that is shown."""
        return {"belief": _belief(self.session.belief(_tab(sent), self._row(sent)))}

    def add_class(self, sent: dict[str, Any]) -> dict[str, Any]:
        """Add a class."""
        return {"name": self.session.add_class(_words(sent, "name"))}

    def start_check(self, sent: dict[str, Any]) -> dict[str, Any]:
        """Freeze the labels and draw rows to check."""
        return {"rows": len(self.session.start_check().rows)}

    def end_check(self, sent: dict[str, Any]) -> dict[str, Any]:
        """Go back to labelling."""
        self.session.end_check()
        return {}

    def write(self, sent: dict[str, Any]) -> dict[str, Any]:
        """Have table, model and report written."""
        self.session.ask_for_files()
        return {}

    def _row(self, sent: dict[str, Any]) -> int:
        row = sent.get("row")
        if isinstance(row, bool) or not isinstance(row, int):
            raise Refused("A row is a whole number.")
        if not 0 <= row < len(self.session.digests):
            raise Refused("There is no such row.")
        return row

    def _card(self, found: tuple[int, str] | None) -> dict[str, Any]:
        if found is None:
            return {"card": None}
        row, why = found
        answers = self.session.book.by_row.get(row, []) if why == "second look" else []
        said = [{"label": a.label, "who": a.who, "comment": a.comment} for a in answers]
        return {"card": {**self.cards.card(row), "why": why, "said": said}}


def _tab(sent: dict[str, Any]) -> str:
    tab = sent.get("tab")
    if not isinstance(tab, str) or not 8 <= len(tab) <= 64 or not tab.isalnum():
        raise Refused("The page did not say which tab it is.", "Load it again.")
    return tab


def _words(sent: dict[str, Any], name: str) -> str:
    value = sent.get(name, "")
    if not isinstance(value, str):
        raise Refused(f"'{name}' is a text.")
    return value.encode("utf-8", "replace").decode()  # halves of characters cannot be stored


def _belief(found: tuple[str, float] | None) -> dict[str, Any] | None:
    return None if found is None else {"label": found[0], "chance": round(found[1], 4)}


# --- http ----------------------------------------------------------------------------------------


def starlette_app(app: LabelApp, entry: Entry) -> Any:
    """The ASGI application, behind its guard."""
    from starlette.applications import Starlette
    from starlette.routing import Route

    posts = ["start", "next", "look", "answer", "undo", "belief", "add_class"]
    posts += ["start_check", "end_check", "write"]
    routes = [Route(path, _file(*named)) for path, named in _FILES.items()]
    routes += [Route(f"/api/{name}", _post(getattr(app, name)), methods=["POST"]) for name in posts]
    routes += [
        Route("/api/state", _state(app)),
        Route("/picture/{row:int}/{column:int}", _picture(app)),
        Route("/download/{name}", _download(app)),
    ]
    return Guard(Starlette(routes=routes), entry)


def _file(name: str, kind: str) -> Callable[[Request], Response]:
    def send(request: Request) -> Response:
        from starlette.responses import FileResponse

        return FileResponse(PAGE / name, media_type=kind)

    return send


def _post(action: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    async def handle(request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import JSONResponse

        try:
            sent = json.loads(await request.body())
            if not isinstance(sent, dict):
                raise Refused("A request is an object.")
            # In a thread: SQLite waits for the disk, and others must not.
            return JSONResponse(await run_in_threadpool(action, sent))
        except UserError as error:
            told = {"error": error.message, "remedy": error.remedy}
            return JSONResponse(told, status_code=409)
        except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
            return JSONResponse({"error": "A request is JSON.", "remedy": ""}, status_code=400)

    return handle


def _state(app: LabelApp) -> Callable[[Request], Response]:
    def send(request: Request) -> Response:
        from starlette.responses import JSONResponse

        return JSONResponse(state(app.session))

    return send


def _picture(app: LabelApp) -> Callable[[Request], Response]:
    def send(request: Request) -> Response:
        from starlette.responses import Response

        found = app.cards.cell_picture(request.path_params["row"], request.path_params["column"])
        if found is None:
            return Response(status_code=404)
        return Response(found[0], media_type=found[1])

    return send


def _download(app: LabelApp) -> Callable[[Request], Response]:
    def send(request: Request) -> Response:
        from starlette.responses import FileResponse, Response

        name = request.path_params["name"]
        if name not in app.session.files:  # nothing but what was written
            return Response(status_code=404)
        kind = _TYPES.get(Path(name).suffix, "application/octet-stream")
        return FileResponse(app.folder / name, filename=name, media_type=kind)

    return send
