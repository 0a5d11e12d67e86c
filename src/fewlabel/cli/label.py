"""``fewlabel label``: a page on this machine that asks for the rows that teach most."""

from __future__ import annotations

import getpass
import os
import socket
import sys
import tempfile
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fewlabel._core.atomic import lock
from fewlabel._core.errors import UserError, listing, shorten
from fewlabel.cli.console import Console
from fewlabel.cli.label_answers import export_answers, import_answers
from fewlabel.cli.label_job import TableJob
from fewlabel.cli.labelled_table import row_list
from fewlabel.cli.table_columns import earlier_output
from fewlabel.labeling.cards import Cards
from fewlabel.labeling.row_identity import Reattached, reattach, row_digests
from fewlabel.labeling.session import LabelingSession
from fewlabel.labeling.store import AnswerStore
from fewlabel.tables.reading import STANDARD, read_table
from fewlabel.tables.target_column import check_not_regression, fold_labels, target_labels

if TYPE_CHECKING:
    import pyarrow as pa

    from fewlabel.labeling.guard import Entry

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True)
class LabelOptions:
    """See ``fewlabel label --help``."""

    target: str
    goal: float = 0.05
    classes: tuple[str, ...] = ()
    given_random: bool = False
    port: int = 0
    host: str | None = None
    password_file: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    open_browser: bool = True
    store: Path | None = None
    export: Path | None = None
    import_: Path | None = None
    drop: tuple[str, ...] = ()
    unlabeled: str | None = None
    jobs: int | None = None
    encoding: str = "utf-8"
    force: bool = False


@dataclass(frozen=True)
class OpenedTable:
    """A table with its answers."""

    path: Path
    table: pa.Table
    given: NDArray[Any]
    digests: list[str]
    store: AnswerStore
    found: Reattached


def label_command(console: Console, path: Path, options: LabelOptions) -> None:
    """Serve the page, or export or import answers."""
    if path == STANDARD:
        raise UserError("A table from standard input cannot be labelled.", "Name a file.")
    _check_host(options)
    console.progress(f"reading {path.name}")
    opened = open_table(path, options)
    console.done()
    try:
        for note in notes_of(opened.found):
            _tell(note["text"], note["items"])
        if options.import_ is not None:
            n = import_answers(options.import_, opened.store, opened.digests)
            console.say(f"{n:,} answer{'' if n == 1 else 's'} imported.")
        if options.export is not None:
            n = export_answers(options.export, opened.store, options.force)
            console.say(f"{n:,} answer{'' if n == 1 else 's'} exported.")
        if options.import_ is None and options.export is None:
            serve(opened, options)
    finally:
        opened.store.close()


def open_table(path: Path, options: LabelOptions) -> OpenedTable:
    """Read a table and find the rows of earlier answers in it."""
    table = read_table(path, encoding=options.encoding)
    table, given = _given_labels(table, options)
    store = AnswerStore(options.store or path.with_name(f"{path.name}.answers.sqlite"))
    _lock_store(store.path)
    hidden = {options.target, *earlier_output(table.column_names, options.target)}
    columns = store.meta("columns")
    if columns is None:
        columns = [name for name in table.column_names if name not in hidden]
        store.set_meta("columns", columns)
        store.set_meta("target", options.target)
    if store.meta("target") != options.target:
        raise UserError(
            f"'{shorten(store.path)}' holds answers about '{shorten(store.meta('target'))}'.",
            "Name another file for the answers with --store.",
        )
    # Columns that were added do not matter; without one of the old ones no row is what it was.
    known = [name for name in columns if name in table.column_names]
    digests = row_digests(table, known)
    found = reattach(store.answers(), digests)
    if found.places:
        store.move(found.places)
    return OpenedTable(path, table, given, digests, store, found)


