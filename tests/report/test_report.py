"""The report: one summary, three formats, every bound with its kind, every text escaped."""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import io
import json
import re
import sys
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_blobs, make_classification
from sklearn.ensemble import RandomForestClassifier

from fewlabel import FewLabelClassifier, SelfLearningClassifier, checks_needed
from fewlabel._core.errors import UserError
from fewlabel.assess.label_sums import N_BINS
from fewlabel.report import Report, format_of, render
from fewlabel.report.html import json_for_html, label_next_csv
from fewlabel.report.markdown import text
from fewlabel.report.summarize import MAX_CLASSES, summarize
from fewlabel.report.words import (
    about,
    broken_statements,
    headline,
    held_out_words,
    percent,
    proof_words,
    warnings_of,
)

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
    clf, _, _, y = fit(names=EVIL)
    return summarize(
        clf,
        y_true=y,
        title=EVIL[0],
        data={"columns": [{"name": EVIL[1], "kind": "number", "treatment": "</style>"}]},
        show_rows=lambda rows: [{EVIL[1]: EVIL[0], "=x": EVIL[2]} for _ in rows],
        notes=[EVIL[0]],
    )


# --- the summary -----------------------------------------------------------------------------


def test_the_summary_reads_the_statement_of_the_estimator(fitted):
    clf, _, _, y = fitted
    summary = summarize(clf, y_true=y, max_error=0.1)
    hidden = clf.labeled_iter_ != 0
    accepted = clf.accept(0.1)[hidden]
    data, promise, truth = summary["data"], summary["promise"], summary["truth"]
    assert data["n_accepted"] == promise["accepted"]["n"] == accepted.sum() > 0
    assert data["max_error"] == promise["accepted"]["max_error"] == 0.1
    error = clf.error_
    stated = [promise["error"][key] for key in ("value", "low", "high", "n", "assumes", "safe")]
    assert stated == [error.value, error.low, error.high, error.n, error.assumes, error.safe]
    doubt = 1 - clf.confidence_[hidden]
    assert promise["accepted"]["expected_error"] == pytest.approx(doubt[accepted].mean())
    assert promise["accepted"]["expected_error"] < error.value
    wrong = clf.transduction_[hidden] != y[hidden]
    assert truth["error"] == pytest.approx(wrong.mean())
    assert truth["accepted_error"] == pytest.approx(wrong[accepted].mean())
    initial = clf.classes_[clf.initial_votes_.argmax(axis=1)]
    assert truth["initial_error"] == pytest.approx((initial != y[hidden]).mean())
    assert data["n_changed"] == (initial != clf.transduction_[hidden]).sum()


def test_the_curve_is_what_accept_and_checks_needed_say(fitted):
    clf = fitted[0]
    hidden = clf.labeled_iter_ != 0
    doubt = 1 - clf.confidence_[hidden]
    curve = summarize(clf, max_error=0.07)["promise"]["curve"]
    errors = [point["max_error"] for point in curve]
    assert errors == sorted(errors)
    assert {0.005, 0.07, 0.3} <= set(errors)
    assert any(point["checks"] for point in curve)
    for point in curve:
        accepted = clf.accept(point["max_error"])[hidden]
        assert point["n"] == accepted.sum()
        if point["n"] == 0:
            assert point["checks"] is point["expected_error"] is None
            continue
        expected = min(doubt[accepted].mean(), clf.error_.value)
        assert point["expected_error"] == pytest.approx(expected)
        assert point["expected_wrong"] == pytest.approx(expected * point["n"])
        assert point["lowest_confidence"] == pytest.approx(1 - doubt[accepted].max())
        n, most = point["n"], point["max_error"]
        assert point["checks_if_none_wrong"] == checks_needed(n, most)
        if point["checks"] is not None:
            assert point["checks"] == checks_needed(n, most, point["expected_error"])


def test_classes_have_estimates_with_limits_and_histograms(fitted):
    clf, _, _, y = fitted
    summary = summarize(clf, y_true=y)
    hidden = clf.labeled_iter_ != 0
    label, accepted = clf.transduction_[hidden], clf.accept(0.05)[hidden]
    for entry, name, share in zip(summary["classes"], clf.classes_, clf.error_.per_class):
        mine = label == name
        assert entry["n_labeled"] == sum(entry["histogram"]) == mine.sum()
        assert entry["n_accepted"] == (mine & accepted).sum()
        assert entry["error"] == {"value": share.value, "low": share.low, "high": share.high}
        assert 0 <= entry["prevalence"]["low"] <= entry["prevalence"]["high"] <= 1
        assert entry["true_error"] == pytest.approx((y[hidden] != name)[mine].mean())
        assert len(entry["accepted_histograms"]) == len(summary["promise"]["curve"])
        for point, inside in zip(summary["promise"]["curve"], entry["accepted_histograms"]):
            assert sum(inside) == (mine & clf.accept(point["max_error"])[hidden]).sum()
            assert len(inside) == N_BINS
    assert sum(entry["n_accepted"] for entry in summary["classes"]) == accepted.sum()


