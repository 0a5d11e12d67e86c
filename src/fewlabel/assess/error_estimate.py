r"""About how many of the labels are wrong: one number with limits, after every fit.

The evidence are *held-out votes*: votes for the labelled rows by voters that did not see their
labels. Five corrections make a good estimate of them:

- Q, the weights of the voters, was learned from the same rows, which makes them look better than
  they are. So Q is learned anew on bootstrap samples and judged on the rows outside, as in BBC-CV
  (:func:`fewlabel.assess.out_of_sample.out_of_sample_errors`).
- Held-out voters learned from fewer rows than the classifier itself; its error is a bit smaller.
- A labelled row that is the only one of its class stands for classes nobody has labelled yet: it
  counts as wrong (the Good-Turing estimate of what is unseen).
- The unlabelled rows have votes, too: the mean doubt of calibrated votes counts as if it came from
  a few more labelled rows.
- A few labelled rows that are all right do not mean that nothing is wrong: an error that is common
  on other tables counts as a few rows, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from fewlabel._core.arrays import Bools
from fewlabel._core.checks import check_codes, check_votes
from fewlabel.assess.calibration import Confidence, calibrated, match_confidence
from fewlabel.assess.limits import (
    Share,
    about_percent,
    kish_size,
    of_finite_population,
    share,
    share_limits,
)
from fewlabel.assess.out_of_sample import JudgedRows, WeightRule, judge
from fewlabel.assess.prevalence import (
    DRAWN_LIMITS,
    ClassShares,
    labeled_shares,
    prevalence_draws,
    sampled_prevalence,
    shifted,
)
from fewlabel.bounds.statistics import Floats, Ints

Labels = Literal["random", "per class"]

# Chosen by `python -m benchmarks.promise_study scan --seeds 1000 3999`.
_CURVE = 0.4  # the error falls about like n**-0.4
_DOUBT_ROWS = 20.0  # labelled rows that the mean doubt of the unlabelled rows is worth
_PRIOR_ROWS, _PRIOR_ERROR = 4.0, 0.3  # an error that is common, and its weight
_MORE_ROWS = 2.0  # what it adds to the rows behind the limits
_CAUTION = 0.2  # how far from the estimate to its upper limit the cautious error is

# Not measured: the doubt about the rows of one class counts as a few rows.
_CLASS_ROWS = 4.0

ASSUMES: dict[str, str] = {
    "known shares": "labelled rows are random within their class; class shares are those given",
    "random": "labelled rows are a random sample of all rows",
    "per class": "labelled rows are random within their class; class shares are estimated",
}


@dataclass(frozen=True)
class ErrorEstimate:
    """The share of wrong labels, estimated.

    Attributes
    ----------
    value : float
        The estimate; NaN without a labelled row that could be judged.
    low, high : float
        95 % limits.
    n : int
        Labelled rows behind it.
    assumes : str
        What must hold for it.
    per_class : tuple of Share
        For each class the share of wrong labels among rows labelled with it, with limits.
    prevalence : tuple of Share
        For each class its share of the unlabelled rows, with limits.
    recall : tuple of Share
        For each class the share of its rows that get its label, with limits; NaN where no labelled
        row of it could be judged.
    safe : bool
        False if a check speaks against the assumption.
    notes : tuple of str
        What the checks found.

    Examples
    --------
    >>> print(ErrorEstimate(0.052, 0.021, 0.093, 120, "random labels"))
    about 5 % wrong (2–9 %)
    """

    value: float
    low: float
    high: float
    n: int
    assumes: str
    per_class: tuple[Share, ...] = ()
    prevalence: tuple[Share, ...] = ()
    recall: tuple[Share, ...] = ()
    safe: bool = True
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not np.isfinite(self.value):
            return "unknown: no labelled row could be judged"
        low, high = about_percent(self.low), about_percent(self.high)
        text = f"about {about_percent(self.value)} % wrong ({low}–{high} %)"
        return text if self.safe else f"{text}, unsafe: {'; '.join(self.notes)}"

    def flagged(self, *notes: str, safe: bool = False) -> ErrorEstimate:
        """The same estimate with notes of checks, unsafe unless it is said to be safe."""
        return replace(self, safe=self.safe and safe, notes=self.notes + notes)


# --- the estimate -----------------------------------------------------------------------------


class Assessment(NamedTuple):
    """What is known of the labels of the unlabelled rows.

    Attributes
    ----------
    error : ErrorEstimate
    confidence : Confidence
        ``confidence.of(first_votes, predicted)``: the chance that each label is right. Its mean
        over the unlabelled rows is 1 − ``error.value``.
    cautious : Confidence
        The same for an error between the estimate and its upper limit; what
        :func:`fewlabel.assess.accept.accept_mask` should be given.
    """

    error: ErrorEstimate
    confidence: Confidence
    cautious: Confidence


def assess_labels(
    held_out: Floats,
    y: Ints,
    first_votes: Floats,
    predicted: Ints,
    *,
    weights: WeightRule | None = None,
    errors: Floats | None = None,
    trained_share: float = 1.0,
    labels: Labels = "random",
    sample: Bools | None = None,
    class_shares: ClassShares | None = None,
    n_resamples: int = 300,
    random_state: int = 0,
) -> Assessment:
    r"""Estimate the share of wrong labels among the unlabelled rows, and the confidence in each.

    .. math:: \hat e = \frac{l\,s^{0.4}\,\bar e + m\,\bar d + 4\cdot 0.3}{l + m + 4}

    with the mean out-of-sample error :math:`\bar e` of the l labelled rows, the share s of them
    that a held-out voter learned from, and the mean doubt :math:`\bar d` about the labels of the
    unlabelled rows, by temperature-scaled first votes, which counts as m = 20 rows. An error of
    30 % counts as 4 rows: a few rows that are all right prove little. The limits are those of
    Clopper and Pearson.

    Parameters
    ----------
    held_out : ndarray of shape (n_voters, n_labeled, n_classes) or (n_labeled, n_classes)
        Votes for the labelled rows by voters that did not see their labels. Zeros: no vote.
    y : ndarray of int of shape (n_labeled,)
        Codes of the given labels.
    first_votes : ndarray of shape (n_unlabeled, n_classes)
        Votes of the classifier that learned from the given labels only.
    predicted : ndarray of int of shape (n_unlabeled,)
        Codes of the labels whose error is estimated.
    weights : callable, optional
        How Q is learned, see :data:`fewlabel.assess.out_of_sample.WeightRule`. Needed with two or
        more voters.
    errors : ndarray of shape (n_labeled,), optional
        Whether the label that the whole procedure gives each labelled row without its label is
        wrong, if that is known; by default whether the held-out vote is.
    trained_share : float, default=1.0
        Share of the labelled rows that held-out voters learned from: 0.8 for 5 folds, 1 for
        out-of-bag votes.
    labels : {"random", "per class"}, default="random"
        How rows were chosen for labelling: at random, or some of each class.
    sample : ndarray of bool of shape (n_labeled,), optional
        The labelled rows that stand for the table. Others teach the voters and Q, but were chosen
        because they are hard, say, and would bias the estimate. All rows by default.
    class_shares : ClassShares, optional
        Shares of the table that the user knows, and those that the votes are for.
    n_resamples : int, default=300
    random_state : int, default=0

    Returns
    -------
    assessment : Assessment
        The error estimate, and the confidence in each label.

    See Also
    --------
    fewlabel.assess.accept.accept_mask : which labels can be taken as they are.
    fewlabel.assess.sampling_checks.check_sampling : whether the labelled rows are like the others.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=540)
    >>> said = np.where(rng.random(540) < 0.9, truth, 1 - truth)
    >>> votes = 0.8 * np.eye(2)[said] + 0.1
    >>> found = assess_labels(votes[:40], truth[:40], votes[40:], said[40:])
    >>> print(found.error)
    about 16 % wrong (6–31 %)
    >>> round(float((said[40:] != truth[40:]).mean()), 2)
    0.08
    >>> round(float(found.confidence.of(votes[40:], said[40:]).mean()), 2)
    0.84
    """
    votes = held_out[None] if held_out.ndim == 2 else held_out
    codes = check_codes(y, votes.shape[2], votes.shape[1])
    rows = judge(votes, codes, weights, n_resamples=n_resamples, random_state=random_state)
    rows = _standing_for_the_table(rows, errors, sample)
    first = check_votes(first_votes)
    judged, assumes = _sample_of(rows, first, predicted, labels, class_shares or ClassShares())
    n_judged = len(judged.rows.y)
    if n_judged == 0:
        unknown = ErrorEstimate(float("nan"), 0.0, 1.0, 0, assumes)
        cautious = match_confidence(first, predicted, 1.0)
        return Assessment(unknown, Confidence(1.0), cautious)
    n = kish_size(judged.weight)
    doubt = 1.0 - judged.seen * float(_of_label(judged.proba, predicted).mean())
    error = float(np.average(judged.rows.errors, weights=judged.weight)) * trained_share**_CURVE
    value = _all_that_is_known(n, error, doubt)
    n_limits = _with_variance(value, n + _MORE_ROWS, judged.variance)
    low, high = share_limits(value, of_finite_population(n_limits, len(first)))

    confidence = _matched(judged, predicted, value)
    cautious = _matched(judged, predicted, value + _CAUTION * (high - value))
    per_class = class_errors(judged, predicted, confidence.of(first, predicted), trained_share)
    by_class = per_class, judged.prevalence, class_recalls(rows, first.shape[1], trained_share)
    estimate = ErrorEstimate(value, low, high, n_judged, assumes, *by_class)
    return Assessment(estimate, confidence, cautious)


def _all_that_is_known(n: float, error: float, doubt: float) -> float:
    """The error of n rows, the doubt about the others and what is common, as one mean."""
    rows = [n, _DOUBT_ROWS, _PRIOR_ROWS]
    return float(np.average([error, doubt, _PRIOR_ERROR], weights=rows))


def _standing_for_the_table(
    rows: JudgedRows, errors: Floats | None, sample: Bools | None
) -> JudgedRows:
    rows = rows if errors is None else rows._replace(errors=errors)
    return rows if sample is None else rows.take(sample)


class _Sample(NamedTuple):
    """Judged rows as a sample of the table, and label probabilities of the unlabelled rows."""

    rows: JudgedRows
    weight: Floats
    first: Floats
    proba: Floats
    seen: float
    variance: float
    prevalence: tuple[Share, ...]
    shift: tuple[float, ...] | None
    own: tuple[float, ...] | None


def _matched(judged: _Sample, predicted: Ints, error: float) -> Confidence:
    """Confidence in labels whose mean doubt is this error."""
    seen, shift = judged.seen, judged.shift
    rule = match_confidence(judged.first, predicted, error, seen=seen, shift=shift)
    return replace(rule, own=judged.own)


def _sample_of(
    rows: JudgedRows, first: Floats, predicted: Ints, labels: Labels, shares: ClassShares
) -> tuple[_Sample, str]:
    """The judged rows as a sample, and what that assumes."""
    if shares.table is not None:
        return _class_samples(rows, first, shares), ASSUMES["known shares"]
    if labels == "random":
        return _random_sample(rows, first, predicted, shares), ASSUMES[labels]
    return _class_samples(rows, first, shares), ASSUMES[labels]


def _random_sample(
    rows: JudgedRows, first: Floats, predicted: Ints, shares: ClassShares
) -> _Sample:
    # Rows whose class has no other label stand for classes without any (Good-Turing).
    seen = float(rows.voted.mean()) if len(rows.y) else 1.0
    prevalence = sampled_prevalence(rows.y, rows.winner, predicted, first.shape[1])
    own, first = _for_labeled_shares(rows, first, shares)
    proba = calibrated(first, own.power)
    weight, ratios = np.ones(len(rows.y)), shares.ratios(rows.y)
    return _Sample(rows, weight, first, proba, seen, 0.0, prevalence, None, ratios)


def _for_labeled_shares(
    rows: JudgedRows, first: Floats, shares: ClassShares
) -> tuple[JudgedRows, Floats]:
    """Votes for the class shares of the labelled rows, which calibration compares them with."""
    ratios = shares.ratios(rows.y)
    if ratios is None:
        return rows, first
    voted, own = rows.voted, rows.votes.copy()
    own[voted] = shifted(own[voted], np.asarray(ratios))
    return rows._replace(votes=own), shifted(first, np.asarray(ratios))


def _class_samples(rows: JudgedRows, first: Floats, shares: ClassShares) -> _Sample:
    n_classes = first.shape[1]
    trained = labeled_shares(rows.y, n_classes)
    own, first = _for_labeled_shares(rows, first, shares)
    proba = calibrated(first, own.power)
    if shares.table is None:
        draws = prevalence_draws(rows.y, own.winner, first.argmax(axis=1), n_classes)
        found = draws.mean(axis=0)
    else:
        found, draws = shares.table, shares.table[None]
    low, high = np.quantile(draws, DRAWN_LIMITS, axis=0)
    prevalence = tuple(
        Share(float(p), float(min(p, a)), float(max(p, b))) for p, a, b in zip(found, low, high)
    )
    # A class with one label is no sign of classes without any: somebody looked for each.
    judged = rows.take(rows.voted)
    n_judged = np.bincount(judged.y, minlength=n_classes)
    weight = (found / np.maximum(n_judged, 1))[judged.y]
    wrong = np.bincount(judged.y, judged.errors, n_classes) / np.maximum(n_judged, 1)
    variance = float(np.var(draws @ wrong))
    shift, ratios = found / trained, shares.ratios(rows.y)
    proba = shifted(proba, shift)
    return _Sample(judged, weight, first, proba, 1.0, variance, prevalence, tuple(shift), ratios)


def _of_label(proba: Floats, labels: Ints) -> Floats:
    return proba[np.arange(len(labels)), labels]


def _with_variance(value: float, n: float, variance: float) -> float:
    """Effective rows after an independent variance is added to that of a share."""
    spread = value * (1.0 - value)
    return spread / (spread / n + variance)


def class_errors(
    sample: _Sample, predicted: Ints, confidence: Floats, trained_share: float
) -> tuple[Share, ...]:
    """For each class the share of wrong labels among the unlabelled rows labelled with it."""
    winner = sample.rows.winner
    found = []
    for c in range(sample.proba.shape[1]):
        labelled, judged = predicted == c, winner == c
        if not labelled.any():
            found.append(Share(float("nan"), 0.0, 1.0))
            continue
        n = kish_size(sample.weight[judged])
        weight, errors = sample.weight[judged], sample.rows.errors[judged]
        error = float(np.average(errors, weights=weight)) * trained_share**_CURVE if n else 0.0
        doubt = float(1.0 - confidence[labelled].mean())
        value = (n * error + _CLASS_ROWS * doubt) / (n + _CLASS_ROWS)
        found.append(share(value, of_finite_population(n + _MORE_ROWS, int(labelled.sum()))))
    return tuple(found)


def class_recalls(rows: JudgedRows, n_classes: int, trained_share: float) -> tuple[Share, ...]:
    """For each class the share of its rows that get its label."""
    found = []
    for c in range(n_classes):
        errors = rows.errors[(rows.y == c) & rows.voted]
        if len(errors) == 0:
            found.append(Share(float("nan"), 0.0, 1.0))
            continue
        found.append(share(1.0 - float(errors.mean()) * trained_share**_CURVE, len(errors)))
    return tuple(found)
