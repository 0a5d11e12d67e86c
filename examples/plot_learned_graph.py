"""
A learned graph
===============

Label spreading propagates labels between neighbours, so it depends on the metric. The Euclidean
distance counts uninformative columns as much as the others. A forest that was trained on the few
labels gives a better metric: two rows are close if its trees send them to the same leaves. With it,
label spreading gets more rows right. ``FewLabelClassifier`` has voters of this kind.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fewlabel import LabelSpreadingClassifier

wine, truth = load_wine(return_X_y=True)
rng = np.random.default_rng(0)
X = StandardScaler().fit_transform(np.hstack([wine, rng.normal(size=(len(wine), 20))]))
given = rng.permutation(len(truth)) < 15
y = np.where(given, truth, -1)

trees = ExtraTreesClassifier(200, random_state=0).fit(X[given], y[given])
leaves = OneHotEncoder().fit_transform(trees.apply(X))
proximity = TruncatedSVD(10, random_state=0).fit_transform(leaves)

# %%
spaces = {"all columns": X, "leaves of a forest": proximity}
fig, axes = plt.subplots(1, 2)
for (name, space), ax in zip(spaces.items(), axes):
    clf = LabelSpreadingClassifier(random_state=0).fit(space, y)
    right = (clf.transduction_ == truth)[~given].mean()
    shown = TruncatedSVD(2, random_state=0).fit_transform(space - space.mean(axis=0))
    graph = clf.graph_.tocoo()
    for i, j in zip(graph.row[::3], graph.col[::3]):
        ax.plot(*shown[[i, j]].T, color="0.85", linewidth=0.5, zorder=1)
    ax.scatter(*shown.T, c=truth, cmap="viridis", s=14, zorder=2)
    ax.scatter(*shown[given].T, s=60, facecolors="none", edgecolors="#b4491a", zorder=3)
    ax.set(title=f"{name}: {right:.0%} right", xticks=[], yticks=[])
    print(f"{name}: {right:.1%} right")
fig.suptitle("Colours: true classes. Circles: the 15 labelled rows. Lines: the graph")
plt.show()
