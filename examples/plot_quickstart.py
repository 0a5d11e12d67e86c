"""
Label a table from a few labelled rows
======================================

:class:`fewlabel.FewLabelClassifier` learns from 40 labelled tumours and 529 unlabelled ones. It
labels all of them, says about how many labels are wrong, and which can be taken as they are.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from fewlabel import FewLabelClassifier

data = load_breast_cancer(as_frame=True)
table, truth = data.data.iloc[:, :6], data.target.map({0: "malignant", 1: "benign"})
given = np.random.default_rng(0).permutation(len(table)) < 40
target = truth.where(given)  # NaN marks the unlabelled rows

clf = FewLabelClassifier(random_state=0).fit(table, target)

# %%
# The estimate, and what the true labels say. A user does not have those.
print(f"estimate: {clf.error_}")
print(f"in truth: {(clf.transduction_ != truth)[~given].mean():.1%} wrong")

# %%
# Every label has a calibrated confidence. ``accept`` takes as many labels as keep the estimated
# error below the limit.
accepted = clf.accept(max_error=0.05)[~given]
confidence = clf.confidence_[~given]

fig, ax = plt.subplots()
bins = np.linspace(0.45, 1, 23)
ax.hist(
    [confidence[accepted], confidence[~accepted]],
    bins=bins,
    stacked=True,
    color=["#0d7a70", "#c9ccc8"],
    label=[f"accepted: {accepted.sum()}", f"to check: {(~accepted).sum()}"],
)
ax.set(xlabel="calibrated confidence of the label", ylabel="rows", title="Which labels to take")
ax.legend()
plt.show()
