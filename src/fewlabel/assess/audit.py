"""A guarantee for finished labels: check rows that were drawn at random, state the exact limit.

The labels may come from anywhere. What makes the statement hold is the draw: every row of the
population has the same chance to be checked, and the rows are drawn after the labels are final.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewlabel._core.targets import as_column, marks_unlabeled
from fewlabel.assess.audit_draws import check_drawn, one_dimensional
from fewlabel.assess.audit_limits import (
    audit_confidence_sequence,
    check_confidence,
    check_counts,
    hypergeometric_limits,
)
from fewlabel.assess.audit_plans import (
    Plan,
    allowed_wrong,
    check_plan,
    checks_needed,
    limit_if_none_wrong,
)

_UNCHECKED = "Leave out rows that were not checked, and only with plan='sequential'."


@dataclass(frozen=True)
class Audit:
    """What the check of some rows guarantees for all labels of a table.

    Attributes
    ----------
    rows : int
        Number of labels that the statement is about.
    checked : int
        Number of rows that were checked.
    wrong : int
        Number of those whose label was wrong.
    most_wrong : int
        With the given confidence no more labels than this were wrong, those found included.
    confidence : float
        Probability, over the random draw, with which the statement is true.
    plan : {"fixed", "sequential"}
        Whether the number of checks was fixed in advance, or the limit holds at every moment.
    what : str
        What the labels are called in the statement.

    See Also
    --------
    audit : Makes one from labels and checks.

    References
    ----------
    .. [1] H. S. Konijn, "Statistical theory of sample survey design and analysis", 1973: limits for
           a hypergeometric count.

    Examples
    --------
    >>> statement = Audit.from_checks(1581, [False] * 60, what="accepted labels")
    >>> print(statement)  # doctest: +NORMALIZE_WHITESPACE
    at most 4.8 % of the 1,581 accepted labels are wrong (guaranteed with 95 % confidence, 60 rows
    checked, 0 wrong)
    """

    rows: int
    checked: int
    wrong: int
    most_wrong: int
    confidence: float = 0.95
    plan: Plan = "fixed"
    what: str = "labels"

    @classmethod
    def from_checks(
        cls,
        rows: int,
        wrong: ArrayLike,
        *,
        confidence: float = 0.95,
        plan: Plan = "fixed",
        what: str = "labels",
    ) -> Audit:
        """The statement from a flag for each checked row, in the order of the draw.

        Parameters
        ----------
        rows : int
            Number of labels that the rows were drawn from.
        wrong : array-like of bool
            Whether the label of each checked row was wrong.
        confidence : float, default=0.95
            Of the guarantee.
        plan : {"fixed", "sequential"}, default="fixed"
            See :func:`audit`.
        what : str, default="labels"
            What the labels are called in the statement.

        Returns
        -------
        Audit
        """
        check_plan(plan)
        check_confidence(confidence)
        flags = np.asarray(wrong, dtype=bool)
        check_counts(rows, len(flags), int(flags.sum()))
        most_wrong = _most_wrong(rows, flags, confidence, plan)
        return cls(rows, len(flags), int(flags.sum()), most_wrong, confidence, plan, what)

    @property
    def at_most(self) -> float:
        """Upper limit for the share of wrong labels, as they were when the rows were drawn."""
        return self.most_wrong / self.rows

    @property
    def at_most_after_correction(self) -> float:
        """Upper limit for the share that is still wrong once the wrong ones found are corrected."""
        return (self.most_wrong - self.wrong) / self.rows

    def reaches(self, max_error: float) -> bool:
        """Whether it is guaranteed that at most ``max_error`` of the labels are wrong."""
        return self.most_wrong <= allowed_wrong(self.rows, max_error)

    def reaches_after_correction(self, max_error: float) -> bool:
        """The same once the wrong labels that were found are corrected."""
        return self.most_wrong - self.wrong <= allowed_wrong(self.rows, max_error)

    def verdict(self, max_error: float) -> str:
        """In words: whether the goal is reached, and if not, whether it could have been."""
        goal = f"at most {_percent(max_error)} wrong"
        if self.reaches(max_error):
            return f"The goal, {goal}, is reached."
        if self.reaches_after_correction(max_error):
            return f"The goal, {goal}, is reached once the wrong labels found are corrected."
        best = limit_if_none_wrong(
            self.rows, self.checked, confidence=self.confidence, plan=self.plan
        )
        many = f"The goal, {goal}, is not reached: too many of the checked labels are wrong."
        if best <= max_error:
            return many
        fewest = checks_needed(self.rows, max_error, confidence=self.confidence, plan=self.plan)
        few = (
            f"{self.checked:,} check{' is' if self.checked == 1 else 's are'} too few. Even with "
            f"none wrong they show at most {percent_up(best)}; it takes {fewest:,} or more."
        )
        if self.wrong > max_error * self.checked:
            return f"{many} Besides, {few}"
        return f"The goal, {goal}, is not reached: {few}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "at_most": self.at_most,
            "at_most_after_correction": self.at_most_after_correction,
            "confidence": self.confidence,
            "checked": self.checked,
            "wrong": self.wrong,
            "rows": self.rows,
            "most_wrong": self.most_wrong,
            "plan": self.plan,
        }

    def __str__(self) -> str:
        moment = ", valid at every moment" if self.plan == "sequential" else ""
        text = (
            f"at most {percent_up(self.at_most)} of the {self.rows:,} {self.what} are wrong "
            f"(guaranteed with {_percent(self.confidence)} confidence{moment}, "
            f"{self.checked:,} row{'' if self.checked == 1 else 's'} checked, {self.wrong:,} wrong)"
        )
        if self.wrong:
            text += (
                f"; at most {percent_up(self.at_most_after_correction)} once those found are "
                f"corrected"
            )
        return text


def _most_wrong(rows: int, wrong: NDArray[np.bool_], confidence: float, plan: Plan) -> int:
    if plan == "fixed":
        return hypergeometric_limits(rows, len(wrong), int(wrong.sum()), confidence=confidence).high
    if len(wrong) == 0:
        return rows
    return int(audit_confidence_sequence(rows, wrong, confidence=confidence)[1][-1])


def percent_up(share: float) -> str:
    """A limit for people: rounded up, or the statement would be stronger than its proof."""
    return f"{math.ceil(1000 * share - 1e-9) / 10:.1f}\N{NO-BREAK SPACE}%"


def _percent(share: float) -> str:
    return f"{100 * share:.6g}\N{NO-BREAK SPACE}%"


def audit(
    labels: ArrayLike,
    rows: ArrayLike,
    right_labels: ArrayLike,
    *,
    population: ArrayLike | None = None,
    confidence: float = 0.95,
    plan: Plan = "fixed",
    what: str = "labels",
) -> Audit:
    """State how many labels are wrong at most, from the right labels of rows drawn at random.

    Parameters
    ----------
    labels : array-like of shape (n_rows,)
        The finished labels, as they were when the rows were drawn.
    rows : array-like of int
        The checked rows, drawn by :func:`audit_sample`; all that were drawn for a fixed plan,
        the first ones in the order of the draw for a sequential one.
    right_labels : array-like, of the length of ``rows``
        What a person found to be the right label of each.
    population : array-like of bool, optional
        The mask that the rows were drawn from; by default all rows.
    confidence : float, default=0.95
        Probability, over the draw, with which the statement is to be true.
    plan : {"fixed", "sequential"}, default="fixed"
        "fixed": the number of checks was decided on in advance. "sequential": somebody checks row
        after row, and may stop when the limit is low enough. To be chosen before the first check.
    what : str, default="labels"
        What the labels are called in the statement.

    Returns
    -------
    Audit
        Its text is the statement. ``at_most`` is about the labels as they were drawn;
        ``at_most_after_correction`` about the same labels with the wrong ones found replaced by
        the right ones.

    See Also
    --------
    audit_sample : Draws the rows.
    checks_needed : How many checks a goal needs.
    accept_with_audit : Which labels to accept, with a guarantee for them.
    hypergeometric_limits, audit_confidence_sequence : The limits behind the two plans.

    References
    ----------
    .. [1] H. S. Konijn, "Statistical theory of sample survey design and analysis", 1973: limits for
           a hypergeometric count.

    Examples
    --------
    >>> labels, truth = np.array(["a"] * 500), np.array(["a"] * 490 + ["b"] * 10)
    >>> from fewlabel import audit_sample
    >>> rows = audit_sample(500, 100, random_state=0)
    >>> print(audit(labels, rows, truth[rows]))  # doctest: +NORMALIZE_WHITESPACE
    at most 4.2 % of the 500 labels are wrong (guaranteed with 95 % confidence, 100 rows checked,
    1 wrong); at most 4.0 % once those found are corrected
    """
    finished = one_dimensional(labels, "labels")
    found = one_dimensional(right_labels, "right_labels")
    inside = _mask(population, len(finished))
    checked = check_drawn(rows, inside)
    if len(found) != len(checked):
        raise ValueError(
            f"right_labels must hold one label for each of the {len(checked)} rows. "
            f"Got {len(found)}."
        )
    check_comparable(finished, found)
    wrong = np.array([a != b for a, b in zip(finished[checked], found)], dtype=bool)
    return Audit.from_checks(int(inside.sum()), wrong, confidence=confidence, plan=plan, what=what)


def answered(right_labels: Any, missing_label: object) -> NDArray[Any]:
    """Right labels as a column; refuse what marks an unlabelled row: it is no wrong label."""
    found = as_column(right_labels)
    missing = np.flatnonzero(marks_unlabeled(found, missing_label))
    if len(missing):
        first = int(missing[0])
        raise ValueError(
            f"There is no label at position {first}, but {found[first]!r}, which marks an "
            f"unlabelled row. {_UNCHECKED}"
        )
    return found


def _mask(population: ArrayLike | None, n: int) -> NDArray[np.bool_]:
    if population is None:
        return np.ones(n, dtype=bool)
    mask = np.asarray(population)
    if mask.shape != (n,) or mask.dtype != bool:
        raise ValueError(
            f"population must be a mask of {n} booleans, one for each label. Got shape "
            f"{mask.shape} of type {mask.dtype}."
        )
    return mask


def check_comparable(labels: NDArray[Any], found: NDArray[Any]) -> None:
    """Refuse right labels that are missing, or that can equal no label because of their type."""
    missing = [i for i, label in enumerate(found) if label is None or label != label]
    if missing:
        raise ValueError(f"right_labels has no label at position {missing[0]}. {_UNCHECKED}")
    text = {isinstance(label, str) for label in found}
    if text.isdisjoint({isinstance(label, str) for label in labels}):
        raise ValueError(
            f"labels are of type {labels.dtype} and right_labels of type {found.dtype}: none of "
            f"them can be equal. Write both alike."
        )
