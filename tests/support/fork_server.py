"""Run the ``fewlabel`` command in processes of its own, without importing everything each time.

Reads one JSON object a line, ``{"args": [...], "cwd": "..."}``, forks, runs the command's entry
point in the child with stdout and stderr in files, and answers with the exit status. What a test
sees is what a shell would see; only the imports are shared.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any


def load() -> None:
    """Import what commands import when they need it, so that no child has to do it again."""
    rooms = ("app", "audit", "commands", "label", "piece_commands")
    for name in (*(f"cli.{room}" for room in rooms), "report.html"):
        importlib.import_module(f"fewlabel.{name}")
    for name in ("pyarrow.parquet", "skops.io", "sklearn.ensemble", "sklearn.svm"):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a collection in a child would copy every page that it looks at


def run(case: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        out, err, given = (Path(folder, name) for name in ("out", "err", "in"))
        given.write_text(case.get("stdin", ""))
        child = os.fork()
        if child == 0:
            os.dup2(os.open(given, os.O_RDONLY), 0)
            sys.stdin = os.fdopen(0, closefd=False)
            become_command(case, out, err)
        _, status = os.waitpid(child, 0)
        return {
            "code": os.waitstatus_to_exitcode(status),
            "out": out.read_text(errors="replace"),
            "err": err.read_text(errors="replace"),
        }


def become_command(case: dict[str, Any], out: Path, err: Path) -> None:
    from fewlabel.cli.app import main

    code: Any = 70
    try:
        os.chdir(case["cwd"])
        for number, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
        # Whoever forked may have put something else in their place, as a test runner does.
        sys.stdout, sys.stderr = (os.fdopen(n, "w", closefd=False) for n in (1, 2))
        sys.argv = ["fewlabel", *case["args"]]
        main()
        code = 0
    except SystemExit as exit_:
        code = exit_.code if isinstance(exit_.code, int) else int(bool(exit_.code))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    load()
    sys.path[0] = str(Path(__file__).parents[2])
    from tests.support.small_forests import small_forests

    with small_forests(n_trees=20, in_folds=5):
        for line in sys.stdin:
            print(json.dumps(run(json.loads(line))), flush=True)  # noqa: T201
