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


# --- Section 6: the competitors --------------------------------------------------------------


def s3vm_objective(w, X_labeled, y, X_unlabeled, lam, lam_u):
    """One machine: logistic hinge + unlabelled bumps + squared norm, balancing built into f."""
    background = X_unlabeled if len(X_unlabeled) else X_labeled
    m = sum(background) / len(background)
    b = sum(y) / len(y)

    def f(x):
        return float(np.dot(w, x - m)) + b

    total = 0.0
    for x, label in zip(X_labeled, y):
        total += np.log(1.0 + np.exp(20.0 * (1.0 - label * f(x)))) / 20.0 / len(y)
    for x in X_unlabeled:
        total += lam_u * np.exp(-3.0 * f(x) ** 2) / len(X_unlabeled)
    return total + lam * sum(v * v for v in w)


def s3vm_kernel_objective(c, kernel, labeled, y, unlabeled, lam, lam_u):
    """The same with f(x) = Σ_i c_i (k(x_i, x) − mean over U of k(x_i, ·)) + b and the norm cᵀKc."""
    b = sum(y) / len(y)

    def f(row):
        return sum(
            c_i * (kernel[i, row] - np.mean([kernel[i, r] for r in unlabeled]))
            for i, c_i in enumerate(c)
        ) + b

    total = 0.0
    for row, label in zip(labeled, y):
        total += np.log(1.0 + np.exp(20.0 * (1.0 - label * f(row)))) / 20.0 / len(labeled)
    for row in unlabeled:
        total += lam_u * np.exp(-3.0 * f(row) ** 2) / len(unlabeled)
    return total + lam * float(np.asarray(c) @ kernel @ np.asarray(c))


def lda_log_joint(x, c, priors, means, covariance):
    d = len(x)
    r = x - means[c]
    quadratic = float(r @ np.linalg.inv(covariance) @ r)
    log_det = np.log(np.linalg.det(covariance))
    return np.log(priors[c]) - 0.5 * (d * np.log(2 * np.pi) + log_det + quadratic)


def lda_likelihood(X, q, priors, means, covariance, strength=0.0, variance=1.0):
    """Σ_x Σ_c q_c(x) log p(x, c), less the penalty that shrinkage stands for."""
    total = 0.0
    for x, q_x in zip(X, q):
        for c, weight in enumerate(q_x):
            total += weight * lda_log_joint(x, c, priors, means, covariance)
    log_det = np.log(np.linalg.det(covariance))
    penalty = log_det + variance * np.trace(np.linalg.inv(covariance))
    return total - 0.5 * strength * penalty


def das_label_objective(p, votes, strength, temperature):
    """What the label distribution p of one row minimises: α Σ p_c ℓ(g_c) − T H(p)."""
    total = 0.0
    for c, p_c in enumerate(p):
        g_c = votes[c] - max(votes[k] for k in range(len(votes)) if k != c)
        total += strength * p_c * np.exp(-g_c)
        if p_c > 0:
            total += temperature * p_c * np.log(p_c)
    return total


def label_spreading_limit(neighbors, codes, n_classes, alpha):
    """(1 − α)(I − αS)⁻¹ Y on the graph that joins i and j if either is a neighbour of the other."""
    n = len(codes)
    W = np.zeros((n, n))
    for i in range(n):
        for j in neighbors[i]:
            W[i, j] = W[j, i] = 1.0
    S = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if W[i, j]:
                S[i, j] = W[i, j] / np.sqrt(W[i].sum() * W[j].sum())
    Y = np.zeros((n, n_classes))
    for i, c in enumerate(codes):
        if c >= 0:
            Y[i, c] = 1.0
    return (1 - alpha) * np.linalg.solve(np.eye(n) - alpha * S, Y)
