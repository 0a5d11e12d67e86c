"""What the learner of a mixed vote computes itself, by hand: no family is trained here."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from fewlabel._core.arrays import RowView
from fewlabel.assess.prevalence import shifted
from fewlabel.ensemble.families import Voter
from fewlabel.ensemble.learner import (
    MixedVoteLearner,
    TrainedFamily,
    gibbs_weights,
    without_light_voters,
)
from fewlabel.ensemble.mixed_vote import VoterRecord
from fewlabel.selection.training_set import TrainingSet


def learner(families=(), **options):
    trainer = SimpleNamespace(n_classes=3, labeled=np.array([0, 1, 2, 3]))
    return MixedVoteLearner(families, trainer, 3.0, None, 100, print, **options)


# --- Q ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "kept"),
    [
        ([0.965, 0.035], [0.965, 0.035]),
        ([0.5, 0.47, 0.03], [0.5, 0.47, 0.03]),  # as little as counts
        ([0.5, 0.4725, 0.0275], [0.5 / 0.9725, 0.4725 / 0.9725, 0.0]),
        # A tenth of the heaviest counts, however little it is.
        ([*[0.05] * 19, 0.044, 0.006], [*[0.05] * 19, 0.044, 0.006]),
        ([*[0.05] * 19, 0.046, 0.004], [*[0.05 / 0.996] * 19, 0.046 / 0.996, 0.0]),
    ],
)
def test_voters_that_hardly_count_are_left_out(weights, kept):
    np.testing.assert_allclose(without_light_voters(np.array(weights)), kept)


@pytest.mark.parametrize(("balanced", "n", "loss"), [(False, 4, 0.25), (True, 3.0, 0.5)])
def test_weights_fall_with_the_quadratic_loss(balanced, n, loss):
    """One voter is right; the other says class 0 of every row, of which one of four is not."""
    y = np.array([0, 0, 0, 1])
    held_out = np.stack([np.eye(2)[y], np.eye(2)[[0, 0, 0, 0]]])
    found = gibbs_weights(held_out, y, inverse_temperature=2.0, balanced=balanced)
    other = np.exp(-2.0 * np.sqrt(n) * loss)
    np.testing.assert_allclose(found, [1 / (1 + other), other / (1 + other)])


def test_the_mix_keeps_the_voters_that_have_weight():
    """The third errs on one of four rows; nobody voted on the last, which counts in no error."""
    codes = np.array([0, 1, 1, 1, 1])
    trainer = SimpleNamespace(n_classes=2, labeled=np.arange(5), scored=np.arange(4), codes=codes)
    ours = MixedVoteLearner((), trainer, 30.0, None, 100, print)
    held_out = [np.eye(2)[codes], np.eye(2)[[0, 1, 1, 1, 0]], np.eye(2)[[1, 1, 1, 1, 1]]]
    for votes in held_out:
        votes[4] = 0.0
    trained = [
        TrainedFamily(SimpleNamespace(name=name), f"voter {name}", votes)
        for name, votes in zip("abc", held_out)
    ]
    records = [VoterRecord(name, name, 9.0, 1.0, 0.1) for name in "abcd"]
    vote = ours._mix(records, trained, np.array(["x", "y"]))
    assert vote.estimators == ["voter a", "voter b"]
    assert vote.weights.tolist() == [0.5, 0.5]
    assert vote.evidence_.posterior.weights.tolist() == [0.5, 0.5, 0.0]
    assert [record.weight for record in vote.evidence_.records] == [0.5, 0.5, 0.0, 0.0]
    assert vote.held_out_votes.tolist() == [[1, 0], [0, 1], [0, 1], [0, 1], [0, 0]]
    np.testing.assert_allclose(vote.evidence_.posterior.errors, [0.0, 0.0, 0.25])


# --- class shares ----------------------------------------------------------------------------


def training(rows, codes, weight=None):
    X = RowView(np.zeros((9, 1)), np.array(rows))
    return TrainingSet(X, np.array(codes), np.arange(3), weight)


def test_votes_are_shifted_to_the_wanted_shares():
    """Three rows of class 0 and one of class 1, all labelled; class 2 has none and stays."""
    ours = learner(class_shares=np.array([0.2, 0.7, 0.1]))
    voter = ours._shifted(Voter("a", None, None, 3), training([0, 1, 2, 3], [0, 0, 0, 1]))
    np.testing.assert_allclose(voter.shift, [0.2 * 4 / 3, 0.7 * 4, 1.0])


def test_pseudo_labels_follow_the_wanted_shares_already():
    """Half of the weight is of given labels: the square root of the ratio is left."""
    ours = learner(class_shares=np.array([0.2, 0.7, 0.1]))
    weight = np.array([1.0, 2.0, 1.0, 2.0])
    rows = training([0, 1, 7, 8], [0, 1, 0, 2], weight)
    voter = ours._shifted(Voter("a", None, None, 3), rows)
    np.testing.assert_allclose(voter.shift, np.sqrt([0.2 * 6 / 2, 0.7 * 6 / 2, 0.1 * 6 / 2]))


def test_held_out_votes_are_shifted_with_the_voters_where_there_are_any():
    ours = learner(class_shares=np.array([0.2, 0.7, 0.1]))
    rows, votes = training([0, 1, 2, 3], [0, 0, 1, 2]), np.array([[0.5, 0.3, 0.2], [0, 0, 0]])
    voter = Voter("a", None, None, 3)
    found = ours._shift_both(voter, votes.copy(), rows)
    np.testing.assert_allclose(found[0], shifted(votes[:1], voter.shift)[0])
    assert found[0, 1] > 0.5
    assert not found[1].any()


def test_without_wanted_shares_votes_stay():
    voter, votes = Voter("a", None, None, 3), np.array([[0.5, 0.3, 0.2]])
    rows = training([0, 1], [0, 1])
    assert learner()._shift_both(voter, votes.copy(), rows).tolist() == votes.tolist()
    assert voter.shift is None


# --- progress --------------------------------------------------------------------------------


def test_the_seconds_left_are_those_of_the_families_to_come():
    """Two of four took 6 s together, so the other two take about 6 s."""
    told = []
    families = [SimpleNamespace(title=title) for title in "abcd"]
    ours = learner(families, on_start=told.append)
    ours._tell_start(families[0])
    ours._seconds.extend([2.0, 4.0])
    ours._tell_start(families[2])
    assert told[1] == {"training": "c", "position": 3, "n_families": 4, "seconds_left": 6.0}
    assert told[0]["position"] == 1
    assert np.isnan(told[0]["seconds_left"])


def test_a_family_that_is_left_out_has_no_weight_and_takes_no_time():
    family, told = SimpleNamespace(name="a", title="A"), []
    ours = learner([family], on_start=told.append)
    record, found = ours._try_family(family, "it is too slow", training([0, 1], [0, 1]))
    assert found is None
    assert (record.name, record.title, record.left_out) == ("a", "A", "it is too slow")
    assert record.weight == 0.0
    assert np.isnan(record.accuracy)
    assert 0 <= record.seconds < 10
    assert ours._seconds == [record.seconds]
    assert told[0]["training"] == "A"


# --- votes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("refitted", "graph", "most", "asked"),
    [
        (True, False, 30, 1),  # ten rows of three classes are kept
        (True, False, 29, 2),
        (True, True, 29, 1),  # neighbours are looked for once
        (False, False, 29, 1),
    ],
)
def test_a_voter_is_asked_once_if_its_votes_can_be_kept(refitted, graph, most, asked, monkeypatch):
    monkeypatch.setattr("fewlabel.ensemble.learner._MOST_KEPT", most)
    every, calls = np.arange(30.0).reshape(10, 3), []

    def vote(voter, family, rows):
        calls.append(len(rows))
        return every[rows]

    trainer = SimpleNamespace(n_classes=3, codes=np.arange(10), vote=vote)
    family = SimpleNamespace(name="a", refitted=refitted, graph=graph)
    ours = MixedVoteLearner([family], trainer, 3.0, None, 100, print)
    model = SimpleNamespace(weights=[1.0], estimators=[SimpleNamespace(name="a")])
    for rows in ([1, 4], [2, 2, 0]):
        view = RowView(every, np.array(rows))
        np.testing.assert_array_equal(ours.votes(model, view), every[rows])
    assert len(calls) == asked
    assert sum(calls) == (10 if asked == 1 else 5)
