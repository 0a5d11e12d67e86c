"""How each kind of column is encoded, in words for people."""

from __future__ import annotations

MAX_LEVELS = 40
"""So many values of a category have an indicator of their own."""

_MISSING = "a missing value becomes the median, and a flag marks it"
TREATMENT = {
    "number": f"used as it is; {_MISSING}",
    "yes/no": f"1 for yes, 0 for no; {_MISSING}",
    "date": f"days, and month, weekday (and hour) as points on a circle; {_MISSING}",
    "category": f"one indicator for each value; rare values beyond {MAX_LEVELS - 1} share one",
    "many": f"indicators of the {MAX_LEVELS} most frequent values, and singular vectors of the "
    "tf-idf of all values' letters, so that values written alike lie together",
    "text": "singular vectors of the tf-idf of its letters (3- and 4-grams)",
    "words": "singular vectors of the tf-idf of its words",
}


def without_vectors(treatment: str) -> str:
    """How a text is encoded if its tf-idf is kept as it is."""
    return treatment.replace("singular vectors of the tf-idf", "the tf-idf", 1)
