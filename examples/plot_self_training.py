"""
Comparison with scikit-learn's SelfTrainingClassifier
=====================================================

scikit-learn's ``SelfTrainingClassifier`` pseudo-labels rows whose vote reaches a threshold that the
user chooses. The right one depends on the data, and few labels are too few to tune it.
:class:`fewlabel.SelfLearningClassifier` finds a threshold for each class in each round. Both use
the same forest and the same rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.semi_supervised import SelfTrainingClassifier

from fewlabel import SelfLearningClassifier

X, truth = load_digits(return_X_y=True)
X, truth = X[:700], truth[:700]
thresholds = [0.3, 0.5, 0.7, 0.9]
fixed, bound, supervised = [], [], []
for seed in range(3):
    given = np.random.default_rng(seed).permutation(len(truth)) < 50
    y = np.where(given, truth, -1)
    forest = RandomForestClassifier(50, random_state=seed)
    supervised.append((forest.fit(X[given], y[given]).predict(X[~given]) == truth[~given]).mean())
    fixed.append([])
    for threshold in thresholds:
        clf = SelfTrainingClassifier(forest, threshold=threshold, max_iter=5).fit(X, y)
        fixed[-1].append((clf.predict(X[~given]) == truth[~given]).mean())
    ours = SelfLearningClassifier(forest, max_iter=5, random_state=seed).fit(X, y)
    bound.append((ours.transduction_ == truth)[~given].mean())

# %%
fig, ax = plt.subplots()
ax.plot(thresholds, np.mean(fixed, axis=0), "o-", color="#1f5fa8", label="SelfTrainingClassifier")
ax.axhline(np.mean(bound), color="#b4491a", label="SelfLearningClassifier, no threshold to choose")
ax.axhline(np.mean(supervised), color="0.5", linestyle=":", label="labelled rows only")
ax.set(xlabel="threshold", ylabel="accuracy on the unlabelled rows")
ax.set_title("700 digits, 50 of them labelled, mean of three splits")
ax.legend()
plt.show()

# %%
print(f"SelfLearningClassifier: {np.mean(bound):.1%}, supervised {np.mean(supervised):.1%}")
for threshold, score in zip(thresholds, np.mean(fixed, axis=0)):
    print(f"SelfTrainingClassifier, threshold {threshold}: {score:.1%}")
