"""Whole sessions in a real browser, with the truth answering: ``make browser-tests`` runs them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import load_wine

from benchmarks.label_kill import started
from support import browser

reason = browser.missing()
pytestmark = pytest.mark.skipif(bool(reason), reason=reason)

DATA = load_wine()
NAMES = ["barolo", "grignolino", "barbera"]
HOSTILE = "<img src=x onerror=window.broken=1>"


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browser.chromium(tmp_path_factory.mktemp("profile")) as chromium:
        yield chromium


def write(path: Path) -> Path:
    lines = [",".join([*(f"x{j}" for j in range(13)), "note", "y"])]
    for i, row in enumerate(DATA.data):
        note = f'"{HOSTILE}"' if i % 2 else '"</dd><script>window.broken=1</script>"'
        lines.append(",".join([*(f"{x:.3f}" for x in row), note, ""]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


class Page:
    """A page and the process behind it."""

    def __init__(self, driver: Any, table: Path, *options: str) -> None:
        self.driver, self.args = driver, (str(table), "--target", "y", "--jobs", "1", *options)
        self.start()

    def start(self) -> None:
        self.process, self.address = started(*self.args)
        self.open()

    def open(self) -> None:
        self.driver.get(self.address)
        self.wait(lambda: self.js("return document.documentElement.dataset.ready") == "1")

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def js(self, script: str, *args: Any) -> Any:
        return self.driver.execute_script(script, *args)

    def wait(self, met: Callable[[], Any], seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not met():
            assert time.monotonic() < end, self.text("body")
            time.sleep(0.05)

    def text(self, selector: str) -> str:
        return str(self.js("return document.querySelector(arguments[0]).innerText", selector))

    def click(self, selector: str) -> None:
        self.js("document.querySelector(arguments[0]).click()", selector)

    @property
    def row(self) -> int | None:
        if self.js("return document.getElementById('row').hidden"):
            return None
        found = re.search(r"Row ([\d,]+)", self.text("#row-title"))
        return int(found[1].replace(",", "")) - 1 if found else None

    def said(self, row: int, what: str = "") -> None:
        """Wait until the page says that an answer is stored, and shows another row."""
        self.wait(lambda: f"Row {row + 1}: {what}" in self.text("#feedback"), 10)
        self.wait(lambda: self.row != row, 10)

    def answer(self, label: str | None = None) -> int | None:
        row = self.row
        if row is None:
            return None
        self.js(
            "[...document.querySelectorAll('#classes button')]"
            ".find((b) => b.firstChild.textContent === arguments[0]).click()",
            label or NAMES[DATA.target[row]],
        )
        self.said(row)
        return row

    def key(self, key: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(key).perform()

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = self.driver.execute_async_script(
            "fetch('/api/state').then((a) => a.json()).then(arguments[0])"
        )
        return found


CLASSES = [option for name in NAMES for option in ("--class", name)]


@pytest.fixture(scope="module")
def process(driver: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """One process for the tests that do not kill it."""
    opened = Page(driver, write(tmp_path_factory.mktemp("shared") / "wine.csv"), *CLASSES)
    yield opened
    opened.kill()


@pytest.fixture
def page(process: Page) -> Page:
    browser.view(process.driver, width=1240)
    process.open()
    process.driver.get_log("browser")
    return process


def test_a_whole_session(driver: Any, tmp_path: Path):
    """Label, undo, skip, kill, go on, a second tab, the goal, the check, the files."""
    browser.view(driver, width=1240)
    page = Page(driver, write(tmp_path / "wine.csv"), *CLASSES, "--goal", "25%")
    try:
        whole_session(page)
    finally:
        page.kill()


def whole_session(page: Page) -> None:
    page.driver.get_log("browser")
    assert page.text("h1") == "y of wine.csv"
    first = page.row
    page.key("1")
    page.said(first, "barolo")
    page.key("u")
    page.wait(lambda: page.row == first)
    assert "Taken back: barolo" in page.text("#feedback")
    page.answer()
    skipped = page.row
    page.key("s")
    page.said(skipped, "skipped")
    page.key("/")
    page.key("barb")
    assert page.text("#classes").startswith("barbera")
    page.key("\ue00c")  # Escape
    unsure = page.row
    page.key("n")
    page.said(unsure, "cannot tell")
    assert page.state()["unsure"] == 1

    page.kill()
    page.start()  # the same tab, another process, another token
    assert page.state()["labels"] == 1
    page.key("u")
    page.wait(lambda: page.row == unsure)
    page.answer()

    mine = page.row
    page.driver.switch_to.new_window("tab")
    page.open()
    assert page.row != mine  # two tabs, two rows
    page.answer()
    page.driver.close()
    page.driver.switch_to.window(page.driver.window_handles[0])
    assert page.row == mine

    for _ in range(150):
        if page.state()["phase"] == "check":
            break
        page.answer()
    assert page.state()["phase"] == "check", page.text("aside")
    page.wait(lambda: "at random, for the check" in page.text("#why") or page.answer() is None)
    assert page.js("return document.getElementById('skip').hidden")
    while page.answer() is not None:
        pass
    page.wait(lambda: page.text("#result-title") == "Proved", 10)
    assert re.search(r"At most [\d.]+.% of the \d+ accepted labels", page.text("#result-text"))
    page.click("#result-write")
    page.wait(lambda: len(page.state()["files"]) == 3)
    page.wait(lambda: "wine-labelled.csv" in page.text("#result-files"), 10)
    links = page.js("return [...document.querySelectorAll('#result-files a')].map((a) => a.href)")
    for link in links:
        size = page.driver.execute_async_script(
            "fetch(arguments[0]).then((a) => a.blob()).then((b) => arguments[1](b.size))", link
        )
        assert size > 1_000
    # Between the kill and the restart the page could not reach the program; nothing else.
    complaints = [
        entry["message"] for entry in page.driver.get_log("browser")
        if not re.search("ERR_CONNECTION_REFUSED|403", entry["message"])
    ]  # fmt: skip
    assert complaints == []


def test_an_answer_is_stored_while_the_phase_changes(page: Page):
    """The page fetches the row of the other phase just when somebody answers."""
    page.js(
        """
        const fetch = window.fetch;
        window.fetch = async (address, options) => {
          if (address === "/api/state" && !window.told) {
            window.told = true;
            const state = await (await fetch(address)).json();
            return new Response(JSON.stringify({ ...state, phase: "another" }));
          }
          if (address === "/api/next" && window.told && !window.asked) {
            window.asked = true;
            await new Promise((done) => setTimeout(done, 1000));
          }
          return fetch(address, options);
        };
        """
    )
    page.wait(lambda: page.js("return window.asked"), 20)
    before = page.state()["labels"]
    page.answer()
    assert page.state()["labels"] == before + 1


def test_untrusted_text_runs_nothing(page: Page):
    page.key("/")
    page.key(HOSTILE)
    page.key("\ue007")  # Enter: a class of this name
    page.wait(lambda: HOSTILE in page.text("#shares"))
    page.answer(HOSTILE)
    page.answer()
    shown = page.text("#cells")
    assert "onerror" in shown or "</dd><script>" in shown
    assert page.js("return window.broken === undefined")
    assert page.js("return document.querySelectorAll('main img, aside img').length") == 0
    assert page.js("return document.scripts.length") == 1
    page.js(
        "const s = document.createElement('script'); s.textContent = 'window.broken = 1';"
        "document.body.append(s);"
    )
    assert page.js("return window.broken === undefined")  # the policy forbids it
    messages = [entry["message"] for entry in page.driver.get_log("browser")]
    assert any("Content Security Policy" in message for message in messages)


def test_other_sites_get_nothing(page: Page):
    """A page of another origin in the same browser, which has the cookie."""
    address = page.address.partition("/?")[0]
    page.driver.get("data:text/html,<title>other</title>")
    blocked = page.driver.execute_async_script(
        "fetch(arguments[0] + '/api/state', {credentials: 'include'})"
        ".then((a) => arguments[1](a.status)).catch(() => arguments[1]('blocked'))",
        address,
    )
    assert blocked == "blocked"
    page.driver.get(address.replace("127.0.0.1", "localhost"))  # no cookie for this name
    assert "Open the address" in page.text("body")


@pytest.mark.parametrize(("width", "dark"), [(1240, False), (1240, True), (390, False)])
def test_people_can_use_it(page: Page, width: int, dark: bool):
    axe = pytest.importorskip("axe_core_python")
    browser.view(page.driver, width=width, dark=dark)
    page.answer()
    source = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    page.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": source})
    found = page.driver.execute_async_script(
        "axe.run().then((r) => arguments[0](r.violations.map((v) => "
        "[v.impact, v.id, v.nodes.map((n) => n.html).slice(0, 3)])))"
    )
    assert [one for one in found if one[0] in ("serious", "critical")] == []
    content, window = page.js("return [document.documentElement.scrollWidth, innerWidth]")
    assert content <= window
