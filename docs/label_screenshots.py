"""Photograph the labelling page, write docs/images/label-*.png: ``make screenshots``.

A session on scikit-learn's wine with the truth answering, in headless Chromium.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from sklearn.datasets import load_wine

sys.path[:0] = [".", "tests"]

from benchmarks.label_kill import Client, started  # noqa: E402
from support import browser  # noqa: E402

IMAGES = Path("docs/images")
NAMES = ["barolo", "grignolino", "barbera"]


def main() -> None:
    data = load_wine()
    lines = [",".join([*data.feature_names, "cultivar"]).replace("/", "_")]
    lines += [",".join(f"{x:g}" for x in row) + "," for row in data.data]
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "wine.csv"
        table.write_text("\n".join(lines) + "\n", encoding="utf-8")
        classes = [option for name in NAMES for option in ("--class", name)]
        process, address = started(str(table), "--target", "cultivar", "--goal", "8%", *classes)
        try:
            with browser.chromium(Path(folder) / "profile") as driver:
                photograph(driver, address, Client(address), data.target)
        finally:
            process.kill()
            process.communicate()


def photograph(driver, address, client, truth) -> None:
    """Label for a while, photograph, go on to the end of the check, photograph."""
    photographed = False
    end = time.monotonic() + 60
    while not client.state()["ready"] and time.monotonic() < end:
        time.sleep(0.2)
    while client.state()["check"] is None or client.state()["check"]["outcome"] == "open":
        card = client.post("next")["card"]
        if card is None:
            break
        if card["why"] == "check" and not photographed:
            raise SystemExit("The goal was met before the pictures were taken.")
        label = NAMES[truth[card["row"]]]
        client.post("answer", row=card["row"], kind="label", label=label, who="Ann")
        state = client.state()
        if state["labels"] % 4 == 0:
            wait_for_model(client)
        if not photographed and state["labels"] >= 40 and state["phase"] == "label":
            photographed = True
            for name, options in {
                "light": {"width": 1240, "height": 860},
                "dark": {"width": 1240, "height": 860, "dark": True},
                "phone": {"width": 390, "height": 844, "scale": 2},
            }.items():
                shoot(driver, address, name, options)
    shoot(driver, address, "proved", {"width": 1240, "height": 720})


def wait_for_model(client) -> None:
    """Let the model keep up with a person who answers faster than any."""
    end = time.monotonic() + 20
    while client.state()["learning"]["busy"] and time.monotonic() < end:
        time.sleep(0.1)


def shoot(driver, address, name, options) -> None:
    """One picture."""
    browser.view(driver, **options)
    driver.get(address)
    end = time.monotonic() + 20
    ready = "return document.documentElement.dataset.ready"
    while driver.execute_script(ready) != "1" and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(0.5)
    IMAGES.mkdir(exist_ok=True)
    browser.screenshot(driver, IMAGES / f"label-{name}.png")


if __name__ == "__main__":
    main()
