"""The command line: thin commands over the library."""

from __future__ import annotations

import signal
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any, Literal

try:
    import typer
except ImportError as error:  # pragma: no cover - depends on the installation
    raise SystemExit(
        f"fewlabel: the command line needs the package '{error.name}': pip install 'fewlabel[cli]'"
    ) from None

from fewlabel.cli.console import Console

app = typer.Typer(
    name="fewlabel",
    help="Classify a table when few rows are labelled, and know how wrong the result can be.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(show: bool) -> None:
    if show:
        from fewlabel import __version__

        typer.echo(f"fewlabel {__version__}")
        raise typer.Exit


def _columns(ctx: typer.Context, incomplete: str) -> list[str]:
    """Column names of the table on the command line, for the shell to complete."""
    from fewlabel.tables.reading import column_names

    # While the line is incomplete the shell's words stand in `args`.
    tables = [ctx.params.get("table"), *ctx.args]
    names = next((column_names(Path(table)) for table in tables if table), [])
    return [name for name in names if name.startswith(incomplete)]


# Options that several commands share.
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]
Encoding = Annotated[str, typer.Option(help="Encoding of text tables.")]
Jobs = Annotated[int, typer.Option(help="Processors to use; -1 for all.")]
Seed = Annotated[int, typer.Option(help="Seed: the same one gives the same result.", min=0)]
TableFile = Annotated[
    Path,
    typer.Argument(
        help="CSV, TSV, JSON, Parquet, Feather or Excel, compressed or not; - for standard input."
    ),
]
ModelFile = Annotated[Path, typer.Argument(help="A model that `fewlabel fit --model` wrote.")]
OutTable = Annotated[
    Path | None, typer.Option(help="Write the table with labels here; - for standard output.")
]
Target = Annotated[
    str,
    typer.Option(
        help="Column to fill: its empty cells are the unlabelled rows.", autocompletion=_columns
    ),
]
Unlabeled = Annotated[
    str | None,
    typer.Option(help="Text that marks an unlabelled row, besides an empty cell; '' for none."),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(help="Column not to learn from; may be repeated.", autocompletion=_columns),
]
Text = Annotated[
    list[str] | None,
    typer.Option(help="Column to read as text; may be repeated.", autocompletion=_columns),
]
Category = Annotated[
    list[str] | None,
    typer.Option(help="Column to read as a category; may be repeated.", autocompletion=_columns),
]
Date = Annotated[
    list[str] | None,
    typer.Option(
        help="Column to read as a date, with its format if need be: born=%d/%m/%Y.",
        autocompletion=_columns,
    ),
]
Number = Annotated[
    list[str] | None,
    typer.Option(help="Column to read as a number; may be repeated.", autocompletion=_columns),
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
Truth = Annotated[
    str | None,
    typer.Option(help="Column with true labels, to check by.", autocompletion=_columns),
]


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command()
def fit(
    table: TableFile,
    target: Target,
    out: OutTable = None,
    model: Annotated[
        Path | None,
        typer.Option(help="Write the model here (.skops); a mixed vote takes the rows with it."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write the report here (.html, .json or .md).")
    ] = None,
    text: Text = None,
    category: Category = None,
    date: Date = None,
    number: Number = None,
    drop: Drop = None,
    truth: Truth = None,
    unlabeled: Unlabeled = None,
    classes: Classes = False,
    fold_labels: Fold = None,
    learner: Annotated[
        Literal["mixed", "forest"] | None,
        typer.Option(
            help="Who votes: several families of classifiers with learned weights, or the paper's "
            "random forest.",
            show_default="mixed; forest for a folder",
        ),
    ] = None,
    policy: Annotated[
        Literal["bound", "fixed", "curriculum"],
        typer.Option(help="How rows are chosen for pseudo-labels."),
    ] = "bound",
    max_train: Annotated[
        int | None,
        typer.Option(
            help="Training budget: pseudo-labelled rows to train on in a round; 0 for all.",
            min=0,
            show_default="5,000; forest: 100,000",
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help="Fit a folder on Dask: local, or a scheduler's tcp://address."),
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = -1,
    encoding: Encoding = "utf-8",
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn a column from its filled cells, and fill the empty ones.

    TABLE may be a folder of Parquet files that do not fit in memory; --out is then a new folder.
    Without --out, --model and --report, the labelled table is written beside you under the
    table's name with "-labelled". The table itself is never changed.
    """
    console = Console(as_json=as_json, quiet=quiet)
    with console.errors_explained():
        from fewlabel.cli.commands import fit_command
        from fewlabel.cli.workflow import FitOptions

        options = FitOptions(
            target=target,
            drop=drop or (),
            text=text or (),
            category=category or (),
            date=date or (),
            number=number or (),
            truth=truth,
            unlabeled=unlabeled,
            classes=classes,
            fold_labels=fold_labels,
            learner=learner,
            policy=policy,
            seed=seed,
            jobs=jobs,
            max_train=max_train,
            encoding=encoding,
            progress=console.progress,
            on_round=console.on_round,
        )
        fit_command(
            console,
            table,
            options,
            out=out,
            model=model,
            report=report,
            force=force,
            scheduler=scheduler,
        )


@app.command()
def columns(
    table: TableFile,
    target: Target,
    text: Text = None,
    category: Category = None,
    date: Date = None,
    number: Number = None,
    drop: Drop = None,
    truth: Truth = None,
    unlabeled: Unlabeled = None,
    classes: Classes = False,
    fold_labels: Fold = None,
    encoding: Encoding = "utf-8",
    as_json: Json = False,
) -> None:
    """Show how the columns of a table would be read, before anything is learned."""
    console = Console(as_json=as_json)
    with console.errors_explained():
        from fewlabel.cli.commands import columns_command
        from fewlabel.cli.workflow import FitOptions

        options = FitOptions(
            target=target,
            drop=drop or (),
            text=text or (),
            category=category or (),
            date=date or (),
            number=number or (),
            truth=truth,
            unlabeled=unlabeled,
            classes=classes,
            fold_labels=fold_labels,
            encoding=encoding,
            progress=console.progress,
        )
        columns_command(console, table, options)


@app.command()
def predict(
    model: ModelFile,
    table: TableFile,
    out: OutTable = None,
    encoding: Encoding = "utf-8",
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Label the rows of a new table with a model."""
    console = Console(as_json=as_json, quiet=quiet)
    with console.errors_explained():
        from fewlabel.cli.commands import predict_command

        predict_command(console, model, table, out=out, encoding=encoding, force=force)


@app.command()
def bounds(
    table: TableFile,
    model: Annotated[
        Path | None, typer.Option(help="Bound this model's votes for the rows of TABLE.")
    ] = None,
    truth: Truth = None,
    proba: Annotated[
        Path | None, typer.Option(help="Table of label probabilities, a column for each class.")
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="The probabilities of --proba are the true ones.")
    ] = False,
    encoding: Encoding = "utf-8",
    as_json: Json = False,
) -> None:
    """Bound the error of votes: a column of votes for each class, or --model and its table.

    With --truth the bounds are guarantees for these rows; otherwise they are estimates, and the
    answer says what they assume.
    """
    console = Console(as_json=as_json)
    with console.errors_explained():
        from fewlabel.cli.commands import bounds_command

        bounds_command(
            console, table, model=model, truth=truth, proba=proba, exact=exact, encoding=encoding
        )


@app.command()
def report(
    source: Annotated[Path, typer.Argument(help="A model file, or a report in JSON.")],
    kind: Annotated[
        Literal["html", "json", "md"] | None,
        typer.Option("--format", help="Format; by default that of --out, or md."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write here instead of to the screen.")] = None,
    force: Force = False,
) -> None:
    """Show the report of a fit again, in any format."""
    console = Console()
    with console.errors_explained():
        from fewlabel.cli.commands import report_command

        report_command(console, source, kind=kind, out=out, force=force)


@app.command()
def demo(
    labels: Annotated[int, typer.Option(help="Labelled rows of each digit.", min=1, max=100)] = 5,
    report: Annotated[
        Path | None, typer.Option(help="Write the report here (.html, .json or .md).")
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = -1,
    force: Force = False,
) -> None:
    """Self-learn on scikit-learn's handwritten digits with a few labels, and check the result."""
    console = Console()
    with console.errors_explained():
        from fewlabel.cli.commands import demo_command

        demo_command(console, labels=labels, seed=seed, jobs=jobs, report=report, force=force)


def _terminated(number: int, frame: Any) -> None:
    raise SystemExit(128 + number)  # an exception, so that temporary files are removed


def main() -> None:
    """Entry point of the ``fewlabel`` command."""
    signal.signal(signal.SIGTERM, _terminated)
    if not sys.warnoptions:
        # What concerns the user is caught and told; the rest is from libraries to programmers.
        warnings.simplefilter("ignore")
    try:
        app()
    except KeyboardInterrupt:  # before a command began
        raise SystemExit(130) from None
