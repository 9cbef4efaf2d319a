"""Many proposals at once (section 7): leases, budget and old values, judged against the controls of an episode.

Which control counts for what: one that the network refused never does. One whose acknowledgement is due and has not
come leaves the network in one of two states, and whatever is compared must hold in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from xapp.contract import Contract, Field, Resolution, normalise
from xapp.controls import (
    action_order,
    acts_at_ms,
    bounds,
    control_order,
    lease_active,
    may_move,
    pending,
    roots,
    unanswered,
)
from xapp.integrity.conflict import differ, slack
from xapp.model import AppliedControl, Proposal, Violation
from xapp.plan import convert, entry_value, of_type, unit_fault

Member = str | None
Elements = dict[Member, Any]
"""A value by member of its mapping; of a plain value, under None."""


@dataclass(frozen=True, slots=True)
class Coordination:
    """What other controls make of a proposal.

    `asked`: the actions that the violations ask for (HOLD, ESCALATE); `merged_with`: the proposal whose values this
    one repeats; `leases`: decision ids of the leases that were active; `changes`: how many count in the budget's
    window; `last_applied`: planned field → where its old value came from.
    """

    violations: tuple[Violation, ...] = ()
    asked: frozenset[str] = frozenset()
    merged_with: str | None = None
    lease_until_ms: int | None = None
    leases: tuple[str, ...] = ()
    changes: int | None = None
    last_applied: Mapping[str, Any] = field(default_factory=dict)


NOTHING: Final = Coordination()


def moved_at_ms(controls: Iterable[AppliedControl], control_key: str | None) -> int | None:
    """When a control last moved the network through this key: evidence from before it is causally stale.

    A repetition moves nothing, once the control that it repeats is acknowledged.
    """
    own = [c for c in controls if c.control_key == control_key]
    known = roots(own)
    return max((acts_at_ms(c) for c in own if may_move(c, known)), default=None)


def coordinate(
    controls: tuple[AppliedControl, ...],
    contract: Contract,
    resolution: Resolution,
    proposal: Proposal,
    values: Mapping[str, Any],
    t_ms: int,
) -> Coordination:
    """Judge a proposal against the controls at t. `values`: the rebuilt plan, judged only where it is complete."""
    control = contract.control
    if not controls and (control is None or (control.budget is None and control.lease_ms is None)):
        return NOTHING
    if any(f.kind == "planned" and name not in values for name, f in contract.fields.items()):
        return NOTHING  # what keeps the plan from being whole blocks
    try:
        return _Judgement(controls, contract, resolution, proposal, values, t_ms).run()
    except Exception as error:  # an error inside a check blocks like a failure of that check
        found = Violation("lease_conflict", None, None, (), False, True, f"error inside the check: {error!r}")
        return Coordination((found,), frozenset({"HOLD" if control is None else control.on_conflict}))


class _Judgement:
    """One proposal against the controls at one t."""

    def __init__(
        self,
        controls: tuple[AppliedControl, ...],
        contract: Contract,
        resolution: Resolution,
        proposal: Proposal,
        values: Mapping[str, Any],
        t_ms: int,
    ) -> None:
        self.contract, self.resolution, self.proposal, self.t_ms = contract, resolution, proposal, t_ms
        self.planned = {name: f for name, f in contract.fields.items() if f.kind == "planned"}
        self.values = {name: _elements(values[name]) for name in self.planned}
        self.key = proposal.control_key
        ordered = sorted(controls, key=control_order)
        self.own = [c for c in ordered if c.control_key == self.key]
        self.known = roots(self.own)
        self.leased = [c for c in self.own if lease_active(c, t_ms)]
        self.beside = [
            c
            for c in ordered
            if c.control_key != self.key
            and lease_active(c, t_ms)
            and (c.control_key in resolution.coupled or self.key in c.coupled)
        ]
        self.violations: list[Violation] = []
        self.asked: set[str] = set()

    def run(self) -> Coordination:
        merged_with = self._leases()
        control = self.contract.control
        budget = None if control is None else control.budget
        changes = None
        if budget is not None and budget.changes is not None and budget.per_ms is not None:
            changes = self._changes(budget.changes, budget.per_ms, merged_with is None)
        if budget is not None and merged_with is None:
            for name, limit in budget.max_step.items():
                self._step(self.planned[name], limit)
        ends = [] if control is None or control.lease_ms is None else [self.t_ms + control.lease_ms]
        if merged_with is not None:
            ends += [c.lease_until_ms for c in self.leased if c.lease_until_ms is not None]
        return Coordination(
            violations=tuple(self.violations),
            asked=frozenset(self.asked),
            merged_with=merged_with,
            lease_until_ms=max(ends, default=None),
            leases=tuple(c.decision_id for c in sorted((*self.leased, *self.beside), key=control_order)),
            changes=changes,
            last_applied=_told(self.own, self.planned.values()),
        )

    def _file(self, code: str, name: str | None, detail: str, asks: str | None) -> None:
        self.violations.append(Violation(code, name, None, (), False, True, detail))
        if asks is not None:
            self.asked.add(asks)

    def _in_time(self, until_ms: int) -> str | None:
        """HOLD where what ends at `until_ms` ends by the deadline; else waiting does not help."""
        deadline = self.proposal.deadline_ms
        return "HOLD" if deadline is None or until_ms <= deadline else None

    # Leases.

    def _leases(self) -> str | None:
        """File conflicts. Gives the proposal with which this one merges, if it repeats what is leased."""
        control = self.contract.control
        asks = "HOLD" if control is None else control.on_conflict
        if self.beside:
            self._file("lease_conflict", None, "a coupled control is held: " + _held(self.beside), asks)
        if not self.leased:
            return None
        differing = [c for c in self.leased if not self._repeats(c)]
        if differing:
            self._file("lease_conflict", None, "another value is held: " + _held(differing), asks)
            return None
        rows = [bounds(c, self.own, self.known) for c in self.leased]
        first = rows[-1][0].proposal_id
        if not all(self._repeats(c) for row in rows for c in row):
            detail = f"within the tolerance of what is held, but no more of '{first}', which that repeats: "
            self._file("lease_conflict", None, detail + _held(self.leased), asks)
            return None
        return first

    def _repeats(self, control: AppliedControl) -> bool:
        """Whether the proposal asks for what a control did: the same fields about the same things, within tolerance.

        Another contract's tolerance says nothing of what its own allows: then the values must be equal.
        """
        if control.values.keys() != self.planned.keys():
            return False
        bindings = self.proposal.bindings
        foreign = control.contract_id not in ("", self.contract.contract_id)
        for name, f in self.planned.items():
            for binding in f.bindings:
                if isinstance(bindings[binding], str) and control.bindings.get(binding) != bindings[binding]:
                    return False
            theirs, ours = _read(control.values[name], f), self.values[name]
            within = replace(f, tolerance=0.0, rel_tolerance=0.0) if foreign else f
            if theirs is None or theirs.keys() != ours.keys() or any(differ(ours[m], theirs[m], within) for m in ours):
                return False
        return True

    # Budget.

    def _changes(self, limit: int, per_ms: int, counts: bool) -> int:
        """How many changes lie within the window (its start is outside); file where one more would exceed the limit.

        Of an unanswered control and its repetitions one is the change: it counts once, at the latest of them.
        """
        latest: dict[str, int] = {}
        for control in self.own:
            if may_move(control, self.known):
                unsure = [c for c in self.known.get(control.decision_id, ()) if unanswered(c)]
                latest[(unsure or [control])[-1].decision_id] = control.granted_at_ms
        times = sorted(at for at in latest.values() if at > self.t_ms - per_ms)
        if counts and len(times) >= limit:
            detail = f"{len(times)} changes of '{self.key}' within {per_ms} ms, at most {limit}"
            if limit == 0:
                self._file("budget", None, detail, None)
            else:
                until = times[len(times) - limit] + per_ms
                self._file("budget", None, f"{detail}; the next is free at {until}", self._in_time(until))
        return len(times)

    def _step(self, f: Field, limit: float) -> None:
        """File where a value lies further than `limit` from one that the network may have."""
        standing = _standing(self.own, f)
        for member, value in self.values[f.name].items():
            place = "" if member is None else f"{member}: "
            for old in standing.of(member):
                if old.value is None:
                    self._file("budget", f.name, f"{place}what '{old.proposal_id}' applied cannot be compared", None)
                    break
                step = abs(value - old.value)
                bound = limit + slack(limit, max(abs(value), abs(old.value)))
                known = standing.known(member)
                if step <= bound if known else not differ(value, old.value, f):
                    continue
                asks = None
                if pending(old.control, self.t_ms):
                    asks = self._in_time((old.control.ack_until_ms or 0) + 1)
                detail = f"{place}a step of {step:g} {f.unit} from '{old.proposal_id}', at most {limit:g}"
                if not known:
                    detail = f"{place}the value last applied is unknown: '{old.proposal_id}' was not acknowledged"
                self._file("budget", f.name, detail, asks)
                break


# Old values.


class Old(NamedTuple):
    """One value that the network may have. `value` is None where it cannot be compared."""

    value: Any
    control: AppliedControl

    @property
    def proposal_id(self) -> str:
        return self.control.proposal_id


class Standing(NamedTuple):
    """Member → what its value may be, newest first; `settled`: the members of which one is known to be applied."""

    found: Mapping[Member, list[Old]]
    settled: set[Member]

    def of(self, member: Member) -> list[Old]:
        """Where a plain value meets a mapping, neither can be compared."""
        other = [old for m, items in self.found.items() if (m is None) != (member is None) for old in items]
        return [*self.found.get(member, ()), *(Old(None, old.control) for old in other)]

    def known(self, member: Member) -> bool:
        return member in self.settled


def _standing(own: Iterable[AppliedControl], f: Field) -> Standing:
    """What a planned field may be in the network: the value last applied, and those that nobody acknowledged.

    When such a one was applied, if it was, nobody knows; only one that was granted after it and applied displaces it.
    """
    items = []
    for control in own:
        if control.outcome != "refused" and f.name in control.values:
            entry = control.values[f.name]
            items.append((control, _read(entry, f) or dict.fromkeys(_elements(entry["value"]))))
    if len(items) > 1:
        items.sort(key=lambda item: action_order(item[0]), reverse=True)
    shown: dict[Member, tuple[int, str]] = {}
    if any(unanswered(c) for c, _ in items):
        for control, elements in items:
            if not unanswered(control):
                for member in elements:
                    shown[member] = max(control_order(control), shown.get(member, (0, "")))
    found: dict[Member, list[Old]] = {}
    settled: set[Member] = set()
    for control, elements in items:
        for member, value in elements.items():
            if unanswered(control):
                stands = member not in shown or shown[member] < control_order(control)
            else:
                stands = member not in settled
                settled.add(member)
            if stands:
                found.setdefault(member, []).append(Old(value, control))
    return Standing(found, settled)


def _elements(value: Any) -> Elements:
    return dict(value) if isinstance(value, dict) else {None: value}


def _read(entry: Mapping[str, Any], f: Field) -> Elements | None:
    """The values of a control's entry in the field's unit; None where they have none."""
    elements, unit = _elements(entry["value"]), entry.get("unit") or None
    if unit_fault(unit, f.unit)[0] is not None or not all(of_type(v, f.type) for v in elements.values()):
        return None
    if f.type != "number":
        return elements
    try:
        return {member: convert(value, unit, f.unit) for member, value in elements.items()}
    except (ArithmeticError, ValueError):
        return None


def _told(own: list[AppliedControl], planned: Iterable[Field]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for f in planned if own else ():
        standing = _standing(own, f)
        olds = {old.control.decision_id: old.control for items in standing.found.values() for old in items}
        if olds:
            found[f.name] = {"of": sorted(olds), "known": standing.settled >= standing.found.keys()}
    return found


def _held(leases: list[AppliedControl]) -> str:
    last = max(leases, key=lambda c: (c.lease_until_ms or 0, c.decision_id))
    owner = f" of {last.proposer}" if last.proposer else ""
    more = f", and {len(leases) - 1} more" if len(leases) > 1 else ""
    return f"'{last.proposal_id}'{owner} holds '{last.control_key}' until {last.lease_until_ms}{more}"


# Preconditions.


def preconditions(
    controls: tuple[AppliedControl, ...],
    contract: Contract,
    resolution: Resolution,
    proposal: Proposal,
    observed: Mapping[str, Any],
) -> list[Violation]:
    """`expected` old values that differ from what is, or of which nothing is known.

    An observed field is compared with its support (`observed`), a planned one with the value last applied to the key.
    """
    found: list[Violation] = []
    for name, entry in (proposal.expected or {}).items():
        fields = [n for n in contract.by_name.get(normalise(name), ()) if contract.fields[n].kind != "derived"]
        detail = "no observed or planned field of the contract has this name"
        if len(fields) > 1:
            detail = "may mean " + " or ".join(fields)
        elif fields:
            f = contract.fields[fields[0]]
            try:
                detail = _unexpected(controls, resolution, proposal, observed, f, name, entry)
            except Exception as error:  # an error inside a check blocks like a failure of that check
                detail = f"error inside the check: {error!r}"
            if not detail:
                continue
        place = fields[0] if fields else None
        found.append(Violation("precondition", place, None, (), False, True, f"{name}: {detail}"))
    return found


def _unexpected(
    controls: tuple[AppliedControl, ...],
    resolution: Resolution,
    proposal: Proposal,
    observed: Mapping[str, Any],
    f: Field,
    name: str,
    entry: Mapping[str, Any],
) -> str:
    said = entry_value(name, entry, f, resolution.keys.get(f.name))
    if said.value is None:
        return said.detail
    if f.kind == "observed":
        if f.name not in observed:
            return "nothing supports its present value"
        if differ(said.value, observed[f.name], f):
            return f"the proposer expects {said.value}, evidence says {observed[f.name]}"
        return ""
    standing = _standing((c for c in controls if c.control_key == proposal.control_key), f)
    for member, value in _elements(said.value).items():
        olds, place = standing.of(member), "" if member is None else f" for {member}"
        if not olds or not standing.known(member) or any(old.value is None for old in olds):
            return f"the value last applied{place} is unknown"
        for old in olds:
            if differ(value, old.value, f):
                return f"the proposer expects {value}{place}, '{old.proposal_id}' applied {old.value}"
    return ""
