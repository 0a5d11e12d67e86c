"""The race against what people use: ``python -m benchmarks.peers environments|run|why|page``.

Every entrant runs at its defaults, in its own process and, where it must, its own environment
(``environments`` makes them below ``.venv-peers``). A fit has 60 processor seconds. ``run`` appends
a line for each trial to results/peers.jsonl and goes on where it was; ``why`` looks at each family
of the mixed vote where that loses; ``page`` writes docs/peers.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import select
import signal
import subprocess
import sys
import tarfile
import tempfile
import venv
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import peers_page
from benchmarks._page import put, records, write
from benchmarks.mixed_vote import by_loss, each_family
from benchmarks.peers_data import ALL, PER_CLASS, load, split
from fewlabel._core.targets import UNLABELED
from fewlabel.ensemble.families import FAMILIES
from reproduction.records import RecordWriter

RECORDS, WHY = Path("results/peers.jsonl"), Path("results/peers_why.jsonl")
VERSIONS = Path("results/peers_versions.json")
PAGE = Path("docs/peers.md")
README = Path("README.md")
SEEDS = range(6_000, 6_010)
LIMIT = 60.0  # processor seconds of a fit
PATIENCE = 4.0  # times the limit by the clock, for machines that do other work too
START = 60.0  # seconds that a process may need for its imports
ENVIRONMENTS = Path(".venv-peers")

PACKAGES = {
    "sslearn": ["sslearn"],
    "tabpfn": ["tabpfn==0.1.11", "torch==2.1.2", "numpy<2", "scikit-learn<1.5"],
    "autogluon": ["autogluon.tabular[lightgbm,catboost,xgboost]"],
    "lamda": ["LAMDA-SSL", "scikit-learn<1.6"],
}
"""What each environment installs; the newest that the registry has unless a version is named."""

ENVIRONMENT = {
    "tri-training": "sslearn",
    "co-forest": "sslearn",
    "democratic co-learning": "sslearn",
    "TabPFN v1": "tabpfn",
    "AutoGluon, pseudo-labels": "autogluon",
    "Assemble (LAMDA-SSL)": "lamda",
}
"""Entrants that do not run in the project's own environment."""

OURS = ("mixed vote", "self-learning forest")
SUPERVISED = (
    "random forest", "extra trees", "gradient boosting", "logistic regression", "SVM", "TabPFN v1",
)  # fmt: skip
PEERS = (
    "self-training, forest", "self-training, SVM", "label spreading", "label propagation",
    "tri-training", "co-forest", "democratic co-learning", "Assemble (LAMDA-SSL)",
    "AutoGluon, pseudo-labels",
)  # fmt: skip
ENTRANTS = (*OURS, *PEERS, *SUPERVISED)


class Trial(NamedTuple):
    """One fit of one entrant."""

    dataset: str
    per_class: int
    seed: int
    entrant: str


class Worker:
    """A process that fits one entrant again and again; a fit over the limit ends it."""

    def __init__(self, entrant: str) -> None:
        self.entrant = entrant
        self.process: subprocess.Popen[str] | None = None

    def ask(self, task: dict[str, Any]) -> dict[str, Any]:
        """The worker's answer, or why there is none."""
        allowed = PATIENCE * LIMIT
        if self.process is None:
            self.process, allowed = _start(self.entrant), allowed + START
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], allowed)
        line = self.process.stdout.readline() if ready else ""
        if line:
            return dict(json.loads(line))
        over = not ready or self.process.wait() == -signal.SIGPROF
        self.close()
        return {"error": f"over {LIMIT:.0f} s" if over else "the process died"}

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


def _python(entrant: str) -> str:
    name = ENVIRONMENT.get(entrant)
    return str(ENVIRONMENTS / name / "bin" / "python") if name else sys.executable


