"""
Out of core: more rows than memory
==================================

Thresholds and bounds need sums of the votes only, which add up over chunks. So rows that are read
chunk by chunk give the same thresholds as rows in memory. Here the chunks are arrays; a folder of
Parquet files works the same way: ``UnlabeledRows("customers/")``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from fewlabel import SelfLearningClassifier, UnlabeledRows

X, truth = make_classification(
    20_100, 12, n_informative=6, n_classes=4, class_sep=1.5, n_clusters_per_class=1, random_state=0
)
labelled, rows = X[:100], X[100:]
forest = RandomForestClassifier(50, random_state=0)

in_memory = SelfLearningClassifier(forest, max_iter=1, max_train=2000, random_state=0)
in_memory.fit(X, np.where(np.arange(len(X)) < 100, truth, -1))

chunks = UnlabeledRows([rows[start : start + 4000] for start in range(0, 20_000, 4000)])
chunked = SelfLearningClassifier(forest, max_iter=1, max_train=2000, random_state=0)
chunked.fit(labelled, truth[:100], unlabeled=chunks)

# %%
fig, ax = plt.subplots()
places = np.arange(4)
ax.bar(places - 0.18, in_memory.thresholds_, 0.34, color="#1f5fa8", label="in memory")
ax.bar(places + 0.18, chunked.thresholds_, 0.34, color="#b4491a", label="in five chunks")
ax.set(xticks=places, xlabel="class", ylabel="threshold of round 1", ylim=(0, 1.18))
ax.legend(ncols=2, loc="upper left")
plt.show()

# %%
print("largest difference:", np.abs(in_memory.thresholds_ - chunked.thresholds_).max())
print(
    "rows pseudo-labelled:", in_memory.history_[0]["n_selected"], chunked.history_[0]["n_selected"]
)
