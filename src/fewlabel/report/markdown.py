"""The summary as Markdown, for issues, wikis and terminals."""

from __future__ import annotations

import re
from typing import Any

from fewlabel.report.words import percent


def to_markdown(summary: dict[str, Any]) -> str:
    """Render the page; untrusted text cannot become markup."""
    parts = [f"# {text(summary['title'])}", " ".join(text(s) for s in summary["headline"])]
    for title, section in (
        ("Errors and their bounds", _errors(summary)),
        ("Who votes", _voters(summary)),
        ("Classes", _classes(summary)),
        ("Rounds", _rounds(summary)),
        ("Rows worth labelling next", _label_next(summary)),
        ("Columns", _columns(summary)),
    ):
        if section:
            parts += [f"## {title}", section]
    parts += ["## Assumptions and warnings", text(summary["assumption"])]
    items = summary["warnings"] + summary["notes"]
    if items:
        parts.append("\n".join(f"- {text(item)}" for item in items))
    parts.append(f"Made by fewlabel {text(summary['made_by']['fewlabel'])}.")
    return "\n\n".join(parts) + "\n"


def text(value: object) -> str:
    """Untrusted text with everything escaped that Markdown or HTML could take for markup."""
    plain = re.sub(r"\s*[\r\n\t]\s*", " ", str(value))
    plain = re.sub(r"([\\`*_\[\]|~])", r"\\\1", plain)
    # A heading, a quote or a list would begin a line.
    plain = re.sub(r"^\s*([#+>=-])", r"\\\1", plain)
    plain = re.sub(r"^\s*(\d+)([.)])(?=\s)", r"\1\\\2", plain)
    return plain.replace("&", "&amp;").replace("<", "&lt;")


def _table(head: list[str], rows: list[list[str]]) -> str:
    if not rows:
        return ""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _bound(bound: dict[str, Any] | None) -> str:
    return "–" if bound is None else f"{percent(bound['value'])} ({bound['kind']})"


def _errors(summary: dict[str, Any]) -> str:
    known = any("true_error" in entry for entry in summary["errors"])
    head = ["labels of", "bound"] + (["true error", "bound from the truth"] if known else [])
    rows = []
    for entry in summary["errors"]:
        row = [text(entry["what"]), _bound(entry["bound"])]
        if known:
            row += [percent(entry["true_error"]), _bound(entry["guarantee"])]
        rows.append(row)
    return _table(head, rows)


def _voters(summary: dict[str, Any]) -> str:
    voters = summary.get("voters")  # reports of earlier versions have none
    if not voters:
        return ""
    rows = [
        [
            text(family["title"]),
            text(f"left out: {family['left_out']}")
            if family["left_out"]
            else percent(family["weight"]),
            _accuracy(family["accuracy"]),
        ]
        for family in voters["families"]
    ]
    rows.append(["all together", "", _accuracy(voters["together"])])
    table = _table(["family", "weight Q", "held-out accuracy"], rows)
    return f"{table}\n\n{text(voters['caveat'])}"


def _accuracy(accuracy: dict[str, Any] | None) -> str:
    if accuracy is None:
        return "–"
    low, high = percent(accuracy["low"], 0), percent(accuracy["high"], 0)
    return f"{percent(accuracy['value'])} ({accuracy['kind']}, 95 % interval {low} to {high})"


def _classes(summary: dict[str, Any]) -> str:
    rows = [
        [
            text(entry["name"]),
            f"{entry['n_given']:,}",
            f"{entry['n_predicted']:,}",
            f"{entry['n_trusted']:,}",
            f"{entry['threshold']:.3f}",
            _bound(entry["bound"]),
        ]
        for entry in summary["classes"]
    ]
    head = ["class", "given", "predicted", "trusted", "threshold", "bound of the trusted"]
    return _table(head, rows)


def _rounds(summary: dict[str, Any]) -> str:
    rows = [
        [
            str(entry["round"]),
            f"{entry['n_left']:,}",
            f"{entry['n_selected']:,}",
            f"{entry['threshold_low']:.2f}–{entry['threshold_high']:.2f}",
            _bound(entry["bound"]),
            f"{entry['seconds']:.1f}",
        ]
        for entry in summary["rounds"]
    ]
    return _table(["round", "rows left", "trusted", "thresholds", "bound", "seconds"], rows)


def _label_next(summary: dict[str, Any]) -> str:
    rows = [
        [
            str(entry["row"]),
            text(entry["label"]),
            f"{entry['vote']:.3f}",
            text(entry["runner_up"]),
            f"{entry['margin']:.3f}",
        ]
        for entry in summary["label_next"]["rows"][:10]
    ]
    return _table(["row", "label", "vote", "runner-up", "margin"], rows)


def _columns(summary: dict[str, Any]) -> str:
    rows = [
        [text(column["name"]), text(column["kind"]), text(column["treatment"])]
        for column in summary["data"].get("columns", [])
    ]
    return _table(["column", "taken for", "treatment"], rows)
