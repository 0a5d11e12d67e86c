"""
When self-learning hurts
========================

Self-learning trusts its own votes, and it can end worse than it began. Here one threshold of 0.6
for all classes lets in the rows of easy digits first. The next forest is trained mostly on those,
so it votes for them even more, and the other digits are crowded out. Thresholds that minimise a
bound on the error, one for each class, take rows of all of them.

No policy is safe: each rests on the same votes, and where votes are wrong and sure, so are the
pseudo-labels. That is why the error is estimated from labelled rows that were held out.
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
