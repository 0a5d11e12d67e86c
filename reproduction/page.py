"""The page about the reproduction, written from records and nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fewlabel._core.atomic import replaced
from reproduction.methods import METHODS
from reproduction.notation import markdown, number, row_title
from reproduction.paper_values import MODES
from reproduction.plan import ITEMS, ROWS, Scope
from reproduction.reasons import evidence, reason
from reproduction.records import ERROR, OK, Record
from reproduction.remarks import remark
from reproduction.render import render
from reproduction.spec import Trial
from reproduction.summary import FAR, Cell, by_key, cell, trials_text
from reproduction.tables import accuracy_cells, build

_INTRO = """# The paper's experiments, reproduced

{result}

`make reproduction` writes this page from the records in `results/`; `make reproduction-run` runs
the trials that have no record.

- {splits}. Trial n of every method has the same split, and the forest has its seed.
- HAR: **features recomputed** from the genuine windows; the published feature file was not at hand.
- SensIT: **not available**.
- Where the paper's setting was too large for this machine, the cell names the smaller one that was
  run. `--full` runs and shows the paper's.
- RF: random forest on the labelled rows. MSLA, CSLA, FSLA: self-learning with thresholds by the
  bound, by a curriculum, or one fixed threshold. LS: label spreading. QN-S3VM: semi-supervised SVM.
  Semi-LDA: semi-supervised LDA. DAS-RF: semi-supervised forest by deterministic annealing.
