"""Label a table of which a few rows are labelled, and see which labels to take."""

from __future__ import annotations

import pandas as pd
from sklearn.datasets import load_wine

from fewlabel import SelfLearningClassifier

wine = load_wine(as_frame=True)
table, truth = wine.data, wine.target.map(lambda code: f"cultivar {code}")
target = truth.where(
    truth.index.isin(truth.sample(18, random_state=0).index)
)  # 18 labels, NaN else

clf = SelfLearningClassifier(random_state=0).fit(table, target)

print(pd.DataFrame(clf.history_)[["iteration", "n_unlabeled", "n_selected"]])
hidden = target.isna()
print(f"estimate: {clf.error_}; in truth {(clf.transduction_ != truth)[hidden].mean():.1%}")
accepted = clf.accept(max_error=0.05) & hidden
print(f"to take as they are: {accepted.sum()} of {hidden.sum()} labels")
print("label these rows next:", clf.suggest(5))
