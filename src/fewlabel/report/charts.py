"""Geometry of the report's pictures: numbers in, coordinates out, no markup.

All charts of a class share one axis, the vote from 0 to 1, with the slider below them.
"""

from __future__ import annotations

import math
from typing import Any

WIDTH, LEFT, RIGHT = 320.0, 6.0, 314.0
CURVE_TOP, CURVE_BASE = 14.0, 78.0
BARS_TOP, BARS_BASE = 92.0, 146.0
HEIGHT = 164.0

_NICE = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def x_of(vote: float) -> float:
    """Where a vote stands on the horizontal axis."""
    return round(LEFT + (RIGHT - LEFT) * vote, 2)


def class_chart(entry: dict[str, Any]) -> dict[str, Any]:
    """Curve of the bound over θ above, distribution of the votes below."""
    histogram, curve = entry["histogram"], entry["curve"]
    tallest = max(1, *histogram)
    step = (RIGHT - LEFT) / len(histogram)
    bars = []
    for k, n in enumerate(histogram):
        height = (BARS_BASE - BARS_TOP) * (n / tallest) ** 0.5 if n else 0.0
        bars.append(
            {
                "x": round(LEFT + k * step + 0.5, 2),
                "y": round(BARS_BASE - height, 2),
                "width": round(step - 1, 2),
                "height": round(height, 2),
                "from": k / len(histogram),
                "to": (k + 1) / len(histogram),
                "n": n,
            }
        )
    top = _top(curve["bound"]) if curve else 1.0
    chart: dict[str, Any] = {"bars": bars, "top": top, "path": "", "best": None}
    if curve:
        points = [(x_of(t), y_of(b, top)) for t, b in zip(curve["theta"], curve["bound"])]
        chart["path"] = "M" + "L".join(f"{x:g} {y:g}" for x, y in points)
        chart["best"] = {"x": points[curve["best"]][0], "y": points[curve["best"]][1]}
    return chart


def _top(bounds: list[float]) -> float:
    """A round number that most of the curve stays below."""
    typical = sorted(bounds)[int(0.9 * (len(bounds) - 1))]
    return next((value for value in _NICE if typical <= value), 1.0)


def y_of(bound: float, top: float) -> float:
    """Where a bound stands on the curve's vertical axis; what exceeds it is cut at its top."""
    return round(CURVE_BASE - (CURVE_BASE - CURVE_TOP) * min(bound / top, 1.0), 2)


def error_bars(errors: list[dict[str, Any]]) -> dict[str, Any]:
    """Bounds as bars, true errors as marks, on one axis."""
    values = [min(1.0, e["bound"]["value"] or 0) for e in errors]
    values += [e["true_error"] for e in errors if e.get("true_error") is not None]
    values += [min(1.0, e["guarantee"]["value"]) for e in errors if e.get("guarantee")]
    top = next((nice for nice in _NICE if max(values, default=1) <= nice), 1.0)
    return {
        "top": top,
        "rows": [
            {
                "entry": entry,
                "bound": _share(entry["bound"]["value"], top),
                "true": _share(entry.get("true_error"), top),
                "guarantee": _share((entry.get("guarantee") or {}).get("value"), top),
            }
            for entry in errors
        ],
    }


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
