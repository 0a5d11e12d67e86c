"""Which rows to ask a person about, and the page that asks.

The pure functions are for those who have a front end of their own: what to ask
(:func:`next_rows`), in a space where like rows are near (:func:`row_space`), and tasks for Label
Studio (:func:`label_studio_tasks`, :func:`label_studio_answers`).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fewlabel.labeling.choose import Asked, next_rows, random_rows
    from fewlabel.labeling.influence import informative_rows
    from fewlabel.labeling.label_studio import label_studio_answers, label_studio_tasks
    from fewlabel.labeling.space import row_space

# Imported on first use: the store of answers opens without scikit-learn.
_HOME = {
    "Asked": "choose",
    "informative_rows": "influence",
    "label_studio_answers": "label_studio",
    "label_studio_tasks": "label_studio",
    "next_rows": "choose",
    "random_rows": "choose",
    "row_space": "space",
}

__all__ = [
    "Asked",
    "informative_rows",
    "label_studio_answers",
    "label_studio_tasks",
    "next_rows",
    "random_rows",
    "row_space",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"fewlabel.labeling.{_HOME[name]}"), name)
    raise AttributeError(f"module 'fewlabel.labeling' has no attribute {name!r}")
