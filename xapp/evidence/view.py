"""The normalised view (section 2): per field the supported value, its unit, source, age, limit and violations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xapp.contract import Contract, Member, Resolution
from xapp.coordination import moved_at_ms
from xapp.evidence.ledger import build_ledger
from xapp.integrity.monitor import MemberState, Monitor
from xapp.model import Episode, Malformed


def view_of(
    contract: Contract, resolution: Resolution, states: Mapping[Member, MemberState], now_ms: int
) -> dict[str, Any]:
    """Field → its entry; a field over a list binding has one entry per member under `members`."""
    found: dict[str, Any] = {}
    for name, f in contract.fields.items():
        if f.kind != "observed":
            continue
        members = resolution.by_field[name]
        if name in resolution.keys:
            found[name] = {"members": {m.key: _entry(states[m], now_ms) for m in members}}
        else:
            found[name] = _entry(states[members[0]], now_ms)
    return found


def _entry(state: MemberState, now_ms: int) -> dict[str, Any]:
    f, support = state.member.field, state.support
    admitted = support is not None and not state.blocked
    return {
        "value": support.value if support and admitted else None,
        "unit": f.unit,
        "source": support.observation.source if support and admitted else None,
        "observation": support.observation.id if support and admitted else None,
        "age_ms": now_ms - support.effective_ms if support and admitted else None,
        "limit_ms": f.freshness_ms,
        "subject": state.member.subject,
        "critical": f.critical,
        "violations": [v.code for v in state.violations],
    }


def normalised_view(episode: Episode) -> dict[str, Any]:
    """What would be admitted at t, for an agent to reason on (`wirelessops view`). Raises BindingError.

    Only the bindings of the proposal are read; the rest of it may be missing or malformed.
    """
    proposal = episode.proposal
    if isinstance(proposal, Malformed):
        raw = episode.proposal_raw.get("bindings")
        bindings = {
            k: tuple(v) if isinstance(v, list) else v
            for k, v in (raw if isinstance(raw, dict) else {}).items()
            if isinstance(v, str) or (isinstance(v, list) and v and all(isinstance(i, str) for i in v))
        }
        deadline, key = None, episode.proposal_raw.get("control_key")
    else:
        bindings, deadline, key = dict(proposal.bindings), proposal.deadline_ms, proposal.control_key
    contract = episode.contract
    assert contract is not None, "an episode to view names its contract"
    resolution = contract.resolve(bindings)
    now = episode.decided_at_ms
    ledger = build_ledger(episode.observations, resolution, now)
    moved = moved_at_ms(episode.controls, key or resolution.control_key)
    monitor = Monitor(ledger, resolution, episode.sources, now, deadline, moved)
    states = {member: monitor.support(member) for member in resolution.members}
    return {
        "format": "wirelessops.normalised-view/1",
        "contract_id": contract.contract_id,
        "decided_at_ms": now,
        "bindings": bindings,
        "fields": view_of(contract, resolution, states, now),
    }
