"""``fewlabel audit``: draw rows for a person to check, and state what the checks guarantee."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewlabel._core.atomic import Outputs
from fewlabel._core.errors import UserError, listing, shorten
from fewlabel.assess.audit import Audit, percent_up
from fewlabel.assess.audit_plans import Plan, checks_needed, limit_if_none_wrong
from fewlabel.cli.check_file import (
    LABEL,
    RIGHT,
    Draw,
    check_table,
    draw_of,
    right_labels,
    without_blank_rows,
)
from fewlabel.cli.console import Console
from fewlabel.cli.labelled_table import LabelledTable, corrected, labelled_table, row_list
from fewlabel.report.words import count, percent
from fewlabel.tables.reading import read_table, table_format, writable_format, write_table
from fewlabel.tables.streaming import TableFiles, fit_in_memory, joined

if TYPE_CHECKING:
    import pyarrow as pa

_SEEDS = 2**32


@dataclass(frozen=True)
class AuditOptions:
    """Options of ``fewlabel audit``; shares are between 0 and 1."""

    target: str | None = None
    draw: int | None = None
    checked: Path | None = None
    every: bool = False
    sequential: bool = False
    confidence: float = 0.95
    goal: float | None = None
    seed: int | None = None
    out: Path | None = None
    force: bool = False
    encoding: str = "utf-8"

    @property
    def plan(self) -> Plan:
        """The plan that was asked for."""
        return "sequential" if self.sequential else "fixed"


def audit_command(console: Console, path: Path, options: AuditOptions) -> None:
    """Draw rows, or state what the checked ones guarantee, or say how many a goal needs."""
    if options.draw is not None and options.checked is not None:
        raise UserError(
            "--draw and --checked exclude each other.",
            "First draw rows and check them, then name the checked file with --checked.",
        )
    if options.checked is not None:
        _state(console, path, options, options.checked)
    elif options.draw is not None:
        _draw(console, path, options, options.draw)
    elif options.goal is not None:
        if options.out is not None:
            raise UserError(
                "--goal alone writes no file, so there is nothing for --out.",
                "Leave --out out, or add --draw N to draw rows to check.",
            )
        _plan(console, path, options, options.goal)
    else:
        raise UserError(
            "There is nothing to do.",
            "Add --draw N to draw rows to check, --checked FILE with the checked rows, or --goal "
            "5% to hear how many checks a goal needs.",
        )


# --- before the checks -----------------------------------------------------------------------


def _load(console: Console, path: Path, options: AuditOptions, every: bool) -> LabelledTable:
    console.progress(f"reading {path.name}")
    table = _read(path, options)
    return labelled_table(table, options.target, "all" if every else "accepted")


def _read(path: Path, options: AuditOptions) -> pa.Table:
    if path.is_dir():
        return _whole_folder(path)
    # The table is UTF-8, as we write it, and the checked file is what a spreadsheet made of it.
    return read_table(path, encoding=options.encoding, utf8_first=True)


def _whole_folder(path: Path) -> pa.Table:
    """The rows of a folder of results, in the order of its files."""
    files = TableFiles.of(str(path))
    if not fit_in_memory(files.names):
        raise UserError(
            f"The rows of '{shorten(path)}' would not fit in memory.",
            "Draw in Python, with the labels alone: fewlabel.audit_sample says which rows to check "
            "and fewlabel.audit what the checks show.",
        )
    tables = [table for _, table in files.named_chunks()]
    if not tables:
        raise UserError(f"The files of '{shorten(path)}' have no rows.", "Name another folder.")
    return joined(tables, files.title)


def _plan(console: Console, path: Path, options: AuditOptions, goal: float) -> None:
    labelled = _load(console, path, options, options.every)
    console.done()
    needed = _needed(labelled, goal, options)
    for sentence in needed["sentences"]:
        console.say(sentence)
    console.result(_told(labelled, {"goal": needed, "plan": options.plan}))


def _draw(console: Console, path: Path, options: AuditOptions, size: int) -> None:
    out = options.out or Path(f"{path.name.partition('.')[0]}-check.csv")
    kind, compression = table_format(out)
    if kind not in ("csv", "tsv"):
        raise UserError(
            f"'{shorten(out)}' is no CSV file.",
            "Name a .csv or .tsv file: it is for a person to fill in.",
        )
    seed = secrets.randbelow(_SEEDS) if options.seed is None else options.seed
    with Outputs([out], force=options.force, inputs=[path]) as outputs:
        labelled = _load(console, path, options, options.every)
        n = int(labelled.inside.sum())
        if size > n:
            raise UserError(
                f"--draw {size}: there are only {n:,} {labelled.what} to draw from.",
                f"Draw at most {count(n, 'row')}.",
            )
        draw = Draw(options.plan, labelled.population, size, seed)
        needed = None if options.goal is None else _needed(labelled, options.goal, options)
        best = limit_if_none_wrong(n, size, confidence=options.confidence, plan=options.plan)
        write_table(check_table(labelled, draw), outputs.path(out), kind, compression)
    console.done()
    console.say(
        f"{count(size, 'row')} of {n:,} {labelled.what} drawn at random. Fill in the column {RIGHT}"
        f" for {'one row after the other' if options.sequential else 'every row'}: the right "
        f"label, the same as {LABEL} where that is right."
    )
    console.say(f"If none is wrong they will show that at most {percent_up(best)} of all are.")
    for sentence in [] if needed is None else needed["sentences"]:
        console.say(sentence)
    for note in labelled.notes:
        console.say(f"! {note}")
    console.say(f"→ {out}")
    told = {"drawn": size, "seed": seed, "plan": options.plan, "at_most_if_none_wrong": best}
    console.result(_told(labelled, {**told, "goal": needed, "files": {"out": str(out)}}))


def _told(labelled: LabelledTable, more: dict[str, Any]) -> dict[str, Any]:
    told = {"target": labelled.target, "population": labelled.population}
    return {**told, "rows": int(labelled.inside.sum()), **more, "notes": labelled.notes}


def _needed(labelled: LabelledTable, goal: float, options: AuditOptions) -> dict[str, Any]:
    """How many checks the goal needs: if none is wrong, and with the error that is expected."""
    n, expected = int(labelled.inside.sum()), labelled.expected_error()

    def checks(error: float) -> int:
        return checks_needed(n, goal, error, confidence=options.confidence, plan=options.plan)

    fewest = checks(0.0)
    if expected is None:
        probable = checks(goal / 2)
        then = f", and probably {probable:,} if {_plain(goal / 2)} are."
    elif expected <= goal:
        probable = checks(expected)
        then = f", and probably {probable:,} if {percent(expected)} are, as the confidences say."
    else:
        probable = None
        then = (
            f". It will probably fail: the confidences expect that about {percent(expected)} are "
            f"wrong. Accept fewer labels, or label more rows."
        )
    takes = count(fewest, "check")
    said = f"To show that at most {_plain(goal)} are wrong takes {takes} if none is wrong"
    return {
        "max_error": goal,
        "checks_if_none_wrong": fewest,
        "expected_error": expected,
        "checks_probably": probable,
        "sentences": [said + then, *_too_few(n, fewest, options.draw)],
    }


def _too_few(n: int, fewest: int, drawn: int | None) -> list[str]:
    """Say plainly when no promise can come of it."""
    found = []
    if fewest > n / 2:
        found.append(
            f"{n:,} labels are too few for a guarantee from a sample: check them all, or choose a "
            f"goal that is easier to reach."
        )
    if drawn is not None and drawn < fewest:
        found.append(
            f"{count(drawn, 'check')} cannot show it, even if none is wrong: draw at least "
            f"{fewest:,}."
        )
    return found


def _plain(value: float) -> str:
    return f"{100 * value:.4g}\N{NO-BREAK SPACE}%"


# --- after the checks ------------------------------------------------------------------------


def _state(console: Console, path: Path, options: AuditOptions, checked: Path) -> None:
    if options.seed is not None:
        raise UserError("--seed is for --draw.", "Leave it out: the checked file knows its seed.")
    kind = writable_format(options.out) if options.out is not None else None
    outs = [options.out] if options.out is not None else []
    with Outputs(outs, force=options.force, inputs=[path, checked]) as outputs:
        console.progress(f"reading {checked.name}")
        check = without_blank_rows(_read(checked, options))
        draw = draw_of(check, checked)
        if options.every and draw.population == "accepted":
            raise UserError(
                f"--all: the rows of '{shorten(checked)}' were drawn from the accepted ones.",
                "Leave --all out, or draw again with --all.",
            )
        labelled = _load(console, path, options, draw.population == "all")
        found = right_labels(labelled, draw, check, checked)
        rows = [int(row) for row in draw.rows(labelled)]
        plan: Plan = "sequential" if options.sequential else draw.plan
        right = _those_checked(found, rows, plan)
        rows = rows[: len(right)]
        answer = Audit.from_checks(
            int(labelled.inside.sum()),
            [labelled.labels[row] != label for row, label in zip(rows, right)],
            confidence=options.confidence,
            plan=plan,
            what=labelled.what,
        )
        if options.out is not None and kind is not None:
            write_table(corrected(labelled, rows, right), outputs.path(options.out), *kind)
    console.done()
    _tell(console, answer, labelled, rows, right, options)


def _those_checked(found: list[str | None], rows: list[int], plan: Plan) -> list[str]:
    """The right labels that were filled in: all, or the first ones if the audit is sequential."""
    right = [label for label in found if label is not None]
    if not right:
        raise UserError(
            "No row is checked yet.", f"Fill in the right labels in the column {RIGHT}."
        )
    if plan == "fixed" and len(right) < len(found):
        empty = sorted(row + 1 for row, label in zip(rows, found) if label is None)
        raise UserError(
            f"Not every drawn row is checked: {row_list(empty)} of the table.",
            "Check them too: leaving rows out breaks the guarantee. To stop early, check in the "
            "order of the draw and add --sequential.",
        )
    skipped = [row + 1 for row, label in zip(rows[: len(right)], found) if label is None]
    if skipped:
        raise UserError(
            f"Rows were skipped in the order of the draw: {row_list(skipped)} of the table.",
            "A sequential audit may stop early but not skip: check these rows too.",
        )
    return right


def _tell(
    console: Console,
    answer: Audit,
    labelled: LabelledTable,
    rows: list[int],
    right: list[str],
    options: AuditOptions,
) -> None:
    statement, corrections = str(answer), _corrections(labelled, rows, right)
    told: dict[str, Any] = {**answer.to_dict(), "statement": statement, "corrections": corrections}
    console.say(f"{statement[0].upper()}{statement[1:]}.")
    for item in corrections[:10]:
        was, is_ = shorten(item["label"], 30), shorten(item["right_label"], 30)
        console.say(f"  row {item['row']:,}: '{was}', right is '{is_}'")
    if len(corrections) > 10:
        console.say(f"  and {len(corrections) - 10:,} more")
    told["goal"] = None
    if options.goal is not None:
        told["goal"] = {
            "max_error": options.goal,
            "reached": answer.reaches(options.goal),
            "reached_after_correction": answer.reaches_after_correction(options.goal),
            "verdict": answer.verdict(options.goal),
        }
        console.say(told["goal"]["verdict"])
    notes = [*labelled.notes, *_unknown(labelled, right)]
    for note in notes:
        console.say(f"! {note}")
    if options.out is not None:
        console.say(f"→ {options.out}")
        told["files"] = {"out": str(options.out)}
    console.result({**_told(labelled, told), "notes": notes})


def _corrections(
    labelled: LabelledTable, rows: list[int], right: list[str]
) -> list[dict[str, Any]]:
    return [
        {"row": row + 1, "label": labelled.labels[row], "right_label": label}
        for row, label in zip(rows, right)
        if labelled.labels[row] != label
    ]


def _unknown(labelled: LabelledTable, right: list[str]) -> list[str]:
    unknown = sorted(set(right) - set(labelled.labels))
    if not unknown:
        return []
    return [
        f"No row of the table has the label {listing(unknown)}: if that is no slip of the pen, "
        f"label some rows of it and fit again."
    ]
