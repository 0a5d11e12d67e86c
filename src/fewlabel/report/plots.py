"""Pictures of a fitted classifier with matplotlib, in the manner of scikit-learn's displays.

Each display is made by ``from_estimator``, holds the numbers it shows, and can be drawn again on
other axes by ``plot``. Bounds in them are of the expected error if the calibrated votes were the
true probabilities P(Y|x): estimates.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from fewlabel._core.arrays import Floats
from fewlabel.bounds.thresholds import ThresholdCurve, threshold_curves
from fewlabel.report.fit_view import pseudo_label_doubts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BOUND, _VOTES, _REST = "#b4491a", "#0d7a70", "#d9dcd8"


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'fewlabel[cli]'") from error
    return plt


def _axes(ax: Axes | None) -> Axes:
    return _pyplot().subplots()[1] if ax is None else ax


@dataclass
class ThresholdDisplay:
    """The bound of each class over its threshold, and how the votes are distributed.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
    curves : list of ThresholdCurve
    thresholds : ndarray of shape (n_classes,)
        Where each curve is lowest.
    votes : list of ndarray
        Winning votes of the first classifier, for each class that it predicts.
    figure_, axes_ : what ``plot`` drew on
    """

    classes: NDArray[Any]
    curves: list[ThresholdCurve]
    thresholds: Floats
    votes: list[Floats]
    figure_: Any = field(default=None, repr=False)
    axes_: Any = field(default=None, repr=False)

    @classmethod
    def from_estimator(cls, clf: Any) -> Self:
        """Draw the curves of a fitted SelfLearningClassifier, by its calibrated votes."""
        check_is_fitted(clf)
        if not hasattr(clf, "labeled_iter_"):
            raise ValueError(
                "The classifier was fitted with `unlabeled`, whose rows are not kept: there are no "
                "votes to draw."
            )
        first = clf.initial_votes_
        curves = threshold_curves(first, clf.label_proba_) if len(first) else []
        best = [curve.best() for curve in curves]
        thresholds = [
            1.0 if k is None else float(curve.thresholds[k]) for k, curve in zip(best, curves)
        ]
        winner, highest = first.argmax(axis=1), first.max(axis=1, initial=0.0)
        votes = [highest[winner == j] for j in range(len(clf.classes_))]
        return cls(clf.classes_, curves, np.array(thresholds), votes).plot()

    def plot(self, figure: Figure | None = None) -> Self:
        """Draw one small picture for each class."""
        n_columns = min(4, max(1, len(self.curves)))
        n_rows = -(-max(1, len(self.curves)) // n_columns)
        size = (3.2 * n_columns, 2.4 * n_rows)
        if figure is None:
            figure = _pyplot().figure(figsize=size, layout="constrained")
        self.figure_ = figure
        self.axes_ = self.figure_.subplots(n_rows, n_columns, sharex=True, squeeze=False)
        for ax in self.axes_.flat[len(self.curves) :]:
            ax.set_visible(False)
        for j, (curve, ax) in enumerate(zip(self.curves, self.axes_.flat)):
            self._draw(ax, curve, j)
        return self

    def _draw(self, ax: Axes, curve: ThresholdCurve, j: int) -> None:
        ax.set(title=str(self.classes[j]), xlim=(0, 1), ylim=(0, 1), xlabel="vote")
        if len(curve.thresholds):
            heights, edges = np.histogram(self.votes[j], bins=40, range=(0, 1))
            colours = [_VOTES if edge >= self.thresholds[j] else _REST for edge in edges[1:]]
            tallest = heights.max()
            ax.bar(edges[:-1], 0.4 * heights / tallest, 0.023, color=colours, align="edge")
            ax.plot(curve.thresholds, np.minimum(curve.bound, 1), color=_BOUND, label="bound")
            ax.axvline(self.thresholds[j], color="0.3", linestyle=":")


@dataclass
class RoundsDisplay:
    """About how many pseudo-labels of each round are wrong, and how many rows it took.

    Attributes
    ----------
    n_selected : list of int
    estimated_errors : list of float
        Mean doubt, 1 − calibrated confidence, about the pseudo-labels of each round.
    ax_, figure_ : what ``plot`` drew on
    """

    n_selected: list[int]
    estimated_errors: list[float]
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    @classmethod
    def from_estimator(cls, clf: Any, *, ax: Axes | None = None) -> Self:
        """Draw the rounds of a fitted SelfLearningClassifier."""
        check_is_fitted(clf)
        n_selected = [record["n_selected"] for record in clf.history_]
        return cls(n_selected, pseudo_label_doubts(clf)).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw rows as bars and errors as a line."""
        ax = _axes(ax)
        rounds = np.arange(1, len(self.n_selected) + 1)
        ax.bar(rounds, self.n_selected, color=_VOTES, width=0.6)
        ax.set(xlabel="round", ylabel="rows pseudo-labelled", xticks=rounds)
        other = ax.twinx()
        other.plot(rounds, self.estimated_errors, "o-", color=_BOUND)
        other.set(ylim=(0, 1), ylabel="about wrong (estimate)")
        self.ax_, self.figure_ = ax, ax.figure
        return self


@dataclass
class ConfusionBoundDisplay:
    """The bound on the confusion matrix as a heat map.

    Attributes
    ----------
    confusion : ndarray of shape (n_classes, n_classes)
        Row: true class; column: predicted class.
    classes : ndarray of shape (n_classes,)
    ax_, figure_ : what ``plot`` drew on
    """

    confusion: Floats
    classes: NDArray[Any]
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    @classmethod
    def from_estimator(cls, clf: Any, *, ax: Axes | None = None) -> Self:
        """Draw ``confusion_bound_`` of a fitted SelfLearningClassifier."""
        check_is_fitted(clf)
        return cls(clf.confusion_bound_, clf.classes_).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the matrix; entries above 1 say nothing and are shown as 1."""
        ax = _axes(ax)
        image = ax.imshow(np.minimum(self.confusion, 1), cmap="Oranges", vmin=0)
        ticks = np.arange(len(self.classes))
        ax.set_xticks(ticks, [str(name) for name in self.classes])
        ax.set_yticks(ticks, [str(name) for name in self.classes])
        ax.set(xlabel="predicted", ylabel="true", title="bound of the expected share (estimate)")
        ax.figure.colorbar(image, ax=ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
