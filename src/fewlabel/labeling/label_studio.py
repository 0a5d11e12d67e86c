"""Label Studio's JSON: tasks with predictions out, its export in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fewlabel._core.errors import UserError, shorten

ROW = "fewlabel_row"
"""Field of a task's data with the position of its row, from 0."""

WHY = "fewlabel_why"
"""Field of a task's data that says why the row is asked for."""


class StudioAnswer(NamedTuple):
    """A label from an export.

    Attributes
    ----------
    row : int
        Position, from 0.
    label : str
    why : str
        Why the row was asked for, as it stood in the task; empty if it did not.
    who : str
    """

    row: int
    label: str
    why: str = ""
    who: str = ""


def label_studio_tasks(
    cells: Sequence[Mapping[str, Any]],
    rows: ArrayLike,
    votes: ArrayLike | None = None,
    classes: Sequence[Any] = (),
    *,
    reasons: Sequence[str] | None = None,
    from_name: str = "label",
    to_name: str = "row",
) -> list[dict[str, Any]]:
    """Tasks to import into Label Studio, with what the model believes as predictions.

    Parameters
    ----------
    cells : sequence of mappings
        Names and values of each row to ask for.
    rows : array-like of int
        Their positions in the table, from 0.
    votes : array-like of shape (n_rows, n_classes), optional
        Of these rows. Without them the tasks have no predictions.
    classes : sequence, optional
        Names of the classes, in the order of the votes.
    reasons : sequence of str, optional
        Why each row is asked for, see :class:`fewlabel.labeling.choose.Asked`. It travels with the
        task, so that chosen rows are known as such when they come back.
    from_name, to_name : str, default="label", "row"
        Names of the ``<Choices>`` tag, and of the tag that it labels, in the labelling interface.

    Returns
    -------
    tasks : list of dict
        ``json.dump`` writes them.

    See Also
    --------
    label_studio_answers : Reads the export.

    Examples
    --------
    >>> tasks = label_studio_tasks([{"age": 4}], [17], [[0.25, 0.75]], ["a", "b"])
    >>> tasks[0]["data"], tasks[0]["predictions"][0]["score"]
    ({'age': 4, 'fewlabel_row': 17}, 0.75)
    """
    positions = np.asarray(rows, dtype=np.intp)
    proba = None if votes is None else np.asarray(votes, dtype=np.float64)
    if len(cells) != len(positions) or (proba is not None and len(proba) != len(positions)):
        raise ValueError(
            f"cells, rows and votes must be about the same rows. Got {len(cells)}, "
            f"{len(positions)} and {'none' if proba is None else len(proba)}."
        )
    tasks = []
    for i, row in enumerate(positions):
        data = {**cells[i], ROW: int(row)}
        if reasons is not None:
            data[WHY] = reasons[i]
        task: dict[str, Any] = {"data": data}
        if proba is not None:
            best = int(proba[i].argmax())
            task["predictions"] = [
                {
                    "model_version": "fewlabel",
                    "score": round(float(proba[i, best]), 6),
                    "result": [_choice(str(classes[best]), from_name, to_name)],
                }
            ]
        tasks.append(task)
    return tasks


def _choice(label: str, from_name: str, to_name: str) -> dict[str, Any]:
    return {
        "from_name": from_name,
        "to_name": to_name,
        "type": "choices",
        "value": {"choices": [label]},
    }


def label_studio_answers(export: Any, *, from_name: str = "label") -> list[StudioAnswer]:
    """Labels from a Label Studio export, JSON or JSON-MIN, of tasks that fewlabel wrote.

    Parameters
    ----------
    export : list of dict
        What ``json.load`` read.
    from_name : str, default="label"
        Name of the ``<Choices>`` tag.

    Returns
    -------
    answers : list of StudioAnswer
        One for each annotation with exactly one choice; cancelled and empty ones are left out.

    Examples
    --------
    >>> label_studio_answers([{"fewlabel_row": 17, "label": "b", "annotator": 1}])
    [StudioAnswer(row=17, label='b', why='', who='1')]
    """
    if not isinstance(export, list):
        raise UserError(
            f"A Label Studio export is a list of tasks. Got {type(export).__name__}.",
            "Export the project as JSON or JSON-MIN.",
        )
    found: list[StudioAnswer] = []
    for number, task in enumerate(export, 1):
        data = task.get("data", task) if isinstance(task, dict) else {}
        row = data.get(ROW) if isinstance(data, dict) else None
        if isinstance(row, bool) or not isinstance(row, int) or row < 0:
            raise UserError(
                f"Task {number} of the export has no row number in '{ROW}': got '{shorten(row)}'.",
                "Import tasks that fewlabel exported, and keep their fields.",
            )
        why = str(data.get(WHY, ""))
        try:
            labels = _labels(task, from_name)
        except (AttributeError, KeyError, TypeError):
            raise UserError(
                f"Task {number} of the export has annotations of another form.",
                "Export the project as JSON or JSON-MIN.",
            ) from None
        found += [StudioAnswer(row, label, why, who) for label, who in labels]
    return found


def _labels(task: dict[str, Any], from_name: str) -> list[tuple[str, str]]:
    """Labels of a task and who gave them."""
    if "annotations" not in task:  # JSON-MIN
        label = task.get(from_name)
        return [(label, str(task.get("annotator", "")))] if isinstance(label, str) else []
    labels = []
    for annotation in task["annotations"]:
        if annotation.get("was_cancelled"):
            continue
        choices = [
            choice
            for result in annotation.get("result", [])
            if result.get("from_name") == from_name and result.get("type") == "choices"
            for choice in result["value"]["choices"]
        ]
        if len(choices) == 1:
            labels.append((str(choices[0]), str(annotation.get("completed_by", ""))))
    return labels