def test_a_round_is_compared_with_its_own_pseudo_labels():
    X, y = make_classification(
        300, 6, n_informative=4, n_redundant=0, n_classes=3, n_clusters_per_class=1, random_state=9
    )
    given = np.concatenate([np.flatnonzero(y == c)[:5] for c in range(3)])
    target = np.full(len(y), -1)
    target[given] = y[given]
    forest = RandomForestClassifier(30, random_state=9)
    clf = SelfLearningClassifier(forest, random_state=0).fit(X, target)
    rows = np.flatnonzero(clf.labeled_iter_ > 0)
    rounds = clf.labeled_iter_[rows]
    # Or it would show nothing: final labels differ from pseudo-labels.
    assert (clf.pseudo_labels_ != clf.transduction_[rows]).any()
    codes = np.searchsorted(clf.classes_, clf.pseudo_labels_)
    initial = clf.initial_votes_[np.isin(np.flatnonzero(clf.labeled_iter_ != 0), rows)]
    confidence = clf.assessment_.promise.confidence(initial, codes)
    for entry in summarize(clf, y_true=y)["rounds"]:
        mine = rounds == entry["round"]
        wrong = clf.pseudo_labels_[mine] != y[rows][mine]
        assert entry["true_error"] == pytest.approx(wrong.mean())
        assert entry["estimated_error"] == pytest.approx(1 - confidence[mine].mean())
        assert "bound" not in entry


def test_the_bounds_are_those_of_the_estimator(fitted):
    clf, _, _, y = fitted
    bounds = summarize(clf, y_true=y)["bounds"]
    assert {row["name"]: row["value"] for row in bounds["table"]} == {
        bound.name: pytest.approx(bound.value) for bound in clf.bounds()
    }
    np.testing.assert_allclose(bounds["confusion"]["matrix"], clf.confusion_bound_)
    assert bounds["assumption"].startswith("Bounds of the expected error if")
    assert "For two classes" not in bounds["assumption"]
    two = summarize(fit(centers=2)[0])["bounds"]
    assert "For two classes TB equals the plug-in error" in two["assumption"]
    values = {row["name"]: row["value"] for row in two["table"]}
    assert values["TB"] == pytest.approx(values["plug-in error"])


@pytest.mark.parametrize("unknown", [None, float("nan")])
def test_unknown_true_labels_beside_texts(unknown):
    clf, _, target, y = fit_texts()
    truth = [unknown if i % 2 else label for i, label in enumerate(y)]
    summary = summarize(clf, y_true=truth)
    hidden = [i for i, label in enumerate(target) if label is None]
    assert summary["truth"]["n_known"] == sum(i % 2 == 0 for i in hidden)
    assert "whose label is known" in summary["headline"][3]
    assert summarize(clf, y_true=[unknown] * len(y))["truth"] is None


def fit_texts():
    X, codes = make_classification(120, 5, random_state=0)
    y = np.array(["no", "yes"])[codes].tolist()
    target = [label if i < 20 else None for i, label in enumerate(y)]
    return SelfLearningClassifier(random_state=0).fit(X, target), X, target, y


def test_the_only_row_of_a_class_gives_no_held_out_error():
    """Held out, its class is unknown to whoever votes."""
    X, y = make_blobs(200, centers=10, random_state=0)
    target = np.full(len(y), -1)
    first = [np.flatnonzero(y == c)[0] for c in range(10)]
    target[first] = range(10)
    clf = SelfLearningClassifier(random_state=0).fit(X, target)
    summary = summarize(clf, y_true=y)
    assert summary["promise"]["held_out"] is None
    assert held_out_words(summary["promise"]) == ""
    for kind in ("html", "md"):
        assert render(summary, kind)


