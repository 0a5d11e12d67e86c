"""How often the guarantees of an audit fail, and how many checks they need:
``python -m benchmarks.audit_coverage --write docs/audit.md``.

The true number of wrong labels is known in a simulated table, so failures can be counted. Each
audit is made by the library's functions. The tables of checks are computed, not simulated.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest

from benchmarks._page import put, table
from fewlabel import (
    accept_with_audit,
    audit_sample,
    checks_needed,
    hypergeometric_limits,
)
from fewlabel.assess.audit import percent_up
from fewlabel.assess.audit_limits import PRIOR, intersected, ratio_limits
from fewlabel.assess.audit_plans import (
    allowed_wrong,
    limit_if_none_wrong,
    stopping_distribution,
    stopping_times,
)

DELTA = 0.05
Array = np.ndarray[Any, Any]
Row = dict[str, Any]

FIXED = [
    (rows, checked, share)
    for rows, checked in ((300, 60), (1581, 60), (20_000, 200))
    for share in (0.01, 0.03, 0.1)
]
SEQUENTIAL = [(300, 300, 0.03), (1500, 200, 0.0), (1500, 200, 0.03), (1500, 200, 0.1)]
SITUATIONS = [
    (0.02, 0.005),
    (0.05, 0.0),
    (0.05, 0.01),
    (0.05, 0.02),
    (0.08, 0.03),
    (0.1, 0.03),
    (0.1, 0.05),
    (0.2, 0.1),
]
PRIORS = [(a, b) for a in (0.25, 0.5, 1.0, 2.0) for b in (1.0, 5.0, 10.0, 20.0, 30.0, 50.0)]


@cache
def upper(rows: int, checked: int, wrong: int) -> int:
    """The exact limit; the same few counts come up in thousands of audits."""
    return hypergeometric_limits(rows, checked, wrong, confidence=1 - DELTA).high


def interval(failed: int, draws: int) -> str:
    low, high = binomtest(failed, draws).proportion_ci(0.95)
    return f"[{low:.4f}, {high:.4f}]"


def fixed_coverage(draws: int, seed: int) -> list[Row]:
    rng = np.random.default_rng(seed)
    found = []
    for rows, checked, share in FIXED:
        wrong = round(share * rows)
        drawn = rng.hypergeometric(wrong, rows - wrong, checked, draws)
        limits = np.array([upper(rows, checked, int(k)) for k in drawn])
        failed = int((limits < wrong).sum())
        found.append(
            {
                "labels": f"{rows:,}",
                "wrong": f"{share:.0%}",
                "checked": checked,
                "audits": f"{draws:,}",
                "limit below the truth": failed,
                "95 % interval": interval(failed, draws),
                "mean limit": f"{limits.mean() / rows:.1%}",
            }
        )
    return found


def sequential_coverage(draws: int, seed: int) -> list[Row]:
    rng = np.random.default_rng(seed)
    return [sequential_case(rng, draws, *case) for case in SEQUENTIAL]


def sequential_case(
    rng: np.random.Generator, draws: int, rows: int, longest: int, share: float
) -> Row:
    wrong = round(share * rows)
    # The limits after t checks depend on how many were wrong: one table serves all audits.
    t = np.arange(1, longest + 1)
    counts = np.arange(min(wrong, longest) + 1)
    possible = np.minimum(counts, t[:, None])
    lows, highs = ratio_limits(rows, np.repeat(t, len(counts)), possible.ravel(), DELTA)
    lows, highs = lows.reshape(possible.shape), highs.reshape(possible.shape)
    above = either = fixed = 0
    for _ in range(draws):
        found = np.cumsum((rng.permutation(rows) < wrong)[:longest])
        low, high = intersected(lows[t - 1, found], highs[t - 1, found])
        above += bool((high < wrong).any())
        either += bool(((high < wrong) | (low > wrong)).any())
        looks = zip(range(10, longest + 1, 10), found[9::10])
        fixed += any(upper(rows, n, int(k)) < wrong for n, k in looks)
    return {
        "labels": f"{rows:,}",
        "wrong": f"{share:.0%}",
        "stopped within": longest,
        "audits": f"{draws:,}",
        "upper limit ever below the truth": above,
        "95 % interval": interval(above, draws),
        "either limit": either,
        "failures of the fixed plan's limit, read every 10 rows": fixed,
    }


SHAPES: dict[str, Callable[[Array], Array]] = {
    "10 % wrong, most of them among the least confident": lambda position: 0.4 * position**3,
    "5 % wrong, most of them among the least confident": lambda position: 0.2 * position**3,
    "just above the goal everywhere": lambda position: np.full(len(position), 0.0525),
    "confidences say nothing, 8 % wrong": lambda position: np.full(len(position), 0.08),
    "errors in one narrow range": lambda position: np.where(abs(position - 0.55) < 0.05, 0.6, 0.0),
}


def acceptance(draws: int, seed: int) -> list[Row]:
    rng = np.random.default_rng(seed)
    rows, goal, found = 2000, 0.05, []
    position = (np.arange(rows) + 0.5) / rows
    for name, shape in SHAPES.items():
        for size in (100, 300):
            share, failed = [], 0
            for _ in range(draws):
                wrong = rng.random(rows) < shape(position)
                audited = audit_sample(rows, size, rng)
                answer = accept_with_audit(-position, audited, wrong[audited], goal, DELTA)
                share.append(answer.rows / rows)
                failed += bool(answer.rows) and bool(wrong[answer.mask].mean() > goal)
            found.append(
                {
                    "labels": name,
                    "checked": size,
                    "audits": f"{draws:,}",
                    "more than 5 % of the accepted wrong": failed,
                    "95 % interval": interval(failed, draws),
                    "accepted on average": f"{np.mean(share):.0%}",
                }
            )
    return found


def needed(rows: int) -> list[Row]:
    found = []
    for goal, wrong in SITUATIONS:
        row = {"goal, at most": f"{goal:.0%}", "true share wrong": f"{wrong:.1%}"}
        for plan in ("fixed", "sequential"):
            for power in (0.5, 0.8):
                checks = checks_needed(rows, goal, wrong, plan=plan, power=power)
                row[f"{plan}, {power:.0%}"] = f"{checks:,}"
        found.append(row)
    return found


def none_wrong(rows: int) -> list[Row]:
    return [
        {
            "checked, none wrong": checked,
            "fixed: at most": percent_up(limit_if_none_wrong(rows, checked)),
            "sequential: at most": percent_up(
                limit_if_none_wrong(rows, checked, plan="sequential")
            ),
        }
        for checked in (20, 40, 60, 100, 200, 500)
    ]


def priors(rows: int) -> list[Row]:
    """Checks of the sequential plan over those of the fixed one, for each prior."""
    fixed = [checks_needed(rows, goal, wrong) for goal, wrong in SITUATIONS]
    found = []
    for prior in PRIORS:
        ratios = [
            sequential_checks(rows, goal, wrong, prior) / checks
            for (goal, wrong), checks in zip(SITUATIONS, fixed)
        ]
        found.append((float(np.exp(np.mean(np.log(ratios)))), max(ratios), prior))
    return [
        {
            "prior (a, b)": f"({a:g}, {b:g})" + (" **used**" if (a, b) == PRIOR else ""),
            "mean ratio": f"{mean:.2f}",
            "largest ratio": f"{largest:.2f}",
        }
        for mean, largest, (a, b) in sorted(found)[:6]
    ]


def sequential_checks(rows: int, goal: float, wrong: float, prior: tuple[float, float]) -> int:
    too_many = allowed_wrong(rows, goal) + 1
    stops = stopping_times(rows, too_many, too_many, DELTA, prior)
    reached = stopping_distribution(rows, round(wrong * rows), stops)
    return int(np.argmax(reached >= 0.8))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.audit_coverage", description=__doc__
    )
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", help="make this table only; may be repeated")
    parser.add_argument("--write", type=Path, help="also write the tables into this page")
    options = parser.parse_args()
    draws, seed = options.draws, options.seed
    tables: dict[str, Callable[[], list[Row]]] = {
        "needed": lambda: needed(5000),
        "none wrong": lambda: none_wrong(5000),
        "fixed": lambda: fixed_coverage(draws, seed),
        "sequential": lambda: sequential_coverage(draws, seed),
        "accepted": lambda: acceptance(max(1, draws // 5), seed),
        "priors": lambda: priors(5000),
    }
    for name in options.only or tables:
        text = table(tables[name]())
        print(f"{name}\n\n{text}\n", flush=True)
        if options.write:
            put(options.write, name, text)


if __name__ == "__main__":
    main()
