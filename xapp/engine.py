"""`assure`: one episode in, one decision out. The only place where contract, integrity, repair and governor meet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from xapp.authorization import Account, authorise, findings_malformed, refuse_malformed
from xapp.contract import Constraint, Contract, Member, Resolution
from xapp.coordination import coordinate, moved_at_ms, preconditions
from xapp.episode import no_contract
from xapp.evidence.ledger import build_ledger
from xapp.expression import NoValue
from xapp.governor import (
    SWITCHED,
    UNSUPPORTED,
    Considered,
    Findings,
    govern,
    independent_risks,
    retry_terms,
    switched,
    unsupported,
)
from xapp.governor import considered as rows_considered
from xapp.integrity.fault import Filing
from xapp.integrity.monitor import MemberState, Monitor
from xapp.integrity.operator import denial
from xapp.model import Decision, Episode, Malformed, Proposal, Repair, Violation
from xapp.repair import Rebuilt, compute, rebuild
from xapp.support.gate import judge
from xapp.sustain import Sustained, judge_window


def assure(episode: Episode) -> Decision:
    """Decide whether the observations that had arrived at t still support executing the proposal.

    Pure and deterministic to the byte: t is `episode.decided_at_ms`, and nothing else is read. A refusal is a decision,
    never an exception.
    """
    proposal = episode.proposal
    if isinstance(proposal, Malformed):
        return refuse_malformed(episode, proposal)
    account, findings = _analysed(episode, proposal)
    rule = govern(findings)
    if rule is SWITCHED and episode.switch is not None:
        account = replace(account, violations=(switched(episode.switch), *account.violations))
    if rule is UNSUPPORTED and account.support is not None:
        account = replace(account, violations=(unsupported(account.support), *account.violations))
    retry = retry_terms(findings.filings, episode.sources) if rule.action == "RETRY" else None
    return authorise(account, rule, findings, retry)


def considered(episode: Episode) -> tuple[Considered, ...]:
    """Every row of the policy in order, held against an episode: the first that applies is the one `assure` takes."""
    if isinstance(episode.proposal, Malformed):
        return rows_considered(findings_malformed(episode.proposal))
    return rows_considered(_analysed(episode, episode.proposal)[1])


def _analysed(episode: Episode, proposal: Proposal) -> tuple[Account, Findings]:
    """All that a decision is answerable for, and what of it the governor decides on."""
    contract, now = episode.contract, episode.decided_at_ms
    assert contract is not None, "a proposal is read against its contract"
    resolution = contract.resolve(proposal.bindings)
    ledger = build_ledger(episode.observations, resolution, now)
    moved = moved_at_ms(episode.controls, proposal.control_key) if episode.controls else None
    monitor = Monitor(ledger, resolution, episode.sources, now, proposal.deadline_ms, moved)
    states = {member: monitor.support(member) for member in resolution.members}
    observed, used = _supported(contract, resolution, states)
    court = _Court(contract, resolution, states, monitor, now)
    rebuilt = rebuild(contract, resolution, proposal.plan, observed, used, court.satisfied)
    judged = [court.judge(constraint, rebuilt.values) for constraint in contract.constraints]
    coordination = coordinate(episode.controls, contract, resolution, proposal, rebuilt.values, now)
    violations = [
        *(v for member in resolution.members for v in states[member].violations),
        *sorted(rebuilt.violations, key=lambda v: _position(contract, v.field)),
        *(v for _, verdicts, _ in judged for v in verdicts),
        *coordination.violations,
    ]
    if proposal.expected:
        violations += preconditions(episode.controls, contract, resolution, proposal, observed)
    if proposal.deadline_ms is not None and proposal.deadline_ms < now:
        late = f"its deadline passed {now - proposal.deadline_ms} ms before the decision"
        violations.insert(0, Violation("expired", None, None, (), False, True, late))
    if ledger.answers and (denied := denial(ledger, proposal.proposal_id)) is not None:
        violations.insert(0, Violation("denied", None, None, (denied.id,), False, True, f"{denied.source} denied it"))
    filings = _filings(contract, resolution, states)
    intended = proposal.intent == "APPLY" or contract.override_intent
    account = Account(
        episode=episode,
        contract=contract,
        proposal=proposal,
        resolution=resolution,
        ledger=ledger,
        states=states,
        used=used,
        rebuilt=rebuilt,
        repairs=_repairs(contract, resolution, states, rebuilt),
        violations=tuple(violations),
        windows={c.id: s for c, _, s in judged if s is not None},
        coordination=coordination,
        moved_at_ms=moved,
        support=None if episode.support is None else judge(episode.support, contract, resolution, now),
    )
    observed_blocks = {v for member in resolution.members for v in states[member].violations}
    blocking = tuple(v for v in violations if v.blocking)
    findings = Findings(
        intended=intended,
        record_complete=account.complete,
        filings=filings,
        blocking=tuple(v for v in blocking if v not in observed_blocks),
        mixed=independent_risks(filings, ledger) if len(filings) > 1 else None,
        asked=coordination.asked,
        switch=episode.switch,
        support=account.support,
    )
    return account, findings


def refuse(episode_id: str, now_ms: int, proposal_raw: Mapping[str, Any]) -> Decision:
    """ABSTAIN, `malformed`, for a proposal that names no contract known here; it has a string `proposal_id`."""
    return assure(Episode(episode_id, now_ms, None, (), no_contract(proposal_raw), proposal_raw))


def _position(contract: Contract, name: str | None) -> int:
    order = list(contract.fields)
    return len(order) if name is None else order.index(name)


def _supported(
    contract: Contract, resolution: Resolution, states: Mapping[Member, MemberState]
) -> tuple[dict[str, Any], dict[str, tuple[str, ...]]]:
    """Values and observation ids of the critical fields of which every member is supported and not blocked."""
    values: dict[str, Any] = {}
    used: dict[str, tuple[str, ...]] = {}
    for name, f in contract.fields.items():
        if f.kind != "observed" or not f.critical:
            continue
        members = resolution.by_field[name]
        supports = {m.key: s.support for m in members if (s := states[m]).support is not None and not s.blocked}
        used[name] = ()
        if len(supports) == len(members):
            used[name] = tuple(sorted(v.observation.id for v in supports.values() if v is not None))
            given = {key: v.value for key, v in supports.items() if v is not None}
            values[name] = given if name in resolution.keys else given[None]
    return values, used


def _filings(contract: Contract, resolution: Resolution, states: Mapping[Member, MemberState]) -> dict[str, Filing]:
    """A field is filed once: over many members, under the first of their filings (section 5)."""
    found: dict[str, Filing] = {}
    for member in resolution.members:
        filing = states[member].filing
        name = member.field.name
        if filing is not None and member.field.critical and (name not in found or filing.rank < found[name].rank):
            found[name] = filing
    return found


def _repairs(
    contract: Contract, resolution: Resolution, states: Mapping[Member, MemberState], rebuilt: Rebuilt
) -> tuple[Repair, ...]:
    found: list[Repair] = []
    for member in resolution.members:
        state = states[member]
        if state.support is None or state.blocked:
            continue
        if member.field.critical and member.field.name not in rebuilt.values:
            continue  # another member of the mapping is blocked, so its root is not supported
        observation, f = state.support.observation, member.field
        if observation.name != f.name:
            found.append(Repair("rename", f.name, observation.name, f.name, (observation.id,)))
        if observation.unit is not None and observation.unit != f.unit:
            before = {"value": observation.value, "unit": observation.unit}
            after = {"value": state.support.value, "unit": f.unit}
            found.append(Repair("convert_unit", f.name, before, after, (observation.id,)))
        replaced = next((state.heads[s].observation.id for s in member.sources if s in state.heads), None)
        if state.recalled:
            found.append(Repair("recall", f.name, replaced, observation.id, (observation.id,)))
        elif observation.source != member.sources[0] and observation.origin != "operator":
            primary = state.heads.get(member.sources[0])
            before_id = None if primary is None else primary.observation.id
            found.append(Repair("substitute_source", f.name, before_id, observation.id, (observation.id,)))
    found += sorted(rebuilt.repairs, key=lambda r: _position(contract, r.field))
    return tuple(found)


class _Judged(NamedTuple):
    constraint: Constraint
    violations: tuple[Violation, ...]
    window: Sustained | None


class _Court:
    """Judges constraints on the rebuilt state, and over their windows."""

    def __init__(
        self,
        contract: Contract,
        resolution: Resolution,
        states: Mapping[Member, MemberState],
        monitor: Monitor,
        now: int,
    ) -> None:
        self._contract, self._resolution, self._states = contract, resolution, states
        self._monitor, self._now = monitor, now

    def satisfied(self, values: Mapping[str, Any]) -> int:
        """V's first part: how many constraints hold under `values`."""
        found = 0
        for constraint in self._contract.constraints:
            if all(name in values for name in constraint.expr.names):
                found += not self.judge(constraint, values).violations
        return found

    def judge(self, constraint: Constraint, values: Mapping[str, Any]) -> _Judged:
        """Its violations; none where an input has no value, for what blocks the input blocks."""
        if not all(name in values for name in constraint.expr.names):
            return _Judged(constraint, (), None)
        try:
            if not _holds(constraint, values):
                return _Judged(constraint, (_failed(constraint, "constraint", _shown(constraint, values)),), None)
            window = None if constraint.window_ms is None else self._window(constraint, values)
            if window is None:
                return _Judged(constraint, (), None)
        except NoValue as error:
            return _Judged(constraint, (_failed(constraint, "constraint", str(error)),), None)
        except Exception as error:  # an error inside a check blocks like a failure of that check
            return _Judged(constraint, (_failed(constraint, "constraint", f"error inside the check: {error!r}"),), None)
        found = []
        if window.gap is not None:
            found.append(_failed(constraint, "gap", window.gap))
        if window.dip is not None:
            found.append(_failed(constraint, "not_sustained", window.dip))
        return _Judged(constraint, tuple(found), window)

    def _window(self, constraint: Constraint, values: Mapping[str, Any]) -> Sustained | None:
        """What the window shows; None where nothing of it was measured, or an input is blocked, which blocks itself."""
        supports = {}
        for name in self._contract.inputs["constraint:" + constraint.id]:
            for member in self._resolution.by_field[name]:
                state = self._states[member]
                if state.support is None or state.blocked:
                    return None
                alone = state.recalled or state.support.observation.origin == "operator"
                supports[member] = (state.support, alone)
        if not supports:
            return None
        derived = _derived_inputs(self._contract, constraint)

        def holds_with(observed: Mapping[str, Any]) -> bool:
            then = {**values, **observed}
            for name in derived:
                then[name] = compute(self._contract.fields[name], self._resolution, then)
            return _holds(constraint, then)

        return judge_window(constraint, supports, self._monitor, self._now, holds_with)


def _derived_inputs(contract: Contract, constraint: Constraint) -> list[str]:
    """Derived fields that a constraint reads, directly or through others, inputs first."""
    needed = set(constraint.expr.names)
    for name in reversed(contract.order):
        f = contract.fields[name]
        if name in needed and f.kind == "derived" and f.expr is not None:
            needed.update(f.expr.names)
    return [n for n in contract.order if n in needed and contract.fields[n].kind == "derived"]


def _holds(constraint: Constraint, values: Mapping[str, Any]) -> bool:
    result = constraint.expr.evaluate(values)
    if type(result) is dict:
        return all(value is True for value in result.values())
    return result is True


def _failed(constraint: Constraint, code: str, detail: str) -> Violation:
    return Violation(code, None, constraint.id, (), False, True, detail)


def _shown(constraint: Constraint, values: Mapping[str, Any]) -> str:
    told = ", ".join(f"{name} = {values[name]}" for name in constraint.expr.names)
    return f"{constraint.expr.text} does not hold: {told}"
