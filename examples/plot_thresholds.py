"""
Thresholds at work
==================

Self-learning has to decide which rows to pseudo-label. :class:`fewlabel.SelfLearningClassifier`
minimises a bound on the error among the selected rows, for each class and in each round, so there
is no threshold to choose.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

from fewlabel import SelfLearningClassifier
from fewlabel.report.plots import ThresholdDisplay

X, truth = load_wine(return_X_y=True)
given = np.random.default_rng(3).permutation(len(truth)) < 15
y = np.where(given, truth, -1)

forest = RandomForestClassifier(100, random_state=0)
clf = SelfLearningClassifier(forest, random_state=0).fit(X, y)

# %%
# The line is the bound over the threshold, the bars are the votes of the first forest. The dotted
# line is the threshold with the smallest bound: rows to its right get pseudo-labels, rows to its
# left wait for a later round.
display = ThresholdDisplay.from_estimator(clf)
display.figure_.suptitle("Bound on the error among selected rows, by class")
plt.show()

# %%
# What happened, round by round.
for record in clf.history_:
    thresholds = ", ".join(f"{t:.2f}" for t in record["thresholds"])
    print(f"round {record['iteration']}: {record['n_selected']} rows, thresholds {thresholds}")
wrong = (clf.transduction_ != truth)[~given].mean()
print(f"stopped by {clf.termination_condition_}; in truth {wrong:.1%} wrong")
