"""The report in a real browser: it loads alone, its slider shows what Python computes."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.ensemble import RandomForestClassifier

from fewlabel import SelfLearningClassifier
from fewlabel.report import render
from fewlabel.report.html import label_next_csv
from fewlabel.report.summarize import summarize
from fewlabel.report.voter_rows import accuracy_estimate
from fewlabel.report.words import about, goal, percent, proof_words
from support import browser

reason = browser.missing()
pytestmark = pytest.mark.skipif(bool(reason), reason=reason)

NAMES = ["<script>alert(1)</script>", "plain", '" onload="alert(2)', "a rather long name " * 6]


TITLES = ["<img src=x onerror=alert(4)>", "plain family", "a_rather_long_name_" * 8, "slow one"]


def voters() -> dict[str, Any]:
    """Families with titles that are no good, one without weight and one that was left out."""
    shares = zip(TITLES, [0.7, 0.3, 0.0, 0.0], [0.9, 0.85, 0.4, None])
    return {
        "families": [
            {
                "name": title,
                "title": title,
                "weight": weight,
                "accuracy": None if share is None else accuracy_estimate(share, 60),
                "left_out": "it needs dense rows" if share is None else None,
                "seconds": 1.0,
            }
            for title, weight, share in shares
        ],
        "n_voting": 2,
        "together": accuracy_estimate(0.9, 60),
        "n_rows": 60,
        "method": "gibbs",
        "how": "the weight falls with the error",
        "kl": 0.1,
        "caveat": "Estimates.",
    }


class Page(NamedTuple):
    path: Path
    clf: SelfLearningClassifier
    summary: dict[str, Any]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    X, codes = make_blobs(600, 4, centers=4, cluster_std=5.0, random_state=3)
    y = np.array(NAMES, dtype=object)[codes]
    target = y.copy()
    target[60:] = None
    forest = RandomForestClassifier(40, random_state=0)
    clf = SelfLearningClassifier(forest, random_state=0, missing_label=None).fit(X, target)
    show = lambda rows: [{"<b>column</b>": "</td><script>alert(3)</script>"} for _ in rows]  # noqa: E731
    summary = summarize(clf, y_true=y, title=NAMES[0], show_rows=show)
    summary["voters"] = voters()
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(summary, "html"), encoding="utf-8")
    return Page(path, clf, summary)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browser.chromium(tmp_path_factory.mktemp("profile")) as chromium:
        yield chromium


@pytest.fixture
def opened(driver: Any, page: Page) -> Any:
    browser.view(driver, width=1100)
    driver.get("about:blank")
    driver.get_log("browser")
    browser.requests(driver)
    driver.get(page.path.as_uri())
    return driver


def one(driver: Any, selector: str) -> str:
    return str(
        driver.execute_script("return document.querySelector(arguments[0]).textContent", selector)
    )


def move(driver: Any, position: int) -> None:
    driver.execute_script(
        "const i = document.getElementById('max-error');"
        "i.value = arguments[0]; i.dispatchEvent(new Event('input'));",
        position,
    )


def test_loads_alone_and_without_complaint(opened: Any, page: Page):
    assert opened.get_log("browser") == []
    assert [url for url in browser.requests(opened) if not url.startswith("data:")] == [
        page.path.as_uri()
    ]
    assert page.summary["headline"][0] in one(opened, ".lead")


def test_untrusted_text_stays_text(opened: Any):
    titles = opened.execute_script(
        "return [...document.querySelectorAll('.card h3')].map((h) => h.textContent)"
    )
    assert titles == sorted(NAMES)
    assert one(opened, "h1") == NAMES[0]
    assert one(opened, ".next thead th:last-child") == "<b>column</b>"
    assert opened.execute_script("return document.scripts.length") == 2
    assert (
        opened.execute_script("return document.querySelectorAll('[onload], .next b, img').length")
        == 0
    )


def test_an_injected_script_would_not_run(opened: Any):
    """Even markup that slipped through could do nothing: the page's policy forbids it."""
    opened.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.broken = 1';"
        "document.body.append(s);"
        "const i = document.createElement('img'); i.src = 'https://example.org/x.png';"
        "document.body.append(i);"
    )
    assert opened.execute_script("return window.broken === undefined")
    messages = [entry["message"] for entry in opened.get_log("browser")]
    assert any("Content Security Policy" in message for message in messages)
    assert browser.blocked(opened) == ["csp"]  # the picture was not fetched


