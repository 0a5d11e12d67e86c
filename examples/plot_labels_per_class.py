"""
How many labels are enough?
===========================

Accuracy on the unlabelled rows against the number of labels for each class, of
:class:`fewlabel.FewLabelClassifier` and of a random forest that learns from the labelled rows only.
The unlabelled rows help most when labels are few.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

from fewlabel import FewLabelClassifier

X, truth = load_digits(n_class=6, return_X_y=True)
X, truth = X[:400], truth[:400]
sizes = [2, 4, 8]


def choose(size, rng):
    """``size`` rows of each class."""
    rows = [rng.choice(np.flatnonzero(truth == c), size, replace=False) for c in np.unique(truth)]
    return np.isin(np.arange(len(truth)), np.concatenate(rows))


scores = {"mixed vote": [], "random forest, supervised": []}
for size in sizes:
    runs = []
    for seed in range(2):
        given = choose(size, np.random.default_rng(seed))
        y = np.where(given, truth, -1)
        clf = FewLabelClassifier(labels="per class", max_iter=1, random_state=seed).fit(X, y)
        forest = RandomForestClassifier(200, random_state=seed).fit(X[given], truth[given])
        supervised = (forest.predict(X[~given]) == truth[~given]).mean()
        runs.append(((clf.transduction_ == truth)[~given].mean(), supervised))
    for name, score in zip(scores, np.mean(runs, axis=0)):
        scores[name].append(score)

# %%
fig, ax = plt.subplots()
for (name, values), colour in zip(scores.items(), ["#b4491a", "#1f5fa8"]):
    ax.plot(sizes, values, "o-", color=colour, label=name)
ax.set_xscale("log", base=2)
ax.set(xticks=sizes, xticklabels=sizes, xlabel="labels for each of 6 classes", ylabel="accuracy")
ax.set_title("Handwritten digits, mean of two splits")
ax.legend()
plt.show()

# %%
for name, values in scores.items():
    print(name, " ".join(f"{value:.1%}" for value in values))
