"""The decision and its replayable record (section 6): authority, digest, JSON form."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import orjson

from xapp.address import digest
from xapp.contract import Contract, Member, Resolution
from xapp.coordination import NOTHING, Coordination
from xapp.episode import episode_json
from xapp.evidence.ledger import Ledger
from xapp.evidence.view import view_of
from xapp.explanation import explain
from xapp.governor import UNANSWERABLE, Findings, Rule
from xapp.integrity.monitor import MemberState
from xapp.model import AppliedControl, Decision, Episode, Malformed, Proposal, Repair, Retry, Violation
from xapp.repair import Rebuilt, closure
from xapp.support.carried import SupportVerdict
from xapp.sustain import Sustained

FORMAT: Final = "wirelessops.decision/1"
RECORD_KEYS: Final = (
    "episode", "contract_digest", "state_version", "normalised", "candidate", "sources_used", "sources_blocked",
    "integrity", "support_graph", "repair_scope", "windows", "repairs", "unresolved_risks", "provenance_coverage",
    "unsafe_overwrites", "claimed_evidence", "control",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Account:
    """Everything that a decision is answerable for, before the action is known."""

    episode: Episode
    contract: Contract
    proposal: Proposal
    resolution: Resolution
    ledger: Ledger
    states: Mapping[Member, MemberState]
    used: Mapping[str, tuple[str, ...]]
    rebuilt: Rebuilt
    repairs: tuple[Repair, ...]
    violations: tuple[Violation, ...]
    windows: Mapping[str, Sustained]
    coordination: Coordination
    moved_at_ms: int | None
    support: SupportVerdict | None = None

    @property
    def complete(self) -> bool:
        """Whether every claim of the record resolves to the ledger, and no newer evidence was overwritten."""
        held = self.ledger.held
        named = all(held(i) is not None for ids in self.used.values() for i in ids)
        supported = all(held(i) is not None for repair in self.repairs for i in repair.support)
        return named and supported and self.unsafe_overwrites == 0

    @property
    def unsafe_overwrites(self) -> int:
        """Supports from memory that are not newer than every live head beside them (section 4); never done."""
        return sum(
            1
            for state in self.states.values()
            if state.recalled and state.support is not None
            and any(
                state.support.observation.event_time_ms <= head.observation.event_time_ms <= self.episode.decided_at_ms
                for head in state.heads.values()
            )
        )  # fmt: skip


def authorise(account: Account, rule: Rule, findings: Findings, retry: Retry | None) -> Decision:
    """The decision under the row of the policy that applied, with its record."""
    contract, proposal = account.contract, account.proposal
    candidate = _candidate(contract, account.rebuilt)
    applied = rule.action == "APPLY"
    until = _valid_until(account) if applied else None
    planned = {name: entry for name, entry in candidate.items() if contract.fields[name].kind == "planned"}
    lease = _lease(account, planned) if applied else None
    return _decision(
        account.episode,
        action=rule.action,
        control_key=proposal.control_key,
        bindings=proposal.bindings,
        released=candidate if applied else None,
        valid_until_ms=until,
        violations=account.violations,
        repairs=account.repairs,
        used={name: ids for name, ids in account.used.items() if ids},
        blocked=tuple(sorted({i for state in account.states.values() for i in state.blocked_ids})),
        retry=retry,
        explanation=explain(rule, findings, account.violations, account.repairs, until, retry, planned),
        record=_record(account, candidate),
        lease=lease,
        support=account.support,
    )


def _lease(account: Account, planned: Mapping[str, Any]) -> AppliedControl:
    """The control that an APPLY grants, but for its decision's id: other contracts may share its key."""
    contract, proposal, now = account.contract, account.proposal, account.episode.decided_at_ms
    control = contract.control
    return AppliedControl(
        control_key=proposal.control_key,
        decision_id="",
        proposal_id=proposal.proposal_id,
        values=planned,
        granted_at_ms=now,
        proposer=proposal.proposer,
        contract_id=contract.contract_id,
        bindings=proposal.bindings,
        lease_until_ms=account.coordination.lease_until_ms,
        coupled=tuple(key for key in account.resolution.coupled if key != proposal.control_key),
        merged_with=account.coordination.merged_with,
        ack_until_ms=None if control is None or control.ack_ms is None else now + control.ack_ms,
        effect_within_ms=None if control is None or control.effect is None else control.effect.within_ms,
    )


