"""axe finds nothing serious on the built pages: in light, in dark, and as wide as a phone.

``python docs/check_accessibility.py docs/build/html`` looks at one page of each kind in headless
Chromium; without a browser it says so and lets the pages pass.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

PAGES = [
    "index.html",
    "guide/trust.html",
    "theory/index.html",
    "api/generated/fewlabel.FewLabelClassifier.html",
    "gallery/index.html",
    "gallery/plot_thresholds.html",
]
LOOKS = {"light": (1280, False), "dark": (1280, True), "phone": (390, False)}


def findings(root: Path) -> list[str]:
    """What axe calls serious or critical, page by page."""
    from support import browser

    found = []
    with tempfile.TemporaryDirectory() as profile, browser.chromium(Path(profile)) as driver:
        for page in PAGES:
            for look, (width, dark) in LOOKS.items():
                browser.view(driver, width=width, dark=dark)
                driver.get((root / page).as_uri())
                found += [f"{page}, {look}: {text}" for text in browser.axe_findings(driver)]
    return found


def main() -> None:
    from support import browser

    root = Path(sys.argv[1]).resolve()
    if missing := browser.missing():
        print(f"accessibility was not checked: {missing}")
        return
    found = findings(root)
    print(*found, sep="\n")
    if found:
        raise SystemExit(f"axe has {len(found)} serious findings")
    print(f"axe finds nothing serious on {len(PAGES)} pages of {root.name}")


if __name__ == "__main__":
    main()
