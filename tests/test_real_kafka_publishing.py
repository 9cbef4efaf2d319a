"""What a writer of a partition is told by a real broker once another has taken its place."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from real_kafka import RealKafka

from streams.publishing import Fenced, Late, Outgoing
from streams.transactions import TransactionalPublisher

WAIT_S = 20.0


def publisher(kafka: RealKafka) -> TransactionalPublisher:
    options = {"bootstrap.servers": kafka.bootstrap_servers}
    return TransactionalPublisher(f"{kafka.prefix}guard.0", options, max_message_bytes=1_000_000)


def message(topic: str, valid_until_ms: int | None = None) -> Outgoing:
    return Outgoing(topic=topic, partition=0, key=b"north", value=b"{}", headers=[], valid_until_ms=valid_until_ms)


def test_librdkafka_may_tell_it_by_a_system_error_where_messages_were_under_way(kafka: RealKafka) -> None:
    topic = kafka.create_topic("control")

    def opened() -> Producer:
        name = f"{kafka.prefix}guard.0"
        made = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": name, "log_level": 0})
        made.init_transactions(WAIT_S)
        return made

    former, _latter = opened(), opened()
    told: list[KafkaError] = []
    former.begin_transaction()
    former.produce(topic, b"x", on_delivery=lambda error, _: told.append(error))
    # The delivery report is called with the fatal error already raised: whatever it calls seems to fail
    with pytest.raises((SystemError, KafkaException)) as refused:
        former.flush(WAIT_S)
    cause = refused.value if isinstance(refused.value, KafkaException) else refused.value.__cause__
    assert isinstance(cause, KafkaException)
    assert (cause.args[0].code(), cause.args[0].fatal()) == (KafkaError._FENCED, True)
    assert [error.code() for error in told] == [KafkaError._PURGE_QUEUE]
    with pytest.raises(KafkaException):
        former.commit_transaction(WAIT_S)


async def test_a_publisher_whose_place_was_taken_is_told_so_at_its_first_attempt(kafka: RealKafka) -> None:
    topic = kafka.create_topic("control", message_timestamp_type="LogAppendTime")
    former, latter = publisher(kafka), publisher(kafka)
    try:
        await former.open()
        await former.publish([message(topic)], [message(topic)])
        await latter.open()
        for _ in range(2):
            with pytest.raises(Fenced):
                await former.publish([message(topic)], [message(topic)])
        await latter.publish([message(topic)], [message(topic)])
    finally:
        await former.close()
        await latter.close()


async def test_a_release_that_was_appended_too_late_is_taken_back_and_the_next_one_stands(kafka: RealKafka) -> None:
    topic = kafka.create_topic("control", message_timestamp_type="LogAppendTime")
    owner = publisher(kafka)
    try:
        await owner.open()
        with pytest.raises(Late):
            await owner.publish([], [message(topic, valid_until_ms=1)])
        await owner.publish([], [message(topic, valid_until_ms=10**14)])
    finally:
        await owner.close()


async def test_where_a_topic_keeps_the_writers_time_an_apply_is_late_by_the_time_of_its_acknowledgement(
    kafka: RealKafka,
) -> None:
    topic = kafka.create_topic("control", message_timestamp_type="CreateTime")
    writer = publisher(kafka)
    try:
        await writer.open()
        now_ms = time.time_ns() // 1_000_000
        with pytest.raises(Late):
            await writer.publish([], [message(topic, now_ms - 1)])
        await writer.publish([], [message(topic, now_ms + 60_000)])
    finally:
        await writer.close()
