"""What tables and model files cost: ``python -m benchmarks.table_costs files``, ``… lines``

``files`` fits both classifiers with their defaults on scikit-learn's digits (60 labels) and on a
table with texts and dates, and compares ``fewlabel.save`` and ``load`` with pickle. ``lines
--before REVISION`` counts the lines that read and encode tables. Both leave records, as does
``python -m benchmarks.encode_scale``; ``python -m benchmarks.any_table`` shows them on its page.
"""

from __future__ import annotations

import argparse
import io
import json
import pickle
import subprocess
import tempfile
import time
import tokenize
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks._page import machine, table
from fewlabel.report.words import count

RECORDS = Path("results/table_costs.jsonl")
ROOMS = ("src/fewlabel/encoding", "src/fewlabel/tables")
# Model files are no tables, though they are kept in the same room.
MODEL_FILES = ("allowed_types", "model_archive", "model_checks", "model_files", "packed_trees")

Record = dict[str, Any]


def keep(record: Record) -> None:
    """Add a record to the file, with the machine that it is from."""
    with RECORDS.open("a") as file:
        file.write(json.dumps(record | {"machine": machine()}) + "\n")
    print(record, flush=True)


# --- model files ------------------------------------------------------------------------------


def _rows() -> Iterator[tuple[str, Any, np.ndarray]]:
    from sklearn.datasets import load_digits

    from benchmarks.any_table import customers

    X, y = load_digits(return_X_y=True)
    given = np.random.RandomState(0).permutation(len(y)) < 60
    yield "digits", X, np.where(given, y, -1)
    frame, codes, n_labeled = customers()
    given = np.random.RandomState(0).permutation(len(codes)) < n_labeled
    yield "customers with notes", frame, np.where(given, codes, -1)


def _seconds(work: Callable[[], Any]) -> float:
    """Median processor seconds of three runs."""
    found = []
    for _ in range(3):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return median(found)


def measure_files() -> None:
    """Size and seconds of model files, beside pickle's."""
    import fewlabel

    for name, X, y in _rows():
        for make in (fewlabel.FewLabelClassifier, fewlabel.SelfLearningClassifier):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                clf = make(random_state=0, n_jobs=1).fit(X, y)
                assert clf.error_  # a file keeps it, but its time is that of the fit
                kind = {"kind": "file", "table": name, "classifier": make.__name__}
                keep(kind | _file_and_pickle(clf))


def _file_and_pickle(clf: Any) -> Record:
    import fewlabel

    pickled = pickle.dumps(clf)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.skops"
        return {
            "save": _seconds(lambda: fewlabel.save(clf, path)),
            "load": _seconds(lambda: fewlabel.load(path)),
            "pickle save": _seconds(lambda: pickle.dumps(clf)),
            "pickle load": _seconds(lambda: pickle.loads(pickled)),
            "mib": path.stat().st_size / 2**20,
            "pickle mib": len(pickled) / 2**20,
        }


# --- lines ------------------------------------------------------------------------------------


def _is_counted(path: str) -> bool:
    return path.endswith(".py") and Path(path).stem not in MODEL_FILES


