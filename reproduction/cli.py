"""The command ``python -m reproduction``: run what is missing, then write tables and figures."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

try:
    import typer
except ImportError as error:
    raise ImportError(
        "The command line needs typer and rich: pip install 'fewlabel[cli]'."
    ) from error

if TYPE_CHECKING:
    from reproduction.plan import Scope
    from reproduction.records import Record
    from reproduction.spec import Trial

Items = Annotated[
    list[str] | None,
    typer.Argument(help="What to reproduce: table1 ... table4, figure1 ... figure6."),
]
All = Annotated[bool, typer.Option("--all", help="Every table and figure.")]
Quick = Annotated[
    bool, typer.Option("--quick", help="Tiny sizes on bundled data, to see that everything runs.")
]
Data = Annotated[
    Path | None,
    typer.Option("--data", envvar="FEWLABEL_DATA", help="Folder with the data sets (NAME.npz)."),
]
Fetch = Annotated[
    bool, typer.Option("--fetch", help="Download data sets that are missing from OpenML.")
]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="Folder for records, tables and figures. [default: results]"),
]
Trials = Annotated[int | None, typer.Option("--trials", min=1, help="Splits; the paper has 20.")]
Methods = Annotated[str | None, typer.Option("--methods", help="For example RF,MSLA.")]
Sets = Annotated[str | None, typer.Option("--sets", help="For example vowel,dna.")]
Jobs = Annotated[int, typer.Option("--jobs", min=1, help="Trials at a time.")]
TimeLimit = Annotated[
    float, typer.Option("--time-limit", min=0.0, help="Seconds for each trial; more is NA.")
]
MemoryLimit = Annotated[
    float | None, typer.Option("--memory-limit", min=1.0, help="MiB for each trial (Linux).")
]
Full = Annotated[
    bool,
    typer.Option(
        "--full",
        help="The paper's setting in every cell, also where the plan has a smaller one (fewer "
        "trees, one point of a grid).",
    ),
]
Stratify = Annotated[
    bool, typer.Option("--stratify", help="Stratified splits instead of the paper's plain ones.")
]
FirstSeed = Annotated[
    int,
    typer.Option("--first-seed", min=0, help="Seed of the first split; the paper's is 0."),
]
TestRows = Annotated[
    int,
    typer.Option("--test-rows", min=0, help="Unlabelled rows set aside, to be scored apart."),
]
NoRun = Annotated[bool, typer.Option("--no-run", help="Only tables and figures, from records.")]
Page = Annotated[
    Path | None,
    typer.Option(
        "--page",
        help="Also write the page that discusses the results, after the trials that its reasons "
        "compare with.",
    ),
]


def reproduce(
    items: Items = None,
    everything: All = False,
    quick: Quick = False,
    data: Data = None,
    fetch: Fetch = False,
    out: Out = None,
    trials: Trials = None,
    methods: Methods = None,
    sets: Sets = None,
    full: Full = False,
    stratify: Stratify = False,
    first_seed: FirstSeed = 0,
    test_rows: TestRows = 0,
    jobs: Jobs = 1,
    time_limit: TimeLimit = 4 * 3600.0,
    memory_limit: MemoryLimit = None,
    no_run: NoRun = False,
    page: Page = None,
) -> None:
    """Reproduce tables and figures of the paper.

    Runs the trials that have no record in OUT/*.jsonl yet, each in a process of its own, and
    writes tables (Markdown, LaTeX) and figures (SVG). Stop it at any moment and start it
    again: it goes on where it was.
    """
    from fewlabel.cli.console import Console

    wanted = _wanted(items, everything)
    scope = _scope(quick, sets, methods, trials, full)
    scope = replace(scope, stratify=stratify, first_seed=first_seed, n_test=test_rows)
    # Tiny runs must not end up among results that can be compared with the paper's.
    out = out or Path("results-quick" if quick else "results")
    with Console().errors_explained():
        _check_paths(out, page, data)
        made = []
        if not no_run:
            limits = {"seconds": time_limit, "memory_mib": memory_limit}
            planned = _planned(wanted, scope, with_page=page is not None)
            _require_data({trial.dataset for trial in planned}, data, fetch)
            made = _run(planned, out, data_dir=data, limits=limits, jobs=jobs)
        _write(wanted, scope, out, page)
        _complain(made)


def _check_paths(out: Path, page: Path | None, data: Path | None) -> None:
    """Before hours of work: what could not be read or written afterwards."""
    from fewlabel._core.errors import UserError

    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file.", "--out names a folder.")
    if page is not None and page.is_dir():
        raise UserError(f"{page} is a folder.", "--page names a file, for example page.md.")
    for folder in (*out.parents, *(page.parents if page else ())):
        if folder.exists() and not folder.is_dir():
            raise UserError(f"{folder} is a file.", "Name a folder that exists or can be made.")
    if data is not None and not data.is_dir():
        raise UserError(
            f"There is no folder {data}.", "--data (or FEWLABEL_DATA) names that of the data sets."
        )


def _require_data(names: set[str], data: Path | None, fetch: bool) -> None:
    """Stop before any trial if none of the data sets is there."""
    from fewlabel._core.errors import UserError
    from reproduction.datasets import PAPER_SETS, fetch_dataset, missing_sets

    missing = missing_sets(sorted(names), data)
    for name in missing if fetch else []:
        if name in PAPER_SETS:
            typer.echo(f"{name}: fetching from OpenML ...", err=True)
            fetch_dataset(name)
    missing = missing_sets(missing, data)
    if missing and len(missing) == len(names):
        raise UserError(
            f"None of the data sets is there: {', '.join(missing)}.",
            "Name their folder (--data DIR or FEWLABEL_DATA), or download them (--fetch). "
            "--quick needs none.",
        )
    if missing:
        typer.echo(f"Not found, their trials will fail: {', '.join(missing)}.", err=True)


def _planned(wanted: list[str], scope: Scope, *, with_page: bool) -> list[Trial]:
    from reproduction.page import evidence_trials
    from reproduction.plan import trials_of

    planned = [trial for item in wanted for trial in trials_of(item, scope)]
    return planned + (evidence_trials(scope) if with_page else [])


def _write(wanted: list[str], scope: Scope, out: Path, page: Path | None) -> None:
    from reproduction.page import write_page
    from reproduction.records import read_records
    from reproduction.render import render

    records = read_records(out)
    paths = render(wanted, scope, records, out)
    if page:
        paths += write_page(page, scope, records)
    for path in paths:
        typer.echo(path)
    _show(wanted, scope, records)


def _wanted(items: list[str] | None, everything: bool) -> list[str]:
    from reproduction.plan import ITEMS

    wanted = list(ITEMS) if everything else list(items or [])
    if not wanted or set(wanted) - set(ITEMS):
        raise typer.BadParameter(f"Name one or more of {', '.join(ITEMS)}, or use --all.")
    return wanted


def _scope(
    quick: bool, sets: str | None, methods: str | None, trials: int | None, full: bool
) -> Scope:
    from reproduction.plan import QUICK, Scope, narrowed

    whole = QUICK if quick else Scope(full=full)
    try:
        return narrowed(whole, _listed(sets), _listed(methods), trials)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _run(
    planned: list[Trial],
    out: Path,
    *,
    data_dir: Path | None,
    limits: dict[str, float | None],
    jobs: int,
) -> list[Record]:
    from fewlabel._core.errors import UserError
    from reproduction.records import FILE_NAME
    from reproduction.run import Limits, run
    from reproduction.show import progress_shown

    path = out / FILE_NAME
    try:
        with progress_shown() as report:
            return run(
                planned,
                path,
                data_dir=data_dir,
                limits=Limits(**limits),
                jobs=jobs,
                report=report,
            )
    except KeyboardInterrupt:
        typer.echo(f"Stopped; the same command goes on from {path}.", err=True)
        raise SystemExit(130) from None
    except OSError as error:
        raise UserError(
            f"The run stopped: {error}.", f"What is in {path} is kept; the same command goes on."
        ) from error


def _show(wanted: list[str], scope: Scope, records: list[Record]) -> None:
    """On a terminal, the tables that fit it."""
    if not sys.stdout.isatty():
        return
    from rich.console import Console

    from reproduction.show import show_table
    from reproduction.tables import build

    console = Console()
    for item in wanted:
        if item.startswith("table"):
            show_table(build(item, scope, records), console)


def _listed(names: str | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    listed = tuple(name.strip() for name in names.split(",") if name.strip())
    if not listed:
        raise typer.BadParameter(f"{names!r} names nothing; leave the option out for all.")
    return listed


def _complain(records: list[Record]) -> None:
    from reproduction.records import ERROR

    failed = [record for record in records if record["status"] == ERROR]
    if not failed:
        return
    typer.echo(f"{len(failed)} trial(s) failed and have no result:", err=True)
    for record in failed[:5]:
        typer.echo(f"  {record['trial']}: {record.get('error')}", err=True)
    raise SystemExit(1)


def main() -> None:
    """Entry point of ``python -m reproduction``."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(name="reproduce")(reproduce)
    app()
