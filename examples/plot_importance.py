"""
Which columns does the vote need?
=================================

A vote has no coefficients. Permutation importance works for any classifier: how much worse does
the prediction get if a column is shuffled? It is scored on labelled rows that were set aside.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.inspection import permutation_importance

from fewlabel import FewLabelClassifier

wine = load_wine(as_frame=True)
table, truth = wine.data.iloc[:, :8], wine.target.to_numpy()
rng = np.random.default_rng(0)
order = rng.permutation(len(truth))
given, aside = order[:20], order[20:60]  # 20 labels to learn from, 40 to measure with
y = np.full(len(truth), -1)
y[given] = truth[given]
rows = np.setdiff1d(order, aside)

clf = FewLabelClassifier(voters=["extra_trees", "svm", "semi_lda"], random_state=0)
clf.fit(table.iloc[rows], y[rows])

# %%
found = permutation_importance(clf, table.iloc[aside], truth[aside], n_repeats=5, random_state=0)
best = found.importances_mean.argsort()

fig, ax = plt.subplots()
ax.boxplot(found.importances[best].T, orientation="horizontal", tick_labels=table.columns[best])
ax.axvline(0, color="0.7", linewidth=1)
ax.set_xlabel("accuracy lost when the column is shuffled")
plt.show()

# %%
for k in best[::-1][:3]:
    print(f"{table.columns[k]}: {found.importances_mean[k]:.1%}")
