"""The commands themselves, apart from how their options are written."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from fewlabel._core.atomic import Outputs
from fewlabel._core.errors import UserError, shorten
from fewlabel.cli.console import Console
from fewlabel.cli.output_names import checked_names, default_output, output_format
from fewlabel.cli.shares import as_option
from fewlabel.cli.table_columns import plan_table
from fewlabel.cli.workflow import FitOptions, PredictOptions, fit_table, predict_table
from fewlabel.report import format_of, render
from fewlabel.report.words import (
    about,
    accepted_words,
    changed_words,
    count,
    error_words,
    learned_sentence,
    percent,
    recall_words,
    truth_words,
    upper_limit,
)
from fewlabel.tables.model_files import TableModel, load_model, save_model
from fewlabel.tables.reading import STANDARD, check_fits, read_table, write_table, write_to
from fewlabel.tables.streaming import in_pieces

if TYPE_CHECKING:
    import pyarrow as pa


class Fitted(Protocol):
    """What a fit leaves, whether the table was read whole or in pieces."""

    @property
    def model(self) -> TableModel:
        """To be saved."""

    @property
    def summary(self) -> dict[str, Any]:
        """Of the report."""

    @property
    def left_out(self) -> list[str]:
        """Lines about columns that were left out."""


class Wanted(NamedTuple):
    """The files that were asked for, and whether existing ones may be replaced."""

    out: Path | None
    model: Path | None
    report: Path | None
    force: bool


def fit_command(
    console: Console,
    table: Path,
    options: FitOptions,
    wanted: Wanted,
    scheduler: str | None = None,
    stream: bool | None = None,
) -> None:
    """Fit, and write what was asked for."""
    if in_pieces(table, True if scheduler is not None and stream is None else stream):
        from fewlabel.cli.piece_commands import fit_files_command

        fit_files_command(console, table, options, wanted, scheduler)
        return
    out, model, report, force = wanted
    if out is None and model is None and report is None:
        out = default_output(table, "labelled")
    kinds = checked_names(out, model, report, table)
    _check_standard_output(console, out)
    files = [p for p in (out, model, report) if p and p != STANDARD]
    with Outputs(files, force=force, inputs=[table]) as outputs:
        result = fit_table(table, options, kinds["out"][0])
        console.progress("writing")
        if out is not None:
            _write(result.table, out, outputs, kinds["out"])
        write_model_and_report(result, wanted, outputs)
    console.done()
    tell_fit(console, result, wanted._replace(out=out))


def write_model_and_report(result: Fitted, wanted: Wanted, outputs: Outputs) -> None:
    """Write what was asked for besides the labelled table."""
    if wanted.model is not None:
        save_model(result.model, outputs.path(wanted.model))
    if wanted.report is not None:
        text = render(result.summary, format_of(wanted.report))
        outputs.path(wanted.report).write_text(text, encoding="utf-8")


def _check_standard_output(console: Console, out: Path | None) -> None:
    """Keep standard output for the table alone, where it is written there."""
    if out != STANDARD:
        return
    if console.as_json:
        raise UserError("--json and --out - both write to standard output.", "Name a file.")
    console.table_on_stdout = True


def _write(table: Any, out: Path, outputs: Outputs, kind: tuple[str, str]) -> None:
    if out == STANDARD:
        write_to(table, sys.stdout.buffer, kind[0])
        sys.stdout.buffer.flush()
    else:
        write_table(table, outputs.path(out), *kind)


def tell_fit(console: Console, result: Fitted, wanted: Wanted) -> None:
    """Say what a fit learned, and which files were written."""
    summary, left_out = result.summary, result.left_out
    written = {"out": wanted.out, "model": wanted.model, "report": wanted.report}
    files = {key: str(path) for key, path in written.items() if path not in (None, STANDARD)}
    for sentence in fit_lines(summary, files.get("out")):
        console.say(sentence)
    for item in left_out + summary["warnings"] + summary["notes"]:
        console.say(f"! {item}")
    if summary["settings"]["budget_used"]:
        console.say(
            f"! Each round trained on a sample of {summary['settings']['max_train']:,} "
            f"pseudo-labelled rows (--max-train)."
        )
    for path in files.values():
        console.say(f"→ {path}")
    keys = ("headline", "data", "settings", "voters", "promise", "truth", "broken", "rounds")
    told = {key: summary[key] for key in (*keys, "warnings", "notes")}
    console.result({**told, "files": files})


def fit_lines(summary: dict[str, Any], out: str | None) -> list[str]:
    """What a fit says in the end: how wrong the labels are, which to take, how to prove it.

    Parameters
    ----------
    summary : dict
    out : str, optional
        The table that was written, to be audited.
    """
    if summary["promise"] is None:
        return list(summary["headline"])
    accepted, data = summary["promise"]["accepted"], summary["data"]
    asked = f"--accept-error {as_option(accepted['max_error'])}"
    lines = [
        learned_sentence(summary),
        error_words(summary),
        accepted_words(accepted, asked, upper_limit(summary)),
    ]
    recall = recall_words(summary)
    if recall:
        lines.append(recall)
    added = changed_words(summary)
    if added:
        lines.insert(1, added)
    checks = accepted["checks"] or accepted["checks_if_none_wrong"]
    if out is not None and checks:
        names = f"{shlex.quote(out)} --target {shlex.quote(data['target'])}"
        lines.append(f"to prove it: fewlabel audit {names} --draw {checks}")
    if summary["truth"]:
        lines.append(truth_words(summary))
    return lines + [f"! {text}" for text in summary["broken"]]


def columns_command(console: Console, table: Path, options: FitOptions) -> None:
    """Show what the columns of a table are taken for, why, and how they are encoded."""
    plan, notes, n_features = plan_table(table, options)
    console.done()
    for column in plan:
        why = f" ({column.why})" if column.why else ""
        console.say(f"{shorten(column.name)}: {column.kind}{why}")
        console.say(f"    {column.treatment}")
    for note in notes:
        console.say(f"! {note}")
    console.say(f"{count(n_features, 'feature')} from {count(len(plan), 'column')}.")
    console.result(
        {"columns": [c.to_dict() for c in plan], "notes": notes, "n_features": n_features}
    )


def predict_command(
    console: Console,
    model: Path,
    table: Path,
    options: PredictOptions,
    *,
    out: Path | None,
    force: bool,
    stream: bool | None = None,
) -> None:
    """Predict, and write the table with labels."""
    if in_pieces(table, stream):
        from fewlabel.cli.piece_commands import predict_files_command

        predict_files_command(console, model, table, options, out=out, force=force)
        return
    out = out or default_output(table, "predicted")
    kind = output_format(out, table)
    _check_standard_output(console, out)
    files = [out] if out != STANDARD else []
    with Outputs(files, force=force, inputs=[table, model]) as outputs:
        console.progress("reading")
        loaded: TableModel = console.noting(lambda: load_model(model))
        rows = read_table(table, encoding=options.encoding)
        check_fits(rows, kind[0])
        labelled, notes = predict_table(loaded, rows, options)
        _write(labelled, out, outputs, kind)
    console.done()
    most = loaded.promise.max_error if options.max_error is None else options.max_error
    tell_predicted(console, predicted_counts(labelled, loaded.target, most), notes, out)


def tell_predicted(console: Console, told: dict[str, Any], notes: list[str], out: Path) -> None:
    """Say how many rows a model labelled, and about how many of the labels are wrong."""
    console.say(f"{count(told['n_rows'], 'row')} labelled.")
    console.say(
        f"about {about(told['expected_error'])} of the labels are wrong, if the rows are like "
        f"those of the fit (estimate)"
    )
    accepted = {"n": told["n_accepted"], "expected_error": told["accepted_error"]}
    asked = f"--accept-error {as_option(told['max_error'])}"
    unlike = _unlike(told)
    if unlike:
        console.say(
            f"{count(accepted['n'], 'row')} accepted by the threshold of the fit (about "
            f"{percent(accepted['expected_error'])} of these labels are wrong; {asked})"
        )
    else:
        console.say(accepted_words(accepted, asked))
    notes = [*unlike, *notes]
    for note in notes:
        console.say(f"! {note}")
    if out != STANDARD:
        console.say(f"→ {out}")
    console.result({**told, "notes": notes, "files": {"out": str(out)}})


# The confidence of fewer rows may be low by chance.
_FEW_ACCEPTED = 20


def _unlike(told: dict[str, Any]) -> list[str]:
    """What to say if more of the accepted labels are expected to be wrong than was allowed."""
    if told["accepted_error"] is None or told["accepted_error"] < told["max_error"] + 5e-4:
        return []
    more = "More of the accepted labels are expected to be wrong than you allow"
    if told["n_accepted"] < _FEW_ACCEPTED:
        return [f"{more}, as can happen with so few rows: check them by hand."]
    return [
        f"{more}: these rows are unlike those of the fit, and the estimate does not hold for them. "
        f"Label some of them, and fit again."
    ]


def predicted_counts(labelled: pa.Table, target: str, max_error: float) -> dict[str, Any]:
    """How many labels a table got, how many of them are accepted, and the mean doubts."""
    confidence = labelled.column(f"{target}_confidence").to_numpy()
    accepted = labelled.column(f"{target}_accepted").to_numpy()
    n_accepted = int(accepted.sum())
    return {
        "n_rows": labelled.num_rows,
        "n_accepted": n_accepted,
        "max_error": max_error,
        "expected_error": float(1 - confidence.mean()) if len(confidence) else None,
        "accepted_error": float(1 - confidence[accepted].mean()) if n_accepted else None,
    }


def report_command(
    console: Console, source: Path, *, kind: str | None, out: Path | None, force: bool
) -> None:
    """Render the summary of a model file or of a report in JSON."""
    kind = kind or (format_of(out) if out is not None else "md")
    summary = _stored_summary(source)
    try:
        text = render(summary, kind)
    except Exception as error:  # whatever is not where a report has it
        if isinstance(error, ImportError):
            raise
        raise _no_report(source, error) from error
    if out is None:
        console.say(text.rstrip("\n"))
        return
    with Outputs([out], force=force, inputs=[source]) as outputs:
        outputs.path(out).write_text(text, encoding="utf-8")


def _stored_summary(source: Path) -> dict[str, Any]:
    if source.suffix != ".json":
        stored = load_model(source).summary
        if not stored:
            raise UserError(
                f"'{shorten(source)}' keeps no report.", "Save it in Python: clf.report().save(…)."
            )
        return stored
    try:
        summary = json.loads(source.read_text(encoding="utf-8"))
        if not {"headline", "classes", "promise", "label_next"} <= set(summary):
            raise ValueError("it lacks parts of a summary")
    except FileNotFoundError:
        raise UserError(f"There is no file '{shorten(source)}'.", "Check the name.") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise _no_report(source, error) from error
    return dict(summary)


def _no_report(source: Path, error: Exception) -> UserError:
    return UserError(
        f"'{shorten(source)}' is not a report in JSON ({shorten(error, 80)}).",
        "Use what `fewlabel fit --report FILE.json` wrote, or a model file.",
    )


def demo_command(
    console: Console, *, labels: int, seed: int, jobs: int, report: Path | None, force: bool
) -> None:
    """Run the demonstration."""
    from fewlabel.cli.demo import run_demo

    kind = format_of(report) if report is not None else ""
    with Outputs([report] if report else [], force=force) as outputs:
        console.say(
            f"1,797 images of handwritten digits, {labels * 10} of them labelled ({labels} of each "
            f"digit). Several families of classifiers learn from those, vote, and label the rest "
            f"step by step."
        )
        console.progress("training the families")
        shown = run_demo(labels, seed, jobs, console.on_round)
        console.done()
        console.table(["family", "weight", "held-out accuracy (estimate)"], shown.voters())
        for record in shown.clf.voters_:
            if record.left_out:
                console.say(f"! {record.title} is left out: {record.left_out}.")
        summary = shown.report().summary
        console.table(
            ["round", "rows left", "pseudo-labelled", "about wrong", "wrong", "vote needed"],
            shown.rounds(summary),
        )
        for line in shown.lines(summary):
            console.say(line)
        if report is not None:
            outputs.path(report).write_text(render(summary, kind), encoding="utf-8")
            console.say(f"→ {report}")
