"""The sentences of the report: what was learned, how wrong it is, the warnings."""

from __future__ import annotations

from typing import Any

from fewlabel._core.errors import shorten
from fewlabel.assess.audit import percent_up
from fewlabel.assess.limits import about_percent

TERMINATION = {
    "all_labeled": "every row had been pseudo-labelled",
    "no_selection": "no further row reached its threshold",
    "min_gain": "a further round would have added hardly any rows",
    "max_iter": "the largest number of rounds was reached",
    "no_unlabeled": "there was no unlabelled row",
}

GLOSSARY = {
    "estimate": "A number that is probably near the truth: “about”. Its limits hold about as often "
    "as they say, if the labelled rows are what the estimate assumes.",
    "guarantee": "“At most”: true with the stated confidence, whatever the classifier did. It "
    "takes an audit.",
    "95 % limits": "Meant to contain the true share in 95 of 100 such tables. Where they do not, "
    "it is mostly below them.",
    "confidence": "The calibrated probability that a label is right: of labels with 90 %, about "
    "90 in 100 are.",
    "accepted": "A label that can be used as it is, for the error that was allowed.",
    "audit": "A person checks the labels of rows that were drawn at random.",
    "pseudo-labelled": "A round of self-learning trained on the row, with the label of its vote.",
    "held-out": "Not used for training, so it shows how good the vote is on new rows.",
    "vote": "The share of the voters, weighted by Q, that choose a class.",
    "margin": "The vote for the label minus the vote for the runner-up.",
    "recall": "The share of the rows of a class that get its label.",
    "threshold": "The vote that a row must reach to be pseudo-labelled; one for each class.",
    "weight Q": "The share of a family of classifiers in the vote, learned from held-out rows.",
    "bound": "A limit of the expected error if the calibrated votes are the true probabilities. "
    "They are not exactly, so here it is an estimate.",
}
"""The words of the report, explained where they occur and in a list."""

FEW_LABELS = 5
"""A class with fewer given labels than this is mentioned."""

_SPACE = "\N{NO-BREAK SPACE}"


# --- numbers ---------------------------------------------------------------------------------


def percent(value: float | None, digits: int = 1) -> str:
    """A share for people. Bounds above 1 say nothing and are shown as 100 %."""
    if value is None:
        return "–"
    if value >= 1:
        return f"100{_SPACE}%"
    return f"{100 * value:.{digits}f}{_SPACE}%"


def bound(stated: dict[str, Any]) -> str:
    """A bound for people; one that is guaranteed is rounded up, or it would be more than proved."""
    value = stated["value"]
    is_limit = stated["kind"] == "guarantee" and value is not None and value < 1
    return percent_up(value) if is_limit else percent(value)


def about(value: float | None) -> str:
    """An estimated share for people, with as many digits as it deserves."""
    return "–" if value is None else f"{about_percent(min(value, 1.0))}{_SPACE}%"


def interval(share: dict[str, Any]) -> str:
    """Limits of an estimated share: "2–9 %"."""
    return f"{about_percent(share['low'])}–{about(share['high'])}"


def goal(value: float) -> str:
    """A share that somebody asked for, as it was asked: "5 %", "0.5 %"."""
    return f"{100 * value:.4g}{_SPACE}%"


def count(n: int, noun: str) -> str:
    """ "1 row", "2,000 rows"."""
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


# --- what was learned ------------------------------------------------------------------------


def voted_by(voters: dict[str, Any] | None) -> str:
    """ "by a vote of 6 families"; empty if a single classifier voted."""
    if voters is None:
        return ""
    if voters["n_voting"] == 1:
        return f"by {voters['families'][0]['title']}, which got all the weight"
    return f"by a vote of {voters['n_voting']} families"


def headline(summary: dict[str, Any]) -> list[str]:
    """What was learned, in a few sentences."""
    data = summary["data"]
    if summary["promise"] is None:
        return [
            f"All {data['n_rows']:,} rows have a label, so there was nothing to self-learn.",
            "The classifier was trained on them as usual; there are no new labels to speak of.",
        ]
    found = [learned_sentence(summary), f"{_capital(error_words(summary))}."]
    accepted = summary["promise"]["accepted"]
    asked = f"{goal(accepted['max_error'])} was asked for"
    found.append(f"{_capital(accepted_words(accepted, asked, upper_limit(summary)))}.")
    if summary["truth"]:
        found.append(f"{_capital(truth_words(summary))}.")
    return found + summary["broken"]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def learned_sentence(summary: dict[str, Any]) -> str:
    """How many rows got a label, and from what."""
    data, who = summary["data"], voted_by(summary["voters"])
    return (
        f"From {count(data['n_labeled'], 'labelled row')}, {count(data['n_unlabeled'], 'other')} "
        f"got a label {who + ' ' if who else ''}in {count(len(summary['rounds']), 'round')}."
    )


