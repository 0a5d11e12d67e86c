"""The report: one summary, three formats, every bound with its kind, every text escaped."""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import io
import json
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import bsr_array, coo_array, coo_matrix
from sklearn.datasets import make_blobs, make_classification
from sklearn.ensemble import RandomForestClassifier

from fewlabel import (
    SelfLearningClassifier,
    conditional_error_bound,
    threshold_curves,
    transductive_bound,
)
from fewlabel._core.errors import UserError
from fewlabel.report import Report, format_of, render
from fewlabel.report.html import json_for_html, label_next_csv
from fewlabel.report.markdown import text
from fewlabel.report.state import FinalState, combine, next_to_label
from fewlabel.report.summarize import MAX_CLASSES, summarize
from fewlabel.report.words import headline, percent, warnings_of

pytest.importorskip("jinja2")
pytest.importorskip("pyarrow")

EVIL = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "=cmd|' /C calc'!A0"]


def fit(n: int = 300, n_labeled: int = 40, names: Any = None, centers: int = 3, **options: Any):
    X, codes = make_blobs(n, 4, centers=centers, cluster_std=4.0, random_state=1)
    y = codes if names is None else np.array(names, dtype=object)[codes]
    target = y.astype(object)
    target[n_labeled:] = None
    forest = RandomForestClassifier(30, random_state=0)
    clf = SelfLearningClassifier(forest, random_state=0, missing_label=None, **options)
    return clf.fit(X, target), X, target, y


@pytest.fixture(scope="module")
def fitted():
    return fit()


@pytest.fixture(scope="module")
def evil_summary() -> dict[str, Any]:
    clf, X, target, y = fit(names=EVIL)
    return summarize(
        clf,
        X,
        target,
        y_true=y,
        title=EVIL[0],
        data={"columns": [{"name": EVIL[1], "kind": "number", "treatment": "</style>"}]},
        show_rows=lambda rows: [{EVIL[1]: EVIL[0], "=x": EVIL[2]} for _ in rows],
        notes=[EVIL[0]],
    )


# --- the summary -----------------------------------------------------------------------------


def test_summary_agrees_with_the_bounds_of_the_library(fitted):
    clf, X, target, y = fitted
    summary = summarize(clf, X, target, y_true=y)
    state = FinalState.of(clf, X, target)
    first = clf.initial_votes_
    trusted = first.max(axis=1) >= state.thresholds[first.argmax(axis=1)]
    assert summary["data"]["n_trusted"] == trusted.sum()
    assert sum(entry["n_trusted"] for entry in summary["classes"]) == trusted.sum()
    errors = {entry["key"]: entry for entry in summary["errors"]}
    expected = conditional_error_bound(first, state.label_proba, thresholds=state.thresholds)
    assert errors["trusted"]["bound"]["value"] == pytest.approx(expected)
    hidden = clf.labeled_iter_ != 0
    wrong = first.argmax(axis=1) != y[hidden]
    assert errors["trusted"]["true_error"] == pytest.approx(wrong[trusted].mean())
    assert errors["supervised"]["true_error"] == pytest.approx(wrong.mean())
    assert errors["all"]["true_error"] == pytest.approx(
        (clf.transduction_[hidden] != y[hidden]).mean()
    )


def test_without_x_the_bounds_are_those_of_the_estimator(fitted):
    clf, _, _, _ = fitted
    summary = summarize(clf)
    errors = {entry["key"]: entry for entry in summary["errors"]}
    votes = FinalState.of(clf).label_votes
    bound = transductive_bound(votes, clf.label_proba_, tight=True)
    assert errors["all"]["bound"]["value"] == pytest.approx(bound.risk)
    np.testing.assert_allclose(summary["confusion"]["matrix"], bound.confusion)


def test_the_error_of_all_labels_is_that_of_the_labels_that_are_given_out():
    """Trusted rows keep the first classifier's label, whatever the final one votes."""
    X, y = make_classification(
        300, 6, n_informative=4, n_redundant=0, n_classes=3, n_clusters_per_class=1, random_state=9
    )
    given = np.concatenate([np.flatnonzero(y == c)[:5] for c in range(3)])
    target = np.full(len(y), -1)
    target[given] = y[given]
    forest = RandomForestClassifier(30, random_state=9)
    clf = SelfLearningClassifier(forest, random_state=0).fit(X, target)
    state = FinalState.of(clf, X, target)
    label, trusted = combine(state.first_votes, state.votes, state.thresholds)
    np.testing.assert_array_equal(state.label, label)
    np.testing.assert_array_equal(state.trusted, trusted)
    assert (clf.classes_[label] != clf.transduction_[state.rows]).any()  # or it would show nothing
    summary = summarize(clf, X, target, y_true=y)
    shown = next(entry for entry in summary["errors"] if entry["key"] == "all")
    error = np.mean(clf.classes_[label] != y[state.rows])
    assert shown["true_error"] == pytest.approx(error)
    assert shown["guarantee"]["value"] >= error - 1e-12
    of_row = dict(zip((state.rows + 1).tolist(), clf.classes_[label].astype(str)))
    assert all(row["label"] == of_row[row["row"]] for row in summary["label_next"]["rows"])


