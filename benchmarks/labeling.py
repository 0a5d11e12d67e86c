"""Which rows to label: ours beside chance and peers, ``python -m benchmarks.labeling run|page``.

``run`` simulates sessions: a person answers with the truth, rows are chosen in batches by each
strategy, our classifier learns after each batch. A third of the rows is set aside: they are
unlabelled rows of the fit, and nobody may ask for them. After each batch three shares are counted
(``labeling_page.MEASURES``): right labels in the table, given ones among them; right labels among
those that the classifier gave; right labels of the rows set aside. A line for each session goes to
``results/labeling.jsonl``; a run goes on where it was. Peers are those of scikit-activeml at their
defaults; they get the same standardised points and the same votes.
``page`` writes the tables of docs/labeling.md and its picture from these lines.

Seeds are from 1000 on; what was tried was judged on those below 1010 with a quick vote of five
families, the page counts the seeds from 1010 on.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import labeling_page
from benchmarks._page import records
from benchmarks.promise_data import load
from fewlabel import FewLabelClassifier
from fewlabel.assess.suggest import margins_of
from fewlabel.labeling import next_rows, row_space
from reproduction.records import RecordWriter

RECORDS = Path("results/labeling.jsonl")
SETS = (
    "digits", "wine", "vowel", "pendigits", "pageblocks", "dna", "mnist", "fashion",
    "breast_cancer", "har_recomputed",
)  # fmt: skip
SEEDS = (1010, 1011)
MOST_ROWS = 1_200
"""Two thirds of them can be asked for. Of ten classes 20 labels a class are then a quarter of the
table; of smaller tables the given labels alone would be a large part."""
MOST_COLUMNS = 200
"""Of a table of more columns every second, third, … is taken: fits are faster, and more samples can
be counted."""
ASIDE = 3  # one row of so many is set aside
PER_CLASS = (1, 2, 3, 5, 7, 10, 14, 20)
"""Labels a class after each batch."""


@dataclass
class Table:
    """A table and what a simulated person has answered."""

    X: NDArray[Any]
    y: NDArray[np.intp]
    points: NDArray[Any]
    aside: NDArray[np.bool_]
    known: NDArray[np.bool_]
    votes: NDArray[Any] | None
    seed: int

    @property
    def n_classes(self) -> int:
        return len(np.unique(self.y))

    @property
    def closed(self) -> NDArray[np.bool_]:
        return self.known | self.aside


Strategy = Callable[[Table, int], NDArray[Any]]


def chance(table: Table, n: int) -> NDArray[Any]:
    """Rows at random."""
    order = np.random.default_rng(table.seed).permutation(len(table.y))
    return order[~table.closed[order]][:n]


def margin(table: Table, n: int) -> NDArray[Any]:
    """The smallest margins, from the second batch on."""
    if table.votes is None:
        return chance(table, n)
    rows = np.flatnonzero(~table.closed)
    return rows[np.argsort(margins_of(table.votes[rows]), kind="stable")][:n]


def ours(table: Table, n: int, random_share: float = 0.0) -> NDArray[Any]:
    """What the page asks for; with a share of random rows for the estimate of the error."""
    asked = next_rows(
        table.points,
        table.votes,
        n,
        known=table.known,
        closed=table.closed,
        n_classes=table.n_classes,
        random_share=random_share,
        n_asked=int(table.known.sum()),
        n_random=round(random_share * int(table.known.sum())),
        random_state=table.seed,
    )
    return asked.rows


def ours_and_random(table: Table, n: int) -> NDArray[Any]:
    """Ours with every fourth row at random: what a session with its error estimate really does."""
    return ours(table, n, 0.25)


def peer(name: str) -> Strategy:
    """A strategy of scikit-activeml at its defaults."""

    def choose(table: Table, n: int) -> NDArray[Any]:
        from skactiveml import pool

        strategy = getattr(pool, name)(random_state=table.seed)
        inside = np.flatnonzero(~table.aside)
        target = np.where(table.known[inside], table.y[inside].astype(float), np.nan)
        options: dict[str, Any] = {"batch_size": n}
        if name in ("Badge", "UncertaintySampling"):
            if table.votes is None:
                return chance(table, n)
            open_rows = inside[~table.known[inside]]
            options |= {"clf": _votes_as_classifier(table, open_rows), "fit_clf": False}
        points = table.points[inside].astype(np.float64)
        return inside[np.asarray(strategy.query(points, target, **options), dtype=np.intp)]

    return choose


def _votes_as_classifier(table: Table, rows: NDArray[Any]) -> Any:
    """Our votes for the open rows, in the guise of a classifier of scikit-activeml."""
    from skactiveml.base import SkactivemlClassifier

    votes = table.votes[rows] if table.votes is not None else None

    class Votes(SkactivemlClassifier):
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            return self

        def predict_proba(self, X: Any) -> Any:
            if len(X) != len(votes):
                raise ValueError(f"{len(X)} rows are asked for, {len(votes)} are open.")
            return votes

    guise = Votes(classes=np.arange(table.n_classes))
    guise.classes_ = np.arange(table.n_classes)
    return guise


STRATEGIES: dict[str, Strategy] = {
    "chance": chance,
    "fewlabel": ours,
    "margin": margin,
    "TypiClust": peer("TypiClust"),
    "ProbCover": peer("ProbCover"),
    "BADGE": peer("Badge"),
    "uncertainty sampling": peer("UncertaintySampling"),
    "fewlabel, every fourth row at random": ours_and_random,
}


def draw(name: str, seed: int) -> Table:
    """A sample of a data set; a third of it is set aside."""
    X, y = load(name, seed)
    y = np.unique(y, return_inverse=True)[1]
    rows = np.random.default_rng(seed).permutation(len(y))[:MOST_ROWS]
    X, y = X[rows, :: -(-X.shape[1] // MOST_COLUMNS)], y[rows]
    aside = np.arange(len(y)) % ASIDE == 0
    nothing = np.zeros(len(y), dtype=bool)
    return Table(X, y, row_space(X), aside, nothing, None, seed)


_FITS: dict[tuple[str, int, bytes], NDArray[Any]] = {}
"""Votes by what was learned from: several strategies begin with the same rows."""


def votes_of(table: Table, name: str) -> NDArray[Any]:
    """Votes of our classifier for all rows; zero for classes without a label."""
    key = name, table.seed, table.known.tobytes()
    if key not in _FITS:
        clf = FewLabelClassifier(random_state=table.seed, n_jobs=1)
        clf.fit(table.X, np.where(table.known, table.y, -1))
        votes = np.zeros((len(table.y), table.n_classes))
        votes[:, clf.classes_] = clf.transduction_proba_
        _FITS[key] = votes
    return _FITS[key]


def shares_right(table: Table) -> list[float]:
    """Shares of right labels after a batch, in the order of ``labeling_page.MEASURES``."""
    if table.votes is None:
        raise ValueError("There are no votes yet: label rows of two classes first.")
    right = (table.votes.argmax(axis=1) == table.y) | table.known
    inside = ~table.aside
    parts = {"table": inside, "predicted": inside & ~table.known, "new rows": table.aside}
    return [round(float(right[parts[name]].mean()), 5) for name in labeling_page.MEASURES]


def session(name: str, seed: int, strategy: str, per_class: Sequence[int]) -> dict[str, Any]:
    """Label batch after batch; the shares of right labels after each."""
    table, curve, start = draw(name, seed), [], time.process_time()
    for per in per_class:
        n = per * table.n_classes - int(table.known.sum())
        if n >= int((~table.closed).sum()):
            break
        table.known[STRATEGIES[strategy](table, n)] = True
        shares: list[float] | None = None  # nothing is learned from one class
        if len(np.unique(table.y[table.known])) > 1:
            table.votes = votes_of(table, name)
            shares = shares_right(table)
        curve.append([int(table.known.sum()), shares])
    return {
        "n_classes": table.n_classes,
        "n_rows": int((~table.aside).sum()),
        "measures": list(labeling_page.MEASURES),
        "curve": curve,
        "seconds": time.process_time() - start,
    }


def comparable(path: Path = RECORDS) -> list[dict[str, Any]]:
    """Records of sessions in which these measures were counted."""
    wanted = list(labeling_page.MEASURES)
    return [record for record in records(path) if record.get("measures") == wanted]


def run(args: argparse.Namespace) -> None:
    """Sessions that have no record yet."""
    done = {(r["set"], r["seed"], r["strategy"]) for r in comparable(args.records)}
    with RecordWriter(args.records) as writer:
        for seed in args.seeds:
            for name in args.sets:
                for strategy in args.strategies:
                    if (name, seed, strategy) in done:
                        continue
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        found = session(name, seed, strategy, args.per_class)
                    writer.append({"set": name, "seed": seed, "strategy": strategy, **found})
                    print(name, seed, strategy, found["curve"][-1], flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("command", choices=["run", "page"])
    parser.add_argument("--records", type=Path, default=RECORDS)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--strategies", nargs="+", default=list(STRATEGIES))
    parser.add_argument("--per-class", type=int, nargs="+", default=PER_CLASS)
    args = parser.parse_args()
    if args.command == "run":
        run(args)
    else:
        labeling_page.write_page(comparable(args.records), Path("docs/labeling.md"))


if __name__ == "__main__":
    main()
