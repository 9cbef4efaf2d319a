"""The laws of the control path, judged on one partition's history. Pure, and without any code of guard or engine."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, Final

from streams.chaos.history import (
    Decided,
    Key,
    Message,
    PartitionHistory,
    read_decision,
    read_object,
    read_record,
    region_name,
)
from streams.chaos.stale import Evidence, Told, told_by, why_stale
from streams.chaos.verdict import Findings

LAWS: Final = (
    "lost",
    "duplicates_released",
    "late_apply",
    "stale_apply",
    "unrecorded_apply",
    "lease_conflicts",
    "after_final",
    "attempt_breaks",
    "sequence_breaks",
    "unproposed",
    "unreadable",
)
NEEDED: Final = ("proposals", "final_decisions", "applies")


def check_partition(history: PartitionHistory, contracts: Mapping[str, Mapping[str, Any]]) -> Findings:
    """Every law on one partition. `contracts`: the documents that the proposals name, by id.

    A decision of a proposal that stands in another partition counts as `unproposed` here and as `lost` there.
    """
    found = Findings(LAWS, NEEDED)
    if not history.append_times:
        found.unknown("the topics' timestamps are not the broker's: late and stale releases are not told by it")
    decisions = _decisions(history, found)
    proposals = proposals_by_key(history.proposals)
    fuzzed = proposals_by_key(m for m in history.proposals if ("proposals", m.offset) in history.foreign).keys()
    _account(history, proposals.keys(), fuzzed, decisions, found)
    _check_order(decisions, found)
    _check_repeats(decisions, found)
    applies = [decision for decision in decisions if decision.action == "APPLY"]
    found.count("applies", len(applies))
    _check_applies(history, applies, proposals, fuzzed, contracts, found)
    _check_leases(history, applies, proposals, contracts, found)
    return found


def _decisions(history: PartitionHistory, found: Findings) -> list[Decided]:
    decisions = []
    for message in history.control:
        if ("control", message.offset) in history.foreign:
            continue
        decision = read_decision(message)
        if decision is None:
            found.broken("unreadable", _place(history, message.offset))
        else:
            decisions.append(decision)
    return decisions


def _account(
    history: PartitionHistory, asked: Set[Key], fuzzed: Set[Key], decisions: Sequence[Decided], found: Findings
) -> None:
    """Proposals in against final decisions out: whatever was acknowledged or stands in the topic has one."""
    final = {decision.key for decision in decisions if decision.final}
    due = {(op.region, op.proposal_id) for op in history.ops if op.status == "ok"} | (asked - fuzzed)
    for op in history.ops:
        found.count(f"sent_{op.status}")
    found.count("proposals", len(due))
    found.count("final_decisions", len(final & due))
    found.count("decisions", len(decisions))
    for action, number in Counter(d.action for d in decisions if d.final and d.key in due).items():
        found.count(f"final_{action}", number)
    for key in sorted(due - final):
        where = "" if key in asked else ", acknowledged, and not in the topic"
        found.broken("lost", f"{'/'.join(key)} of partition {history.partition}{where}")
    for decision in decisions:
        if decision.key not in asked:
            found.broken("unproposed", f"{decision.proposal_id} at {_place(history, decision.offset)}")


def _check_order(decisions: Sequence[Decided], found: Findings) -> None:
    """Sequences rise by one a decision, attempts by one from one, and nothing follows what is final."""
    expected: int | None = None
    attempts: defaultdict[Key, int] = defaultdict(int)
    ended: set[Key] = set()
    for decision in decisions:
        if expected is not None and decision.sequence != expected:
            found.broken("sequence_breaks", f"offset {decision.offset}: {decision.sequence}, expected {expected}")
        expected = decision.sequence + 1
        key = decision.key
        if key in ended and not decision.final:
            found.broken("after_final", _attempt(decision))
        if decision.attempt != attempts[key] + 1:
            found.broken("attempt_breaks", f"{_attempt(decision)} after attempt {attempts[key]}")
        attempts[key] = max(attempts[key], decision.attempt)
        if decision.final:
            ended.add(key)
        elif decision.action == "APPLY":
            found.broken("after_final", f"an APPLY that is called interim: {_attempt(decision)}")


def _check_repeats(decisions: Sequence[Decided], found: Findings) -> None:
    """At most one final decision and one APPLY a proposal, and each attempt once."""
    seen: set[tuple[str, Key, int]] = set()
    for decision in decisions:
        key = decision.key
        marks = [("attempt", key, decision.attempt)]
        marks += [("final", key, 0)] if decision.final else []
        marks += [("APPLY", key, 0)] if decision.action == "APPLY" else []
        if not seen.isdisjoint(marks):
            found.broken("duplicates_released", _attempt(decision))
        seen.update(marks)


def _check_applies(
    history: PartitionHistory,
    applies: Sequence[Decided],
    proposals: Mapping[Key, Mapping[str, Any]],
    fuzzed: Set[Key],
    contracts: Mapping[str, Mapping[str, Any]],
    found: Findings,
) -> None:
    written = _written(history, {decision.decision_id for decision in applies})
    evidence = Evidence.of(m for m in history.telemetry if ("telemetry", m.offset) not in history.foreign)
    for decision in applies:
        about = f"{decision.proposal_id} at {_place(history, decision.offset)}"
        written_ms, told = written.get(decision.decision_id, (None, {}))
        if written_ms is None:
            found.broken("unrecorded_apply", about)
        elif history.append_times and written_ms > decision.timestamp_ms:
            found.broken("unrecorded_apply", f"{about}: written {written_ms - decision.timestamp_ms} ms later")
        if decision.valid_until_ms is None:
            found.broken("late_apply", f"{about}: no end of its authority")
        elif history.append_times and decision.timestamp_ms > decision.valid_until_ms:
            found.broken("late_apply", f"{about}: {decision.timestamp_ms - decision.valid_until_ms} ms late")
        contract = contracts.get(str(proposals.get(decision.key, {}).get("contract_ref")))
        if decision.key in fuzzed:
            continue  # on telemetry of which only the guard can say what was taken in
        if contract is None:
            found.unknown(f"{about}: of a contract that the checker does not know")
        elif (why := why_stale(decision, told, contract, evidence, history.append_times)) is not None:
            found.broken("stale_apply", f"{about}: {why}")


def _written(history: PartitionHistory, wanted: Set[str]) -> dict[str, tuple[int, Told]]:
    """Of the full records of these decisions: when each was first written, and what it tells."""
    found: dict[str, tuple[int, Told]] = {}
    for message in history.records:
        if ("records", message.offset) not in history.foreign:
            decision = read_record(message.value) or {}
            told = told_by(decision)
            if told is not None and decision.get("decision_id") in wanted:
                found.setdefault(decision["decision_id"], (message.timestamp_ms, told))
    return found


def _check_leases(
    history: PartitionHistory,
    applies: Sequence[Decided],
    proposals: Mapping[Key, Mapping[str, Any]],
    contracts: Mapping[str, Mapping[str, Any]],
    found: Findings,
) -> None:
    """While a control key of a region is leased, only its values are released for it, unless its APPLY was refused."""
    refused = {
        str(document.get("decision_id")): message.timestamp_ms
        for message in history.outcomes
        if (document := read_object(message.value)) is not None and document.get("outcome") == "refused"
    }
    leases: dict[tuple[str, str], Decided] = {}
    for decision in applies:
        contract = contracts.get(str(proposals.get(decision.key, {}).get("contract_ref"))) or {}
        lease_ms = (contract.get("control") or {}).get("lease_ms")
        if lease_ms is None or decision.control_key is None:
            continue
        key = decision.region, decision.control_key
        held = leases.get(key)
        if held is not None and decision.decided_at_ms < held.decided_at_ms + lease_ms:
            if held.released == decision.released:
                continue
            if refused.get(held.decision_id, decision.timestamp_ms + 1) > decision.timestamp_ms:
                found.broken("lease_conflicts", f"{decision.proposal_id} during the lease of {held.proposal_id}")
        leases[key] = decision


def proposals_by_key(messages: Iterable[Message]) -> dict[Key, Mapping[str, Any]]:
    """The first proposal of each region and id."""
    found: dict[Key, Mapping[str, Any]] = {}
    for message in messages:
        document = read_object(message.value)
        if document is not None and isinstance(document.get("proposal_id"), str):
            found.setdefault((region_name(message.key), document["proposal_id"]), document)
    return found


def _attempt(decision: Decided) -> str:
    return f"{decision.proposal_id}: attempt {decision.attempt} at offset {decision.offset}"


def _place(history: PartitionHistory, offset: int) -> str:
    return f"control {history.partition}@{offset}"
