"""Whether a control had its effect (section 7), judged on what was measured after the network acknowledged it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from xapp.contract import EFFECT, BindingError, Contract, Member, Resolution
from xapp.evidence.ledger import build_ledger
from xapp.expression import NoValue
from xapp.integrity.monitor import Monitor
from xapp.model import AppliedControl, Observation, SourceState
from xapp.plan import entry_value
from xapp.repair import compute


def judge_effect(
    contract: Contract,
    control: AppliedControl,
    observations: Iterable[Observation],
    sources: Mapping[str, SourceState],
    t_ms: int,
) -> bool | None:
    """Whether the contract's `control.effect` holds at t (at most the end of its watch). None while that is unknown.

    Observed inputs are supported as in any decision, and measured after `applied_at_ms`: all of those that the contract
    marks as `moved_by_control`, or simply all where it marks none. Planned fields are as released, derived ones follow.
    """
    if contract.effect is None or control.applied_at_ms is None or control.outcome == "refused":
        return None
    until = control.effect_until_ms
    now = t_ms if until is None else min(t_ms, until)
    try:
        return _judge(contract, control, observations, sources, now)
    except (BindingError, NoValue):
        return None


def _judge(
    contract: Contract,
    control: AppliedControl,
    observations: Iterable[Observation],
    sources: Mapping[str, SourceState],
    now: int,
) -> bool | None:
    effect, applied_at = contract.effect, control.applied_at_ms
    assert effect is not None
    assert applied_at is not None
    resolution = contract.resolve(control.bindings)
    monitor = Monitor(build_ledger(observations, resolution, now), resolution, sources, now, None, applied_at)
    inputs = contract.inputs[EFFECT]
    moved = [name for name in inputs if contract.fields[name].moved_by_control]
    values = _released(contract, resolution, control)
    for name in inputs:
        found: dict[str | None, Any] = {}
        for member in resolution.by_field[name]:
            since = applied_at if not moved or name in moved else None
            value = _supported(monitor, member, since)
            if value is None:
                return None
            found[member.key] = value
        values[name] = found if name in resolution.keys else found[None]
    needed = set(effect.names)
    for name in reversed(contract.order):
        expr = contract.fields[name].expr
        if name in needed and contract.fields[name].kind == "derived" and expr is not None:
            needed.update(expr.names)
    for name in contract.order:
        if name in needed and contract.fields[name].kind == "derived":
            values[name] = compute(contract.fields[name], resolution, values)
    if any(name not in values for name in needed):
        return None
    result = effect.evaluate(values)
    return all(v is True for v in result.values()) if type(result) is dict else result is True


def _supported(monitor: Monitor, member: Member, since_ms: int | None) -> Any:
    """The supported value of a member, measured after `since_ms`; None where there is none."""
    state = monitor.support(member)
    if state.support is None or state.blocked:
        return None
    return None if since_ms is not None and state.support.effective_ms <= since_ms else state.support.value


def _released(contract: Contract, resolution: Resolution, control: AppliedControl) -> dict[str, Any]:
    """Planned fields as they were released, where they still read as such."""
    found: dict[str, Any] = {}
    for name, entry in control.values.items():
        f = contract.fields.get(name)
        if f is not None and f.kind == "planned":
            said = entry_value(name, entry, f, resolution.keys.get(name))
            if said.value is not None:
                found[name] = said.value
    return found
