"""Why the mixed vote misses a row of its table, found out by hand."""

from __future__ import annotations

REASONS: dict[str, str] = {
    "pageblocks": (
        "a thousandth, and no significant one (the p above). With 1,094 labels forests are the "
        "best family here and the others add nothing: Q still leaves them a part of the vote, "
        "because their held-out errors differ by less than a hundredth."
    ),
}
