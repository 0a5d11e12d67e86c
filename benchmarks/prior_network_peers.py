"""Peers of the prior network that need an environment of their own: TabPFN v1.

``answer`` runs in the environment of fewlabel and calls this file with the other interpreter, which
has numpy, torch and tabpfn 0.1.11; a folder of npz files goes there and comes back.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from benchmarks.prior_network_data import Split

TABPFN_COLUMNS, TABPFN_CLASSES = 100, 10
N_CONFIGURATIONS = 8


def within_limits(split: Split) -> bool:
    """Whether TabPFN v1 can read a split."""
    return split.X.shape[1] <= TABPFN_COLUMNS and split.n_classes <= TABPFN_CLASSES


def answer(split: Split, python: Path, models: Path) -> dict[str, Any]:
    """Codes that TabPFN gives to the unlabelled rows of a split, and seconds."""
    given = split.codes >= 0
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder, "asked.npz"), Path(folder, "answered.npz")
        np.savez(asked, X=split.X[given], y=split.codes[given], asked=split.X[~given])
        subprocess.run([python, __file__, asked, answered, models], check=True)
        with np.load(answered) as file:
            return {"codes": file["codes"], "seconds": float(file["seconds"])}


def _serve(asked: str, answered: str, models: str) -> None:
    """What runs in the other environment."""
    from tabpfn import TabPFNClassifier

    with np.load(asked) as file:
        X, y, rows = file["X"], file["y"], file["asked"]
    network = TabPFNClassifier(
        device="cpu", base_path=models, N_ensemble_configurations=N_CONFIGURATIONS, seed=0
    )
    start = time.perf_counter()
    network.fit(X, y)
    votes = np.concatenate([network.predict_proba(part) for part in np.array_split(rows, 2)])
    seconds = time.perf_counter() - start
    np.savez(answered, codes=network.classes_[votes.argmax(axis=1)], seconds=seconds)


if __name__ == "__main__":
    import sys

    _serve(*sys.argv[1:])
