"""The guard on a real Kafka: what only transactions, groups and a broker with a will of its own can show."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from guard_rig import CONTRACT, Rig, contracts, proposal, report, running
from real_kafka import RealKafka
from structlog.testing import capture_logs
from support_rig import gate_in

from streams.deciding import RegionState
from streams.guard import Guard, unix_ms
from streams.kafka_cluster import KafkaCluster, KafkaUnavailable
from streams.settings import GuardSettings
from xapp.faithfulness import verify
from xapp.model import Measurement, Report
from xapp.signing import KnownKeys, Signer, check_document

SIGNER = Signer.of_seed(bytes(32))
LEASED: dict[str, Any] = {**CONTRACT, "control": {"key": "cell:{cell}/ue:{ue}/prb", "lease_ms": 60_000}}
WAIT_S = 30.0


def settings(kafka: RealKafka, name: str = "w1", **options: Any) -> GuardSettings:
    return GuardSettings.of(
        bootstrap_servers=kafka.bootstrap_servers,
        prefix=kafka.prefix,
        guard_name=name,
        session_timeout_ms=6_000,
        **options,
    )


@asynccontextmanager
async def deciding(guard: Guard) -> AsyncIterator[Guard]:
    async with running(guard), asyncio.timeout(WAIT_S):
        await guard.until_ready()
        yield guard


@asynccontextmanager
async def rig_on(kafka: RealKafka) -> AsyncIterator[Rig]:
    rig = Rig(kafka.bootstrap_servers, kafka.prefix)
    await rig.open()
    try:
        yield rig
    finally:
        await rig.close()


def configure(kafka: RealKafka, topic: str, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    entries = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in config.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, kafka.prefix + topic, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(WAIT_S)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not holds():  # noqa: ASYNC110 - of a service that tells nobody
            await asyncio.sleep(0.02)


async def test_a_decision_and_its_record_are_signed_chained_and_visible_together(kafka: RealKafka) -> None:
    async with deciding(Guard(settings(kafka), contracts(), signer=SIGNER)), rig_on(kafka) as rig:
        await rig.send("telemetry", report("r1", 9))
        for n in range(5):
            await rig.send("proposals", proposal(f"p{n}"))
            decision = await rig.decision(f"p{n}")
            assert decision["action"] == "APPLY"
            message = decision.pop("message")
            assert check_document(decision, KnownKeys([SIGNER.public_key])) is None
            assert message.timestamp_type == 1, "the broker's clock stamps `control`"
            assert message.timestamp <= decision["valid_until_ms"]
        await until(lambda: len(rig.written["records"]) == 5)
        records = [rig.opened(message) for message in rig.written["records"]]
        assert [record["chain"]["index"] for record in records] == list(range(5))
        assert [verify(record) for record in records] == [[]] * 5


async def test_leases_and_evidence_survive_the_worker_that_knew_them(kafka: RealKafka) -> None:
    other = {"bandwidth": {"value": 5, "unit": "MHz"}}
    async with rig_on_topics_of(Guard(settings(kafka), contracts(LEASED)), kafka) as rig:
        await rig.send("telemetry", report("r1", 9))
        await rig.send("proposals", proposal("first"))
        assert (await rig.decision("first"))["action"] == "APPLY"
        async with deciding(Guard(settings(kafka, "w2"), contracts(LEASED))):
            await rig.send("proposals", proposal("same"))
            same = await rig.decision("same")
            assert (same["action"], same["lease"]["merged_with"]) == ("APPLY", "first")
            assert same["used"] == {"cqi": ["r1#0"]}, "evidence read back, not new"
            await rig.send("proposals", proposal("other", plan=other))
            held = await rig.decision("other")
            assert [v["code"] for v in held["violations"] if v["blocking"]] == ["lease_conflict"]
        assert [d["sequence"] for d in rig.decisions()][:3] == [0, 1, 2]


@asynccontextmanager
async def rig_on_topics_of(guard: Guard, kafka: RealKafka) -> AsyncIterator[Rig]:
    """A rig on the topics that a guard makes; the guard runs until its first decision is out, then it is gone."""
    async with deciding(guard):
        rig = Rig(kafka.bootstrap_servers, kafka.prefix)
        await rig.open()
        await rig.send("telemetry", report("r1", 9))
        await rig.send("proposals", proposal("first"))
        await rig.decision("first")
    try:
        yield rig
    finally:
        await rig.close()


async def test_while_records_cannot_be_written_nothing_is_released_and_nothing_is_lost(kafka: RealKafka) -> None:
    async with deciding(Guard(settings(kafka), contracts())) as guard, rig_on(kafka) as rig:
        await rig.send("telemetry", report("r1", 9))
        await rig.send("proposals", proposal("before"))
        await rig.decision("before")
        configure(kafka, "records", max_message_bytes="100")  # the broker refuses every record
        await rig.send("proposals", proposal("during", deadline_ms=unix_ms() + 60_000))
        await until(lambda: guard.counters.reopened > 0)
        assert rig.decisions("during") == []
        configure(kafka, "records", max_message_bytes="1000000")
        assert (await rig.decision("during", WAIT_S))["action"] == "APPLY"
        assert [d["sequence"] for d in rig.decisions()] == [0, 1]


async def test_a_record_larger_than_the_broker_takes_is_answered_by_a_refusal(kafka: RealKafka) -> None:
    async with deciding(Guard(settings(kafka), contracts())) as guard, rig_on(kafka) as rig:
        configure(kafka, "records", max_message_bytes="20000")
        await rig.send("telemetry", report("r1", 9))
        sent = await rig.send("proposals", proposal("p1", evidence=[f"o{n}" for n in range(4_000)]))
        await rig.send("proposals", proposal("p2"))
        assert (await rig.decision("p2", WAIT_S))["action"] == "APPLY"
        decision = await rig.decision("p1", WAIT_S)
        assert (decision["action"], decision["final"]) == ("ABSTAIN", True)
        assert "larger" in (await rig.dead_letter(sent))["reason"]
        assert guard.counters.fenced == 0


async def test_bytes_of_strangers_on_the_guards_own_topics_do_not_keep_it_from_starting(kafka: RealKafka) -> None:
    async with deciding(Guard(settings(kafka), contracts(), signer=SIGNER)), rig_on(kafka) as rig:
        await rig.send("telemetry", report("r1", 9))
        await rig.send("proposals", proposal("p1"))
        real = await rig.decision("p1")
        del real["message"]
        forged = {**real, "proposal_id": "p2", "sequence": 1_000_000, "signature": {"keyid": "x", "sig": "eA=="}}
        lists = {**real, "region": [], "evidence": [1], "violations": 3}
        for value in (b"", None, b"{", b"[]", orjson.dumps(lists), orjson.dumps(forged)):
            await rig.send("control", value)
            await rig.send("records", value)
    trusted = KnownKeys([SIGNER.public_key])
    async with (
        deciding(Guard(settings(kafka, "w2"), contracts(), signer=SIGNER, trusted=trusted)),
        rig_on(kafka) as rig,
    ):
        await rig.send("proposals", proposal("p2"))
        own = await rig.wait_for("control", lambda d: d.get("proposal_id") == "p2" and d.get("guard") == "w2")
        assert (own["action"], own["sequence"]) == ("APPLY", 1)


async def test_an_apply_that_the_broker_would_take_too_late_is_decided_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The broker is stopped between deciding and writing for longer than the evidence holds."""
    document = {
        **CONTRACT,
        "fields": {**CONTRACT["fields"], "cqi": {**CONTRACT["fields"]["cqi"], "freshness_ms": 4_000}},
    }
    try:
        cluster = KafkaCluster(1)
        cluster.start()
    except KafkaUnavailable as error:
        pytest.skip(str(error))
    try:
        kafka = RealKafka(cluster.bootstrap_servers, "late.")
        async with deciding(Guard(settings(kafka), contracts(document))) as guard, rig_on(kafka) as rig:
            decide = RegionState.decide

            def slow(*given: Any) -> Any:
                decision = decide(*given)
                if decision.action == "APPLY" and guard.counters.redecided == 0:
                    cluster.pause(0)
                    asyncio.get_running_loop().call_later(5, cluster.resume, 0)
                return decision

            monkeypatch.setattr(RegionState, "decide", slow)
            await rig.send("telemetry", report("r1", 9))
            await rig.send("proposals", proposal("p1", deadline_ms=unix_ms() + 20_000))
            decision = await rig.decision("p1", WAIT_S)
            assert decision["action"] == "HOLD"
            assert guard.counters.redecided == 1
            await rig.send("telemetry", report("r2", 9))
            done = await rig.wait_for("control", lambda d: d["final"], WAIT_S)
            assert (done["action"], done["attempt"]) == ("APPLY", 2)
            assert done["message"].timestamp <= done["valid_until_ms"]
            await until(lambda: len(rig.written["records"]) == 2)
            assert [rig.opened(m)["chain"]["index"] for m in rig.written["records"]] == [0, 1]
    finally:
        cluster.stop()


