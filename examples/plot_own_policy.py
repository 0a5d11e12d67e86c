"""
Your own policy
===============

A policy decides in each round which rows get pseudo-labels. It is any object with a method
``select(statistics, iteration)`` that returns a :class:`fewlabel.Selection`: a threshold for each
class. This one selects the most confident tenth of each predicted class.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

from fewlabel import Selection, SelfLearningClassifier


class SurestTenth:
    def select(self, statistics, iteration):
        thresholds = np.ones(statistics.n_classes)
        for c in range(statistics.n_classes):
            votes, counts = statistics.predicted_votes(c)
            if len(votes):
                thresholds[c] = np.quantile(np.repeat(votes, counts), 0.9)
        return Selection(thresholds)


X, truth = load_digits(return_X_y=True)
X, truth = X[:900], truth[:900]
given = np.random.default_rng(0).random(len(truth)) < 0.06
y = np.where(given, truth, -1)
forest = RandomForestClassifier(100, random_state=0)

fig, ax = plt.subplots()
for policy, name in ((SurestTenth(), "the surest tenth"), ("bound", "bound")):
    clf = SelfLearningClassifier(forest, policy=policy, max_iter=8, random_state=0).fit(X, y)
    taken = np.cumsum([record["n_selected"] for record in clf.history_])
    ax.plot(np.arange(1, len(taken) + 1), taken, "o-", label=name)
    print(f"{name}: {(clf.transduction_ == truth)[~given].mean():.1%} right")
ax.set(xlabel="round", ylabel="rows pseudo-labelled so far", ylim=(0, None))
ax.legend()
plt.show()
