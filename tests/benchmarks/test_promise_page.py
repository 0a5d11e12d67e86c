"""The study of the promise: splits, records, page."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import promise, promise_data, promise_page
from fewlabel.assess.error_estimate import ErrorEstimate
from fewlabel.assess.limits import Share


def test_a_split_is_random_and_small():
    split = promise_data.split("wine", 4, 4000, max_unlabeled=50)
    assert split.labeled.sum() == 12
    assert (~split.labeled).sum() == 50
    assert promise_data.split("wine", 60, 4000) is None


def test_labels_can_be_drawn_within_classes():
    split = promise_data.split("wine", 4, 4000, max_unlabeled=50, draw="per class")
    assert np.bincount(split.y[split.labeled]).tolist() == [4, 4, 4]
    assert (~split.labeled).sum() == 50
    assert promise_data.split("wine", 30, 4000, draw="per class") is None


@pytest.mark.parametrize("name", promise_data.SYNTHETIC)
def test_synthetic_sets_are_drawn_anew(name):
    one, two = promise_data.load(name, 1), promise_data.load(name, 2)
    assert one[0].shape == two[0].shape
    assert not np.array_equal(one[0], two[0])


def fake_classifier(y, labeled):
    class Fake:
        shares = (Share(0.1, 0.05, 0.2), Share(float("nan"), 0.0, 1.0), Share(0.9, 0.8, 1.0))
        error_ = ErrorEstimate(0.1, 0.05, 0.2, 12, "", shares, shares)
        risk_bound_ = 0.3
        classes_ = np.arange(3)

        def set_params(self, labels):
            self.labels = labels
            return self

        def fit(self, X, target):
            self.initial_votes_ = self.label_proba_ = np.full(((~labeled).sum(), 3), 1 / 3)
            self.transduction_ = np.where(np.arange(len(y)) % 10 == 0, (y + 1) % 3, y)
            self.transduction_proba_ = np.full((len(y), 3), 1 / 3)
            self.confidence_ = np.full(len(y), 0.9)
            return self

        def accept(self, max_error):
            return np.arange(len(y)) % 10 != 0

    return Fake()


def test_records_and_page(tmp_path, monkeypatch):
    _, y, labeled = promise_data.split("wine", 4, 4000)
    monkeypatch.setattr(promise.data, "make", lambda base, seed: fake_classifier(y, labeled))
    record = promise.measure(("wine", 4, 4000, "tree", "random"))
    assert record["truth"] == pytest.approx(0.1, abs=0.03)
    assert record["accept"]["wrong"] == 0
    assert record["accept"]["rows"] + round(record["truth"] * record["unlabeled"]) == len(y) - 12
    # The second class has no statement, the others have one in ten wrong.
    assert record["classes"]["n"] == 2
    assert record["classes"]["below"] == 1
    assert record["prevalence"]["below"] == 1
    path = tmp_path / "promise.jsonl"
    path.write_text(json.dumps(record) + '\n{"data": "cut o')
    assert promise.read_records(path) == [record]
    text = promise_page.page([record])
    assert "| wine | 1 |" in text
    stratified = promise.measure(("wine", 4, 4000, "tree", "per class"))
    assert stratified["as random"]["value"] == stratified["value"]
    assert "some of each class" in promise_page.page([record, stratified])
    promise_page.write_page([record], tmp_path / "page.md")
    assert (tmp_path / "page.md").read_text() == text
    with pytest.raises(ValueError, match="no record"):
        promise_page.write_page([], tmp_path / "page.md")


def test_what_is_measured_is_not_measured_again(tmp_path, monkeypatch):
    done = {"data": "wine", "per_class": 4, "seed": 4000, "base": "tree", "draw": "random"}
    monkeypatch.setattr(promise, "read_records", lambda path=None: [done])
    asked = []

    class Pool:
        def __init__(self, *args, **options): ...
        def __enter__(self):
            return self

        def __exit__(self, *error): ...
        def submit(self, function, spec):
            asked.append(spec)
            return SimpleNamespace(result=lambda: {**done, "seed": spec[2]})

    monkeypatch.setattr(promise, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr(promise, "as_completed", lambda futures: futures)
    old, new = ("wine", 4, 4000, "tree", "random"), ("wine", 4, 4001, "tree", "random")
    promise.run([old, new], 1, tmp_path / "promise.jsonl")
    assert asked == [new]
    assert json.loads((tmp_path / "promise.jsonl").read_text())["seed"] == 4001


def _fit(seed, base, truth):
    limits = {"value": 0.2, "low": 0.1, "high": 0.3, "bound": 0.2, "clopper_pearson_width": 0.2}
    key = {"data": "wine", "per_class": 10, "seed": seed, "base": base, "draw": "random"}
    return {**key, "truth": truth, "labeled": 30, **limits}


def test_the_page_begins_with_how_often_the_limits_hold():
    fits = [_fit(s, "mixed vote", t) for s, t in ((4000, 0.2), (4001, 0.35), (4002, 0.05))]
    fits += [_fit(4000, "tree", 0.2)]
    text = promise_page._result(fits)
    assert "Of 3 fits of `FewLabelClassifier` 33.3 % had more wrong labels" in text
    assert "33.3 % fewer than the lower one" in text
    assert "off by 0.100 on average" in text
    assert "Of all 4 fits it was 25.0 % and 25.0 %." in text
    assert "3 for mixed vote; 1 for tree." in promise_page._splits(fits)
    assert "(seeds 4000 to 4002): 3 for each" in promise_page._splits(fits[:3])
    outside, *_ = promise_page._goals(fits)
    assert (outside["all"], outside["mixed vote"]) == ("50.0 %", "66.7 %")
