"""Section 6 and Appendix C as data: the rows, columns and trials of every table and figure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from reproduction.datasets import BUNDLED, PAPER_SETS, RECOMPUTED
from reproduction.measure import DESCRIBE
from reproduction.methods import METHODS, Params, method_named
from reproduction.paper_values import MODES
from reproduction.spec import PAPER_TREES, PAPER_TRIALS, Trial


@dataclass(frozen=True)
class Row:
    """A row of Tables 1 to 4.

    Attributes
    ----------
    name : str
        As typed after ``--sets``.
    dataset : str
    title : str
    paper : str or None
        Row of the paper to compare with.
    options : dict
        Fields of :class:`Trial` in which the row differs from the paper's setting.
    note : str
        What must be said beside every figure of the row.
    optional : bool
        Shown only if there are records of it.
    """

    name: str
    dataset: str
    title: str
    paper: str | None = None
    options: dict[str, Any] = field(default_factory=dict, hash=False)
    note: str = ""
    optional: bool = False


def _rows() -> Iterator[Row]:
    for name, info in PAPER_SETS.items():
        if name == "har":
            yield Row("har", "har", "HAR", "har", optional=True)
            yield Row("har_recomputed", "har_recomputed", "HAR", "har", note=RECOMPUTED)
        elif name == "mnist":
            yield Row("mnist", "mnist", "MNIST", "mnist")
            yield Row(
                "mnist_stratified", "mnist", "MNIST", "mnist",
                {"stratify": True}, "stratified splits", optional=True,
            )  # fmt: skip
        elif name == "sensit":
            yield Row("sensit", "sensit", "SensIT", "sensit", note="not available")
        else:
            yield Row(name, name, info.title, name)
    for name, info in BUNDLED.items():
        yield Row(name, name, info.title, optional=True)


ROWS: dict[str, Row] = {row.name: row for row in _rows()}

UNAVAILABLE = "sensit"
"""Known to the loader, but not at hand: no figure for it was measured."""

DEFAULT_SETS = tuple(name for name, row in ROWS.items() if not row.optional and name != UNAVAILABLE)


@dataclass(frozen=True)
class Reduced:
    """A smaller setting for cells of Table 2 where the paper's is too much for two cores.

    Attributes
    ----------
    note : str
        What the tables say beside the cell.
    method : str or None
        The variant that stands in.
    point : dict or None
        The only point of the grid.
    n_trees : int or None
    """

    note: str
    method: str | None = None
    point: Params | None = None
    n_trees: int | None = None


_BEST: Params = {"temperature": 0.01}  # of DAS-RF on the smaller sets
_LARGE: dict[str, Reduced] = {
    "LS": Reduced("nearest-neighbour graph", "LS k-NN"),
    "QN-S3VM": Reduced("one point of the grid", point={"lam": 0.01, "lam_u": 0.1}),
    "Semi-LDA": Reduced("run until it converges", "Semi-LDA converged"),
    "DAS-RF": Reduced("50 trees, one point of the grid", point=_BEST, n_trees=50),
}
REDUCED: dict[tuple[str, str], Reduced] = (
    {
        (row, method): reduced
        for row in ("fashion", "mnist", "mnist_stratified")
        for method, reduced in _LARGE.items()
    }
    | {
        (row, "DAS-RF"): Reduced("one point of the grid", point=_BEST)
        for row in ("isolet", "har_recomputed", "letter")
    }
    | {("fashion", "FSLA"): Reduced("50 trees", n_trees=50)}
)
"""By row and column of Table 2."""

SHARES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
"""Labelled shares of Figure 1; the paper does not print its own."""

CBOUND_SETS = ("har_recomputed", "isolet", "letter", "mnist")


@dataclass(frozen=True)
class Scope:
    """Which part of the plan: what the command line's options say."""

    sets: tuple[str, ...] = DEFAULT_SETS
    methods: tuple[str, ...] = tuple(METHODS)
    n_trials: int = PAPER_TRIALS
    n_trees: int = PAPER_TREES
    small_set: str = "mnist"
    small_rows: int = 3500
    shares: tuple[float, ...] = SHARES
    confident_sets: tuple[str, ...] = CBOUND_SETS
    relaxed_set: str = "fashion"
    grid_points: int | None = None
    full: bool = False
    stratify: bool = False
    first_seed: int = 0
    n_test: int = 0

    def seeds(self) -> range:
        """The paper's seeds, 0, 10, 20, ..., or as many from another one on."""
        return range(self.first_seed, self.first_seed + 10 * self.n_trials, 10)

    @property
    def other_splits(self) -> str:
        """In which way the splits are not the paper's; empty if they are."""
        differences = (
            "stratified" if self.stratify else "",
            f"seeds from {self.first_seed} on" if self.first_seed else "",
            f"{self.n_test:,} unlabelled rows set aside as a test part" if self.n_test else "",
        )
        return ", ".join(filter(None, differences))

    def trial(self, row: str, method: str, seed: int, **more: Any) -> Trial:
        """A trial of a row of the tables."""
        options: dict[str, Any] = {
            "n_trees": self.n_trees, "stratify": self.stratify, "n_test": self.n_test,
        }  # fmt: skip
        options |= ROWS[row].options | more
        return Trial(ROWS[row].dataset, method, seed, **options)

    def grid(self, row: str, method: str, **more: Any) -> list[Trial]:
        """Every seed at every point of the method's grid."""
        grid = method_named(method).grid[: self.grid_points]
        points = [tuple(sorted(point.items())) for point in grid]
        return [
            self.trial(row, method, seed, params=point, **more)
            for seed in self.seeds()
            for point in points
        ]

    def reduced(self, row: str, method: str) -> Reduced | None:
        """The smaller setting of a cell of Table 2, unless the paper's is asked for."""
        return None if self.full else REDUCED.get((row, method))

    def cell(self, row: str, method: str) -> list[Trial]:
        """All trials of one cell of Tables 2 and 4."""
        smaller = self.reduced(row, method)
        if smaller is None:
            return self.grid(row, method)
        more = {} if smaller.n_trees is None else {"n_trees": smaller.n_trees}
        trials = self.grid(row, smaller.method or method, **more)
        return [t for t in trials if smaller.point is None or dict(t.params) == smaller.point]


