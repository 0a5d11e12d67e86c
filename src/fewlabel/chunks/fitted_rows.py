"""What a fit keeps of unlabelled rows in chunks, which are too many to keep themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewlabel._core.arrays import Bools, Ints
from fewlabel.assess.assessment import HeldOut
from fewlabel.assess.audit import Audit, check_comparable
from fewlabel.assess.audit_draws import one_dimensional
from fewlabel.assess.label_sums import LabelRule, LabelSums, PseudoLabels
from fewlabel.assess.pseudo_label_errors import supervised_estimate
from fewlabel.assess.suggest import NextRows
from fewlabel.bounds.table import Bound, table_of_sums
from fewlabel.bounds.transductive import risk_bound
from fewlabel.chunks.files import need
from fewlabel.chunks.finish import AUDIT_ROWS, NEXT_ROWS, Finished, Judgement


@dataclass(frozen=True, eq=False)
class FittedRows:
    """Counts, rows worth labelling and rows to check, of all unlabelled rows of a fit.

    Attributes
    ----------
    judgement : Judgement
    finished : Finished
    n_unlabeled, n_classes, n_rounds : int
    out : Path or None
        The folder with the results, as :class:`fewlabel.chunks.finish.ResultWriter` writes them.
    """

    judgement: Judgement
    finished: Finished
    n_unlabeled: int
    n_classes: int
    n_rounds: int
    out: Path | None

    def label_sums(self, max_error: float) -> tuple[LabelRule, LabelSums]:
        """The sums that a report shows, for an error of the list that was counted."""
        rule = replace(self.judgement.rule, max_error=float(max_error))
        if rule.max_error not in rule.max_errors:
            known = ", ".join(f"{error:g}" for error in rule.max_errors)
            raise ValueError(
                f"Accepted labels of rows in chunks were counted for these errors: {known}. Got "
                f"{max_error!r}: fit with UnlabeledRows(..., max_error={max_error!r})."
            )
        if self.finished.sums is not None:
            return rule, self.finished.sums
        votes, none = np.empty((0, self.n_classes)), np.empty(0, dtype=np.intp)
        nothing = rule.judge(votes, none), rule, PseudoLabels(none, none)
        return rule, LabelSums.of(none, votes, *nothing, self.n_rounds)

    def suggested(self, n: int) -> NextRows:
        """The best rows to label next; their positions are those in the source."""
        if n > NEXT_ROWS:
            raise ValueError(
                f"Of rows in chunks the {NEXT_ROWS:,} best are kept. Got n={n}: ask for fewer."
            )
        best = self.finished.suggested
        if best is None:
            none = np.empty(0)
            return NextRows(none.astype(np.intp), np.empty((0, self.n_classes)), none, none)
        return NextRows(best.rows[:n], best.votes[:n], best.margins[:n], best.gains[:n])

    def accepted(self, threshold: float) -> Bools:
        """For each unlabelled row, in the order of the source, whether its label is accepted."""
        if self.out is None:
            raise ValueError(
                "The rows were in chunks and are not kept. Fit with UnlabeledRows(..., "
                "out=folder), whose column `accepted` says it, or pass some rows as X."
            )
        parquet = need("pyarrow.parquet", "Reading Parquet")
        parts = [
            parquet.read_table(path, columns=["cautious"]).column(0).to_numpy() >= threshold
            for path in sorted(self.out.glob("part-*.parquet"))
        ]
        return np.concatenate(parts) if parts else np.empty(0, dtype=bool)

    def n_accepted(self, max_error: float, threshold: float) -> int:
        """How many labels are accepted for an error."""
        rule = self.judgement.rule
        if float(max_error) in rule.max_errors and self.finished.sums is not None:
            return self.finished.sums.n_accepted(rule.max_errors.index(float(max_error)))
        return int(self.accepted(threshold).sum())

    def audit_rows(self, threshold: float | None) -> tuple[Ints, Ints]:
        """Rows to check in random order, and their labels; with a threshold accepted ones."""
        drawn = self.finished.drawn
        if drawn is None:
            raise ValueError("population has no rows: there is nothing to draw from.")
        inside = drawn.cautious >= (-np.inf if threshold is None else threshold)
        return drawn.rows[inside], drawn.labels[inside]

    def audit_sample(self, size: int, threshold: float | None) -> Ints:
        """The first rows to check, as they were drawn in the last pass."""
        rows, _ = self.audit_rows(threshold)
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise ValueError(f"size must be a whole number from 1 on. Got {size!r} instead.")
        if size > len(rows):
            raise ValueError(
                f"The fit drew {len(rows):,} such rows (of rows in chunks {AUDIT_ROWS:,} are drawn "
                f"from all labels). Got size={size}: draw fewer."
            )
        return rows[:size]

    def checked(self, rows: ArrayLike, threshold: float | None) -> Ints:
        """Labels of rows that :meth:`audit_sample` drew, in the order given."""
        drawn, labels = self.audit_rows(threshold)
        at = {int(row): k for k, row in enumerate(drawn)}
        asked = np.asarray(rows)
        strange = [row for row in asked.tolist() if row not in at]
        if strange or len(set(asked.tolist())) < len(asked):
            raise ValueError(
                f"rows must be those of audit_sample, each once. Row {strange[:1] or asked} is not."
            )
        return labels[[at[row] for row in asked.tolist()]]

    def bounds(self, held_out: HeldOut) -> list[Bound]:
        """The table of the paper's bounds, from sums over all rows."""
        done = self.finished
        if done.statistics is None or done.margins is None:
            raise ValueError("There is no unlabelled row whose error could be bounded.")
        codes, votes = held_out.judged
        tb = risk_bound(done.statistics, tight=True)
        table = table_of_sums(done.margins, tb, done.imperfect, self.judgement.matrix)
        return [supervised_estimate(votes, codes, None), *table]


class LabelsOnDisk(NamedTuple):
    """Labels of rows in chunks that a person checks.

    It is one of the :class:`fewlabel.assess.audited_labels.AuditedLabels`.

    Attributes
    ----------
    rows : FittedRows
    classes : ndarray of shape (n_classes,)
    max_error, threshold : float or None
        Only labels that are accepted for this error, by this threshold; None: all of them.
    """

    rows: FittedRows
    classes: NDArray[Any]
    max_error: float | None
    threshold: float | None

    def draw(self, size: int, random_state: int | None) -> Ints:
        """Positions in the source of rows that were drawn in the last pass."""
        if random_state is not None:
            raise ValueError(
                "random_state cannot be chosen for rows in chunks: they were drawn in the fit, "
                "with its random_state. Leave it out."
            )
        return self.rows.audit_sample(size, self.threshold)

    def audit(self, rows: ArrayLike, right_labels: ArrayLike, **how: Any) -> Audit:
        """The statement from the right labels of these rows."""
        finished = self.classes[self.rows.checked(rows, self.threshold)]
        right = one_dimensional(right_labels, "labels")
        if len(right) != len(finished):
            raise ValueError(f"labels must hold one for each of {len(finished)} rows.")
        check_comparable(finished, right)
        n = self.rows.n_unlabeled
        if self.max_error is not None and self.threshold is not None:
            n = self.rows.n_accepted(self.max_error, self.threshold)
        pairs = zip(finished.tolist(), right.tolist())
        wrong = np.array([a != b for a, b in pairs], dtype=bool)
        return Audit.from_checks(n, wrong, **how)
