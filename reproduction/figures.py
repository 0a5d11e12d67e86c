"""Figures 1 to 4 of the paper and two of our own, drawn from records as SVG.

Every figure says how many trials stand behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewlabel._core.atomic import replaced
from reproduction.notation import row_title
from reproduction.observe import CONFIDENT, RELAXATIONS
from reproduction.plan import FIGURE_1_METHODS, ITEMS, Scope, figure_sets, small_trials
from reproduction.records import OK, Record
from reproduction.summary import by_key, cell
from reproduction.tables import is_quick

# Okabe and Ito's colours: told apart by colour-blind readers and in print.
COLOURS = {
    "RF": "#0072B2", "QN-S3VM": "#E69F00", "FSLA": "#CC79A7", "MSLA": "#009E73",
    "error": "#000000", "oracle": "#0072B2", "cbil": "#D55E00", "cbil_relaxed": "#009E73",
}  # fmt: skip
MARKERS = {"RF": "o", "QN-S3VM": "s", "FSLA": "^", "MSLA": "D"}
LABELS = {
    "error": "true error",
    "oracle": "oracle C-bound",
    "cbil": "CBIL, λ = 0",
    "cbil_relaxed": "CBIL, λ = 0.1",
}
_HIGHEST = 3  # bounds far above 1 say nothing, and would flatten the rest of their panel


def draw(name: str, scope: Scope, records: Iterable[Record], folder: Path) -> Path:
    """Draw one of figure1 ... figure6; return the path of the SVG."""
    plt = _pyplot()
    found = by_key(records)
    makers: dict[str, Callable[[Any, Scope, dict[str, Record]], Any]] = {
        "figure1": _labelled_share,
        "figure2": _confident,
        "figure3": _relaxation,
        "figure4": _confident_relaxed,
        "figure5": _rounds,
        "figure6": _calibration,
    }
    with plt.rc_context(_STYLE):
        figure = makers[name](plt, scope, found)
        apart = ("quick run, tiny sizes" if is_quick(scope) else "", scope.other_splits)
        remark = "; ".join(filter(None, apart))
        if remark:
            figure.text(0.0, 1.01, remark, va="bottom", size=7, color="#999999")
        path = folder / f"{name}.svg"
        with replaced(path) as part:
            # No date in the file: the same records give the same bytes.
            figure.savefig(part, format="svg", bbox_inches="tight", metadata={"Date": None})
        plt.close(figure)
    return path


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("Figures need matplotlib: pip install 'fewlabel[cli]'.") from error
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


_STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E5E5E5",
    "axes.axisbelow": True,
    "axes.titlesize": 10,
    "legend.frameon": False,
    "svg.hashsalt": "fewlabel",
    "svg.fonttype": "none",  # text stays text: small files that can be searched
    "figure.constrained_layout.use": True,
}


_COLUMNS = 4


def _panels(plt: Any, count: int, width: float = 3.1, height: float = 2.7) -> tuple[Any, list[Any]]:
    columns = min(max(count, 1), _COLUMNS)
    lines = max(1, -(-count // columns))
    size = (max(width * columns, 4.6), height * lines + 0.5)
    figure, axes = plt.subplots(lines, columns, figsize=size, squeeze=False)
    flat = list(axes.flat)
    for spare in flat[count:]:
        spare.set_visible(False)
    return figure, flat[:count]


def _head(figure: Any, name: str, extra: str = "") -> None:
    figure.suptitle(ITEMS[name].title + extra, fontsize=11)


def _trials(n: int) -> str:
    return f"{n} trial{'s' * (n != 1)}"


Seen = list[tuple[int, dict[str, Any]]]
"""(number of the trial, observations) for each finished trial of MSLA on a set."""


def observations(
    name: str,
    scope: Scope,
    found: dict[str, Record],
    usable: Callable[[dict[str, Any]], bool] = bool,
) -> tuple[dict[str, Seen], str]:
    """What was observed on each set of a figure, and a remark about the sets without records."""
    seen: dict[str, Seen] = {}
    for row in figure_sets(name, scope):
        trials = [trial for trial in scope.grid(row, "MSLA") if trial.key in found]
        seen[row] = [
            (trial.seed // 10, found[trial.key]["observed"])
            for trial in trials
            if found[trial.key]["status"] == OK and usable(found[trial.key]["observed"])
        ]
    missing = ", ".join(row_title(row) for row, observed in seen.items() if not observed)
    shown = {row: observed for row, observed in seen.items() if observed}
    return shown, f"\nnot run: {missing}" if missing else ""


# --- Figure 1 --------------------------------------------------------------------------------


def _labelled_share(plt: Any, scope: Scope, found: dict[str, Record]) -> Any:
    figure, axis = plt.subplots(figsize=(5.2, 3.6))
    counts = set()
    for method in FIGURE_1_METHODS:
        trials = small_trials(scope, method)
        points = []
        for share in scope.shares:
            labelled = round(share * scope.small_rows)
            shown = cell([t for t in trials if t.n_labeled == labelled], found)
            if shown.n:
                points.append((100 * share, shown.mean, shown.std / max(1, shown.n - 1) ** 0.5))
                counts.add(shown.n)
        if points:
            x, mean, error = np.array(points).T
            axis.errorbar(
                x, mean, error, color=COLOURS[method], marker=MARKERS[method], ms=4, capsize=2,
                label=method,
            )  # fmt: skip
    behind = _trials(max(counts, default=0))
    if len(counts) > 1:
        behind = f"{min(counts)} to {behind}"
    axis.set_xlabel("labelled rows, %")
    axis.set_ylabel("accuracy on the unlabelled rows")
    axis.set_title(
        f"{ITEMS['figure1'].title}\n{scope.small_rows:,} rows of {row_title(scope.small_set)}; "
        f"mean ± standard error of {behind}"
    )
    if counts:
        axis.legend()
    return figure


# --- Figures 2 to 4 --------------------------------------------------------------------------


def by_share_curves(seen: Seen, keys: Iterable[str]) -> dict[str, NDArray[np.float64]]:
    """Values of each trial (row) at each share (column); NaN where a bound does not apply."""
    return {
        key: np.array([[p[key] for p in observed["by_share"]] for _, observed in seen], dtype=float)
        for key in keys
    }


def _mean_where(applies: NDArray[np.bool_], values: NDArray[np.float64]) -> NDArray[np.float64]:
    # All curves over the same trials: those where every bound of the panel applies.
    count = applies.sum(axis=0)
    mean = np.where(applies, values, 0).sum(axis=0) / np.maximum(count, 1)
    return np.where(count > 0, mean, np.nan)


def _share_panel(axis: Any, row: str, seen: Seen, keys: tuple[str, ...]) -> None:
    curves = by_share_curves(seen, keys)
    applies = np.all([np.isfinite(values) for values in curves.values()], axis=0)
    fewest = applies.sum(axis=0)
    for key, values in curves.items():
        mean = _mean_where(applies, values)
        style = "--" if key == "error" else "-"
        axis.plot(CONFIDENT, mean, style, marker="o", ms=3.5, color=COLOURS[key], label=LABELS[key])
        axis.plot(CONFIDENT, values.T, color=COLOURS[key], alpha=0.13, lw=0.7)
    highest = axis.get_ylim()[1]
    cut = f"; cut at {_HIGHEST}" if highest > _HIGHEST else ""
    axis.set_title(f"{row_title(row)}, {_trials(len(seen))}{cut}")
    everywhere = bool((fewest == len(seen)).all())
    axis.set_xlabel(
        "most confident rows kept, %" + "\n(trials where CBIL applies)" * (not everywhere)
    )
    axis.set_xticks(
        CONFIDENT,
        [f"{share}" + f"\n({n})" * (not everywhere) for share, n in zip(CONFIDENT, fewest)],
    )
    axis.set_ylim(0, min(highest, _HIGHEST))


def _confident(plt: Any, scope: Scope, found: dict[str, Record]) -> Any:
    shown, remark = observations("figure2", scope, found)
    figure, axes = _panels(plt, len(shown))
    for (row, seen), axis in zip(shown.items(), axes):
        _share_panel(axis, row, seen, ("error", "oracle", "cbil"))
    _head(figure, "figure2", f" (thin: single trials){remark}")
    _legend_below(figure, axes)
    return figure


def _confident_relaxed(plt: Any, scope: Scope, found: dict[str, Record]) -> Any:
    shown, remark = observations("figure4", scope, found)
    figure, axes = _panels(plt, len(shown), 5.0, 3.4)
    for (row, seen), axis in zip(shown.items(), axes):
        _share_panel(axis, row, seen, ("error", "oracle", "cbil", "cbil_relaxed"))
    _head(figure, "figure4", f" (thin: single trials){remark}")
    _legend_below(figure, axes)
    return figure


def _legend_below(figure: Any, axes: list[Any]) -> None:
    named: dict[str, Any] = {}
    for axis in axes:
        handles, labels = axis.get_legend_handles_labels()
        named |= dict(zip(labels, handles))
    if named:
        figure.legend(
            named.values(),
            named.keys(),
            loc="outside lower center",
            ncols=3 if len(named) == 6 else min(len(named), 5),
        )


def _relaxation(plt: Any, scope: Scope, found: dict[str, Record]) -> Any:
    shown, remark = observations("figure3", scope, found)
    figure, axes = _panels(plt, len(shown), 3.4)
    colours = plt.get_cmap("viridis")(np.linspace(0, 0.95, len(RELAXATIONS)))
    for (row, seen), axis in zip(shown.items(), axes):
        numbers = [number + 1 for number, _ in seen]
        traces = np.array([observed["by_relaxation"] for _, observed in seen], dtype=float)
        # λ = 0 is not in the paper's figure: where δ is near 0 it would hide the others.
        for index, relaxation in enumerate(RELAXATIONS[1:], start=1):
            axis.plot(
                numbers, traces[:, index], marker=".", lw=0.8, color=colours[index],
                label=f"λ = {relaxation}",
            )  # fmt: skip
        axis.set_title(f"{row_title(row)}, {_trials(len(seen))}")
        axis.set_xlabel("trial")
        axis.set_xlim(0.5, max(numbers) + 0.5)
        axis.set_xticks(range(1, max(numbers) + 1, 1 + max(numbers) // 10))
    for axis in axes[::_COLUMNS]:
        axis.set_ylabel("CBIL")
    _head(figure, "figure3", remark)
    _legend_below(figure, axes)
    return figure


# --- our own ---------------------------------------------------------------------------------

_ROUND_LINES = {
    "error": ("true error of the rows left", "#000000", "-"),
    "plug-in error": ("plug-in error", "#999999", ":"),
    "TB": ("transductive bound", "#0072B2", "-"),
    "CB": ("C-bound", "#E69F00", "-"),
    "first-order": ("first-order bound", "#CC79A7", "-."),
    "second-order": ("second-order bound", "#56B4E9", "-."),
    "selected_error": ("true error of the rows selected", "#D55E00", "--"),
    "selected_bound": ("bound on it that was minimised", "#D55E00", "-"),
}


_HIGHEST_ROUND = 1.3  # as above: a bound beyond 1 says nothing, but one near it is told apart


def _has_all_bounds(observed: dict[str, Any]) -> bool:
    """Whether the rounds hold the whole table of bounds: the first records have a part of it."""
    return "bounds_table" in observed["rounds"][0]


def _rounds(plt: Any, scope: Scope, found: dict[str, Record]) -> Any:
    shown, remark = observations("figure5", scope, found, _has_all_bounds)
    figure, axes = _panels(plt, len(shown))
    for (row, seen), axis in zip(shown.items(), axes):
        longest = max(len(observed["rounds"]) for _, observed in seen)
        for key, (label, colour, style) in _ROUND_LINES.items():
            means = np.array([_round_mean(seen, index, key) for index in range(longest)], float)
            axis.plot(
                range(1, longest + 1), means, style, marker=".", lw=1.2, color=colour, label=label
            )
        axis.set_title(f"{row_title(row)}, {_trials(len(seen))}")
        axis.set_xlabel("round\n(trials that reached it)")
        axis.set_ylim(0, min(axis.get_ylim()[1], _HIGHEST_ROUND))
        reached = [sum(len(o["rounds"]) > index for _, o in seen) for index in range(longest)]
        axis.set_xticks(
            range(1, longest + 1), [f"{index}\n({n})" for index, n in enumerate(reached, start=1)]
        )
    how = f"\n(estimates with the supervised votes as P(Y|x); not shown above {_HIGHEST_ROUND})"
    _head(figure, "figure5", how + remark)
    _legend_below(figure, axes)
    return figure


def _round_mean(seen: list[tuple[int, dict[str, Any]]], index: int, key: str) -> float | None:
    """Mean over the trials that reached a round, weighted by the rows it concerns."""
    values, weights = [], []
    for _, observed in seen:
        if index < len(observed["rounds"]):
            entry = observed["rounds"][index]
            value = entry.get(key, entry["bounds_table"].get(key))
            if value is not None:
                values.append(value)
                weights.append(entry["selected"] if key.startswith("selected") else entry["left"])
    return float(np.average(values, weights=weights)) if values else None


_FEWEST_ROWS = 30  # the accuracy of fewer rows is a matter of chance


def _calibration(plt: Any, scope: Scope, found: dict[str, Record]) -> Any:
    shown, remark = observations("figure6", scope, found)
    figure, axes = _panels(plt, len(shown))
    for (row, seen), axis in zip(shown.items(), axes):
        axis.plot([0, 1], [0, 1], color="#BBBBBB", lw=0.8)
        for which, colour in (("initial", COLOURS["RF"]), ("final", COLOURS["MSLA"])):
            parts = [observed["calibration"][which] for _, observed in seen]
            counts = np.array([part["rows"] for part in parts])
            total = np.maximum(counts.sum(axis=0), 1)
            vote = (np.array([part["vote"] for part in parts]) * counts).sum(axis=0) / total
            right = (np.array([part["accuracy"] for part in parts]) * counts).sum(axis=0) / total
            share = counts.sum(axis=0) / counts.sum()
            some = counts.sum(axis=0) >= _FEWEST_ROWS
            axis.plot(vote[some], right[some], color=colour, lw=1)
            axis.scatter(
                vote[some], right[some], s=6 + 250 * share[some], color=colour, alpha=0.75, lw=0,
                label={"initial": "supervised forest", "final": "after self-learning"}[which],
            )  # fmt: skip
        axis.set_title(f"{row_title(row)}, {_trials(len(seen))}")
        axis.set_xlabel("winning vote")
        axis.set_xlim(0, 1.03)
        axis.set_ylim(0, 1.05)
    for axis in axes[::_COLUMNS]:
        axis.set_ylabel("accuracy (area: share of rows)")
    _head(figure, "figure6", remark)
    _legend_below(figure, axes)
    return figure
