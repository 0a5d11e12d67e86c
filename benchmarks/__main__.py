"""Run the benchmarks and print (or write) their tables as Markdown."""

from __future__ import annotations

import argparse
import importlib
import os
import platform
from pathlib import Path

SECTIONS = ["search", "self_learning", "fast_forest", "max_train", "cbounds", "baselines"]
"""Modules of this package with TITLE, NOTE and ``measure(quick) -> list of rows (dicts)``."""


def _cell(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _table(rows: list[dict[str, object]]) -> str:
    head = list(rows[0])
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(_cell(row.get(key, "")) for key in head) + " |" for row in rows]
    return "\n".join(lines)


def _machine() -> str:
    import numpy
    import scipy
    import sklearn

    return (
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"NumPy {numpy.__version__}, SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--write", type=Path, help="also write the page to this file")
    options = parser.parse_args()
    page = [
        "# Benchmarks",
        "",
        "Made by `make bench`; every figure below was measured in one run on one machine "
        f"({_machine()}). Compare the ratios: the seconds depend on the machine.",
    ]
    for name in options.only:
        section = importlib.import_module(f"benchmarks.{name}")
        print(f"... {name}", flush=True)
        page += ["", f"## {section.TITLE}", "", section.NOTE.strip(), ""]
        page += [_table(section.measure(options.quick))]
        print("\n".join(page[-3:]), flush=True)
        if options.write:  # after every section: a long run that is stopped leaves what it has
            temporary = options.write.with_suffix(".tmp")
            temporary.write_text("\n".join(page) + "\n")
            temporary.replace(options.write)


if __name__ == "__main__":
    main()