def refuse_malformed(episode: Episode, flaw: Malformed) -> Decision:
    """ABSTAIN for a proposal that cannot be read, naming the place."""
    raw = episode.proposal_raw
    key, bindings = raw.get("control_key"), raw.get("bindings")
    findings = findings_malformed(flaw)
    record: dict[str, Any] = {
        "contract_digest": None if episode.contract is None else episode.contract.digest,
        **dict.fromkeys(RECORD_KEYS[2:]),
        "repairs": [],
        "unresolved_risks": findings.blocking,
        "unsafe_overwrites": 0,
    }
    return _decision(
        episode,
        action="ABSTAIN",
        control_key=key if isinstance(key, str) else None,
        bindings=bindings if isinstance(bindings, dict) else {},
        violations=findings.blocking,
        explanation=explain(UNANSWERABLE, findings, findings.blocking, (), None, None, {}),
        record=record,
    )


def findings_malformed(flaw: Malformed) -> Findings:
    """What the governor decides on where a proposal cannot be read: nothing else of it is looked at."""
    violation = Violation("malformed", None, None, (), False, True, f"{flaw.path}: {flaw.reason}")
    return Findings(intended=False, record_complete=True, blocking=(violation,))


def _decision(
    episode: Episode, *, action: str, control_key: str | None, bindings: Mapping[str, Any], explanation: str,
    record: dict[str, Any], violations: tuple[Violation, ...], released: Mapping[str, Any] | None = None,
    valid_until_ms: int | None = None, repairs: tuple[Repair, ...] = (),
    used: Mapping[str, tuple[str, ...]] | None = None, blocked: tuple[str, ...] = (), retry: Retry | None = None,
    lease: AppliedControl | None = None, support: SupportVerdict | None = None,
) -> Decision:  # fmt: skip
    decided_on = episode_json(episode)
    decision_id = hashlib.sha256(decided_on).hexdigest()
    return Decision(
        decision_id=decision_id,
        episode_id=episode.episode_id,
        proposal_id=episode.proposal.proposal_id,
        action=action,
        control_key=control_key,
        bindings=bindings,
        released=released,
        valid_until_ms=valid_until_ms,
        violations=violations,
        repairs=repairs,
        used=used or {},
        blocked=blocked,
        retry=retry,
        explanation=explanation,
        record=_sealed({"episode": orjson.Fragment(decided_on), **record}),
        lease=None if lease is None else replace(lease, decision_id=decision_id),
        support=support,
    )


def _sealed(record: dict[str, Any]) -> bytes:
    """Canonical bytes of a record, with the digest over all the rest as its last member."""
    body = orjson.dumps(record)
    return body[:-1] + b',"digest":"' + digest(body).encode() + b'"}'


def _candidate(contract: Contract, rebuilt: Rebuilt) -> dict[str, Any]:
    """The rebuilt plan: planned and derived fields in contract units."""
    return {
        name: {"value": rebuilt.values[name], "unit": f.unit}
        for name, f in contract.fields.items()
        if f.kind != "observed" and name in rebuilt.values
    }


def _valid_until(account: Account) -> int:
    """Section 6: inclusive; authority ends with the first of the evidence it rests on, its lease, or the map."""
    now = account.episode.decided_at_ms
    limits = [] if account.proposal.deadline_ms is None else [account.proposal.deadline_ms]
    for member, state in account.states.items():
        if state.support is None or not member.field.critical:
            continue
        limits.append(min(state.support.effective_ms, now) + member.freshness_ms)
        for ancestor in account.ledger.ancestors(state.support.observation):
            for bound in account.resolution.members_of(ancestor):
                limits.append(min(account.ledger.ancestry(ancestor).oldest_ms, now) + bound.freshness_ms)
    limits += [window.until_ms for window in account.windows.values()]
    if account.coordination.lease_until_ms is not None:
        limits.append(account.coordination.lease_until_ms)
    if account.support is not None and account.support.map is not None:
        limits.append(account.support.map.expires_at_ms)
    return min(limits)


