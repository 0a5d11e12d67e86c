"""Geometry of the report's pictures: numbers in, coordinates out, no markup."""

from __future__ import annotations

import math
from typing import Any

WIDTH, LEFT, RIGHT = 320.0, 2.0, 318.0
TOP, BASE, HEIGHT = 4.0, 84.0, 86.0

_NICE = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)


def class_chart(entry: dict[str, Any], position: int) -> list[dict[str, Any]]:
    """Bars of a class: how many labels have which confidence, and how many of them are accepted.

    Parameters
    ----------
    entry : dict
        Of the summary's ``classes``.
    position : int
        The point of the promise's curve for which labels are accepted.
    """
    histogram = entry["histogram"]
    accepted = entry["accepted_histograms"][position]
    tallest = max(1, *histogram)
    step = (RIGHT - LEFT) / len(histogram)
    return [
        {
            "x": round(LEFT + k * step + 0.75, 2),
            "width": round(step - 1.5, 2),
            "bin": k,
            "n": n,
            "accepted": inside,
            "height": height_of(n, tallest),
            "accepted_height": height_of(inside, tallest),
        }
        for k, (n, inside) in enumerate(zip(histogram, accepted))
    ]


def height_of(n: int, tallest: int) -> float:
    """Height of a bar; the square root keeps small numbers visible. The page's script does so."""
    return round((BASE - TOP) * math.sqrt(n / tallest), 2)


def error_chart(summary: dict[str, Any]) -> dict[str, Any]:
    """Estimates with their limits, and true errors, on one axis that begins at 0."""
    promise, truth = summary["promise"], summary["truth"] or {}
    error, held = promise["error"], promise["held_out"]
    rows: list[dict[str, Any]] = [
        {"what": "new labels", "share": error, "true": truth.get("error"), "kind": "interval"},
        {
            "what": "accepted labels",
            "share": {"value": promise["accepted"]["expected_error"]},
            "true": truth.get("accepted_error"),
            "kind": "mean",
        },
    ]
    if held is not None:
        rows.append({"what": "held out: the first vote", "share": {"value": held["initial"]}})
        if held["self_learning"] is not None:
            share = {"value": held["self_learning"]}
            rows.append({"what": "held out: self-learning", "share": share})
    values = [row["share"].get(key) for row in rows for key in ("value", "high")]
    values += [row.get("true") for row in rows]
    most = max((value for value in values if value is not None), default=1.0)
    top = next((nice for nice in _NICE if most <= nice), 1.0)
    for row in rows:
        row["at"] = {key: _share(row["share"].get(key), top) for key in ("low", "value", "high")}
        row["true_at"] = _share(row.get("true"), top)
        row.setdefault("true", None)
    return {"top": top, "rows": rows}


def _share(value: float | None, top: float) -> float | None:
    return None if value is None else round(100 * min(value / top, 1.0), 2)


def voter_bars(voters: dict[str, Any]) -> dict[str, Any]:
    """Weights as bars from 0, accuracies as dots with their intervals on an axis of their own."""
    families = voters["families"]
    top = next(nice for nice in _NICE if max(f["weight"] for f in families) <= nice + 1e-9)
    accuracies = [a for a in (*(f["accuracy"] for f in families), voters["together"]) if a]
    low = math.floor(10 * min((a["low"] for a in accuracies), default=0.0)) / 10

    def place(accuracy: dict[str, Any] | None) -> dict[str, float] | None:
        if accuracy is None:
            return None
        return {
            k: round(100 * (accuracy[k] - low) / (1 - low), 2) for k in ("low", "value", "high")
        }

    return {
        "top": top,
        "low": low,
        "rows": [
            {"family": f, "weight": _share(f["weight"], top), "accuracy": place(f["accuracy"])}
            for f in families
        ],
        "together": place(voters["together"]),
    }


def shade(value: float | None, largest: float) -> float:
    """How strongly (in percent) to colour a cell; the square root keeps small values visible."""
    if not value or largest <= 0:
        return 0.0
    return round(100 * min(1.0, value / largest) ** 0.5, 1)
