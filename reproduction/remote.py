"""One trial for a worker of a cluster: a request on standard input, a record on standard output."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import TextIO

from reproduction.run import Limits, run_limited


def _end_with_input() -> None:
    sys.stdin.read()  # returns when the worker is gone or has closed its end
    os._exit(1)


def _private_output() -> TextIO:
    """Where the record goes; whatever else is printed goes to standard error from now on."""
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return output


def main() -> None:
    """Answer one request of :func:`reproduction.run.run_remote`."""
    output = _private_output()
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()
    folder = request["data_dir"]
    record = run_limited(
        request["fields"],
        data_dir=None if folder is None else Path(folder),
        limits=Limits(**request["limits"]),
    )
    output.write(json.dumps(record) + "\n")
    output.close()


if __name__ == "__main__":
    main()
