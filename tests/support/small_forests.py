"""Smaller default forests, for tests whose point is not how accurate the default is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def small_forests(n_trees: int = 40, in_folds: int = 10) -> Iterator[None]:
    """Within it default forests have so many trees, not 100 or 200, and those of folds not 60."""
    from fewlabel.ensemble import families
    from fewlabel.selection import learner
    from fewlabel.self_learning import cross_fit

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learner, "N_TREES", n_trees)
        patch.setattr(families, "FAMILY_TREES", n_trees)
        patch.setattr(cross_fit, "FOREST_TREES", in_folds)
        yield