def test_a_mixed_vote_is_summed_up():
    X, y = make_blobs(200, 4, centers=3, cluster_std=3.0, random_state=2)
    target = np.where(np.arange(200) < 30, y, -1)
    clf = FewLabelClassifier(["forest", "lda"], random_state=0).fit(X, target)
    summary = summarize(clf, y_true=y)
    held = summary["promise"]["held_out"]
    assert held["mixed"]
    assert held["self_learning"] is None
    assert "by a vote of" in summary["headline"][0]


def test_rows_worth_labelling_are_those_of_suggest(fitted):
    clf, _, _, _ = fitted
    rows = summarize(clf)["label_next"]["rows"]
    assert [row["row"] - 1 for row in rows[:20]] == clf.suggest(20).tolist()
    labels = {row["row"] - 1: row["label"] for row in rows}
    assert all(str(clf.transduction_[row]) == label for row, label in labels.items())


def test_many_classes_are_cut_but_counted():
    clf, _, _, _ = fit(n=1_500, n_labeled=400, centers=MAX_CLASSES + 15)
    summary = summarize(clf)
    assert len(summary["classes"]) == MAX_CLASSES
    assert summary["data"]["n_classes"] == MAX_CLASSES + 15
    assert any(f"Only the {MAX_CLASSES} classes" in warning for warning in summary["warnings"])
    for kind in ("html", "md", "json"):
        assert render(summary, kind)


def test_no_unlabelled_row():
    X, y = make_blobs(60, 3, centers=2, random_state=0)
    with pytest.warns(UserWarning, match="no unlabelled row"):
        clf = SelfLearningClassifier(RandomForestClassifier(5), missing_label=None).fit(X, y)
    summary = summarize(clf, y_true=y)
    assert "nothing to self-learn" in summary["headline"][0]
    assert summary["promise"] is summary["bounds"] is summary["truth"] is None
    for kind in ("html", "md", "json"):
        assert render(summary, kind)


@pytest.mark.parametrize("choice", ["current", "uniform", "given"])
def test_other_label_probabilities(choice: str):
    proba: Any = choice
    if choice == "given":
        proba = np.full((300, 3), 1 / 3)
    clf, _, _, _ = fit(label_proba=proba)
    word = {"current": "classifier itself", "uniform": "equal", "given": "given label"}[choice]
    assert word in summarize(clf)["bounds"]["assumption"]


def test_truth_written_otherwise_is_refused(fitted):
    """Not "in truth 100 % are wrong"."""
    clf, _, _, y = fitted
    with pytest.raises(ValueError, match="no class of fit"):
        clf.report(y_true=y.astype(str))


def test_true_classes_without_a_labelled_row_are_named(fitted):
    clf, _, _, y = fitted
    truth = y.astype(object)
    truth[-3:] = "silver"
    summary = summarize(clf, y_true=truth)
    assert summary["truth"]["unknown_classes"] == {"silver": 3}
    assert any("3 rows are truly “silver”" in text for text in summary["warnings"])
    assert summarize(clf, y_true=y)["truth"]["unknown_classes"] == {}


def test_truth_of_another_length(fitted):
    clf, _, _, y = fitted
    with pytest.raises(ValueError, match="one entry for each of the 300 rows"):
        clf.report(y_true=y[:-1])


# --- words -----------------------------------------------------------------------------------


