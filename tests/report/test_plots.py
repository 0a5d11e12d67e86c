"""Displays show the numbers of the estimator."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.ensemble import RandomForestClassifier

from fewlabel import SelfLearningClassifier

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(scope="module")
def fitted():
    X, y = make_blobs(200, 4, centers=3, cluster_std=3.0, random_state=0)
    target = np.where(np.arange(200) < 20, y, -1)
    forest = RandomForestClassifier(30, random_state=0)
    clf = SelfLearningClassifier(forest, random_state=0).fit(X, target)
    return clf, X, target


@pytest.fixture(autouse=True)
def _no_open_figures():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def test_thresholds(fitted):
    from fewlabel import threshold_curves
    from fewlabel.report.plots import ThresholdDisplay

    clf = fitted[0]
    display = ThresholdDisplay.from_estimator(clf)
    curves = threshold_curves(clf.initial_votes_, clf.label_proba_)
    drawn = [ax for ax in display.axes_.flat if ax.get_visible()]
    assert [ax.get_title() for ax in drawn] == ["0", "1", "2"]
    for j, ax in enumerate(drawn):
        curve, threshold = ax.get_lines()
        np.testing.assert_allclose(curve.get_ydata(), np.minimum(curves[j].bound, 1))
        assert threshold.get_xdata()[0] == curves[j].thresholds[curves[j].best()]


def test_rounds_and_confusion(fitted):
    from fewlabel.report.plots import ConfusionBoundDisplay, RoundsDisplay

    clf = fitted[0]
    rounds = RoundsDisplay.from_estimator(clf)
    heights = [bar.get_height() for bar in rounds.ax_.patches]
    assert heights == [record["n_selected"] for record in clf.history_]
    errors = [entry["estimated_error"] for entry in clf.report().summary["rounds"]]
    assert rounds.estimated_errors == pytest.approx(errors)
    confusion = ConfusionBoundDisplay.from_estimator(clf, ax=rounds.ax_)
    shown = confusion.ax_.images[0].get_array()
    np.testing.assert_allclose(shown, np.minimum(clf.confusion_bound_, 1))


@pytest.mark.parametrize("name", ["ThresholdDisplay", "RoundsDisplay", "ConfusionBoundDisplay"])
def test_without_matplotlib_the_extra_is_named(name, fitted, monkeypatch):
    from fewlabel.report import plots

    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"fewlabel\[cli\]"):
        getattr(plots, name).from_estimator(fitted[0])
