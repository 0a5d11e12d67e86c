"""The paper's bounds in the summary, called what they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewlabel._core.arrays import Ints
from fewlabel.report.fit_view import FitView
from fewlabel.report.truth import Truth

_STANDS_FOR = {
    "supervised": "the votes of the first, supervised classifier",
    "current": "the votes of the classifier itself",
    "uniform": "equal probabilities of all classes",
}
_TWO_CLASSES = " For two classes TB equals the plug-in error, the mean of 1 − P(label|x)."


def bounds_of(view: FitView, known: Truth | None, shown: Ints) -> dict[str, Any] | None:
    """The table of ``clf.bounds()`` and the bound of the confusion matrix.

    Parameters
    ----------
    view : FitView
    known : Truth, optional
    shown : ndarray of int
        The classes whose confusion is shown.
    """
    if not view.n_unlabeled:
        return None
    return {
        "assumption": bounds_assumption(view),
        "power": view.clf.paper_bounds_.power,
        "table": [
            {"name": bound.name, "value": bound.value, "applies": bound.applies}
            for bound in view.clf.bounds()
        ],
        "true_error": None if known is None else known.error(),
        "confusion": _confusion(view, known, shown),
    }


def bounds_assumption(view: FitView) -> str:
    """What the numbers are, and what they assume."""
    choice, power = view.clf.label_proba, view.clf.paper_bounds_.power
    source = _STANDS_FOR.get(choice) if isinstance(choice, str) else None
    source = source or "the given label probabilities"
    if power != 1.0:
        source += f", calibrated on held-out labelled rows (power {power:.2f}),"
    text = (
        f"Bounds of the expected error if {source} were the true P(Y|x). They are not, so all of "
        f"this is estimated; read the estimate above first."
    )
    return text + (_TWO_CLASSES if view.n_classes == 2 else "")


def _confusion(view: FitView, known: Truth | None, shown: Ints) -> dict[str, Any]:
    cut = np.ix_(shown, shown)
    entry: dict[str, Any] = {
        "names": [str(name) for name in view.clf.classes_[shown]],
        "matrix": view.clf.confusion_bound_[cut].tolist(),
    }
    if known is not None:
        entry["true"] = known.confusion()[cut].tolist()
    return entry
