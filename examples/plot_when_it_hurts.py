"""
When self-learning hurts
========================

Self-learning can end worse than it began. Here one threshold of 0.6 for all classes selects mostly
the easy digits. The next forest is trained mostly on those, so it predicts them even more often, at
the expense of the others. Thresholds that minimise a bound on the error, one for each class, select
rows of all classes.

No policy is safe: where votes are confident and wrong, so are the pseudo-labels. That is why the
error is estimated from held-out labelled rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

from fewlabel import FixedThreshold, SelfLearningClassifier

X, truth = load_digits(return_X_y=True)
X, truth = X[:700], truth[:700]
given = np.random.default_rng(1).permutation(len(truth)) < 50
y = np.where(given, truth, -1)

forest = RandomForestClassifier(50, random_state=1).fit(X[given], y[given])
print(f"labelled rows only: {forest.score(X[~given], truth[~given]):.1%} right")

# %%
fig, axes = plt.subplots(1, 2, sharey=True)
policies = {"one threshold, 0.6": FixedThreshold(0.6), "bound": "bound"}
for (name, policy), ax in zip(policies.items(), axes):
    clf = SelfLearningClassifier(
        forest, policy=policy, pseudo_weight="uniform", max_iter=4, random_state=1
    )
    clf.fit(X, y)
    right = (clf.transduction_ == truth)[~given].mean()
    taken = np.array(clf.history_[0]["n_selected_per_class"])
    ax.bar(range(10), np.bincount(truth[~given]), color="#d9dcd8", label="rows of the class")
    ax.bar(range(10), taken, color="#0d7a70", label="pseudo-labelled in round 1")
    ax.set(title=f"{name}: {right:.0%} right in the end", xticks=range(10), xlabel="digit")
    print(f"{name}: {right:.1%} right")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
axes[0].set_ylabel("rows")
plt.show()
