"""What the HTML of docutils and of the gallery lacks for screen readers.

``docs/check_accessibility.py`` lets axe look at the pages that come out.
"""

from __future__ import annotations

import re

THUMBNAIL = re.compile(
    r'(<div class="sphx-glr-thumbcontainer".*?<a class="reference internal" )'
    r'(href="[^"]+"><span class="doc">)(.*?)(</span>)',
    re.DOTALL,
)


def mend(app, pagename, templatename, context, doctree):
    """Give the entries of reference lists a role that a list may hold, and thumbnails a name."""
    body = context.get("body", "")
    body = body.replace('role="doc-biblioentry"', 'role="listitem"')
    # The style sheet of the gallery hides the words inside the link and shows them below it.
    context["body"] = THUMBNAIL.sub(r'\1aria-label="\3" \2\3\4', body)


def setup(app):
    app.connect("html-page-context", mend)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