def _given_labels(table: pa.Table, options: LabelOptions) -> tuple[pa.Table, NDArray[Any]]:
    import pyarrow as pa

    if options.target in table.column_names:
        labels = target_labels(table.column(options.target), options.unlabeled)
        check_not_regression(labels, options.target)
        return table, fold_labels(labels, options.target, None)[0]
    if not options.classes:
        raise UserError(
            f"There is no column '{shorten(options.target)}'; the table has "
            f"{listing(table.column_names)}.",
            "Check --target. For a new column name its classes: --class NAME --class OTHER.",
        )
    none = pa.nulls(table.num_rows, pa.string())
    return table.append_column(options.target, none), np.full(table.num_rows, None, dtype=object)


def _lock_store(path: Path) -> None:
    """One process for one file: the next takes over when this one has ended, however it ended."""
    # Stays open, and so locked, until the process ends.
    file = os.open(path.with_name(f"{path.name}.lock"), os.O_CREAT | os.O_RDWR, 0o600)
    if os.name == "posix" and not lock(file):
        os.close(file)
        raise UserError(
            f"Another `fewlabel label` is using '{shorten(path)}'.",
            "Open its address: several tabs and people can label together. Or end it first.",
        )


def notes_of(found: Reattached) -> list[dict[str, Any]]:
    """What to tell about a table that was changed since rows of it were answered."""
    notes = []
    if found.moved:
        n = len(found.moved)
        notes.append(
            {
                "text": f"The table was changed: {n:,} answered row{'' if n == 1 else 's'} "
                f"stand{'s' if n == 1 else ''} elsewhere now, and kept the answer.",
                "items": [],
            }
        )
    if found.lost:
        rows = [(answer.position or 0) + 1 for answer in found.lost]
        items = [
            f"row {row:,}: {shorten(answer.label or answer.kind)}"
            for row, answer in zip(rows, found.lost[:50])
        ]
        notes.append(
            {
                "text": f"The table was changed: it no longer has {row_list(rows)}. Their answers "
                f"are kept in the file, and not used.",
                "items": items,
            }
        )
    return notes


def _tell(text: str, items: list[str]) -> None:
    sys.stderr.write("\n".join([f"! {text}", *(f"    {item}" for item in items)]) + "\n")


# --- the page ----------------------------------------------------------------------------------


_QUIET: dict[str, Any] = {
    "log_level": "warning",
    "access_log": False,
    "server_header": False,
    "timeout_graceful_shutdown": 1,
}
"""Of the server."""


def serve(opened: OpenedTable, options: LabelOptions) -> None:
    """Serve the page until the program is ended."""
    try:
        import_module("starlette")  # which the page imports when it is served
        import uvicorn

        from fewlabel.labeling.app import LabelApp, starlette_app
    except ImportError as error:
        raise UserError(
            f"The page needs the package '{error.name}'.", "pip install 'fewlabel[label]'"
        ) from None
    from fewlabel.labeling.process import LearningProcess

    folder = tempfile.TemporaryDirectory(prefix="fewlabel-")

    def wake() -> None:
        learning.wake()

    session = session_of(opened, options, wake, folder.name)
    learning = LearningProcess(
        table_job(opened, options),
        session.next_task,
        session.take_learned,
        session.take_files,
        session.take_trouble,
    )
    listening = _listening(options)
    entry = entry_of(listening, options)
    with folder:
        parts = cards_of(opened, options), title_of(opened, options), Path(folder.name)
        tls: dict[str, Any] = {"ssl_certfile": options.certificate, "ssl_keyfile": options.key}
        app = starlette_app(LabelApp(session, *parts), entry)
        config = uvicorn.Config(app, **_QUIET, **tls)
        learning.start()
        announce(entry, listening, options)
        try:
            uvicorn.Server(config).run(sockets=[listening])
        except KeyboardInterrupt:
            _tell("Every answer is stored; the same command goes on where you were.", [])
        finally:
            learning.stop()


