"""A headless Chromium for tests and for the pictures in the documentation."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def missing() -> str:
    """What is missing to run a browser here; empty if nothing is."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not installed (make browser-tests installs it)"
    if not _binary():
        return "there is no Chromium (make browser-tests installs it where it can)"
    if not shutil.which("chromedriver"):
        return "there is no chromedriver (make browser-tests installs it where it can)"
    return ""


def _binary() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for path in map(shutil.which, names) if path), None)


@contextmanager
def chromium(profile: Path, *flags: str) -> Iterator[Any]:
    """A browser with a fresh profile in this folder."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    for flag in [*FLAGS, *flags, f"--user-data-dir={profile}"]:
        options.add_argument(flag)
    options.binary_location = _binary() or ""
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


def view(
    driver: Any, *, width: int, height: int = 900, dark: bool = False, scale: float = 1
) -> None:
    """Look with a window of this width, in light or dark.

    Without motion: a page that scrolls smoothly is still moving when a click is sent.
    """
    features = [
        {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    metrics = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def screenshot(driver: Any, path: Path) -> None:
    """Save what the window shows."""
    answer = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    path.write_bytes(base64.b64decode(answer["data"]))


def axe_findings(driver: Any) -> list[str]:
    """What axe calls serious or critical about the page, with the places."""
    from importlib.resources import files

    driver.execute_script((files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8"))
    found = driver.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "axe.run(document, { resultTypes: ['violations'] }).then((r) => done(r.violations));"
    )
    return [
        f"{entry['id']} ({entry['impact']}): {entry['nodes'][0]['target']}"
        for entry in found
        if entry["impact"] in ("serious", "critical")
    ]


def requests(driver: Any) -> list[str]:
    """Addresses that the page asked for since the log was last read."""
    return [e["request"]["url"] for e in _events(driver, "Network.requestWillBeSent")]


def blocked(driver: Any) -> list[str]:
    """Why requests were blocked since the log was last read."""
    return [e.get("blockedReason", "") for e in _events(driver, "Network.loadingFailed")]


def _events(driver: Any, method: str) -> list[dict[str, Any]]:
    entries = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return [entry["params"] for entry in entries if entry["method"] == method]
