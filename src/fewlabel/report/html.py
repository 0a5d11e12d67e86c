"""The summary as one self-contained HTML page.

Nothing is loaded from anywhere, and the page forbids it to itself: its content security policy
allows no request, and no script but the one whose hash it names. Column names and labels are
untrusted text; the template engine escapes all of them.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
from importlib.resources import files
from typing import Any

from fewlabel.report import charts
from fewlabel.report.words import percent


def to_html(summary: dict[str, Any]) -> str:
    """Render the page."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise ImportError("The HTML report needs jinja2: pip install 'fewlabel[cli]'") from error

    environment = Environment(
        loader=PackageLoader("fewlabel.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = percent
    environment.globals["shade"] = charts.shade
    style, script = _part("report.css"), _part("report.js")
    return environment.get_template("report.html.j2").render(
        s=summary,
        c=charts,
        style=Markup(style),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data=Markup(json_for_html(_live_data(summary))),
        class_charts=[charts.class_chart(entry) for entry in summary["classes"]],
        error_chart=charts.error_bars(summary["errors"]),
        voter_chart=charts.voter_bars(summary["voters"]) if summary.get("voters") else None,
        download=_data_uri(label_next_csv(summary)),
        largest_count=max((max(r["n_selected_per_class"]) for r in summary["rounds"]), default=0),
        largest_risk=_largest_risk(summary["confusion"]),
    )


def _part(name: str) -> str:
    return (files("fewlabel.report") / "templates" / name).read_text(encoding="utf-8").strip()


def json_for_html(value: Any) -> str:
    """JSON that may stand inside a ``<script>`` element: no text in it can end the element."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _live_data(summary: dict[str, Any]) -> dict[str, Any]:
    """What the sliders need."""
    return {
        "classes": [
            {
                "curve": entry["curve"],
                "top": charts.class_chart(entry)["top"],
                "n_predicted": entry["n_predicted"],
            }
            for entry in summary["classes"]
        ],
        "n_unlabeled": summary["data"]["n_unlabeled"],
        "hidden": summary["hidden"],
        "plot": {
            "left": charts.LEFT,
            "right": charts.RIGHT,
            "base": charts.CURVE_BASE,
            "top": charts.CURVE_TOP,
        },
    }


def _largest_risk(confusion: dict[str, Any] | None) -> float:
    values = [v for row in (confusion or {"matrix": []})["matrix"] for v in row if v is not None]
    return min(1.0, max(values, default=0.0))


def label_next_csv(summary: dict[str, Any]) -> str:
    """The rows worth labelling next, as formula-safe CSV."""
    import pyarrow as pa

    from fewlabel.tables.csv_writing import write_csv

    entries = summary["label_next"]["rows"]
    keys = ["row", "label", "vote", "runner_up", "margin", "gain"]
    columns: dict[str, Any] = {key: pa.array([e[key] for e in entries]) for key in keys}
    for name in summary["label_next"]["columns"]:
        unique = name if name not in columns else f"{name} (table)"
        columns[unique] = pa.array([e["cells"][name] for e in entries], pa.string())
    file = io.StringIO()
    write_csv(pa.table(columns), file)
    return file.getvalue()


def _data_uri(text: str) -> str:
    return "data:text/csv;charset=utf-8;base64," + base64.b64encode(text.encode()).decode()