def spaced(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_headline(fitted):
    clf, _, _, y = fitted
    summary = summarize(clf, y_true=y)
    data = summary["data"]
    summary["promise"]["error"].update(value=0.05, low=0.02, high=0.09, n=93)
    summary["promise"]["accepted"].update(n=158, expected_error=0.0123, max_error=0.05)
    summary["truth"].update(error=0.031, accepted_error=0.0, n_known=data["n_unlabeled"])
    summary["broken"] = broken_statements(summary)
    assert [spaced(text) for text in headline(summary)] == [
        f"From 40 labelled rows, 260 others got a label in {len(summary['rounds'])} rounds.",
        "About 5 % of the 260 new labels are wrong (2–9 %; estimated from 93 labelled rows).",
        "158 of them can be taken as they are (about 1.2 % of these are wrong; 5 % was asked for).",
        "In truth 3.1 % of the new labels and 0.0 % of the accepted ones are wrong.",
    ]
    summary["promise"]["error"]["value"] = None
    summary["promise"]["accepted"]["n"] = 0
    found = headline(summary)
    assert "cannot be said" in found[1]
    assert found[2].startswith("None of them can be taken as they are")


def test_where_the_truth_breaks_a_statement_the_report_says_so(fitted):
    clf, _, _, y = fitted
    lies = np.roll(np.unique(y), 1)[np.searchsorted(np.unique(y), y)]  # all labels seem wrong
    summary = clf.report(y_true=lies, max_error=0.3).summary
    assert len(summary["broken"]) == 2
    found = [spaced(text) for text in summary["broken"]]
    high = spaced(percent(clf.error_.high))
    assert "The truth breaks the estimate" in found[0]
    assert f"more than its upper limit of {high}" in found[0]
    assert "The truth breaks the acceptance" in found[1]
    assert "more than the 30 % that was asked for" in found[1]
    assert summary["headline"][-2:] == summary["broken"]
    for kind in ("html", "md"):
        assert "The truth breaks the estimate" in render(summary, kind)


def test_at_most_is_for_guarantees_only(fitted):
    """The report proves nothing: it says "at most" only of what checks would prove."""
    clf, _, _, y = fitted
    for kind in ("html", "md"):
        page = spaced(render(summarize(clf, y_true=y), kind)).replace("&nbsp;", " ")
        shown = re.sub(r"<script.*?</script>|<style.*?</style>", "", page, flags=re.S)
        said = [shown[m.start() - 60 : m.start()] for m in re.finditer("at most", shown)]
        assert all("prove" in before for before in said), said
        assert "trusted" not in shown


def test_a_headline_below_the_held_out_error_says_why(fitted):
    promise = summarize(fitted[0])["promise"]
    promise["held_out"].update(initial=0.12, n=60, self_learning=None, trained_share=0.8)
    promise["error"]["value"] = 0.08
    text = spaced(held_out_words(promise))
    assert "the first vote gets 12.0 % of 60 labelled rows wrong; the estimate is lower: " in text
    assert "held-out votes from 80 % of them" in text
    promise["held_out"]["self_learning"] = 0.07
    assert "self-learning as a whole 7.0 %" in spaced(held_out_words(promise))
    promise["error"]["value"] = 0.2
    assert "lower" not in held_out_words(promise)


def test_what_would_prove_it():
    point = {"max_error": 0.05, "n": 1000, "checks": 120}
    assert spaced(proof_words(point)) == "120 random checks would probably prove at most 5 % wrong"
    assert "nearly all" in proof_words({**point, "checks": 900})
    assert "no number of checks" in proof_words({**point, "checks": None})
    assert "nothing to prove" in proof_words({**point, "n": 0})


def test_warnings(fitted):
    summary = summarize(fitted[0])
    assert warnings_of(summary) == []
    summary["classes"][0].update(n_labeled=0, n_given=2, name="rare")
    summary["classes"][1].update(error={"value": 0.6, "low": 0.3, "high": 0.9}, name="poor")
    summary["classes"][2].update(error={"value": 0.6, "low": 0.1, "high": 0.9}, name="unknown")
    summary["promise"]["error"].update(safe=False, notes=["column 'age' is shifted"])
    found = " ".join(warnings_of(summary))
    assert "No unlabelled row is labelled “rare”" in found
    assert "Fewer than 5 labelled rows for “rare”" in found
    assert "Of the labels “poor” about half or more are wrong" in found
    assert "unknown" not in found  # too few rows to say so
    assert "The estimate is unsafe: column 'age' is shifted." in found
    assert "unsafe" in headline(summary)[1]


def test_budget_is_told(fitted):
    clf, _, _, _ = fit(max_train=50)
    summary = summarize(clf)
    assert summary["settings"]["budget_used"]
    assert "Training budget" in render(summary, "html")
    assert "Training budget" not in render(summarize(fitted[0]), "html")


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
    assert rows[0][:5] == ["row", "label", "vote", "runner_up", "margin"]
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
    error, truth = evil_summary["promise"]["error"], evil_summary["truth"]
    assert f"| about {about(error['value'])} (" in page
    assert f"| {percent(truth['error'])} |" in page
    for point in evil_summary["promise"]["curve"]:
        assert f"| {point['n']:,} | {point['expected_wrong']:.0f} |" in page
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
    clf, _, _, y = fitted
    report = clf.report(y_true=y, title="My <title>")
    shown = report._repr_html_()
    (frame,) = [a for tag, a in Elements(shown).found if tag == "iframe"]
    assert frame["srcdoc"] == render(report.summary, "html")
    assert "can be taken as they are" in repr(report)
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


@pytest.mark.parametrize("package", ["jinja2", "pyarrow"])
def test_a_page_says_which_package_it_needs(package, evil_summary, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"needs {package}: pip install 'fewlabel\[cli\]'"):
        render(evil_summary, "html")
