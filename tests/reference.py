"""Slow, literal transcriptions of the paper's formulas, for the tests to compare with.

Loops over rows and classes exactly as the formulas are printed (with the corrections that the
docstrings of the fast code name). Nothing here is optimised, nothing is shared with the fast code.
"""

from __future__ import annotations

import math
from fractions import Fraction

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


# --- Section 4: transductive bounds ----------------------------------------------------------


def u_I(votes, proba, i, j, low, high):
    """u_i I^(<=,<)(low, high)."""
    return sum(p[i] for v, p in zip(votes, proba) if low <= v[j] < high)


def u_M(votes, proba, i, j, s):
    """u_i M^<(s)."""
    return sum(p[i] * v[j] for v, p in zip(votes, proba) if v[j] < s)


def u_K(votes, proba, i, j):
    """u_i K_ij."""
    return sum(p[i] * v[j] for v, p in zip(votes, proba) if majority(v) == j)


def u_U_at(votes, proba, i, j, theta_j, gamma):
    """u_i U_ij(gamma): what Theorem 1 takes the infimum of."""
    bracket = (
        u_K(votes, proba, i, j) - u_M(votes, proba, i, j, gamma) + u_M(votes, proba, i, j, theta_j)
    )
    positive = max(bracket, 0.0)
    if gamma == 0:
        extra = 0.0 if positive == 0 else float("inf")
    else:
        extra = float(positive) / float(gamma)  # infinite for the smallest gammas
    return u_I(votes, proba, i, j, theta_j, gamma) + extra


def u_U(votes, proba, i, j, theta_j):
    """u_i [U_theta]_ij: the infimum is attained at a vote >= theta_j or at 1."""
    gammas = {float(v[j]) for v in votes if v[j] >= theta_j} | {1.0}
    return min(u_U_at(votes, proba, i, j, theta_j, g) for g in gammas)


def confusion_bound(votes, proba, theta):
    n_classes = len(votes[0])
    U = np.zeros((n_classes, n_classes))
    for i in range(n_classes):
        u_i = sum(p[i] for p in proba)
        for j in range(n_classes):
            if i != j and u_i > 0:
                U[i, j] = u_U(votes, proba, i, j, theta[j]) / u_i
    return U