def _start(entrant: str) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "FEWLABEL_TABPFN": str(ENVIRONMENTS.resolve() / "tabpfn"),
    }
    if entrant in ENVIRONMENT:
        environment.pop("PYTHONPATH", None)
    return subprocess.Popen(
        [_python(entrant), str(Path(__file__).with_name("peers_worker.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )


def measure(trial: Trial, worker: Worker, folder: Path) -> dict[str, Any]:
    """The record of one trial: its accuracy on the unlabelled rows, or why it has none."""
    X, y, labeled = split(*load(trial.dataset), trial.per_class, trial.seed)
    data, labels = folder / f"{os.getpid()}.npz", folder / "labels.npy"
    np.savez(data, X=X, y=np.where(labeled, y, -1))
    files = {"data": str(data), "labels": str(labels)}
    task = {"entrant": trial.entrant, **files, "seed": trial.seed, "limit": LIMIT}
    answer = worker.ask(task)
    record = {**trial._asdict(), "labeled": int(labeled.sum()), "rows": len(y), **answer}
    if "error" not in answer:
        record["accuracy"] = round(float((np.load(labels) == y[~labeled]).mean()), 5)
    return record


def run(trials: list[Trial], jobs: int, path: Path) -> None:
    """Append the trials that have no record yet; each process fits a share of one entrant's."""
    done = {tuple(r[key] for key in Trial._fields) for r in records(path)}
    ahead = [trial for trial in trials if tuple(trial) not in done]
    by_entrant = [[t for t in ahead if t.entrant == name] for name in ENTRANTS]
    with RecordWriter(path) as writer, ThreadPoolExecutor(jobs) as pool:

        def one_worker(own: list[Trial]) -> None:
            with tempfile.TemporaryDirectory() as folder:
                worker = Worker(own[0].entrant)
                for trial in own:
                    writer.append(measure(trial, worker, Path(folder)))
                    print(*trial, flush=True)
                worker.close()

        shares = [own[part::jobs] for own in by_entrant for part in range(jobs)]
        for finished in [pool.submit(one_worker, share) for share in shares if share]:
            finished.result()


def explain(found: list[dict[str, Any]]) -> None:
    """Append what each of our families does on the cells that the mixed vote loses."""
    done = {(r["dataset"], r["per_class"], r["seed"]) for r in records(WHY)}
    lost = [loss[:2] for loss in peers_page.losses(found, OURS)]
    with RecordWriter(WHY) as writer:
        for (dataset, per_class), seed in product(lost, SEEDS):
            if (dataset, per_class, seed) not in done:
                X, y, labeled = split(*load(dataset), per_class, seed)
                codes = np.where(labeled, y, UNLABELED)
                votes, held_out, families = each_family(X, codes, y[~labeled], seed, FAMILIES)
                q = by_loss()(np.stack([held_out[name] for name in votes]), y[labeled])
                weights = {name: round(float(w), 4) for name, w in zip(votes, q)}
                cell = {"dataset": dataset, "per_class": per_class, "seed": seed}
                writer.append({**cell, "families": families, "weights": weights})
                print(*cell.values(), flush=True)


def page(found: list[dict[str, Any]]) -> str:
    """The text of docs/peers.md."""
    planned = len(ALL) * len(PER_CLASS) * len(SEEDS) * len(ENTRANTS)
    versions = json.loads(VERSIONS.read_text(encoding="utf-8"))
    return peers_page.page(found, OURS, SUPERVISED, planned, records(WHY), versions)


def make_environments(names: list[str]) -> None:
    """Create the environments of the entrants that cannot run in the project's own.

    The versions that were installed are noted for the page.
    """
    versions = json.loads(VERSIONS.read_text(encoding="utf-8")) if VERSIONS.exists() else {}
    for name in names:
        folder = ENVIRONMENTS / name
        if not (folder / "bin" / "python").exists():
            venv.create(folder, with_pip=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, *PACKAGES[name]], check=True)
        if name == "tabpfn":
            _tabpfn_weights(folder)
        package = re.split(r"[\[=]", PACKAGES[name][0])[0]
        ask = f"import importlib.metadata as m; print(m.version({package!r}), end='')"
        python = [str(folder / "bin" / "python"), "-c", ask]
        versions[package] = subprocess.run(python, check=True, capture_output=True).stdout.decode()
    write(VERSIONS, json.dumps(versions, indent=1, sort_keys=True) + "\n")


def _tabpfn_weights(folder: Path) -> None:
    """The weights of TabPFN v1 lie in the source distribution of pfns 0.3.0."""
    python = str(folder / "bin" / "python")
    with tempfile.TemporaryDirectory() as sources:
        subprocess.run(
            [python, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
            + ["--dest", sources, "pfns==0.3.0"],
            check=True,
        )
        with tarfile.open(next(Path(sources).glob("pfns-*.tar.gz"))) as archive:
            for member in archive.getmembers():
                if member.name.endswith(".cpkt"):
                    member.name = str(Path("models_diff") / Path(member.name).name)
                    archive.extract(member, folder, filter="data")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("environments", "run", "why", "page"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--sets", default=",".join(ALL))
    parser.add_argument("--entrants", default=";".join(ENTRANTS), help="names with ; between them")
    parser.add_argument("--per-class", default=",".join(map(str, PER_CLASS)))
    parser.add_argument("--splits", type=int, default=len(SEEDS))
    parser.add_argument("--records", type=Path, default=RECORDS)
    parser.add_argument("--only", default=",".join(PACKAGES), help="environments to make")
    chosen = parser.parse_args()
    if chosen.action == "environments":
        return make_environments(chosen.only.split(","))
    if chosen.action == "why":
        return explain(records(chosen.records))
    if chosen.action == "page":
        found = records(chosen.records)
        write(PAGE, page(found))
        peers_page.draw(PAGE.parent / "images" / peers_page.PICTURE, found, OURS)
        return put(README, "accuracy", peers_page.sentence(found, OURS[0]))
    sizes = [int(size) for size in chosen.per_class.split(",")]
    order = product(SEEDS[: chosen.splits], chosen.sets.split(","), sizes)
    names = chosen.entrants.split(";")
    trials = [Trial(s, size, seed, e) for seed, s, size in order for e in names]
    run(trials, chosen.jobs, chosen.records)


if __name__ == "__main__":
    main()
