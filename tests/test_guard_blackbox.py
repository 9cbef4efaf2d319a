"""The guard as a stranger sees it: plain Kafka clients, messages in, messages out."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
import pytest
from aiokafka import AIOKafkaProducer
from guard_rig import CONTRACT, PREFIX, REGION, Rig, contracts, guarded, proposal, report, running
from jsonschema import Draft202012Validator

from streams.broker import EmbeddedBroker
from streams.deciding import Read, RegionState, Resume, Stamp, read_proposal_bytes
from streams.guard import Guard, unix_ms
from streams.guard_kafka import Unreachable
from streams.headers import attributes
from streams.messages import DecisionMessage, RequestMessage, ViewMessage, schemas
from streams.publishing import PlainPublisher, Publisher
from streams.settings import GuardSettings
from xapp.faithfulness import verify


async def test_telemetry_and_a_proposal_in_one_decision_and_its_record_out() -> None:
    async with guarded() as (rig, _):
        sent = await rig.send("telemetry", report("r1", 9))
        asked = await rig.send("proposals", proposal("p1"))
        decision = await rig.decision("p1")
        assert decision["action"] == "APPLY"
        assert decision["released"]["bandwidth"] == {"value": 8, "unit": "MHz"}
        assert decision["used"] == {"cqi": ["r1#0"]}
        read = {
            "topic": sent.topic,
            "partition": sent.partition,
            "offset": sent.offset + 1,
            "outcomes": 0,
            "answers": 0,
        }
        assert decision["evidence"] == read
        assert (decision["guard"], decision["region"]) == ("guard", REGION)
        assert (decision["attempt"], decision["final"], decision["sequence"]) == (1, True, 0)
        assert decision["message"].key == REGION.encode()
        assert decision["message"].partition == asked.partition
        DecisionMessage.model_validate_json(decision["message"].value)

        record = await rig.wait_for("records")
        assert record["decision_id"] == decision["decision_id"]
        assert record["record"]["digest"] == decision["record"]["digest"]
        assert list(decision["record"]) == ["digest"]
        assert record["message"].timestamp <= decision["message"].timestamp


async def test_decisions_carry_cloudevents_attributes_as_headers() -> None:
    async with guarded() as (rig, _):
        await rig.send("proposals", proposal("p1"))
        decision = await rig.decision("p1")
        headers = decision["message"].headers
        found = attributes(headers)
        assert found["specversion"] == "1.0"
        assert found["id"] == f"{decision['decision_id']}/1"
        assert found["source"] == "/wirelessops/guard/guard"
        assert found["type"] == "wirelessops.decision.v1"
        assert found["time"].endswith("Z")
        assert dict(headers)["content-type"] == b"application/json"


async def test_a_question_is_answered_as_of_both_clocks() -> None:
    now = unix_ms()
    early, late = now - 5_000, now - 2_000
    async with guarded() as (rig, _):
        await rig.send("telemetry", report("newer", 9, event_time_ms=now - 3_000), timestamp_ms=early + 3_000)
        await rig.send("telemetry", report("older", 5, event_time_ms=now - 6_000), timestamp_ms=late)

        async def known(query_id: str, event_time_ms: int, ingest_time_ms: int) -> list[object]:
            reply = await rig.ask(
                kind="as_of",
                query_id=query_id,
                subject="cell:1/ue:7",
                name="cqi",
                event_time_ms=event_time_ms,
                ingest_time_ms=ingest_time_ms,
            )
            ViewMessage.model_validate_json(reply["message"].value)
            return [observation["value"] for observation in reply["observations"]]

        assert await known("all", now, now) == [9]
        assert await known("before the newer was measured", now - 4_000, now) == [5]
        assert await known("before the older arrived", now - 4_000, late - 1) == []
        assert await known("before any was measured", now - 7_000, now) == []


async def test_questions_come_after_the_telemetry_sent_before_them() -> None:
    async with guarded() as (rig, _):
        for n in range(30):
            await rig.send("telemetry", report(f"r{n}", n % 16))
            reply = await rig.ask(kind="as_of", query_id=f"q{n}", subject="cell:1/ue:7", name="cqi")
            assert [o["id"] for o in reply["observations"]] == [f"r{n}#0"]


async def test_the_normalised_view_is_given_on_request_and_a_bad_question_is_answered_with_its_fault() -> None:
    async with guarded() as (rig, _):
        await rig.send("telemetry", report("r1", 9))
        good = await rig.ask(kind="view", query_id="q1", contract_ref="test/1", bindings={"cell": "1", "ue": "7"})
        assert good["error"] is None
        assert "cqi" in orjson.dumps(good["view"]).decode()
        unknown = await rig.ask(kind="view", query_id="q2", contract_ref="none/1")
        assert "none/1" in unknown["error"]
        unbound = await rig.ask(kind="view", query_id="q3", contract_ref="test/1", bindings={"cell": "1"})
        assert unbound["error"].startswith("$.bindings.ue")


@pytest.mark.parametrize(
    ("over", "place"),
    [
        ({"contract_ref": "unknown/1"}, "contract_ref"),
        ({"contract_ref": None}, "contract_ref"),
        ({"contract_ref": 7}, "contract_ref"),
        ({"plan": 3}, "plan"),
        ({"created_at_ms": 1_790_000_000_000_000}, "created_at_ms"),
        ({"bindings": {"cell": "1"}}, "ue"),
    ],
)
async def test_a_malformed_proposal_gets_exactly_one_answer_and_it_is_abstain(over: dict, place: str) -> None:
    async with guarded() as (rig, _):
        await rig.send("proposals", proposal("bad", **over))
        await rig.send("proposals", proposal("next"))
        await rig.decision("next")
        (decision,) = rig.decisions("bad")
        assert decision["action"] == "ABSTAIN"
        assert [v["code"] for v in decision["violations"]] == ["malformed"]
        assert place in decision["violations"][0]["detail"] + decision["explanation"]


async def test_a_proposal_without_evidence_is_never_applied() -> None:
    async with guarded() as (rig, _):
        await rig.send("proposals", proposal("p1"))
        decision = await rig.decision("p1")
        assert decision["action"] == "HOLD"
        assert decision["released"] is None


async def test_evidence_of_another_region_does_not_count() -> None:
    async with guarded() as (rig, _):
        await rig.send("telemetry", report("r1", 9), key=b"south")
        await rig.send("proposals", proposal("p1"))
        assert (await rig.decision("p1"))["action"] == "HOLD"


async def test_a_repeated_proposal_is_answered_once_and_another_content_under_its_id_is_a_dead_letter() -> None:
    async with guarded() as (rig, guard):
        value = proposal("p1")
        await rig.send("proposals", value)
        await rig.send("proposals", value)
        other = await rig.send("proposals", proposal("p1", plan={"bandwidth": {"value": 9, "unit": "MHz"}}))
        letter = await rig.dead_letter(other)
        assert "proposal_id" in letter["reason"]
        await rig.send("proposals", proposal("p2"))
        await rig.decision("p2")
        assert len(rig.decisions("p1")) == 1
        assert guard.stats()["repeated_proposals"] == 1


async def test_a_retry_asks_for_what_the_source_in_outage_owes() -> None:
    status = {
        "format": "wirelessops.source-status/1",
        "source": "e2:gnb-1",
        "status": "outage",
        "retryable": True,
        "retry_after_ms": 200,
        "retries_left": 2,
        "event_time_ms": unix_ms(),
    }
    async with guarded() as (rig, _):
        await rig.send("telemetry", orjson.dumps(status))
        deadline_ms = unix_ms() + 60_000
        await rig.send("proposals", proposal("p1", deadline_ms=deadline_ms))
        decision = await rig.decision("p1")
        assert decision["action"] == "RETRY"
        request = await rig.wait_for("requests")
        RequestMessage.model_validate_json(request["message"].value)
        assert request["decision_id"] == decision["decision_id"]
        assert (request["source"], request["after_ms"], request["left"]) == ("e2:gnb-1", 200, 2)
        assert request["fields"] == [{"name": "cqi", "subject": "cell:1/ue:7"}]
        assert request["deadline_ms"] == deadline_ms
        assert request["message"].partition == decision["message"].partition


async def test_sequences_count_the_decisions_of_a_partition() -> None:
    async with guarded() as (rig, _):
        for n in range(12):
            await rig.send("proposals", proposal(f"p{n}"), key=f"region-{n % 3}".encode())
        for n in range(12):
            await rig.decision(f"p{n}")
        by_partition: dict[int, list[int]] = {}
        for message in rig.written["control"]:
            by_partition.setdefault(message.partition, []).append(orjson.loads(message.value)["sequence"])
        assert all(found == list(range(len(found))) for found in by_partition.values())


async def test_a_restarted_guard_goes_on_it_answers_nothing_twice_and_keeps_its_evidence() -> None:
    with EmbeddedBroker() as broker:
        settings = GuardSettings.embedded(broker.bootstrap_servers)
        rig = Rig(broker.bootstrap_servers)
        async with running(Guard(settings, contracts())):
            await rig.open()
            await rig.send("telemetry", report("r1", 9))
            await rig.send("telemetry", b"not json")
            await rig.send("proposals", proposal("p1"))
            await rig.decision("p1")
        await rig.send("proposals", proposal("p2"))
        async with running(Guard(settings, contracts())) as _:
            second = await rig.decision("p2")
            assert (second["action"], second["sequence"]) == ("APPLY", 1)
            again = next(m for m in rig.written["control"] if orjson.loads(m.value)["proposal_id"] == "p1")
            await rig.send("proposals", proposal("p1", plan={}))
            await rig.wait_for("dead-letters", lambda d: "p1" in d["reason"])
            assert [m for m in rig.written["control"] if orjson.loads(m.value)["proposal_id"] == "p1"] == [again]
            assert len(rig.written["dead-letters"]) == 2
        await rig.close()


class Slow(Guard):
    """A guard to whose publisher a minute passes while the first records are written."""

    now_ms = unix_ms()

    def _publisher(self, partition: int) -> Publisher:
        def after_the_records() -> int:
            if self.counters.proposals:
                self.now_ms = Slow.now_ms + 60_000
            return self.now_ms

        assert self._producer is not None
        return PlainPublisher(self._producer, after_the_records)


async def test_authority_that_ends_while_the_record_is_written_is_not_released() -> None:
    with EmbeddedBroker() as broker:
        guard = Slow(GuardSettings.embedded(broker.bootstrap_servers, hold_ms=0), contracts(), lambda: guard.now_ms)
        rig = Rig(broker.bootstrap_servers)
        async with running(guard):
            await rig.open()
            start = Slow.now_ms
            await rig.send("telemetry", report("r1", 9, event_time_ms=start), timestamp_ms=start)
            await rig.send("proposals", proposal("p1", created_at_ms=start))
            decision = await rig.decision("p1")
            assert decision["action"] == "HOLD"
            assert decision["decided_at_ms"] == start + 60_000
            assert guard.stats()["redecided"] == 1
            await rig.wait_for("records", lambda record: record["action"] == "HOLD")
            records = [rig.opened(m) for m in rig.written["records"]]
            assert [record["action"] for record in records] == ["APPLY", "HOLD"]
            assert [record["chain"]["index"] for record in records] == [0, 1]
            assert len(rig.decisions("p1")) == 1
        await rig.close()


async def test_a_proposal_whose_record_no_message_carries_is_refused_and_a_dead_letter() -> None:
    async with guarded(max_message_bytes=12_000) as (rig, _):
        await rig.send("telemetry", report("r1", 9))
        sent = await rig.send("proposals", proposal("p1", evidence=[f"o{n}" for n in range(2_000)]))
        letter = await rig.dead_letter(sent)
        assert "record" in letter["reason"]
        await rig.send("proposals", proposal("p2"))
        assert (await rig.decision("p2"))["action"] == "APPLY"
        (decision,) = rig.decisions("p1")
        assert (decision["action"], decision["final"]) == ("ABSTAIN", True)
        record = await rig.wait_for("records", lambda record: record["proposal_id"] == "p1")
        assert record["record"]["digest"] == decision["record"]["digest"]
        del record["message"]
        assert verify(record) == []


async def test_a_bug_of_ours_ends_the_service_with_nothing_released() -> None:
    class Broken(dict):  # type: ignore[type-arg]
        def get(self, key: object, default: object = None) -> object:
            raise ZeroDivisionError("a bug")

    with EmbeddedBroker() as broker:
        guard = Guard(GuardSettings.embedded(broker.bootstrap_servers), Broken(contracts()))
        rig = Rig(broker.bootstrap_servers)
        async with running(guard) as task:
            await rig.open()
            await rig.send("proposals", proposal("p1"))
            with pytest.raises(ZeroDivisionError):
                await asyncio.wait_for(task, 5)
            assert not guard.ready
        async with running(Guard(GuardSettings.embedded(broker.bootstrap_servers), contracts())):
            await rig.decision("p1")
        assert len(rig.decisions()) == 1
        await rig.close()


async def test_live_decisions_are_a_function_of_the_telemetry_before_them_the_proposal_and_t() -> None:
    telemetry: dict[int, bytes] = {}
    proposals: dict[str, bytes] = {}
    times: dict[int, int] = {}
    async with guarded() as (rig, _):
        for n in range(40):
            at = unix_ms()
            value = report(f"r{n}", n % 18, event_time_ms=at - 1_000 + n)
            sent = await rig.send("telemetry", value, timestamp_ms=at)
            telemetry[sent.offset], times[sent.offset] = value, at
            proposals[f"p{n}"] = proposal(f"p{n}")
            await rig.send("proposals", proposals[f"p{n}"])
            if n % 4 == 0:
                await rig.decision(f"p{n}")
        for proposal_id in proposals:
            await rig.decision(proposal_id)
        live = [message.value for message in rig.written["control"]]
        records = [rig.opened(message) for message in rig.written["records"]]

    state = RegionState(REGION, contracts())
    read = 0
    actions = set()
    for value, record in zip(live, records, strict=True):
        decision = orjson.loads(value)
        evidence, resume = decision["evidence"], decision["resume"]
        for offset in range(read, evidence["offset"]):
            state.ingest(telemetry[offset], times[offset])
        read = max(read, evidence["offset"])
        stamp = Stamp(
            "guard",
            decision["sequence"],
            evidence["topic"],
            evidence["partition"],
            Read(evidence["offset"], evidence["outcomes"], evidence["answers"]),
            attempt=decision["attempt"],
            final=decision["final"],
            proposal_offset=decision["proposal_offset"],
            resume=Resume(resume["proposals"], resume["sequence"]),
            until_ms=decision["until_ms"],
        )
        asked = read_proposal_bytes(proposals[decision["proposal_id"]])
        t_ms = decision["decided_at_ms"]
        made = state.decide(asked, t_ms)
        again = state.outcome(made, asked, t_ms, stamp)
        state.note(made.lease, None)
        assert again.control_value == value
        assert orjson.loads(again.record_value) == {k: v for k, v in record.items() if k != "chain"}
        actions.add(decision["action"])
    assert {"APPLY", "HOLD"} <= actions


async def test_topics_with_unequal_partitions_or_no_kafka_are_refused_with_the_reason(tmp_path: Path) -> None:
    settings = GuardSettings.of(bootstrap_servers="127.0.0.1:1", connect_timeout_s=0.5)
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1 not ready within 0\.5 s"):
        await Guard(settings, contracts()).start()


async def test_what_the_guard_writes_is_valid_by_the_exported_json_schemas() -> None:
    found = schemas()
    for schema in found.values():
        Draft202012Validator.check_schema(schema)
    async with guarded() as (rig, _):
        await rig.send("telemetry", b"{")
        await rig.send("proposals", proposal("p1"))
        await rig.ask(kind="as_of", query_id="q", name="cqi")
        await rig.decision("p1")
        await rig.wait_for("dead-letters")
        for topic, name in (("control", "decision"), ("dead-letters", "dead-letter"), ("views", "view")):
            (message,) = rig.written[topic]
            Draft202012Validator(found[f"wirelessops.{name}/1"]).validate(orjson.loads(message.value))
    Draft202012Validator(found["wirelessops.proposal/1"]).validate(orjson.loads(proposal("p1")))
    Draft202012Validator(found["wirelessops.telemetry/1"]).validate(orjson.loads(report("r1", 9)))
    assert "wirelessops.source-status/1" in found


def test_the_contract_of_these_tests_is_the_one_they_describe() -> None:
    assert CONTRACT["fields"]["cqi"]["sources"] == ["e2:gnb-1"]
    assert GuardSettings.of(bootstrap_servers="x").topics.telemetry == PREFIX + "telemetry"


async def test_a_flood_of_proposals_is_decided_on_evidence_that_keeps_flowing() -> None:
    """All of them in one message batch, so that one fetch gives them all."""
    async with (
        guarded() as (rig, _),
        AIOKafkaProducer(
            bootstrap_servers=rig.bootstrap_servers, linger_ms=100, max_batch_size=900_000
        ) as in_one_batch,
    ):
        await rig.send("telemetry", report("first", 9))
        acks = [
            await in_one_batch.send(PREFIX + "proposals", proposal(f"p{n}"), key=REGION.encode()) for n in range(1_000)
        ]
        await rig.wait_for("control")
        await rig.send("telemetry", report("last", 8))
        await asyncio.gather(*acks)
        assert (await rig.decision("p0"))["used"] == {"cqi": ["first#0"]}
        assert (await rig.decision("p999"))["used"] == {"cqi": ["last#0"]}
        assert len(rig.decisions()) == 1_000


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
async def test_messages_are_read_however_their_producer_compresses_them(codec: str) -> None:
    async with guarded() as (rig, _):
        producer = AIOKafkaProducer(bootstrap_servers=rig.bootstrap_servers, compression_type=codec)
        await producer.start()
        try:
            for topic, value in (("telemetry", report("r1", 9)), ("proposals", proposal("p1"))):
                await producer.send_and_wait(f"wirelessops.{topic}", value, key=REGION.encode())
        finally:
            await producer.stop()
        assert (await rig.decision("p1"))["action"] == "APPLY"


async def test_an_answer_that_no_message_can_carry_is_a_dead_letter_and_the_guard_goes_on() -> None:
    async with guarded(max_message_bytes=20_000) as (rig, _):
        question = {"format": "wirelessops.query/1", "kind": "as_of", "query_id": "n" * 30_000, "name": "cqi"}
        sent = await rig.send("queries", orjson.dumps(question))
        await rig.send("telemetry", report("r1", 9))
        await rig.send("proposals", proposal("p1"))
        assert (await rig.decision("p1"))["action"] == "APPLY"
        assert "larger than a message may be" in (await rig.dead_letter(sent))["reason"]
