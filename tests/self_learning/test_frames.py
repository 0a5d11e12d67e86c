"""Frames as they are: the estimators encode what is not a number by themselves."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from fewlabel import FewLabelClassifier, SelfLearningClassifier, TableEncoder

pd = pytest.importorskip("pandas")
pytest.importorskip("skrub", reason="skrub is not installed: pip install 'fewlabel[cli]'")

N, GIVEN = 240, 40
RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 2, N)
TRUTH = np.array(["cat", "dog"])[CODES]
TABLE = pd.DataFrame(
    {
        "weight": RNG.normal(2.0 * CODES, 1.5),
        "colour": np.where(RNG.random(N) < 0.8, np.array(["grey", "brown"])[CODES], "white"),
        "note": [
            f"{word} in garden {i}" for i, word in enumerate(np.array(["purrs", "barks"])[CODES])
        ],
        "born": pd.to_datetime("2020-01-01") + pd.to_timedelta(RNG.integers(0, 900, N), "D"),
        "chipped": RNG.random(N) < 0.5,
    }
)
TABLE.loc[::7, "colour"] = None
TARGET = pd.Series(TRUTH, dtype=object).where(np.arange(N) < GIVEN)

LEARNERS = [
    FewLabelClassifier(["lda", "svm"], random_state=0),
    SelfLearningClassifier(random_state=0),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda clf: type(clf).__name__)
def test_a_frame_is_learned_as_it_is(learner):
    clf = clone(learner).fit(TABLE, TARGET)
    assert (clf.transduction_[GIVEN:] == TRUTH[GIVEN:]).mean() > 0.9
    assert isinstance(clf.table_encoder_, TableEncoder)
    assert clf.score(TABLE[GIVEN:], TRUTH[GIVEN:]) > 0.9
    assert clf.confidence(TABLE[:3]).shape == (3,)
    assert clf.error_.safe
    polars = pytest.importorskip("polars")
    frame = polars.from_pandas(TABLE)
    np.testing.assert_array_equal(clf.predict(frame), clf.predict(TABLE))


def test_an_encoder_of_the_users_is_cloned():
    encoder = TableEncoder(drop=["note"])
    clf = FewLabelClassifier(["lda", "svm"], table=encoder, random_state=0).fit(TABLE, TARGET)
    assert not hasattr(encoder, "plan_")
    names = clf.table_encoder_.get_feature_names_out()
    assert not any(name.startswith("note") for name in names)


def test_numbers_go_through_untouched():
    numbers = TABLE[["weight"]].assign(more=np.where(RNG.random(N) < 0.1, np.nan, RNG.random(N)))
    clf = FewLabelClassifier(["lda", "svm"], random_state=0).fit(numbers, TARGET)
    assert clf.table_encoder_ is None
    assert clf.feature_names_in_.tolist() == ["weight", "more"]


def test_frames_are_refused_without_encoder():
    with pytest.raises(ValueError, match=r"could not convert|numeric|dtype"):
        FewLabelClassifier(["lda"], table=None).fit(TABLE, TARGET)
    with pytest.raises((ValueError, TypeError)):
        SelfLearningClassifier(GaussianNB(), table=None).fit(TABLE, TARGET)


def test_an_own_estimator_that_wants_numbers_gets_them():
    clf = SelfLearningClassifier(GaussianNB()).fit(TABLE, TARGET)
    assert isinstance(clf.table_encoder_, TableEncoder)
    assert clf.score(TABLE[GIVEN:], TRUTH[GIVEN:]) > 0.85
    forest = SelfLearningClassifier(RandomForestClassifier(10), table=TableEncoder(drop=["note"]))
    names = forest.fit(TABLE, TARGET).table_encoder_.get_feature_names_out()
    assert not any(name.startswith("note") for name in names)


def test_a_pipeline_gets_the_rows_as_they_are():
    words = make_pipeline(TfidfVectorizer(), LogisticRegression())
    clf = SelfLearningClassifier(words).fit(TABLE["note"], TARGET)
    assert clf.table_encoder_ is None
    assert (clf.transduction_[GIVEN:] == TRUTH[GIVEN:]).mean() > 0.9


def test_a_single_column_of_text_is_a_table():
    polars = pytest.importorskip("polars")
    # Each text has a word of its own: many directions are equally long.
    families = ["forest", "spreading", "spreading_white"]
    clf = FewLabelClassifier(families, random_state=0).fit(TABLE["note"], TARGET)
    assert not any(voter.left_out for voter in clf.voters_)
    assert (clf.transduction_[GIVEN:] == TRUTH[GIVEN:]).mean() > 0.9
    column = polars.Series("note", TABLE["note"].tolist())
    np.testing.assert_array_equal(clf.predict(column), clf.predict(TABLE["note"]))


def test_columns_that_came_with_the_labels_are_told_of():
    leaky = TABLE.assign(status=np.where(np.arange(N) < GIVEN, "done", "pending"))
    with pytest.warns(UserWarning, match="status"):
        clf = FewLabelClassifier(["lda", "svm"], random_state=0).fit(leaky, TARGET)
    assert not any(n.startswith("status") for n in clf.table_encoder_.get_feature_names_out())


def test_durations_and_intervals_are_features():
    table = TABLE[["weight"]].assign(
        kept=pd.to_timedelta(RNG.permutation(N), unit="h"), size=pd.cut(TABLE["weight"], 5)
    )
    target = np.where(np.arange(N) < GIVEN, CODES, -1)
    for columns in (["weight", "kept"], ["weight", "size"], ["weight", "kept", "size"]):
        clf = FewLabelClassifier(["forest", "lda"], random_state=0, max_iter=0)
        clf.fit(table[columns], target)
        assert clf.score(table[columns][GIVEN:], CODES[GIVEN:]) > 0.7


def test_dates_may_be_classes_and_no_date_is_no_label():
    days = pd.Series(pd.to_datetime(["2024-01-01", "2024-06-01"])[CODES])
    target = days.where(np.arange(N) < GIVEN)
    clf = FewLabelClassifier(["forest", "lda"], random_state=0, max_iter=0)
    clf.fit(TABLE[["weight"]], target)
    assert len(clf.classes_) == 2
    assert (clf.labeled_iter_ == 0).sum() == GIVEN


@pytest.mark.parametrize("estimator", [FewLabelClassifier, SelfLearningClassifier])
def test_a_lazy_frame_must_be_collected(estimator):
    pl = pytest.importorskip("polars")
    for columns in (["weight"], ["weight", "colour"]):
        with pytest.raises(TypeError, match="collect"):
            estimator().fit(pl.from_pandas(TABLE[columns]).lazy(), CODES)
