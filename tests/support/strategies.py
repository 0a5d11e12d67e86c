"""Random votes and label probabilities for property tests."""

from __future__ import annotations

import os

import numpy as np
from hypothesis import strategies as st

N_INSTANCES = {"quick": 200, "long": 10_000}.get(os.environ.get("HYPOTHESIS_PROFILE", ""), 2_000)
"""Random instances on which a theorem is tried out."""


@st.composite
def distributions(draw, n_rows, n_classes, grid=None):
    """Rows on the simplex: multiples of 1/grid (ties, zeros and ones are common) or continuous."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    grid = draw(st.sampled_from([2, 4, 10, 0])) if grid is None else grid
    concentration = draw(st.sampled_from([0.1, 1.0, 5.0]))
    rows = rng.dirichlet(np.full(n_classes, concentration), size=n_rows)
    if grid:
        rows = np.array([rng.multinomial(grid, row / row.sum()) for row in rows]) / grid
    return rows


@st.composite
def votes_and_proba(draw, max_rows=12, max_classes=4):
    n_rows = draw(st.integers(1, max_rows))
    n_classes = draw(st.integers(2, max_classes))
    votes = draw(distributions(n_rows, n_classes))
    proba = draw(st.one_of(st.just(votes), distributions(n_rows, n_classes)))
    return votes, proba


@st.composite
def votes_proba_theta(draw, **sizes):
    votes, proba = draw(votes_and_proba(**sizes))
    anywhere = st.floats(0.0, 1.0)
    at_a_vote = st.sampled_from(sorted({float(v) for v in votes.ravel()}))
    theta = draw(
        st.lists(st.one_of(anywhere, at_a_vote), min_size=votes.shape[1], max_size=votes.shape[1])
    )
    return votes, proba, np.array(theta)


@st.composite
def mislabeling_matrices(draw, n_classes, max_noise=0.9):
    """Columns on the simplex; the diagonal dominates its row often, but not always."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    noise = draw(st.floats(0.0, max_noise))
    wrong = rng.dirichlet(np.ones(n_classes), size=n_classes).T
    return (1 - noise) * np.eye(n_classes) + noise * wrong


@st.composite
def mislabeled(draw, **sizes):
    """Votes, true label distribution and a mislabelling matrix."""
    votes, proba = draw(votes_and_proba(**sizes))
    return votes, proba, draw(mislabeling_matrices(votes.shape[1]))