def linear_program(votes, proba, i, j, theta_j):
    """u_i times the optimum of the linear program in the proof of Theorem 1."""
    from scipy.optimize import linprog

    gammas = sorted({float(v[j]) for v in votes})
    B = [sum(p[i] for v, p in zip(votes, proba) if v[j] == g) for g in gammas]
    gain = [1.0 if g >= theta_j else 0.0 for g in gammas]
    answer = linprog(
        [-g for g in gain],
        A_eq=[gammas],
        b_eq=[u_K(votes, proba, i, j)],
        bounds=[(0.0, b) for b in B],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert answer.success, answer.message
    return -answer.fun


def threshold_objective(votes, proba, j, theta_j):
    """Term j of objective (*); infinite where nothing is selected."""
    selected = sum(1 for v in votes if majority(v) == j and v[j] >= theta_j)
    if selected == 0:
        return float("inf")
    others = [i for i in range(len(votes[0])) if i != j]
    return sum(u_U(votes, proba, i, j, theta_j) for i in others) / selected


def plug_in_objective(votes, proba, j, theta_j):
    rows = [(v, p) for v, p in zip(votes, proba) if majority(v) == j and v[j] >= theta_j]
    if not rows:
        return float("inf")
    return sum(sum(p) - p[j] for _, p in rows) / len(rows)


def tightness_gap(votes, proba, i, j, tau):
    """C, gamma*, r and the gap of prop:tight-bayes-multi; None if it says nothing for tau."""
    u_i = sum(p[i] for p in proba)
    gammas = sorted({float(v[j]) for v in votes})
    b = {
        g: sum(p[i] for v, p in zip(votes, proba) if majority(v) == j and v[j] == g) / u_i
        for g in gammas
    }
    chosen = [g for g in gammas if b[g] > tau]
    if not chosen:
        return None
    C = 1.0
    for g in chosen:
        left = sum(p[i] for v, p in zip(votes, proba) if majority(v) == j and v[j] < g)
        right = sum(p[i] for v, p in zip(votes, proba) if v[j] < g)
        if right > 0:
            C = min(C, left / right)
    top = max(chosen)
    r = sum(b[g] * g for g in gammas if g > top)
    risk = sum(b.values())
    gap = ((1 - C) / C * risk if C > 0 else float("inf")) + r * (1 / top - 1)
    return C, top, r, gap


# --- Section 5: C-bounds, mislabelling, PAC-Bayes -------------------------------------------------


def margin_moment(votes, proba, k, weights=None):
    total = 0.0
    for v, p in zip(votes, proba):
        w = 1.0 if weights is None else weights[majority(v)]
        for c in range(len(v)):
            total += w * p[c] * (v[c] - max(v[j] for j in range(len(v)) if j != c)) ** k
    return total / len(votes)


def binary_margin_moment(votes, proba, k, weights=None):
    total = 0.0
    for v, p in zip(votes, proba):
        w = 1.0 if weights is None else weights[majority(v)]
        total += sum(w * p[c] * (2 * v[c] - 1) ** k for c in range(len(v)))
    return total / len(votes)


def c_bound(votes, proba):
    return 1 - margin_moment(votes, proba, 1) ** 2 / margin_moment(votes, proba, 2)


def delta_at(P, b):
    return P[b][b] - max(P[b][j] for j in range(len(P)) if j != b)


def cbil(votes, imperfect, P, lam=0.0):
    psi = mu1 = mu2 = 0.0
    for v, p in zip(votes, imperfect):
        b = majority(v)
        weight = 1 / (lam + delta_at(P, b))
        psi += (lam + P[b][b]) * weight
        for c in range(len(v)):
            m = v[c] - max(v[j] for j in range(len(v)) if j != c)
            mu1 += weight * m * p[c]
            mu2 += weight * m * m * p[c]
    n = len(votes)
    return psi / n - (mu1 / n) ** 2 / (mu2 / n)


def transformed(proba, P):
    K = len(P)
    return np.array([[sum(P[i][j] * p[j] for j in range(K)) for i in range(K)] for p in proba])


def one_example_bound(v, imperfect, P, lam=0.0):
    b = majority(v)
    r_hat = sum(imperfect[c] for c in range(len(v)) if c != b)
    d = lam + delta_at(P, b)
    return r_hat / d - (1 - lam - P[b][b]) / d


def chittineni_bound(v, imperfect, P):
    r_hat = sum(imperfect[c] for c in range(len(v)) if c != majority(v))
    beta = max(sum(P[i][j] for j in range(len(P))) for i in range(len(P)))
    return 1 - (1 - r_hat) / beta


def gibbs_error(predictions, q, proba):
    """E_h of a voter's error; predictions[h][x] is the class that voter h gives row x."""
    n = len(proba)
    total = 0.0
    for h, q_h in enumerate(q):
        total += q_h * sum(1 - proba[x][predictions[h][x]] for x in range(n)) / n
    return total


def tandem_loss(predictions, q, proba):
    n, K = len(proba), len(proba[0])
    total = 0.0
    for h, q_h in enumerate(q):
        for g, q_g in enumerate(q):
            for x in range(n):
                for y in range(K):
                    if predictions[h][x] != y and predictions[g][x] != y:
                        total += q_h * q_g * proba[x][y] / n
    return total


def corrected_markov(votes, imperfect, P, lam, order):
    """E[w (2 (1 - v))^order] - E[w (1 - lam - alpha)], w = 1/(lam + delta)."""
    total = 0.0
    for v, p in zip(votes, imperfect):
        b = majority(v)
        weight = 1 / (lam + delta_at(P, b))
        loss = sum(p[c] * (2 * (1 - v[c])) ** order for c in range(len(v)))
        total += weight * loss - weight * (1 - lam - P[b][b])
    return total / len(votes)


def confident_joint(labels, proba):
    """Confident counting, row by row, before the counts are scaled."""
    K = len(proba[0])
    t = []
    for j in range(K):
        own = [p[j] for y, p in zip(labels, proba) if y == j]
        t.append(sum(own) / len(own) if own else float("inf"))
    C = np.zeros((K, K))
    for y, p in zip(labels, proba):
        # A mean of equal numbers differs from them by rounding only.
        above = [j for j in range(K) if p[j] >= t[j] or math.isclose(p[j], t[j], rel_tol=1e-12)]
        if above:
            C[y, max(above, key=lambda j: p[j])] += 1
    return C


def em_log_likelihood(labels, proba, known, P):
    total = sum(
        known[i][j] * np.log(P[i][j])
        for i in range(len(P))
        for j in range(len(P))
        if known[i][j] > 0
    )
    return total + sum(
        np.log(sum(p[j] * P[y][j] for j in range(len(P)))) for y, p in zip(labels, proba)
    )


def radius(l_k, epsilon):
    return np.sqrt(np.log(2 * np.sqrt(l_k) / epsilon) / (2 * l_k))


def pac_bayes_printed(votes, imperfect, counts, kl, eps_matrix, eps_mean, lam=0.0):
    """thm:pac-bayesian-cbound as printed, with each rival's own radius in delta, B over classes.

    eps_matrix and eps_mean are the shares of epsilon for one matrix entry and for one mean.
    """
    counts = np.asarray(counts, dtype=float)
    K, u = len(counts), len(votes)
    l_counts = counts.sum(axis=0)
    p_hat = counts / l_counts
    r = [radius(l_counts[j], eps_matrix) for j in range(K)]
    alpha = [lam + min(1.0, p_hat[c][c] + r[c]) for c in range(K)]
    delta = [
        lam
        + max(0.0, p_hat[c][c] - r[c])
        - max(min(1.0, p_hat[c][j] + r[j]) for j in range(K) if j != c)
        for c in range(K)
    ]
    weights = [1 / d for d in delta]
    B = max(weights)
    B3 = max(a / d for a, d in zip(alpha, delta))
    log = np.log(2 * np.sqrt(u) / eps_mean)
    mu1 = margin_moment(votes, imperfect, 1, weights) - B * np.sqrt(2 / u * (kl + log))
    mu2 = margin_moment(votes, imperfect, 2, weights) + B * np.sqrt(2 / u * (2 * kl + log))
    # alpha/delta lies in [0, B3], half the range of a margin, hence half the printed radius.
    psi = sum(alpha[majority(v)] / delta[majority(v)] for v in votes) / u
    psi = min(B3, psi + B3 / 2 * np.sqrt(2 / u * log))
    return psi - mu1**2 / min(mu2, B), mu1, min(mu2, B), psi


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
        return (
            sum(
                c_i * (kernel[i, row] - np.mean([kernel[i, r] for r in unlabeled]))
                for i, c_i in enumerate(c)
            )
            + b
        )

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


# --- Section 7: learning Q -----------------------------------------------------------------------


def mixed_votes(q, voters):
    """v_Q(x, c); voters[h][x] is a row of votes, of zeros if voter h has none for x."""
    n, K = len(voters[0]), len(voters[0][0])
    votes = np.zeros((n, K))
    for h, q_h in enumerate(q):
        for x in range(n):
            for c in range(K):
                votes[x, c] += q_h * (voters[h][x][c] if any(voters[h][x]) else 1 / K)
    return votes


def voter_errors(voters, y):
    """Share of rows that each voter gets wrong or has no vote for."""
    return np.array(
        [
            sum(1 for v, label in zip(votes, y) if not any(v) or majority(v) != label) / len(y)
            for votes in voters
        ]
    )


def kl_of_weights(q, p):
    total = 0.0
    for q_h, p_h in zip(q, p):
        if q_h > 0:
            total += q_h * np.log(q_h / p_h) if p_h > 0 else float("inf")
    return total


def gibbs_objective(q, errors, beta, p):
    """E_Q[error] + KL(Q‖P)/β."""
    return sum(q_h * e for q_h, e in zip(q, errors)) + kl_of_weights(q, p) / beta


def second_order_objective(q, voters, proba, penalty, p, row_weight=None):
    """4 Σ_x w_x Σ_c P(c|x) (1 − v_Q(x,c))² + penalty KL(Q‖P), Σ_x w_x = 1."""
    n = len(proba)
    w = [1 / n] * n if row_weight is None else [w_x / sum(row_weight) for w_x in row_weight]
    total = 0.0
    for x, v in enumerate(mixed_votes(q, voters)):
        for c in range(len(v)):
            total += 4 * w[x] * proba[x][c] * (1 - v[c]) ** 2
    return total + (penalty * kl_of_weights(q, p) if penalty else 0.0)


def c_bound_or_first_order(votes, imperfect, P, lam):
    """CBIL, or ψ − μ1 where μ1 ≤ 0."""
    weights = [1 / (lam + delta_at(P, b)) for b in range(len(P))]
    mu1 = margin_moment(votes, imperfect, 1, weights)
    if mu1 > 0:
        return cbil(votes, imperfect, P, lam)
    best = [majority(v) for v in votes]
    return sum((lam + P[b][b]) * weights[b] for b in best) / len(votes) - mu1


def c_bound_objective(q, held_out, y, unlabeled, imperfect, P, lam, penalty, p):
    """½ CB on labelled + ½ CBIL on pseudo-labelled rows + penalty KL(Q‖P)."""
    K = len(held_out[0][0])
    value = c_bound_or_first_order(mixed_votes(q, held_out), np.eye(K)[y], np.eye(K), 0.0)
    if unlabeled is not None:
        votes = mixed_votes(q, unlabeled)
        value = (value + c_bound_or_first_order(votes, imperfect, P, lam)) / 2
    return value + (penalty * kl_of_weights(q, p) if penalty else 0.0)


# --- audit: limits for the number of wrong labels of a finite table ---------------------------


def hypergeometric_cdf(k, N, M, s):
    """P(at most k of s rows are wrong), s drawn without replacement from N of which M are."""
    ways = sum(math.comb(M, j) * math.comb(N - M, s - j) for j in range(min(k, s) + 1))
    return Fraction(ways, math.comb(N, s))


def hypergeometric_upper(N, s, k, delta):
    """max{M : P(Hyp(N, M, s) ≤ k) > δ}."""
    return max(M for M in range(N + 1) if hypergeometric_cdf(k, N, M, s) > delta)


def hypergeometric_lower(N, s, k, delta):
    """min{M : P(Hyp(N, M, s) ≥ k) > δ}."""
    return min(M for M in range(N + 1) if 1 - hypergeometric_cdf(k - 1, N, M, s) > delta)


def rising(x, k):
    product = Fraction(1)
    for i in range(k):
        product *= x + i
    return product


def beta_binomial(M, N, a, b):
    """P(M) for the beta-binomial distribution: C(N, M) B(M+a, N−M+b) / B(a, b)."""
    return math.comb(N, M) * rising(a, M) * rising(b, N - M) / rising(a + b, N)


def prior_posterior_ratio(M, N, flags, a, b):
    """Prior over posterior of M after rows were checked one by one, by Bayes' theorem."""

    def likelihood(m):
        product, left, left_wrong = Fraction(1), N, m
        for wrong in flags:
            product *= Fraction(left_wrong if wrong else left - left_wrong, left)
            left, left_wrong = left - 1, left_wrong - wrong
            if left_wrong < 0 or left_wrong > left:
                return Fraction(0)
        return product

    evidence = sum(beta_binomial(m, N, a, b) * likelihood(m) for m in range(N + 1))
    posterior = beta_binomial(M, N, a, b) * likelihood(M) / evidence
    return beta_binomial(M, N, a, b) / posterior if posterior else math.inf


def confidence_set(N, flags, delta, a, b):
    """The M whose ratio is below 1/δ after every one of the checks."""
    left = set(range(N + 1))
    for t in range(1, len(flags) + 1):
        left &= {
            M for M in left if prior_posterior_ratio(M, N, flags[:t], a, b) < 1 / Fraction(delta)
        }
    return left


def checks_needed(N, allowed, wrong, delta, power):
    """Fewest checks s that show M ≤ allowed with this power if ``wrong`` labels are wrong."""
    for s in range(1, N + 1):
        tolerated = [k for k in range(s + 1) if hypergeometric_upper(N, s, k, delta) <= allowed]
        if tolerated and hypergeometric_cdf(max(tolerated), N, wrong, s) >= power:
            return s
    raise AssertionError("whoever checks all rows knows")


def stopping_distribution(N, wrong, stops):
    """P(an audit has ended after t checks), t = 0, 1, …; with k wrong ones found at stops[k]."""
    alive, reached = {0: Fraction(1)}, [Fraction(0)]
    for t in range(1, stops[-1] + 1):
        after, done = {}, reached[-1]
        for k, p in alive.items():
            chance = Fraction(wrong - k, N - t + 1)
            for found, q in ((k, p * (1 - chance)), (k + 1, p * chance)):
                if found < len(stops) and stops[found] <= t:
                    done += q
                else:
                    after[found] = after.get(found, 0) + q
        alive = after
        reached.append(done)
    return reached


def accepted_by_audit(confidence, audited, wrong, max_error, delta):
    """The thresholds to be tested, and the lowest one before the first test that fails (or inf)."""
    n = len(confidence)

    def shown(N, s, k):
        """Whether k wrong of s checks exclude that more than max_error of N are wrong."""
        too_many = 1 + max(m for m in range(N) if m / N <= max_error)
        return s >= k and hypergeometric_cdf(k, N, too_many, s) <= delta

    def reached(rows, threshold):
        return [row for row in rows if confidence[row] >= threshold]

    falling = sorted(confidence, reverse=True)
    tested = sorted({falling[math.ceil(n * j / 20) - 1] for j in range(1, 21)}, reverse=True)
    quarter = len(audited) // 4
    tolerated = max(k for k in range(4) if k == 0 or shown(n, quarter, k))
    while len(tested) > 1:
        share = len(reached(range(n), tested[0])) / n
        variance = len(audited) * share * (1 - share) * (n - len(audited)) / (n - 1)
        probable = max(0, math.floor(len(audited) * share - 1.282 * math.sqrt(variance)))
        if shown(round(share * n), probable, tolerated):
            break
        tested = tested[1:]
    lowest = math.inf
    for threshold in tested:
        inside = reached(audited, threshold)
        found = sum(wrong[audited.index(row)] for row in inside)
        if not shown(len(reached(range(n), threshold)), len(inside), found):
            break
        lowest = threshold
    return tested, lowest


# --- how wrong the labels are -----------------------------------------------------------------


def bootstrapped_errors(held_out, y, rule, samples):
    """Share of the samples without a row whose Q gets it wrong; BBC-CV, resample by resample."""
    n_voters, n, K = held_out.shape
    errors = np.full(n, np.nan)
    for x in range(n):
        wrong = []
        for sample in samples:
            if x in sample:
                continue
            q = rule(held_out[:, sample], y[sample])
            votes, anyone = [0.0] * K, False
            for h in range(n_voters):
                for c in range(K):
                    votes[c] += q[h] * (held_out[h, x, c] if any(held_out[h, x]) else 1 / K)
                anyone = anyone or (q[h] > 0 and any(held_out[h, x]))
            wrong.append(not anyone or majority(votes) != y[x])
        if wrong:
            errors[x] = sum(wrong) / len(wrong)
    return errors


def clopper_pearson(k, n, level=0.95):
    """Limits of p: the smallest and largest that k of n does not contradict, by bisection."""
    from math import comb

    def at_least(p):  # P(X >= k)
        return sum(comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1))

    def at_most(p):
        return sum(comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))

    def solve(holds):
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if holds(middle) else (low, middle)
        return low

    tail = (1 - level) / 2
    low = 0.0 if k == 0 else solve(lambda p: at_least(p) < tail)
    return low, 1.0 if k == n else solve(lambda p: at_most(p) > tail)


