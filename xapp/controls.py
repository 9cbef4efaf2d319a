"""What the state of one control means, and of the controls of one key together (section 7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xapp.model import AppliedControl

Element = tuple[str, str | None]
"""(planned field, member of its mapping or None): what one value belongs to."""

Granted = tuple[int, str]
Acted = tuple[int, int, str]
"""The places of a control in the two orders, as `control_order` and `action_order` give them."""


def lease_active(control: AppliedControl, t_ms: int) -> bool:
    """Whether it holds its key at t, the end included. One that the network refused holds nothing."""
    return control.lease_until_ms is not None and t_ms <= control.lease_until_ms and control.outcome != "refused"


def pending(control: AppliedControl, t_ms: int) -> bool:
    """Whether its acknowledgement is still awaited at t."""
    return unanswered(control) and control.outcome == "granted" and t_ms <= (control.ack_until_ms or 0)


def unanswered(control: AppliedControl) -> bool:
    """Whether the network's state is unknown: an acknowledgement is due, and none has come."""
    if control.acknowledged or control.outcome == "refused":
        return False
    return control.ack_until_ms is not None or control.outcome == "unacknowledged"


def acts_at_ms(control: AppliedControl) -> int:
    """When it moved the network: as acknowledged, and until then when it was granted."""
    return control.granted_at_ms if control.applied_at_ms is None else control.applied_at_ms


Roots = Mapping[str, tuple[AppliedControl, ...]]
"""Decision id of a control that repeats → those that it repeats. What is not in it changes its key itself."""


def roots(own: Iterable[AppliedControl]) -> Roots:
    """What each control of one key repeats, if that is known and stands.

    One that names nothing known, itself or a later repetition, or what the network refused, repeats nothing: it is a
    change. So the names lead back to a change, whatever they are.
    """
    held = (*own,)
    for control in held:
        if control.merged_with is not None:
            break
    else:
        return {}
    named: dict[str, list[AppliedControl]] = {}
    for control in held:
        named.setdefault(control.proposal_id, []).append(control)
    found = {}
    for control in held:
        if control.merged_with is not None and (before := repeated(control, named.get(control.merged_with, ()))):
            found[control.decision_id] = before
    return found


def repeated(control: AppliedControl, named: Iterable[AppliedControl]) -> tuple[AppliedControl, ...]:
    """What a control repeats, of those that it `named`: of all that go by that name, or none."""
    before = tuple(
        c for c in named if c is not control and (c.merged_with is None or control_order(c) < control_order(control))
    )
    return () if any(c.outcome == "refused" for c in before) else before


def may_move(control: AppliedControl, known: Roots) -> bool:
    """Whether it changes its key, or would if an unanswered control that it repeats was not applied."""
    if control.outcome == "refused":
        return False
    repeated = known.get(control.decision_id) if known else None
    return repeated is None or any(unanswered(c) for c in repeated)


def bounds(control: AppliedControl, own: Iterable[AppliedControl], known: Roots) -> tuple[AppliedControl, ...]:
    """What a repetition of this control must agree with, so that a row of them does not drift; the change first.

    Where what was repeated first is refused or unknown, that is the earliest standing control which named it.
    """
    found: dict[str, AppliedControl] = {}
    todo = [control]
    while todo:
        one = todo.pop()
        if one.decision_id not in known and one.merged_with is not None:
            one = min((c for c in own if founds(c, known) == one.merged_with), key=control_order)
        if one.decision_id not in found:
            found[one.decision_id] = one
            todo += known.get(one.decision_id, ())
    return tuple(sorted(found.values(), key=lambda c: (c.decision_id in known, control_order(c))))


def founds(control: AppliedControl, known: Roots) -> str | None:
    """The name of what is refused or unknown, for which a standing control that named it stands in."""
    return None if control.outcome == "refused" or control.decision_id in known else control.merged_with


def covers(control: AppliedControl) -> frozenset[Element]:
    """The values that it sets."""
    found: set[Element] = set()
    for name, entry in control.values.items():
        value = entry["value"]
        found |= {(name, member) for member in value} if isinstance(value, dict) else {(name, None)}
    return frozenset(found)


def control_order(control: AppliedControl) -> Granted:
    """The canonical order of controls: as they were granted."""
    return control.granted_at_ms, control.decision_id


def action_order(control: AppliedControl) -> Acted:
    """The order in which controls moved the network."""
    return acts_at_ms(control), *control_order(control)
