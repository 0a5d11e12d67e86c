"""Does the wheel hold what it should, and work without extras? ``make wheel``"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

NEEDED = ("fewlabel/py.typed", "fewlabel/__init__.pyi", "fewlabel/network/prior_network.npz")
USE = """
import fewlabel
from sklearn.datasets import load_iris
X, y = load_iris(return_X_y=True)
y[::3] = -1
clf = fewlabel.FewLabelClassifier(["lda", "network"]).fit(X, y)
print(clf.error_)
"""


def main(folder: str, bin_folder: str) -> None:
    """Look into the wheel in ``folder``, and use the one installed beside ``bin_folder``."""
    (wheel,) = Path(folder).glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    rooms = {name.split("/")[0] for name in names if not name.startswith("fewlabel-")}
    if rooms != {"fewlabel"}:
        raise SystemExit(f"{wheel.name} holds {sorted(rooms)}: it must hold fewlabel only")
    lacking = [name for name in NEEDED if name not in names]
    if lacking:
        raise SystemExit(f"{wheel.name} lacks {lacking}")
    python = str(Path(bin_folder) / "python")
    said = subprocess.run([python, "-c", USE], capture_output=True, text=True, check=True).stdout
    command = [str(Path(bin_folder) / "fewlabel"), "--help"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode == 0 or "fewlabel[cli]" not in answer.stderr + answer.stdout:
        raise SystemExit(f"without [cli] the command must say what to install:\n{answer.stderr}")
    size = wheel.stat().st_size / 2**20
    print(f"{wheel.name}: {len(names)} files, {size:.1f} MiB; {said.strip()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
