"""The summary as one self-contained HTML page.

Nothing is loaded from anywhere, and the page forbids it to itself: its content security policy
allows no request, and no script but the one whose hash it names. Column names and labels are text
from strangers; the template engine escapes all of them.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
from importlib.resources import files
from typing import Any

from fewlabel.report import charts, words


def to_html(summary: dict[str, Any]) -> str:
    """Render the page."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup

        download = _data_uri(label_next_csv(summary))
    except ImportError as error:
        raise ImportError(
            f"The HTML report needs {error.name}: pip install 'fewlabel[cli]'"
        ) from error

    environment = Environment(
        loader=PackageLoader("fewlabel.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name in ("percent", "about", "interval", "goal"):
        environment.filters[name] = getattr(words, name)
    environment.globals["shade"] = charts.shade
    style, script = _part("report.css"), _part("report.js")
    return environment.get_template("report.html.j2").render(
        s=summary,
        c=charts,
        glossary=words.GLOSSARY,
        style=Markup(style),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data=Markup(json_for_html(_live_data(summary))),
        download=download,
        **_pictures(summary),
    )


def _pictures(summary: dict[str, Any]) -> dict[str, Any]:
    promise, voters, bounds = summary["promise"], summary.get("voters"), summary["bounds"]
    confusion = bounds["confusion"]["matrix"] if bounds else []
    position = _position(summary)
    return {
        "error_chart": charts.error_chart(summary) if promise else None,
        "points": [_reading(summary, point) for point in promise["curve"]] if promise else [],
        "position": position,
        "class_charts": [
            charts.class_chart(entry, position) if promise else [] for entry in summary["classes"]
        ],
        "held_out": words.held_out_words(promise) if promise else "",
        "changed": words.changed_words(summary),
        "voter_chart": charts.voter_bars(voters) if voters else None,
        "largest_count": max(
            (max(r["n_selected_per_class"]) for r in summary["rounds"]), default=0
        ),
        "largest_risk": min(
            1.0, max((v for row in confusion for v in row if v is not None), default=0.0)
        ),
    }


def _position(summary: dict[str, Any]) -> int:
    """Where the report's own error stands on the curve."""
    promise = summary["promise"]
    if not promise:
        return 0
    errors = [point["max_error"] for point in promise["curve"]]
    return errors.index(promise["accepted"]["max_error"])


def _reading(summary: dict[str, Any], point: dict[str, Any]) -> dict[str, str]:
    """What the page shows for one position of the slider, in words."""
    n, wrong = f"{point['n']:,}", round(point["expected_wrong"])
    expected = f"about {wrong:,}" if wrong else "hardly any"
    share = words.percent(point["share"], 0)
    return {
        "goal": words.goal(point["max_error"]),
        "n": n,
        "share": share,
        "wrong": expected if point["n"] else "none",
        "error": words.about(point["expected_error"]),
        "confidence": words.percent(point["lowest_confidence"]),
        "proof": words.proof_words(point),
        "fewest": "–" if point["checks"] is None else f"{point['checks_if_none_wrong']:,}",
        "spoken": (
            f"{words.goal(point['max_error'])} wrong labels allowed: {n} rows accepted, "
            f"{expected if point['n'] else 'none'} of them wrong"
        ),
    }


def _part(name: str) -> str:
    return (files("fewlabel.report") / "templates" / name).read_text(encoding="utf-8").strip()


def json_for_html(value: Any) -> str:
    """JSON that may stand inside a ``<script>`` element: no text in it can end the element."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _live_data(summary: dict[str, Any]) -> dict[str, Any]:
    """What the slider looks up."""
    if not summary["promise"]:
        return {"points": []}
    return {
        "points": [_reading(summary, point) for point in summary["promise"]["curve"]],
        "classes": [
            {"tallest": max(1, *entry["histogram"]), "accepted": entry["accepted_histograms"]}
            for entry in summary["classes"]
        ],
        "plot": {"top": charts.TOP, "base": charts.BASE},
    }


def label_next_csv(summary: dict[str, Any]) -> str:
    """The rows worth labelling next, as formula-safe CSV."""
    import pyarrow as pa

    from fewlabel.tables.csv_writing import write_csv

    entries = summary["label_next"]["rows"]
    keys = ["row", "label", "vote", "runner_up", "margin"]
    columns: dict[str, Any] = {key: pa.array([e[key] for e in entries]) for key in keys}
    for name in summary["label_next"]["columns"]:
        unique = name if name not in columns else f"{name} (table)"
        columns[unique] = pa.array([e["cells"][name] for e in entries], pa.string())
    file = io.StringIO()
    write_csv(pa.table(columns), file)
    return file.getvalue()


def _data_uri(text: str) -> str:
    return "data:text/csv;charset=utf-8;base64," + base64.b64encode(text.encode()).decode()