@pytest.mark.parametrize("unknown", [None, float("nan")])
def test_unknown_true_labels_beside_texts(unknown):
    clf, X, target, y = fit_texts()
    truth = [unknown if i % 2 else label for i, label in enumerate(y)]
    shown = summarize(clf, X, target, y_true=truth)["errors"][0]
    hidden = [i for i, label in enumerate(target) if label is None]
    assert shown["n_known"] == sum(i % 2 == 0 for i in hidden)


def fit_texts():
    X, codes = make_classification(120, 5, random_state=0)
    y = np.array(["no", "yes"])[codes].tolist()
    target = [label if i < 20 else None for i, label in enumerate(y)]
    return SelfLearningClassifier(random_state=0).fit(X, target), X, target, y


@pytest.mark.parametrize("layout", [coo_matrix, coo_array, bsr_array])
def test_sparse_rows_of_every_layout(layout, fitted):
    clf, X, target, _ = fitted
    assert clf.report(layout(X), target).summary["calibration"] is not None


def test_the_only_row_of_a_class_says_nothing_of_the_votes():
    """Held out, its class is unknown to whoever votes: no calibration, no accuracy."""
    X, y = make_blobs(200, centers=10, random_state=0)
    target = np.full(len(y), -1)
    first = [np.flatnonzero(y == c)[0] for c in range(10)]
    target[first] = range(10)
    clf = SelfLearningClassifier(random_state=0).fit(X, target)
    assert summarize(clf, X, target)["calibration"] is None
    more = target.copy()
    more[np.flatnonzero(y < 6)[20:40]] = y[np.flatnonzero(y < 6)[20:40]]
    clf = SelfLearningClassifier(random_state=0).fit(X, more)
    counts = np.bincount(more[more >= 0])
    assert summarize(clf, X, more)["calibration"]["n"] == counts[counts > 1].sum() < counts.sum()


def test_curves_are_points_of_the_exact_curves(fitted):
    clf, X, target, _ = fitted
    summary = summarize(clf, X, target)
    state = FinalState.of(clf, X, target)
    for entry, curve in zip(
        summary["classes"], threshold_curves(state.first_votes, state.label_proba)
    ):
        shown = entry["curve"]
        where = np.searchsorted(curve.thresholds, shown["theta"])
        np.testing.assert_array_equal(curve.thresholds[where], shown["theta"])
        np.testing.assert_array_equal(curve.bound[where], shown["bound"])
        np.testing.assert_array_equal(curve.n_trusted[where], shown["n_trusted"])
        assert shown["theta"][shown["best"]] == entry["threshold"]
        assert min(shown["bound"]) == pytest.approx(curve.bound.min())


def walk(node: Any):
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from walk(value)
    elif isinstance(node, list):
        for value in node:
            yield from walk(value)


def test_every_bound_says_what_it_is(fitted):
    clf, X, target, y = fitted
    summary = summarize(clf, X, target, y_true=y)
    json.dumps(summary, allow_nan=False)
    bounds = [node for node in walk(summary) if "assumption" in node and "value" in node]
    assert len(bounds) > 8
    for node in walk(summary):
        for key in ("bound", "guarantee"):
            if isinstance(node.get(key), dict):
                kind = "guarantee" if key == "guarantee" else "estimate"
                assert node[key]["kind"] == kind
                assert node[key]["assumption"].startswith("A" if kind == "guarantee" else "An est")


