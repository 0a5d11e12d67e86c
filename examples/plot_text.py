"""
Text
====

Here the only column is text: the docstrings of four packages. The class is the package, and 32 of
them are labelled. ``FewLabelClassifier`` encodes the column by :class:`fewlabel.TableEncoder`,
which turns text into tf-idf.
"""

import inspect
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy.signal
import scipy.special
import scipy.stats
import sklearn.metrics
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import ConfusionMatrixDisplay

from fewlabel import FewLabelClassifier


def summaries(package, most=90):
    """The first paragraphs of the docstrings of a package, without its name."""
    name = package.__name__.split(".")[-1]
    texts = [inspect.getdoc(getattr(package, key)) or "" for key in sorted(dir(package))]
    texts = [text[:400].replace(name, "") for text in texts if len(text) > 200]
    return list(dict.fromkeys(texts))[:most]


packages = [scipy.stats, scipy.signal, scipy.special, sklearn.metrics]
rows = [(text, package.__name__) for package in packages for text in summaries(package)]
table = pd.DataFrame(rows, columns=["text", "package"]).sample(frac=1, random_state=0)
table = table.reset_index(drop=True)
given = np.arange(len(table)) < 32
target = table["package"].where(given)

# %%
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    clf = FewLabelClassifier(random_state=0).fit(table[["text"]], target)
print(clf.table_encoder_.plan_[0])
right = (clf.transduction_ == table["package"])[~given].mean()

tfidf = TfidfVectorizer(sublinear_tf=True).fit(table["text"])
linear = LogisticRegression(C=10, max_iter=1000)
linear.fit(tfidf.transform(table["text"][given]), target[given])
base = linear.score(tfidf.transform(table["text"][~given]), table["package"][~given])
print(f"FewLabelClassifier {right:.1%} right, logistic regression on tf-idf {base:.1%}")
print(clf.error_)

# %%
fig, ax = plt.subplots(figsize=(5.2, 4.2))
ConfusionMatrixDisplay.from_predictions(
    table["package"][~given], clf.transduction_[~given], ax=ax, cmap="Blues", colorbar=False
)
ax.tick_params(axis="x", rotation=25)
ax.set_title(f"{len(table)} texts, {given.sum()} of them labelled")
plt.show()
