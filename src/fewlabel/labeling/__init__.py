"""Which rows to ask a person about, and the page that asks.

The pure functions are for those who have a front end of their own: what to ask
(:func:`next_rows`), in a space where like rows are near (:func:`row_space`), and tasks for Label
Studio (:func:`label_studio_tasks`, :func:`label_studio_answers`).
"""

from fewlabel.labeling.choose import Asked, next_rows, random_rows, typical_rows, uncertain_rows
from fewlabel.labeling.label_studio import label_studio_answers, label_studio_tasks
from fewlabel.labeling.space import row_space

__all__ = [
    "Asked",
    "label_studio_answers",
    "label_studio_tasks",
    "next_rows",
    "random_rows",
    "row_space",
    "typical_rows",
    "uncertain_rows",
]
