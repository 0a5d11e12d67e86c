"""The summary as Markdown, for issues, wikis and terminals."""

from __future__ import annotations

import re
from typing import Any

from fewlabel.report.words import about, goal, held_out_words, interval, percent, proof_words


def to_markdown(summary: dict[str, Any]) -> str:
    """Render the page; untrusted text cannot become markup."""
    parts = [f"# {text(summary['title'])}", " ".join(text(s) for s in summary["headline"])]
    for title, section in (
        ("How wrong are the labels?", _errors(summary)),
        ("Which labels can be taken as they are?", _curve(summary)),
        ("Who votes", _voters(summary)),
        ("Classes", _classes(summary)),
        ("Rounds", _rounds(summary)),
        ("The paper's bounds", _bounds(summary)),
        ("Rows worth labelling next", _label_next(summary)),
        ("Columns", _columns(summary)),
    ):
        if section:
            parts += [f"## {title}", section]
    parts.append("## Assumptions and warnings")
    if summary["promise"]:
        parts.append(text(f"The estimate assumes: {summary['promise']['error']['assumes']}."))
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


def _errors(summary: dict[str, Any]) -> str:
    promise, truth = summary["promise"], summary["truth"]
    if not promise:
        return ""
    error, expected = promise["error"], promise["accepted"]["expected_error"]
    wrong = "–" if error["value"] is None else f"about {about(error['value'])} ({interval(error)})"
    rows = [["new labels", wrong], ["accepted labels", f"about {about(expected)}"]]
    if truth:
        rows[0].append(percent(truth["error"]))
        rows[1].append(percent(truth["accepted_error"]))
    head = ["labels", "wrong (estimate)"] + (["true error"] if truth else [])
    words = held_out_words(promise)
    return _table(head, rows) + (f"\n\n{text(words)}" if words else "")


def _curve(summary: dict[str, Any]) -> str:
    rows = [
        [
            goal(point["max_error"]),
            f"{point['n']:,}",
            f"{point['expected_wrong']:.0f}",
            percent(point["lowest_confidence"]),
            "–" if point["checks"] is None else f"{point['checks']:,}",
        ]
        for point in (summary["promise"] or {"curve": []})["curve"]
    ]
    head = ["error allowed", "rows accepted", "about wrong", "lowest confidence"]
    table = _table([*head, "random checks to prove it"], rows)
    words = proof_words(summary["promise"]["accepted"]) if rows else ""
    return f"{table}\n\nFor the accepted labels: {text(words)}." if rows else ""


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
            f"{entry['n_labeled']:,}",
            f"{entry['n_accepted']:,}",
            _share(entry["error"]),
            _share(entry["prevalence"]),
            _share(entry.get("recall")),  # reports of earlier versions have none
        ]
        for entry in summary["classes"]
    ]
    head = ["class", "given", "labelled", "accepted", "of the labels wrong", "share of the rows"]
    return _table([*head, "recall"], rows)


def _share(share: dict[str, Any] | None) -> str:
    return "–" if share is None else f"about {about(share['value'])} ({interval(share)})"


def _rounds(summary: dict[str, Any]) -> str:
    known = any("true_error" in entry for entry in summary["rounds"])
    rows = [
        [
            str(entry["round"]),
            f"{entry['n_left']:,}",
            f"{entry['n_selected']:,}",
            f"{entry['threshold_low']:.2f}–{entry['threshold_high']:.2f}",
            about(entry["estimated_error"]),
            *([percent(entry["true_error"])] if known else []),
            f"{entry['seconds']:.1f}",
        ]
        for entry in summary["rounds"]
    ]
    head = ["round", "rows left", "pseudo-labelled", "thresholds", "about wrong"]
    return _table([*head, *(["true error"] if known else []), "seconds"], rows)


def _bounds(summary: dict[str, Any]) -> str:
    bounds = summary["bounds"]
    if not bounds:
        return ""
    rows = [
        [row["name"], f"{row['value']:.3f}" if row["applies"] else "does not apply"]
        for row in bounds["table"]
    ]
    if bounds["true_error"] is not None:
        rows.append(["true error, where known", f"{bounds['true_error']:.3f}"])
    return f"{text(bounds['assumption'])}\n\n{_table(['bound', 'value'], rows)}"


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
