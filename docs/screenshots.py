"""Pictures of the report for the documentation: ``make screenshots``.

Runs ``fewlabel demo --report`` and photographs the page in headless Chromium.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
sys.path.insert(0, str(ROOT / "tests"))

# name: width, height, dark
PICTURES = {"report": (1280, 900, False)}


def main() -> None:
    from support import browser

    missing = browser.missing()
    if missing:
        raise SystemExit(f"screenshots: {missing}")
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        command = [sys.executable, "-m", "fewlabel", "demo", "--report", str(page)]
        subprocess.run(command, check=True)
        with browser.chromium(Path(folder) / "profile", "--hide-scrollbars") as driver:
            for name, (width, height, dark) in PICTURES.items():
                browser.view(driver, width=width, height=height, dark=dark)
                driver.get(page.as_uri())
                browser.screenshot(driver, IMAGES / f"{name}.png")


if __name__ == "__main__":
    main()
