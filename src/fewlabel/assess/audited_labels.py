"""The labels of a fit that a person checks: where they are kept decides how rows are drawn."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from numpy.typing import ArrayLike, NDArray

from fewlabel._core.arrays import Bools, Ints
from fewlabel.assess.audit import Audit, audit
from fewlabel.assess.audit_draws import audit_sample


class AuditedLabels(Protocol):
    """Labels that rows can be drawn from, and that checks can be compared with."""

    def draw(self, size: int, random_state: int | None) -> Ints:
        """Rows to check, in the order of the draw."""

    def audit(self, rows: ArrayLike, right_labels: ArrayLike, **how: Any) -> Audit:
        """The statement from the right labels of rows that were drawn."""


class LabelsInMemory(NamedTuple):
    """Labels of all rows, and a mask of those that the statement is about."""

    labels: NDArray[Any]
    population: Bools

    def draw(self, size: int, random_state: int | None) -> Ints:
        """See :class:`AuditedLabels`."""
        return audit_sample(self.population, size, random_state=random_state)

    def audit(self, rows: ArrayLike, right_labels: ArrayLike, **how: Any) -> Audit:
        """See :class:`AuditedLabels`."""
        return audit(self.labels, rows, right_labels, population=self.population, **how)