def error_words(summary: dict[str, Any]) -> str:
    """The estimate: "about 5 % of the 1,704 new labels are wrong (2–9 %; …)"."""
    error, n = summary["promise"]["error"], summary["data"]["n_unlabeled"]
    if error["value"] is None:
        return (
            f"how many of the {count(n, 'new label')} are wrong cannot be said: no labelled row "
            f"could be judged"
        )
    unsafe = "" if error["safe"] else ", unsafe: see the warnings"
    wrong = f"of the {count(n, 'new label')} are wrong"
    if n == 1:
        wrong = "is the chance that the new label is wrong"
    return (
        f"about {about(error['value'])} {wrong} "
        f"({interval(error)}; estimated from {count(error['n'], 'labelled row')}{unsafe})"
    )


_CLASSES_IN_LINE = 6
_NAME = 40
"""Characters of a class in a sentence: a name may be long, or have line breaks."""


def recall_words(summary: dict[str, Any]) -> str:
    """The recall of each class, the lowest ones of many; empty if none is known."""
    known = [c for c in summary["classes"] if c.get("recall")]
    if not known or not summary["promise"]:
        return ""
    lowest = sorted(known, key=lambda c: c["recall"]["value"])[:_CLASSES_IN_LINE]
    shown = known if len(known) <= _CLASSES_IN_LINE else lowest
    each = (
        f"{shorten(c['name'], _NAME)} {about(c['recall']['value'])} ({interval(c['recall'])})"
        for c in shown
    )
    which = "each class" if len(shown) == len(summary["classes"]) else "some classes"
    return f"recall, the share of {which} that gets its label (estimate): {', '.join(each)}"


def upper_limit(summary: dict[str, Any]) -> float:
    """Of the share of wrong labels."""
    return float(summary["promise"]["error"]["high"])


def accepted_words(accepted: dict[str, Any], asked: str, high: float | None = None) -> str:
    """Which labels can be taken.

    Parameters
    ----------
    accepted : dict
        With ``n`` and ``expected_error``, such as a point of the promise's curve.
    asked : str
        What was asked for, in words.
    high : float, optional
        Upper limit of the share that is wrong among all labels: why none is accepted.
    """
    if accepted["n"] == 0:
        why = "" if high is None else f"the upper limit of their error is {about(high)}; "
        return (
            f"none of them can be taken as they are ({asked}): {why}label more rows, or allow more"
        )
    expected = about(accepted["expected_error"])
    if accepted["n"] == 1:
        return f"1 of them can be taken as it is (wrong with a chance of about {expected}; {asked})"
    return (
        f"{accepted['n']:,} of them can be taken as they are (about {expected} of these are wrong; "
        f"{asked})"
    )


def proof_words(point: dict[str, Any]) -> str:
    """How many random checks would prove it."""
    if point["n"] == 0:
        return "there is nothing to prove"
    aim = f"at most {goal(point['max_error'])} wrong"
    if point["checks"] is None:
        return f"no number of checks would probably prove {aim}: too many are expected to be wrong"
    if point["checks"] > 0.8 * point["n"]:
        return f"to prove {aim} takes about {point['checks']:,} checks, nearly all of them"
    return f"{point['checks']:,} random checks would probably prove {aim}"


# --- the estimate and what was held out ------------------------------------------------------


def held_out_words(promise: dict[str, Any]) -> str:
    """The held-out error beside the estimate, and why they differ; empty if there is none."""
    held, error = promise["held_out"], promise["error"]
    if held is None or error["value"] is None:
        return ""
    text = (
        f"Held out, the first vote gets {percent(held['initial'])} of "
        f"{count(held['n'], 'labelled row')} wrong"
    )
    if held["self_learning"] is not None:
        text += f", self-learning as a whole {percent(held['self_learning'])}"
    if error["value"] < held["initial"] - 5e-4:
        text += f"; the estimate is lower: {'; '.join(_why_lower(held))}"
    elif error["value"] > held["initial"] + 5e-4:
        text += f"; the estimate is higher: {'; '.join(_why_higher(held))}"
    return f"{text}."


def _why_lower(held: dict[str, Any]) -> list[str]:
    reasons = []
    if held["self_learning"] is not None and held["self_learning"] < held["initial"]:
        reasons.append("it is about self-learning, not about the first vote")
    if held["trained_share"] < 1:
        share = percent(held["trained_share"], 0)
        reasons.append(f"labels come from all labelled rows, held-out votes from {share} of them")
    if held["per_class"]:
        reasons.append("classes count by their estimated shares")
    reasons.append("the votes for the unlabelled rows count a little, too")
    return reasons


