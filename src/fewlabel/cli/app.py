"""The command line: thin commands over the library."""

from __future__ import annotations

import signal
import sys
import warnings
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

try:
    import typer
except ImportError as error:  # pragma: no cover - depends on the installation
    raise SystemExit(
        f"fewlabel: the command line needs the package '{error.name}': pip install 'fewlabel[cli]'"
    ) from None

from fewlabel.cli import options as opt
from fewlabel.cli.console import Console

if TYPE_CHECKING:
    from fewlabel.cli.workflow import FitOptions

app = typer.Typer(
    name="fewlabel",
    help="Label a table of which few rows are labelled, and know how wrong the labels are.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(show: bool) -> None:
    if show:
        from fewlabel import __version__

        typer.echo(f"fewlabel {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def _given(ctx: typer.Context, options: type) -> dict[str, Any]:
    """The parameters of a command that ``options`` has; old typer leaves paths as text."""
    given: dict[str, Any] = {}
    for field in fields(options):
        if field.name in ctx.params:
            value = ctx.params[field.name]
            text_of_path = isinstance(value, str) and "Path" in str(field.type)
            given[field.name] = Path(value) if text_of_path else value
    return given


def _fit_options(ctx: typer.Context, console: Console) -> FitOptions:
    """The options of ``fit`` and ``columns`` that say how a table is read and learned."""
    from fewlabel.cli.shares import class_shares, share
    from fewlabel.cli.workflow import FitOptions

    given = _given(ctx, FitOptions)
    for name in ("drop", "text", "category", "date", "number"):
        given[name] = given[name] or ()
    if given.get("accept_error") is not None:
        given["accept_error"] = share(given["accept_error"], "--accept-error")
    if given.get("priors") is not None:
        given["priors"] = class_shares(given["priors"], "--priors")
    return FitOptions(**given, progress=console.progress, on_round=console.on_round)


@app.command()
def fit(
    ctx: typer.Context,
    table: opt.TableFiles,
    target: opt.Target,
    out: opt.OutTable = None,
    model: opt.ModelOut = None,
    report: opt.ReportOut = None,
    accept_error: opt.AcceptError = None,
    per_class: opt.PerClass = False,
    scoring: opt.Scoring = "accuracy",
    priors: opt.Priors = None,
    votes: opt.Votes = False,
    text: opt.Text = None,
    category: opt.Category = None,
    date: opt.Date = None,
    number: opt.Number = None,
    drop: opt.Drop = None,
    truth: opt.Truth = None,
    unlabeled: opt.Unlabeled = None,
    classes: opt.Classes = False,
    fold_labels: opt.Fold = None,
    learner: opt.Learner = None,
    policy: opt.Policy = "bound",
    max_train: opt.MaxTrain = None,
    scheduler: opt.Scheduler = None,
    stream: opt.Stream = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = -1,
    encoding: opt.Encoding = "utf-8",
    force: opt.Force = False,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Learn a column from its filled cells, and fill the empty ones.

    TABLE may be more than fits in memory: a folder of Parquet or CSV files, a pattern such as
    'rows/*.parquet', an address such as s3://…, or a large file; --out is then a new folder.
    Without --out, --model and --report, the labelled table is written beside you under the
    table's name with "-labelled". The table itself is never changed.
    """
    console = Console(as_json=as_json, quiet=quiet)
    with console.errors_explained():
        from fewlabel.cli.commands import Wanted, fit_command

        wanted, options = Wanted(out, model, report, force), _fit_options(ctx, console)
        fit_command(console, table, options, wanted, scheduler, stream)


@app.command()
def columns(
    ctx: typer.Context,
    table: opt.TableFile,
    target: opt.Target,
    text: opt.Text = None,
    category: opt.Category = None,
    date: opt.Date = None,
    number: opt.Number = None,
    drop: opt.Drop = None,
    truth: opt.Truth = None,
    unlabeled: opt.Unlabeled = None,
    classes: opt.Classes = False,
    fold_labels: opt.Fold = None,
    encoding: opt.Encoding = "utf-8",
    as_json: opt.Json = False,
) -> None:
    """Show how the columns of a table would be read, before anything is learned."""
    console = Console(as_json=as_json)
    with console.errors_explained():
        from fewlabel.cli.commands import columns_command

        columns_command(console, table, _fit_options(ctx, console))


@app.command()
def predict(
    model: opt.ModelFile,
    table: opt.TableFiles,
    out: opt.OutTable = None,
    accept_error: Annotated[
        str | None,
        typer.Option(
            help="Share of wrong labels that you allow.",
            metavar="SHARE",
            show_default="that of the fit",
        ),
    ] = None,
    stream: opt.Stream = None,
    votes: opt.Votes = False,
    encoding: opt.Encoding = "utf-8",
    force: opt.Force = False,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Label the rows of a new table with a model, and say which labels can be taken."""
    console = Console(as_json=as_json, quiet=quiet)
    with console.errors_explained():
        from fewlabel.cli.commands import predict_command
        from fewlabel.cli.shares import share
        from fewlabel.cli.workflow import PredictOptions

        most = None if accept_error is None else share(accept_error, "--accept-error")
        options = PredictOptions(most, votes, encoding)
        predict_command(console, model, table, options, out=out, force=force, stream=stream)


@app.command()
def bounds(
    table: opt.TableFile,
    model: opt.ModelIn = None,
    truth: opt.Truth = None,
    proba: opt.Proba = None,
    exact: opt.Exact = False,
    encoding: opt.Encoding = "utf-8",
    as_json: opt.Json = False,
) -> None:
    """Bound the error of votes: a column of votes for each class, or --model and its table.

    With --truth they bound the realised error of these rows, with --proba and --exact its
    expectation: guarantees. Otherwise they are estimates, and the answer says what they assume.
    """
    console = Console(as_json=as_json)
    with console.errors_explained():
        from fewlabel.cli.bounds_command import bounds_command

        bounds_command(
            console, table, model=model, truth=truth, proba=proba, exact=exact, encoding=encoding
        )


@app.command()
def audit(
    ctx: typer.Context,
    table: opt.LabelledTable,
    target: opt.AuditTarget = None,
    draw: opt.Draw = None,
    checked: opt.Checked = None,
    out: opt.AuditOut = None,
    every: opt.Every = False,
    confidence: opt.ConfidenceLevel = "95%",
    goal: opt.Goal = None,
    sequential: opt.Sequential = False,
    seed: opt.DrawSeed = None,
    encoding: opt.AuditEncoding = "utf-8",
    force: opt.Force = False,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Guarantee how many labels are wrong at most, by checking rows drawn at random.

    First --draw rows and fill in their right labels, then name the file with --checked. --goal
    alone says how many checks it will take. The table itself is never changed.
    """
    console = Console(as_json=as_json, quiet=quiet)
    with console.errors_explained():
        from fewlabel.cli.audit import AuditOptions, audit_command
        from fewlabel.cli.shares import share

        given = _given(ctx, AuditOptions)
        given["confidence"] = share(confidence, "--confidence")
        given["goal"] = None if goal is None else share(goal, "--goal")
        audit_command(console, table, AuditOptions(**given))


@app.command()
def label(
    ctx: typer.Context,
    table: opt.NamedTable,
    target: opt.LabelTarget,
    goal: opt.LabelGoal = "5%",
    classes: opt.LabelClass = None,
    given_random: opt.GivenRandom = False,
    port: opt.Port = 0,
    no_open: opt.NoOpen = False,
    host: opt.Host = None,
    password_file: opt.PasswordFile = None,
    certificate: opt.Certificate = None,
    key: opt.CertificateKey = None,
    store: opt.Store = None,
    export: opt.Export = None,
    import_: opt.Import = None,
    drop: opt.Drop = None,
    unlabeled: opt.Unlabeled = None,
    jobs: opt.LabelJobs = None,
    encoding: opt.Encoding = "utf-8",
    force: opt.Force = False,
    quiet: opt.Quiet = False,
) -> None:
    """Label rows in the browser: those that teach most, then a check that proves the result.

    The page is served on this machine only; its address, with a token, is the first line on
    standard output. Every answer is stored beside the table before it is acknowledged. The table
    itself is never changed.
    """
    console = Console(quiet=quiet)
    with console.errors_explained():
        from fewlabel.cli.label import LabelOptions, label_command
        from fewlabel.cli.shares import share

        given = _given(ctx, LabelOptions)
        given["goal"] = share(goal, "--goal")
        given["classes"], given["drop"] = tuple(classes or ()), tuple(drop or ())
        label_command(console, table, LabelOptions(**given, open_browser=not no_open))


@app.command()
def report(
    source: Annotated[Path, typer.Argument(help="A model file, or a report in JSON.")],
    kind: Annotated[
        Literal["html", "json", "md"] | None,
        typer.Option("--format", help="Format; by default that of --out, or md."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write here instead of to the screen.")] = None,
    force: opt.Force = False,
) -> None:
    """Show the report of a fit again, in any format."""
    console = Console()
    with console.errors_explained():
        from fewlabel.cli.commands import report_command

        report_command(console, source, kind=kind, out=out, force=force)


@app.command()
def demo(
    labels: Annotated[int, typer.Option(help="Labelled rows of each digit.", min=1, max=100)] = 5,
    report: opt.ReportOut = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = -1,
    force: opt.Force = False,
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
    # A terminal that is closed ends the command, unless nohup said otherwise.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _terminated)
    if not sys.warnoptions:
        # What concerns the user is caught and told; the rest is from libraries to programmers.
        warnings.simplefilter("ignore")
    try:
        app()
    except KeyboardInterrupt:  # before a command began
        raise SystemExit(130) from None
