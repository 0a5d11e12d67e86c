"""
From an estimate to a guarantee: the audit
==========================================

An audit checks rows that were drawn at random. It assumes nothing about the classifier or the
table. Here 2,000 labels are checked one by one. The limits of
:func:`fewlabel.audit_confidence_sequence` hold after every check, so the person may stop as soon as
the upper limit is low enough.
"""

import matplotlib.pyplot as plt
import numpy as np

from fewlabel import Audit, audit_confidence_sequence, audit_sample, checks_needed

rng = np.random.default_rng(1)
wrong = rng.permutation(2000) < 30  # 1.5 % of the labels are wrong; nobody knows
rows = audit_sample(2000, 300, random_state=0)
found = np.cumsum(wrong[rows])

_, high = audit_confidence_sequence(2000, wrong[rows])
checks = np.arange(1, 301)

# %%
fig, ax = plt.subplots()
ax.plot(checks, 100 * high / 2000, color="#b4491a", label="at most (95 % confidence)")
ax.plot(checks, 100 * found[checks - 1] / checks, color="#1f5fa8", label="found so far")
ax.axhline(1.5, color="0.4", linestyle=":", label="truth")
ax.axhline(5, color="0.7", linewidth=1)
ax.text(300, 5.2, "goal: 5 %", ha="right", color="0.3")
ax.set(xlabel="checked rows", ylabel="wrong labels, %", ylim=(0, 30))
ax.legend()
plt.show()

# %%
# So many checks will be enough with a probability of 80 %, if 1.5 % of the labels are wrong:
print("fixed number of checks:", checks_needed(2000, 0.05, 0.015))
print("row by row, stopping at will:", checks_needed(2000, 0.05, 0.015, plan="sequential"))
print(Audit.from_checks(2000, wrong[rows[:120]]))