def mixture_step(shares, confusion, said):
    """One step of EM: each prediction is divided among the classes it may come from."""
    K = len(shares)
    new = [0.0] * K
    for k in range(K):
        weighted = [shares[c] * confusion[k][c] for c in range(K)]
        for c in range(K):
            new[c] += said[k] * weighted[c] / sum(weighted)
    return np.array(new)


def powered_prevalence(y, held_out, predicted, c):
    """PPI++ estimate of the share of class c with the λ of smallest variance, and its variance."""
    n, N = len(y), len(predicted)
    a, b = [float(v == c) for v in y], [float(v == c) for v in held_out]
    u = [float(v == c) for v in predicted]
    mean_a, mean_b = sum(a) / n, sum(b) / n
    cov = sum((p - mean_a) * (q - mean_b) for p, q in zip(a, b)) / (n - 1)
    var = sum((q - mean_b) ** 2 for q in b) / (n - 1)
    power = 0.0 if var == 0 else min(1.0, max(0.0, cov / var / (1 + n / N)))
    value = min(1.0, max(0.0, mean_a + power * (sum(u) / N - mean_b)))
    # Of the labelled rows, and of two more with the full variance of the share.
    squares = [(p - power * q - mean_a + power * mean_b) ** 2 for p, q in zip(a, b)]
    return value, (sum(squares) + 2 * value * (1 - value)) / (n + 1) / n


