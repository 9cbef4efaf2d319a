"""`wirelessops support …` on the command line: its options, handed to what they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

support_app = typer.Typer(
    no_args_is_help=True,
    help="Reference maps of the support gate: APPLY only where the network has been often enough, before and lately.",
)

Recording = Annotated[
    list[Path], typer.Option("--recording", metavar="FILE", help="What wirelessops record wrote, or replay reads.")
]
Form = Annotated[
    str | None, typer.Option("--format", help="scope, flexric, perf3gpp or recording; none: guessed.")
]
Region = Annotated[str | None, typer.Option(help="Of own recordings this region alone; none: all.")]
Contracts = Annotated[Path | None, typer.Option(help="A folder of contracts of your own.")]
Shipped = Annotated[bool, typer.Option(help="Whether the shipped contracts are here, too.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what --out names.")]
Terms = Annotated[Path | None, typer.Option(help="Its terms; none: those in the folder of MAP.")]
Map = Annotated[Path, typer.Argument(metavar="MAP", help="A reference map.")]


@support_app.command()
def build(
    terms: Annotated[Path, typer.Option(help="The terms of support, YAML or JSON.")],
    recording: Recording,
    out: Annotated[Path, typer.Option(help="The map, JSON; without --force nothing is replaced.")],
    map_id: Annotated[str | None, typer.Option(help="What it is called; none: as --out is.")] = None,
    form: Form = None,
    region: Region = None,
    contracts: Contracts = None,
    shipped_contracts: Shipped = True,
    force: Force = False,
) -> None:
    """Build a reference map from recordings, and show it."""
    from streams.commands.support import Source, build_map

    source = Source(recording, form, region, contracts, shipped_contracts)
    raise typer.Exit(build_map(terms, source, out, map_id, force=force))


@support_app.command()
def refresh(
    file: Map,
    recording: Recording,
    out: Annotated[Path, typer.Option(help="The new map; without --force nothing is replaced.")],
    terms: Terms = None,
    form: Form = None,
    region: Region = None,
    contracts: Contracts = None,
    shipped_contracts: Shipped = True,
    force: Force = False,
) -> None:
    """The next version of a map from new recordings: REFRESHED; from those it was built from: SMOKE_TEST."""
    from streams.commands.support import Source, refresh_map

    source = Source(recording, form, region, contracts, shipped_contracts)
    raise typer.Exit(refresh_map(file, source, out, terms, force=force))


@support_app.command()
def show(
    file: Map,
    terms: Terms = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """What a map admits, what it does not and by how much; when it expires; its drift limits."""
    from streams.commands.support import show_map

    raise typer.Exit(show_map(file, terms, as_json=as_json))