"""

_WEIGHTS = """\
Algorithm 1, and so MSLA and CSLA, gives the labelled rows as much weight in all as the
pseudo-labelled ones. FSLA in the tables weighs every row the same, which agrees with most of the
paper's figures.
"""


def write_page(page: Path, scope: Scope, records: list[Record]) -> list[Path]:
    """Write the page and, beside it in ``reproduction/``, the figures that it shows."""
    figures = [name for name in ITEMS if name.startswith("figure")]
    folder = page.parent / page.stem
    paths = render(figures, scope, records, folder)
    with replaced(page) as part:
        part.write_text(page_text(scope, records, folder.name), encoding="utf-8")
    return [page, *paths]


def evidence_trials(scope: Scope) -> list[Trial]:
    """What the page compares with beyond the tables and figures."""
    cells = [
        (table, row, column)
        for table, columns in (("table2", METHODS), ("table3", MODES))
        for row in scope.sets
        if ROWS[row].paper
        for column in columns
    ]
    named = dict.fromkeys((row, "FSLA weighted") for row in scope.sets)
    named |= {pair: None for key in cells for pair in evidence(reason(*key) or "")}
    return [trial for row, method in named for trial in scope.cell(row, method)]


def page_text(scope: Scope, records: list[Record], folder: str) -> str:
    """The page in Markdown, with pictures from ``folder``."""
    return "\n".join(_sections(scope, records, folder)) + "\n"


def _sections(scope: Scope, records: list[Record], folder: str) -> Iterator[str]:
    found = by_key(records)
    yield _INTRO.format(splits=_splits(scope), result=_result(scope, found))
    yield _provenance(records)
    yield "\n## Does self-learning help? MSLA against RF on the same splits\n"
    yield from paired(scope, found, "MSLA", "RF")
    yield "\n## Does equal total weight help FSLA?\n"
    yield _WEIGHTS
    yield from paired(scope, found, "FSLA weighted", "FSLA")
    for name in (name for name in ITEMS if name.startswith("table")):
        yield "\n#" + markdown(build(name, scope, records))
    yield "\n## Cells beyond two standard errors\n"
    yield from far_cells(scope, found)
    yield "\n## Figures"
    for name, item in ITEMS.items():
        if name.startswith("figure"):
            own = " (ours; not in the paper)" if item.ours else ""
            yield f"\n### {name.capitalize().replace('e', 'e ', 1)}{own}\n\n{_CAPTIONS[name]}\n"
            if told := remark(name, scope, found):
                yield f"{told}\n"
            yield f"![{item.title}]({folder}/{name}.svg)"


def _result(scope: Scope, found: dict[str, Record]) -> str:
    """How much of the paper was found again, in two sentences."""
    cells = [
        c
        for table in ITEM_NAMES
        for row in accuracy_cells(table, scope, found).values()
        for c in row.values()
        if c.distance is not None
    ]
    gains = []
    for row in scope.sets:
        pairs = _pairs(*(cell(scope.cell(row, method), found) for method in ("MSLA", "RF")))
        gains += [(pairs[:, 0] - pairs[:, 1]).mean()] if len(pairs) else []
    return (
        f"{sum(not c.far for c in cells)} of the {len(cells)} accuracies that can be compared are "
        f"within {FAR:g} standard errors of the paper's. MSLA, its algorithm, is on average at "
        f"least as accurate as RF on {sum(gain >= 0 for gain in gains)} of {len(gains)} data sets."
    )


def _splits(scope: Scope) -> str:
    if scope.other_splits:
        return f"Splits are **not the paper's**: {scope.other_splits}"
    return (
        "Splits are the paper's own: `train_test_split(X, y, train_size=l, random_state=10 n)`,\n"
        "  n = 0..19, not stratified"
    )


def _provenance(records: list[Record]) -> str:
    done = [record for record in records if record["status"] == OK]
    if not done:
        return "There are no records yet."
    machines = sorted({f"{r['machine']['cpu']}, {r['machine']['cores']} cores" for r in done})
    versions = sorted({r["versions"]["scikit-learn"] for r in done})
    failed = sum(record["status"] == ERROR for record in records)
    hours = sum(record["total_seconds"] for record in done) / 3600
    return (
        f"{len(done):,} finished trials, {hours:.1f} hours of computing on {'; '.join(machines)}; "
        f"scikit-learn {', '.join(versions)}; {failed} failed trials. "
        f"{_data_text(done)}"
    )


def _data_text(done: list[Record]) -> str:
    """Whether all trials ran on the files whose checksums the project knows."""
    # Sets that come with scikit-learn are no files and have no checksum.
    files = [r for r in done if r["data"]["checksum"]]
    other = sorted({r["trial"]["dataset"] for r in files if not r["data"]["verified"]})
    if not other:
        return "All of them ran on the data files whose checksums `load_dataset` knows."
    return f"**Other data files** than those `load_dataset` knows were used for {', '.join(other)}."


def paired(scope: Scope, found: dict[str, Record], ours: str, base: str) -> Iterator[str]:
    """One line for each set: the mean difference of two methods on the splits both ran on."""
    from scipy.stats import wilcoxon

    yield f"| Data set | splits | {base} | {ours} | difference | splits not worse | Wilcoxon p |"
    yield "|---|---|---|---|---|---|---|"
    below = []
    for row in scope.sets:
        first, second = (cell(scope.cell(row, method), found) for method in (ours, base))
        pairs = _pairs(first, second)
        if not len(pairs):
            yield f"| {row_title(row)} | 0 | not run | | | | |"
            continue
        gain = pairs[:, 0] - pairs[:, 1]
        p = _p_text(float(wilcoxon(gain).pvalue)) if len(gain) > 1 and gain.any() else "–"
        if gain.mean() < 0:
            below.append(row_title(row))
        means = [
            number(pairs[:, k].mean()) + _setting(scope, row, method)
            for k, method in ((1, base), (0, ours))
        ]
        yield (
            f"| {row_title(row)} | {len(gain)} | {means[0]} | {means[1]} | {gain.mean():+.3f} | "
            f"{(gain >= 0).sum()} of {len(gain)} | {p} |"
        )
    yield ""
    if below:
        yield f"{ours}'s mean is below {base}'s on: {', '.join(below)}."
    else:
        yield f"{ours}'s mean is at least {base}'s on every set that was run."


def _p_text(p: float) -> str:
    return f"{p:.3f}" if p >= 0.0005 else "< 0.001"


def _setting(scope: Scope, row: str, method: str) -> str:
    smaller = scope.reduced(row, method)
    return f" ({smaller.note})" if smaller else ""


def _pairs(first: Cell, second: Cell) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Scores of two cells on the splits that both have."""
    scores = [dict(zip(c.seeds, c.values, strict=True)) for c in (first, second)]
    shared = [(scores[0][seed], scores[1][seed]) for seed in scores[0] if seed in scores[1]]
    return np.array(shared).reshape(-1, 2)


