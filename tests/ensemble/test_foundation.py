"""Foundation models as voters: a stand-in, and TabICL with random weights where it is installed."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB

from fewlabel import FewLabelClassifier, SelfLearningClassifier
from fewlabel.ensemble.families import OPTIONAL, families_of
from fewlabel.ensemble.family_trainer import FamilyTrainer
from fewlabel.ensemble.foundation import limits_of, why_it_failed

X, Y = load_iris(return_X_y=True)
TARGET = np.where(np.arange(150) % 5 == 0, Y, -1)


class TabICLClassifier(GaussianNB):
    """Stands in for the real one: it has its name and takes what we give it."""

    def __init__(self, n_estimators=8, random_state=42, n_jobs=None, fails=False):
        super().__init__()
        self.n_estimators, self.random_state, self.n_jobs = n_estimators, random_state, n_jobs
        self.fails = fails

    def fit(self, X, y):
        if self.fails:
            raise RuntimeError("Cannot reach the hub.")
        return super().fit(X, y)


def fit(*voters: object) -> FewLabelClassifier:
    return FewLabelClassifier(["svm", *voters], random_state=0).fit(X, TARGET)


def test_a_foundation_model_votes_by_name(monkeypatch):
    stand_in = SimpleNamespace(TabICLClassifier=TabICLClassifier)
    monkeypatch.setitem(sys.modules, "tabicl", stand_in)
    clf = fit("tabicl")
    record = clf.voters_[1]
    assert (record.name, record.title, record.left_out) == ("tabicl", "TabICL", "")
    assert record.weight > 0.1
    # It is asked once: rounds leave its votes as they are.
    assert clf.estimator_.estimators[1] is clf.initial_estimator_.estimators[1]


def test_without_its_package_it_has_no_vote(monkeypatch):
    monkeypatch.setitem(sys.modules, "tabicl", None)
    with pytest.warns(
        UserWarning, match=r"TabICL is left out: it needs the package tabicl .*foundation"
    ):
        clf = fit("tabicl")
    assert [v.name for v in clf.estimator_.estimators] == ["svm"]


def test_without_its_weights_it_has_no_vote():
    message = r"left out: its model could not be used \(Cannot reach the hub\); its weights are"
    with pytest.warns(UserWarning, match=message):
        clf = fit(TabICLClassifier(fails=True))
    assert [v.name for v in clf.estimator_.estimators] == ["svm"]


def test_errors_of_other_estimators_are_errors():
    class Broken(GaussianNB):
        def fit(self, X, y):
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        fit(Broken())


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("most_classes", "at most 2 classes, not 3"),
        ("most_features", "at most 2 features, not 4"),
        ("most_labeled", "at most 2 labelled rows, not 30"),
    ],
)
def test_beyond_its_limits_it_is_left_out(field, message):
    (family,) = families_of([TabICLClassifier()])
    assert family.most_features == OPTIONAL["tabicl"].most_features == 2_000
    object.__setattr__(family, field, 2)
    bench = FamilyTrainer(X, TARGET, 3, seed=0)
    assert message in bench.reason_to_leave_out(family, None, 100)


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("TabICLClassifier", {"most_labeled": 100_000, "most_features": 2_000}),
        ("TabPFNClassifier", {"most_labeled": 10_000, "most_features": 500, "most_classes": 10}),
        ("GaussianNB", {}),
    ],
)
def test_the_tables_that_the_authors_say_it_is_made_for(name, limits):
    found = limits_of(type(name, (), {})())
    assert {field: value for field, value in found.items() if field != "package"} == limits


@pytest.mark.parametrize(
    ("error", "said"), [(OSError("no\n route."), "(no route)"), (OSError(), "(OSError)")]
)
def test_what_is_told_of_a_failure(error, said):
    assert said in why_it_failed("tabicl", error)


def test_a_foundation_model_can_be_the_only_voter():
    clf = SelfLearningClassifier(TabICLClassifier(), pseudo_weight="uniform", random_state=0)
    clf.fit(X, TARGET)
    assert (clf.transduction_ == Y).mean() > 0.9


# --- the real one --------------------------------------------------------------------------------


@pytest.fixture
def real(tmp_path):
    """TabICL with a small network of random weights."""
    tabicl = pytest.importorskip("tabicl")
    torch = pytest.importorskip("torch")
    from tabicl._model.tabicl import TabICL

    config = {
        "max_classes": 10, "embed_dim": 16, "col_num_blocks": 1, "col_nhead": 2, "col_num_inds": 8,
        "row_num_blocks": 1, "row_nhead": 2, "row_num_cls": 2, "icl_num_blocks": 1, "icl_nhead": 2,
    }  # fmt: skip
    torch.manual_seed(0)
    path = tmp_path / "random.ckpt"
    torch.save({"config": config, "state_dict": TabICL(**config).state_dict()}, path)
    return tabicl.TabICLClassifier(n_estimators=2, model_path=path, device="cpu", random_state=0)


def test_the_real_class_votes(real):
    clf = fit(("tabicl", real))
    record = clf.voters_[1]
    assert not record.left_out
    assert 0.0 <= record.accuracy <= 1.0
    # Random weights know nothing: whoever knows something has the vote.
    assert record.weight < clf.voters_[0].weight
    assert (clf.transduction_ == Y).mean() > 0.85


def test_the_real_class_learns_by_itself(real):
    clf = SelfLearningClassifier(real, pseudo_weight="uniform", random_state=0, max_iter=1)
    clf.fit(X, TARGET)
    assert clf.predict(X[:5]).shape == (5,)


def test_the_real_class_without_weights(real, tmp_path):
    real.set_params(model_path=tmp_path / "none.ckpt", allow_auto_download=False)
    with pytest.warns(UserWarning, match="left out: its model could not be used"):
        fit(("tabicl", real))
