"""One trial for a worker of a cluster: a request on standard input, a record on standard output."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

from fewlabel.experiments.run import Limits, run_limited


def _end_with_input() -> None:
    sys.stdin.read()  # returns when the worker is gone or has closed its end
    os._exit(1)


def main() -> None:
    """Answer one request of :func:`fewlabel.experiments.run.run_remote`."""
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()
    folder = request["data_dir"]
    record = run_limited(
        request["fields"],
        data_dir=None if folder is None else Path(folder),
        limits=Limits(**request["limits"]),
    )
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
