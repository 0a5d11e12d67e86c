"""Why the mixed vote misses a row of its table, found out by hand."""

from __future__ import annotations

REASONS: dict[str, str] = {}
