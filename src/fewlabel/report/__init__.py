"""The report of a fit: data → summary → HTML, JSON or Markdown (``report.save("report.html")``).

>>> import numpy as np
>>> from sklearn.datasets import load_iris
>>> from fewlabel import SelfLearningClassifier
>>> X, y = load_iris(return_X_y=True)
>>> given = np.arange(len(y)) % 10 == 0
>>> target = np.where(given, y, -1)
>>> clf = SelfLearningClassifier(random_state=0).fit(X, target)
>>> report = clf.report(y_true=y)  # a notebook shows it
>>> report.summary["data"]["n_labeled"]
15
"""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any, Self

from fewlabel._core.atomic import replaced
from fewlabel._core.errors import UserError
from fewlabel.report.summarize import summarize

__all__ = ["FORMATS", "Report", "render"]

FORMATS = ("html", "json", "md")


def render(summary: dict[str, Any], kind: str) -> str:
    """The text of a report in one of ``FORMATS``."""
    if kind == "html":
        from fewlabel.report.html import to_html

        return to_html(summary)
    if kind == "md":
        from fewlabel.report.markdown import to_markdown

        return to_markdown(summary)
    if kind == "json":
        return json.dumps(summary, indent=1, ensure_ascii=False) + "\n"
    raise UserError(f"'{kind}' is not a format of the report.", f"Use one of {', '.join(FORMATS)}.")


def format_of(path: Path) -> str:
    """The format that a file's name asks for."""
    kind = {".htm": "html", ".markdown": "md"}.get(path.suffix.lower(), path.suffix.lower()[1:])
    if kind not in FORMATS:
        raise UserError(
            f"'{path}' does not tell the format of the report.",
            "Let its name end in .html, .json or .md.",
        )
    return kind


class Report:
    """What a fit learned. Shown in a notebook; ``save`` writes HTML, JSON or Markdown.

    Parameters
    ----------
    summary : dict
        As made by :func:`fewlabel.report.summarize.summarize`.
    """

    def __init__(self, summary: dict[str, Any]) -> None:
        self.summary = summary

    @classmethod
    def of(cls, clf: Any, **options: Any) -> Self:
        """The report of a fitted classifier; options are those of ``summarize``."""
        return cls(summarize(clf, **options))

    def save(self, path: str | Path) -> Path:
        """Write the report; the ending (.html, .json, .md) tells the format."""
        path = Path(path)
        text = render(self.summary, format_of(path))
        with replaced(path) as part:
            part.write_text(text, encoding="utf-8")
        return path

    def _repr_html_(self) -> str:
        # A frame of its own keeps the notebook's styles and the report's apart.
        page = escape(render(self.summary, "html"))
        return (
            f'<iframe title="fewlabel report" srcdoc="{page}" '
            f'style="width:100%;height:720px;border:0;border-radius:12px"></iframe>'
        )

    def __repr__(self) -> str:
        return "\n".join(self.summary["headline"])
