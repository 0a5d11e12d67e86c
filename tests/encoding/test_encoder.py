"""A table as it is, to numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fewlabel import FewLabelClassifier, TableEncoder, load, save
from fewlabel._core.errors import UserError
from fewlabel.encoding.frames import as_table, needs_encoding

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

N = 120
WORDS = [
    "river",
    "mountain",
    "engine",
    "guitar",
    "window",
    "planet",
    "coffee",
    "ladder",
    "signal",
    "harbour",
]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    made = pd.DataFrame(
        {
            "number": rng.normal(size=N),
            "yes": rng.random(N) < 0.5,
            "category": rng.choice(["a", "b", "c"], N),
            "text": [" ".join(rng.choice(WORDS, 8)) for _ in range(N)],
            "date": pd.date_range("2020-01-01", periods=N).strftime("%m/%d/%Y"),
            "price": [f"€ {v:.2f}".replace(".", ",") for v in rng.uniform(1, 99, N)],
            "zip": [f"{v:05}" for v in rng.integers(1000, 1060, N)],
            "code": [f"PAL{i:04}" for i in range(N)],
        }
    )
    made.loc[5, ["number", "category", "text", "date"]] = None
    return made


def kinds(encoder):
    return {column.name: column.kind for column in encoder.plan_}


def test_a_mixed_frame(table):
    encoder = TableEncoder()
    X = encoder.fit_transform(table)
    assert kinds(encoder) == {
        "number": "number",
        "yes": "yes/no",
        "category": "category",
        "text": "text",
        "date": "date",
        "price": "number",
        "zip": "category",
        "code": "left out",
    }
    assert X.dtype == np.float32
    assert np.isfinite(X).all()
    names = encoder.get_feature_names_out()
    assert X.shape == (N, len(names)) == (N, len(set(names)))
    np.testing.assert_array_equal(encoder.transform(table), X)
    one = encoder.transform(table.iloc[[7]])  # rows do not depend on each other
    np.testing.assert_allclose(one[0], X[7], atol=1e-5)
    assert "1,234.5" not in encoder.plan_[5].why
    assert "1.234,5 €" in encoder.plan_[5].why
    assert str(encoder.plan_[7]).startswith("code: left out: nearly every row has its own code")


def test_pandas_polars_arrow_and_objects_give_the_same(table):
    frames = [table, pl.from_pandas(table), pa.Table.from_pandas(table), as_table(table)]
    X = [TableEncoder().fit_transform(frame) for frame in frames]
    for other in X[1:]:
        np.testing.assert_allclose(X[0], other, atol=1e-5)
    objects = TableEncoder().fit(table[["number", "category"]].to_numpy(dtype=object))
    assert kinds(objects) == {"x0": "number", "x1": "category"}
    column = TableEncoder().fit(table["text"])
    assert kinds(column) == {"text": "text"}


def test_what_is_asked_for(table):
    encoder = TableEncoder(
        text=["code"],
        category=["number"],
        number=["zip"],
        drop=["price"],
        date={"date": "%m/%d/%Y"},
    ).fit(table)
    found = kinds(encoder)
    assert (found["code"], found["number"], found["zip"]) == ("text", "category", "number")
    assert (found["price"], found["date"]) == ("left out", "date")
    assert encoder.plan_[0].why == "asked for"
    with pytest.raises(UserError, match=r"no column 'Zip' for drop\. Did you mean 'zip'"):
        TableEncoder(drop=["Zip"]).fit(table)
    with pytest.raises(UserError, match="'zip' is named for a kind, and it is dropped"):
        TableEncoder(text=["zip"], drop=["zip"]).fit(table)
    with pytest.raises(UserError, match="is to be a date, but no cell"):
        TableEncoder(date=["category"]).fit(table)
    with pytest.raises(UserError, match="is to be a number, but no cell"):
        TableEncoder(number=["text"]).fit(table)


def test_a_text_encoder_of_the_user(table):
    encoder = TableEncoder(text_encoder=CountVectorizer())
    X = encoder.fit_transform(table[["text"]])
    assert X.shape == (N, len(WORDS))
    assert X[0].sum() == 8
    np.testing.assert_array_equal(encoder.transform(table[["text"]]), X)


def test_words_and_letters():
    rng = np.random.default_rng(0)
    long = [" ".join(rng.choice(WORDS, 8)) for _ in range(N)]
    short = ["".join(rng.choice(list("abcdef"), 9)) for _ in range(N)]
    letters = ["a b c d", "e f g h"] * (N // 2)
    table = pd.DataFrame({"long": long, "short": short, "letters": letters})
    encoder = TableEncoder(text=["letters"])
    assert np.isfinite(encoder.fit_transform(table)).all()
    assert [column.words for column in encoder.plan_] == [True, False, True]
    assert "of its words" in encoder.plan_[0].treatment
    assert "of its letters" in encoder.plan_[1].treatment


def test_in_pipelines_and_searches(table):
    y = (table["yes"]).astype(int)
    pipeline = make_pipeline(TableEncoder(), StandardScaler(), LogisticRegression())
    search = GridSearchCV(pipeline, {"tableencoder__drop": [None, ["yes"]]}, cv=2).fit(table, y)
    assert search.best_params_ == {"tableencoder__drop": None}
    assert search.score(table, y) > 0.9
    again = clone(TableEncoder(text=["a"], random_state=3))
    assert (again.text, again.random_state) == (["a"], 3)


def test_numbers_go_through_untouched():
    X = np.arange(12.0).reshape(6, 2)
    frame = pd.DataFrame(X, columns=["a", "b"])
    for rows in (X, frame, pl.from_pandas(frame), csr_array(X)):
        assert not needs_encoding(rows)
        encoder = TableEncoder()
        assert encoder.fit_transform(rows) is rows
        assert encoder.transform(rows) is rows
    assert TableEncoder().fit(frame).get_feature_names_out().tolist() == ["a", "b"]
    assert TableEncoder(drop=["a"]).fit_transform(frame).shape == (6, 1)
    gaps = frame.where(frame > 2)
    assert needs_encoding(gaps)
    assert np.isfinite(TableEncoder().fit_transform(gaps)).all()


@pytest.mark.parametrize(
    ("rows", "needed"),
    [
        (np.array([["a", 1]], dtype=object), True),
        (np.array([[1, 2.5]], dtype=object), False),
        (np.array(["a", "b"]), False),  # a text pipeline's
        ([[1, 2]], False),
        (pd.DataFrame({"a": [True, False]}), True),
        (pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}), True),
        (pd.Series(["a", "b"]), True),
        (pl.DataFrame({"a": [1.0, None]}), True),
        (pl.Series("a", [1, 2]), False),
    ],
)
def test_what_needs_encoding(rows, needed):
    assert needs_encoding(rows) is needed


def test_categories_of_many_values_keep_them_apart():
    """500 values: which of them a row has can still be told, typing errors lie beside them."""
    rng = np.random.default_rng(0)
    names = ["".join(rng.choice(list("abcdefghijklmnop"), 8)) for _ in range(500)]
    cells = rng.choice(names, 3000)
    encoder = TableEncoder()
    X = encoder.fit_transform(pd.DataFrame({"c": cells}))
    assert encoder.plan_[0].many
    assert len(np.unique(X.round(4), axis=0)) == len(set(cells))
    typo = [name[:3] + "X" + name[4:] for name in cells[:200]]
    near = encoder.transform(pd.DataFrame({"c": typo}))[:, -30:]
    distances = ((near[:, None, :] - X[None, :, -30:]) ** 2).sum(axis=2)
    assert np.mean(cells[distances.argmin(axis=1)] == cells[:200]) > 0.8


def test_indicators_of_rare_new_and_missing_values():
    cells = ["a"] * 5 + ["b"] * 4 + [None] + [f"r{i % 50} x" for i in range(100)]
    encoder = TableEncoder(category=["c"]).fit(pd.DataFrame({"c": cells}))
    names = [name for name in encoder.get_feature_names_out() if name.startswith("c=")]
    assert len(names) == 41  # 39 values, rare and missing
    rows = encoder.transform(pd.DataFrame({"c": ["a", "new", None]}))[:, : len(names)]
    assert [names[i] for i in rows.argmax(axis=1)] == ["c=a", "c=(rare)", "c=(missing)"]
    assert rows.sum(axis=1).tolist() == [1, 1, 1]


def test_sentinels_duplicates_and_constants_are_told():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 50, N).astype(float)
    values[::10] = -999
    table = pd.DataFrame(
        {"a": values, "b": values, "c": 1, "d": rng.normal(size=N), "row": range(N)}
    )
    encoder = TableEncoder().fit(table.assign(e="x"))
    assert "-999 (12 cells) counts as missing" in encoder.plan_[0].treatment
    assert encoder.plan_[1].treatment == "the same as column 'a'"
    assert encoder.plan_[2].treatment == "all rows have the same value"
    assert "counts the rows" in encoder.plan_[4].treatment
    assert encoder.get_feature_names_out().tolist() == ["a", "a (missing)", "d"]
    assert encoder.encode(table)[1] == []  # a sentinel is no odd cell


def test_cells_that_cannot_be_read_are_told():
    train = pd.DataFrame({"n": [f"{v}.5" for v in range(40)]})
    encoder = TableEncoder().fit(train)
    with pytest.warns(UserWarning, match="1 of 20 filled cells hold no number"):
        encoder.transform(pd.DataFrame({"n": ["1.5"] * 19 + ["x"]}))
    with pytest.raises(UserError, match="held a number when the model was trained"):
        encoder.transform(pd.DataFrame({"n": ["x"] * 20}))
    with pytest.raises(UserError, match=r"lacks columns .* 'n'.*\(drop\)"):
        encoder.transform(pd.DataFrame({"m": [1, 2]}))
    with pytest.raises(UserError, match="No column is left"):
        TableEncoder().fit(pd.DataFrame({"a": ["x"] * 5}))
    with pytest.raises(UserError, match="the same name: 'a'"):
        TableEncoder().fit(pd.DataFrame([["x", "y"]], columns=["a", "a"]))


def test_categories_that_are_mostly_new_are_told():
    train = pd.DataFrame({"plan": ["a", "b", "c", None] * 10})
    encoder = TableEncoder().fit(train)
    with pytest.warns(UserWarning, match="'plan': 7 of 12 filled cells hold values .* first: 'x'"):
        encoder.transform(pd.DataFrame({"plan": ["x"] * 7 + ["a"] * 5 + [None] * 20}))
    half, few = ["x"] * 6 + ["a"] * 6, ["x"] * 9
    many = pd.DataFrame({"plan": [f"v{i % 60}" for i in range(240)]})
    assert encoder.encode(pd.DataFrame({"plan": half}))[1] == []
    assert encoder.encode(pd.DataFrame({"plan": few}))[1] == []
    assert TableEncoder().fit(many).encode(pd.DataFrame({"plan": ["x"] * 20}))[1] == []


@parametrize_with_checks([TableEncoder()])
def test_scikit_learn(estimator, check):
    check(estimator)


def test_texts_alone_can_stay_sparse():
    texts = [f"word{i % 7} and word{i % 5} again {'x' * (i % 3)}" for i in range(40)]
    table = pd.DataFrame({"text": texts, "id": [f"A{i:03}" for i in range(40)]})
    encoder = TableEncoder(sparse=True, text=["text"])
    X = encoder.fit_transform(table)
    assert issparse(X)
    assert X.dtype == np.float32
    names = encoder.get_feature_names_out().tolist()
    assert "text: word3" in names
    assert encoder.plan_[0].treatment == "the tf-idf of its words"
    by_hand = TfidfVectorizer().fit_transform(texts)
    np.testing.assert_allclose(X.toarray(), by_hand.toarray(), atol=1e-6)
    assert abs(encoder.transform(table[5:9]) - X[5:9]).max() < 1e-6
    mixed = table.assign(size=range(3, 43))
    assert not issparse(
        TableEncoder(sparse=True, text=["text"], number=["size"]).fit_transform(mixed)
    )


def test_a_table_of_text_alone_is_learned_saved_and_loaded(tmp_path):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 120)
    own = np.array([["rain", "cloud", "wet"], ["sun", "dry", "hot"]])
    words = [
        " ".join([*rng.choice(own[c], 2), *rng.choice(["the", "day", "was"], 3)]) for c in codes
    ]
    table = pd.DataFrame({"report": [f"{w} {i % 11}0" for i, w in enumerate(words)]})
    y = np.where(rng.random(120) < 0.3, codes, -1)
    clf = FewLabelClassifier(
        ["svm", "semi_lda", "s3vm"],
        table=TableEncoder(text=["report"], sparse=True),
        random_state=0,
    )
    clf.fit(table, y)
    assert (clf.transduction_ == codes).mean() > 0.9
    assert {voter.left_out for voter in clf.voters_} == {""}
    save(clf, tmp_path / "m.skops")
    np.testing.assert_allclose(
        load(tmp_path / "m.skops").predict_proba(table), clf.predict_proba(table)
    )
