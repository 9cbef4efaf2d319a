"""`wirelessops study …` on the command line: its options, handed to what they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

study_app = typer.Typer(
    no_args_is_help=True,
    help="The verifier study: is a verifier's evidence eligible, and does it not name the answer?",
)


@study_app.command()
def run(
    out: Annotated[Path, typer.Option(help="The folder: rows, verdicts, ledger, manifest.")],
    threads: Annotated[int, typer.Option(min=1, max=256, help="However many, the same bytes.")] = 1,
    protocol: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Another frozen protocol; none: the preregistered one.")
    ] = None,
) -> None:
    """The formal grid, 3,456,000 episodes, its verdicts and its claim ledger.

    Exit 2 where the protocol is not this software's, and where OUT holds anything else than this very run, which is
    then run again and compared; nothing is overwritten.
    """
    from streams.commands.study import run as run_study

    raise typer.Exit(run_study(out, threads, protocol))


@study_app.command()
def analyse(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `study run` left.")],
) -> None:
    """Verdicts and claims computed again from the saved rows, without an episode. Exit 1 where a byte differs."""
    from streams.commands.study_analyse import analyse as analyse_study

    raise typer.Exit(analyse_study(folder))


@study_app.command()
def validate(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `study run` left.")],
) -> None:
    """56 checks of the saved rows, by code that shares none with the runner: EXECUTED where all pass.

    Exit 1 where some fail: each with file and row. Exit 2 where DIR is no finished study.
    """
    from streams.commands.study_validate import validate as validate_study

    raise typer.Exit(validate_study(folder))


@study_app.command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `study run` left.")],
    out: Annotated[
        Path | None, typer.Option(help="The folder: report.html, report.md, figures as PNG and SVG; none: DIR/report.")
    ] = None,
) -> None:
    """Coverage, calibration, power, audit and ledger, beside the published figures; each claim by itself."""
    from streams.commands.study_report import report as report_study

    raise typer.Exit(report_study(folder, out))
