"""Is a fit as fast as it was at another commit? ``python -m benchmarks.before_after REVISION``

Fits the same classifiers on the same rows with the code of both commits, alternately, each in a
process of its own with one thread, after a warm-up. Prints the ratio of processor times, median
over the repeats, and of the peak memory.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[1]
WORK = """
import json, resource, sys, time, warnings
import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from fewlabel import FewLabelClassifier, SelfLearningClassifier
warnings.simplefilter("ignore")
what = sys.argv[1]
if what == "digits, mixed vote":
    X, y = load_digits(return_X_y=True)
    clf = FewLabelClassifier(random_state=0)
elif what == "digits, forest":
    X, y = load_digits(return_X_y=True)
    clf = SelfLearningClassifier(random_state=0)
else:
    X, y = make_classification(200_000, 50, n_informative=20, n_classes=5, random_state=0)
    X = X.astype(np.float32)
    base = GaussianNB() if what == "200,000 rows, naive Bayes" else RandomForestClassifier(
        20, max_depth=12, random_state=0)
    clf = SelfLearningClassifier(base, max_iter=5)
target = np.where(np.arange(len(y)) % 40 == 0, y, -1)
SelfLearningClassifier(GaussianNB(), max_iter=1).fit(X[:2000], target[:2000])
start = time.process_time()
clf.fit(X, target)
seconds = time.process_time() - start
right = float((clf.transduction_ == y).mean())
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"seconds": seconds, "mib": peak, "right": right}))
"""
TASKS = (
    "digits, forest",
    "digits, mixed vote",
    "200,000 rows, naive Bayes",
    "200,000 rows, small forest",
)


def measure(source: Path, work: str, *arguments: str) -> dict[str, Any]:
    """What a program prints as JSON in its last line, with the package in this folder."""
    environment = {**os.environ, "PYTHONPATH": str(source / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", work, *arguments]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return found


@contextmanager
def tree_of(revision: str) -> Iterator[Path]:
    """The files of another commit, in a folder that is removed afterwards."""
    git = ["git", "-C", str(ROOT), "worktree"]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "before"
        subprocess.run([*git, "add", "-q", "--detach", str(tree), revision], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS))
    options = parser.parse_args()
    with tree_of(options.revision) as tree:
        for task in options.tasks:
            pairs = [
                (measure(tree, WORK, task), measure(ROOT, WORK, task))
                for _ in range(options.repeats)
            ]
            seconds = [[run["seconds"] for run in side] for side in zip(*pairs)]
            before, after = map(median, seconds)
            memory = [median(run["mib"] for run in side) for side in zip(*pairs)]
            same = all(a["right"] == b["right"] for a, b in pairs)
            print(
                f"{task}: {before:.2f} s before, {after:.2f} s now, ratio "
                f"{after / before:.3f}; {memory[0]:.0f} and {memory[1]:.0f} MiB; "
                f"labels {'equally' if same else 'differently'} right",
                flush=True,
            )


if __name__ == "__main__":
    main()
