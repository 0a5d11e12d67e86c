"""Tables to try the command line on, and ways to run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

COMMAND = [sys.executable, "-m", "fewlabel"]


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


class Runner:
    """The command in real processes; see ``fork_server``."""

    def __init__(self) -> None:
        self.server = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("fork_server.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, cwd: Path, *args: object, stdin: str = "") -> Answer:
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        case = {"cwd": str(cwd), "args": [str(arg) for arg in args], "stdin": stdin}
        self.server.stdin.write(json.dumps(case) + "\n")
        self.server.stdin.flush()
        return Answer(**json.loads(self.server.stdout.readline()))

    def close(self) -> None:
        self.server.communicate(timeout=30)


def columns(n: int = 60, n_labeled: int = 14, seed: int = 0) -> dict[str, list[Any]]:
    """Columns of a small table that a forest can learn: two kinds of rows."""
    rng = np.random.default_rng(seed)
    kind = np.arange(n) % 2
    return {
        "size": np.round(rng.normal(3 * kind, 1), 3).tolist(),
        "weight": np.round(rng.normal(-2 * kind, 1), 3).tolist(),
        "colour": [["red", "green", "blue"][i] for i in rng.integers(0, 3, n)],
        "segment": [("small", "large")[k] if i < n_labeled else "" for i, k in enumerate(kind)],
    }


def csv_text(table: dict[str, list[Any]], separator: str = ",") -> str:
    lines = [separator.join(table)]
    lines += [separator.join(map(str, row)) for row in zip(*table.values())]
    return "\n".join(lines) + "\n"


def write_table(folder: Path, name: str = "table.csv", **changes: Any) -> Path:
    """A good table, with columns replaced or added."""
    path = folder / name
    path.write_text(csv_text({**columns(), **changes}))
    return path


def environment() -> dict[str, str]:
    source = str(Path(__file__).parents[2] / "src")
    return {**os.environ, "PYTHONPATH": source, "PYTHONUNBUFFERED": "1"}