class _Means(dict[str, str]):
    """What ``{set/method}`` stands for in a reason: the mean in the records."""

    def __init__(self, scope: Scope, found: dict[str, Record]) -> None:
        super().__init__()
        self._scope, self._found = scope, found

    def __missing__(self, key: str) -> str:
        row, method = key.split("/")
        shown = cell(self._scope.cell(row, method), self._found)
        return f"{number(shown.mean)} ({trials_text([shown])})" if shown.n else "(not run)"


def far_cells(scope: Scope, found: dict[str, Record]) -> Iterator[str]:
    """Every cell of Tables 2 and 3 that is far from the paper's, with the reason if we know it."""
    compared = 0
    means = _Means(scope, found)
    # One reason often explains several cells: it is told once.
    whys: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for table in ("table2", "table3"):
        for row, cells in accuracy_cells(table, scope, found).items():
            for column, c in cells.items():
                compared += c.distance is not None
                if c.far and c.paper is not None and c.distance is not None:
                    known = (
                        (reason(table, row, column) or "").format_map(means),
                        f"another setting than the paper's: {c.note}" if c.note else "",
                        _luck_of_the_splits(c, cell(scope.cell(row, "RF"), found)),
                    )
                    why = "; ".join(filter(None, known)) or "**unexplained**"
                    whys[why][f"{ITEM_NAMES[table]}, {column}"].append(row_title(row))
    n_far = sum(len(rows) for cells in whys.values() for rows in cells.values())
    yield f"{n_far} of the {compared} cells that can be compared are beyond {FAR:g} SE.\n"
    for why, cells in whys.items():
        named = "; ".join(f"{column}: {', '.join(rows)}" for column, rows in cells.items())
        yield f"- {named} — {why}"


def _luck_of_the_splits(c: Cell, forest: Cell) -> str:
    """Where a cell has some of the splits only: whether the forest's luck on them explains it.

    It does if the forest is off to the same side on them, by at least half as much.
    """
    here = [v for seed, v in zip(forest.seeds, forest.values, strict=True) if seed in c.seeds]
    if c.paper is None or not here or c.n >= forest.n:
        return ""
    on_these = sum(here) / len(here)
    if (on_these - forest.mean) / (c.mean - c.paper.mean) < 0.5:
        return ""
    return (
        f"few splits, and RF has {number(on_these)} on these {len(here)} but "
        f"{number(forest.mean)} on all {forest.n}"
    )


ITEM_NAMES = {"table2": "Table 2", "table3": "Table 3"}

_CAPTIONS = {
    "figure1": "The paper shows RF, QN-S3VM, FSLA and MSLA; it does not print its shares.",
    "figure2": "CBIL with the true mislabelling matrix of the kept rows, and imperfect labels "
    "drawn from it: the paper does not say what P(Ŷ | x) it used. A point exists only where the "
    "bound applies.",
    "figure3": "λ from 0.1 to 1, as in the paper.",
    "figure4": "As Figure 2, with and without the relaxation.",
    "figure5": "`bounds()` of the rows left in each round, mean over the trials, weighted by rows. "
    "The forest's votes stand for P(Y|x), as in the paper: these are estimates, not guarantees.",
    "figure6": "The theory needs errors to be made mostly on low votes: a rising curve. Above the "
    "diagonal, votes are more often right than they say.",
}