def test_weights_and_accuracies_are_drawn_to_scale(opened: Any):
    script = """
      const box = (e) => { if (!e) return null; const { left, width } = e.getBoundingClientRect();
        return [left, width]; };
      return [...document.querySelectorAll('.voter:has(.what)')].map((v) =>
        [v.querySelector('.what').textContent,
         ...['.track', '.bar', '.scale', '.point'].map((s) => box(v.querySelector(s)))]);
    """
    for width in (320, 1100):
        browser.view(opened, width=width)
        rows = [row for row in opened.execute_script(script) if row[0] in TITLES]
        assert [row[0] for row in rows] == TITLES
        for (_, track, bar, scale, point), weight in zip(rows[:2], (0.7, 0.3)):
            assert bar[1] == pytest.approx(weight * track[1], abs=1)
            assert scale[0] < point[0] < scale[0] + scale[1]
        assert rows[2][2][1] == 0  # no weight, no bar
        assert rows[3][1:] == [None] * 4  # left out: the reason stands in its place
        first, last = rows[0][4][0], rows[2][4][0]
        assert first > last  # 90 % right of 40 %
    assert "it needs dense rows" in one(opened, ".reason")


def test_the_slider_shows_what_python_computes(opened: Any, page: Page):
    hidden = page.clf.labeled_iter_ != 0
    label = page.clf.transduction_[hidden]
    for position, point in enumerate(page.summary["promise"]["curve"]):
        move(opened, position)
        accepted = page.clf.accept(point["max_error"])[hidden]
        assert one(opened, "#live-goal") == goal(point["max_error"])
        assert one(opened, "#live-n") == f"{accepted.sum():,}"
        assert one(opened, "#live-error") == about(point["expected_error"])
        assert one(opened, "#live-confidence") == percent(point["lowest_confidence"])
        assert one(opened, "#live-proof") == proof_words(point)
        spoken = opened.execute_script(
            "return document.getElementById('max-error').getAttribute('aria-valuetext')"
        )
        assert f"{accepted.sum():,} rows accepted" in spoken
        shown = opened.execute_script(
            "return [...document.querySelectorAll('.card .n')].map((n) => n.textContent)"
        )
        counts = [int((accepted & (label == name)).sum()) for name in page.clf.classes_]
        assert shown == [f"{n:,}" for n in counts]


def test_the_page_opens_at_its_own_error(opened: Any, page: Page):
    point = page.summary["promise"]["accepted"]
    assert one(opened, "#live-goal") == goal(point["max_error"])
    before = one(opened, ".panel"), opened.execute_script(BARS)
    move(opened, 0)
    assert (one(opened, ".panel"), opened.execute_script(BARS)) != before
    opened.execute_script("document.getElementById('reset').click()")
    after = one(opened, ".panel"), opened.execute_script(BARS)
    assert after[0] == before[0]
    assert after[1] == pytest.approx(before[1], abs=0.01)


BARS = (
    "return [...document.querySelectorAll('.in[data-bin]')]"
    ".map((b) => Number(b.getAttribute('height')))"
)


def test_keyboard_and_reset(opened: Any, page: Page):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    slider = opened.find_element(By.ID, "max-error")
    assert not opened.find_element(By.ID, "reset").is_displayed()
    slider.send_keys(Keys.END)
    last = page.summary["promise"]["curve"][-1]
    assert one(opened, "#live-n") == f"{last['n']:,}"
    opened.find_element(By.ID, "reset").click()
    assert one(opened, "#live-goal") == goal(page.summary["data"]["max_error"])
    assert not opened.find_element(By.ID, "reset").is_displayed()


def test_bars_follow_the_slider(opened: Any, page: Page):
    move(opened, len(page.summary["promise"]["curve"]) - 1)
    most = sum(opened.execute_script(BARS))
    move(opened, 0)
    assert sum(opened.execute_script(BARS)) < most


def test_no_text_is_smaller_than_12_pixels(opened: Any):
    script = """
      return [...document.querySelectorAll('main *')].filter((e) =>
        [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())
        && parseFloat(getComputedStyle(e).fontSize) < 12).map((e) => e.className || e.tagName);
    """
    for width in (320, 1100):
        browser.view(opened, width=width)
        assert opened.execute_script(script) == []


def test_download(opened: Any, page: Page):
    link = opened.execute_script("return document.getElementById('download').href")
    content = base64.b64decode(link.partition("base64,")[2]).decode()
    assert content == label_next_csv(page.summary)


@pytest.mark.parametrize("width", [320, 390, 768, 1100])
def test_nothing_is_wider_than_the_window(width: int, opened: Any):
    browser.view(opened, width=width)
    widths = "return [document.documentElement.scrollWidth, window.innerWidth]"
    content, window = opened.execute_script(widths)
    assert content <= window == width


