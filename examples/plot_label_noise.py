"""
Label noise and the bound for imperfect labels
==============================================

The C-bound (:func:`fewlabel.c_bound`) bounds the error of a majority vote if the labels are right.
If some labels are wrong, it bounds the error with respect to these wrong labels. CBIL
(:func:`fewlabel.c_bound_imperfect`) takes the mislabelling matrix into account and bounds the
error with respect to the *true* labels.
"""

import matplotlib.pyplot as plt
import numpy as np

from fewlabel import bayes_risk, c_bound, c_bound_imperfect, imperfect_proba

rng = np.random.default_rng(0)
n_rows, K = 3000, 3
truth = rng.integers(K, size=n_rows)
proba = 0.01 + 0.97 * np.eye(K)[truth]  # the true P(Y | x): the class is nearly certain
votes = (
    rng.dirichlet(np.ones(K), n_rows) * 0.3 + 0.7 * np.eye(K)[truth]
)  # votes that are mostly right

# %%
# Noise of rate r: each label is replaced by one of the other two with probability r.
rates = np.linspace(0, 0.2, 11)
noisy_error, naive, corrected = [], [], []
for rate in rates:
    matrix = np.full((K, K), rate / (K - 1))
    np.fill_diagonal(matrix, 1 - rate)
    noisy = imperfect_proba(proba, matrix)
    noisy_error.append(bayes_risk(votes, noisy))
    naive.append(c_bound(votes, noisy))
    corrected.append(c_bound_imperfect(votes, noisy, matrix))
error = bayes_risk(votes, proba)

fig, ax = plt.subplots()
ax.plot(rates, corrected, "o-", color="#b4491a", label="CBIL, a bound of the true error")
ax.plot(rates, naive, "o-", color="#1f5fa8", label="CB, a bound of the noisy error")
ax.plot(rates, noisy_error, color="#1f5fa8", linestyle=":", label="error by the noisy labels")
ax.axhline(error, color="#b4491a", linestyle=":", label="error by the true labels")
ax.set(xlabel="share of wrong labels", ylabel="share of wrong votes", ylim=(0, None))
ax.legend()
plt.show()

# %%
print(f"true error {error:.1%}, CBIL {corrected[0]:.1%} without noise, {corrected[-1]:.1%} at 20 %")
