"""A round of self-learning that does not help is not kept."""

import numpy as np
import pytest
from hypothesis import assume, given
from sklearn.datasets import make_blobs

import reference
from fewlabel import FewLabelClassifier
from fewlabel.ensemble import kept_rounds
from fewlabel.ensemble.kept_rounds import prefers_new_labels
from support.strategies import votes_and_proba


@given(votes_and_proba(), votes_and_proba())
def test_the_rule_is_its_literal_transcription(first, second):
    (votes, _), (new_votes, _) = first, second
    n, K = min(len(votes), len(new_votes)), min(votes.shape[1], new_votes.shape[1])
    votes, new_votes = votes[:n, :K], new_votes[:n, :K]
    difference = reference.prefers_new_labels(votes, new_votes)
    assume(abs(difference) > 1e-9)
    assert prefers_new_labels(votes, new_votes) == (difference > 0)


@given(votes_and_proba())
def test_a_vote_with_the_same_labels_is_kept(drawn):
    assert prefers_new_labels(drawn[0], drawn[0])


def test_a_round_must_be_surer_than_the_vote_before_it():
    votes = np.array([[0.75, 0.25]])
    assert not prefers_new_labels(votes, np.array([[0.25, 0.75]]))
    assert not prefers_new_labels(votes, np.array([[0.21, 0.79]]))
    assert prefers_new_labels(votes, np.array([[0.19, 0.81]]))


@pytest.fixture
def rows():
    X, y = make_blobs(150, 4, centers=3, cluster_std=4.0, random_state=1)
    return X, np.where(np.arange(150) < 24, y, -1)


VOTERS = ["forest", "svm", "spreading"]


def test_a_round_that_does_not_help_leaves_the_first_vote(rows, monkeypatch):
    X, y = rows
    monkeypatch.setattr(kept_rounds, "prefers_new_labels", lambda *votes: False)
    clf = FewLabelClassifier(VOTERS, random_state=0).fit(X, y)
    assert clf.n_iter_ == 1
    assert clf.estimator_ is clf.initial_estimator_
    np.testing.assert_array_equal(clf.transduction_proba_[y == -1], clf.initial_votes_)
    np.testing.assert_allclose(
        clf.predict_proba(X[:5]), clf.initial_estimator_.predict_proba(X[:5])
    )


def test_the_same_for_rows_in_chunks(rows, monkeypatch):
    X, y = rows
    chunks, labeled = np.array_split(X[y == -1], 3), y != -1
    for helps in (False, True):
        monkeypatch.setattr(kept_rounds, "prefers_new_labels", lambda *votes, helps=helps: helps)
        clf = FewLabelClassifier(VOTERS, random_state=0)
        clf.fit(X[labeled], y[labeled], unlabeled=chunks)
        assert (clf.estimator_ is clf.initial_estimator_) == (not helps)


def test_a_round_is_judged_on_unlabelled_rows(rows, monkeypatch):
    X, y = rows
    seen = []

    def spy(votes, new_votes):
        seen.append((votes, new_votes))
        return True

    monkeypatch.setattr(kept_rounds, "prefers_new_labels", spy)
    clf = FewLabelClassifier(VOTERS, random_state=0).fit(X, y)
    ((votes, new_votes),) = seen
    order = lambda rows: rows[np.lexsort(rows.T)]  # noqa: E731
    np.testing.assert_allclose(order(votes), order(clf.initial_votes_))
    np.testing.assert_allclose(order(new_votes), order(clf.transduction_proba_[y == -1]))
