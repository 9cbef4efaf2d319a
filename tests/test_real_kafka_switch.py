"""The switch on a real Kafka: what only retention, transactions and another worker can show."""

from __future__ import annotations

from itertools import count
from typing import Any

import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from guard_rig import PARTITIONS, Rig, contracts, proposal, report
from real_kafka import RealKafka
from test_real_kafka_guard import SIGNER, deciding, rig_on_topics_of, settings

from streams.guard import Guard, unix_ms
from streams.messages import SwitchedMessage, SwitchMessage
from streams.reading import read_to
from streams.switching import write_switch
from streams.topics import topics
from xapp.signing import KnownKeys, check_document

TRUSTED = KnownKeys([SIGNER.public_key])


def guard(kafka: RealKafka, name: str) -> Guard:
    return Guard(settings(kafka, name, hold_ms=0), contracts(), signer=SIGNER, trusted=TRUSTED)


async def write(rig: Rig, mode: str) -> None:
    message = SwitchMessage.model_validate(
        {"switch_id": mode, "mode": mode, "operator": "alice", "reason": "a storm", "at_ms": unix_ms()}
    )
    async with AIOKafkaProducer(bootstrap_servers=rig.bootstrap_servers, enable_idempotence=True) as producer:
        written = await write_switch(producer, topics(rig.prefix), range(PARTITIONS), message)
    assert (written.partitions, written.failed) == (tuple(range(PARTITIONS)), ())


def forget(kafka: RealKafka) -> None:
    """What retention would: nothing is left of `answers`."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    places = [TopicPartition(f"{kafka.prefix}answers", partition) for partition in range(PARTITIONS)]
    ends = {place: found.result(20).offset for place, found in
            admin.list_offsets({place: OffsetSpec.latest() for place in places}).items()}  # fmt: skip
    gone = [TopicPartition(place.topic, place.partition, end) for place, end in ends.items()]
    for done in admin.delete_records(gone).values():
        done.result(20)


async def codes_of(rig: Rig, proposal_id: str) -> list[str]:
    await rig.send("proposals", proposal(proposal_id))
    decision = await rig.wait_for("control", lambda d: d["proposal_id"] == proposal_id and d["final"], 20)
    return [v["code"] for v in decision["violations"] if v["blocking"]]


async def kept(rig: Rig) -> list[dict[str, Any]]:
    """What stands on `controls` of the region's partition."""
    place = AioPartition(f"{rig.prefix}controls", rig.partition_of_region())
    consumer = AIOKafkaConsumer(bootstrap_servers=rig.bootstrap_servers, isolation_level="read_committed")
    async with consumer:
        consumer.assign([place])
        end = (await consumer.end_offsets([place]))[place]
        begin = (await consumer.beginning_offsets([place]))[place]
        return [orjson.loads(message.value) async for message in read_to(consumer, {place: end}, {place: begin})]


async def test_a_switch_outlives_the_retention_of_answers_and_the_worker_that_read_it(kafka: RealKafka) -> None:
    async with rig_on_topics_of(guard(kafka, "w1"), kafka) as rig:
        async with deciding(guard(kafka, "w2")):
            await write(rig, "hold")
            await until_held(rig, "p", "kill_switch")
        found = [one for one in await kept(rig) if one["format"] == "wirelessops.switched/1"]
        assert [one["switch"]["mode"] for one in found] == ["hold"]
        assert all(check_document(one, TRUSTED) is None for one in found)
        SwitchedMessage.model_validate(found[0])
        forget(kafka)
        forged = {**found[0], "switch": {**found[0]["switch"], "mode": "live"}}
        forged.pop("signature")
        await rig._producer.send_and_wait(
            f"{rig.prefix}controls", orjson.dumps(forged), key=b'{"switch":null}', partition=rig.partition_of_region()
        )
        async with deciding(guard(kafka, "w3")):
            await rig.send("telemetry", report("again", 9))
            assert await codes_of(rig, "after") == ["kill_switch"], "kept, and what nobody signed is passed over"
        await write(rig, "live")  # while no guard runs
        async with deciding(guard(kafka, "w4")):
            await rig.send("telemetry", report("once more", 9))
            assert await codes_of(rig, "released") == []


async def until_held(rig: Rig, name: str, code: str) -> None:
    """A switch is in force a little after it was written."""
    for number in count():
        if code in await codes_of(rig, f"{name}{number}"):
            return