def _record(account: Account, candidate: Mapping[str, Any]) -> dict[str, Any]:
    episode, contract, states = account.episode, account.contract, account.states
    used, ledger = account.used, account.ledger
    arrived = ledger.arrived | ledger.answers if ledger.answers else ledger.arrived
    critical = [name for name, f in contract.fields.items() if f.kind == "observed" and f.critical]
    covered = sum(1 for name in critical if name in account.rebuilt.values)
    blocked: dict[str, list[str]] = {}
    integrity: dict[str, dict[str, Any]] = {}
    for member, state in states.items():
        name = member.field.name
        if state.blocked_ids:
            sources = {arrived[i].source for i in state.blocked_ids}
            blocked[name] = sorted(sources.union(blocked.get(name, ())))
        entry = integrity.setdefault(name, {"before": [], "after": "supported"})
        entry["before"] += [v.code for v in state.violations]
        if state.blocked:
            entry["after"] = "blocked" if member.field.critical else "unsupported"
    failed = account.rebuilt.failed | {name for name, entry in integrity.items() if entry["before"]}
    failed |= {repair.field for repair in account.repairs}
    scope = closure(contract, failed) if failed else ()
    return {
        "contract_digest": contract.digest,
        "state_version": _state_version(account),
        "normalised": view_of(contract, account.resolution, states, episode.decided_at_ms),
        "candidate": candidate,
        "sources_used": {name: sorted({arrived[i].source for i in ids}) for name, ids in used.items() if ids},
        "sources_blocked": blocked,
        "integrity": integrity,
        "support_graph": [
            *([f"observation:{i}", f"field:{name}"] for name, ids in used.items() for i in ids),
            *([f"observation:{i}", f"constraint:{c}"] for c, window in account.windows.items() for i in window.samples),
            *_static_edges(contract),
        ],
        "repair_scope": {
            "failed": [name for name in contract.fields if name in failed],
            "scope": scope,
            "copied": {
                name: dict(said.written)
                for name, said in account.rebuilt.written.items()
                if contract.fields[name].kind == "planned" and name not in scope
            },
        },
        "windows": {
            name: {"samples": window.samples, "until_ms": window.until_ms} for name, window in account.windows.items()
        },
        "repairs": [_repair_json(repair) for repair in account.repairs],
        "unresolved_risks": [v for v in account.violations if not v.resolved],
        "provenance_coverage": covered / len(critical) if critical else 1.0,
        "unsafe_overwrites": account.unsafe_overwrites,
        "claimed_evidence": {i: i in arrived for i in account.proposal.evidence},
        "control": _control(account),
    }


def _control(account: Account) -> dict[str, Any] | None:
    """What of section 7 was weighed; null where there was nothing to weigh."""
    found = account.coordination
    if found is NOTHING and account.moved_at_ms is None:
        return None
    return {
        "leases": found.leases,
        "merged_with": found.merged_with,
        "lease_until_ms": found.lease_until_ms,
        "changes": found.changes,
        "last_applied": found.last_applied,
        "moved_at_ms": account.moved_at_ms,
    }


def _state_version(account: Account) -> dict[str, Any]:
    """How much evidence had arrived, and the highest state version that each source had shown."""
    versions: dict[str, int] = {}
    for o in account.ledger.arrived.values():
        if o.version is not None and o.version > versions.get(o.source, o.version - 1):
            versions[o.source] = o.version
    return {"observations": len(account.ledger.arrived), "versions": dict(sorted(versions.items()))}


@lru_cache(maxsize=256)
def _static_edges(contract: Contract) -> tuple[tuple[str, str], ...]:
    """field → derived or planned field → constraint → action."""
    fields = contract.fields
    edges = [(f"field:{n}", f"field:{f.name}") for f in fields.values() if f.expr is not None for n in f.expr.names]
    edges += [(f"field:{n}", f"constraint:{c.id}") for c in contract.constraints for n in c.expr.names]
    edges += [(f"constraint:{c.id}", "action") for c in contract.constraints]
    edges += [(f"field:{f.name}", "action") for f in fields.values() if f.kind != "observed" or f.critical]
    return tuple(edges)


def _repair_json(repair: Repair) -> dict[str, Any]:
    return {
        "operator": repair.operator,
        "field": repair.field,
        "from": repair.before,
        "to": repair.after,
        "support": repair.support,
    }


def decision_json(decision: Decision, record: bool = True, extra: Mapping[str, Any] | None = None) -> bytes:
    """The canonical bytes of a decision document.

    Without `record` its place holds only the record's digest; `extra` appends the members that a topic adds.
    """
    full = decision.record
    tail = orjson.Fragment(full) if record else {"digest": full[-73:-2].decode()}
    return orjson.dumps(
        {
            "format": FORMAT,
            "decision_id": decision.decision_id,
            "episode_id": decision.episode_id,
            "proposal_id": decision.proposal_id,
            "action": decision.action,
            "control_key": decision.control_key,
            "bindings": decision.bindings,
            "released": decision.released,
            "valid_until_ms": decision.valid_until_ms,
            "violations": decision.violations,
            "repairs": [_repair_json(repair) for repair in decision.repairs],
            "used": decision.used,
            "blocked": decision.blocked,
            "retry": decision.retry,
            "explanation": decision.explanation,
            **({} if decision.support is None else {"support": decision.support.document()}),
            "record": tail,
            **(extra or {}),
        }
    )
