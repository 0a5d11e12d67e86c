"""A policy of one's own: trust the surest tenth of the rows of each predicted class."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from fewlabel import Selection, SelfLearningClassifier


class SurestTenth:
    def select(self, votes, label_proba, iteration):
        winner, vote = votes.argmax(axis=1), votes.max(axis=1)
        thresholds = np.array(
            [
                np.quantile(vote[winner == c], 0.9) if (winner == c).any() else 1.0
                for c in range(votes.shape[1])
            ]
        )
        return Selection.by_thresholds(votes, thresholds)


X, y = load_digits(return_X_y=True)
target = np.where(np.random.default_rng(0).random(len(y)) < 0.04, y, -1)
for policy in (SurestTenth(), "bound"):
    clf = SelfLearningClassifier(policy=policy, max_iter=8, random_state=0).fit(X, target)
    right = (clf.transduction_ == y)[target == -1].mean()
    print(f"{policy if isinstance(policy, str) else 'SurestTenth'}: {right:.1%}")