def test_light_and_dark(opened: Any):
    colour = "return getComputedStyle(document.body).backgroundColor"
    light = opened.execute_script(colour)
    browser.view(opened, width=1100, dark=True)
    dark = opened.execute_script(colour)
    assert (light, dark) == ("rgb(251, 250, 246)", "rgb(18, 21, 24)")
    opened.execute_script("document.getElementById('theme').click()")
    assert opened.execute_script(colour) == light  # the reader's choice wins


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False)])
def test_axe_finds_nothing_serious(width: int, dark: bool, opened: Any):
    pytest.importorskip("axe_core_python")
    browser.view(opened, width=width, dark=dark)
    assert browser.axe_findings(opened) == []


def test_contents_lead_to_every_section(opened: Any):
    script = "return [...document.querySelectorAll(arguments[0])].map((e) => e[arguments[1]])"
    links = opened.execute_script(script, "nav a", "hash")
    heads = opened.execute_script(script, "section h2", "id")
    assert links == [f"#{name}" for name in heads]


def test_words_are_explained_where_they_stand(opened: Any):
    show = """
      const term = [...document.querySelectorAll('.term')].at(arguments[0]); term.focus();
      const { left, right } = term.querySelector('.tip').getBoundingClientRect();
      return [getComputedStyle(term.querySelector('.tip')).display, left, right];
    """
    for width in (390, 1280):
        browser.view(opened, width=width)
        for position in (0, 1, -1):
            display, left, right = opened.execute_script(show, position)
            assert display == "block"
            assert 0 <= left < right <= width


def test_tables_are_sorted_by_their_headings(opened: Any):
    script = """
      const table = document.querySelector('table.next');
      const head = table.tHead.rows[0].cells[arguments[0]];
      head.querySelector('button').click();
      return [head.getAttribute('aria-sort'),
        [...table.tBodies[0].rows].map((row) => row.cells[arguments[0]].textContent)];
    """
    order, votes = opened.execute_script(script, 2)
    assert order == "ascending"
    assert votes == sorted(votes, key=float)
    order, again = opened.execute_script(script, 2)
    assert (order, again) == ("descending", votes[::-1])


def test_wide_tables_say_that_they_scroll(opened: Any):
    script = """
      return [...document.querySelectorAll('.scroll')].map((box) => {
        const note = box.previousElementSibling;
        const told = note.classList.contains('hint') && !note.hidden;
        return [box.scrollWidth > box.clientWidth + 1, told]; });
    """
    for width in (390, 1280):
        browser.view(opened, width=width)
        opened.execute_script("dispatchEvent(new Event('resize'))")
        found = opened.execute_script(script)
        assert all(wide == told for wide, told in found)
    browser.view(opened, width=390)
    assert any(wide for wide, _ in opened.execute_script(script))


@pytest.mark.parametrize("width", [768, 1024, 1280, 1600])
def test_no_text_leaves_its_card(width: int, opened: Any):
    browser.view(opened, width=width)
    script = """
      const boxes = '.figures > div, .readings > div, .card, .error-row > div';
      return [...document.querySelectorAll(boxes)].filter((box) =>
        box.scrollWidth > box.clientWidth + 1).map((box) => box.textContent);
    """
    assert opened.execute_script(script) == []


def test_every_text_has_contrast(opened: Any):
    """Every element with a text of its own, also over coloured cells, reaches 4.5 : 1."""
    script = """
      const canvas = document.createElement('canvas').getContext('2d');
      const rgb = (c) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = c;
        canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
      const light = (c) => { const [r, g, b] = c.map((v) => (v /= 255) <= 0.03928
        ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126*r + 0.7152*g + 0.0722*b; };
      const ground = (e) => { const layers = []; for (; e; e = e.parentElement)
          layers.unshift(rgb(getComputedStyle(e).backgroundColor));
        return layers.reduce((under, [r, g, b, a]) =>
          [r, g, b].map((v, k) => (v * a + under[k] * (255 - a)) / 255), [255, 255, 255]); };
      const few = [];
      for (const e of document.querySelectorAll('main *')) {
        if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
        if (!e.checkVisibility() || e.closest('svg')) continue;
        const pair = [light(rgb(getComputedStyle(e).color).slice(0, 3)), light(ground(e))];
        const ratio = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
        if (ratio < 4.5) few.push([e.className || e.tagName, e.textContent.slice(0, 30), ratio]);
      }
      return few;
    """
    for dark in (False, True):
        browser.view(opened, width=1280, dark=dark)
        assert opened.execute_script(script) == []