def code_lines(source: str) -> int:
    """Lines with code: no blank line, no comment, no docstring."""
    layout = (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    lines: set[int] = set()
    begins = True  # a statement: a text that begins one is a docstring
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NEWLINE:
            begins = True
        elif token.type not in layout:
            if not (begins and token.type == tokenize.STRING):
                lines.update(range(token.start[0], token.end[0] + 1))
            begins = False
    return len(lines)


def count_lines(before: str) -> None:
    """Lines of the rooms that read and encode tables, at a commit and now."""
    git = ["git", "ls-tree", "-r", "--name-only", before, *ROOMS]
    then = subprocess.run(git, capture_output=True, text=True, check=True).stdout.split()
    sources = {
        f"before ({before})": [
            subprocess.run(
                ["git", "show", f"{before}:{path}"], capture_output=True, text=True, check=True
            ).stdout
            for path in then
            if _is_counted(path)
        ],
        "now": [
            path.read_text(encoding="utf-8")
            for room in ROOMS
            for path in sorted(Path(room).glob("*.py"))
            if _is_counted(str(path))
        ],
    }
    for side, texts in sources.items():
        lines = sum(len(text.splitlines()) for text in texts)
        keep({"kind": "lines", "side": side, "lines": lines, "code": sum(map(code_lines, texts))})


# --- the page ---------------------------------------------------------------------------------


def _latest(found: list[Record], kind: str, *key: str) -> list[Record]:
    """The newest record of each key, in the order of the first ones."""
    return list({tuple(r[k] for k in key): r for r in found if r["kind"] == kind}.values())


def sections(found: list[Record]) -> str:
    """What tables cost, in Markdown."""
    made = [_encoding(_latest(found, "encode", "side")), _files(found), _lines(found)]
    return "\n\n".join(part for part in made if part)


def _encoding(sides: list[Record]) -> str:
    if not sides:
        return ""
    old = next((s for s in sides if s["side"].startswith("before")), None)
    lines = []
    for side in sides:
        seconds = side["reading"] + side["encoding"]
        line = {"": side["side"], "reading": f"{side['reading']:.1f} s"}
        line |= {"encoding": f"{side['encoding']:.1f} s", "peak": f"{side['mib']:,.0f} MiB"}
        line["features"] = f"{side['width']:.0f}"
        if old is not None:
            line["time, times"] = f"{seconds / (old['reading'] + old['encoding']):.2f}"
            line["memory, times"] = f"{side['mib'] / old['mib']:.2f}"
        lines.append(line)
    head = "## Reading and encoding a million rows\n\n"
    note = (
        "`python -m benchmarks.encode_scale --before REVISION`: a CSV file of "
        f"{sides[0]['rows']:,} rows and 20 mixed columns, processor seconds with one thread and "
        f"peak memory of a process of its own, medians of {count(sides[0]['repeats'], 'run')}. "
        "*times*: of the earlier commit's."
    )
    return f"{head}{note}\n\n{table(lines)}"


def _files(found: list[Record]) -> str:
    lines = []
    for record in _latest(found, "file", "table", "classifier"):
        line = {"rows": record["table"], "classifier": f"`{record['classifier']}`"}
        line |= {"file": f"{record['mib']:.2f} MiB", "pickle": f"{record['pickle mib']:.2f} MiB"}
        line["size, times"] = f"{record['mib'] / record['pickle mib']:.2f}"
        line |= {"save": f"{record['save']:.2f} s", "load": f"{record['load']:.2f} s"}
        line["pickle's"] = f"{record['pickle save']:.2f} s, {record['pickle load']:.2f} s"
        lines.append(line)
    note = (
        "`python -m benchmarks.table_costs files`: `fewlabel.save` and `fewlabel.load` of a fit "
        "with defaults, beside pickle. A pickle keeps the rows of the fit, too, and runs whatever "
        "code is in it."
    )
    return f"## Model files\n\n{note}\n\n{table(lines)}" if lines else ""


def _lines(found: list[Record]) -> str:
    lines = [
        {"": r["side"], "lines": f"{r['lines']:,}", "of code": f"{r['code']:,}"}
        for r in _latest(found, "lines", "side")
    ]
    note = (
        "`python -m benchmarks.table_costs lines --before REVISION`: the rooms `encoding` and "
        "`tables` without model files. *of code*: without blank lines, comments and docstrings. "
        "What was added reads texts, dates, five more formats and tables in pieces, finds columns "
        "that know the labels, folds labels, and tells why."
    )
    return f"## Lines that read and encode tables\n\n{note}\n\n{table(lines)}" if lines else ""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table_costs", description=__doc__)
    parser.add_argument("what", choices=["files", "lines"])
    parser.add_argument("--before", default="HEAD", help="the commit to compare lines with")
    options = parser.parse_args()
    if options.what == "files":
        measure_files()
    else:
        count_lines(options.before)


if __name__ == "__main__":
    main()
