"""One trial as a value: what goes into a run, and under which key its record is found again."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from typing import Any

Value = str | int | float | bool | None

PAPER_TRIALS = 20
PAPER_TREES = 200


@dataclass(frozen=True)
class Trial:
    """One run of one method on one split of one data set.

    Attributes
    ----------
    dataset, method : str
    seed : int
        Seed of the split and of everything random in the method. The paper's trial n has 10 n.
    params : tuple of (name, value)
        Hyperparameters of the method, sorted by name.
    label_proba : str
        How P(Y | x) is estimated inside MSLA's bound (Table 3).
    n_rows : int or None
        Size of a random subsample of the data set; None takes all rows.
    n_labeled : int or None
        Labelled rows; None takes the number of Table 1.
    n_test : int
        Rows kept away from training for an extra test score.
    stratify : bool
    n_trees : int
    """

    dataset: str
    method: str
    seed: int = 0
    params: tuple[tuple[str, Value], ...] = ()
    label_proba: str = "supervised"
    n_rows: int | None = None
    n_labeled: int | None = None
    n_test: int = 0
    stratify: bool = False
    n_trees: int = PAPER_TREES

    def as_dict(self) -> dict[str, Any]:
        """The fields that say something: a field added later leaves old keys as they are."""
        fields = dataclasses.fields(self)
        named = {f.name: getattr(self, f.name) for f in fields if f.name in _ALWAYS}
        changed = {
            f.name: getattr(self, f.name) for f in fields if getattr(self, f.name) != f.default
        }
        if self.params:
            changed["params"] = dict(self.params)
        return named | changed

    @property
    def key(self) -> str:
        """Sixteen hex digits that depend on what the trial says and on nothing else."""
        text = json.dumps(self.as_dict(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


_ALWAYS = ("dataset", "method", "seed")


def trial_from(fields: dict[str, Any]) -> Trial:
    """The inverse of :meth:`Trial.as_dict`."""
    params = tuple(sorted(fields.get("params", {}).items()))
    return Trial(**{**fields, "params": params})
