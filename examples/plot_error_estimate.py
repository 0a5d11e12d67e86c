"""
How good is the estimate of the error?
======================================

``clf.error_`` estimates the share of wrong labels in the table, with 95 % limits, from held-out
votes on the labelled rows. Here it is compared with the truth for ten random choices of 40 labelled
rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import ExtraTreesClassifier

from fewlabel import SelfLearningClassifier

X, truth = load_breast_cancer(return_X_y=True)
found = []
for seed in range(10):
    given = np.random.default_rng(seed).permutation(len(truth)) < 40
    trees = ExtraTreesClassifier(30, random_state=seed)
    clf = SelfLearningClassifier(trees, max_iter=1, random_state=seed)
    clf.fit(X, np.where(given, truth, -1))
    error = clf.error_
    found.append((error.value, error.low, error.high, (clf.transduction_ != truth)[~given].mean()))

# %%
# The limits are meant to contain the true share of wrong labels in 95 % of all cases.
# :doc:`/promise` says how often they do on many data sets.
value, low, high, wrong = 100 * np.array(sorted(found, key=lambda row: row[3])).T
places = np.arange(len(value))

fig, ax = plt.subplots()
ax.vlines(places, low, high, color="#9db8c9", linewidth=5, label="95 % limits")
ax.plot(places, value, "o", color="#1f5fa8", label="estimate")
ax.plot(places, wrong, "x", color="#b4491a", markersize=8, markeredgewidth=2, label="truth")
ax.set(
    xlabel="choice of 40 labelled rows, sorted by truth", ylabel="wrong labels, %", ylim=(0, None)
)
ax.legend()
plt.show()

# %%
inside = np.mean((low <= wrong) & (wrong <= high))
print(f"truth within the limits: {inside:.0%} of {len(value)}")
