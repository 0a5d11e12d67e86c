"""Why the mixed vote misses a row of its table, found out by hand."""

from __future__ import annotations

REASONS: dict[str, str] = {
    "pageblocks": (
        "a thousandth, and no significant one (the p above). With 1,094 labels forests are the "
        "best family here and the others add nothing. Q still leaves them a good part of the "
        "vote: their errors are only a few hundredths larger, and 3·√l times that does not silence "
        "them."
    ),
}
