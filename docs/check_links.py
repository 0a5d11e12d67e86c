"""Every link inside the built documentation leads to a page and to a place in it.

``python docs/check_links.py docs/build/html`` lists those that do not, and files that the pages
would load from somewhere else.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The places of a page, and what it links to and loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.places: set[str] = {"", "top"}
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.places |= {found[key] for key in ("id", "name") if found.get(key)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag in ("img", "script") and found.get("src"):
            self.loads.append(found["src"])
        if tag == "link" and found.get("href") and found.get("rel") != "canonical":
            self.loads.append(found["href"])


def broken(root: Path) -> list[str]:
    """What is wrong with the links of the pages under a folder."""
    found = (path for path in sorted(root.rglob("*.html")) if "_static" not in path.parts)
    pages = {path: Page(path) for path in found}
    problems = []
    for path, page in pages.items():
        name = path.relative_to(root)
        problems += [f"{name} loads {url}" for url in page.loads if urlsplit(url).netloc]
        for url in [*page.links, *page.loads]:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc or url.startswith("data:"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                problems.append(f"{name} links to {url}, which does not exist")
            elif target in pages and unquote(parts.fragment) not in pages[target].places:
                problems.append(f"{name} links to {url}, where there is no such place")
    for url in re.findall(r"\]\(([\w/.-]+)\)", (root / "llms.txt").read_text(encoding="utf-8")):
        if not (root / url).is_file():
            problems.append(f"llms.txt links to {url}, which does not exist")
    return problems


def main() -> None:
    root = Path(sys.argv[1]).resolve()
    problems = broken(root)
    print(*problems, sep="\n")
    if problems:
        raise SystemExit(f"{len(problems)} links are broken")
    print(f"all links inside {root.name} lead somewhere")


if __name__ == "__main__":
    main()
