"""Slow, literal transcriptions of the paper's formulas, for the tests to compare with.

Loops over rows and classes exactly as the formulas are printed (with the corrections that the
docstrings of the fast code name). Nothing here is optimised and nothing is shared with the fast code.
"""

from __future__ import annotations

import numpy as np

# --- Section 3: votes, risks -----------------------------------------------------------------


def margin(votes, y):
    out = []
    for v, label in zip(votes, y):
        others = [v[c] for c in range(len(v)) if c != label]
        out.append(v[label] - max(others))
    return np.array(out)


def majority(v):
    best = 0
    for c in range(1, len(v)):
        if v[c] > v[best]:
            best = c
    return best


def joint_conditional_risk(votes, proba, theta, i, j):
    u_i = sum(p[i] for p in proba)
    if u_i == 0:
        return 0.0
    total = 0.0
    for v, p in zip(votes, proba):
        if majority(v) == j and v[j] >= theta[j]:
            total += p[i]
    return total / u_i


def gibbs_conditional_risk(votes, proba, i, j):
    u_i = sum(p[i] for p in proba)
    return sum(p[i] * v[j] for v, p in zip(votes, proba)) / u_i if u_i else 0.0


def joint_error_rate(votes, proba, theta):
    total = 0.0
    for v, p in zip(votes, proba):
        b = majority(v)
        if v[b] >= theta[b]:
            total += sum(p[c] for c in range(len(v)) if c != b)
    return total / len(votes)
