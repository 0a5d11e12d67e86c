"""docs/baselines.md, from the records alone."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks import _page
from benchmarks.baselines import NOTE
from benchmarks.competitors import (
    COLUMNS,
    RECORDS,
    SCALING,
    SETS,
    VARIANT_COLUMNS,
    full_size_trials,
    trials,
)
from benchmarks.competitors_reasons import REASONS
from reproduction.datasets import PAPER_SETS
from reproduction.notation import number
from reproduction.paper_values import TABLE_2, TABLE_4
from reproduction.records import OK, Record, read_records
from reproduction.spec import PAPER_TREES
from reproduction.summary import Cell, by_key, cell, duration, params_text

INTRO = """\
# The competitors: why some differ from the paper

Table 2 of [the paper's experiments](reproduction.md) has the accuracy of RF, LS, QN-S3VM, Semi-LDA
and DAS-RF beside the paper's. This page explains the cells beyond two standard errors, and measures
the competitors at full size. `make baselines` writes it from the records in `results/`;
`make baselines-run` and `make baselines-full` run the trials that have no record.

Our choices: LS has a dense RBF kernel, σ read as scikit-learn's `gamma`, α = 0.2 and at most 30
iterations; QN-S3VM is linear; both get features scaled to [-1, 1] by their range over all rows (for
LS chosen among five scalings by accuracy on a few splits). Semi-LDA standardises, shrinks the
covariance and runs 300 iterations. DAS-RF has 200 trees on raw features.

## What explains the differences

Accuracy of variants, tuned in the same way on the same labels, mean ± standard deviation (in
brackets: the number of splits). "raw" and "standard": features as they are, or with mean 0 and
variance 1. "k-NN": the graph of nearest neighbours, raw. "early": stopped after 5 iterations of
each annealing step. "signs": the signs of the machines instead of their outputs. "SVM": QN-S3VM
without its unlabelled term. LDA is supervised, with Ledoit-Wolf shrinkage and without any
("plain"). "converged": adaptive steps until convergence. "unshrunk": shrinkage of 10⁻⁶. The
variants were chosen after the differences were seen: one that comes near the paper's figure is a
plausible reason, not a proof.
"""

FULL_INTRO = """\
## Full size: 70,000 × 784 on a small machine

One trial of each method on the paper's first split, at one point of the grid. The paper has NA for
LS and QN-S3VM (over four hours, up to 200 GB). Time is fit and predict on one shared core; memory
is the peak of the process. LS is the k-nearest-neighbour version on 50 principal components: the
dense one would need 110 GiB.
"""


def write(path: Path) -> None:
    """Write the page; a cell far from the paper's without a reason is an error."""
    scaling = json.loads(SCALING.read_text(encoding="utf-8"))
    _page.write(path, page(read_records(RECORDS.parent), scaling))


def page(records: list[Record], scaling: dict[str, Any]) -> str:
    """The page as text."""
    found = by_key(records)
    lines = [INTRO, *_variants_table(found), ""]
    lines += _reasons(found)
    lines += ["", FULL_INTRO, *_full_size_table(found), ""]
    lines += ["## Time against the number of rows", "", NOTE.strip(), "", *_scaling_table(scaling)]
    lines += [""]
    return "\n".join(lines)


def _cell(found: dict[str, Record], dataset: str, method: str) -> Cell:
    paper = TABLE_2[dataset].get(method)
    return cell(trials(dataset, method), found, paper)


def _variants_table(found: dict[str, Record]) -> list[str]:
    lines = ["| Data set | " + " | ".join(VARIANT_COLUMNS) + " |"]
    lines.append("|---" * (len(VARIANT_COLUMNS) + 1) + "|")
    for dataset in SETS:
        cells = [_short(_cell(found, dataset, method)) for method in VARIANT_COLUMNS.values()]
        lines.append(f"| {PAPER_SETS[dataset].title} | " + " | ".join(cells) + " |")
    return lines


def _short(c: Cell) -> str:
    if not c.n:
        return "–"
    spread = f" ± {number(c.std)}" if c.n > 1 else ""
    return f"{number(c.mean)}{spread} ({c.n})"


def _reasons(found: dict[str, Record]) -> list[str]:
    """One item for each reason, with the cells that are far from the paper's."""
    cells: dict[tuple[str, str], list[str]] = defaultdict(list)
    for method in COLUMNS:
        for dataset in SETS:
            c = _cell(found, dataset, method)
            if not c.far:
                continue
            if (dataset, method) not in REASONS:
                raise ValueError(
                    f"{method} on {dataset} is {c.distance:+.1f} standard errors from the paper; "
                    f"say why in competitors_reasons.py."
                )
            text = _fill(REASONS[dataset, method], found, dataset, c.n)
            cells[method, text].append(f"{PAPER_SETS[dataset].title} ({_beside(c)})")
    return [f"- **{name}** on {', '.join(sets)}: {text}" for (name, text), sets in cells.items()]


def _beside(c: Cell) -> str:
    return f"{number(c.mean)}, paper {number(c.paper.mean) if c.paper else 'NA'}"


def _fill(text: str, found: dict[str, Record], dataset: str, splits: int) -> str:
    return re.sub(r"{(.+?)}", lambda match: _figure(found, dataset, match[1], splits), text)


def _figure(found: dict[str, Record], dataset: str, name: str, splits: int) -> str:
    """Mean for a reason, in the notation that competitors_reasons explains.

    The number of splits is told where it is not that of the cell.
    """
    method, _, point = name.partition("@")
    wanted = trials(dataset, VARIANT_COLUMNS.get(method, method))
    if point:
        wanted = [t for t in wanted if point in {str(value) for _, value in t.params}]
    c = cell(wanted, found)
    if not c.n:
        raise ValueError(f"There is no record of {name} on {dataset}, which a reason refers to.")
    return number(c.mean) + (f" ({c.n} splits)" if c.n != splits else "")


def _full_size_table(found: dict[str, Record]) -> list[str]:
    lines = [
        "| Data set | Method | Accuracy | Time | CPU time | Peak memory | paper: accuracy | time |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for trial in full_size_trials():
        column = next(name for name in COLUMNS if trial.method.startswith(name))
        printed = TABLE_2[trial.dataset][column]
        paper = f"{number(printed.mean)} ± {number(printed.std)}" if printed else "NA"
        shown: dict[str, Any] = dict(trial.params)
        if trial.n_trees != PAPER_TREES:
            shown["trees"] = trial.n_trees
        name = f"{trial.method} ({params_text(shown.items())})" if shown else trial.method
        ours = " | ".join(_full_size_fields(found.get(trial.key)))
        lines.append(
            f"| {PAPER_SETS[trial.dataset].title} | {name} | {ours} | {paper} | "
            f"{TABLE_4[trial.dataset][column]} |"
        )
    return lines


def _scaling_table(scaling: dict[str, Any]) -> list[str]:
    machine, versions = scaling["machine"], scaling["versions"]
    lines = [
        f"Measured on {machine['cpu']}, {machine['cores']} cores, scikit-learn "
        f"{versions['scikit-learn']}.",
        "",
        "| Method | Rows: time | Exponent |",
        "|---|---|---|",
    ]
    rows = scaling["rows"]
    return lines + [f"| {r['method']} | {r['rows: time']} | {r['exponent']:.2f} |" for r in rows]


def _full_size_fields(record: Record | None) -> tuple[str, str, str, str]:
    if record is None:
        return "not run", "", "", ""
    if record["status"] != OK:
        return f"NA ({record['status']})", duration(record["total_seconds"]), "", ""
    seconds = record["seconds"]["fit"] + record["seconds"]["predict"]
    return (
        number(record["scores"]["accuracy"]),
        duration(seconds),
        duration(record["seconds"]["cpu"]) if "cpu" in record["seconds"] else "",
        f"{record['peak_mib'] / 1024:.1f} GiB",
    )
