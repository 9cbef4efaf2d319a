"""Proposers that fit on top of recordings: deterministic, and naive on purpose.

Each takes the last report it saw at its word, zeros, vectors and all, and plans on it without a single check, as
published xApps do. They are pure functions: what a report shows (`Sight`), and what is proposed on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from streams.replay import flexric, scope
from xapp.model import Report, Scalar

Plan = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Sight:
    """What one report shows of one thing to control. `key` names the thing over all its reports."""

    key: str
    bindings: Mapping[str, str]
    values: Mapping[str, Scalar | None]

    def value(self, name: str) -> float:
        """The number as it stands there; 0 for what is none, for so naive are these proposers."""
        value = self.values.get(name)
        return value if isinstance(value, int | float) else 0


@dataclass(frozen=True, slots=True)
class Wish:
    """What is proposed on a sight: the contract, the plan, and the key that it would change."""

    contract_id: str
    control_key: str
    plan: Plan


def _planned(value: Scalar | None, unit: str = "1") -> dict[str, Any]:
    return {"value": value, "unit": unit}


def _of_report(report: Report, key: str, bindings: Mapping[str, str]) -> Sight:
    return Sight(key, bindings, {m.name: m.value for m in report.measurements})


def see_scope(report: Report) -> Iterator[Sight]:
    """The UE of a SCOPE row."""
    imsi = str(report.measurements[0].subject).removeprefix("imsi:")
    yield _of_report(report, imsi, {"imsi": imsi, "ue": str(report.subject).removeprefix("ue:")})


def wish_scope(sight: Sight) -> Wish:
    """Slicing on: PRBs in proportion to the demand of the last row, by 4 at most. Off: a policy by the same demand."""
    requested, granted = sight.value("sum_requested_prbs"), sight.value("sum_granted_prbs")
    epoch = {scope.EPOCH: _planned(sight.values[scope.EPOCH])}
    if sight.value("slicing_enabled") == 1:
        now = sight.value("slice_prb")
        wanted = round(now * requested / max(granted, 1))
        prb = min(max(wanted, now - 4, 1), now + 4, 50)
        rate = round(sight.value("tx_brate downlink") * prb / max(now, 1), 3)
        plan = {"prb": _planned(prb, "PRB"), "expected_rate": _planned(rate, "Mbit/s"), **epoch}
        return Wish("scope-slice/1", f"imsi:{sight.bindings['imsi']}/slice-prb", plan)
    satisfaction = round(granted / max(requested, 1), 3)
    policy = 1 if satisfaction < 0.9 else 2
    plan = {"policy": _planned(policy), "satisfaction": _planned(satisfaction), **epoch}
    return Wish("scope-scheduling/1", f"imsi:{sight.bindings['imsi']}/scheduling-policy", plan)


def see_flexric(report: Report) -> Iterator[Sight]:
    """The UE of a FlexRIC row."""
    attachment = str(report.subject).removeprefix("ue:")
    node, ue, _ = attachment.split("/")
    yield _of_report(report, f"{node}/{ue}", {"node": node, "ue": ue, "attachment": attachment})


def wish_flexric(sight: Sight) -> Wish:
    """More share by 5 points where the last row's delay was above 5 ms, less by 5 otherwise."""
    used, delay_us = sight.value("RRU.PrbTotDl"), sight.value("DRB.RlcSduDelayDl")
    share = min(max(used + (5 if delay_us > 5_000 else -5), 1), 100)
    rate = round(sight.value("DRB.UEThpDl") / 1000 * share / max(used, 1), 3)
    plan = {
        "prb_share": _planned(share, "%"),
        "expected_throughput": _planned(rate, "Mbit/s"),
        flexric.EPOCH: _planned(sight.values[flexric.EPOCH]),
    }
    return Wish("flexric-share/1", f"node:{sight.bindings['node']}/ue:{sight.bindings['ue']}/prb-share", plan)


def see_perf3gpp(report: Report) -> Iterator[Sight]:
    """Each cell of a file: the objects whose innermost class is a cell (`…,NRCellDU=32`, `…,UtranCell=997`)."""
    cells: dict[str, dict[str, Scalar | None]] = {}
    for measurement in report.measurements:
        subject = measurement.subject
        if subject is not None and "Cell" in subject.rpartition(",")[2].partition("=")[0]:
            cells.setdefault(subject, {})[measurement.name] = measurement.value
    node = report.source.removeprefix("pm:")
    for cell, values in cells.items():
        yield Sight(f"{node}/{cell}", {"node": node, "cell": cell}, values)


def wish_perf3gpp(sight: Sight) -> Wish:
    """Admit a fifth more than succeeded in the last period."""
    attempts, successes = sight.value("attImmediateAssignProcs"), sight.value("succImmediateAssignProcs")
    plan = {
        "admitted": _planned(round(successes * 1.2)),
        "success_ratio": _planned(round(successes / max(attempts, 1), 4)),
    }
    return Wish("perf3gpp-admission/1", f"pm:{sight.bindings['node']}/{sight.bindings['cell']}/admission", plan)