def accepted_rows(confidence, max_error):
    """The largest set {c >= θ} whose mean doubt is at most max_error."""
    best = [False] * len(confidence)
    for threshold in confidence:
        mask = [c >= threshold for c in confidence]
        doubt = sum(1 - c for c, m in zip(confidence, mask) if m) / sum(mask)
        if doubt <= max_error + 1e-12 and sum(mask) > sum(best):
            best = mask
    return np.array(best, dtype=bool)


def mann_whitney(values, first):
    """z of the rank sum, with ranks of ties averaged."""
    n = len(values)
    rank = [sum(w < v for w in values) + (sum(w == v for w in values) + 1) / 2 for v in values]
    mean = sum(rank) / n
    n_1 = sum(first)
    var = n_1 * (n - n_1) / (n * (n - 1)) * sum((r - mean) ** 2 for r in rank)
    return sum(r - mean for r, f in zip(rank, first) if f) / var**0.5 if var else 0.0


# --- the realised share of wrong labels ----------------------------------------------------------


def poisson_binomial(probabilities):
    """P(S = k) for k = 0, 1, …: row after row, a label is wrong or it is not."""
    found = [1.0]
    for p in probabilities:
        right = [(1 - p) * q for q in found] + [0.0]
        wrong = [0.0] + [p * q for q in found]
        found = [a + b for a, b in zip(right, wrong)]
    return found


