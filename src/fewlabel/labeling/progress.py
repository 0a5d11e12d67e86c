"""What the side of the page says: how wrong the labels are, how far the goal is."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from fewlabel.assess.audit import percent_up
from fewlabel.labeling.session import LabelingSession

# With labels chosen for what they teach the error falls faster than with random ones, whose
# exponent is about 0.4 (fewlabel.assess.error_estimate); what the curve says is kept within these.
_SLOWEST, _FASTEST = 0.3, 1.5
_MOST_SHOWN = 200  # points of the curve
_FEWEST_RANDOM = 5  # by fewer random rows an estimate says nothing about the curve


def labels_needed(models: Sequence[dict[str, Any]], goal: float) -> int | None:
    r"""About how many more labels the goal takes, by the curve so far.

    .. math:: e(n) \approx c\,n^{-a}

    fitted to the estimates of the error, with an exponent between 0.3 and 1.5.

    Parameters
    ----------
    models : sequence of dict
        With ``n_labels``, ``n`` random ones among them, and ``cautious``, the error by which
        labels are accepted, so that every label is once it is below the goal; the oldest first.
    goal : float

    Returns
    -------
    n : int or None
        0 if the last estimate meets the goal; None if too little is known.

    Examples
    --------
    >>> first = {"n_labels": 50, "n": 12, "cautious": 0.2}
    >>> labels_needed([first, {"n_labels": 100, "n": 25, "cautious": 0.1}], 0.05)
    100
    """
    known = [(m["n_labels"], m["cautious"]) for m in models if m["n"] >= _FEWEST_RANDOM]
    if not known:
        return None
    n, error = known[-1]
    if error <= goal:
        return 0
    x, y = np.log([p[0] for p in known]), np.log([max(p[1], 1e-3) for p in known])
    slope = _SLOWEST
    if np.ptp(x) > 0.3:  # labels have grown by a third
        slope = float(np.clip(-np.polyfit(x, y, 1)[0], _SLOWEST, _FASTEST))
    more = n * ((error / goal) ** (1.0 / slope) - 1.0)
    return max(1, round(min(more, 1e6)))


def state(session: LabelingSession) -> dict[str, Any]:
    """All that the page shows beside the row, of JSON types."""
    with session.lock:
        labels, book = session.labels(), session.book
        counts = Counter(labels.values())
        n_rows = len(session.digests)
        return {
            "phase": "check" if session.check else "label",
            "goal": session.goal,
            "rows": n_rows,
            "labels": len(labels),
            "given": len(session.given),
            "answered": len(book.labels()),
            "random": len(book.random_rows()),
            "random_unknown": len(book.random_unknown()),
            "unsure": len(book.unsure()),
            "skipped": len(book.skipped()),
            "can_undo": bool(book.answers),
            "classes": _classes(session, counts),
            "model": _model(session),
            "curve": _curve(session),
            "needed": _needed(session, n_rows - len(labels)),
            "ready": session.learned is not None,
            "goal_met": session.goal_met(),
            "learning": _learning(session),
            "second_looks": _second_looks(session),
            "check": _check(session),
            "files": list(session.files),
            "writing": session.wants_files,
        }


def _needed(session: LabelingSession, left: int) -> int | None:
    """Labels probably still needed; no more than there are rows without one."""
    found = labels_needed(session.models, session.goal)
    return None if found is None else min(found, left)


def _classes(session: LabelingSession, counts: Counter[str]) -> list[dict[str, Any]]:
    learned = session.learned
    shares = dict(zip(learned.classes, learned.shares)) if learned else {}
    return [
        {"name": name, "labels": counts[name], "share": shares.get(name)}
        for name in session.classes()
    ]


def _model(session: LabelingSession) -> dict[str, Any] | None:
    learned = session.learned
    if learned is None or not learned.classes:
        return None
    open_rows = len(session.digests) - learned.n_labels
    return {
        "version": learned.version,
        "n_labels": learned.n_labels,
        "error": learned.error,
        "accepted": int(learned.accepted.sum()),
        "accepted_share": float(learned.accepted.sum() / max(open_rows, 1)),
    }


def _curve(session: LabelingSession) -> list[dict[str, Any]]:
    known = [m for m in session.models if m["n"] >= _FEWEST_RANDOM]
    step = max(1, -(-len(known) // _MOST_SHOWN))
    points = known[::-1][::step][::-1]
    return [{key: m[key] for key in ("n_labels", "value", "low", "high")} for m in points]


def _learning(session: LabelingSession) -> dict[str, Any]:
    since = session.busy_since
    return {
        "busy": since is not None,
        "seconds": 0.0 if since is None else time.monotonic() - since,
        "trouble": session.trouble,
    }


def _second_looks(session: LabelingSession) -> list[dict[str, Any]]:
    """Rows to look at again: answers that contradict each other, or that the model contradicts."""
    book = session.book
    found = [
        {
            "row": row,
            "why": "answers",
            "labels": [a.label for a in book.by_row[row] if a.label is not None],
        }
        for row in book.disputed()
    ]
    for row, believed in session.learned.second_looks if session.learned else []:
        answers = book.by_row.get(row, [])
        looked = any(a.why == "second look" for a in answers)
        if answers and not looked and book.label(row) not in (None, believed):
            found.append({"row": row, "why": "model", "labels": [book.label(row)]})
    return found


def _check(session: LabelingSession) -> dict[str, Any] | None:
    check = session.check
    if check is None:
        return None
    checked = session.checked()
    statement = check.audit(checked)
    outcome = check.outcome(checked)
    return {
        "outcome": outcome,
        "goal": check.goal,
        "rows": len(check.rows),
        "checked": 0 if statement is None else statement.checked,
        "wrong": 0 if statement is None else statement.wrong,
        "at_most": None if statement is None else statement.at_most,
        "limit": None if statement is None else percent_up(statement.at_most),
        "limit_corrected": (
            None if statement is None else percent_up(statement.at_most_after_correction)
        ),
        "statement": "" if statement is None else str(statement),
        "needed": session.checks_needed(),
    }
