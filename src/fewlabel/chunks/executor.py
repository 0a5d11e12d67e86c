"""Who runs the steps of self-learning over all chunks, and keeps what they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from fewlabel.chunks import steps
from fewlabel.chunks.source import check_markers

Step = Callable[..., tuple[dict[str, Any], Any]]
Merge = Callable[[Sequence[Any]], Any]


class Executor(Protocol):
    """Runs steps here or elsewhere."""

    def run(
        self,
        step: Step,
        merge: Merge,
        uses: tuple[str, ...],
        makes: tuple[str, ...] = (),
        *,
        each: dict[str, Sequence[Any]] | None = None,
        keep: bool = False,
        **arguments: Any,
    ) -> Any:
        """Run a step on every chunk, keep the pieces it makes, return the merged summaries.

        ``uses`` and ``makes`` name the pieces of a chunk that go into the step and come out of it.
        ``each`` holds arguments that differ from chunk to chunk. With ``keep`` the result stays
        where it was made and a handle to it is returned, which later steps take as an argument.
        """
        ...

    def call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Handle to the result of one function of values and handles."""
        ...

    def fetch(self, handle: Any) -> Any:
        """The value behind a handle."""
        ...


class MemoryExecutor:
    """Rows in memory are one chunk.

    Parameters
    ----------
    X : RowView
        The unlabelled rows.
    **pieces : arrays
        What is known of them from the start: ``proba``, ``weight``.
    """

    def __init__(self, X: Any, **pieces: Any) -> None:
        self.chunk: dict[str, Any] = {"X": X, "position": 0, "n_read": len(X), "markers": []}
        self.chunk |= {name: piece for name, piece in pieces.items() if piece is not None}

    def run(
        self,
        step: Step,
        merge: Merge,
        uses: tuple[str, ...],
        makes: tuple[str, ...] = (),
        *,
        each: dict[str, Sequence[Any]] | None = None,
        keep: bool = False,
        **arguments: Any,
    ) -> Any:
        """See :class:`Executor`."""
        own = {name: values[0] for name, values in (each or {}).items()}
        made, summary = step(self.chunk, **arguments, **own)
        self.chunk |= {name: made[name] for name in makes}
        return merge([summary])

    def call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """See :class:`Executor`."""
        return function(*arguments, **named)

    def fetch(self, handle: Any) -> Any:
        """See :class:`Executor`."""
        return handle


def same(value: Any) -> Any:
    """As a function to ``call``: put a value where the steps run."""
    return value


def total(counts: Sequence[int]) -> int:
    """Merge counts."""
    return sum(counts)


def join(parts: Sequence[dict[int, Any]]) -> dict[int, Any]:
    """Merge what is told apart by the position of the chunk."""
    return {position: value for part in parts for position, value in part.items()}


def first_look(executor: Executor, missing_label: Any) -> list[steps.FirstLook]:
    """Look at every chunk once, in order; raise if their marks of unlabelled rows disagree."""
    looks: dict[int, steps.FirstLook] = executor.run(steps.begin, join, ("X",), ("marks",))
    check_markers([mark for look in looks.values() for mark in look.markers], missing_label)
    return [looks[position] for position in range(len(looks))]
