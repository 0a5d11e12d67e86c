"""Rare classes: balanced scoring, and class shares that the user knows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import recall_score

from fewlabel import FewLabelClassifier
from fewlabel.assess.prevalence import check_priors
from fewlabel.ensemble.voter_votes import VoterVotes

VOTERS = ["lda", "svm"]


def rare(seed: int = 0, n: int = 1_200, share: float = 0.06):
    """Two classes that overlap, one of them rare; 150 random labels."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < share).astype(int)
    X = rng.normal(size=(n, 3)) + 1.4 * truth[:, None]
    labeled = np.zeros(n, dtype=bool)
    labeled[rng.permutation(n)[:150]] = True
    labeled[np.flatnonzero(truth)[:4]] = True
    return X, truth, labeled


@pytest.fixture(scope="module")
def fits():
    X, truth, labeled = rare(seed=1)
    y = np.where(labeled, truth, -1)
    common = {"voters": VOTERS, "random_state": 0}
    return {
        "truth": truth[~labeled],
        "X": X,
        "plain": FewLabelClassifier(**common).fit(X, y),
        "balanced": FewLabelClassifier(**common, scoring="balanced").fit(X, y),
    }


def labels_of(clf) -> np.ndarray:
    return clf.transduction_[clf.labeled_iter_ != 0]


def test_balanced_errors_are_means_over_classes():
    votes = np.eye(2)[[[0, 0, 0, 0], [1, 0, 0, 1]]]
    y = [0, 0, 0, 1]
    assert VoterVotes(votes, y).errors.tolist() == [0.25, 0.25]
    balanced = VoterVotes(votes, y, balanced=True)
    np.testing.assert_allclose(balanced.errors, [0.5, 1 / 6])
    assert balanced.n_rows == pytest.approx(4 / (1 / 3 + 1))  # Kish


def test_balanced_scoring_finds_more_of_the_rare_class(fits):
    truth = fits["truth"]
    plain, balanced = (recall_score(truth, labels_of(fits[k])) for k in ("plain", "balanced"))
    assert balanced > plain + 0.1
    both = [recall_score(truth, labels_of(fits[k]), average="macro") for k in ("plain", "balanced")]
    assert both[1] > both[0] + 0.05


def test_the_error_is_still_that_of_the_table(fits):
    """Votes for equal shares must not make the estimate one for equal shares."""
    for name in ("plain", "balanced"):
        clf = fits[name]
        wrong = (labels_of(clf) != fits["truth"]).mean()
        assert clf.error_.low - 0.01 <= wrong <= clf.error_.high + 0.01
        rare_labels = labels_of(clf) == 1
        confidence = clf.confidence_[clf.labeled_iter_ != 0][rare_labels].mean()
        assert confidence == pytest.approx((fits["truth"] == 1)[rare_labels].mean(), abs=0.25)


def test_recall_of_each_class_is_estimated(fits):
    for name in ("plain", "balanced"):
        for c, recall in enumerate(fits[name].error_.recall):
            true = (labels_of(fits[name]) == fits["truth"])[fits["truth"] == c].mean()
            assert recall.low - 0.02 <= true <= recall.high + 0.02


def test_new_rows_get_the_same_votes(fits):
    clf = fits["balanced"]
    unlabeled = clf.labeled_iter_ != 0
    votes = clf.predict_proba(fits["X"])[unlabeled]
    np.testing.assert_allclose(votes, clf.transduction_proba_[unlabeled], atol=1e-8)


def test_known_shares_correct_a_sample_of_each_class():
    rng = np.random.default_rng(3)
    X, truth, _ = rare(3, share=0.1)
    given = np.concatenate([rng.permutation(np.flatnonzero(truth == c))[:50] for c in (0, 1)])
    y = np.full(len(truth), -1)
    y[given] = truth[given]
    share = {0: (truth[y == -1] == 0).mean(), 1: (truth[y == -1] == 1).mean()}
    plain = FewLabelClassifier(VOTERS, random_state=0, labels="per class").fit(X, y)
    known = FewLabelClassifier(VOTERS, random_state=0, priors=share).fit(X, y)
    wrong = [(labels_of(clf) != truth[y == -1]).mean() for clf in (plain, known)]
    assert wrong[1] < wrong[0] - 0.02
    assert known.error_.low <= wrong[1] <= known.error_.high
    assert known.error_.value < plain.error_.value
    assert known.error_.prevalence[1].value == pytest.approx(share[1])
    assert "class shares are those given" in known.error_.assumes


@pytest.mark.parametrize(
    ("priors", "message"),
    [
        ({"a": 1.0}, r"no share of 'b'. The classes are 'a', 'b'"),
        ({"a": 0.5, "b": 0.3, "c": 0.2}, "no labelled row of 'c'"),
        ({"a": 0.5, "b": 0.3}, r"sum to 1. Got \[0.5, 0.3\], in all 0.8"),
        ({"a": 1.0, "b": 0.0}, "above 0"),
        ([0.2, 0.3, 0.5], r"each of the 2 classes. Got an array of shape \(3,\)"),
        ({"a": float("nan"), "b": 1.0}, "above 0"),
    ],
)
def test_shares_that_cannot_be(priors, message: str):
    with pytest.raises(ValueError, match=message):
        check_priors(priors, np.array(["a", "b"]))
