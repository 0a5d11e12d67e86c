"""What Figures 2 to 6 need from one run of MSLA: bounds, true errors and calibration.

All of it is computed after the clock has stopped, from votes that the run made anyway.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

CONFIDENT = (20, 40, 60, 80, 100)
"""ρ of Figures 2 and 4: per cent of rows kept, the most confident first."""

RELAXATIONS = tuple(round(0.1 * step, 1) for step in range(11))
"""λ of Figures 3 and 4; the paper's Figure 3 starts at 0.1."""

N_BINS = 10
_DIGITS = 5


class Watched:
    """A policy that does what another one does and keeps what it saw, round by round."""

    def __init__(self, policy: Any) -> None:
        self.policy = policy
        self.rounds: list[tuple[Floats, Floats, Any]] = []

    def select(self, statistics: Any, iteration: int) -> Any:
        """Select as the watched policy does."""
        selection = self.policy.select(statistics, iteration)
        self.rounds.append((statistics.votes, statistics.label_proba, selection))
        return selection


def observe(model: Any, truth: Codes) -> dict[str, Any]:
    """Observations on a fitted self-learner whose policy was :class:`Watched`.

    Parameters
    ----------
    model : fitted SelfLearningClassifier
    truth : ndarray of shape (n_unlabeled,)
        True classes of the unlabelled rows, in their order in ``fit``.
    """
    unlabeled = model.labeled_iter_ != 0
    final = model.transduction_proba_[unlabeled]
    initial = model.policy.rounds[0][0]
    n_classes = max(int(truth.max()), int(model.classes_.max())) + 1
    # Of a class without a labelled row no vote ever speaks: its column is zero.
    votes = np.zeros((len(final), n_classes))
    votes[:, model.classes_] = final
    return {
        "rounds": _rounds(model, truth, model.labeled_iter_[unlabeled]),
        "calibration": {
            "initial": calibration(initial, truth == model.classes_[initial.argmax(axis=1)]),
            "final": calibration(votes, truth == votes.argmax(axis=1)),
        },
        "by_share": [by_share(votes, truth, share) for share in CONFIDENT],
        "by_relaxation": relaxation_trace(votes, truth),
    }


def calibration(votes: Floats, right: NDArray[np.bool_]) -> dict[str, list[float]]:
    """Rows, mean winning vote and accuracy in bins of equal width of the winning vote."""
    top = votes.max(axis=1)
    bins = np.minimum((top * N_BINS).astype(int), N_BINS - 1)
    rows = np.bincount(bins, minlength=N_BINS)
    safe = np.maximum(rows, 1)
    return {
        "rows": rows.tolist(),
        "vote": _rounded(np.bincount(bins, top, N_BINS) / safe),
        "accuracy": _rounded(np.bincount(bins, right, N_BINS) / safe),
    }


def _rounds(model: Any, truth: Codes, labeled_iter: Codes) -> list[dict[str, Any]]:
    """For each round: the rows left, their true error, and what the bounds say of it."""
    from fewlabel.bounds.table import bounds_table
    from fewlabel.bounds.transductive import conditional_error_bound

    out = []
    for index, (votes, proba, selection) in enumerate(model.policy.rounds, start=1):
        left = (labeled_iter == -1) | (labeled_iter >= index)
        wrong = model.classes_[votes.argmax(axis=1)] != truth[left]
        chosen = selection.mask(votes)
        entry = {
            "left": int(left.sum()),
            "selected": int(chosen.sum()),
            "error": _number(wrong.mean()),
            "bounds_table": {b.name: _number(b.value) for b in bounds_table(votes, proba)},
        }
        if chosen.any():
            theta = selection.thresholds
            entry["selected_error"] = _number(wrong[chosen].mean())
            entry["selected_bound"] = _number(
                conditional_error_bound(votes, proba, thresholds=theta)
            )
        out.append(entry)
    return out


def by_share(votes: Floats, truth: Codes, share: int) -> dict[str, Any]:
    """Oracle C-bound, CBIL and true error on the most confident rows (Figures 2 and 4)."""
    from fewlabel.bounds.cbound import c_bound

    n = max(1, round(len(votes) * share / 100))
    kept = np.argsort(-votes.max(axis=1), kind="stable")[:n]
    v, y = votes[kept], truth[kept]
    return {
        "share": share,
        "error": _number((v.argmax(axis=1) != y).mean()),
        "oracle": _unless_trivial(c_bound, v, y),
        "cbil": cbil(v, y, 0.0),
        "cbil_relaxed": cbil(v, y, 0.1),
    }


def relaxation_trace(votes: Floats, truth: Codes) -> list[float | None]:
    """CBIL on all rows for each λ (Figure 3)."""
    return [cbil(votes, truth, relaxation) for relaxation in RELAXATIONS]


def cbil(votes: Floats, truth: Codes, relaxation: float) -> float | None:
    r"""C-bound with imperfect labels, with the true mislabelling matrix of the pseudo-labels.

    .. math:: p_{i,j} = \frac{|\{x: \hat y(x)=i,\, y(x)=j\}|}{|\{x: y(x)=j\}|}, \qquad
        P(\hat Y=i\mid x) = p_{i,y(x)}

    The matrix is evaluated with the true labels, as in the paper's illustration, and the imperfect
    labels follow the mislabelling model with that matrix. (The pseudo-labels themselves would not:
    they always agree with the vote that made them, and the number falls below the error.)

    None where the bound does not apply: λ + δ ≤ 0 for a predicted class, or the first moment is
    not positive.
    """
    from fewlabel.bounds.cbound import c_bound_imperfect, smallest_relaxation
    from fewlabel.bounds.mislabeling import mislabeling_matrix

    K = votes.shape[1]
    counts = np.bincount(votes.argmax(axis=1) * K + truth, minlength=K * K).reshape(K, K)
    rows = counts.sum(axis=0)
    # Plain frequencies; only the column of a class of which no row is left leans on the others.
    matrix = np.where(rows > 0, counts / np.maximum(rows, 1), mislabeling_matrix(counts))
    if relaxation < smallest_relaxation(votes, matrix):
        return None
    imperfect = matrix[:, truth].T
    return _unless_trivial(c_bound_imperfect, votes, imperfect, matrix, relaxation=relaxation)


def _unless_trivial(bound: Callable[..., float], *args: Any, **options: Any) -> float | None:
    from fewlabel.bounds.cbound import TrivialBoundWarning

    with warnings.catch_warnings():
        warnings.simplefilter("error", TrivialBoundWarning)
        try:
            return _number(bound(*args, **options))
        except TrivialBoundWarning:
            return None


def _number(value: Any) -> float:
    return round(float(value), _DIGITS)


def _rounded(values: Any) -> list[float]:
    return [_number(value) for value in values]