async def test_a_partition_whose_inputs_end_with_the_end_of_a_transaction_is_taken_up(kafka: RealKafka) -> None:
    async with rig_on_topics_of(Guard(settings(kafka), contracts()), kafka) as rig:
        writer = Producer(
            {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": f"{kafka.prefix}x", "log_level": 0}
        )
        writer.init_transactions(WAIT_S)
        for commits in (True, False):
            writer.begin_transaction()
            for topic in ("telemetry", "outcomes", "answers"):
                writer.produce(kafka.prefix + topic, b"{}", key=b"north", partition=rig.partition_of_region())
            writer.flush(WAIT_S)
            (writer.commit_transaction if commits else writer.abort_transaction)(WAIT_S)
        async with deciding(Guard(settings(kafka, "w2"), contracts())):
            await rig.send("proposals", proposal("p2"))
            assert (await rig.decision("p2", WAIT_S))["action"] == "APPLY"


async def test_a_window_that_the_topic_no_longer_holds_only_vetoes_and_is_told(
    kafka: RealKafka, tmp_path: Path
) -> None:
    def measured(at_ms: int) -> Report:
        return Report(f"r@{at_ms}", "e2:gnb-1", at_ms, (Measurement("cqi", 9, "1", "cell:1/ue:7"),))

    gate = gate_in(tmp_path / "gate", contracts()["test/1"], measured, unix_ms())
    telemetry = TopicPartition(f"{kafka.prefix}telemetry", Rig.partition_of_region(), 2)
    async with rig_on_topics_of(Guard(settings(kafka), contracts()), kafka) as rig:
        for n in range(3):
            await rig.send("telemetry", report(f"more-{n}", 9))
        whole = Guard(settings(kafka, "w2", support_dir=gate), contracts())
        with capture_logs() as logs:
            async with deciding(whole):
                await rig.send("proposals", proposal("whole"))
                assert (await rig.decision("whole"))["support"]["state"] == "RUNTIME_ABSTAIN"
        assert not [said for said in logs if "retained" in said["event"]]
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
        admin.delete_records([telemetry])[telemetry].result(WAIT_S)
        with capture_logs() as logs:
            async with deciding(Guard(settings(kafka, "w3", support_dir=gate), contracts())):
                await rig.send("proposals", proposal("cut"))
                cut = await rig.decision("cut")
    assert (cut["action"], cut["support"]["state"]) == ("ABSTAIN", "RUNTIME_ABSTAIN")
    (told,) = [said for said in logs if "retained" in said["event"]]
    assert (told["partition"], told["log_level"]) == (telemetry.partition, "warning")
    assert 0 < told["retained_s"] < told["counted_s"]
