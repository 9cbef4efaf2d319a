"""What a proposer claims, taken at its word: its record, and its bundle where nothing is done to the proposal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from simulators.optbench.agents import Bundle, RawProposal
from simulators.optbench.methods.asking import Reply
from simulators.optbench.tools import Observed


def claimed_record(proposal: RawProposal, observations: Iterable[Observed]) -> dict[str, Any]:
    """The record of a proposal that nobody checked: its claims, with value and unit as the cited observation exposes.

    Value and unit are null where `observations` holds no such observation; those cited for a blocked field are blocked.
    """
    held = {o["id"]: o for o in observations}
    fields: dict[str, Any] = {}
    for name, claim in proposal.fields.items():
        cited = held.get(claim["observation"], {})
        fields[name] = {
            "state": claim["state"],
            "observation": claim["observation"],
            "value": cited.get("value"),
            "unit": cited.get("unit"),
        }
    blocked = {c["observation"] for c in fields.values() if c["state"] == "blocked" and c["observation"] is not None}
    return {"fields": fields, "blocked": sorted(blocked), "repairs": []}


def as_proposed(
    view: Mapping[str, Any], reply: Reply, *, action: str | None = None, told: Iterable[Observed] = ()
) -> Bundle:
    """The proposer's answer, plan and claims as they stand; under `action` where one is given, else under its own.

    `told`: observations of tools, which it may cite beside the ledger.
    """
    proposal = reply.proposal
    if proposal is None:
        return reply.bundle(view, None)
    return reply.bundle(
        view,
        proposal.action if action is None else action,
        answer=proposal.answer,
        plan=proposal.plan,
        record=claimed_record(proposal, (*view["episode"]["observations"], *told)),
        proposed=proposal,
    )
