"""What a run showed: a table for people, and `chaos.json`."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from typing import Any, Final

from streams.chaos.campaign import Campaign, Result
from streams.chaos.recovery import quantile
from streams.chaos.verdict import Findings, worst

MEASURED: Final = ("worker killed", "worker paused", "broker killed")
"""Faults whose recovery counts; the others take as long as they are made to."""
_FIRST: Final = ("proposals", "final_decisions", "lost", "duplicates_released", "late_apply", "stale_apply")


def figures(campaign: Campaign, results: Sequence[Result]) -> dict[str, Any]:
    """The document of `chaos.json`: figures of the whole run first, then each phase."""
    total = Findings(())
    for result in results:
        total.add(result.findings)
    recoveries = [pair for result in results for pair in result.recoveries]
    counted = [ms for kind, ms in recoveries if kind in MEASURED]
    backlogs = [pair for result in results for pair in result.backlogs]
    backlog_ms = sum(ms for _, ms in backlogs)
    by_kind = {kind: [ms for k, ms in recoveries if k == kind] for kind in dict.fromkeys(k for k, _ in recoveries)}
    return {
        "verdict": worst(result.findings.verdict() for result in results),
        **{name: total.counts.get(name, 0) for name in _FIRST},
        "recovery_p50_ms": quantile(counted, 0.5),
        "recovery_max_ms": max(counted, default=None),
        "catch_up_per_s": round(1000 * sum(n for n, _ in backlogs) / backlog_ms) if backlog_ms else None,
        "laws": {law: total.counts.get(law, 0) for law in total.laws},
        "counts": {name: n for name, n in sorted(total.counts.items()) if name not in total.laws},
        "recovery_by_fault": {
            kind: {"faults": len(found), "p50_ms": quantile(found, 0.5), "max_ms": max(found)}
            for kind, found in by_kind.items()
        },
        "phases": [_phase(result) for result in results],
        "asked": {
            "kills": campaign.kills,
            "broker_kills": campaign.broker_kills,
            "fuzz": campaign.fuzz,
            "seed": campaign.seed,
            "workers": campaign.workers,
            "brokers": campaign.brokers,
            "partitions": campaign.partitions,
            "proposals_per_s": campaign.rate,
        },
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
    }


def _phase(result: Result) -> dict[str, Any]:
    return {
        "phase": result.name,
        "verdict": result.findings.verdict(),
        "seconds": result.seconds,
        "counts": dict(sorted(result.findings.counts.items())),
        "broken": result.findings.examples,
        "not_judged": result.findings.unjudged,
        "workers_ended_by_themselves": result.workers_ended,
    }


def show(document: dict[str, Any]) -> None:
    """Print the table."""
    from rich.console import Console
    from rich.table import Table

    phases = document["phases"]
    table = Table(title=f"chaos: {document['verdict']}")
    table.add_column("")
    for phase in phases:
        table.add_column(f"{phase['phase']}\n{phase['seconds']:.0f} s", justify="right")
    table.add_column("all", justify="right")
    first = ("proposals", "final_decisions")
    for name in (*first, *document["laws"]):
        counts = [phase["counts"].get(name, 0) for phase in phases]
        style = "bold red" if name in document["laws"] and sum(counts) else None
        table.add_row(name, *(f"{n:,}" for n in counts), f"{sum(counts):,}", style=style)
    table.add_row("verdict", *(phase["verdict"] for phase in phases), document["verdict"])
    console = Console()
    console.print(table)
    for name in ("recovery_p50_ms", "recovery_max_ms", "catch_up_per_s"):
        console.print(f"{name}: {document[name]}")
    for kind, found in document["recovery_by_fault"].items():
        console.print(f"  {kind}: {found['faults']} times, p50 {found['p50_ms']} ms, max {found['max_ms']} ms")
    for phase in phases:
        for law, examples in phase["broken"].items():
            console.print(f"{phase['phase']}: {law}: {examples}", markup=False)
        for why in phase["not_judged"]:
            console.print(f"{phase['phase']}: not judged: {why}", markup=False)