def realised_error_quantile(label_proba, labels, confidence):
    """The smallest k/n with P(S ≤ k) ≥ confidence."""
    total = 0.0
    for k, p in enumerate(poisson_binomial([1 - row[c] for row, c in zip(label_proba, labels)])):
        total += p
        if total >= confidence - 1e-11:
            return k / len(labels)
    return 1.0


def field_precision(points, k=10, alpha=0.98):
    """I - αS of the graph that joins each row to its k nearest."""
    W = local_weights(points, min(k, len(points) - 1))
    degree = W.sum(axis=1)
    return np.eye(len(points)) - alpha * W / np.sqrt(np.outer(degree, degree))


def field_gains(points, known, chosen, votes=None):
    """u(x) Σ_z u(z) Cov(x, z)² / Var(x) of each row, given those known or chosen; else -inf."""
    n = len(points)
    top = np.ones(n)
    if votes is not None:
        top = np.array([1 - (sorted(v)[-1] - sorted(v)[-2]) for v in votes])
    inside = [i for i in range(n) if not known[i] and i not in set(np.asarray(chosen).tolist())]
    covariance = np.linalg.inv(field_precision(points)[np.ix_(inside, inside)])
    gains = np.full(n, -np.inf)
    for a, i in enumerate(inside):
        total = sum(top[j] * covariance[a, b] ** 2 for b, j in enumerate(inside))
        gains[i] = top[i] * total / covariance[a, a]
    return gains


