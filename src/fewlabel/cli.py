"""The command line: thin commands over the library."""

from __future__ import annotations

from typing import Annotated, Any

try:
    import typer
    from rich.console import Console
    from rich.table import Table
except ImportError as error:  # pragma: no cover - depends on the installation
    raise SystemExit(
        f"fewlabel: the command line needs the package '{error.name}': pip install 'fewlabel[cli]'"
    ) from None

from fewlabel.experiments.cli import reproduce

app = typer.Typer(
    name="fewlabel",
    help="Classify a table with few labels, and know how wrong the result can be.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
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


@app.command()
def demo(
    labels: Annotated[int, typer.Option(help="Labelled rows of each digit.", min=1)] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the split and of the forest.")] = 0,
) -> None:
    """Self-learn on scikit-learn's handwritten digits with a few labels, and check the result."""
    import numpy as np
    from sklearn.datasets import load_digits

    from fewlabel import SelfLearningClassifier, bayes_risk

    console = Console()
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    given = np.concatenate([rng.choice(np.flatnonzero(y == c), labels, False) for c in range(10)])
    target = np.full(len(y), -1)
    target[given] = y[given]
    hidden = target == -1
    console.print(
        f"[bold]{len(y)} images of handwritten digits, {labels * 10} of them labelled[/bold] "
        f"({labels} of each digit). A forest learns from those and labels the rest step by step.\n"
    )
    rounds = Table("round", "rows left", "trusted", "right", "vote needed", "seconds")

    def show(record: dict[str, Any]) -> None:
        low, high = min(record["thresholds"]), max(record["thresholds"])
        seconds = sum(record[f"seconds_{part}"] for part in ("fit", "votes", "search"))
        console.print(
            f"  round {record['iteration']}: trusted {record['n_selected']} of "
            f"{record['n_unlabeled']} rows, thresholds {low:.2f} to {high:.2f}, {seconds:.1f} s"
        )

    clf = SelfLearningClassifier(random_state=seed, n_jobs=-1, callback=show).fit(X, target)
    for record in clf.history_:
        mine = clf.labeled_iter_ == record["iteration"]
        rounds.add_row(
            str(record["iteration"]),
            str(record["n_unlabeled"]),
            str(record["n_selected"]),
            f"{(clf.transduction_[mine] == y[mine]).mean():.1%}",
            f"{min(record['thresholds']):.2f}–{max(record['thresholds']):.2f}",
            f"{record['seconds_fit'] + record['seconds_votes'] + record['seconds_search']:.1f}",
        )
    console.print(rounds)
    supervised = clf.initial_estimator_.score(X[hidden], y[hidden])
    learned = float((clf.transduction_[hidden] == y[hidden]).mean())
    truth = np.eye(10)[y[hidden]]
    console.print(
        f"Accuracy on the {int(hidden.sum())} unlabelled images: [bold]{supervised:.1%}[/bold] "
        f"with the labelled ones alone, [bold]{learned:.1%}[/bold] after self-learning.\n"
        f"Error of the final vote: {bayes_risk(clf.transduction_proba_[hidden], truth):.3f}; "
        f"bound {clf.risk_bound_:.3f} (an estimate: it uses the supervised forest's votes for the "
        f"unknown label probabilities)."
    )


app.command()(reproduce)


def main() -> None:
    """Entry point of the ``fewlabel`` command."""
    app()
