"""The check of finished labels: random accepted rows, a limit that holds at every moment."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewlabel.assess.audit import Audit
from fewlabel.assess.audit_draws import audit_sample
from fewlabel.assess.audit_limits import audit_confidence_sequence
from fewlabel.assess.audit_plans import allowed_wrong, checks_needed
from fewlabel.labeling.learning import Learned

CONFIDENCE = 0.95

# Above this, the exact distribution of the number of checks takes too long for a page.
_EXACT_ROWS = 200_000


def drawn(
    learned: Learned, goal: float, seed: int, *, leave_out: Collection[int] = ()
) -> dict[str, Any]:
    """Draw all accepted rows in random order, with the labels that are to be checked.

    Parameters
    ----------
    learned : Learned
        The model whose labels are final from now on.
    goal : float
    seed : int
        Of the draw: random, and new for each check.
    leave_out : collection of int
        Rows that the statement is not to be about: a person has labelled them, or is about to.

    Returns
    -------
    content : dict
        Of JSON types, to be stored before the first row is shown: ``goal``, ``rows`` in the order
        of the draw, ``labels`` of all rows of the table as codes, and ``classes``.
    """
    population = learned.accepted.copy()
    population[list(leave_out)] = False
    rows = np.empty(0, dtype=np.intp)
    if population.any():
        rows = audit_sample(population, int(population.sum()), random_state=seed)
    expected = float(1.0 - learned.confidence[rows].mean()) if len(rows) else 0.0
    return {
        "goal": goal,
        "model": learned.version,
        "seed": seed,
        "rows": rows.tolist(),
        "classes": learned.classes,
        "codes": learned.codes.tolist(),
        "expected": min(max(expected, 0.0), 1.0),
    }


@dataclass(frozen=True)
class Check:
    """A check that is under way.

    Parameters
    ----------
    id : int
    content : dict
        See :func:`drawn`.
    until : int
        The last answer that the labels were learned from.
    """

    id: int
    content: dict[str, Any]
    until: int

    @property
    def rows(self) -> list[int]:
        """Rows to check, in the order of the draw."""
        found: list[int] = self.content["rows"]
        return found

    @property
    def goal(self) -> float:
        """Share of wrong labels to prove."""
        return float(self.content["goal"])

    def label(self, row: int) -> str:
        """The label of a row that is being checked."""
        return str(self.content["classes"][self.content["codes"][row]])

    def wrong(self, answers: Mapping[int, str | None]) -> list[bool]:
        """For the checked rows, in the order of the draw: whether the label is wrong.

        ``answers`` holds the right label of each checked row, None where nobody can tell: that
        counts as wrong, and the limit stays true. Rows behind one that is not answered yet have to
        wait.
        """
        flags = []
        for row in self.rows:
            if row not in answers:
                break
            flags.append(answers[row] != self.label(row))
        return flags

    def audit(self, answers: Mapping[int, str | None]) -> Audit | None:
        """What the checks guarantee; None before the first."""
        flags = self.wrong(answers)
        if not flags:
            return None
        return Audit.from_checks(
            len(self.rows), flags, confidence=CONFIDENCE, plan="sequential", what="accepted labels"
        )

    def outcome(self, answers: Mapping[int, str | None]) -> str:
        """Whether the goal is "proved", "refuted", or "open"."""
        statement = self.audit(answers)
        if statement is None:
            return "open"
        if statement.reaches_after_correction(self.goal):
            return "proved"
        flags = np.array(self.wrong(answers))
        low, _ = audit_confidence_sequence(len(self.rows), flags, confidence=CONFIDENCE)
        too_many = int(low[-1]) > allowed_wrong(len(self.rows), self.goal)
        return "refuted" if too_many else "open"

    def probably_needed(self) -> int | None:
        """Checks that will probably do, if the estimate of the error is right."""
        expected = min(float(self.content["expected"]), 0.8 * self.goal)
        if len(self.rows) > _EXACT_ROWS:
            return None
        return checks_needed(len(self.rows), self.goal, expected, plan="sequential")
