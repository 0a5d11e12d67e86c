"""Options of the commands, each with its help, its limits and what the shell completes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def complete_columns(ctx: typer.Context, incomplete: str) -> list[str]:
    """Column names of the table on the command line, for the shell to complete."""
    from fewlabel.tables.reading import column_names

    # While the line is incomplete the shell's words stand in `args`.
    tables = [ctx.params.get("table"), *ctx.args]
    names = next((column_names(Path(table)) for table in tables if table), [])
    return [name for name in names if name.startswith(incomplete)]


def _not_zero(jobs: int | None) -> int | None:
    if jobs == 0:
        raise typer.BadParameter("no work is done by 0 processors; name 1 or more, or -1 for all.")
    return jobs


# --- of several commands ---

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]
Encoding = Annotated[str, typer.Option(help="Encoding of text tables.")]
Jobs = Annotated[int, typer.Option(help="Processors to use; -1 for all.", callback=_not_zero)]
Seed = Annotated[
    int, typer.Option(help="Seed: the same one gives the same result.", min=0, max=2**32 - 1)
]
_FORMATS = "CSV, TSV, JSON, Parquet, Feather or Excel, compressed or not"
TableFile = Annotated[Path, typer.Argument(help=f"{_FORMATS}; - for standard input.")]
TableFiles = Annotated[
    Path,
    typer.Argument(
        help=f"{_FORMATS}; - for standard input; a folder, pattern or address of Parquet or text "
        f"files."
    ),
]
NamedTable = Annotated[Path, typer.Argument(help=f"{_FORMATS}.")]
ModelFile = Annotated[Path, typer.Argument(help="A model that `fewlabel fit --model` wrote.")]
OutTable = Annotated[
    Path | None, typer.Option(help="Write the table with labels here; - for standard output.")
]
Truth = Annotated[
    str | None,
    typer.Option(
        help="Column with true labels, to check by.",
        metavar="COLUMN",
        autocompletion=complete_columns,
    ),
]

# --- of one command ---

Target = Annotated[
    str,
    typer.Option(
        help="Column to fill: its empty cells are the unlabelled rows.",
        metavar="COLUMN",
        autocompletion=complete_columns,
    ),
]
ModelOut = Annotated[
    Path | None,
    typer.Option(help="Write the model here (.skops); a mixed vote takes the rows with it."),
]
ReportOut = Annotated[
    Path | None, typer.Option(help="Write the report here (.html, .json or .md).")
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        help="Column not to learn from; may be repeated.",
        metavar="COLUMN",
        autocompletion=complete_columns,
    ),
]
Unlabeled = Annotated[
    str | None,
    typer.Option(help="Text that marks an unlabelled row, besides an empty cell; '' for none."),
]
Learner = Annotated[
    Literal["mixed", "forest"] | None,
    typer.Option(
        help="What learns: several families of classifiers with learned weights, or the paper's "
        "random forest.",
        show_default="mixed",
    ),
]
Policy = Annotated[
    Literal["bound", "fixed", "curriculum"],
    typer.Option(help="How rows are chosen for pseudo-labels."),
]
MaxTrain = Annotated[
    int | None,
    typer.Option(
        help="Training budget: pseudo-labelled rows to train on in a round; 0 for all.",
        min=0,
        metavar="ROWS",
        show_default="5,000; forest: 100,000",
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(help="Fit Parquet files on Dask: local, or a scheduler's tcp://address."),
]
Stream = Annotated[
    bool | None,
    typer.Option(
        "--stream/--no-stream",
        help="Read the table in pieces, with results in a folder; or all at once.",
        show_default="by its size",
    ),
]
ModelIn = Annotated[
    Path | None, typer.Option(help="Bound this model's votes for the rows of TABLE.")
]
Proba = Annotated[
    Path | None, typer.Option(help="Table of label probabilities, a column for each class.")
]
Exact = Annotated[
    bool, typer.Option("--exact", help="The probabilities of --proba are the true ones.")
]
Text = Annotated[
    list[str] | None,
    typer.Option(
        help="Column to read as text; may be repeated.",
        metavar="COLUMN",
        autocompletion=complete_columns,
    ),
]
Category = Annotated[
    list[str] | None,
    typer.Option(
        help="Column to read as a category; may be repeated.",
        metavar="COLUMN",
        autocompletion=complete_columns,
    ),
]
Date = Annotated[
    list[str] | None,
    typer.Option(
        help="Column to read as a date, with its format if need be: born=%d/%m/%Y.",
        metavar="COLUMN",
        autocompletion=complete_columns,
    ),
]
Number = Annotated[
    list[str] | None,
    typer.Option(
        help="Column to read as a number; may be repeated.",
        metavar="COLUMN",
        autocompletion=complete_columns,
    ),
]
Classes = Annotated[
    bool, typer.Option("--classes", help="Numbers of many values in the target are classes.")
]
Fold = Annotated[
    bool | None,
    typer.Option(
        "--fold-labels/--no-fold-labels",
        help="Labels that differ in case, blanks or number format are one class, or several.",
        show_default="ask",
    ),
]
Scoring = Annotated[
    Literal["accuracy", "balanced"],
    typer.Option(help="What to be good at; balanced: every class counts alike, rare ones too."),
]
Priors = Annotated[
    str | None,
    typer.Option(
        help="Shares of the classes in the table, if you know them: a=0.95,b=0.05.",
        metavar="CLASS=SHARE,…",
    ),
]
Votes = Annotated[
    bool,
    typer.Option("--votes", help="Add a column for each class: the calibrated probability of it."),
]
AcceptError = Annotated[
    str | None,
    typer.Option(
        help="Share of wrong labels that you allow: labels are accepted for it.",
        metavar="SHARE",
        show_default="5%",
    ),
]
PerClass = Annotated[
    bool,
    typer.Option("--per-class", help="Some rows of each class were labelled, not random ones."),
]
LabelledTable = Annotated[
    Path,
    typer.Argument(help="A table, or a folder of Parquet files, that `fewlabel fit --out` wrote."),
]
AuditTarget = Annotated[
    str | None,
    typer.Option(help="Column whose labels to audit.", show_default="the one with labels"),
]
Draw = Annotated[int | None, typer.Option(help="Draw so many rows to check, at random.", min=1)]
Checked = Annotated[
    Path | None, typer.Option(help="The drawn rows with the right labels filled in.")
]
AuditOut = Annotated[
    Path | None,
    typer.Option(help="Write the drawn rows here; with --checked the corrected table."),
]
Every = Annotated[bool, typer.Option("--all", help="Audit all labels, not the accepted ones only.")]
ConfidenceLevel = Annotated[str, typer.Option("--confidence", help="Of the guarantee.")]
Goal = Annotated[str | None, typer.Option(help="Share of wrong labels that you allow, such as 5%.")]
AuditEncoding = Annotated[
    str, typer.Option("--encoding", help="Encoding of text files that are not UTF-8.")
]
Sequential = Annotated[
    bool,
    typer.Option(
        "--sequential",
        help="Check row after row and stop at will: the limit holds at every moment.",
    ),
]
DrawSeed = Annotated[
    int | None,
    typer.Option("--seed", help="Seed of the draw.", min=0, max=2**63, show_default="a new one"),
]
LabelTarget = Annotated[
    str,
    typer.Option(help="Column with the labels, empty or not.", autocompletion=complete_columns),
]
LabelGoal = Annotated[
    str, typer.Option("--goal", help="Share of wrong labels that you allow: when to stop.")
]
LabelClass = Annotated[
    list[str] | None,
    typer.Option("--class", help="Class to choose from; may be repeated. More can be added later."),
]
GivenRandom = Annotated[
    bool,
    typer.Option(
        "--given-random",
        help="The labels that the table has are of randomly drawn rows: they enter the estimate.",
    ),
]
Port = Annotated[
    int, typer.Option(help="Port of the page.", min=0, max=65535, show_default="a free one")
]
NoOpen = Annotated[bool, typer.Option("--no-open", help="Do not open the browser.")]
Host = Annotated[
    str | None,
    typer.Option(
        help="Address to serve other machines on; needs a password or a certificate.",
        show_default="this machine only",
    ),
]
PasswordFile = Annotated[
    Path | None, typer.Option(help="File with the password that the page asks for.")
]
Certificate = Annotated[Path | None, typer.Option(help="TLS certificate, in PEM.")]
CertificateKey = Annotated[Path | None, typer.Option("--key", help="Its private key.")]
Store = Annotated[
    Path | None,
    typer.Option(help="File for the answers.", show_default="beside the table, .answers.sqlite"),
]
Export = Annotated[Path | None, typer.Option(help="Write the answers here, and end.")]
Import = Annotated[
    Path | None,
    typer.Option("--import", help="Add answers from here (or a Label Studio export), and end."),
]
LabelJobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        help="Processors to learn with.",
        show_default="all but one",
        callback=_not_zero,
    ),
]