QUICK = Scope(
    sets=("iris", "wine"),
    n_trials=2,
    n_trees=10,
    small_set="digits",
    small_rows=200,
    shares=(0.1, 0.4),
    confident_sets=("iris", "wine"),
    relaxed_set="wine",
    grid_points=2,
)
"""Tiny sizes, to see that everything runs; nothing of it can be compared with the paper."""


@dataclass(frozen=True)
class Item:
    """A table or a figure: its title, and how to list its trials."""

    title: str
    ours: bool = False


ITEMS: dict[str, Item] = {
    "table1": Item("Characteristics of the data sets"),
    "table2": Item("Accuracy on the unlabelled rows (ACC-U)"),
    "table3": Item("MSLA by the estimate of the label probabilities in the bound"),
    "table4": Item("Run time"),
    "figure1": Item("Accuracy against the share of labelled rows"),
    "figure2": Item("C-bound with imperfect labels and oracle C-bound, most confident rows"),
    "figure3": Item("C-bound with imperfect labels over the relaxation λ, trial by trial"),
    "figure4": Item("The relaxation λ = 0.1 against λ = 0"),
    "figure5": Item("Transductive bounds against the true error, round by round", ours=True),
    "figure6": Item("Calibration of the votes: are errors made on low votes?", ours=True),
}

FIGURE_1_METHODS = ("RF", "QN-S3VM", "FSLA", "MSLA")


def trials_of(item: str, scope: Scope) -> list[Trial]:
    """Everything that must have a record before a table or figure is complete."""
    if item == "table1":
        return [Trial(name, DESCRIBE) for name in _datasets(scope)]
    if item in ("table2", "table4"):
        return [t for row in scope.sets for m in scope.methods for t in scope.cell(row, m)]
    if item == "table3":
        return [
            trial
            for row in scope.sets
            for mode in MODES
            for trial in scope.grid(row, "MSLA", label_proba=mode)
        ]
    if item == "figure1":
        return [t for m in FIGURE_1_METHODS if m in scope.methods for t in small_trials(scope, m)]
    return [t for row in figure_sets(item, scope) for t in scope.grid(row, "MSLA")]


def figure_sets(item: str, scope: Scope) -> tuple[str, ...]:
    """Rows of the tables that a figure about MSLA's votes shows."""
    if item == "figure2":
        return scope.confident_sets
    if item == "figure3":
        return tuple(dict.fromkeys((*scope.confident_sets, scope.relaxed_set)))
    if item == "figure4":
        return (scope.relaxed_set,)
    return scope.sets


def small_trials(scope: Scope, method: str) -> list[Trial]:
    """The trials of one curve of Figure 1."""
    return [
        trial
        for share in scope.shares
        for trial in scope.grid(
            scope.small_set,
            method,
            n_rows=scope.small_rows,
            n_labeled=round(share * scope.small_rows),
        )
    ]


def _datasets(scope: Scope) -> list[str]:
    return list(dict.fromkeys(ROWS[name].dataset for name in scope.sets))


def narrowed(
    scope: Scope, sets: tuple[str, ...] | None, methods: tuple[str, ...] | None, trials: int | None
) -> Scope:
    """A scope with the parts replaced that a user named; unknown names are refused."""
    for given, known, what in ((sets, ROWS, "sets"), (methods, METHODS, "methods")):
        if unknown := set(given or ()) - set(known):
            raise ValueError(f"Unknown {what}: {sorted(unknown)}. Choose from {', '.join(known)}.")
    changed = scope
    if sets:
        # Figure 1 keeps its 3,500 rows; the other figures show the sets of the paper among these.
        wanted = {ROWS[name].paper or name for name in scope.confident_sets}
        changed = replace(
            changed,
            sets=sets,
            confident_sets=tuple(s for s in sets if (ROWS[s].paper or s) in wanted) or sets,
            relaxed_set=scope.relaxed_set if scope.relaxed_set in sets else sets[-1],
        )
    if methods:
        changed = replace(changed, methods=tuple(m for m in METHODS if m in methods))
    if trials is not None:
        changed = replace(changed, n_trials=trials)
    return changed
