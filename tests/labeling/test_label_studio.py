"""Tasks for Label Studio and its exports."""

from __future__ import annotations

import json

import pytest

from fewlabel._core.errors import UserError
from fewlabel.labeling import label_studio_answers, label_studio_tasks

TASKS = label_studio_tasks(
    [{"age": 4, "text": "<b>"}, {"age": 5, "text": ""}],
    [17, 3],
    [[0.2, 0.8], [0.9, 0.1]],
    ["a", "b"],
    reasons=["random", "uncertain"],
)


def annotated(task, *labels, **more):
    result = [task["predictions"][0]["result"][0] | {"value": {"choices": list(labels)}}]
    return task | {"annotations": [{"result": result, "completed_by": 7, **more}]}


def test_tasks_are_json_with_predictions():
    assert json.loads(json.dumps(TASKS)) == TASKS
    first = TASKS[0]["predictions"][0]
    assert first["score"] == 0.8
    assert first["result"][0]["value"] == {"choices": ["b"]}
    assert TASKS[1]["data"] == {
        "age": 5, "text": "", "fewlabel_row": 3, "fewlabel_why": "uncertain"
    }  # fmt: skip


def test_an_export_comes_back():
    export = [annotated(TASKS[0], "a"), annotated(TASKS[1], "b")]
    found = label_studio_answers(export)
    assert [(a.row, a.label, a.why, a.who) for a in found] == [
        (17, "a", "random", "7"),
        (3, "b", "uncertain", "7"),
    ]


def test_answers_that_are_none_are_left_out():
    cancelled = annotated(TASKS[0], "a", was_cancelled=True)
    assert label_studio_answers([cancelled, annotated(TASKS[1])]) == []
    assert label_studio_answers([annotated(TASKS[1], "a", "b")]) == []


def test_the_short_export_comes_back():
    short = [{"fewlabel_row": 3, "label": "b"}, {"fewlabel_row": 4}]
    assert [(a.row, a.label) for a in label_studio_answers(short)] == [(3, "b")]


@pytest.mark.parametrize("export", [{}, [{}], [{"data": {"fewlabel_row": "x"}}], [3]])
def test_other_files_are_refused(export):
    with pytest.raises(UserError):
        label_studio_answers(export)


@pytest.mark.parametrize(
    "annotations",
    [
        3,
        [3],
        [{"result": 3}],
        [{"result": [3]}],
        [{"result": [{"from_name": "label", "type": "choices"}]}],
    ],
)
def test_annotations_of_another_form_are_refused(annotations):
    with pytest.raises(UserError, match="Task 1 of the export has annotations of another form"):
        label_studio_answers([TASKS[0] | {"annotations": annotations}])


def test_arguments_must_fit():
    with pytest.raises(ValueError, match="same rows"):
        label_studio_tasks([{}], [1, 2])