def session_of(
    opened: OpenedTable, options: LabelOptions, on_change: Callable[[], object], folder: str
) -> LabelingSession:
    """The session of a table and its answers."""
    return LabelingSession(
        opened.store,
        opened.digests,
        opened.given,
        options.classes,
        goal=options.goal,
        given_random=options.given_random,
        on_change=on_change,
        folder=folder,
    )


def cards_of(opened: OpenedTable, options: LabelOptions) -> Cards:
    """The rows as the page shows them."""
    hidden = {options.target, *earlier_output(opened.table.column_names, options.target)}
    return Cards(opened.table, hidden, opened.path.parent)


def title_of(opened: OpenedTable, options: LabelOptions) -> dict[str, Any]:
    """What the page says of the table."""
    return {
        "table": opened.path.name,
        "target": options.target,
        "notes": notes_of(opened.found),
        "who": _user(),
    }


def table_job(opened: OpenedTable, options: LabelOptions) -> TableJob:
    """What the learning process needs."""
    cores = options.jobs or max(1, (os.cpu_count() or 2) - 1)  # the page keeps one
    fit = {
        "target": options.target,
        "drop": options.drop,
        "accept_error": options.goal,
        "jobs": cores,
    }
    labeled = np.array([label is not None for label in opened.given])
    return TableJob(opened.table, opened.path.name, fit, labeled, cores)


def _check_host(options: LabelOptions) -> None:
    if (options.certificate is None) != (options.key is None):
        raise UserError("--certificate and --key belong together.", "Name both.")
    if options.host is None:
        return
    if options.password_file is None and options.certificate is None:
        raise UserError(
            "--host lets other machines reach the page, and your table with it.",
            "Add --password-file FILE, or --certificate FILE and --key FILE for an encrypted page. "
            "Without a certificate everything, the password too, travels in the clear.",
        )


def _listening(options: LabelOptions) -> socket.socket:
    host = options.host or LOOPBACK[0]
    found = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, options.port))
        found.listen(128)
    except OSError as error:
        found.close()
        raise UserError(
            f"The page cannot use port {options.port} of '{shorten(host)}' ({error.strerror}).",
            "Choose another --port, or leave it out for a free one.",
        ) from error
    return found


def entry_of(listening: socket.socket, options: LabelOptions) -> Entry:
    """Names by which the page may be asked for, and the password."""
    from fewlabel.labeling.guard import Entry

    port = listening.getsockname()[1]
    names = set(LOOPBACK)
    if options.host is not None:
        own = socket.gethostname()
        names |= {options.host.lower(), own.lower(), socket.getfqdn().lower()}
        with suppress(OSError):
            names |= {str(info[4][0]) for info in socket.getaddrinfo(own, None, socket.AF_INET)}
    password = ""
    if options.password_file is not None:
        try:
            password = options.password_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(
                f"'{shorten(options.password_file)}' cannot be read.", "Check --password-file."
            ) from error
        if len(password) < 8:
            raise UserError("The password has fewer than 8 characters.", "Choose a longer one.")
    hosts = frozenset(f"{name}:{port}" for name in names)
    return Entry(hosts, password=password, secure=options.certificate is not None)


def announce(entry: Entry, listening: socket.socket, options: LabelOptions) -> None:
    """The address, on the first line of standard output; open it."""
    host = options.host or LOOPBACK[0]
    if host in ("0.0.0.0", "::"):  # every address of this machine
        host = socket.gethostname()
    scheme = "https" if entry.secure else "http"
    address = f"{scheme}://{host}:{listening.getsockname()[1]}/?token={entry.token}"
    sys.stdout.write(f"{address}\n")
    sys.stdout.flush()
    if options.host is not None and not entry.secure:
        _tell("Other machines can reach this page, and it is not encrypted.", [])
    _tell("Every answer is stored at once; Ctrl+C ends the program.", [])
    if options.open_browser:
        webbrowser.open(address)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""