def _why_higher(held: dict[str, Any]) -> list[str]:
    reasons = []
    if held["mixed"]:
        reasons.append("the weights of the vote were chosen on the same rows, which flatters them")
    if held["self_learning"] is not None and held["self_learning"] > held["initial"]:
        reasons.append("it is about self-learning, not about the first vote")
    reasons.append("so few rows may be right by chance")
    return reasons


def changed_words(summary: dict[str, Any]) -> str:
    """How many labels self-learning changed, and about what that is worth."""
    data = summary["data"]
    if not summary["rounds"]:
        return ""
    text = (
        f"self-learning changed {data['n_changed']:,} of the "
        f"{count(data['n_unlabeled'], 'label')} of the first vote"
    )
    if not data["n_changed"] or "gain" not in data:
        return text
    gain = {key: round(value) for key, value in data["gain"].items()}
    # Nothing of this table goes into it but how many labels changed: say so.
    limits = f"{gain['low']:+,} to {gain['high']:+,}".replace("-", "−")
    more = f"about {gain['value']:,} more are right than before ({limits})"
    return f"{text}; by what such changes gained on other tables, {more}"


# --- the truth -------------------------------------------------------------------------------


def truth_words(summary: dict[str, Any]) -> str:
    """The true errors."""
    truth, n = summary["truth"], summary["data"]["n_unlabeled"]
    which = "" if truth["n_known"] == n else f" (of the {truth['n_known']:,} whose label is known)"
    text = f"in truth {percent(truth['error'])} of the new labels{which}"
    if truth["accepted_error"] is not None:
        text += f" and {percent(truth['accepted_error'])} of the accepted ones"
    return f"{text} are wrong"


def broken_statements(summary: dict[str, Any]) -> list[str]:
    """Where the truth breaks a statement of the report, in plain words."""
    truth, promise = summary["truth"], summary["promise"]
    if not truth or not promise:
        return []
    found, error, most = [], promise["error"], summary["data"]["max_error"]
    if error["value"] is not None and truth["error"] > error["high"]:
        found.append(
            f"The truth breaks the estimate: {percent(truth['error'])} of the labels are wrong, "
            f"more than its upper limit of {percent(error['high'])}."
        )
    wrong = truth["accepted_error"]
    if wrong is not None and wrong > most + 1e-12:
        found.append(
            f"The truth breaks the acceptance: {percent(wrong)} of the accepted labels are wrong, "
            f"more than the {goal(most)} that was asked for."
        )
    return found


# --- warnings --------------------------------------------------------------------------------


def warnings_of(summary: dict[str, Any]) -> list[str]:
    """What a careful reader should know."""
    classes, data = summary["classes"], summary["data"]
    promise, truth = summary["promise"], summary["truth"]
    found = []
    if promise and not promise["error"]["safe"]:
        found += [f"The estimate is unsafe: {note}." for note in promise["error"]["notes"]]
    empty = [c["name"] for c in classes if c["n_labeled"] == 0 and data["n_unlabeled"]]
    if empty:
        found.append(
            f"No unlabelled row is labelled {_either(empty)}. Either there is none, or the "
            f"labelled rows do not show how to recognise it: label more of it if it should occur."
        )
    found += [
        f"{count(n, 'row')} {'is' if n == 1 else 'are'} truly “{shorten(name, _NAME)}”, a class "
        f"without a labelled row: their labels are wrong whatever they are. Label some of them."
        for name, n in list((truth or {"unknown_classes": {}})["unknown_classes"].items())[:3]
    ]
    few = [c["name"] for c in classes if c["n_given"] < FEW_LABELS]
    if few:
        found.append(
            f"Fewer than {FEW_LABELS} labelled rows for {_either(few, 'and')}. Label a few more: "
            f"labels and estimates rest on them."
        )
    doubtful = [c["name"] for c in classes if c["error"] and _mostly_wrong(c["error"])]
    if doubtful:
        found.append(
            f"Of the labels {_either(doubtful, 'and')} about half or more are wrong: check them by "
            f"hand."
        )
    if data["n_classes"] > len(classes):
        found.append(
            f"Only the {len(classes)} classes with most labels are shown, of {data['n_classes']:,}."
        )
    return found


def _mostly_wrong(error: dict[str, float]) -> bool:
    """Whether about half of the labels are wrong, and a quarter at least: few rows know little."""
    return error["value"] >= 0.5 and error["low"] >= 0.25


def _either(names: list[str], word: str = "or") -> str:
    quoted = [f"“{shorten(name, _NAME)}”" for name in names[:6]]
    if len(names) > 6:
        return ", ".join(quoted) + f" {word} {len(names) - 6} other classes"
    return f" {word} ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
