"""Pictures of the report for the documentation: ``make screenshots``.

Runs ``fewlabel demo --report`` and photographs the page in headless Chromium: light, dark, and as a
phone shows it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
sys.path.insert(0, str(ROOT / "tests"))

# name: width, height, dark, how far to scroll
PICTURES = {
    "report-light": (1180, 1392, False, 0),
    "report-dark": (1180, 1392, True, 0),
    "report-phone": (390, 1500, False, 0),
    "report-rounds": (1180, 1330, False, "h-rounds"),
    "report-phone-dark": (390, 1500, True, "h-accept"),
}


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
            for name, (width, height, dark, place) in PICTURES.items():
                browser.view(driver, width=width, height=height, dark=dark, scale=1.5)
                driver.get(page.as_uri())
                driver.execute_script("document.documentElement.style.scrollBehavior = 'auto'")
                if place:
                    script = (
                        "scrollTo(0, document.getElementById(arguments[0])"
                        ".getBoundingClientRect().top - 24)"
                    )
                    driver.execute_script(script, place)
                browser.screenshot(driver, IMAGES / f"{name}.png")


if __name__ == "__main__":
    main()