def typicality(points, n_neighbors):
    """Inverse of the mean distance to the nearest rows."""
    answer = []
    for i, point in enumerate(points):
        others = sorted(math.dist(point, other) for j, other in enumerate(points) if j != i)
        nearest = others[:n_neighbors]
        answer.append(1 / (sum(nearest) / len(nearest) + 1e-9))
    return answer


def local_weights(X, k):
    """Edges to the k nearest rows, whose weights fall with the distance in local units."""
    n = len(X)
    distance = np.array([[math.dist(a, b) for b in X] for a in X])
    neighbors = [
        sorted((j for j in range(n) if j != i), key=lambda j: distance[i, j])[:k] for i in range(n)
    ]
    s = [distance[i, neighbors[i][-1]] for i in range(n)]
    W = np.zeros((n, n))
    for i in range(n):
        for j in neighbors[i]:
            W[i, j] = W[j, i] = math.exp(-(distance[i, j] ** 2) / (s[i] * s[j]))
    return W


def local_spreading_limit(X, y, n_classes, *, k, alpha):
    """Scores of label spreading with locally scaled weights, each class's labels weighing 1."""
    n, W = len(X), local_weights(X, k)
    D = np.diag(1.0 / np.sqrt(W.sum(axis=1)))
    Y = np.zeros((n, n_classes))
    for i in range(n):
        if y[i] >= 0:
            Y[i, y[i]] = 1.0 / (y == y[i]).sum()
    return spreading_limit(D @ W @ D, Y, alpha)


def spreading_limit(S, Y, alpha):
    """F = (1 − α)(I − αS)⁻¹Y, what the iteration F ← αSF + (1 − α)Y goes to."""
    return (1.0 - alpha) * np.linalg.solve(np.eye(len(S)) - alpha * S, Y)


def reach(S, y):
    """How far the labels of each class get: mean share of edges that lead to unlabelled rows."""
    n, found = len(y), []
    u = sum(1 for label in y if label < 0)
    for c in range(max(y) + 1):
        shares = []
        for i in range(n):
            if y[i] == c:
                total = sum(S[i, j] for j in range(n))
                outward = sum(S[i, j] for j in range(n) if y[j] < 0)
                shares.append(outward / total if total > 0 else 0.0)
        found.append((n - 1) / u * sum(shares) / len(shares))
    return found


def prefers_new_labels(votes, new_votes):
    difference = 0.0
    for v, w in zip(votes, new_votes):
        old, new = majority(v), majority(w)
        if old != new:
            difference += (w[new] - w[old]) - 1.2 * (v[old] - v[new])
    return difference