@pytest.mark.parametrize("seed", range(5))
def test_the_guarantee_holds(seed: int):
    """With true labels Theorem 1 is no estimate: it may never be below the true error."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 3))
    y = rng.integers(0, 3, 150).astype(object)  # labels without any pattern: votes are misleading
    target = y.copy()
    target[30:] = None
    forest = RandomForestClassifier(15, random_state=0)
    clf = SelfLearningClassifier(forest, random_state=0, missing_label=None).fit(X, target)
    truth = y.copy()
    truth[::7] = None  # unknown
    truth[5::11] = 9  # a class that no labelled row has
    for entry in summarize(clf, X, target, y_true=truth)["errors"]:
        assert entry["guarantee"]["value"] >= entry["true_error"] - 1e-12


def test_rows_worth_labelling_are_ranked_by_gain(fitted):
    clf, _, _, _ = fitted
    votes = FinalState.of(clf).label_votes
    order, margins, gains = next_to_label(votes, 10)
    every = [(1 - sorted(v)[-1]) * (1 - (sorted(v)[-1] - sorted(v)[-2])) for v in votes]
    assert gains.tolist() == pytest.approx(sorted(every, reverse=True)[:10])
    rows = summarize(clf)["label_next"]["rows"]
    assert [row["row"] for row in rows[:10]] == (
        np.flatnonzero(clf.labeled_iter_)[order] + 1
    ).tolist()
    assert rows[0]["margin"] == pytest.approx(margins[0])


def test_many_classes_are_cut_but_counted():
    clf, X, target, _ = fit(n=1_500, n_labeled=400, centers=MAX_CLASSES + 15)
    summary = summarize(clf, X, target)
    assert len(summary["classes"]) == MAX_CLASSES
    shown = sum(entry["n_trusted"] for entry in summary["classes"])
    assert shown + summary["hidden"]["n_trusted"] == summary["data"]["n_trusted"]
    assert any(f"Only the {MAX_CLASSES} classes" in warning for warning in summary["warnings"])
    for kind in ("html", "md", "json"):
        assert render(summary, kind)


def test_no_unlabelled_row():
    X, y = make_blobs(60, 3, centers=2, random_state=0)
    with pytest.warns(UserWarning, match="no unlabelled row"):
        clf = SelfLearningClassifier(RandomForestClassifier(5), missing_label=None).fit(X, y)
    summary = summarize(clf, X, y)
    assert "nothing to self-learn" in summary["headline"][0]
    for kind in ("html", "md", "json"):
        assert render(summary, kind)


@pytest.mark.parametrize("choice", ["current", "uniform", "given"])
def test_other_label_probabilities(choice: str):
    proba: Any = choice
    if choice == "given":
        proba = np.full((300, 3), 1 / 3)
    clf, X, target, _ = fit(label_proba=proba)
    summary = summarize(clf, X, target)
    word = {"current": "classifier itself", "uniform": "equal", "given": "given label"}[choice]
    assert word in summary["assumption"]
    assert summary["calibration"] is None


def test_truth_written_otherwise_is_refused(fitted):
    """Not "in truth 100 % are wrong"."""
    clf, X, target, y = fitted
    with pytest.raises(ValueError, match="no class of fit"):
        clf.report(X, target, y_true=y.astype(str))


def test_true_classes_without_a_labelled_row_are_named(fitted):
    clf, X, target, y = fitted
    truth = y.astype(object)
    truth[-3:] = "silver"
    summary = summarize(clf, X, target, y_true=truth)
    assert summary["unknown_classes"] == {"silver": 3}
    assert any("3 rows are truly “silver”" in text for text in summary["warnings"])
    assert summarize(clf, X, target, y_true=y)["unknown_classes"] == {}


def test_truth_of_another_length(fitted):
    clf, _, _, y = fitted
    with pytest.raises(ValueError, match="one entry for each of the 300 rows"):
        clf.report(y_true=y[:-1])


# --- warnings --------------------------------------------------------------------------------


def test_warnings(fitted):
    summary = summarize(*fitted[:3])
    entry = summary["classes"][0]
    entry.update(n_predicted=0, n_given=2, name="rare")
    summary["calibration"] = {"n": 100, "confidence": 0.95, "accuracy": 0.6, "power": 0.5}
    found = " ".join(warnings_of(summary))
    assert "No unlabelled row is predicted to be “rare”" in found
    assert "Fewer than 5 labelled rows for “rare”" in found
    assert "too confident" in found
    summary["calibration"].update(confidence=0.62)
    assert "too confident" not in " ".join(warnings_of(summary))


@pytest.mark.parametrize(
    ("trusted", "everything", "says"),
    [
        (0.1, 0.3, "at most 10.0 % of the trusted labels and 30.0 % of all labels are wrong"),
        (0.1, 1.2, "of the trusted labels are wrong (an estimate); of all labels it says nothing"),
        (1.1, 1.2, "says nothing here"),
        (None, 0.3, "at most 30.0 % of all labels are wrong (an estimate)"),
    ],
)
def test_a_bound_above_one_says_nothing(trusted: float, everything: float, says: str, fitted):
    summary = summarize(*fitted[:3])
    for entry in summary["errors"]:
        entry["bound"]["value"] = trusted if entry["key"] == "trusted" else everything
    assert says.replace(" %", "\N{NO-BREAK SPACE}%") in headline(summary)[1]


def test_budget_is_told(fitted):
    clf, X, target, _ = fit(max_train=50)
    summary = summarize(clf, X, target)
    assert summary["settings"]["budget_used"]
    assert "Training budget" in render(summary, "html")
    assert "Training budget" not in render(summarize(*fitted[:3]), "html")


# --- formats ---------------------------------------------------------------------------------


class Elements(HTMLParser):
    """Elements and attributes of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_html_is_self_contained(evil_summary):
    page = render(evil_summary, "html")
    elements = Elements(page)
    assert not re.search(
        r"https?:|//[a-z]+\.[a-z]", html.unescape(re.sub(r"data:[^\"]*", "", page))
    )
    for tag, attributes in elements.found:
        assert "src" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        if "href" in attributes:
            assert (attributes["href"] or "").startswith(("#", "data:"))
        assert tag not in ("img", "iframe", "object", "embed", "base", "form")
    assert "url(" not in page
    assert "@import" not in page


