"""The sentences of the report: what was learned, what it rests on, what to be wary of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fewlabel.report.vote_calibration import Calibration

TERMINATION = {
    "all_labeled": "every row had been pseudo-labelled",
    "no_selection": "no further row reached its threshold",
    "min_gain": "a further round would have added hardly any rows",
    "max_iter": "the largest number of rounds was reached",
    "no_unlabeled": "there was no unlabelled row",
}

_STANDS_FOR = {
    "supervised": "the votes of the first, supervised classifier",
    "current": "the votes of the classifier itself",
    "uniform": "equal probabilities of all classes",
}

FEW_LABELS = 5
"""A class with fewer given labels than this is mentioned."""


def assumption_of(label_proba: Any, calibration: Calibration | None = None) -> str:
    """What the bounds of a classifier assume."""
    source = _STANDS_FOR.get(label_proba) if isinstance(label_proba, str) else None
    source = source or "the given label probabilities"
    if calibration is not None and calibration.power != 1.0:
        source += f", calibrated on held-out labelled rows (power {calibration.power:.2f}),"
    return (
        f"An estimate: {source} stand for the unknown label probabilities P(Y|x). It would be a "
        f"guarantee if they were the true ones."
    )


def percent(value: float | None, digits: int = 1) -> str:
    """A share for people. Bounds above 1 say nothing and are shown as 100 %."""
    if value is None:
        return "–"
    if value >= 1:
        return "100\N{NO-BREAK SPACE}%"
    return f"{100 * value:.{digits}f}\N{NO-BREAK SPACE}%"


def count(n: int, noun: str) -> str:
    """ "1 row", "2,000 rows"."""
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def voted_by(voters: dict[str, Any] | None) -> str:
    """ "by a vote of 6 families"; empty if a single classifier voted."""
    if voters is None:
        return ""
    if voters["n_voting"] == 1:
        return f"by {voters['families'][0]['title']}, which got all the weight"
    return f"by a vote of {voters['n_voting']} families"


def headline(summary: dict[str, Any]) -> list[str]:
    """What was learned, in two sentences."""
    data, rounds = summary["data"], summary["rounds"]
    if not data["n_unlabeled"]:
        return [
            f"All {data['n_rows']:,} rows have a label, so there was nothing to self-learn.",
            "The classifier was trained on them as usual; there is no bound to report.",
        ]
    who = voted_by(summary["voters"])
    first = (
        f"From {count(data['n_labeled'], 'labelled row')}, {count(data['n_unlabeled'], 'other')} "
        f"got a label {who + ' ' if who else ''}in {count(len(rounds), 'round')}; "
        f"{data['n_trusted']:,} "
        f"({percent(data['trusted_share'], 0)}) of these labels are trusted: the votes reach the "
        f"threshold of their class."
    )
    errors = {entry["key"]: entry for entry in summary["errors"]}
    trusted, everything = errors["trusted"], errors["all"]
    second = _bound_sentence(trusted["bound"]["value"], everything["bound"]["value"])
    if everything.get("true_error") is not None:
        second += (
            f"; in truth {percent(trusted['true_error'])} and {percent(everything['true_error'])} "
            f"are"
        )
    return [first, second + "."]


def _bound_sentence(trusted: float | None, everything: float | None) -> str:
    """What the bounds say of the trusted labels and of all; those above 1 say nothing."""
    said = [
        f"{percent(value)} of {which}"
        for value, which in ((trusted, "the trusted labels"), (everything, "all labels"))
        if value is not None and value < 1
    ]
    if not said:
        return "The bound says nothing here: its estimate is 100\N{NO-BREAK SPACE}% or more"
    rest = "" if len(said) == 2 or trusted is None else "; of all labels it says nothing"
    estimates = "an estimate" if len(said) == 1 else "estimates"
    return f"By the bound, at most {' and '.join(said)} are wrong ({estimates}){rest}"


def warnings_of(summary: dict[str, Any]) -> list[str]:
    """What a careful reader should know."""
    classes, data = summary["classes"], summary["data"]
    found = []
    unpredicted = [c["name"] for c in classes if c["n_predicted"] == 0 and data["n_unlabeled"]]
    if unpredicted:
        found.append(
            f"No unlabelled row is predicted to be {_either(unpredicted)}. Either there is "
            f"none, or the labelled rows do not show how to recognise it: label more of it if it "
            f"should occur."
        )
    found += [
        f"{count(n, 'row')} {'is' if n == 1 else 'are'} truly “{name}”, a class without a labelled "
        f"row: their labels are wrong whatever they are. Label some of them."
        for name, n in list(summary.get("unknown_classes", {}).items())[:3]
    ]
    few = [c["name"] for c in classes if c["n_given"] < FEW_LABELS]
    if few:
        found.append(
            f"Fewer than {FEW_LABELS} labelled rows for {_either(few, 'and')}. Label a few more: "
            f"the bounds rest on what the first classifier learned from them."
        )
    found += _calibration(summary["calibration"])
    loose = [c["name"] for c in classes if c["bound"] and c["bound"]["value"] >= 0.5]
    if loose:
        found.append(
            f"For {_either(loose, 'and')} even the best threshold leaves a bound of one half or "
            f"more: check these labels by hand."
        )
    vacuous = [e["what"] for e in summary["errors"] if (e["bound"]["value"] or 0) >= 1]
    if vacuous:
        found.append(f"The bound says nothing (100 % or more) for: {'; '.join(vacuous)}.")
    if data["n_classes"] > len(classes):
        found.append(
            f"Only the {len(classes)} classes with most predictions are shown, of "
            f"{data['n_classes']:,}."
        )
    return found


def _calibration(calibration: dict[str, float] | None) -> list[str]:
    if not calibration:
        return []
    confidence, accuracy = calibration["confidence"], calibration["accuracy"]
    # Twice the standard error of the accuracy: a smaller gap may be chance.
    doubt = 2 * (max(accuracy * (1 - accuracy), 0.01) / calibration["n"]) ** 0.5
    if confidence - accuracy <= max(0.05, doubt):
        return []
    return [
        f"The votes look too confident: on labelled rows that were held out the winning vote is "
        f"{percent(confidence)} on average, but only {percent(accuracy)} of them are right. The "
        f"bounds may be too small."
    ]


def _either(names: list[str], word: str = "or") -> str:
    quoted = [f"“{name}”" for name in names[:6]]
    if len(names) > 6:
        return ", ".join(quoted) + f" {word} {len(names) - 6} other classes"
    return f" {word} ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
