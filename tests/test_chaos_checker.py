"""The chaos checker on histories made by hand: a good one holds, and each way of being bad is told apart."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
import pytest

from streams.chaos import fuzz, world
from streams.chaos.checker import LAWS, check_partition
from streams.chaos.fuzz_check import Written, check_fuzzed, dead_places, models
from streams.chaos.history import Fault, Message, Op, PartitionHistory, Status, read_object, read_record
from streams.chaos.recovery import Times, quantile
from streams.chaos.verdict import Findings, worst
from streams.topics import partition_of

T = 1_790_000_000_000
REGION = "north"
NOTHING = Written(set(), set(), set())
CONTRACTS = world.contracts(lease_ms=300)


@dataclass
class Past:
    """A history under construction: 100 ms between reports, decisions where the tests put them."""

    telemetry: list[Message] = field(default_factory=list)
    proposals: list[Message] = field(default_factory=list)
    control: list[Message] = field(default_factory=list)
    records: list[Message] = field(default_factory=list)
    outcomes: list[Message] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    foreign: set[tuple[str, int]] = field(default_factory=set)

    def report(self, at_ms: int, value: Any = 5, event_time_ms: int | None = None, **over: Any) -> str:
        report_id = f"r{len(self.telemetry)}"
        document = {
            "format": "wirelessops.telemetry/1",
            "report_id": report_id,
            "source": world.GNB,
            "event_time_ms": at_ms - 5 if event_time_ms is None else event_time_ms,
            "measurements": [{"name": "load", "value": value, "unit": "1", "subject": "ue:a"}],
            **over,
        }
        put(self.telemetry, at_ms, document)
        return f"{report_id}#0"

    def propose(self, proposal_id: str, at_ms: int, status: Status = "ok", written: bool = True) -> None:
        self.ops.append(Op(REGION, proposal_id, 0, at_ms, status))
        if written:
            document = {"proposal_id": proposal_id, "contract_ref": world.ONE, "bindings": {"ue": "a"}}
            put(self.proposals, at_ms, document)

    def decide(self, proposal_id: str, at_ms: int, action: str = "ABSTAIN", **over: Any) -> None:
        document = {
            "format": "wirelessops.decision/1",
            "decision_id": f"d{len(self.control)}",
            "proposal_id": proposal_id,
            "action": action,
            "attempt": 1,
            "final": True,
            "sequence": len(self.control),
            "decided_at_ms": at_ms - 10,
            "valid_until_ms": None,
            "control_key": "ue:a/share",
            "region": REGION,
            "evidence": {"topic": "telemetry", "partition": 0, "offset": len(self.telemetry)},
            "released": None,
            "used": {},
            "bindings": {"ue": "a"},
            **over,
        }
        put(self.control, at_ms, document)

    def apply(self, proposal_id: str, at_ms: int, support: str, share: float = 4, **over: Any) -> None:
        told = self.told(support)
        valid_until_ms = min(told["event_time_ms"], at_ms - 10) + 1000
        released = {"share": {"value": share, "unit": "MHz"}}
        decision = {"valid_until_ms": valid_until_ms, "released": released, "used": {"load": [support]}, **over}
        self.decide(proposal_id, at_ms, "APPLY", **decision)
        self.record(at_ms - 2, f"d{len(self.control) - 1}", [told])

    def record(self, at_ms: int, decision_id: str, told: list[dict[str, Any]], enveloped: bool = True) -> None:
        document: dict[str, Any] = {"decision_id": decision_id, "record": {"episode": {"observations": told}}}
        payload = base64.b64encode(orjson.dumps(document)).decode()
        envelope = {"payloadType": "application/json", "payload": payload, "signatures": []}
        put(self.records, at_ms, envelope if enveloped else document)

    def told(self, observation_id: str) -> dict[str, Any]:
        report = orjson.loads(self.telemetry[int(observation_id[1:].partition("#")[0])].value or b"")
        value = report["measurements"][0]["value"]
        times = {"event_time_ms": report["event_time_ms"]}
        return {"id": observation_id, "source": report["source"], "value": value, **times}

    def check(self, contracts: Mapping[str, Mapping[str, Any]] = CONTRACTS) -> Findings:
        history = PartitionHistory(
            0,
            self.ops,
            self.proposals,
            self.telemetry,
            self.control,
            iter(self.records),
            self.outcomes,
            self.foreign,
        )
        return check_partition(history, contracts)


def put(log: list[Message], at_ms: int, document: Any, offset: int | None = None) -> None:
    value = document if isinstance(document, bytes) else orjson.dumps(document)
    log.append(Message(len(log) if offset is None else offset, at_ms, REGION.encode(), value))


def good() -> Past:
    """Two proposals: one released on fresh evidence, one held and then refused."""
    past = Past()
    used = past.report(T)
    past.propose("p1", T + 10)
    past.propose("p2", T + 11)
    past.apply("p1", T + 40, used)
    past.decide("p2", T + 41, "HOLD", final=False)
    past.report(T + 100)
    past.decide("p2", T + 140, "ABSTAIN", attempt=2)
    return past


def broken(found: Findings) -> dict[str, int]:
    return {law: found.counts[law] for law in LAWS if found.counts.get(law)}


def test_a_good_history_holds_and_is_counted() -> None:
    found = good().check()
    assert broken(found) == {}
    assert found.verdict() == "holds"
    assert (found.counts["proposals"], found.counts["final_decisions"], found.counts["decisions"]) == (2, 2, 3)
    assert found.counts["applies"] == 1


def test_an_acknowledged_proposal_without_a_final_decision_is_lost() -> None:
    past = good()
    past.propose("p3", T + 200)
    past.decide("p3", T + 210, "HOLD", final=False)
    found = past.check()
    assert broken(found) == {"lost": 1}
    assert found.verdict() == "broken"


def test_an_acknowledged_proposal_that_the_topic_does_not_hold_is_lost() -> None:
    past = good()
    past.propose("p3", T + 200, written=False)
    assert broken(past.check()) == {"lost": 1}


def test_of_unknown_operations_those_that_stand_in_the_topic_must_be_decided() -> None:
    past = good()
    past.propose("p3", T + 200, "unknown", written=False)
    past.propose("p4", T + 200, "fail", written=False)
    assert broken(past.check()) == {}
    past.propose("p5", T + 200, "unknown")
    assert broken(past.check()) == {"lost": 1}


def test_a_proposal_that_was_sent_twice_is_one_proposal() -> None:
    past = good()
    past.proposals.append(Message(2, T + 300, REGION.encode(), past.proposals[0].value))
    found = past.check()
    assert broken(found) == {}
    assert found.counts["proposals"] == 2


def test_two_final_decisions_are_a_duplicate() -> None:
    past = good()
    past.decide("p2", T + 150, attempt=3)
    assert broken(past.check()) == {"duplicates_released": 1}


def test_an_attempt_released_twice_is_a_duplicate() -> None:
    past = good()
    past.propose("p3", T + 200)
    past.decide("p3", T + 210, "HOLD", final=False)
    past.decide("p3", T + 220, "HOLD", final=False)
    past.decide("p3", T + 230, attempt=2)
    assert broken(past.check()) == {"duplicates_released": 1, "attempt_breaks": 1}


def test_a_second_apply_of_a_proposal_is_a_duplicate_even_with_another_attempt() -> None:
    past = good()
    past.apply("p1", T + 150, "r1#0", attempt=2)
    assert broken(past.check())["duplicates_released"] == 1


@pytest.mark.parametrize("sequence", [2, 4, 7])
def test_a_sequence_that_does_not_rise_by_one_is_told(sequence: int) -> None:
    past = good()
    past.propose("p3", T + 200)
    past.decide("p3", T + 210, sequence=sequence)
    assert broken(past.check()) == {"sequence_breaks": 1}


def test_an_interim_decision_after_the_final_one_is_told() -> None:
    past = good()
    past.decide("p2", T + 150, "HOLD", attempt=3, final=False)
    assert broken(past.check()) == {"after_final": 1}


def test_attempts_begin_at_one_and_skip_none() -> None:
    past = good()
    past.propose("p3", T + 200)
    past.decide("p3", T + 210, attempt=2)
    assert broken(past.check()) == {"attempt_breaks": 1}


def test_a_decision_on_what_nobody_proposed_here_is_told() -> None:
    past = good()
    past.decide("elsewhere", T + 200)
    assert broken(past.check()) == {"unproposed": 1}


def test_the_same_id_in_two_regions_is_two_proposals() -> None:
    past = good()
    past.proposals.append(Message(2, T + 150, b"south", past.proposals[0].value))
    past.decide("p1", T + 200, region="south")
    found = past.check()
    assert broken(found) == {}
    assert found.counts["proposals"] == 3


def test_bytes_on_control_that_are_no_decision_are_told_unless_the_harness_wrote_them() -> None:
    past = good()
    put(past.control, T + 200, b"\xff")
    assert broken(past.check()) == {"unreadable": 1}
    past.foreign.add(("control", 3))
    assert broken(past.check()) == {}


def test_an_apply_appended_after_its_authority_is_late_and_one_at_its_end_is_not() -> None:
    for late_ms, laws in ((0, {}), (1, {"late_apply": 1})):
        past = good()
        past.propose("p3", T + 200)
        past.apply("p3", T + 300, "r1#0", valid_until_ms=T + 300 - late_ms)
        assert broken(past.check()) == laws


def test_an_apply_without_an_end_of_its_authority_is_late() -> None:
    past = good()
    past.propose("p3", T + 200)
    past.apply("p3", T + 300, "r1#0", valid_until_ms=None)
    assert broken(past.check()) == {"late_apply": 1}


def test_evidence_older_than_its_limit_when_released_is_stale_whatever_the_decision_says() -> None:
    for at_ms, laws in ((T + 95 + 1000, {}), (T + 95 + 1001, {"stale_apply": 1})):
        past = good()
        past.propose("p3", T + 200)
        past.apply("p3", at_ms, "r1#0", valid_until_ms=T + 60_000)
        assert broken(past.check()) == laws


def test_evidence_that_a_report_below_the_offset_superseded_is_stale() -> None:
    past = good()
    past.propose("p3", T + 200)
    past.report(T + 210)
    past.apply("p3", T + 220, "r1#0")
    assert broken(past.check()) == {"stale_apply": 1}


def test_a_report_at_or_above_the_offset_supersedes_nothing() -> None:
    past = good()
    past.propose("p3", T + 200)
    past.report(T + 210)
    past.apply("p3", T + 220, "r1#0", evidence={"topic": "telemetry", "partition": 0, "offset": 2})
    assert broken(past.check()) == {}


def test_evidence_at_or_above_the_offset_named_was_not_read_yet() -> None:
    past = good()
    past.propose("p3", T + 200)
    past.apply("p3", T + 220, "r1#0", evidence={"topic": "telemetry", "partition": 0, "offset": 1})
    assert broken(past.check()) == {"stale_apply": 1}


def test_a_higher_version_at_the_same_event_time_supersedes() -> None:
    past = good()
    past.propose("p3", T + 200)
    old = past.report(T + 210, event_time_ms=T + 205, version=1)
    past.report(T + 211, event_time_ms=T + 205, version=2)
    past.apply("p3", T + 220, old)
    assert broken(past.check()) == {"stale_apply": 1}


def test_an_older_report_that_arrives_late_supersedes_nothing() -> None:
    past = good()
    past.propose("p3", T + 200)
    past.report(T + 210, event_time_ms=T + 50)
    past.apply("p3", T + 220, "r1#0")
    assert broken(past.check()) == {}


def test_a_report_from_beyond_the_clock_skew_supersedes_nothing_and_supports_nothing() -> None:
    past = good()
    past.propose("p3", T + 200)
    ahead = past.report(T + 210, event_time_ms=T + 10_000)
    past.apply("p3", T + 220, "r1#0")
    assert broken(past.check()) == {}
    past.propose("p4", T + 230)
    past.apply("p4", T + 600, ahead, valid_until_ms=T + 700)
    assert broken(past.check()) == {"stale_apply": 1}


def test_a_repeated_report_is_no_newer_evidence() -> None:
    past = good()
    past.propose("p3", T + 200)
    past.telemetry.append(Message(2, T + 210, REGION.encode(), past.telemetry[1].value))
    past.apply("p3", T + 220, "r1#0")
    assert broken(past.check()) == {}


def test_another_region_or_source_supersedes_nothing() -> None:
    past = good()
    past.propose("p3", T + 200)
    past.report(T + 210, source="e2:other")
    past.telemetry[-1] = Message(2, T + 210, b"south", past.telemetry[-1].value)
    past.report(T + 211, source=world.AUX)
    past.apply("p3", T + 220, "r1#0")
    assert broken(past.check()) == {}


def test_a_source_that_the_contract_does_not_list_supports_nothing() -> None:
    past = good()
    past.propose("p3", T + 200)
    stranger = past.report(T + 210, source="e2:stranger")
    past.apply("p3", T + 220, stranger)
    assert broken(past.check()) == {"stale_apply": 1}


def test_an_apply_that_names_no_support_is_stale() -> None:
    past = good()
    past.propose("p3", T + 200)
    past.apply("p3", T + 220, "r1#0", used={})
    assert broken(past.check()) == {"stale_apply": 1}


def test_a_record_that_tells_an_observation_otherwise_than_telemetry_is_told() -> None:
    past = good()
    past.propose("p3", T + 200)
    past.apply("p3", T + 220, "r1#0")
    past.records.pop()
    past.record(T + 218, "d3", [past.told("r1#0") | {"value": 6}])
    assert broken(past.check()) == {"stale_apply": 1}


def test_an_apply_without_a_record_is_told() -> None:
    past = good()
    past.records.clear()
    assert broken(past.check())["unrecorded_apply"] == 1


def test_a_record_written_after_its_decision_is_told() -> None:
    past = good()
    past.records.clear()
    past.record(T + 41, "d0", [past.told("r0#0")])
    assert broken(past.check()) == {"unrecorded_apply": 1}


def test_records_stand_plain_or_in_an_envelope() -> None:
    past = good()
    past.records.clear()
    past.record(T + 38, "d0", [past.told("r0#0")], enveloped=False)
    assert broken(past.check()) == {}


@pytest.mark.parametrize(
    "value", [None, b"", b"{", b"[]", b'{"payload": 1}', b'{"payload": "%"}', b'{"payload": "W10="}']
)
def test_what_is_no_record_is_read_as_none(value: bytes | None) -> None:
    assert read_record(value) is None


def test_a_record_of_the_harness_itself_is_no_record() -> None:
    past = good()
    past.foreign.add(("records", 0))
    assert broken(past.check())["unrecorded_apply"] == 1


def test_two_values_for_one_key_within_the_lease_conflict() -> None:
    past = good()
    past.propose("p3", T + 200)
    past.apply("p3", T + 220, "r1#0", share=8)
    assert broken(past.check()) == {"lease_conflicts": 1}


def test_the_same_value_another_key_or_a_lease_that_ended_do_not_conflict() -> None:
    for over in ({"share": 4}, {"share": 8, "control_key": "ue:b/share"}, {"share": 8, "decided_at_ms": T + 330}):
        past = good()
        past.propose("p3", T + 200)
        past.apply("p3", T + 340, "r1#0", **over)
        assert broken(past.check()) == {}


def test_the_same_control_key_in_another_region_is_another_control() -> None:
    past = good()
    past.propose("p3", T + 200)
    south = past.report(T + 210)
    past.telemetry[-1] = replace(past.telemetry[-1], key=b"south")
    past.proposals[-1] = replace(past.proposals[-1], key=b"south")
    past.ops[-1] = replace(past.ops[-1], region="south")
    past.apply("p3", T + 220, south, share=8, region="south")
    assert broken(past.check()) == {}


def test_a_lease_of_a_release_that_was_refused_binds_nobody() -> None:
    past = good()
    past.propose("p3", T + 200)
    put(past.outcomes, T + 100, {"decision_id": "d0", "outcome": "refused"})
    past.apply("p3", T + 220, "r1#0", share=8)
    assert broken(past.check()) == {}


def test_without_leases_in_the_contract_none_are_judged() -> None:
    past = good()
    past.propose("p3", T + 200)
    past.apply("p3", T + 220, "r1#0", share=8)
    assert broken(past.check(world.contracts())) == {}


def test_a_fuzzed_proposal_need_not_be_decided_but_may_be() -> None:
    past = good()
    for proposal_id in ("f1", "f2"):
        put(past.proposals, T + 200, {"proposal_id": proposal_id})
        past.foreign.add(("proposals", len(past.proposals) - 1))
    past.decide("f1", T + 220)
    assert broken(past.check()) == {}


def test_without_append_times_the_verdict_is_unknown_not_good() -> None:
    past = good()
    past.control = [replace(message, append_time=False) for message in past.control]
    found = past.check()
    assert broken(found) == {}
    assert found.verdict() == "unknown"


def test_a_history_in_which_nothing_happened_is_unknown() -> None:
    assert Past().check().verdict() == "unknown"


def test_a_release_of_an_unknown_contract_is_not_judged_as_good() -> None:
    assert good().check({}).verdict() == "unknown"


def test_the_worst_verdict_wins_and_of_none_it_is_unknown() -> None:
    assert worst(["holds", "broken", "unknown"]) == "broken"
    assert worst(["unknown", "holds"]) == "unknown"
    assert worst(["holds"]) == "holds"
    assert worst([]) == "unknown"


def test_findings_add_up_and_keep_a_few_examples() -> None:
    total = Findings(())
    for n in range(9):
        one = Findings(("lost",), ("proposals",))
        one.count("proposals", 2)
        one.broken("lost", f"p{n}")
        total.add(one)
    assert total.counts == {"proposals": 18, "lost": 9}
    assert total.examples["lost"] == [f"p{n}" for n in range(5)]
    assert total.verdict() == "broken"


def test_an_unknown_of_one_part_makes_the_whole_unknown() -> None:
    total = Findings(())
    one = Findings(("lost",))
    one.unknown("why")
    total.add(one)
    assert total.verdict() == "unknown"


def times_of(*partitions: Past) -> Times:
    found = Times()
    for number, past in enumerate(partitions):
        found.take(PartitionHistory(number, (), past.proposals, (), past.control, ()))
    return found


def test_recovery_is_the_slowest_partitions_first_final_decision_on_a_later_proposal() -> None:
    past, other = Past(), Past()
    fault = Fault("worker killed", "w1", T, T)
    for each, decided_ms in ((past, 700), (other, 900)):
        each.propose("before", T - 10)
        each.propose("after", T + 5)
        each.decide("before", T + 50)
        each.decide("after", T + 60, "HOLD", final=False)
        each.decide("after", T + decided_ms, attempt=2)
    assert times_of(past, other).recovery_ms(fault) == 900


def test_there_is_no_recovery_where_a_partition_never_decided_again() -> None:
    past = Past()
    past.propose("before", T - 10)
    past.decide("before", T + 50)
    past.propose("after", T + 5)
    assert times_of(past).recovery_ms(Fault("worker killed", "w1", T, T)) is None
    assert Times().recovery_ms(Fault("worker killed", "w1", T, T)) is None


def test_catching_up_counts_what_had_piled_up_from_the_first_decision_to_its_last() -> None:
    past = Past()
    past.propose("early", T - 50)
    past.decide("early", T - 40)
    for n in range(4):
        past.propose(f"p{n}", T + n)
    past.propose("later", T + 1500)
    for n in range(4):
        past.decide(f"p{n}", T + 1000 + 100 * n, "HOLD", final=False)
    past.decide("later", T + 2000)
    fault = Fault("all workers killed", "w1", T, T + 800)
    assert times_of(past).catch_up(fault) == (4, 300)


def test_there_is_no_catching_up_where_some_of_it_was_never_decided() -> None:
    past = Past()
    past.propose("p0", T)
    past.propose("p1", T + 1)
    past.decide("p0", T + 1000)
    assert times_of(past).catch_up(Fault("all workers killed", "w1", T, T + 800)) is None


def test_quantiles_are_values_that_occurred() -> None:
    assert quantile([], 0.5) is None
    assert quantile([5, 1, 3, 2], 0.5) == 2
    assert quantile([5, 1, 3, 2], 1.0) == 5
    assert quantile([7], 0.0) == 7


def put_at(topic: str, value: bytes | None, *, key: bytes | None = b"fuzz-0", written: Written = NOTHING) -> Findings:
    partition = partition_of("fuzz-0", range(4))
    messages = [Message(3, T, key, value)]
    return check_fuzzed(topic, f"x.{topic}", partition, 4, messages, written, models())


@pytest.mark.parametrize("topic", fuzz.READ)
def test_a_fuzzed_message_without_a_trace_has_vanished(topic: str) -> None:
    found = put_at(topic, b"\xff")
    assert (found.counts["fuzzed"], found.counts["fuzz_vanished"]) == (1, 1)
    assert found.verdict() == "broken"


@pytest.mark.parametrize("topic", fuzz.READ)
def test_a_fuzzed_message_that_a_dead_letter_names_has_not_vanished(topic: str) -> None:
    letters = [
        Message(0, T, None, orjson.dumps({"topic": f"x.{topic}", "partition": place, "offset": 1, "last_offset": 4}))
        for place in range(4)
    ]
    found = put_at(topic, b"\xff", written=Written(dead_places(letters), set(), set()))
    assert (found.counts["fuzz_dead_letters"], found.verdict()) == (1, "holds")


def test_a_fuzzed_proposal_may_be_decided_and_a_question_answered_each_by_its_own_id() -> None:
    written = Written(set(), {("fuzz-0", "p1")}, {"q1"})
    for topic, key, ours in (("proposals", "proposal_id", "p1"), ("queries", "query_id", "q1")):
        assert put_at(topic, orjson.dumps({key: ours}), written=written).counts.get("fuzz_vanished", 0) == 0
        assert put_at(topic, orjson.dumps({key: "other"}), written=written).counts["fuzz_vanished"] == 1
    assert put_at("proposals", b'{"proposal_id": "p1"}', key=b"fuzz-1", written=written).counts["fuzz_vanished"] == 1


def test_what_a_reader_can_take_in_leaves_no_trace_but_not_under_a_key_of_another_partition() -> None:
    status = world.status(world.AUX, True, T)
    assert put_at("telemetry", status).counts["fuzz_taken_in"] == 1
    for key in (None, b"", b"\xff", b"fuzz-1"):
        assert put_at("telemetry", status, key=key).counts["fuzz_vanished"] == 1


@pytest.mark.parametrize("topic", [*fuzz.READ, *fuzz.OWN])
def test_the_same_seed_gives_the_same_fuzz(topic: str) -> None:
    once, again, other = (list(fuzz.fuzz(topic, 300, seed, 8, T)) for seed in (1, 1, 2))
    assert once == again != other
    assert any(each.value is None for each in once)
    assert any(each.partition is not None for each in once)


@pytest.mark.parametrize("topic", fuzz.OWN)
def test_no_foreign_writer_forges_a_whole_decision(topic: str) -> None:
    for each in fuzz.fuzz(topic, 3000, 1, 8, T):
        document = read_object(each.value)
        assert document is None or not {"proposal_id", "sequence", "action"} <= document.keys()


def test_the_regions_of_the_load_spread_evenly() -> None:
    counts = Counter(partition_of(name, range(8)) for name in world.region_names(16, 8))
    assert counts == dict.fromkeys(range(8), 2)


def test_the_load_can_be_sent_again_with_the_same_bytes_and_has_all_kinds() -> None:
    assert world.proposal("p", 5, 1, T) == world.proposal("p", 5, 1, T)
    assert {world.kind_of(n, 1) for n in range(1000)} == set(world.KINDS)
    assert sum(world.KINDS.values()) == 100
