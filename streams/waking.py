"""What a proposal that waits is woken by, and what a message touches: keys that both sides make the same way. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final

from streams.telemetry import SourceStatus
from xapp.contract import Contract
from xapp.evidence.series import ReportColumns
from xapp.governor import KILL_SWITCH
from xapp.model import Decision

LOOK_AGAIN_MS: Final = 1_000
"""A proposal that waits is decided again after this at the latest: time alone may change what is known of a source."""
_BY_CONTROLS: Final = frozenset({"lease_conflict", "budget", "causally_stale"})


def touched_by(region: str, message: ReportColumns | SourceStatus) -> list[Hashable]:
    """The keys that one telemetry message touches."""
    if isinstance(message, SourceStatus):
        return [(region, "status", message.source), (region, "heard", message.source)]
    shape = message.shape
    named = {(region, key.subject, name) for key, name in zip(shape.keys, shape.names, strict=True)}
    return [(region, "heard", shape.source), *named]


def touched_by_outcome(region: str) -> list[Hashable]:
    """The keys that an outcome of a control touches."""
    return [(region, "controls")]


def touched_by_answer(region: str, proposal_id: str) -> list[Hashable]:
    """The keys that an operator's answer touches."""
    return [(region, "answer", proposal_id)]


def touched_by_switch(region: str | None) -> list[Hashable]:
    """The keys that a switch touches: of a region, or, of None, of all regions."""
    return [("switch", region)]


def wakes(region: str, decision: Decision, contract: Contract) -> frozenset[Hashable]:
    """What could change a decision that is not final: evidence of what blocks it, its sources, controls, an answer,
    an operator's switch.
    """
    keys: set[Hashable] = {(region, "answer", decision.proposal_id)}
    blocking = [violation for violation in decision.violations if violation.blocking]
    if any(violation.code in _BY_CONTROLS for violation in blocking):
        keys.add((region, "controls"))
    if any(violation.code == KILL_SWITCH for violation in blocking):
        keys.update(touched_by_switch(None) + touched_by_switch(region))
    resolution = contract.resolve(decision.bindings)
    fields = set(_observed(contract, decision))
    for member in resolution.members:
        if member.field.name in fields:
            keys.update((region, member.subject, name) for name in member.names)
            keys.update((region, "status", source) for source in member.sources)
    if decision.retry is not None:
        keys.add((region, "heard", decision.retry.source))
    return frozenset(keys)


def _observed(contract: Contract, decision: Decision) -> Iterable[str]:
    """Observed fields behind what blocks."""
    for violation in decision.violations:
        if not violation.blocking:
            continue
        if violation.constraint is not None:
            yield from contract.inputs["constraint:" + violation.constraint]
        elif violation.field is not None:
            yield from contract.inputs.get(violation.field, ())
