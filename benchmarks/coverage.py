"""How often the PAC-Bayes bounds fail, by simulation: ``python -m benchmarks.coverage``.

A bound with ε = 0.05 may be below the true error in at most 5 % of the samples. In a finite world
the true error of any majority vote is known exactly, so failures can be counted. Beside each bound
stands the same number without its radii, to show that the simulation does notice an invalid one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest

from benchmarks import _page
from fewlabel.bounds.concentration import kl_divergence
from fewlabel.bounds.margins import margin_sums
from fewlabel.bounds.mislabeling import held_out_counts
from fewlabel.bounds.pac_bayes import PacBayesBound, mislabeling_interval, pac_bayes_c_bound

EPSILON = 0.05
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class World:
    """A finite population: P(X), P(Y|X), the mislabelling matrix, and what each voter predicts."""

    mass: Array  # (n_points,)
    proba: Array  # (n_points, n_classes)
    matrix: Array  # (n_classes, n_classes)
    predictions: Array  # (n_voters, n_points)

    def votes(self, q: Array) -> Array:
        one_hot = np.eye(len(self.matrix))[self.predictions]
        return np.einsum("h,hxc->xc", q, one_hot)

    def error(self, votes: Array) -> float:
        best = votes.argmax(axis=1)
        return float(self.mass @ (1 - self.proba[np.arange(len(best)), best]))

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Array, Array, Array]:
        """Points, their true labels and their imperfect ones."""
        x = rng.choice(len(self.mass), n, p=self.mass)
        y = _draw_rows(rng, self.proba[x])
        return x, y, _draw_rows(rng, self.matrix.T[y])


def _draw_rows(rng: np.random.Generator, proba: Array) -> Array:
    return (rng.random((len(proba), 1)) > proba.cumsum(axis=1)[:, :-1]).sum(axis=1)


def tie_world(n_classes: int, risk: float = 0.1) -> World:
    """Cantelli's inequality holds with equality: margins are 0 where the vote errs, else 1.

    Half of the voters err on ``risk`` of the points and the tie goes to the wrong class, so the
    C-bound equals the error and any optimism of an estimate shows.
    """
    points = 2 * (n_classes - 1)
    label = np.tile(np.arange(1, n_classes), 2)
    hard = np.arange(points) < points // 2
    mass = np.where(hard, risk, 1 - risk) / (points // 2)
    predictions = np.tile(label, (10, 1))
    predictions[:5, hard] = 0
    return World(mass, np.eye(n_classes)[label], np.eye(n_classes), predictions)


def noisy_world(n_classes: int, seed: int = 0) -> World:
    """Uncertain labels, class-dependent noise in Ŷ, voters of different quality."""
    rng = np.random.default_rng(seed)
    points, voters = 60, 20
    label = rng.integers(0, n_classes, points)
    label[:n_classes] = np.arange(n_classes)
    proba = 0.97 * np.eye(n_classes)[label] + 0.03 / n_classes
    wrong = rng.dirichlet(np.ones(n_classes), n_classes).T
    matrix = 0.97 * np.eye(n_classes) + 0.03 * wrong
    quality = np.linspace(0.8, 0.99, voters)[:, None]
    right = rng.random((voters, points)) < quality
    predictions = np.where(right, label, rng.integers(0, n_classes, (voters, points)))
    return World(rng.dirichlet(np.full(points, 5.0)), proba, matrix, predictions)


def learned_posterior(world: World, x: Array, y_hat: Array) -> Array:
    """Q by exponential weights on the same sample that the bound is computed on."""
    loss = (world.predictions[:, x] != y_hat).mean(axis=1)
    weights = np.exp(-20.0 * (loss - loss.min()))
    return weights / weights.sum()


def one_draw(
    world: World, rng: np.random.Generator, *, learned: bool, n: int, n_labeled: int, **options: Any
) -> tuple[float, PacBayesBound, float, bool]:
    """True error, bound, the same without radii, and whether the matrix was inside its interval."""
    x, _, y_hat = world.draw(rng, n)
    voters = len(world.predictions)
    q = learned_posterior(world, x, y_hat) if learned else np.full(voters, 1 / voters)
    votes = world.votes(q)
    counts, covered = None, True
    if (world.matrix != np.eye(len(world.matrix))).any():
        _, y, other = world.draw(rng, n_labeled)
        counts = held_out_counts(y, other, len(world.matrix))
        lower, upper = mislabeling_interval(counts, EPSILON)
        covered = bool(((lower <= world.matrix) & (world.matrix <= upper)).all())
    kl = kl_divergence(q) if learned else 0.0
    bound = pac_bayes_c_bound(
        votes[x], y_hat, counts, kl=kl, epsilon=EPSILON, drawn_labels=True, **options
    )
    return world.error(votes), bound, _without_radii(votes[x], y_hat), covered


def _without_radii(votes: Array, y_hat: Array) -> float:
    first, second = margin_sums(votes, y_hat).moments(np.ones(votes.shape[1]))
    return 1 - first**2 / second if first > 0 else 1.0


CASES: dict[str, tuple[Callable[[int], World], dict[str, Any]]] = {
    "ties, Q fixed": (tie_world, {"learned": False, "n": 1000, "n_labeled": 0}),
    "ties, Q fixed, printed margin": (
        tie_world,
        {"learned": False, "n": 1000, "n_labeled": 0, "margin": "multiclass"},
    ),
    "noisy labels, Q learned": (
        noisy_world,
        {"learned": True, "n": 4000, "n_labeled": 20_000},
    ),
    "noisy labels, Q learned, Pinsker": (
        noisy_world,
        {"learned": True, "n": 4000, "n_labeled": 20_000, "inequality": "pinsker"},
    ),
    "noisy labels, Q fixed, printed weights": (
        noisy_world,
        {
            "learned": False,
            "n": 4000,
            "n_labeled": 20_000,
            "margin": "multiclass",
            "weighting": "predicted",
        },
    ),
}


def simulate(case: str, n_classes: int, draws: int, seed: int = 0) -> dict[str, object]:
    """One row of the table."""
    make, options = CASES[case]
    world, rng = make(n_classes), np.random.default_rng(seed)
    results = [one_draw(world, rng, **options) for _ in range(draws)]
    failed = sum(bound.value < error for error, bound, _, _ in results)
    interval = binomtest(failed, draws).proportion_ci(0.95)
    return {
        "world": case,
        "K": n_classes,
        "kind": results[0][1].kind,
        "draws": draws,
        "bound fails": failed,
        "95 % interval": f"[{interval.low:.4f}, {interval.high:.4f}]",
        "without radii fails": sum(plain < error for error, _, plain, _ in results),
        "matrix outside": sum(not covered for *_, covered in results),
        "mean error": f"{np.mean([error for error, *_ in results]):.3f}",
        "mean bound": f"{np.mean([bound.value for _, bound, *_ in results]):.3f}",
        "applies": sum(bound.applies for _, bound, *_ in results),
    }


def page(draws: int) -> Iterator[str]:
    rows = [simulate(case, k, draws) for case in CASES for k in (2, 5)]
    yield "# Coverage of the PAC-Bayes bounds\n"
    yield (
        f"Made by `make coverage`. With ε = {EPSILON} a guarantee may fail in at most "
        f"{EPSILON:.0%} of the draws. *Without radii* is the plug-in C-bound of the same sample: "
        "in the worlds with ties the C-bound equals the error, so it fails about every other "
        "time. *Matrix outside*: draws in which some entry of the mislabelling matrix left its "
        "interval.\n"
    )
    yield _page.table(rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--write", type=Path, help="also write the page to this file")
    options = parser.parse_args()
    text = "\n".join(page(options.draws))
    print(text)
    if options.write:
        _page.write(options.write, text)


if __name__ == "__main__":
    main()
