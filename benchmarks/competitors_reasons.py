"""Why a cell of docs/baselines.md differs from the paper's by more than two standard errors.

{LS raw} stands for our mean of that column or variant on the data set, {LS@1.5} for that at one
point of the grid. "Not explained" is said where nothing we tried comes near the paper's figure.
"""

from __future__ import annotations

_SIGNS = (
    "The paper does not say how it combines the machines. With their yes or no instead of their "
    "outputs ours gives {QN-S3VM signs}, near the paper's figure, which was probably made so. "
)
_PLAIN = (
    "The paper's figure is close to supervised LDA without any shrinkage, {LDA plain}. "
    "Shrinkage alone gives {LDA}; the unlabelled rows then change it to "
    "{Semi-LDA converged} at convergence. With next to no shrinkage ours gives {Semi-LDA unshrunk}."
)

REASONS: dict[tuple[str, str], str] = {
    ("protein", "LS"): (
        "Scaling, which the paper does not mention: raw features give {LS raw}, standardised ones "
        "{LS standard}; the paper's figure lies between them."
    ),
    ("dna", "LS"): (
        "Scaling: our 0/1 features stay as they are; standardised they give {LS standard}."
    ),
    ("pageblocks", "LS"): (
        "Not explained by scaling: raw features give {LS raw}, standardised ones {LS standard}. At "
        "the second point of the grid, gamma=1.5, ours gives {LS@1.5}, near the paper's figure: "
        "its features may have been scaled to a smaller range than any here."
    ),
    ("pendigits", "LS"): (
        "Not explained: raw features give {LS raw}, further from the paper, and the graph of "
        "nearest neighbours {LS k-NN}."
    ),
    ("isolet", "LS"): (
        "Not explained: the features come in [-1, 1], and the best point of the grid is inside it. "
        "At its neighbours ours gives {LS@0.5} and {LS@0.01}."
    ),
    ("vowel", "QN-S3VM"): _SIGNS + "Without unlabelled rows: {SVM}.",
    ("protein", "QN-S3VM"): _SIGNS + "Raw features: {QN-S3VM raw}; without unlabelled rows: {SVM}.",
    ("dna", "QN-S3VM"): (
        "Convergence and the combination of the machines: stopped after 5 iterations of each "
        "annealing step ours gives {QN-S3VM early}, with yes or no instead of outputs "
        "{QN-S3VM signs}. Without unlabelled rows it is {SVM}: the method itself works here."
    ),
    ("pageblocks", "QN-S3VM"): (
        "Perhaps scaling: on one split raw features give {QN-S3VM raw}, where ours is lower than "
        "the paper by three thousandths. Signs instead of outputs give {QN-S3VM signs}."
    ),
    ("pendigits", "QN-S3VM"): _SIGNS + "Without unlabelled rows: {SVM}.",
    ("isolet", "QN-S3VM"): _SIGNS + "Without unlabelled rows: {SVM}.",
    ("vowel", "Semi-LDA"): (
        "Not explained: at the paper's three rates ours gives {Semi-LDA@0.0001}, {Semi-LDA@0.001} "
        "and {Semi-LDA@0.01}, at convergence {Semi-LDA converged}, with next to no shrinkage "
        "{Semi-LDA unshrunk}. Supervised LDA gives {LDA plain}: as in the paper, the unlabelled "
        "rows do not help here. Where the paper's labels start is not stated; ours start from the "
        "supervised posterior."
    ),
    ("protein", "Semi-LDA"): _PLAIN,
    ("dna", "Semi-LDA"): _PLAIN,
    ("isolet", "Semi-LDA"): (
        "Mostly shrinkage: supervised LDA without any gives {LDA plain}, with it {LDA}. The rest "
        "is not explained; the covariance of 389 rows in 617 dimensions is singular and the paper "
        "does not say how it is inverted."
    ),
}
