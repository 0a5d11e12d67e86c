"""The example of the documentation: ``make example`` runs it and writes its output into the pages.

Blocks between ``<!-- example:NAME -->`` and ``<!-- end -->`` in the pages below are
replaced by what the commands print, so that no figure in them is typed by hand.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "docs" / "command-line.md", ROOT / "docs" / "start" / "csv.md"]
FIT = (
    "fewlabel fit tumours.csv --target diagnosis --out labelled.csv --model model.skops "
    "--report report.html"
)
PREDICT = "fewlabel predict model.skops tumours.csv --out predictions.csv"
BOUNDS = "fewlabel bounds votes.csv"


def write_tables(folder: Path) -> None:
    """569 tumours of scikit-learn's breast cancer data, 40 of them labelled; and some votes."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer(as_frame=True)
    names = ["radius", "texture", "area", "smoothness", "concavity", "symmetry"]
    table = data.data[[f"mean {name}" for name in names]].set_axis(names, axis=1)
    given = np.random.default_rng(0).permutation(len(table)) < 40
    diagnosis = np.where(data.target == 0, "malignant", "benign")
    table["diagnosis"] = np.where(given, diagnosis, "")
    table.to_csv(folder / "tumours.csv", index=False)
    votes = "cat,dog\n0.9,0.1\n0.8,0.2\n0.6,0.4\n0.55,0.45\n0.3,0.7\n0.1,0.9\n"
    (folder / "votes.csv").write_text(votes)


def run(command: str, folder: Path) -> str:
    """What a command prints, progress first."""
    answer = subprocess.run(
        [sys.executable, "-m", *command.split()],
        cwd=folder,
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    # Seconds are of one machine, and so is which family is slow enough to be told of.
    shown = re.sub(r"^  .+: done in .+\n|, \d+\.\d s$", "", answer.stdout, flags=re.M)
    return f"$ {command}\n{shown.rstrip()}"


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder)
        blocks = {"fit": run(FIT, folder)}
        lines = (folder / "labelled.csv").read_text().splitlines()
        blocks["head"] = "\n".join(["$ head -6 labelled.csv", *lines[:6]])
        blocks["predict"] = run(PREDICT, folder)
        blocks["bounds"] = run(BOUNDS, folder)
    for page in PAGES:
        text = page.read_text()
        for name, block in blocks.items():
            pattern = rf"(<!-- example:{name} -->\n).*?(<!-- end -->)"
            filled = f"```\n{block}\n```\n"
            text = re.sub(pattern, lambda m, f=filled: m[1] + f + m[2], text, flags=re.S)
        page.write_text(text)


if __name__ == "__main__":
    main()