def test_html_escapes_untrusted_text(evil_summary):
    elements = Elements(render(evil_summary, "html"))
    scripts = [attributes for tag, attributes in elements.found if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "data"}, {}]
    words = " ".join(elements.words)
    for evil in (*EVIL, "</style>"):
        assert evil in words  # as text


def test_only_the_own_script_may_run(evil_summary):
    page = render(evil_summary, "html")
    policy = re.search(r"script-src '(sha256-[^']+)'", page)
    own = re.findall(r"<script>(.*?)</script>", page, re.S)
    digest = base64.b64encode(hashlib.sha256(own[-1].encode()).digest()).decode()
    assert policy is not None
    assert policy.group(1) == f"sha256-{digest}"
    assert "default-src 'none'" in page


@given(st.text())
def test_json_in_html_cannot_end_its_element(value: str):
    embedded = json_for_html({"x": value + "</script><!--"})
    assert "<" not in embedded
    assert ">" not in embedded
    assert json.loads(embedded) == {"x": value + "</script><!--"}


def test_download_is_formula_safe(evil_summary):
    rows = list(csv.reader(io.StringIO(label_next_csv(evil_summary))))
    assert rows[0][:6] == ["row", "label", "vote", "runner_up", "margin", "gain"]
    assert rows[0][-1] == "'=x"
    assert rows[1][-1] == "'" + EVIL[2]
    assert len(rows) == 1 + len(evil_summary["label_next"]["rows"])
    page = render(evil_summary, "html")
    link = next(a for tag, a in Elements(page).found if a.get("id") == "download")
    content = base64.b64decode((link["href"] or "").partition("base64,")[2]).decode()
    assert content == label_next_csv(evil_summary)


def test_markdown_escapes_and_has_the_same_numbers(evil_summary):
    page = render(evil_summary, "md")
    assert "<script>" not in page
    assert "<img" not in page
    for entry in evil_summary["errors"]:
        assert f"{percent(entry['bound']['value'])} (estimate)" in page
        assert f"{percent(entry['guarantee']['value'])} (guarantee)" in page
    for line in page.splitlines():
        if line.startswith("| "):
            assert line.endswith(" |")


@pytest.mark.parametrize(
    ("plain", "escaped"),
    [
        ("a|b", r"a\|b"),
        ("# x", r"\# x"),
        ("1. x", r"1\. x"),
        ("- x", r"\- x"),
        ("a*b_c`d", r"a\*b\_c\`d"),
        ("[x](y)", r"\[x\](y)"),
        ("a\n\nb", "a b"),
        ("<b>&", "&lt;b>&amp;"),
        ("0.1.0", "0.1.0"),
    ],
)
def test_markdown_text(plain: str, escaped: str):
    assert text(plain) == escaped


def test_percent():
    assert [percent(v) for v in (0.0, 0.1234, 0.9999, 1.7, None)] == [
        "0.0\N{NO-BREAK SPACE}%",
        "12.3\N{NO-BREAK SPACE}%",
        "100.0\N{NO-BREAK SPACE}%",
        "100\N{NO-BREAK SPACE}%",
        "–",
    ]


# --- the notebook ----------------------------------------------------------------------------


def test_notebook(fitted, tmp_path):
    clf, X, target, y = fitted
    report = clf.report(X, target, y_true=y, title="My <title>")
    shown = report._repr_html_()
    (frame,) = [a for tag, a in Elements(shown).found if tag == "iframe"]
    assert frame["srcdoc"] == render(report.summary, "html")
    assert "trusted" in repr(report)
    for name in ("r.html", "r.json", "r.md"):
        assert report.save(tmp_path / name).read_text() == render(
            report.summary, format_of(tmp_path / name)
        )
    assert "SelfLearningClassifier" in clf._repr_html_()  # scikit-learn's own diagram
    with pytest.raises(UserError, match="format of the report"):
        report.save(tmp_path / "r.docx")
    with pytest.raises(UserError, match="not a format"):
        render(report.summary, "pdf")
    assert isinstance(report, Report)
