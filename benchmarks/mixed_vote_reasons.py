"""Why the mixed vote misses a row of its table, found out by hand."""

from __future__ import annotations

REASONS: dict[str, str] = {
    "pageblocks": (
        "a thousandth, not significant. With 1,094 labels forests are best and the others add "
        "nothing, but Q still leaves them a part of the vote."
    ),
}
